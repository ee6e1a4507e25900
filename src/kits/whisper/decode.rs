//! One window: from the encoder's output to tokens.

use super::rules::{Rules, log_sum_exp};
use super::{Dims, Error, Tokenizer, Whisper};
use crate::compute::Backend;

/// What is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Task {
    /// The words that are spoken.
    #[default]
    Transcribe,
    /// Their translation into English.
    Translate,
}

/// How the next token is chosen.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sampling {
    /// 0 takes the likeliest token; above it, tokens are drawn from `softmax(logits / temperature)`.
    pub(super) temperature: f32,
    /// Texts drawn at a temperature above 0, of which the likeliest is kept.
    pub(super) best_of: usize,
}

/// What one window says.
#[derive(Clone, Debug)]
pub(super) struct Decoded {
    /// Text tokens and timestamps, without the end of text.
    pub(super) tokens: Vec<u32>,
    pub(super) temperature: f32,
    /// Mean log-probability of the tokens and the end of text.
    pub(super) avg_logprob: f64,
    /// Probability that nothing is spoken.
    pub(super) no_speech_prob: f64,
    /// Bytes of the text over those of its zlib compression.
    pub(super) compression_ratio: f64,
}

/// One text being written.
#[derive(Clone, Default)]
struct Candidate {
    tokens: Vec<u32>,
    sum_logprob: f64,
    ended: bool,
}

/// Decodes windows with one model.
pub(super) struct WindowDecoder<'a, B: Backend> {
    pub(super) b: &'a B,
    pub(super) model: &'a Whisper<B>,
    pub(super) tokenizer: &'a Tokenizer,
    pub(super) rules: Rules<'a>,
}

impl<B: Backend> WindowDecoder<'_, B> {
    /// Writes the text of one window, after `previous` text and the tokens that begin a transcript.
    pub(super) fn decode(
        &self,
        cross_kv: &[B::KvCache],
        previous: &[u32],
        sot_sequence: &[u32],
        sampling: Sampling,
        rng: &mut fastrand::Rng,
    ) -> Result<Decoded, Error> {
        let &Dims {
            n_text_ctx,
            n_vocab,
            ..
        } = self.model.dims();
        let eot = self.tokenizer.eot();
        let prompt = self.prompt(previous, sot_sequence);
        let sot_index = prompt.len() - sot_sequence.len();
        let batch = if sampling.temperature > 0.0 {
            sampling.best_of
        } else {
            1
        };

        let mut state = self.model.text_state(self.b, batch)?;
        let mut texts = vec![Candidate::default(); batch];
        let mut no_speech_prob = 0.0;
        for step in 0..n_text_ctx / 2 {
            let (tokens, first) = if step == 0 {
                (prompt.repeat(batch), sot_index)
            } else {
                (
                    texts
                        .iter()
                        .map(|text| text.tokens.last().copied().unwrap_or(eot))
                        .collect(),
                    0,
                )
            };
            let logits = self
                .model
                .decode(self.b, &tokens, cross_kv, &mut state, first)?;
            let mut logits = self.b.download(&logits)?;
            if step == 0 {
                let at_sot = &logits[..n_vocab];
                no_speech_prob = (f64::from(at_sot[self.tokenizer.no_speech() as usize])
                    - log_sum_exp(at_sot))
                .exp();
            }
            let per_text = logits.len() / batch;
            for (text, logits) in texts.iter_mut().zip(logits.chunks_exact_mut(per_text)) {
                let logits = &mut logits[per_text - n_vocab..];
                self.rules.apply(logits, &text.tokens);
                let ranked = self.b.upload(&[1, n_vocab], logits)?;
                let total = self.b.log_sum_exp(&ranked)?[0];
                let likeliest = self.b.argmax(&ranked)?[0];
                let token = choose(logits, likeliest, sampling.temperature, rng);
                let logprob = f64::from(logits[token as usize]) - total;
                text.append(token, logprob, eot)?;
            }
            if texts.iter().all(|text| text.ended) || prompt.len() + step + 1 > n_text_ctx {
                break;
            }
        }
        let best = texts
            .into_iter()
            .map(|text| text.finished(eot))
            .max_by(|a, b| a.rank().total_cmp(&b.rank()));
        let best = best.unwrap_or_default();
        let text = self.tokenizer.decode(&best.tokens).trim().to_owned();
        Ok(Decoded {
            avg_logprob: best.sum_logprob / (best.tokens.len() + 1) as f64,
            compression_ratio: compression_ratio(&text),
            tokens: best.tokens,
            temperature: sampling.temperature,
            no_speech_prob,
        })
    }

    /// The previous text's end, as much as fits half the context, then the tokens that begin a transcript.
    fn prompt(&self, previous: &[u32], sot_sequence: &[u32]) -> Vec<u32> {
        if previous.is_empty() {
            return sot_sequence.to_vec();
        }
        let kept = previous.len().min(self.model.dims().n_text_ctx / 2 - 1);
        let previous = &previous[previous.len() - kept..];
        [&[self.tokenizer.sot_prev()], previous, sot_sequence].concat()
    }

    /// The probability of each language, in the order of their tokens, from the audio features alone.
    pub(super) fn language_probabilities(
        &self,
        cross_kv: &[B::KvCache],
    ) -> Result<Vec<f64>, Error> {
        let mut state = self.model.text_state(self.b, 1)?;
        let logits = self
            .model
            .decode(self.b, &[self.tokenizer.sot()], cross_kv, &mut state, 0)?;
        let logits = self.b.download(&logits)?;
        let languages = self.tokenizer.languages();
        let logits = &logits[languages.start as usize..languages.end as usize];
        let total = log_sum_exp(logits);
        Ok(logits
            .iter()
            .map(|&logit| (f64::from(logit) - total).exp())
            .collect())
    }
}

