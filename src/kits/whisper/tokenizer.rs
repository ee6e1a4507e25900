//! Whisper's tokens: a byte-pair vocabulary, then special tokens, then timestamps.

use super::{Error, Task, language};
use crate::text::Vocabulary;

/// Timestamps 0.00, 0.02, … 30.00.
const TIMESTAMPS: usize = 1501;
/// End of text and start of transcript; then, behind the languages, the two tasks, start of LM, start of previous text,
/// no speech, no timestamps.
const BEFORE_LANGUAGES: usize = 2;
const AFTER_LANGUAGES: usize = 6;

/// Symbols that are not spoken; each is suppressed, with and without a space before it, when it is one token.
const SYMBOLS: &str = "\" # ( ) * + / : ; < = > @ [ \\ ] ^ _ ` { | } ~ 「 」 『 』 \
                       << >> <<< >>> -- --- -( -[ (' (\" (( )) ((( ))) [[ ]] {{ }} ♪♪ ♪♪♪";
/// Symbols of which the first token is suppressed even when there are several: they share their first two bytes.
const NOTES: &str = "♩ ♪ ♫ ♬ ♭ ♮ ♯";
/// Allowed inside words, not where one begins.
const WORD_JOINERS: [&str; 2] = [" -", " '"];

/// Ids of text and special tokens.
#[derive(Debug)]
pub struct Tokenizer {
    vocabulary: Vocabulary,
    n_languages: usize,
    multilingual: bool,
}

impl Tokenizer {
    /// The tokenizer of a model with `n_vocab` tokens.
    ///
    /// # Errors
    /// [`Error::VocabularySize`] when the vocabulary, the special tokens and a known number of languages do not add up
    /// to `n_vocab`.
    pub fn new(vocabulary: Vocabulary, n_vocab: usize, multilingual: bool) -> Result<Self, Error> {
        let fixed = vocabulary.len() + BEFORE_LANGUAGES + AFTER_LANGUAGES + TIMESTAMPS;
        let n_languages = n_vocab
            .checked_sub(fixed)
            .filter(|n| (1..=language::ALL.len()).contains(n));
        let vocabulary_len = vocabulary.len();
        let n_languages = n_languages.ok_or(Error::VocabularySize {
            n_vocab,
            vocabulary: vocabulary_len,
        })?;
        Ok(Self {
            vocabulary,
            n_languages,
            multilingual,
        })
    }

    /// Whether the model knows more than English.
    pub fn is_multilingual(&self) -> bool {
        self.multilingual
    }

    /// `<|endoftext|>`; every id below it is text.
    pub fn eot(&self) -> u32 {
        self.vocabulary.len() as u32
    }

    /// `<|startoftranscript|>`.
    pub fn sot(&self) -> u32 {
        self.eot() + 1
    }

    /// The tokens of the languages that the model knows, in the order of [`language::ALL`].
    pub fn languages(&self) -> std::ops::Range<u32> {
        let first = self.eot() + BEFORE_LANGUAGES as u32;
        first..first + self.n_languages as u32
    }

    /// `<|translate|>`.
    pub fn translate(&self) -> u32 {
        self.languages().end
    }

    /// `<|transcribe|>`.
    pub fn transcribe(&self) -> u32 {
        self.languages().end + 1
    }

    /// `<|startoflm|>`, which no model uses.
    pub fn sot_lm(&self) -> u32 {
        self.languages().end + 2
    }

    /// `<|startofprev|>`: the text of the window before follows.
    pub fn sot_prev(&self) -> u32 {
        self.languages().end + 3
    }

    /// `<|nospeech|>`.
    pub fn no_speech(&self) -> u32 {
        self.languages().end + 4
    }

    /// `<|notimestamps|>`.
    pub fn no_timestamps(&self) -> u32 {
        self.languages().end + 5
    }

    /// `<|0.00|>`; every id from here on is a timestamp, 0.02 s after the one before.
    pub fn timestamp_begin(&self) -> u32 {
        self.languages().end + AFTER_LANGUAGES as u32
    }

    /// The tokens that begin a transcript: for an English model only the start; for others its language and task too.
    ///
    /// # Errors
    /// [`Error::UnknownLanguage`] when the model lacks the language.
    pub fn sot_sequence(&self, code: &str, task: Task) -> Result<Vec<u32>, Error> {
        if !self.multilingual {
            return if code == language::ENGLISH {
                Ok(vec![self.sot()])
            } else {
                Err(self.unknown(code))
            };
        }
        let index = language::index(code).filter(|&index| index < self.n_languages);
        let language = self.languages().start + index.ok_or_else(|| self.unknown(code))? as u32;
        let task = match task {
            Task::Transcribe => self.transcribe(),
            Task::Translate => self.translate(),
        };
        Ok(vec![self.sot(), language, task])
    }

    fn unknown(&self, code: &str) -> Error {
        let known = if self.multilingual {
            format!("{} languages", self.n_languages)
        } else {
            "only English".to_owned()
        };
        Error::UnknownLanguage {
            language: code.to_owned(),
            known,
        }
    }

    /// The text of the text tokens among `ids`.
    pub fn decode(&self, ids: &[u32]) -> String {
        self.vocabulary.decode(ids)
    }

    /// Ids of a blank, which no transcript begins with.
    pub fn blank(&self) -> Vec<u32> {
        self.vocabulary.encode_piece(" ")
    }

