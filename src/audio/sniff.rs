//! What bytes are that are no audio we can read, for a message that helps.

/// The media container that starts with `head` and has no demuxer here.
pub(super) fn unsupported_container(head: &[u8]) -> Option<&'static str> {
    const CONTAINERS: [(usize, &[u8], &str); 16] = [
        (
            0,
            b"\x30\x26\xb2\x75\x8e\x66\xcf\x11",
            "Windows Media (ASF)",
        ),
        (0, b"FLV\x01", "Flash Video"),
        (0, b"\0\0\x01\xba", "an MPEG program stream"),
        (0, b"#!AMR", "AMR"),
        (0, b"MThd", "MIDI"),
        (0, b"wvpk", "WavPack"),
        (0, b"MAC ", "Monkey's Audio"),
        (0, b"TTA1", "True Audio"),
        (0, b"TTA2", "True Audio"),
        (0, b"DSD ", "DSF"),
        (0, b"MPCK", "Musepack"),
        (0, b"MP+", "Musepack"),
        (8, b"AVI ", "AVI"),
        (0, b"riff\x2e\x91\xcf\x11", "Wave64"),
        (0, b".RMF", "RealMedia"),
        (0, b".snd", "a Sun/NeXT audio file (AU)"),
    ];
    if (head.first(), head.get(188), head.get(376)) == (Some(&0x47), Some(&0x47), Some(&0x47)) {
        return Some("an MPEG transport stream");
    }
    find(&CONTAINERS, head)
}

/// What `head` is the start of, where it is certainly no audio.
pub(super) fn not_audio(head: &[u8]) -> Option<&'static str> {
    const FILES: [(usize, &[u8], &str); 16] = [
        (0, b"\x89PNG\r\n", "a PNG picture"),
        (0, b"\xff\xd8\xff", "a JPEG picture"),
        (0, b"GIF8", "a GIF picture"),
        (8, b"WEBP", "a WebP picture"),
        (0, b"%PDF", "a PDF document"),
        (0, b"PK\x03\x04", "a zip archive"),
        (0, b"\x1f\x8b", "a gzip archive"),
        (0, b"BZh", "a bzip2 archive"),
        (0, b"\xfd7zXZ\0", "an xz archive"),
        (0, b"\x28\xb5\x2f\xfd", "a zstd archive"),
        (0, b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive"),
        (0, b"\x7fELF", "a program"),
        (0, b"MZ", "a program"),
        (0, b"GGUF", "a GGUF model"),
        (0, b"SQLite format 3", "a database"),
        (257, b"ustar", "a tar archive"),
    ];
    if is_text(head) {
        Some("text")
    } else if is_utf16(head) {
        Some("UTF-16 text")
    } else {
        find(&FILES, head)
    }
}

fn find(table: &[(usize, &[u8], &'static str)], head: &[u8]) -> Option<&'static str> {
    let starts =
        |at: usize, magic: &[u8]| head.get(at..).is_some_and(|rest| rest.starts_with(magic));
    table
        .iter()
        .find(|(at, magic, _)| starts(*at, magic))
        .map(|(_, _, what)| *what)
}

/// Valid UTF-8 (but for a character cut off at the end) without control characters other than white space.
fn is_text(head: &[u8]) -> bool {
    let valid = match std::str::from_utf8(head) {
        Ok(text) => text,
        Err(e) if e.error_len().is_none() => {
            std::str::from_utf8(&head[..e.valid_up_to()]).unwrap_or_default()
        }
        Err(_) => return false,
    };
    !valid.is_empty()
        && !valid
            .chars()
            .any(|c| c.is_control() && !matches!(c, '\t' | '\n' | '\r' | '\x0c' | '\x1b'))
}

/// Latin text behind a byte order mark; the mark alone is also a valid MPEG layer 1 frame header.
fn is_utf16(head: &[u8]) -> bool {
    head.len() >= 4
        && head.starts_with(b"\xff\xfe")
        && head[2..].chunks_exact(2).take(8).all(|unit| unit[1] == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_files_are_named() {
        assert_eq!(not_audio("Grüße, Welt\n".as_bytes()), Some("text"));
        assert_eq!(
            not_audio(&"Grüße".as_bytes()[..3]),
            Some("text"),
            "a character may be cut off"
        );
        assert_eq!(not_audio(b"\x89PNG\r\n\x1a\n\0\0"), Some("a PNG picture"));
        assert_eq!(not_audio(b"\xff\xfeh\0i\0"), Some("UTF-16 text"));
        assert_eq!(not_audio(b"\xff\xfe\x90\x44\x12\x99"), None, "MPEG layer 1");
        assert_eq!(not_audio(b"RIFF\x24\0\0\0WAVEfmt "), None);
        assert_eq!(not_audio(b"OggS\0\x02\0\0"), None);
        assert_eq!(
            unsupported_container(b"RIFF\x24\0\0\0AVI LIST"),
            Some("AVI")
        );
        assert_eq!(unsupported_container(b"RIFF\x24\0\0\0WAVEfmt "), None);
        assert_eq!(unsupported_container(b""), None);
    }
}
