//! A whole recording: windows, the text that each passes to the next, and segments with their times.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use super::decode::{Decoded, Sampling, Task, WindowDecoder};
use super::rules::Rules;
use super::{Dims, Error, Package, Segment, Tokenizer, Transcript, Whisper, language};
use crate::audio::Features;
use crate::audio::SAMPLE_RATE;
use crate::audio::mel::{HOP_SAMPLES, N_FRAMES};
use crate::compute::Backend;
use crate::nn::Preparation;

/// Above this temperature a window's text does not condition the next.
const MAX_CONDITIONING_TEMPERATURE: f32 = 0.5;

/// What to write, and when a window's text is tried again at a higher temperature. The defaults are the original's.
#[derive(Clone, Debug)]
pub struct Options {
    /// Code of the language that is spoken; `None` detects it in the first 30 seconds.
    pub language: Option<String>,
    /// Transcribe or translate.
    pub task: Task,
    /// Tried in order until a window's text is neither repetitive nor improbable; the last one's text stands.
    pub temperatures: Vec<f32>,
    /// Texts drawn at a temperature above 0, of which the likeliest is kept.
    pub best_of: usize,
    /// A text that zlib compresses better than this is repetitive.
    pub compression_ratio_threshold: f64,
    /// A text whose mean log-probability is lower is improbable.
    pub logprob_threshold: f64,
    /// An improbable text is silence when the probability of no speech is higher.
    pub no_speech_threshold: f64,
    /// Whether a window's text conditions the next.
    pub condition_on_previous_text: bool,
    /// Where the draws at temperatures above 0 begin, for each recording anew.
    pub seed: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            language: None,
            task: Task::Transcribe,
            temperatures: vec![0.0, 0.2, 0.4, 0.6, 0.8, 1.0],
            best_of: 5,
            compression_ratio_threshold: 2.4,
            logprob_threshold: -1.0,
            no_speech_threshold: 0.6,
            condition_on_previous_text: true,
            seed: 0,
        }
    }
}

/// Told of each segment as soon as it is final; may end the work early.
pub type OnSegment<'a> = &'a mut (dyn FnMut(&Segment) -> ControlFlow<()> + Send);

/// What a transcription took.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Effort {
    /// Time in the encoder, the cross-attention's keys and values included.
    pub encode: Duration,
    /// Time in the decoder.
    pub decode: Duration,
}

/// A model, its tokens and its backend, ready for recordings.
pub struct Transcriber<B: Backend> {
    b: B,
    model: Whisper<B>,
    tokenizer: Tokenizer,
}

impl<B: Backend> Transcriber<B> {
    /// Loads a model onto a backend.
    ///
    /// # Errors
    /// Vocabulary, geometry and checkpoint do not fit one another.
    pub fn load(b: B, package: Package, preparation: Preparation<'_>) -> Result<Self, Error> {
        let Package {
            dims,
            checkpoint,
            vocabulary,
            unknown_tensors,
        } = package;
        if dims.n_audio_ctx * FRAMES_PER_POSITION != N_FRAMES {
            let expected = N_FRAMES / FRAMES_PER_POSITION;
            return Err(Error::config(
                "n_audio_ctx",
                format!("is {}, expected {expected}", dims.n_audio_ctx),
            ));
        }
        let tokenizer = Tokenizer::new(vocabulary, dims.n_vocab, dims.is_multilingual())?;
        let model = Whisper::load(&b, &*checkpoint, dims, unknown_tensors, preparation)?;
        Ok(Self {
            b,
            model,
            tokenizer,
        })
    }

    /// The backend.
    pub fn backend(&self) -> &B {
        &self.b
    }

    /// The geometry.
    pub fn dims(&self) -> &Dims {
        self.model.dims()
    }

