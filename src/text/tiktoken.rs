//! Byte-pair vocabularies in the form of a rank file: a token in base64 and its rank on each line.

use std::ops::Range;

use base64::Engine as _;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use base64::{alphabet, engine::DecodePaddingMode};
use hashbrown::HashTable;

/// The multilingual vocabulary's empty token is a lone `=`, so padding is not insisted on.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Tokens by id, and their ids by bytes. A token's id is its rank: the lower, the earlier it is merged.
#[derive(Debug)]
pub struct Vocabulary {
    bytes: Vec<u8>,
    /// Where each id's bytes lie in `bytes`.
    spans: Vec<Range<usize>>,
    /// Found by the bytes that they stand for: of equal ones the last.
    ids: HashTable<u32>,
}

/// A rank file has a line that is not a token and its rank.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("line {line} of the vocabulary is not a token in base64 and the rank {rank}")]
pub struct RankFileError {
    /// Counted from one.
    pub line: usize,
    /// The rank that was due: ranks count up from 0.
    pub rank: usize,
}

impl Vocabulary {
    /// Reads a rank file.
    ///
    /// # Errors
    /// [`RankFileError`] at the first line that is malformed or out of order.
    pub fn from_rank_file(text: &str) -> Result<Self, RankFileError> {
        let mut vocabulary = Self {
            bytes: Vec::new(),
            spans: Vec::new(),
            ids: HashTable::new(),
        };
        let lines = text
            .lines()
            .enumerate()
            .filter(|(_, line)| !line.is_empty());
        for (rank, (number, line)) in lines.enumerate() {
            let error = RankFileError {
                line: number + 1,
                rank,
            };
            let Some((token, stated)) = line.split_once(' ') else {
                return Err(error);
            };
            if stated.trim_end().parse() != Ok(rank) {
                return Err(error);
            }
            let start = vocabulary.bytes.len();
            let token = token.trim_end_matches('=');
            BASE64
                .decode_vec(token, &mut vocabulary.bytes)
                .map_err(|_| error)?;
            vocabulary.spans.push(start..vocabulary.bytes.len());
        }
        vocabulary.index();
        Ok(vocabulary)
    }

    /// Makes the ids be found.
    fn index(&mut self) {
        let Self { bytes, spans, ids } = self;
        *ids = HashTable::with_capacity(spans.len());
        for (id, span) in spans.iter().enumerate() {
            let token = &bytes[span.clone()];
            let is_equal = |&other: &u32| &bytes[spans[other as usize].clone()] == token;
            if let Some(found) = ids.find_mut(hash(token), is_equal) {
                *found = id as u32;
            } else {
                ids.insert_unique(hash(token), id as u32, |_| hash(token)); // there is room for all
            }
        }
    }

    fn token(&self, id: u32) -> &[u8] {
        &self.bytes[self.spans[id as usize].clone()]
    }

    /// The id of a token's bytes.
    fn id(&self, bytes: &[u8]) -> Option<u32> {
        let found = self.ids.find(hash(bytes), |&id| self.token(id) == bytes);
        found.copied()
    }

    /// How many tokens there are.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// The text of `ids`; ids that are not in the vocabulary have none, and bytes that are not UTF-8 become U+FFFD.
    pub fn decode(&self, ids: &[u32]) -> String {
        let mut bytes = Vec::new();
        for &id in ids {
            if let Some(span) = self.spans.get(id as usize) {
                bytes.extend_from_slice(&self.bytes[span.clone()]);
            }
        }
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// The ids of one piece of text, which the caller has cut as the vocabulary's pattern does: neighbours are merged,
    /// the pair of the lowest rank first. Bytes that are no token have no id.
    pub fn encode_piece(&self, piece: &str) -> Vec<u32> {
        let bytes = piece.as_bytes();
        let mut cuts: Vec<usize> = (0..=bytes.len()).collect();
        let rank = |from: usize, to: usize| self.id(&bytes[from..to]);
        loop {
            let pairs = cuts.windows(3).enumerate();
            let best = pairs
                .filter_map(|(i, cuts)| rank(cuts[0], cuts[2]).map(|rank| (rank, i)))
                .min();
            let Some((_, i)) = best else { break };
            cuts.remove(i + 1);
        }
        cuts.windows(2)
            .filter_map(|cuts| rank(cuts[0], cuts[1]))
            .collect()
    }
}

/// 64-bit FNV-1a: tokens are short, and nobody chooses them to collide.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `a b c ab abc` and the empty token.
    const RANKS: &str = "YQ== 0\nYg== 1\nYw== 2\nYWI= 3\nYWJj 4\n= 5\n";

    #[test]
    fn the_lowest_rank_is_merged_first() {
        let vocabulary = Vocabulary::from_rank_file(RANKS).unwrap();
        assert_eq!(vocabulary.len(), 6);
        assert_eq!(vocabulary.encode_piece("abcab"), [4, 3]);
        assert_eq!(vocabulary.encode_piece("cba"), [2, 1, 0]);
        assert_eq!(vocabulary.encode_piece(""), [0u32; 0]);
    }

    #[test]
    fn ids_become_their_text() {
        let vocabulary = Vocabulary::from_rank_file(RANKS).unwrap();
        assert_eq!(vocabulary.decode(&[4, 5, 99, 0]), "abca");
    }

    #[test]
    fn bytes_that_are_not_utf8_are_replaced() {
        let vocabulary = Vocabulary::from_rank_file("4pk= 0\nqg== 1\n").unwrap(); // E2 99, AA
        assert_eq!(vocabulary.decode(&[0, 1]), "♪");
        assert_eq!(vocabulary.decode(&[0]), "\u{fffd}");
    }

    #[test]
    fn a_bad_line_is_named() {
        for (text, line) in [
            ("YQ== 0\nYg== 2\n", 2),
            ("YQ==", 1),
            ("YQ== 0\n\n*** 1\n", 3),
            ("YQ== x", 1),
        ] {
            assert_eq!(
                Vocabulary::from_rank_file(text).unwrap_err().line,
                line,
                "{text:?}"
            );
        }
    }
}
