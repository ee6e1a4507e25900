//! Tensors that lie in a file one by one, as they are.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;

use bytes::Bytes;

use super::error::printable;
use super::{Dtype, Error, Tensor, TensorInfo};

/// Named ranges of a file's bytes.
#[derive(Debug)]
pub(super) struct Slices {
    /// The file, for messages.
    pub(super) path: PathBuf,
    pub(super) bytes: Bytes,
    pub(super) slots: BTreeMap<String, Slot>,
}

/// A tensor's place in the bytes, inside them and as long as type and shape say.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) dtype: Dtype,
    pub(super) shape: Vec<usize>,
    pub(super) range: Range<usize>,
}

impl Slices {
    pub(super) fn names(&self) -> Vec<&str> {
        self.slots.keys().map(String::as_str).collect()
    }

    pub(super) fn info(&self, name: &str) -> Option<TensorInfo> {
        let slot = self.slots.get(name)?;
        Some(TensorInfo {
            dtype: slot.dtype,
            shape: slot.shape.clone(),
        })
    }

    /// The tensor `name`, sharing the file's bytes.
    ///
    /// # Errors
    /// There is none, or its elements have no bytes of their own.
    pub(super) fn tensor(&self, name: &str) -> Result<Tensor, Error> {
        let slot = self
            .slots
            .get(name)
            .ok_or_else(|| Error::MissingTensor { name: name.into() })?;
        if slot.dtype.is_quantised() {
            return Err(Error::Quantised {
                path: self.path.clone(),
                tensor: printable(name),
                dtype: slot.dtype,
            });
        }
        Ok(Tensor {
            dtype: slot.dtype,
            shape: slot.shape.clone(),
            data: self.bytes.slice(slot.range.clone()),
        })
    }
}
