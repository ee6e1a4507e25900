use std::{fmt, fs::File, io, io::Read, path::Path, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use sha2::{Digest, Sha256 as Hasher};

use super::Defect;

/// Bytes read at a time when a file is hashed.
const BLOCK_BYTES: usize = 1 << 20;

/// A SHA-256 digest, written as 64 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sha256([u8; 32]);

impl Sha256 {
    /// The digest of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Hasher::digest(bytes).into())
    }

    /// The digest of the file at `path`, read from the start in bounded memory.
    ///
    /// # Errors
    /// The file cannot be opened or read.
    pub fn of_file(path: &Path) -> io::Result<Self> {
        let mut file = File::open(path)?;
        let mut hasher = Hasher::new();
        let mut block = vec![0; BLOCK_BYTES];
        loop {
            match file.read(&mut block) {
                Ok(0) => return Ok(Self(hasher.finalize().into())),
                Ok(n) => hasher.update(&block[..n]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl fmt::Display for Sha256 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Sha256 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Sha256 {
    type Err = Defect;

    /// Reads 64 lower-case hexadecimal digits; upper case is refused, because the digest is also a directory's name.
    fn from_str(text: &str) -> Result<Self, Defect> {
        let digit = |c: u8| match c {
            b'0'..=b'9' => Some(c - b'0'),
            b'a'..=b'f' => Some(c - b'a' + 10),
            _ => None,
        };
        let mut digest = [0; 32];
        let malformed = || Defect::Digest {
            found: text.to_owned(),
        };
        if text.len() != 2 * digest.len() {
            return Err(malformed());
        }
        for (byte, pair) in digest.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
            let (high, low) = digit(pair[0]).zip(digit(pair[1])).ok_or_else(malformed)?;
            *byte = high << 4 | low;
        }
        Ok(Self(digest))
    }
}

impl Serialize for Sha256 {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Sha256 {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(de::Error::custom)
    }
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
}
