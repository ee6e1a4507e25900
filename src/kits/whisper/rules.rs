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
        if log_sum_exp(timestamps) > f64::from(highest(text)) {
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
    let highest = highest(x);
    if highest == f32::NEG_INFINITY {
        return f64::NEG_INFINITY;
    }
    let sum: f64 = x.iter().map(|&x| f64::from((x - highest).exp())).sum();
    f64::from(highest) + sum.ln()
}

/// The highest value, of a vocabulary in a few microseconds; −∞ of none.
fn highest(x: &[f32]) -> f32 {
    let mut highest = [f32::NEG_INFINITY; 16];
    let (whole, rest) = x.as_chunks::<16>();
    for values in whole {
        for (highest, &value) in highest.iter_mut().zip(values) {
            *highest = if value > *highest { value } else { *highest };
        }
    }
    let all = highest.iter().chain(rest).copied();
    all.fold(f32::NEG_INFINITY, f32::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::Vocabulary;

    const N_VOCAB: usize = 51_864;

    fn tokenizer() -> Tokenizer {
        let ranks = include_str!("../../../assets/whisper/gpt2.tiktoken");
        Tokenizer::new(Vocabulary::from_rank_file(ranks).unwrap(), N_VOCAB, false).unwrap()
    }

    /// Which of `ids` may come after `written`, when text is likelier than timestamps.
    fn allowed(written: &[u32], ids: &[u32]) -> Vec<u32> {
        let tokenizer = tokenizer();
        let mut logits = vec![0.0; N_VOCAB];
        logits[..tokenizer.eot() as usize + 1].fill(20.0);
        Rules::new(&tokenizer).apply(&mut logits, written);
        ids.iter()
            .copied()
            .filter(|&id| logits[id as usize] > f32::NEG_INFINITY)
            .collect()
    }

    #[test]
    fn timestamps_come_in_pairs_and_do_not_decrease() {
        let tokenizer = tokenizer();
        let (eot, time) = (tokenizer.eot(), |steps: u32| {
            tokenizer.timestamp_begin() + steps
        });
        let (word, other) = (1000, 2000);
        let ids = [
            word,
            eot,
            time(0),
            time(10),
            time(11),
            time(50),
            time(51),
            time(1500),
        ];
        let cases: [(&str, Vec<u32>, Vec<u32>); 6] = [
            (
                "a text begins with a timestamp of at most one second",
                vec![],
                vec![time(0), time(10), time(11), time(50)],
            ),
            (
                "an opened segment has text",
                vec![time(10)],
                vec![word, eot],
            ),
            (
                "text may go on, or end later than it began",
                vec![time(10), word],
                vec![word, eot, time(11), time(50), time(51), time(1500)],
            ),
            (
                "what ends is followed by what begins, or by nothing",
                vec![time(0), word, time(10)],
                vec![eot, time(10), time(11), time(50), time(51), time(1500)],
            ),
            (
                "after a pair comes text",
                vec![time(0), word, time(10), time(10)],
                vec![word, eot],
            ),
            (
                "and that ends later than the pair",
                vec![time(0), word, time(10), time(10), other],
                vec![word, eot, time(11), time(50), time(51), time(1500)],
            ),
        ];
        for (rule, written, expected) in cases {
            assert_eq!(allowed(&written, &ids), expected, "{rule}");
        }
    }

    #[test]
    fn what_is_not_spoken_never_comes() {
        let tokenizer = tokenizer();
        let mut never = tokenizer.non_speech();
        never.extend([
            tokenizer.sot(),
            tokenizer.no_speech(),
            tokenizer.no_timestamps(),
            tokenizer.translate(),
        ]);
        assert_eq!(
            allowed(&[tokenizer.timestamp_begin(), 1000], &never),
            [0u32; 0]
        );
    }

    #[test]
    fn timestamps_that_are_likelier_together_than_any_text_win() {
        let tokenizer = tokenizer();
        let written = [tokenizer.timestamp_begin(), 1000];
        let mut logits = vec![0.0; N_VOCAB];
        logits[1000] = 5.0; // less than ln 1500 = 7.3, which the timestamps add up to
        Rules::new(&tokenizer).apply(&mut logits, &written);
        assert_eq!(logits[1000], f32::NEG_INFINITY);
        let mut logits = vec![0.0; N_VOCAB];
        logits[1000] = 8.0;
        Rules::new(&tokenizer).apply(&mut logits, &written);
        assert_eq!(logits[1000], 8.0);
    }

    #[test]
    fn log_sum_exp_survives_large_and_forbidden_values() {
        assert_eq!(log_sum_exp(&[f32::NEG_INFINITY; 3]), f64::NEG_INFINITY);
        assert!(
            (log_sum_exp(&[1000.0, 1000.0, f32::NEG_INFINITY]) - 1000.0 - 2f64.ln()).abs() < 1e-9
        );
        assert!(log_sum_exp(&[0.0, f32::NAN]).is_nan());
    }
}
