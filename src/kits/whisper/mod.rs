//! OpenAI's Whisper.

mod transcript;

pub use transcript::{Segment, Transcript};
