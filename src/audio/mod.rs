//! Any audio becomes 16 kHz mono samples, and those become log-mel features.
//!
//! ```text
//! path, stdin ─▶ Source ─▶ Media ─▶ packets ─▶ Samples ─▶ LogMel ─▶ Features ─▶ windows
//!                seekable  demuxer             16 kHz mono  log power            model input
//! ```
//!
//! What a file is follows from its content, never from its name. Everything streams: neither samples nor features
//! of a long recording are held in memory as a whole.

mod clock;
mod cut;
mod damage;
mod decode;
mod error;
mod filters;
mod media;
/// Samples become the log-mel features that Whisper reads.
pub mod mel;
mod mp4;
mod mpeg;
mod ogg;
mod opus;
mod resample;
mod sniff;
mod source;
mod spill;
mod wav;

use std::ops::RangeInclusive;

pub use damage::Damage;
pub use decode::{Samples, open};
pub use error::Error;
pub use mel::{Features, LogMel};
pub use source::Input;

/// Rate of all samples behind [`open`], in Hz.
pub const SAMPLE_RATE: u32 = 16_000;

/// Rates of inputs that are accepted, in Hz.
pub const RATES_HZ: RangeInclusive<u32> = 1_000..=768_000;

#[cfg(test)]
mod tests;
