//! safetensors: a length, a JSON header, the tensors' bytes.
//!
//! ```text
//! u64 little-endian   length of the header in bytes
//! header              {"name": {"dtype": "F16", "shape": [2, 3], "data_offsets": [0, 12]}, …,
//!                      "__metadata__": {"key": "value"}}, padded with spaces
//! data                the tensors one after the other; offsets count from here
//! ```
//!
//! The rules are those of the format's own reader (huggingface/safetensors, README, "Format"): offsets are contiguous,
//! extents match shapes, the last tensor ends the file. The header is parsed here rather than by that crate so that
//! every refusal names its tensor and its numbers, and a name written twice is refused instead of the first one lost;
//! the tests hold both readers against each other.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};

use super::error::printable;
use super::slices::{Slices, Slot};
use super::{Checkpoint, Dtype, Error, Tensor, TensorInfo, mmap};

mod write;

pub use write::write_safetensors;

/// Bytes of the header's length.
const LENGTH_BYTES: usize = 8;
/// The longest header that is read, in bytes; the format's own reader has the same limit.
const MAX_HEADER_BYTES: usize = 100_000_000;
/// The header's key for what is not a tensor.
const METADATA_KEY: &str = "__metadata__";

/// A safetensors file; tensors are slices of its bytes.
#[derive(Debug)]
pub struct Safetensors {
    slices: Slices,
    metadata: BTreeMap<String, String>,
}

impl Safetensors {
    /// Maps the file at `path` and reads its header.
    ///
    /// # Errors
    /// The file cannot be mapped, or its header does not fit its bytes.
    pub fn open(path: &Path) -> Result<Self, Error> {
        Self::from_bytes(mmap::map(path)?, path)
    }

    /// Reads a file that is already in memory, such as one linked into the binary; `label` stands for its path in
    /// messages.
    ///
    /// # Errors
    /// The header does not fit the bytes.
    pub fn from_bytes(bytes: Bytes, label: impl Into<PathBuf>) -> Result<Self, Error> {
        let path = label.into();
        match parse(&bytes) {
            Ok((slots, metadata, data_start)) => Ok(Self {
                slices: Slices {
                    path,
                    bytes: bytes.slice(data_start..),
                    slots,
                },
                metadata,
            }),
            Err(fault) => Err(Error::Safetensors { path, fault }),
        }
    }
}

impl Checkpoint for Safetensors {
    fn format(&self) -> &'static str {
        "safetensors"
    }

    fn names(&self) -> Vec<&str> {
        self.slices.names()
    }

    fn info(&self, name: &str) -> Option<TensorInfo> {
        self.slices.info(name)
    }

    fn tensor(&self, name: &str) -> Result<Tensor, Error> {
        self.slices.tensor(name)
    }

    fn metadata(&self) -> &BTreeMap<String, String> {
        &self.metadata
    }
}

/// What is wrong with a safetensors header.
#[derive(Debug, thiserror::Error)]
pub enum HeaderFault {
    /// Not even a header length.
    #[error("{found} bytes are too few for a safetensors header")]
    TooShort {
        /// Length of the file in bytes.
        found: usize,
    },
    /// A header longer than any real one.
    #[error("a header of {declared} bytes is over the limit of {MAX_HEADER_BYTES}")]
    TooLong {
        /// The length written in the file.
        declared: u64,
    },
    /// A header that would end after the file does.
    #[error("header length {declared} is beyond the end of the file: {available} bytes follow")]
    BeyondFile {
        /// The length written in the file.
        declared: usize,
        /// Bytes after the length.
        available: usize,
    },
    /// A header that is not JSON of the expected form, or names a tensor twice.
    #[error("header cannot be read: {0}")]
    Json(serde_json::Error),
    /// An element type that is not read.
    #[error("tensor `{tensor}` has element type `{dtype}`, which is not supported")]
    Dtype {
        /// The tensor.
        tensor: String,
        /// The type as written.
        dtype: String,
    },
    /// Offsets that do not enclose what the shape needs.
    #[error(
        "tensor `{tensor}` of {dtype} {shape:?} does not take the {found} bytes between its offsets"
    )]
    Extent {
        /// The tensor.
        tensor: String,
        /// Its element type.
        dtype: Dtype,
        /// Its shape.
        shape: Vec<usize>,
        /// Bytes between its offsets; negative when they are swapped.
        found: i128,
    },
    /// Tensors that overlap, or leave a gap.
    #[error(
        "tensor `{tensor}` begins at byte {found} of the data, not at {expected} where the one before it ends"
    )]
    Start {
        /// The tensor.
        tensor: String,
        /// Where the tensors before it end.
        expected: usize,
        /// Where it begins.
        found: usize,
    },
    /// Data that ends before the last tensor does, or goes on after it.
    #[error("the tensors take {expected} bytes of data and the file has {found}{}", cut_short(*.expected, *.found))]
    Length {
        /// Bytes that the header accounts for.
        expected: usize,
        /// Bytes after the header.
        found: usize,
    },
}

