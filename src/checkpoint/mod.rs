//! Model files as named tensors.
//!
//! [`open`](fn@open) takes a file and decides by content what it is; every format
//! answers the one [`Checkpoint`] trait. Bytes are shared with the file's mapping, not
//! copied, wherever the file stores a tensor's elements contiguously. Nothing a file says is trusted: offsets, lengths
//! and shapes are checked against the bytes that are there before anything is allocated, and a pickle is read as data,
//! never executed.

use std::collections::BTreeMap;

use bytes::Bytes;

mod cursor;
mod dtype;
mod error;
mod ggml;
mod gguf;
mod mmap;
mod open;
mod renamed;
mod safetensors;
mod sharded;
mod slices;
#[cfg(feature = "pickle")]
mod torch;

pub use cursor::CutShort;
pub use dtype::Dtype;
pub use error::Error;
pub(crate) use error::listed;
pub use ggml::{Ggml, GgmlFault};
pub use gguf::{Gguf, GgufFault};
pub use open::{Options, open, open_with};
pub use renamed::Renamed;
pub use safetensors::{HeaderFault, Safetensors, write_safetensors};
pub use sharded::Sharded;
#[cfg(feature = "pickle")]
pub use torch::{ArchiveFault, PickleFault, TensorFault, Torch, TorchFault};

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
    /// `dtype.byte_len(&shape)` bytes, shared with the file's mapping where the file stores them contiguously,
    /// and therefore aligned to whatever the file aligns them to: reinterpret with a copy as the fallback.
    pub data: Bytes,
}

/// A file, or several, of named tensors.
pub trait Checkpoint: Send + Sync {
    /// The file format, as `inspect` prints it: `safetensors`, `sharded safetensors`, `torch`, `gguf`, `ggml`.
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

    /// Scalars stored beside the tensors: the `__metadata__` of a safetensors header, the values of a GGUF file, the
    /// plain values of a torch archive under dotted keys (`dims.n_mels`), which a model of whisper.cpp has too.
    fn metadata(&self) -> &BTreeMap<String, String>;
}
