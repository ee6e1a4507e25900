//! Model families, a folder each.

pub mod whisper;
