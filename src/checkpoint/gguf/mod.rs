//! GGUF: the file form of llama.cpp and what is built on ggml, versions 2 and 3, little-endian.
//!
//! ```text
//! "GGUF"  u32 version  u64 tensors  u64 values
//! values   key, u32 type, value                                             `metadata`
//! tensors  name, u32 dimensions, u64 extents (innermost first), u32 type, u64 offset into the data
//! padding to `general.alignment`, 32 unless stated
//! data     each tensor at a multiple of the alignment
//! ```
//!
//! A string is its u64 length and that many bytes. The form is that of ggml-org/ggml, docs/gguf.md; where that leaves
//! open what a reader takes, ggml's own (src/gguf.cpp) is followed: at most four dimensions, no name twice.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use bytes::Bytes;

use super::cursor::Cursor;
use super::error::printable;
use super::slices::{Slices, Slot};
use super::{Checkpoint, CutShort, Dtype, Error, Tensor, TensorInfo, mmap};

mod metadata;

/// The file's first four bytes.
const MAGIC: &[u8] = b"GGUF";
/// Versions that are read; the third only allows for big-endian files.
const VERSIONS: [u32; 2] = [2, 3];
/// Dimensions of a tensor in ggml.
const MAX_DIMS: u32 = 4;

/// A GGUF file; tensors are slices of its bytes.
///
/// Its values are metadata, numbers in decimal; an array of more than eight elements, such as a vocabulary, stands as
/// `[151936 strings]`.
#[derive(Debug)]
pub struct Gguf {
    slices: Slices,
    metadata: BTreeMap<String, String>,
}

/// What is wrong with a GGUF file.
#[derive(Debug, thiserror::Error)]
pub enum GgufFault {
    /// It ends too early, or a length in it is wrong.
    #[error(transparent)]
    CutShort(#[from] CutShort),
    /// Its first bytes are others.
    #[error("it does not begin with `GGUF`")]
    Magic,
    /// A version that is not read.
    #[error("version {found} of the format is not supported; 2 and 3 are")]
    Version {
        /// The file's version.
        found: u32,
    },
    /// Numbers stored with their highest byte first.
    #[error("it is big-endian, which is not supported")]
    BigEndian,
    /// A name or a key that is no text.
    #[error("{what} at byte {at} is not UTF-8")]
    NotUtf8 {
        /// A key, or a tensor's name.
        what: &'static str,
        /// Where it ends.
        at: usize,
    },
    /// Two values of the same key.
    #[error("key `{key}` is there twice")]
    RepeatedKey {
        /// The key.
        key: String,
    },
    /// A value of a type that the format does not have.
    #[error("value `{key}` is of type {found}, which is not known")]
    ValueType {
        /// The value's key.
        key: String,
        /// The type's number.
        found: u32,
    },
    /// A truth value other than 0 and 1.
    #[error("value `{key}` is {found}, expected 0 or 1")]
    Bool {
        /// The value's key.
        key: String,
        /// The byte.
        found: u8,
    },
    /// Arrays inside one another without end.
    #[error("value `{key}` has more than {limit} arrays inside one another")]
    TooDeep {
        /// The value's key.
        key: String,
        /// The limit.
        limit: usize,
    },
    /// An alignment that cannot be.
    #[error("`general.alignment` is {found}, expected a power of two")]
    Alignment {
        /// What it is.
        found: String,
    },
    /// Two tensors of the same name.
    #[error("tensor `{tensor}` is there twice")]
    RepeatedTensor {
        /// The name.
        tensor: String,
    },
    /// More dimensions than ggml has.
    #[error("tensor `{tensor}` has {found} dimensions, at most {MAX_DIMS} are possible")]
    Dimensions {
        /// The tensor.
        tensor: String,
        /// How many it has.
        found: u32,
    },
    /// An element type that is not known.
    #[error("tensor `{tensor}` is of type {found}, which is not known")]
    Type {
        /// The tensor.
        tensor: String,
        /// ggml's number of the type.
        found: u32,
    },
    /// Extents that overflow, or do not make whole blocks.
    #[error("tensor `{tensor}` cannot have shape {shape:?} with elements of {dtype}")]
    Extent {
        /// The tensor.
        tensor: String,
        /// Its shape, outermost first.
        shape: Vec<u64>,
        /// Its element type.
        dtype: Dtype,
    },
    /// A tensor that begins where none can.
    #[error("tensor `{tensor}` begins at byte {offset} of the data, no multiple of {alignment}")]
    Unaligned {
        /// The tensor.
        tensor: String,
        /// Where it begins.
        offset: u64,
        /// The file's alignment.
        alignment: usize,
    },
    /// A tensor that would reach beyond the file.
    #[error(
        "tensor `{tensor}` of {bytes} bytes at byte {offset} of the data reaches beyond the end of the file: it is \
         damaged or cut short"
    )]
    OutsideFile {
        /// The tensor.
        tensor: String,
        /// Where it begins.
        offset: u64,
        /// Its length in bytes.
        bytes: usize,
    },
}

impl Gguf {
    /// Maps the file at `path` and reads its header.
    ///
    /// # Errors
    /// The file cannot be mapped, or its header does not fit its bytes.
    pub fn open(path: &Path) -> Result<Self, Error> {
        Self::from_bytes(mmap::map(path)?, path)
    }

