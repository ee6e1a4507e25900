//! Ogg files whose comments hold a picture of many megabytes.
//!
//! The demuxer puts a whole packet together before it looks at it, and refuses long ones. So long comments of Opus and
//! Vorbis streams are replaced by empty ones, without being read.

use std::io;

use super::source::{Source, View};

/// Longest comments that are left to the demuxer.
const MAX_COMMENT_BYTES: u64 = 1 << 20;
/// Longest setup of a Vorbis stream that is believed; usual are 4 KB.
const MAX_SETUP_BYTES: usize = 1 << 20;
/// Pages, of up to 64 KiB each, after which the comments must have ended.
const MAX_PAGES: usize = 16_384;
/// Bytes of a page before its segment table (RFC 3533, section 6).
const HEADER_BYTES: usize = 27;

/// One page, but for its content.
struct Page {
    serial: [u8; 4],
    /// Lengths of the segments; a packet goes on as long as they are 255.
    segments: Vec<u8>,
    body: u64,
    end: u64,
}

impl Page {
    fn read(source: &Source, pos: u64) -> io::Result<Option<Self>> {
        let mut header = [0; HEADER_BYTES];
        if source.read_at(pos, &mut header)? < header.len() || &header[..5] != b"OggS\0" {
            return Ok(None);
        }
        let mut segments = vec![0; usize::from(header[26])];
        let body = pos + (HEADER_BYTES + segments.len()) as u64;
        if source.read_at(pos + HEADER_BYTES as u64, &mut segments)? < segments.len() {
            return Ok(None);
        }
        let end = body + segments.iter().map(|n| u64::from(*n)).sum::<u64>();
        let serial = [header[14], header[15], header[16], header[17]];
        Ok(Some(Self {
            serial,
            segments,
            body,
            end,
        }))
    }
}

/// The Ogg file at the start of `source` with empty comments, if it has a single stream and its comments are long.
pub(super) fn without_comments(source: &Source) -> io::Result<Option<View>> {
    let Some(first) = Page::read(source, 0)? else {
        return Ok(None);
    };
    let mut start = vec![0; first.end.min(source.len()) as usize];
    source.read_at(0, &mut start)?;
    let head = start.get(first.body as usize..).unwrap_or_default();
    let (comments, has_setup): (&[u8], _) = if head.starts_with(b"OpusHead") {
        (b"OpusTags\0\0\0\0\0\0\0\0", false)
    } else if head.starts_with(b"\x01vorbis") {
        (b"\x03vorbis\0\0\0\0\0\0\0\0\x01", true)
    } else {
        return Ok(None);
    };
    let (mut comment_bytes, mut comments_end, mut setup, mut setup_ends) =
        (0u64, false, Vec::new(), !has_setup);
    let mut pos = first.end;
    for _ in 0..MAX_PAGES {
        let Some(page) = Page::read(source, pos)?.filter(|page| page.serial == first.serial) else {
            return Ok(None);
        };
        let mut at = page.body;
        for n in &page.segments {
            if !comments_end {
                comment_bytes += u64::from(*n);
                comments_end = *n < 255;
            } else if !setup_ends {
                let mut segment = vec![0; usize::from(*n)];
                source.read_at(at, &mut segment)?;
                setup.append(&mut segment);
                setup_ends = *n < 255;
            }
            at += u64::from(*n);
        }
        pos = page.end;
        if setup.len() > MAX_SETUP_BYTES {
            return Ok(None);
        }
        if comments_end && setup_ends {
            if comment_bytes <= MAX_COMMENT_BYTES {
                return Ok(None);
            }
            let packets: &[&[u8]] = if has_setup {
                &[comments, &setup]
            } else {
                &[comments]
            };
            for (i, packet) in packets.iter().enumerate() {
                write_pages(first.serial, i as u32 + 1, packet, &mut start);
            }
            return Ok(Some(View::new(source.clone(), start, pos..source.len())));
        }
    }
    Ok(None)
}

