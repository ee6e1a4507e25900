use std::{fmt, fs::File, io, io::Read, path::Path, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use sha1::Sha1;
use sha2::{Digest, Sha256 as Hasher};

use super::Defect;

/// Bytes read at a time when a file is hashed.
const BLOCK_BYTES: usize = 1 << 20;

/// A SHA-256 digest, written as 64 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sha256([u8; 32]);

/// The name that git gives a file's content: the SHA-1 of `blob `, its length, a zero byte and the content, written as
/// 40 lower-case hexadecimal digits. The hub lists it for each file that is not in large-file storage.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GitBlob([u8; 20]);

impl Sha256 {
    /// The digest of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Hasher::digest(bytes).into())
    }

    /// Its bytes.
    pub(super) fn bytes(self) -> [u8; 32] {
        self.0
    }

    /// The digest of the file at `path`, read from the start in bounded memory.
    ///
    /// # Errors
    /// The file cannot be opened or read.
    pub fn of_file(path: &Path) -> io::Result<Self> {
        let mut hasher = Hasher::new();
        read_blocks(&mut File::open(path)?, |block| hasher.update(block))?;
        Ok(Self(hasher.finalize().into()))
    }
}

impl GitBlob {
    /// The name of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        let mut hasher = Self::hasher(bytes.len() as u64);
        hasher.update(bytes);
        Self(hasher.finalize().into())
    }

    /// The name of the content of the file at `path`, read in bounded memory.
    ///
    /// # Errors
    /// The file cannot be opened or read.
    pub fn of_file(path: &Path) -> io::Result<Self> {
        let mut file = File::open(path)?;
        let mut hasher = Self::hasher(file.metadata()?.len());
        read_blocks(&mut file, |block| hasher.update(block))?;
        Ok(Self(hasher.finalize().into()))
    }

    fn hasher(size: u64) -> Sha1 {
        Sha1::new().chain_update(format!("blob {size}\0"))
    }
}

/// What a file's content is known by on the hub, and what its blob is called in the hub's cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ContentId {
    /// Of a file in large-file storage.
    Sha256(Sha256),
    /// Of any other.
    GitBlob(GitBlob),
}

impl ContentId {
    /// Reads the name of a blob.
    pub fn parse(text: &str) -> Option<Self> {
        let sha256 = text.parse().map(Self::Sha256);
        sha256.or_else(|_| text.parse().map(Self::GitBlob)).ok()
    }

    /// Whether the content of the file at `path` has this id; all of it is read.
    ///
    /// # Errors
    /// The file cannot be opened or read.
    pub fn is_of_file(&self, path: &Path) -> io::Result<bool> {
        Ok(match self {
            Self::Sha256(digest) => Sha256::of_file(path)? == *digest,
            Self::GitBlob(id) => GitBlob::of_file(path)? == *id,
        })
    }
}

impl fmt::Display for ContentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sha256(digest) => digest.fmt(f),
            Self::GitBlob(id) => id.fmt(f),
        }
    }
}

/// Digests of bytes that arrive one after another.
pub(super) struct Hashing {
    sha256: Hasher,
    git_blob: Option<Sha1>,
}

impl Hashing {
    /// Computes the SHA-256; and git's name too, when `git_blob_of` gives the length that it depends on.
    pub(super) fn new(git_blob_of: Option<u64>) -> Self {
        Self {
            sha256: Hasher::new(),
            git_blob: git_blob_of.map(GitBlob::hasher),
        }
    }

    pub(super) fn update(&mut self, bytes: &[u8]) {
        self.sha256.update(bytes);
        if let Some(hasher) = &mut self.git_blob {
            hasher.update(bytes);
        }
    }

    pub(super) fn finish(self) -> (Sha256, Option<GitBlob>) {
        let git_blob = self
            .git_blob
            .map(|hasher| GitBlob(hasher.finalize().into()));
        (Sha256(self.sha256.finalize().into()), git_blob)
    }
}