impl Candidate {
    fn append(&mut self, token: u32, logprob: f64, eot: u32) -> Result<(), Error> {
        if self.ended {
            self.tokens.push(eot);
            return Ok(());
        }
        if !logprob.is_finite() {
            return Err(Error::NotANumber);
        }
        self.sum_logprob += logprob;
        self.tokens.push(token);
        self.ended = token == eot;
        Ok(())
    }

    fn finished(mut self, eot: u32) -> Self {
        if let Some(end) = self.tokens.iter().position(|&token| token == eot) {
            self.tokens.truncate(end);
        }
        self
    }

    /// Mean log-probability; an empty text comes last.
    fn rank(&self) -> f64 {
        if self.tokens.is_empty() {
            f64::NEG_INFINITY
        } else {
            self.sum_logprob / self.tokens.len() as f64
        }
    }
}

/// The `likeliest` token, or one drawn at `temperature`.
fn choose(logits: &[f32], likeliest: u32, temperature: f32, rng: &mut fastrand::Rng) -> u32 {
    if temperature == 0.0 {
        return likeliest;
    }
    let highest = logits[likeliest as usize];
    let weights: Vec<f32> = logits
        .iter()
        .map(|logit| ((logit - highest) / temperature).exp())
        .collect();
    let mut rest = rng.f64() * weights.iter().copied().map(f64::from).sum::<f64>();
    for (id, &weight) in weights.iter().enumerate() {
        rest -= f64::from(weight);
        if rest < 0.0 {
            return id as u32;
        }
    }
    likeliest
}

/// Bytes of `text` over those of its zlib compression: above 2.4, the text repeats itself.
fn compression_ratio(text: &str) -> f64 {
    use std::io::Write as _;

    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
    let compressed = encoder
        .write_all(text.as_bytes())
        .and_then(|()| encoder.finish());
    compressed.map_or(0.0, |compressed| {
        text.len() as f64 / compressed.len() as f64
    })
}
