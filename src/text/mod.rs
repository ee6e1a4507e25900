//! Token ids become text and back.

mod tiktoken;

pub use tiktoken::{RankFileError, Vocabulary};
