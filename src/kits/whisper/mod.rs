//! OpenAI's Whisper.

mod names;

pub use names::{Renamed, hf_name, openai_name, with_openai_names};
