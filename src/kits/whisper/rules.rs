//! Which token may come next.

use super::Tokenizer;

/// The first timestamp is at most one second: 50 steps of 0.02 s.
const MAX_INITIAL_TIMESTAMP: u32 = 50;

/// The rules of one window's decoding, in the order in which the original applies them.
pub(super) struct Rules<'a> {
    tokenizer: &'a Tokenizer,
    /// Tokens that never come.
    suppressed: Vec<u32>,
    /// Tokens that never come first.
    suppressed_first: Vec<u32>,
}

impl<'a> Rules<'a> {
    pub(super) fn new(tokenizer: &'a Tokenizer) -> Self {
        let mut suppressed = tokenizer.non_speech();
        suppressed.extend([
            tokenizer.transcribe(),
            tokenizer.translate(),
            tokenizer.sot(),
            tokenizer.sot_prev(),
            tokenizer.sot_lm(),
            tokenizer.no_speech(), // its probability is read before the rules
            tokenizer.no_timestamps(),
        ]);
        let mut suppressed_first = tokenizer.blank();
        suppressed_first.push(tokenizer.eot());
        Self {
            tokenizer,
            suppressed,
            suppressed_first,
        }
    }

    /// Sets the logits of forbidden tokens to −∞. `written` are the tokens after the prompt.
    pub(super) fn apply(&self, logits: &mut [f32], written: &[u32]) {
        let (eot, timestamp_begin) = (self.tokenizer.eot(), self.tokenizer.timestamp_begin());
        if written.is_empty() {
            self.suppressed_first
                .iter()
                .for_each(|&id| forbid(logits, id, id + 1));
        }
        self.suppressed
            .iter()
            .for_each(|&id| forbid(logits, id, id + 1));

        // Timestamps come in pairs, one that ends a segment and one that begins the next, except right before the end.
        let is_timestamp = |&id: &u32| id >= timestamp_begin;
        let last_is = written.last().is_some_and(is_timestamp);
        let opened = last_is && (written.len() < 2 || is_timestamp(&written[written.len() - 2]));
        if opened {
            forbid(logits, timestamp_begin, u32::MAX);
        } else if last_is {
            forbid(logits, 0, eot);
        }
        // They do not decrease, and a segment is longer than nothing.
        if let Some(&last) = written.iter().rfind(|id| is_timestamp(id)) {
            let earliest = if last_is && !opened { last } else { last + 1 };
            forbid(logits, timestamp_begin, earliest);
        }
        if written.is_empty() {
            forbid(logits, 0, timestamp_begin);
            forbid(
                logits,
                timestamp_begin + MAX_INITIAL_TIMESTAMP + 1,
                u32::MAX,
            );
        }
        // A timestamp comes when all of them together are likelier than any one piece of text. Log-probabilities share
        // one normaliser, so the logits can be compared themselves.
        let (text, timestamps) = logits.split_at(timestamp_begin as usize);
        let likeliest_text = text.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        if log_sum_exp(timestamps) > f64::from(likeliest_text) {
            forbid(logits, 0, timestamp_begin);
        }
    }
}

fn forbid(logits: &mut [f32], from: u32, to: u32) {
    let to = (to as usize).min(logits.len());
    logits[(from as usize).min(to)..to].fill(f32::NEG_INFINITY);
}

/// `log Σ exp(xᵢ)`; −∞ when every `x` is.
pub(super) fn log_sum_exp(x: &[f32]) -> f64 {
    let highest = x.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    if highest == f32::NEG_INFINITY {
        return f64::NEG_INFINITY;
    }
    let sum: f64 = x.iter().map(|&x| f64::from((x - highest).exp())).sum();
    f64::from(highest) + sum.ln()
}
