//! RIFF, RF64 and BW64 wave files, as a view that a plain RIFF demuxer can read.
//!
//! Headers in the wild are wrong in a handful of ways: 64-bit sizes beside the 32-bit ones, sizes of 0 or all ones
//! from programs that wrote into a pipe, an outer size that was never filled in, a cut-off end. The walk here finds
//! the format and the stretch of samples, and [`Wave::view`] puts a correct header before that stretch.

use std::io;
use std::ops::Range;

use super::source::{Source, View};

/// Longest `fmt ` chunk that is believed; the longest in use, for ADPCM, is 50 bytes.
const MAX_FORMAT_BYTES: u32 = 4096;
/// Chunks looked at before the samples must have been found.
const MAX_CHUNKS: usize = 4096;
/// A declared size from here on says "unknown": programs that write into a pipe put the largest they can.
const UNKNOWN_BYTES: u64 = 0x7fff_0000;

/// A wave file's format and where its samples lie.
pub(super) struct Wave {
    format: Vec<u8>,
    data: Range<u64>,
    /// Bytes of samples that the header promises, where it knows.
    declared_bytes: Option<u64>,
    block_bytes: u64,
    bytes_a_sec: u64,
}

impl Wave {
    /// Finds the samples of a wave file; `None` where `source` is something else or has no samples.
    pub(super) fn parse(source: &Source) -> io::Result<Option<Self>> {
        let mut head = [0; 12];
        let is_wave = source.read_at(0, &mut head)? == head.len()
            && matches!(&head[..4], b"RIFF" | b"RF64" | b"BW64")
            && &head[8..] == b"WAVE";
        if !is_wave {
            return Ok(None);
        }
        let mut long_data_bytes = None;
        let mut format = Vec::new();
        let mut pos = 12u64;
        for _ in 0..MAX_CHUNKS {
            let mut chunk = [0; 8];
            if source.read_at(pos, &mut chunk)? < chunk.len() {
                break;
            }
            let size = u32_at(&chunk, 4);
            let body = pos + 8;
            match &chunk[..4] {
                b"ds64" => {
                    let mut sizes = [0; 16];
                    if source.read_at(body, &mut sizes)? == sizes.len() {
                        long_data_bytes = Some(
                            u64::from(u32_at(&sizes, 8)) | (u64::from(u32_at(&sizes, 12)) << 32),
                        );
                    }
                }
                b"fmt " if size <= MAX_FORMAT_BYTES => {
                    format.resize(size as usize, 0);
                    let n = source.read_at(body, &mut format)?;
                    format.truncate(n);
                }
                b"data" => return Self::with_data(source, format, size, long_data_bytes, body),
                _ => {}
            }
            // Chunks are padded to even lengths.
            pos = body + u64::from(size) + u64::from(size & 1);
        }
        Ok(None)
    }

    fn with_data(
        source: &Source,
        format: Vec<u8>,
        size: u32,
        long_data_bytes: Option<u64>,
        start: u64,
    ) -> io::Result<Option<Self>> {
        if format.len() < 16 {
            return Ok(None);
        }
        let there = source.len() - start.min(source.len());
        let declared = match (size, long_data_bytes) {
            (u32::MAX, Some(long)) => long,
            _ => u64::from(size),
        };
        // A size of 0 is either the truth or a header that was never completed: what follows the truth is the end of
        // the file, or another chunk.
        let unfinished = declared == 0 && there > 0 && !looks_like_chunk(source, start)?;
        let unknown = unfinished
            || (declared > there && declared >= UNKNOWN_BYTES && long_data_bytes.is_none());
        let block_bytes = u64::from(u16::from_le_bytes([format[12], format[13]])).max(1);
        let bytes_a_sec = u64::from(u32_at(&format, 8));
        let len = if unknown { there } else { declared.min(there) };
        let data = start..start + len / block_bytes * block_bytes;
        let declared_bytes = (!unknown).then_some(declared);
        Ok(Some(Self {
            format,
            data,
            declared_bytes,
            block_bytes,
            bytes_a_sec,
        }))
    }

    /// The file as a demuxer should see it.
    pub(super) fn view(&self, source: Source) -> View {
        let len = u32::try_from(self.data.end - self.data.start).unwrap_or(u32::MAX);
        let mut header = Vec::with_capacity(28 + self.format.len() + 1);
        header.extend_from_slice(b"RIFF\xff\xff\xff\xffWAVEfmt ");
        header.extend_from_slice(&(self.format.len() as u32).to_le_bytes());
        header.extend_from_slice(&self.format);
        if self.format.len() % 2 == 1 {
            header.push(0);
        }
        header.extend_from_slice(b"data");
        header.extend_from_slice(&len.to_le_bytes());
        View::new(source, header, self.data.clone())
    }

    /// Whether the file holds no samples, and says so.
    pub(super) fn is_empty(&self) -> bool {
        self.data.is_empty() && self.declared_bytes.is_none_or(|n| n < self.block_bytes)
    }

    /// Seconds of audio that the header promises and the file lacks.
    pub(super) fn missing_secs(&self) -> f64 {
        let there = self.data.end - self.data.start;
        let missing = self.declared_bytes.map_or(0, |n| n.saturating_sub(there));
        if missing < self.block_bytes || self.bytes_a_sec == 0 {
            0.0
        } else {
            missing as f64 / self.bytes_a_sec as f64
        }
    }
}

fn looks_like_chunk(source: &Source, pos: u64) -> io::Result<bool> {
    let mut chunk = [0; 8];
    let n = source.read_at(pos, &mut chunk)?;
    let fits = pos + 8 + u64::from(u32_at(&chunk, 4)) <= source.len();
    Ok(n == chunk.len()
        && fits
        && chunk[..4]
            .iter()
            .all(|b| b.is_ascii_alphanumeric() || *b == b' '))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}
