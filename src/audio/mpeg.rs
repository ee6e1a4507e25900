//! Where MPEG audio and ADTS packets lie in their file.
//!
//! Those streams have no clock: the demuxer counts the frames it finds and jumps over what is no frame, so that all
//! times after damage would be early. The bytes jumped over tell how much is lost.

use std::io;

use super::source::Source;

/// Bytes read at once while a packet is looked for: few at first, since it is seldom far.
const SEARCH_BYTES: (usize, usize) = (512, 64 << 10);
/// How far ahead of the expected place a packet is looked for.
const MAX_SEARCH_BYTES: u64 = 64 << 20;
/// Bytes that identify a packet: its header and the start of its content.
const KEY_BYTES: usize = 32;

/// Follows the packets of a frame stream through its file.
pub(super) struct FrameWalk {
    source: Source,
    /// Where the next packet should start; `None` once the walk has lost its way.
    next: Option<u64>,
    /// Of the first packet, in MPEG audio: what every other one starts with as well.
    header: Option<Header>,
    mpeg: bool,
    /// Bytes and samples of the packets so far.
    bytes: u64,
    samples: u64,
    placed: Option<Placed>,
}

/// A packet that may yet turn out to be noise.
struct Placed {
    next: u64,
    bytes: u64,
    samples: u64,
}

/// The sync word, version, layer and rate of an MPEG audio frame (ISO/IEC 11172-3, section 2.4.1.3): what damage
/// aside stays the same from frame to frame.
#[derive(PartialEq)]
struct Header([u8; 3]);

impl Header {
    fn of(frame: &[u8]) -> Option<Self> {
        let [a, b, c] = *frame.first_chunk()?;
        Some(Self([a, b & 0xfe, c & 0x0c]))
    }
}

impl FrameWalk {
    /// A walk that looks for its first packet from `start` on; the packets of MPEG audio are whole frames, headers
    /// and all, those of ADTS are not.
    pub(super) fn new(source: Source, start: u64, mpeg: bool) -> Self {
        Self {
            source,
            next: Some(start),
            header: None,
            mpeg,
            bytes: 0,
            samples: 0,
            placed: None,
        }
    }

    /// Samples lost in front of `packet`, which holds `samples`: the bytes jumped over since the last packet that was
    /// [accepted](Self::accept), at the mean rate so far, in whole packets; `None` where the packet looks like noise
    /// that the demuxer took for one. What lies before the first packet (headers, tags, half a frame) is not lost.
    pub(super) fn place(&mut self, packet: &[u8], samples: u64) -> io::Result<Option<u64>> {
        self.placed = None;
        let Some(expected) = self.next else {
            return Ok(Some(0));
        };
        let Some(found) = self.find(expected, packet)? else {
            self.next = None;
            return Ok(Some(0));
        };
        let mut length = packet.len() as u64;
        if self.mpeg && self.bytes > 0 {
            let followed = self.is_header_at(found + length)?;
            if Header::of(packet) != self.header || (found != expected && !followed) {
                return Ok(None);
            }
            if !followed {
                // Either this header or the next is damaged. If it is this one then its length is wrong.
                length = length.min(
                    (u128::from(self.bytes) * u128::from(samples) / u128::from(self.samples.max(1)))
                        as u64,
                );
            }
        }
        let lost_packets = match self.bytes {
            0 => 0,
            bytes => {
                let lost = u128::from(found - expected) * u128::from(self.samples);
                let packet = u128::from(bytes) * u128::from(samples.max(1));
                u64::try_from((lost + packet / 2) / packet).unwrap_or(0)
            }
        };
        if self.header.is_none() {
            self.header = Header::of(packet);
        }
        self.placed = Some(Placed {
            next: found + length,
            bytes: packet.len() as u64,
            samples,
        });
        Ok(Some(lost_packets * samples))
    }

    /// Counts the packet that was placed last: it could be decoded.
    pub(super) fn accept(&mut self) {
        if let Some(placed) = self.placed.take() {
            self.next = Some(placed.next);
            self.bytes += placed.bytes;
            self.samples += placed.samples;
        }
    }

    /// Whether a frame like the others starts at `pos`, or the file ends there.
    fn is_header_at(&self, pos: u64) -> io::Result<bool> {
        let mut header = [0; 3];
        let n = self.source.read_at(pos, &mut header)?;
        Ok(n < header.len() || &header == b"TAG" || Header::of(&header) == self.header)
    }

    fn find(&self, from: u64, packet: &[u8]) -> io::Result<Option<u64>> {
        let key = &packet[..packet.len().min(KEY_BYTES)];
        if key.is_empty() {
            return Ok(None);
        }
        let mut here = [0; KEY_BYTES];
        let here = &mut here[..key.len()];
        if self.source.read_at(from, here)? == key.len() && here == key {
            return Ok(Some(from));
        }
        let mut buf = vec![0; SEARCH_BYTES.0];
        let mut at = from;
        while at < from.saturating_add(MAX_SEARCH_BYTES) {
            let n = self.source.read_at(at, &mut buf)?;
            if let Some(offset) = buf[..n].windows(key.len()).position(|window| window == key) {
                return Ok(Some(at + offset as u64));
            }
            if n < buf.len() {
                break;
            }
            at += (n - key.len() + 1) as u64;
            buf.resize(SEARCH_BYTES.1, 0);
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    fn packet(i: u8) -> Vec<u8> {
        [vec![0xff, 0xfb, 0x10], vec![i; 97]].concat()
    }

    fn walk(file: &[Vec<u8>]) -> FrameWalk {
        FrameWalk::new(Source::new(Cursor::new(file.concat())).unwrap(), 0, true)
    }

    #[test]
    fn jumped_bytes_become_whole_packets() {
        let mut walk = walk(&[
            b"tag".to_vec(),
            packet(1),
            packet(2),
            vec![0; 290],
            packet(3),
        ]);
        for (i, lost) in [(1, 0), (2, 0), (3, 3)] {
            assert_eq!(walk.place(&packet(i), 1152).unwrap(), Some(lost * 1152));
            walk.accept();
        }
        assert_eq!(
            walk.place(&packet(9), 1152).unwrap(),
            Some(0),
            "a packet that is not in the file"
        );
        assert_eq!(walk.place(&[], 0).unwrap(), Some(0));
    }

    #[test]
    fn noise_that_looks_like_a_packet_is_not_counted() {
        let false_packet = packet(7)[..60].to_vec();
        let mut walk = walk(&[
            packet(1),
            packet(2),
            vec![0; 30],
            false_packet.clone(),
            vec![0; 110],
            packet(3),
        ]);
        for i in [1, 2] {
            assert_eq!(walk.place(&packet(i), 1152).unwrap(), Some(0));
            walk.accept();
        }
        assert_eq!(walk.place(&false_packet, 1152).unwrap(), None);
        assert_eq!(walk.place(&packet(3), 1152).unwrap(), Some(2 * 1152));
    }
}