    /// The tokens.
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    /// Transcribes one recording.
    ///
    /// # Errors
    /// The model does not know the language, or the backend or the store of the features fails.
    pub fn transcribe(
        &self,
        features: &Features,
        options: &Options,
        on_segment: OnSegment<'_>,
    ) -> Result<(Transcript, Effort), Error> {
        let mut recording = Recording {
            transcriber: self,
            decoder: WindowDecoder {
                b: &self.b,
                model: &self.model,
                tokenizer: &self.tokenizer,
                rules: Rules::new(&self.tokenizer),
            },
            features,
            options,
            rng: fastrand::Rng::with_seed(options.seed),
            effort: Effort::default(),
        };
        let transcript = recording.transcribe(on_segment)?;
        Ok((transcript, recording.effort))
    }
}

/// A language, how likely it is, and keys and values of the window that says so.
type Heard<B> = (String, Option<f64>, Option<Vec<<B as Backend>::KvCache>>);

/// The work on one recording.
struct Recording<'a, B: Backend> {
    transcriber: &'a Transcriber<B>,
    decoder: WindowDecoder<'a, B>,
    features: &'a Features,
    options: &'a Options,
    rng: fastrand::Rng,
    effort: Effort,
}

impl<B: Backend> Recording<'_, B> {
    fn transcribe(&mut self, on_segment: OnSegment<'_>) -> Result<Transcript, Error> {
        let content_frames = self.features.content_frames();
        let mut transcript = Transcript {
            duration_secs: secs(content_frames),
            ..Transcript::default()
        };
        if content_frames == 0 {
            return Ok(transcript);
        }
        let (code, probability, mut heard) = self.language()?;
        let sot_sequence = self
            .transcriber
            .tokenizer
            .sot_sequence(&code, self.options.task)?;
        (transcript.language, transcript.language_probability) = (Some(code), probability);

        let mut previous = Vec::new();
        let mut seek = 0;
        while seek < content_frames {
            let size = N_FRAMES.min(content_frames - seek);
            let cross_kv = match heard.take() {
                // A shorter window is filled up with zeros, not with the features of silence.
                Some(heard) if size == N_FRAMES => heard,
                _ => self.encode(seek, size)?,
            };
            let decoded = self.decode_with_fallback(&cross_kv, &previous, &sot_sequence)?;
            if self.is_silence(&decoded) {
                seek += size;
                continue;
            }
            let (segments, advance) = cut(&decoded, &self.transcriber.tokenizer, seek, size);
            for mut segment in segments {
                segment.id = transcript.segments.len();
                previous.extend_from_slice(&segment.tokens);
                transcript.segments.push(segment);
                if on_segment(&transcript.segments[transcript.segments.len() - 1]).is_break() {
                    return Ok(transcript);
                }
            }
            if decoded.temperature > MAX_CONDITIONING_TEMPERATURE
                || !self.options.condition_on_previous_text
            {
                previous.clear();
            }
            seek += advance;
        }
        Ok(transcript)
    }

    /// The language asked for, or the likeliest, its probability, and what the cross-attention reads of the first window.
    fn language(&mut self) -> Result<Heard<B>, Error> {
        let tokenizer = &self.transcriber.tokenizer;
        if let Some(code) = &self.options.language {
            return Ok((code.clone(), None, None));
        }
        if !tokenizer.is_multilingual() {
            return Ok((language::ENGLISH.to_owned(), None, None));
        }
        let cross_kv = self.encode(0, N_FRAMES)?; // past the content, the features of silence
        let started = Instant::now();
        let probabilities = self.decoder.language_probabilities(&cross_kv)?;
        self.effort.decode += started.elapsed();
        let ranked = probabilities
            .iter()
            .zip(language::ALL)
            .max_by(|(a, _), (b, _)| a.total_cmp(b));
        let (probability, (code, _)) = ranked.unwrap_or((&1.0, language::ALL[0]));
        Ok((code.to_owned(), Some(*probability), Some(cross_kv)))
    }

    /// Encodes the window at frame `seek`, of which `size` frames are features and the rest is padding.
    fn encode(&mut self, seek: usize, size: usize) -> Result<Vec<B::KvCache>, Error> {
        let started = Instant::now();
        let (b, model) = (self.decoder.b, self.decoder.model);
        let shape = [1, N_FRAMES, self.features.n_mels()];
        let mut mel = vec![0.0; shape.iter().product()];
        self.features
            .window(seek, size, &mut mel)
            .map_err(Error::Features)?;
        let xa = model.encode(b, &b.upload(&shape, &mel)?)?;
        let cross_kv = model.cross_kv(b, &xa)?;
        self.effort.encode += started.elapsed();
        Ok(cross_kv)
    }

    /// Decodes one window, again at the next temperature while the text is repetitive or improbable.
    fn decode_with_fallback(
        &mut self,
        cross_kv: &[B::KvCache],
        previous: &[u32],
        sot_sequence: &[u32],
    ) -> Result<Decoded, Error> {
        let started = Instant::now();
        let mut temperatures = self.options.temperatures.iter().copied().peekable();
        loop {
            let temperature = temperatures.next().unwrap_or(0.0);
            let sampling = Sampling {
                temperature,
                best_of: self.options.best_of,
            };
            let decoded =
                self.decoder
                    .decode(cross_kv, previous, sot_sequence, sampling, &mut self.rng)?;
            if self.is_good(&decoded) || temperatures.peek().is_none() {
                self.effort.decode += started.elapsed();
                return Ok(decoded);
            }
        }
    }

    fn is_good(&self, decoded: &Decoded) -> bool {
        let improbable = decoded.avg_logprob < self.options.logprob_threshold;
        let repetitive = decoded.compression_ratio > self.options.compression_ratio_threshold;
        let silent = decoded.no_speech_prob > self.options.no_speech_threshold && improbable;
        silent || !(improbable || repetitive)
    }

    /// Whether the window is passed over: nothing is said, and what was written is not convincing either.
    fn is_silence(&self, decoded: &Decoded) -> bool {
        decoded.no_speech_prob > self.options.no_speech_threshold
            && decoded.avg_logprob <= self.options.logprob_threshold
    }
}

