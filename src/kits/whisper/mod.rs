//! OpenAI's Whisper.

mod names;

pub use names::{hf_name, openai_name, openai_names};