/// Appends the pages of one header packet. Their numbers start at `number` and need not be without gaps.
fn write_pages(serial: [u8; 4], number: u32, packet: &[u8], out: &mut Vec<u8>) {
    let mut lengths = vec![255u8; packet.len() / 255];
    lengths.push((packet.len() % 255) as u8);
    let mut rest = packet;
    for (i, segments) in lengths.chunks(255).enumerate() {
        let (content, behind) = rest.split_at(segments.iter().map(|n| usize::from(*n)).sum());
        rest = behind;
        let start = out.len();
        out.extend_from_slice(b"OggS\0");
        // The packet goes on from the page before.
        out.push(u8::from(i > 0));
        out.extend_from_slice(&[0; 8]);
        out.extend_from_slice(&serial);
        out.extend_from_slice(&(number + i as u32).to_le_bytes());
        out.extend_from_slice(&[0; 4]);
        out.push(segments.len() as u8);
        out.extend_from_slice(segments);
        out.extend_from_slice(content);
        let checksum = checksum(&out[start..]);
        out[start + 22..start + 26].copy_from_slice(&checksum.to_le_bytes());
    }
}

/// CRC-32 of a page whose checksum field is 0 (RFC 3533, section 6): polynomial 0x04c11db7, most significant bit first.
fn checksum(page: &[u8]) -> u32 {
    page.iter().fold(0, |crc: u32, byte| {
        (0..8).fold(crc ^ (u32::from(*byte) << 24), |crc, _| {
            if crc >> 31 == 1 {
                (crc << 1) ^ 0x04c1_1db7
            } else {
                crc << 1
            }
        })
    })
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Read};

    use super::*;

    /// A stream of a head, comments of `comment_bytes`, a setup where it is Vorbis, and 9 bytes of audio.
    fn stream(head: &[u8], comment_bytes: usize, setup: &[u8]) -> Vec<u8> {
        let mut file = Vec::new();
        write_pages([7; 4], 0, head, &mut file);
        write_pages([7; 4], 1, &vec![b'x'; comment_bytes], &mut file);
        if !setup.is_empty() {
            write_pages([7; 4], 99, setup, &mut file);
        }
        file.extend_from_slice(b"the audio");
        file
    }

    fn shortened(file: Vec<u8>) -> Option<Vec<u8>> {
        let mut view = without_comments(&Source::new(Cursor::new(file)).unwrap()).unwrap()?;
        let mut bytes = Vec::new();
        view.read_to_end(&mut bytes).unwrap();
        Some(bytes)
    }

    #[test]
    fn long_comments_give_way_to_empty_ones() {
        let opus = shortened(stream(b"OpusHead and so on", 3 << 20, b"")).unwrap();
        assert!(opus.len() < 200 && opus.ends_with(b"the audio"));
        let setup = [&b"\x05vorbis"[..], &[3; 5000]].concat();
        let vorbis = shortened(stream(b"\x01vorbis and so on", 3 << 20, &setup)).unwrap();
        assert!(
            vorbis.len() < 5500
                && vorbis
                    .windows(setup.len().min(4000))
                    .any(|w| w == &setup[..4000])
        );
        assert!(
            shortened(stream(b"OpusHead and so on", 1000, b"")).is_none(),
            "short ones stay"
        );
        assert!(
            shortened(stream(b"OpusHead", 3 << 20, b"")[..2 << 20].to_vec()).is_none(),
            "cut in the comments"
        );
    }

    #[test]
    fn checksums_are_those_of_ogg() {
        let file = std::fs::read(format!(
            "{}/tests/data/audio/celt.opus",
            env!("CARGO_MANIFEST_DIR")
        ))
        .unwrap();
        let page = Page::read(&Source::new(Cursor::new(file.clone())).unwrap(), 0)
            .unwrap()
            .unwrap();
        let mut bytes = file[..page.end as usize].to_vec();
        let stored = u32::from_le_bytes(bytes[22..26].try_into().unwrap());
        bytes[22..26].fill(0);
        assert_eq!(checksum(&bytes), stored);
    }
}
