//! The published models that are known by name.

use super::{Error, Manifest};

/// The prefix that chooses them.
const NAME: &str = "well-known";

impl Manifest {
    /// The provider of a compiled-in table of published models, `well-known`.
    ///
    /// # Errors
    /// [`Error::Manifest`] as [`Manifest::parse`].
    pub fn well_known(text: &str) -> Result<Self, Error> {
        Self::parse(NAME, text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Kind, Provider as _, Roots, Row, Source};

    fn whisper() -> Manifest {
        Manifest::well_known(include_str!("../../assets/whisper/well-known.toml")).unwrap()
    }

    #[test]
    fn openais_twelve_checkpoints_have_their_prefab_and_a_pinned_place() {
        let whisper = whisper();
        // OpenAI's own come first: a bare name is theirs.
        let (openai, others) = whisper.rows.split_at(12);
        let is_checkpoint =
            |row: &Row| row.resources.iter().all(|file| file.kind == Kind::OpenaiPt);
        assert!(!others.iter().any(is_checkpoint));
        for row in openai {
            let weights = row.resources.get("weights").unwrap();
            let digest = weights.sha256.unwrap().to_string();
            assert_eq!(weights.kind, Kind::OpenaiPt);
            assert_eq!(
                row.name,
                format!("openai/{}", weights.file.strip_suffix(".pt").unwrap())
            );
            assert!(
                whisper
                    .prefabs
                    .iter()
                    .any(|prefab| Some(&prefab.name) == row.prefab.as_ref()),
                "{:?}",
                row.prefab
            );
            assert_eq!(
                weights.sources[0],
                Source::Local(Roots::OPENAI_WHISPER.to_owned())
            );
            // OpenAI's own loader reads the digest from the URL; two places that agree cannot both be mistyped.
            assert!(
                weights
                    .url()
                    .unwrap()
                    .ends_with(&format!("/{digest}/{}", weights.file)),
                "{}",
                row.name
            );
            assert!(weights.size.is_some());
        }
    }

    #[test]
    fn whisper_models_answer_to_the_names_people_type() {
        let cases = [
            ("tiny.en", "openai/tiny.en"),
            ("whisper-tiny.en", "openai/tiny.en"),
            ("openai/tiny.en", "openai/tiny.en"),
            ("base", "openai/base"),
            ("large-v2", "openai/large-v2"),
            ("large", "openai/large-v3"),
            ("turbo", "openai/large-v3-turbo"),
            ("whisper-turbo", "openai/large-v3-turbo"),
            ("large-v3-turbo", "openai/large-v3-turbo"),
            ("whisper-tiny.en-hf", "openai/whisper-tiny.en"),
            ("openai/whisper-large", "openai/whisper-large"),
            ("distil-large-v3", "distil-whisper/distil-large-v3"),
        ];
        for (name, row) in cases {
            assert_eq!(whisper().get(name).unwrap().unwrap().name, row, "{name}");
        }
        assert_eq!(whisper().get("Tiny").unwrap(), None);
    }

    #[test]
    fn whisper_geometries_are_consistent() {
        #[derive(serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Geometry {
            n_mels: usize,
            n_vocab: usize,
            n_audio_ctx: usize,
            n_audio_state: usize,
            n_audio_head: usize,
            n_audio_layer: usize,
            n_text_ctx: usize,
            n_text_state: usize,
            n_text_head: usize,
            n_text_layer: usize,
            n_languages: usize,
            alignment_heads: Vec<(usize, usize)>,
        }
        for prefab in whisper().prefabs {
            let g: Geometry = prefab.geometry().unwrap();
            assert_eq!((g.n_audio_ctx, g.n_text_ctx), (1500, 448));
            assert_eq!(
                (g.n_audio_state, g.n_audio_head),
                (g.n_text_state, g.n_text_head)
            );
            assert_eq!(
                g.n_audio_state,
                64 * g.n_audio_head,
                "{}: heads are 64 wide",
                prefab.name
            );
            assert!(g.n_audio_layer >= g.n_text_layer);
            // 50257 tokens of text (50256 in GPT-2's vocabulary), 1501 timestamps, 8 other specials, the languages.
            let expected = if g.n_languages == 1 {
                51864
            } else {
                51766 + g.n_languages
            };
            assert_eq!(g.n_vocab, expected, "{}", prefab.name);
            assert_eq!(g.n_mels, if g.n_languages == 100 { 128 } else { 80 });
            assert!(!g.alignment_heads.is_empty());
            for (layer, head) in g.alignment_heads {
                assert!(
                    layer < g.n_text_layer && head < g.n_text_head,
                    "{}: [{layer}, {head}]",
                    prefab.name
                );
            }
        }
    }
}