    /// Reads a file that is already in memory; `label` stands for its path in messages.
    ///
    /// # Errors
    /// The header does not fit the bytes.
    pub fn from_bytes(bytes: Bytes, label: impl Into<PathBuf>) -> Result<Self, Error> {
        let path = label.into();
        match parse(&bytes) {
            Ok((slots, metadata)) => Ok(Self {
                slices: Slices { path, bytes, slots },
                metadata,
            }),
            Err(fault) => Err(Error::Gguf { path, fault }),
        }
    }
}

impl Checkpoint for Gguf {
    fn format(&self) -> &'static str {
        "gguf"
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

type Parsed = (BTreeMap<String, Slot>, BTreeMap<String, String>);

fn parse(bytes: &[u8]) -> Result<Parsed, GgufFault> {
    let mut cursor = Cursor::new(bytes);
    if cursor.array::<4>("magic")? != *MAGIC {
        return Err(GgufFault::Magic);
    }
    let version = cursor.u32("version")?;
    if VERSIONS.contains(&version.swap_bytes()) {
        return Err(GgufFault::BigEndian);
    }
    if !VERSIONS.contains(&version) {
        return Err(GgufFault::Version { found: version });
    }
    // A count is not trusted to size anything: every entry takes bytes, which run out first.
    let tensor_count = cursor.u64("tensor count")?;
    let value_count = cursor.u64("value count")?;
    let (metadata, alignment) = metadata::read(&mut cursor, value_count)?;

    let mut entries = Vec::new();
    for _ in 0..tensor_count {
        entries.push(Entry::read(&mut cursor)?);
    }
    // Beyond the end, if the file ends with its header: then it can only have tensors without elements.
    let data_start = cursor
        .position()
        .checked_next_multiple_of(alignment)
        .unwrap_or(usize::MAX);
    let mut tensors = BTreeMap::new();
    for entry in entries {
        let slot = entry.place(data_start, alignment, bytes.len())?;
        if tensors.contains_key(&entry.name) {
            let tensor = printable(&entry.name);
            return Err(GgufFault::RepeatedTensor { tensor });
        }
        tensors.insert(entry.name, slot);
    }
    Ok((tensors, metadata))
}

/// A tensor as the header has it.
struct Entry {
    name: String,
    /// Innermost first.
    extents: Vec<u64>,
    dtype: Dtype,
    /// From the beginning of the data.
    offset: u64,
}

impl Entry {
    fn read(cursor: &mut Cursor<'_>) -> Result<Self, GgufFault> {
        let name = text(cursor, "a tensor's name")?;
        let dimensions = cursor.u32("a tensor's dimensions")?;
        if dimensions > MAX_DIMS {
            return Err(GgufFault::Dimensions {
                tensor: printable(&name),
                found: dimensions,
            });
        }
        let extents = (0..dimensions)
            .map(|_| cursor.u64("a tensor's extents"))
            .collect::<Result<_, _>>()?;
        let code = cursor.u32("a tensor's type")?;
        let Some(dtype) = Dtype::from_ggml(code) else {
            return Err(GgufFault::Type {
                tensor: printable(&name),
                found: code,
            });
        };
        let offset = cursor.u64("a tensor's offset")?;
        Ok(Self {
            name,
            extents,
            dtype,
            offset,
        })
    }

    /// Where the tensor lies in a file of `len` bytes whose data begins at `data_start`.
    fn place(&self, data_start: usize, alignment: usize, len: usize) -> Result<Slot, GgufFault> {
        let tensor = || printable(&self.name);
        let extents = self.extents.iter().rev();
        let shape: Result<Vec<usize>, _> = extents.map(|&extent| extent.try_into()).collect();
        let sized = shape.ok().and_then(|shape| {
            let bytes = self.dtype.byte_len(&shape)?;
            Some((shape, bytes))
        });
        let (shape, bytes) = sized.ok_or_else(|| GgufFault::Extent {
            tensor: tensor(),
            shape: self.extents.iter().rev().copied().collect(),
            dtype: self.dtype,
        })?;
        if !self.offset.is_multiple_of(alignment as u64) {
            return Err(GgufFault::Unaligned {
                tensor: tensor(),
                offset: self.offset,
                alignment,
            });
        }
        let offset = usize::try_from(self.offset).ok();
        let start = offset.and_then(|offset| data_start.checked_add(offset));
        let end = start.and_then(|start| start.checked_add(bytes));
        match (start, end) {
            (Some(start), Some(end)) if end <= len => Ok(Slot {
                dtype: self.dtype,
                shape,
                range: start..end,
            }),
            // No elements, so it does not matter where.
            _ if bytes == 0 => Ok(Slot {
                dtype: self.dtype,
                shape,
                range: 0..0,
            }),
            _ => Err(GgufFault::OutsideFile {
                tensor: tensor(),
                offset: self.offset,
                bytes,
            }),
        }
    }
}

/// The bytes of a string.
fn string<'a>(cursor: &mut Cursor<'a>, what: &'static str) -> Result<&'a [u8], GgufFault> {
    let length = cursor.u64(what)?;
    Ok(cursor.take(length, what)?)
}

/// A string that must be UTF-8.
fn text(cursor: &mut Cursor<'_>, what: &'static str) -> Result<String, GgufFault> {
    let text = std::str::from_utf8(string(cursor, what)?);
    text.map(str::to_owned).map_err(|_| GgufFault::NotUtf8 {
        what,
        at: cursor.position(),
    })
}

#[cfg(test)]
mod tests;