/// Hands every block of `reader` to `each`, in bounded memory.
pub(super) fn read_blocks(reader: &mut impl Read, mut each: impl FnMut(&[u8])) -> io::Result<()> {
    let mut block = vec![0; BLOCK_BYTES];
    loop {
        match reader.read(&mut block) {
            Ok(0) => return Ok(()),
            Ok(n) => each(&block[..n]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// A digest as its digits: text, and the same in TOML and JSON.
macro_rules! as_hexadecimal {
    ($digest:ident, $kind:literal) => {
        impl fmt::Display for $digest {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
        }

        impl fmt::Debug for $digest {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $digest {
            type Err = Defect;

            /// Reads lower-case hexadecimal digits; upper case is refused, because the digest is also a file's name.
            fn from_str(text: &str) -> Result<Self, Defect> {
                from_hexadecimal(text)
                    .map(Self)
                    .ok_or_else(|| Defect::Digest {
                        found: text.to_owned(),
                        kind: $kind,
                        digits: 2 * size_of::<Self>(),
                    })
            }
        }

        impl Serialize for $digest {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $digest {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?
                    .parse()
                    .map_err(de::Error::custom)
            }
        }
    };
}

as_hexadecimal!(Sha256, "sha256");
as_hexadecimal!(GitBlob, "git blob id");

fn from_hexadecimal<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digit = |c: u8| match c {
        b'0'..=b'9' => Some(c - b'0'),
        b'a'..=b'f' => Some(c - b'a' + 10),
        _ => None,
    };
    let mut digest = [0; N];
    if text.len() != 2 * N {
        return None;
    }
    for (byte, pair) in digest.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        let (high, low) = digit(pair[0]).zip(digit(pair[1]))?;
        *byte = high << 4 | low;
    }
    Some(digest)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FIPS 180-4 example for the message `abc`.
    const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    #[test]
    fn bytes_and_file_have_the_published_digest() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("abc");
        std::fs::write(&path, "abc").unwrap();
        assert_eq!(Sha256::of(b"abc").to_string(), ABC);
        assert_eq!(Sha256::of_file(&path).unwrap().to_string(), ABC);
    }

    #[test]
    fn file_longer_than_a_block_hashes_as_its_bytes() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("long");
        let bytes: Vec<u8> = (0..BLOCK_BYTES + 17).map(|i| (i % 251) as u8).collect();
        std::fs::write(&path, &bytes).unwrap();
        assert_eq!(Sha256::of_file(&path).unwrap(), Sha256::of(&bytes));
    }

    #[test]
    fn only_64_lower_case_digits_are_a_digest() {
        assert_eq!(ABC.parse::<Sha256>().unwrap(), Sha256::of(b"abc"));
        assert!(ABC.parse::<GitBlob>().is_err());
        let long = format!("{ABC}0");
        let umlaut = format!("ä{}", &ABC[2..]);
        for wrong in [
            "",
            &ABC[1..],
            &long,
            &ABC.to_uppercase(),
            &ABC.replace('b', "g"),
            &umlaut,
        ] {
            assert!(wrong.parse::<Sha256>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn git_names_content_as_git_does() {
        // `printf abc | git hash-object --stdin`, and the same of nothing.
        let cases: [(&[u8], &str); 2] = [
            (b"abc", "f2ba8f84ab5c1bce84a7b441cb1959cfc7093b7f"),
            (b"", "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"),
        ];
        let dir = tempfile::tempdir().unwrap();
        for (bytes, expected) in cases {
            let path = dir.path().join("file");
            std::fs::write(&path, bytes).unwrap();
            assert_eq!(GitBlob::of(bytes).to_string(), expected);
            assert_eq!(GitBlob::of_file(&path).unwrap().to_string(), expected);
            let mut hashing = Hashing::new(Some(bytes.len() as u64));
            bytes.iter().for_each(|byte| hashing.update(&[*byte]));
            let (sha256, git_blob) = hashing.finish();
            assert_eq!(sha256, Sha256::of(bytes));
            assert_eq!(git_blob.unwrap().to_string(), expected);
        }
    }
}
