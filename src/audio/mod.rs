//! Any audio becomes 16 kHz mono samples, and those become log-mel features.
//!
//! ```text
//! path, stdin ─▶ Source ─▶ Media ─▶ packets ─▶ Samples ─▶ LogMel ─▶ Features ─▶ windows
//!                seekable  demuxer             16 kHz mono  log power            model input
//! ```
//!
//! What a file is follows from its content, never from its name. Everything streams: neither samples nor features
//! of a long recording are held in memory as a whole.

mod decode;
mod error;
mod filters;
mod media;
/// Samples become the log-mel features that Whisper reads.
pub mod mel;
mod mp4;
mod mpeg;
mod opus;
mod resample;
mod sniff;
mod source;
mod spill;
mod wav;

use std::ops::RangeInclusive;

pub use decode::{Damage, Samples, open};
pub use error::Error;
pub use mel::{Features, LogMel};
pub use source::Input;

/// Rate of all samples behind [`open`], in Hz.
pub const SAMPLE_RATE: u32 = 16_000;

/// Rates of inputs that are accepted, in Hz.
pub const RATES_HZ: RangeInclusive<u32> = 1_000..=768_000;

#[cfg(test)]
mod tests {
    #[test]
    #[ignore = "prints"]
    fn dump() {
        let out = std::env::var("OUT").unwrap();
        for path in std::env::var("IN").unwrap().split(':') {
            let t = std::time::Instant::now();
            let mut all = Vec::new();
            let r = (|| {
                let mut s = super::open(&super::Input::from_arg(path))?;
                while let Some(b) = s.next_block()? {
                    all.extend_from_slice(b);
                }
                Ok::<_, super::Error>((s.container(), s.damage(), s.declared_samples()))
            })();
            let el = t.elapsed().as_secs_f64();
            let name = std::path::Path::new(path)
                .file_name()
                .unwrap()
                .to_str()
                .unwrap();
            match r {
                Ok((c, d, n)) => println!(
                    "{name}: {c} {} samples (declared {n:?}) {d} {:.0}x",
                    all.len(),
                    all.len() as f64 / 16e3 / el
                ),
                Err(e) => println!("{name}: ERROR {e}"),
            }
            std::fs::write(
                format!("{out}/{name}.f32"),
                bytemuck::cast_slice::<f32, u8>(&all),
            )
            .unwrap();
        }
    }
}
