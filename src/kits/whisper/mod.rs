//! OpenAI's Whisper: speech in a hundred languages to text ("Robust Speech Recognition via Large-Scale Weak
//! Supervision", Radford et al. 2022).
//!
//! An encoder reads 30 seconds of log-mel frames: two convolutions, the second of stride 2, fixed sinusoids for
//! positions, then pre-norm blocks of attention and MLP. A decoder writes tokens: learned positions, pre-norm blocks of
//! causal attention, attention to the encoder's output, and MLP; its head is the token table itself. What the decoder
//! may write next follows rules over text, timestamps and silence; the text of one window conditions the next.
//!
//! Traps: keys have no bias while queries, values and outputs have one; GELU is the exact one; the floor of the log-mel
//! features is global, 8 below the maximum of the whole file, and a short window is padded with 0.0 after that floor;
//! the compression ratio is that of the text, not of the token bytes; `avg_logprob` divides by one more than the tokens.

mod config;
mod decode;
mod error;
pub mod language;
mod model;
mod names;
mod outline;
mod package;
mod rules;
mod tokenizer;
mod transcribe;
mod transcript;

pub use config::Dims;
pub use decode::Task;
pub use error::Error;
pub use model::Whisper;
pub use names::{is_companion, openai_name, tensors, with_openai_names};
pub use outline::outline;
pub use package::{Loading, Package, catalog, factory, recipe};
pub use tokenizer::Tokenizer;
pub use transcribe::{Effort, OnSegment, Options, Transcriber};
pub use transcript::{Segment, Transcript};