    /// Ids of what is written but not spoken: brackets, quotes, notes, marks of speakers.
    pub fn non_speech(&self) -> Vec<u32> {
        let first = |text: &str| self.vocabulary.encode_piece(text).into_iter().next();
        let mut ids: Vec<u32> = WORD_JOINERS.into_iter().filter_map(first).collect();
        for symbol in SYMBOLS.split(' ') {
            for text in [symbol.to_owned(), format!(" {symbol}")] {
                if let [id] = self.vocabulary.encode_piece(&text)[..] {
                    ids.push(id);
                }
            }
        }
        for note in NOTES.split(' ') {
            ids.extend(
                [note.to_owned(), format!(" {note}")]
                    .iter()
                    .filter_map(|text| first(text)),
            );
        }
        ids.sort_unstable();
        ids.dedup();
        ids
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    /// Each vocabulary of the goldens, with what openai-whisper says of it.
    fn goldens() -> Vec<(Tokenizer, Value)> {
        let golden: Value =
            serde_json::from_str(include_str!("../../../tests/golden/tokenizer.json")).unwrap();
        ["gpt2", "multilingual_99", "multilingual_100"]
            .map(|name| {
                let golden = golden[name].clone();
                let multilingual = golden["multilingual"].as_bool().unwrap();
                let ranks = if multilingual {
                    include_str!("../../../assets/whisper/multilingual.tiktoken")
                } else {
                    include_str!("../../../assets/whisper/gpt2.tiktoken")
                };
                let n_vocab = golden["vocabulary"].as_u64().unwrap() as usize;
                (
                    Tokenizer::new(
                        Vocabulary::from_rank_file(ranks).unwrap(),
                        n_vocab,
                        multilingual,
                    )
                    .unwrap(),
                    golden,
                )
            })
            .into()
    }

    fn ids(value: &Value) -> Vec<u32> {
        value
            .as_array()
            .unwrap()
            .iter()
            .map(|id| id.as_u64().unwrap() as u32)
            .collect()
    }

    #[test]
    fn special_tokens_are_the_reference_s() {
        for (tokenizer, golden) in goldens() {
            let special = [
                ("eot", tokenizer.eot()),
                ("sot", tokenizer.sot()),
                ("translate", tokenizer.translate()),
                ("transcribe", tokenizer.transcribe()),
                ("sot_lm", tokenizer.sot_lm()),
                ("sot_prev", tokenizer.sot_prev()),
                ("no_speech", tokenizer.no_speech()),
                ("no_timestamps", tokenizer.no_timestamps()),
                ("timestamp_begin", tokenizer.timestamp_begin()),
            ];
            for (name, id) in special {
                assert_eq!(golden["special"][name], id, "{name}");
            }
            for (i, (code, _)) in language::ALL.iter().take(tokenizer.n_languages).enumerate() {
                assert_eq!(
                    golden["languages"][code],
                    tokenizer.languages().start + i as u32,
                    "{code}"
                );
            }
        }
    }

    #[test]
    fn suppressed_tokens_are_the_reference_s() {
        for (tokenizer, golden) in goldens() {
            assert_eq!(tokenizer.non_speech(), ids(&golden["non_speech_tokens"]));
        }
    }

    #[test]
    fn a_transcript_begins_as_the_reference_s() {
        for (tokenizer, golden) in goldens() {
            if !tokenizer.is_multilingual() {
                let start = tokenizer
                    .sot_sequence(language::ENGLISH, Task::Transcribe)
                    .unwrap();
                assert_eq!(start, ids(&golden["sot_sequence"]));
            }
            for start in golden["sot_sequences"].as_array().into_iter().flatten() {
                let code = start["language"].as_str().unwrap();
                let task = if start["task"] == "translate" {
                    Task::Translate
                } else {
                    Task::Transcribe
                };
                assert_eq!(
                    tokenizer.sot_sequence(code, task).unwrap(),
                    ids(&start["sequence"]),
                    "{code}"
                );
            }
        }
    }

    #[test]
    fn ids_become_the_reference_s_text() {
        for (tokenizer, golden) in goldens() {
            for key in ["texts", "cut_characters"] {
                for case in golden[key].as_array().unwrap() {
                    assert_eq!(
                        tokenizer.decode(&ids(&case["ids"])),
                        case["text"].as_str().unwrap()
                    );
                }
            }
        }
    }

    #[test]
    fn a_language_that_the_model_lacks_is_refused_by_name() {
        let [(english, _), (multilingual, _), _] = <[_; 3]>::try_from(goldens()).unwrap();
        for (tokenizer, code) in [
            (&english, "de"),
            (&multilingual, "yue"),
            (&multilingual, "xx"),
        ] {
            let error = tokenizer
                .sot_sequence(code, Task::Transcribe)
                .unwrap_err()
                .to_string();
            assert!(error.contains(code), "{error}");
        }
    }

    #[test]
    fn a_vocabulary_of_another_size_is_refused_with_both_numbers() {
        let vocabulary = || Vocabulary::from_rank_file("YQ== 0\n").unwrap();
        for n_vocab in [0, 51_864, usize::MAX] {
            assert!(matches!(
                Tokenizer::new(vocabulary(), n_vocab, false),
                Err(Error::VocabularySize { vocabulary: 1, .. })
            ));
        }
    }
}
