//! The zip archive around a saved object.

use std::collections::HashMap;
use std::io::Cursor;
use std::ops::Range;

use bytes::Bytes;
use zip::result::ZipError;
use zip::{CompressionMethod, ZipArchive};

use crate::checkpoint::error::printable;

/// The member that every archive has, below the one directory at its root.
const PICKLE: &str = "data.pkl";

/// A torch archive's members, as ranges of its bytes.
#[derive(Debug)]
pub(super) struct Archive {
    bytes: Bytes,
    members: HashMap<String, Range<usize>>,
    /// Name of the directory that holds everything, with its slash.
    root: String,
    pickle: Range<usize>,
    byte_order: ByteOrder,
}

/// Order of the bytes of one element in a storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ByteOrder {
    Little,
    Big,
}

/// What is wrong with a torch archive's zip structure.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveFault {
    /// The zip directory, at the end of the file, is missing or damaged.
    #[error("the archive's directory cannot be read, the file is damaged or cut short: {0}")]
    Zip(ZipError),
    /// Two members of the same name.
    #[error("the archive has two members of the same name")]
    Repeated,
    /// A compressed or encrypted member; torch stores members as they are.
    #[error("member `{member}` is compressed or encrypted; torch does not write such files")]
    NotStored {
        /// The member.
        member: String,
    },
    /// A member that would reach outside the file.
    #[error("member `{member}` reaches outside the file")]
    OutsideFile {
        /// The member.
        member: String,
    },
    /// Some other zip archive.
    #[error("a zip archive without `*/{PICKLE}` is not a torch file")]
    NoPickle,
    /// A `byteorder` other than the two there are.
    #[error("unknown byte order `{found}`")]
    ByteOrder {
        /// The member's content.
        found: String,
    },
    /// A tensor names a storage that is not there.
    #[error("storage `{member}` is missing from the archive")]
    MissingStorage {
        /// The member that would hold it.
        member: String,
    },
}

impl Archive {
    /// Reads the directory and locates every member.
    pub(super) fn open(bytes: Bytes) -> Result<Self, ArchiveFault> {
        let mut zip = ZipArchive::new(Cursor::new(&bytes[..])).map_err(ArchiveFault::Zip)?;
        if zip.has_duplicate_names() {
            return Err(ArchiveFault::Repeated);
        }
        let mut members = HashMap::new();
        for index in 0..zip.len() {
            let member = zip.by_index_raw(index).map_err(ArchiveFault::Zip)?;
            let name = String::from_utf8_lossy(member.name_raw()).into_owned();
            if member.compression() != CompressionMethod::Stored || member.encrypted() {
                return Err(ArchiveFault::NotStored {
                    member: printable(&name),
                });
            }
            let range = member
                .data_start()
                .and_then(|start| range_within(start, member.size(), bytes.len()));
            let Some(range) = range else {
                return Err(ArchiveFault::OutsideFile {
                    member: printable(&name),
                });
            };
            members.insert(name, range);
        }

        let (root, pickle) = find_pickle(&members).ok_or(ArchiveFault::NoPickle)?;
        let byte_order = match members.get(&format!("{root}byteorder")) {
            None => ByteOrder::Little,
            Some(range) => match &bytes[range.clone()] {
                b"little" => ByteOrder::Little,
                b"big" => ByteOrder::Big,
                found => {
                    let found = printable(&String::from_utf8_lossy(found));
                    return Err(ArchiveFault::ByteOrder { found });
                }
            },
        };
        Ok(Self {
            bytes,
            members,
            root,
            pickle,
            byte_order,
        })
    }

    /// The pickled object.
    pub(super) fn pickle(&self) -> &[u8] {
        &self.bytes[self.pickle.clone()]
    }

    /// Order of the bytes in the storages.
    pub(super) fn byte_order(&self) -> ByteOrder {
        self.byte_order
    }

    /// The bytes of the storage that the pickle calls `key`.
    pub(super) fn storage(&self, key: &str) -> Result<Bytes, ArchiveFault> {
        let member = format!("{}data/{key}", self.root);
        match self.members.get(&member) {
            Some(range) => Ok(self.bytes.slice(range.clone())),
            None => Err(ArchiveFault::MissingStorage {
                member: printable(&member),
            }),
        }
    }
}

/// `size` bytes from `start`, if that lies within `len`.
fn range_within(start: u64, size: u64, len: usize) -> Option<Range<usize>> {
    let start = usize::try_from(start).ok()?;
    let end = start.checked_add(usize::try_from(size).ok()?)?;
    (end <= len).then_some(start..end)
}

/// The archive's root directory, with its slash, and where its pickle lies; the first in name order if there are two.
fn find_pickle(members: &HashMap<String, Range<usize>>) -> Option<(String, Range<usize>)> {
    members
        .iter()
        .filter_map(|(name, range)| Some((name.strip_suffix(PICKLE)?, range)))
        .filter(|(root, _)| root.find('/') == root.len().checked_sub(1))
        .min_by_key(|(root, _)| *root)
        .map(|(root, range)| (root.to_owned(), range.clone()))
}