/// Frames of features for each position of the encoder, whose second convolution has stride 2.
const FRAMES_PER_POSITION: usize = 2;

/// Seconds of so many frames.
fn secs(frames: usize) -> f64 {
    (frames * HOP_SAMPLES) as f64 / f64::from(SAMPLE_RATE)
}

/// Cuts a window's tokens into segments where two timestamps meet, and gives the frames to advance by: to the last of
/// them, or by the whole window when nothing was begun after it.
fn cut(
    decoded: &Decoded,
    tokenizer: &Tokenizer,
    seek: usize,
    size: usize,
) -> (Vec<Segment>, usize) {
    let tokens = &decoded.tokens[..];
    let timestamp_begin = tokenizer.timestamp_begin();
    let is_timestamp = |token: u32| token >= timestamp_begin;
    let position = |token: u32| token.saturating_sub(timestamp_begin) as usize;
    let offset = secs(seek);
    let precision = secs(FRAMES_PER_POSITION);
    let segment = |tokens: &[u32], start: f64, end: f64| {
        let text_tokens: Vec<u32> = tokens
            .iter()
            .copied()
            .filter(|&token| token < tokenizer.eot())
            .collect();
        let text = tokenizer.decode(&text_tokens);
        let is_void = start == end || text.trim().is_empty();
        Segment {
            id: 0,
            seek,
            start,
            end,
            text: if is_void { String::new() } else { text },
            tokens: if is_void { Vec::new() } else { tokens.to_vec() },
            temperature: decoded.temperature,
            avg_logprob: decoded.avg_logprob,
            compression_ratio: decoded.compression_ratio,
            no_speech_prob: decoded.no_speech_prob,
        }
    };

    let mut cuts: Vec<usize> = (1..tokens.len())
        .filter(|&i| is_timestamp(tokens[i - 1]) && is_timestamp(tokens[i]))
        .collect();
    if cuts.is_empty() {
        let last = tokens
            .iter()
            .rfind(|&&token| is_timestamp(token))
            .map(|&token| position(token));
        let duration = last
            .filter(|&position| position > 0)
            .map_or(secs(size), |last| last as f64 * precision);
        return (vec![segment(tokens, offset, offset + duration)], size);
    }
    let ends_with_one =
        matches!(tokens, [.., text, time] if !is_timestamp(*text) && is_timestamp(*time));
    if ends_with_one {
        cuts.push(tokens.len());
    }
    let mut segments = Vec::with_capacity(cuts.len());
    let mut from = 0;
    for to in cuts {
        let slice = &tokens[from..to];
        let time = |token: u32| offset + position(token) as f64 * precision;
        segments.push(segment(slice, time(slice[0]), time(slice[slice.len() - 1])));
        from = to;
    }
    let advance = if ends_with_one {
        size
    } else {
        position(tokens[from - 1]) * FRAMES_PER_POSITION
    };
    (segments, advance)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::Vocabulary;

    fn tokenizer() -> Tokenizer {
        let ranks = include_str!("../../../assets/whisper/gpt2.tiktoken");
        Tokenizer::new(Vocabulary::from_rank_file(ranks).unwrap(), 51_864, false).unwrap()
    }

    /// Start, end and token count of each segment, and the frames to advance by.
    fn cut_at(tokens: &[u32], seek: usize, size: usize) -> (Vec<(f64, f64, usize)>, usize) {
        let decoded = Decoded {
            tokens: tokens.to_vec(),
            temperature: 0.0,
            avg_logprob: -0.5,
            no_speech_prob: 0.0,
            compression_ratio: 1.0,
        };
        let (segments, advance) = cut(&decoded, &tokenizer(), seek, size);
        (
            segments
                .iter()
                .map(|segment| (segment.start, segment.end, segment.tokens.len()))
                .collect(),
            advance,
        )
    }

    #[test]
    fn a_window_is_cut_where_two_timestamps_meet() {
        let time = |steps: u32| tokenizer().timestamp_begin() + steps;
        let (word, other) = (1000, 2000);
        struct Case {
            what: &'static str,
            tokens: Vec<u32>,
            segments: Vec<(f64, f64, usize)>,
            advance: usize,
        }
        let cases = [
            Case {
                what: "the text after the last pair is left to the next window",
                tokens: vec![time(0), word, time(100), time(100), other],
                segments: vec![(10.0, 12.0, 3)],
                advance: 200,
            },
            Case {
                what: "a lone timestamp at the end closes the window",
                tokens: vec![time(0), word, time(100), time(150), other, time(200)],
                segments: vec![(10.0, 12.0, 3), (13.0, 14.0, 3)],
                advance: 2500,
            },
            Case {
                what: "without a pair the whole window is one segment, up to the last timestamp",
                tokens: vec![time(0), word, time(100)],
                segments: vec![(10.0, 12.0, 3)],
                advance: 2500,
            },
            Case {
                what: "without any end the segment lasts as long as the window",
                tokens: vec![time(0), word, other],
                segments: vec![(10.0, 35.0, 3)],
                advance: 2500,
            },
            Case {
                what: "a segment of no length has no tokens",
                tokens: vec![
                    time(50),
                    word,
                    time(50),
                    time(50),
                    other,
                    time(60),
                    time(60),
                ],
                segments: vec![(11.0, 11.0, 0), (11.0, 11.2, 3)],
                advance: 120,
            },
            Case {
                what: "nothing said",
                tokens: vec![],
                segments: vec![(10.0, 35.0, 0)],
                advance: 2500,
            },
        ];
        for Case {
            what,
            tokens,
            segments,
            advance,
        } in cases
        {
            let (found, advanced) = cut_at(&tokens, 1000, 2500);
            assert_eq!((found, advanced), (segments, advance), "{what}");
        }
    }
}
