//! Model families: what each needs of its files, its forward pass, and the task built on it.

/// OpenAI's Whisper: speech to text, and speech in any language to English text.
pub mod whisper;
