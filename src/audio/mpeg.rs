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
    started: bool,
    frame_bytes: u64,
    frame_samples: u64,
}

impl FrameWalk {
    /// A walk that looks for its first packet from `start` on.
    pub(super) fn new(source: Source, start: u64) -> Self {
        Self {
            source,
            next: Some(start),
            started: false,
            frame_bytes: 0,
            frame_samples: 0,
        }
    }

    /// Samples lost in front of `packet`, which holds `samples`: the bytes jumped over, at the mean rate so far, in
    /// whole packets. What lies before the first packet (headers, tags, half a frame) is not lost.
    pub(super) fn lost_samples(&mut self, packet: &[u8], samples: u64) -> io::Result<u64> {
        let Some(expected) = self.next else {
            return Ok(0);
        };
        let Some(found) = self.find(expected, packet)? else {
            self.next = None;
            return Ok(0);
        };
        let lost_bytes = if self.started { found - expected } else { 0 };
        let lost_packets = match self.frame_bytes {
            0 => 0,
            bytes => {
                let lost = u128::from(lost_bytes) * u128::from(self.frame_samples);
                let packet = u128::from(bytes) * u128::from(samples.max(1));
                u64::try_from((lost + packet / 2) / packet).unwrap_or(0)
            }
        };
        self.started = true;
        self.frame_bytes += packet.len() as u64;
        self.frame_samples += samples;
        self.next = Some(found + packet.len() as u64);
        Ok(lost_packets * samples)
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

    #[test]
    fn jumped_bytes_become_whole_packets() {
        let packet = |i: u8| [vec![0xff, 0xfb, i], vec![i; 97]].concat();
        let mut file = b"tag".to_vec();
        file.extend(packet(1));
        file.extend(packet(2));
        file.extend(vec![0; 290]);
        file.extend(packet(3));
        let mut walk = FrameWalk::new(Source::new(Cursor::new(file)).unwrap(), 0);
        assert_eq!(walk.lost_samples(&packet(1), 1152).unwrap(), 0);
        assert_eq!(walk.lost_samples(&packet(2), 1152).unwrap(), 0);
        assert_eq!(walk.lost_samples(&packet(3), 1152).unwrap(), 3 * 1152);
        assert_eq!(
            walk.lost_samples(&packet(9), 1152).unwrap(),
            0,
            "a packet that is not in the file"
        );
        assert_eq!(walk.lost_samples(&[], 0).unwrap(), 0);
    }
}
