//! Model files as named tensors.
//!
//! Every format answers the one [`Checkpoint`] trait; bytes are shared with the file's mapping, not copied.

use std::collections::BTreeMap;

use bytes::Bytes;

/// Element type of a stored tensor; values are little-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// `shape.product() * dtype.size()` bytes, shared with the file's mapping where the file stores them contiguously.
    pub data: Bytes,
}

/// A file, or several, of named tensors.
pub trait Checkpoint: Send + Sync {
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

/// Why a checkpoint cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The name is not in the checkpoint.
    #[error("no tensor `{name}`")]
    MissingTensor {
        /// The name asked for.
        name: String,
    },
}