/// What a length that does not fit most likely means.
fn cut_short(expected: usize, found: usize) -> &'static str {
    if found < expected {
        ": it has been cut short"
    } else {
        ""
    }
}

/// The header as written.
struct Header {
    tensors: Vec<(String, Entry)>,
    metadata: BTreeMap<String, String>,
}

/// One tensor of the header as written.
#[derive(serde::Deserialize)]
struct Entry {
    dtype: String,
    shape: Vec<usize>,
    data_offsets: (usize, usize),
}

type Parsed = (BTreeMap<String, Slot>, BTreeMap<String, String>, usize);

/// The tensors' places in the data, the metadata, and where the data begins.
fn parse(bytes: &[u8]) -> Result<Parsed, HeaderFault> {
    let (header, data_start) = read_header(bytes)?;
    let slots = place_tensors(header.tensors, bytes.len() - data_start)?;
    Ok((slots, header.metadata, data_start))
}

/// The header, and where the data after it begins.
fn read_header(bytes: &[u8]) -> Result<(Header, usize), HeaderFault> {
    let (length, rest) = bytes
        .split_first_chunk::<LENGTH_BYTES>()
        .ok_or(HeaderFault::TooShort { found: bytes.len() })?;
    let declared = u64::from_le_bytes(*length);
    let length = usize::try_from(declared)
        .ok()
        .filter(|&length| length <= MAX_HEADER_BYTES)
        .ok_or(HeaderFault::TooLong { declared })?;
    let header = rest.get(..length).ok_or(HeaderFault::BeyondFile {
        declared: length,
        available: rest.len(),
    })?;
    let header = serde_json::from_slice(header).map_err(HeaderFault::Json)?;
    Ok((header, LENGTH_BYTES + length))
}

/// Checks each tensor's extent, and that together they fill `data_bytes` without overlap or gap.
fn place_tensors(
    mut entries: Vec<(String, Entry)>,
    data_bytes: usize,
) -> Result<BTreeMap<String, Slot>, HeaderFault> {
    entries.sort_by(|(a_name, a), (b_name, b)| {
        (a.data_offsets, a_name).cmp(&(b.data_offsets, b_name))
    });
    let mut tensors = BTreeMap::new();
    let mut expected = 0;
    for (name, entry) in entries {
        let (start, end) = entry.data_offsets;
        let Some(dtype) = Dtype::from_name(&entry.dtype) else {
            return Err(HeaderFault::Dtype {
                tensor: printable(&name),
                dtype: printable(&entry.dtype),
            });
        };
        if start != expected {
            return Err(HeaderFault::Start {
                tensor: printable(&name),
                expected,
                found: start,
            });
        }
        if end.checked_sub(start) != dtype.byte_len(&entry.shape) || end < start {
            return Err(HeaderFault::Extent {
                tensor: printable(&name),
                dtype,
                shape: entry.shape,
                found: end as i128 - start as i128,
            });
        }
        expected = end;
        let slot = Slot {
            dtype,
            shape: entry.shape,
            range: start..end,
        };
        tensors.insert(name, slot);
    }
    if expected != data_bytes {
        return Err(HeaderFault::Length {
            expected,
            found: data_bytes,
        });
    }
    Ok(tensors)
}

impl<'de> Deserialize<'de> for Header {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(HeaderVisitor)
    }
}

/// Reads the header's map entry by entry, so that a repeated name is seen.
struct HeaderVisitor;

impl<'de> Visitor<'de> for HeaderVisitor {
    type Value = Header;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map of tensors")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Header, A::Error> {
        let mut tensors = HashMap::new();
        let mut metadata = None;
        while let Some(name) = map.next_key::<String>()? {
            let is_repeated = if name == METADATA_KEY {
                metadata.replace(map.next_value()?).is_some()
            } else {
                tensors.insert(name.clone(), map.next_value()?).is_some()
            };
            if is_repeated {
                let name = printable(&name);
                return Err(de::Error::custom(format_args!("`{name}` is there twice")));
            }
        }
        Ok(Header {
            tensors: tensors.into_iter().collect(),
            metadata: metadata.unwrap_or_default(),
        })
    }
}

#[cfg(test)]
mod tests;
