//! Files that end before they say they do, in the containers whose demuxers refuse such files.
//!
//! A recording that was broken off still holds everything up to there. The sizes that point beyond the end are replaced
//! by ones that do not.

use std::io;

use super::source::{Source, View};

/// Longest start of a file that is copied in order to change it.
const MAX_START_BYTES: u64 = 1 << 20;
/// Chunks looked at before the samples must have been found.
const MAX_CHUNKS: usize = 256;

/// The start of a file, changed so that it fits what is there.
pub(super) struct Cut {
    start: Vec<u8>,
    seekable: bool,
    /// Bytes that are missing for every byte of content that is there.
    pub(super) missing_ratio: f64,
}

impl Cut {
    /// Finds out whether `source` is an AIFF, CAF or Matroska file that is cut off in its content.
    pub(super) fn find(source: &Source) -> io::Result<Option<Self>> {
        let mut head = [0; 64];
        let n = source.read_at(0, &mut head)?;
        match &head[..n] {
            [
                b'F',
                b'O',
                b'R',
                b'M',
                _,
                _,
                _,
                _,
                b'A',
                b'I',
                b'F',
                b'F' | b'C',
                ..,
            ] => aiff(source),
            [b'c', b'a', b'f', b'f', ..] => caf(source),
            head @ [0x1a, 0x45, 0xdf, 0xa3, ..] => matroska(source, head),
            _ => Ok(None),
        }
    }

    /// The file as a demuxer should see it.
    pub(super) fn view(&self, source: Source) -> View {
        let range = self.start.len() as u64..source.len();
        let view = View::new(source, self.start.clone(), range);
        if self.seekable {
            view
        } else {
            view.unseekable()
        }
    }

    /// The first `body` bytes of `source`, of which `size` should follow; `None` if they do.
    fn at(source: &Source, body: u64, size: u64) -> io::Result<Option<Self>> {
        let there = source.len().saturating_sub(body);
        if size <= there || there == 0 || body > MAX_START_BYTES {
            return Ok(None);
        }
        let mut start = vec![0; body as usize];
        let n = source.read_at(0, &mut start)?;
        let missing_ratio = (size - there) as f64 / there as f64;
        Ok((n == start.len()).then_some(Self {
            start,
            seekable: true,
            missing_ratio,
        }))
    }
}

/// Audio Interchange File Format: 32-bit sizes of the whole and of the chunk `SSND`.
fn aiff(source: &Source) -> io::Result<Option<Cut>> {
    let mut pos = 12u64;
    for _ in 0..MAX_CHUNKS {
        let mut chunk = [0; 8];
        if source.read_at(pos, &mut chunk)? < chunk.len() {
            break;
        }
        let [kind @ .., a, b, c, d] = chunk;
        let size = u64::from(u32::from_be_bytes([a, b, c, d]));
        let body = pos + 8;
        if &kind == b"SSND" {
            let Some(mut cut) = Cut::at(source, body, size)? else {
                break;
            };
            let there = |from: u64| {
                u32::try_from(source.len() - from)
                    .unwrap_or(u32::MAX)
                    .to_be_bytes()
            };
            cut.start[body as usize - 4..].copy_from_slice(&there(body));
            cut.start[4..8].copy_from_slice(&there(8));
            return Ok(Some(cut));
        }
        pos = body + size + size % 2;
    }
    Ok(None)
}

/// Core Audio Format: a 64-bit size of the chunk `data`; -1 says that nothing follows it, and needs no repair.
fn caf(source: &Source) -> io::Result<Option<Cut>> {
    let mut pos = 8u64;
    for _ in 0..MAX_CHUNKS {
        let mut chunk = [0; 12];
        if source.read_at(pos, &mut chunk)? < chunk.len() {
            break;
        }
        let [a, b, c, d, size @ ..] = chunk;
        let body = pos + 12;
        let Ok(size) = u64::try_from(i64::from_be_bytes(size)) else {
            break;
        };
        if [a, b, c, d] == *b"data" {
            let Some(mut cut) = Cut::at(source, body, size)? else {
                break;
            };
            cut.start[body as usize - 8..].copy_from_slice(&(source.len() - body).to_be_bytes());
            return Ok(Some(cut));
        }
        let Some(next) = body.checked_add(size) else {
            break;
        };
        pos = next;
    }
    Ok(None)
}

/// Matroska (RFC 9559): the size of the segment, where all ones are "unknown". Seeking would follow the index, which
/// has gone with the end.
fn matroska(source: &Source, head: &[u8]) -> io::Result<Option<Cut>> {
    let Some((header_size, n)) = head.get(4..).and_then(vint) else {
        return Ok(None);
    };
    let segment = usize::try_from(header_size)
        .ok()
        .and_then(|size| size.checked_add(4 + n));
    let Some(rest) = segment.and_then(|at| head.get(at..)) else {
        return Ok(None);
    };
    let Some((size, n)) = rest.strip_prefix(b"\x18\x53\x80\x67").and_then(vint) else {
        return Ok(None);
    };
    let body = head.len() - rest.len() + 4 + n;
    // An unknown size needs no repair.
    if size == (1 << (7 * n)) - 1 {
        return Ok(None);
    }
    let Some(mut cut) = Cut::at(source, body as u64, size)? else {
        return Ok(None);
    };
    cut.start[body - n..].fill(0xff);
    cut.start[body - n] = 0xff >> (n - 1);
    cut.seekable = false;
    Ok(Some(cut))
}

/// An EBML variable-size integer and its length (RFC 8794, section 4).
fn vint(bytes: &[u8]) -> Option<(u64, usize)> {
    let first = *bytes.first()?;
    let n = first.leading_zeros() as usize + 1;
    let rest = bytes.get(1..n.min(9))?;
    let low = u64::from(first) & (0xff >> n.min(8));
    (n <= 8).then(|| {
        (
            rest.iter()
                .fold(low, |value, b| (value << 8) | u64::from(*b)),
            n,
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variable_size_integers_are_read() {
        assert_eq!(vint(&[0x81]), Some((1, 1)));
        assert_eq!(vint(&[0x40, 0x02]), Some((2, 2)));
        assert_eq!(vint(&[0x01, 0, 0, 0, 0, 0, 1, 0]), Some((256, 8)));
        assert_eq!(vint(&[0x01, 0, 0]), None);
        assert_eq!(vint(&[0; 9]), None);
        assert_eq!(vint(&[]), None);
    }
}
