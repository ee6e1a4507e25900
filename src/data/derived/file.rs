//! The form of a file of the store: blobs, then a table of them, then a footer.
//!
//! ```text
//! blobs                                     each at a multiple of 4096, zeros between them
//! table                                     JSON: the recipe, the weights, name → offset and length of each blob
//! footer   0  SHA-256 of the table and of the bytes of the footer that follow
//!         32  offset of the table, which is a multiple of 4096
//!         40  length of the table
//!         48  version
//!         56  `\x89derived`
//! ```
//!
//! Numbers are 64 bits, little-endian; lengths are in bytes. The footer comes last and is found from the end of the file,
//! so a file that is cut short has none. The blobs' own bytes are not hashed: the file gets its name only when all of it
//! is on the disk.

use std::{
    collections::BTreeMap,
    io::Write,
    ops::Range,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use super::identity::Origin;
use crate::data::{Error, Sha256, disk, error::unwritable};

/// What the offset of each blob is a multiple of: the size of a page, so that a mapped blob begins with one.
pub(super) const ALIGNMENT: usize = 4096;

/// Of the form; a file of another is not read.
pub(super) const VERSION: u64 = 1;

const MAGIC: [u8; 8] = *b"\x89derived";
const CHECKSUM_BYTES: usize = 32;
const FOOTER_BYTES: usize = CHECKSUM_BYTES + 32;

/// What a file says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Table {
    /// How the blobs were made from the weights.
    pub(super) recipe: String,
    /// The files that hold the weights.
    pub(super) weights: Vec<Origin>,
    /// Where each blob is.
    blobs: BTreeMap<String, Extent>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Extent {
    offset: usize,
    bytes: usize,
}

impl Extent {
    /// The blob's place, if it lies before `end` and where a blob may begin.
    fn range(self, end: usize) -> Option<Range<usize>> {
        let range = self.offset..self.offset.checked_add(self.bytes)?;
        (range.start.is_multiple_of(ALIGNMENT) && range.end <= end).then_some(range)
    }
}

impl Table {
    /// A table of no blobs yet.
    pub(super) fn new(recipe: &str, weights: &[Origin]) -> Self {
        Self {
            recipe: recipe.to_owned(),
            weights: weights.to_vec(),
            blobs: BTreeMap::new(),
        }
    }

    /// The table of the file whose bytes are `file`; `None` when they are not a whole file of this form and version. The
    /// blobs of a table that is given lie within `file`.
    pub(super) fn read(file: &[u8]) -> Option<Self> {
        let (body, footer) = file.split_at_checked(file.len().checked_sub(FOOTER_BYTES)?)?;
        let (checksum, facts) = footer.split_at(CHECKSUM_BYTES);
        let number = |at: usize| {
            let bytes = facts[at..at + 8].try_into().expect("eight bytes");
            u64::from_le_bytes(bytes)
        };
        if facts[24..] != MAGIC || number(16) != VERSION {
            return None;
        }
        let offset = usize::try_from(number(0)).ok()?;
        let (blobs, table) = body.split_at_checked(offset)?;
        let is_whole = offset.is_multiple_of(ALIGNMENT) && table.len() as u64 == number(8);
        if !is_whole || *checksum != checksum_of(table, facts) {
            return None;
        }
        let table: Self = serde_json::from_slice(table).ok()?;
        let mut extents = table.blobs.values();
        let in_place = extents.all(|extent| extent.range(blobs.len()).is_some());
        in_place.then_some(table)
    }

    /// Where the blob `name` is in the file that this table was read from.
    pub(super) fn range(&self, name: &str) -> Option<Range<usize>> {
        let extent = self.blobs.get(name)?;
        Some(extent.offset..extent.offset + extent.bytes) // checked by `read`
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.blobs.keys().map(String::as_str)
    }
}

fn checksum_of(table: &[u8], facts: &[u8]) -> [u8; CHECKSUM_BYTES] {
    Sha256::of(&[table, facts].concat()).bytes()
}

/// A file on its way. Dropped before it is finished, it leaves nothing.
pub(super) struct Writer {
    file: tempfile::NamedTempFile,
    path: PathBuf,
    written: usize,
    table: Table,
}

impl Writer {
    /// Begins the file that is to be at `path`, aside in the same directory, which is made.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub(super) fn create(path: &Path, table: Table) -> Result<Self, Error> {
        let file = disk::claimed_temporary(path).map_err(|source| unwritable(path, source))?;
        Ok(Self {
            file,
            path: path.to_owned(),
            written: 0,
            table,
        })
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.table.blobs.contains_key(name)
    }

    /// Writes a blob.
    ///
    /// # Errors
    /// [`Error::Write`]; then the file cannot be finished.
    pub(super) fn add(&mut self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        let extent = Extent {
            offset: self.written,
            bytes: bytes.len(),
        };
        self.write(bytes)?;
        let padding = self.written.next_multiple_of(ALIGNMENT) - self.written;
        self.write(&[0; ALIGNMENT][..padding])?;
        self.table.blobs.insert(name.to_owned(), extent);
        Ok(())
    }

    /// Ends the file and gives it its name once it is on the disk.
    ///
    /// # Errors
    /// [`Error::Write`]; then no file of that name is new.
    pub(super) fn finish(mut self) -> Result<(), Error> {
        let table = serde_json::to_vec(&self.table).expect("plain data is JSON");
        let numbers = [self.written as u64, table.len() as u64, VERSION];
        let mut facts: Vec<u8> = numbers.iter().flat_map(|it| it.to_le_bytes()).collect();
        facts.extend(MAGIC);
        let checksum = checksum_of(&table, &facts);
        for part in [table.as_slice(), &checksum, &facts] {
            self.write(part)?;
        }
        disk::keep_whole(self.file, &self.path)
    }

    /// The same on a disk that takes no byte more.
    #[cfg(all(test, target_os = "linux"))]
    pub(super) fn on_a_full_disk(self) -> Self {
        let full = std::fs::File::options().write(true).open("/dev/full");
        let (_, path) = self.file.into_parts();
        let file = tempfile::NamedTempFile::from_parts(full.expect("it is there"), path);
        Self { file, ..self }
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let file = self.file.as_file_mut(); // whose errors do not name the temporary file
        file.write_all(bytes)
            .map_err(|source| unwritable(&self.path, source))?;
        self.written += bytes.len();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A file of `blobs`.
    fn file(blobs: &[(&str, &[u8])]) -> Vec<u8> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let mut writer = Writer::create(&path, Table::new("r", &[])).unwrap();
        for (name, bytes) in blobs {
            writer.add(name, bytes).unwrap();
        }
        writer.finish().unwrap();
        std::fs::read(&path).unwrap()
    }

    #[test]
    fn cut_short_or_made_longer_a_file_is_none() {
        let whole = file(&[("a", &[1; 5000]), ("b", b""), ("c", &[3; 4096])]);
        assert!(Table::read(&whole).is_some());
        // Every length around a boundary of the form, and all of the table and the footer.
        let boundaries = [0, FOOTER_BYTES, 4096, 5000, 8192, 12288];
        let around = boundaries
            .iter()
            .flat_map(|it| it.saturating_sub(2)..it + 2);
        for length in around.chain(12288..whole.len()) {
            assert_eq!(Table::read(&whole[..length]), None, "{length}");
        }
        for more in [1, 8, 64, 4096] {
            let longer = [whole.clone(), vec![0; more]].concat();
            assert_eq!(Table::read(&longer), None, "{more}");
        }
    }

    #[test]
    fn any_change_of_table_or_footer_is_seen() {
        let whole = file(&[("a", &[1; 10])]);
        for at in 4096..whole.len() {
            for bit in 0..8 {
                let mut changed = whole.clone();
                changed[at] ^= 1 << bit;
                assert_eq!(Table::read(&changed), None, "{at}");
            }
        }
    }

    /// `table` as that of a file of `blob_bytes` of blobs, all checksums right.
    fn forged(table: &str, blob_bytes: usize, numbers: [u64; 3]) -> Vec<u8> {
        let mut facts: Vec<u8> = numbers.iter().flat_map(|it| it.to_le_bytes()).collect();
        facts.extend(MAGIC);
        let checksum = checksum_of(table.as_bytes(), &facts);
        [&vec![0; blob_bytes], table.as_bytes(), &checksum, &facts].concat()
    }

    #[test]
    fn blobs_outside_the_file_make_it_none() {
        let cases = [
            (0, 4096, true),
            (0, 4097, false),
            (4096, 0, true),
            (4096, 1, false),
            (8192, 0, false),
            (1, 1, false),
            (usize::MAX & !4095, 4096, false),
            (0, usize::MAX, false),
        ];
        for (offset, bytes, good) in cases {
            let table = format!(
                r#"{{"recipe":"r","weights":[],"blobs":{{"a":{{"offset":{offset},"bytes":{bytes}}}}}}}"#
            );
            let file = forged(&table, 4096, [4096, table.len() as u64, VERSION]);
            assert_eq!(Table::read(&file).is_some(), good, "{offset} {bytes}");
        }
    }

    #[test]
    fn numbers_that_cannot_be_make_it_none() {
        let table = r#"{"recipe":"r","weights":[],"blobs":{}}"#;
        let bytes = table.len() as u64;
        assert!(Table::read(&forged(table, 4096, [4096, bytes, VERSION])).is_some());
        for numbers in [
            [4096, bytes, VERSION + 1],
            [4096, bytes, 0],
            [4096, bytes + 1, VERSION],
            [4096, u64::MAX, VERSION],
            [4095, bytes + 1, VERSION],
            [0, bytes, VERSION],
            [u64::MAX, bytes, VERSION],
        ] {
            assert_eq!(
                Table::read(&forged(table, 4096, numbers)),
                None,
                "{numbers:?}"
            );
        }
        for table in ["", "[]", "{}", "{\"recipe\":1}", "\0"] {
            let numbers = [4096, table.len() as u64, VERSION];
            assert_eq!(Table::read(&forged(table, 4096, numbers)), None, "{table}");
        }
    }

    proptest! {
        #[test]
        fn blobs_come_back_at_the_beginning_of_a_page(
            blobs in proptest::collection::btree_map(".{0,12}", proptest::collection::vec(any::<u8>(), 0..9000), 0..6)
        ) {
            let blobs: Vec<_> = blobs.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())).collect();
            let file = file(&blobs);
            let table = Table::read(&file).unwrap();
            prop_assert_eq!(table.names().count(), blobs.len());
            for (name, bytes) in blobs {
                let range = table.range(name).unwrap();
                prop_assert!(range.start.is_multiple_of(ALIGNMENT));
                prop_assert_eq!(&file[range], bytes);
            }
        }

        #[test]
        fn garbage_is_no_file(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            prop_assert_eq!(Table::read(&bytes), None);
        }
    }
}
