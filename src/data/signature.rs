//! What a file is, by its first bytes.

use std::fmt;

/// How much of a file [`Signature::of`] looks at, in bytes.
pub(super) const PREFIX_BYTES: usize = 1024;

/// What a file's first bytes say it is; its name is not asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signature {
    /// A length and a JSON header follow.
    Safetensors,
    /// A zip archive, as `torch.save` has written since version 1.6.
    Zip,
    /// A JSON document, such as an index of shards.
    Json,
    /// No bytes at all.
    Empty,
    /// A web page: a download that was answered by a login form or an error.
    Html,
    /// The text that stands for a file which Git LFS has not fetched.
    LfsPointer,
    /// What `torch.save` wrote before version 1.6.
    LegacyTorch,
    /// A Python pickle outside any archive.
    BarePickle,
    /// A llama.cpp model.
    Gguf,
    /// A whisper.cpp model.
    Ggml,
    /// Some other text.
    Text,
    /// None of these.
    Unknown,
}

impl Signature {
    /// Classifies a file by its beginning.
    pub fn of(bytes: &[u8]) -> Self {
        let prefix = &bytes[..bytes.len().min(PREFIX_BYTES)];
        if prefix.is_empty() {
            return Self::Empty;
        }
        if prefix.starts_with(b"PK\x03\x04") || prefix.starts_with(b"PK\x05\x06") {
            return Self::Zip;
        }
        if prefix.starts_with(b"GGUF") {
            return Self::Gguf;
        }
        if prefix.starts_with(b"lmgg") {
            return Self::Ggml;
        }
        // Protocol 2, then the 10-byte integer 0x1950a86a20f9469cfc6c that opens every file of the old format.
        if prefix.starts_with(b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19") {
            return Self::LegacyTorch;
        }
        if matches!(prefix, [0x80, 2..=5, ..]) {
            return Self::BarePickle;
        }
        if is_safetensors(prefix) {
            return Self::Safetensors;
        }
        Self::of_text(prefix)
    }

    fn of_text(prefix: &[u8]) -> Self {
        let Some(text) = leading_text(prefix) else {
            return Self::Unknown;
        };
        let text = text.trim_start_matches('\u{feff}').trim_start();
        let starts_with = |tag: &str| {
            text.get(..tag.len())
                .is_some_and(|start| start.eq_ignore_ascii_case(tag))
        };
        if text.starts_with('{') {
            Self::Json
        } else if starts_with("<!doctype html") || starts_with("<html") || starts_with("<head") {
            Self::Html
        } else if starts_with("version https://git-lfs.github.com/spec/") {
            Self::LfsPointer
        } else {
            Self::Text
        }
    }
}

impl Signature {
    /// The words that complete "FILE is …".
    pub const fn words(self) -> &'static str {
        match self {
            Self::Safetensors => "a safetensors file",
            Self::Zip => "a zip archive",
            Self::Json => "a JSON document",
            Self::Empty => "an empty file",
            Self::Html => "an HTML page",
            Self::LfsPointer => "a Git LFS pointer",
            Self::LegacyTorch => "a torch file from before version 1.6",
            Self::BarePickle => "a Python pickle outside a torch archive",
            Self::Gguf => "a GGUF file",
            Self::Ggml => "a GGML file",
            Self::Text => "a text file",
            Self::Unknown => "a file of unknown kind",
        }
    }
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.words())
    }
}

/// Whether a header length and the `{` of its JSON open the file.
///
/// An index of shards is JSON too and may have a `{` in the same place (`{"meta":{`), but eight bytes of text read as a
/// length are beyond any header.
fn is_safetensors(prefix: &[u8]) -> bool {
    let is_text = prefix
        .iter()
        .take(8)
        .all(|byte| byte.is_ascii_graphic() || byte.is_ascii_whitespace());
    prefix.get(8) == Some(&b'{') && !(prefix[0] == b'{' && is_text)
}

/// `prefix` as text, when it is that: UTF-8 but for a character cut at the end, and without control characters.
fn leading_text(prefix: &[u8]) -> Option<&str> {
    let text = match std::str::from_utf8(prefix) {
        Ok(text) => text,
        Err(error) if error.error_len().is_none() => {
            std::str::from_utf8(&prefix[..error.valid_up_to()]).ok()?
        }
        Err(_) => return None,
    };
    let is_control = |c: char| c.is_control() && !matches!(c, '\t' | '\n' | '\r' | '\x0c');
    (!text.is_empty() && !text.contains(is_control)).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_told_by_their_first_bytes() {
        let cases: &[(&[u8], Signature)] = &[
            (b"", Signature::Empty),
            (b"PK\x03\x04rest", Signature::Zip),
            (b"\x10\0\0\0\0\0\0\0{\"a\":1}", Signature::Safetensors),
            (b"\xff\xff\xff\xff\xff\xff\xff\xff{", Signature::Safetensors),
            (b"{\"weight_map\": {}}", Signature::Json),
            (b"{\"meta\":{}}", Signature::Json),
            (b"\xef\xbb\xbf\n <!DOCTYPE HTML>\n<html>", Signature::Html),
            (b"<html lang=en>", Signature::Html),
            (
                b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 3\n",
                Signature::LfsPointer,
            ),
            (
                b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02M\xe9\x03.",
                Signature::LegacyTorch,
            ),
            (b"\x80\x04\x95", Signature::BarePickle),
            (b"GGUF\x03", Signature::Gguf),
            (b"lmgg", Signature::Ggml),
            (b"hello, world\n", Signature::Text),
            ("héllo".as_bytes(), Signature::Text),
            (b"h\xc3", Signature::Text),
            (b"\0\x01\x02\xff", Signature::Unknown),
            (b"\xff\xfe", Signature::Unknown),
        ];
        for (bytes, expected) in cases {
            assert_eq!(Signature::of(bytes), *expected, "{bytes:?}");
        }
    }
}
