//! Model files as named tensors.
//!
//! [`open`](fn@open) takes a file and decides by content what it is; every format
//! answers the one [`Checkpoint`] trait. Bytes are shared with the file's mapping, not
//! copied, wherever the file stores a tensor's elements contiguously. Nothing a file says is trusted: offsets, lengths
//! and shapes are checked against the bytes that are there before anything is allocated, and a pickle is read as data,
//! never executed.

use std::collections::BTreeMap;
use std::fmt;

use bytes::Bytes;

mod error;
mod mmap;
mod open;
mod renamed;
mod safetensors;
mod sharded;
mod torch;

pub use error::Error;
pub use open::open;
pub use renamed::Renamed;
pub use safetensors::{HeaderFault, Safetensors, write_safetensors};
pub use sharded::Sharded;
pub use torch::{ArchiveFault, PickleFault, TensorFault, Torch};

/// Element type of a stored tensor; values are little-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dtype {
    /// IEEE double.
    F64,
    /// IEEE single.
    F32,
    /// IEEE half.
    F16,
    /// bfloat16, the upper half of a single.
    Bf16,
    /// Signed 64-bit integer.
    I64,
    /// Signed 32-bit integer.
    I32,
    /// Signed 16-bit integer.
    I16,
    /// Signed 8-bit integer.
    I8,
    /// Unsigned 8-bit integer.
    U8,
    /// One byte, 0 or 1.
    Bool,
}

impl Dtype {
    /// Bytes of one element.
    pub const fn size(self) -> usize {
        match self {
            Self::F64 | Self::I64 => 8,
            Self::F32 | Self::I32 => 4,
            Self::F16 | Self::Bf16 | Self::I16 => 2,
            Self::I8 | Self::U8 | Self::Bool => 1,
        }
    }

    /// The spelling of a safetensors header: `F32`, `BF16`, `BOOL`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::F64 => "F64",
            Self::F32 => "F32",
            Self::F16 => "F16",
            Self::Bf16 => "BF16",
            Self::I64 => "I64",
            Self::I32 => "I32",
            Self::I16 => "I16",
            Self::I8 => "I8",
            Self::U8 => "U8",
            Self::Bool => "BOOL",
        }
    }

    /// The type that a safetensors header spells `name`, or `None` for one that no model here uses (`F8_E4M3`, `U32`).
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "F64" => Self::F64,
            "F32" => Self::F32,
            "F16" => Self::F16,
            "BF16" => Self::Bf16,
            "I64" => Self::I64,
            "I32" => Self::I32,
            "I16" => Self::I16,
            "I8" => Self::I8,
            "U8" => Self::U8,
            "BOOL" => Self::Bool,
            _ => return None,
        })
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A tensor's type and shape, known from the header alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorInfo {
    /// Element type.
    pub dtype: Dtype,
    /// Extents, outermost first; empty for a scalar.
    pub shape: Vec<usize>,
}

/// A tensor's values: contiguous, row-major, little-endian.
#[derive(Clone, Debug)]
pub struct Tensor {
    /// Element type.
    pub dtype: Dtype,
    /// Extents, outermost first; empty for a scalar.
    pub shape: Vec<usize>,
    /// `shape.product() * dtype.size()` bytes, shared with the file's mapping where the file stores them contiguously,
    /// and therefore aligned to whatever the file aligns them to: reinterpret with a copy as the fallback.
    pub data: Bytes,
}

/// A file, or several, of named tensors.
pub trait Checkpoint: Send + Sync {
    /// The file format, as `inspect` prints it: `safetensors`, `sharded safetensors`, `torch`.
    fn format(&self) -> &'static str;

    /// Names in lexical order.
    fn names(&self) -> Vec<&str>;

    /// Type and shape of `name`, or `None` when there is no such tensor.
    fn info(&self, name: &str) -> Option<TensorInfo>;

    /// The values of `name`.
    ///
    /// # Errors
    /// No such tensor, or its bytes cannot be had.
    fn tensor(&self, name: &str) -> Result<Tensor, Error>;

    /// Scalars stored beside the tensors: the `__metadata__` of a safetensors header, or the plain values of a torch
    /// archive under dotted keys (`dims.n_mels`).
    fn metadata(&self) -> &BTreeMap<String, String>;
}
