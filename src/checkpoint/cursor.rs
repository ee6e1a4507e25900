//! Reading a file's bytes from front to back, lengths checked.

/// A place in a file's bytes.
#[derive(Debug)]
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// A file that ends before what it says it has.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{due} bytes of {what} are due at byte {at} and {left} are left: the file is damaged or cut short"
)]
pub struct CutShort {
    /// What was being read.
    pub what: &'static str,
    /// Its length in bytes, according to the file.
    pub due: u64,
    /// Where it begins.
    pub at: usize,
    /// Bytes from there to the end of the file.
    pub left: usize,
}

impl<'a> Cursor<'a> {
    /// The beginning of `bytes`.
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Bytes read so far.
    pub(super) fn position(&self) -> usize {
        self.at
    }

    /// Whether everything has been read.
    pub(super) fn is_at_end(&self) -> bool {
        self.at == self.bytes.len()
    }

    /// The next `due` bytes, which are the file's `what`.
    ///
    /// # Errors
    /// Fewer are left; then none is read.
    pub(super) fn take(&mut self, due: u64, what: &'static str) -> Result<&'a [u8], CutShort> {
        let left = &self.bytes[self.at..];
        let taken = usize::try_from(due).ok().and_then(|due| left.get(..due));
        let taken = taken.ok_or(CutShort {
            what,
            due,
            at: self.at,
            left: left.len(),
        })?;
        self.at += taken.len();
        Ok(taken)
    }

    /// The next `N` bytes.
    ///
    /// # Errors
    /// As [`Cursor::take`].
    pub(super) fn array<const N: usize>(
        &mut self,
        what: &'static str,
    ) -> Result<[u8; N], CutShort> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N as u64, what)?);
        Ok(array)
    }

    /// A 32-bit little-endian number.
    ///
    /// # Errors
    /// As [`Cursor::take`].
    pub(super) fn u32(&mut self, what: &'static str) -> Result<u32, CutShort> {
        self.array(what).map(u32::from_le_bytes)
    }

    /// A 64-bit little-endian number.
    ///
    /// # Errors
    /// As [`Cursor::take`].
    pub(super) fn u64(&mut self, what: &'static str) -> Result<u64, CutShort> {
        self.array(what).map(u64::from_le_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_is_not_read() {
        let mut cursor = Cursor::new(&[1, 0, 0, 0, 2, 3]);
        assert_eq!(cursor.u32("count"), Ok(1));
        let error = cursor.u64("offset").unwrap_err();
        assert_eq!(
            error.to_string(),
            "8 bytes of offset are due at byte 4 and 2 are left: the file is damaged or cut short"
        );
        assert!(cursor.take(u64::MAX, "name").is_err());
        assert_eq!(cursor.position(), 4);
        assert_eq!(cursor.take(2, "name"), Ok(&[2, 3][..]));
        assert!(cursor.is_at_end());
        assert_eq!(cursor.take(0, "nothing"), Ok(&[][..]));
    }
}
