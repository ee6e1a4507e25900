//! Edit lists of MP4 files (ISO/IEC 14496-12, section 8.6.6), which the demuxer passes over.
//!
//! Encoders of AAC and MP3 put some 20 to 50 ms of warm-up before the first sample, and the edit list of the track
//! says where the sound starts. Without it all times would be late by that much.

use std::io;
use std::ops::Range;

use super::source::Source;

/// Boxes looked at in one place before the search is given up.
const MAX_BOXES: usize = 4096;

/// Seconds at the start of the track with this id that are not to be heard; 0 where the file says nothing.
pub(super) fn skip_secs(source: &Source, track_id: u32) -> io::Result<f64> {
    let Some(moov) = child(source, 0..source.len(), b"moov")? else {
        return Ok(0.0);
    };
    let mut rest = moov;
    for _ in 0..MAX_BOXES {
        let Some(trak) = child(source, rest.clone(), b"trak")? else {
            break;
        };
        rest.start = trak.end;
        if let Some(header) = child(source, trak.clone(), b"tkhd")?
            && versioned(source, &header, 12, 20)? == Some(track_id)
        {
            return Ok(edit_start(source, trak)?.unwrap_or(0.0));
        }
    }
    Ok(0.0)
}

/// Where in its media a `trak` starts to be heard.
fn edit_start(source: &Source, trak: Range<u64>) -> io::Result<Option<f64>> {
    let Some(edts) = child(source, trak.clone(), b"edts")? else {
        return Ok(None);
    };
    let Some(elst) = child(source, edts, b"elst")? else {
        return Ok(None);
    };
    let Some(mdia) = child(source, trak, b"mdia")? else {
        return Ok(None);
    };
    let Some(mdhd) = child(source, mdia, b"mdhd")? else {
        return Ok(None);
    };
    let Some(ticks_a_sec) = versioned(source, &mdhd, 12, 20)? else {
        return Ok(None);
    };
    let Some([version, ..]) = bytes_at::<4>(source, &elst, 0)? else {
        return Ok(None);
    };
    let Some(entries) = bytes_at(source, &elst, 4)?.map(u32::from_be_bytes) else {
        return Ok(None);
    };
    for i in 0..u64::from(entries).min(MAX_BOXES as u64) {
        // Duration, place in the media, and rate; the first two are longer in version 1.
        let media_time = if version == 0 {
            bytes_at(source, &elst, 8 + 12 * i + 4)?.map(|b| i64::from(i32::from_be_bytes(b)))
        } else {
            bytes_at(source, &elst, 8 + 20 * i + 8)?.map(i64::from_be_bytes)
        };
        match media_time {
            None => break,
            // An entry without media is a pause before the track begins.
            Some(time) if time < 0 => {}
            Some(time) => {
                return Ok((ticks_a_sec > 0).then(|| time as f64 / f64::from(ticks_a_sec)));
            }
        }
    }
    Ok(None)
}

/// The content of the first box of this kind within `range`.
fn child(source: &Source, range: Range<u64>, kind: &[u8; 4]) -> io::Result<Option<Range<u64>>> {
    let mut pos = range.start;
    for _ in 0..MAX_BOXES {
        let Some([a, b, c, d, found @ ..]) = bytes_at::<8>(source, &range, pos - range.start)?
        else {
            break;
        };
        let (body, size) = match u32::from_be_bytes([a, b, c, d]) {
            0 => (pos + 8, range.end - pos),
            1 => match bytes_at(source, &range, pos - range.start + 8)?.map(u64::from_be_bytes) {
                Some(size) => (pos + 16, size),
                None => break,
            },
            size => (pos + 8, u64::from(size)),
        };
        let end = match pos.checked_add(size) {
            Some(end) if end >= body => end,
            _ => break,
        };
        if &found == kind {
            return Ok(Some(body..end.min(range.end)));
        }
        pos = end;
    }
    Ok(None)
}

/// The u32 at one of two places, by the version of a box.
fn versioned(
    source: &Source,
    content: &Range<u64>,
    at_v0: u64,
    at_v1: u64,
) -> io::Result<Option<u32>> {
    let Some([version, ..]) = bytes_at::<4>(source, content, 0)? else {
        return Ok(None);
    };
    let at = if version == 0 { at_v0 } else { at_v1 };
    Ok(bytes_at(source, content, at)?.map(u32::from_be_bytes))
}

/// `N` bytes `at` so far into `content`, if they lie within.
fn bytes_at<const N: usize>(
    source: &Source,
    content: &Range<u64>,
    at: u64,
) -> io::Result<Option<[u8; N]>> {
    let mut bytes = [0; N];
    let Some(pos) = content.start.checked_add(at) else {
        return Ok(None);
    };
    if pos
        .checked_add(N as u64)
        .is_none_or(|end| end > content.end)
    {
        return Ok(None);
    }
    Ok((source.read_at(pos, &mut bytes)? == N).then_some(bytes))
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    fn put(kind: &[u8; 4], content: &[u8]) -> Vec<u8> {
        [
            &(content.len() as u32 + 8).to_be_bytes(),
            &kind[..],
            content,
        ]
        .concat()
    }

    fn words(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|w| w.to_be_bytes()).collect()
    }

    fn track(id: u32, edits: &[u32]) -> Vec<u8> {
        let mdhd = put(b"mdhd", &words(&[0, 0, 0, 48_000, 0]));
        let content = [
            put(b"tkhd", &words(&[0, 0, 0, id, 0])),
            put(b"edts", &put(b"elst", &words(edits))),
            put(b"mdia", &mdhd),
        ];
        put(b"trak", &content.concat())
    }

    fn skip(file: &[u8], id: u32) -> f64 {
        skip_secs(&Source::new(Cursor::new(file.to_vec())).unwrap(), id).unwrap()
    }

    #[test]
    fn the_edit_list_of_the_track_counts() {
        let pause_then_sound = [0, 2, 500, u32::MAX, 0x10000, 9000, 1024, 0x10000];
        let moov = [
            track(1, &[0, 1, 9000, 0, 0x10000]),
            track(2, &pause_then_sound),
        ]
        .concat();
        let file = [
            put(b"ftyp", b"M4A "),
            put(b"mdat", &[0; 33]),
            put(b"moov", &moov),
        ]
        .concat();
        assert_eq!(skip(&file, 1), 0.0);
        assert_eq!(skip(&file, 2), 1024.0 / 48_000.0);
        assert_eq!(skip(&file, 3), 0.0);
        for cut in 0..file.len() {
            skip(&file[..cut], 2);
        }
        for at in 0..file.len() {
            for value in [0, 1, 0x7f, 0xff] {
                let mut file = file.clone();
                file[at] = value;
                skip(&file, 2);
            }
        }
    }
}
