//! Tensors as torch stores them: an offset, a shape and strides over a storage that others may share.

use bytes::Bytes;

use super::archive::ByteOrder;
use super::pickle::Rebuilt;
use crate::checkpoint::{Dtype, Tensor, TensorInfo};

/// The largest tensor, in bytes, that may be expanded (by a stride of 0) beyond the size of the archive it is in.
/// Real ones are masks and position ids; without a bound, four bytes could ask for all memory.
const MAX_EXPANDED_BYTES: usize = 16 << 20;

/// A tensor over a storage; every element that it names lies inside.
#[derive(Debug)]
pub(super) struct View {
    dtype: Dtype,
    /// Extents, outermost first.
    shape: Vec<usize>,
    /// Elements from one index to the next, for each extent.
    stride: Vec<usize>,
    /// The storage from the tensor's first element on.
    storage: Bytes,
    byte_order: ByteOrder,
}

/// What is wrong with a tensor of a torch archive.
#[derive(Debug, thiserror::Error)]
pub enum TensorFault {
    /// Extents and strides that do not pair up.
    #[error("{extents} extents but {strides} strides")]
    Rank {
        /// Number of extents.
        extents: usize,
        /// Number of strides.
        strides: usize,
    },
    /// A storage shorter than the pickle says.
    #[error("storage `{key}` should have {declared} elements of {dtype} and has {found} bytes")]
    Storage {
        /// The storage's key.
        key: String,
        /// Its element type.
        dtype: Dtype,
        /// Elements according to the pickle.
        declared: usize,
        /// Bytes in the archive.
        found: usize,
    },
    /// An element outside the storage.
    #[error(
        "shape {shape:?} with strides {stride:?} at offset {offset} reaches outside its storage of {elements} elements"
    )]
    OutOfBounds {
        /// The tensor's shape.
        shape: Vec<usize>,
        /// Its strides in elements.
        stride: Vec<usize>,
        /// Its first element.
        offset: usize,
        /// Elements of the storage.
        elements: usize,
    },
    /// A tensor that repeats few elements into many.
    #[error("shape {shape:?} expands a small storage beyond {limit} bytes")]
    Expanded {
        /// The tensor's shape.
        shape: Vec<usize>,
        /// The limit in bytes.
        limit: usize,
    },
}

impl View {
    /// Checks that every element of `rebuilt` lies inside `storage`, a member of an archive of `archive_bytes`.
    pub(super) fn new(
        rebuilt: &Rebuilt<'_>,
        storage: Bytes,
        byte_order: ByteOrder,
        archive_bytes: usize,
    ) -> Result<Self, TensorFault> {
        let Rebuilt {
            shape,
            stride,
            offset,
            ..
        } = rebuilt;
        let dtype = rebuilt.storage.dtype;
        let elements = rebuilt.storage.elements;
        if shape.len() != stride.len() {
            return Err(TensorFault::Rank {
                extents: shape.len(),
                strides: stride.len(),
            });
        }
        if elements
            .checked_mul(dtype.size())
            .is_none_or(|bytes| bytes > storage.len())
        {
            return Err(TensorFault::Storage {
                key: rebuilt.storage.key.to_owned(),
                dtype,
                declared: elements,
                found: storage.len(),
            });
        }
        if end_of(shape, stride, *offset).is_none_or(|end| end > elements) {
            return Err(TensorFault::OutOfBounds {
                shape: shape.clone(),
                stride: stride.clone(),
                offset: *offset,
                elements,
            });
        }
        let limit = archive_bytes.max(MAX_EXPANDED_BYTES);
        // A product that overflows before it meets a zero has a place in no real file either.
        if dtype.byte_len(shape).is_none_or(|bytes| bytes > limit) {
            return Err(TensorFault::Expanded {
                shape: shape.clone(),
                limit,
            });
        }
        let size = dtype.size();
        Ok(Self {
            dtype,
            shape: shape.clone(),
            stride: stride.clone(),
            storage: storage.slice(offset * size..elements * size),
            byte_order,
        })
    }

    pub(super) fn info(&self) -> TensorInfo {
        TensorInfo {
            dtype: self.dtype,
            shape: self.shape.clone(),
        }
    }

    /// The tensor's elements in row-major order: a slice of the storage if they lie there so, otherwise a copy.
    pub(super) fn read(&self) -> Tensor {
        let size = self.dtype.size();
        let data = if self.is_contiguous() {
            let bytes = self.shape.iter().product::<usize>() * size;
            self.storage.slice(..bytes)
        } else {
            Bytes::from(match size {
                1 => self.gather::<1>(),
                2 => self.gather::<2>(),
                4 => self.gather::<4>(),
                _ => self.gather::<8>(),
            })
        };
        let data = match self.byte_order {
            ByteOrder::Big if size > 1 => {
                let mut swapped = data.to_vec();
                swapped.chunks_exact_mut(size).for_each(<[u8]>::reverse);
                Bytes::from(swapped)
            }
            _ => data,
        };
        Tensor {
            dtype: self.dtype,
            shape: self.shape.clone(),
            data,
        }
    }

    /// Whether the elements lie one after the other in row-major order; the stride of an extent of 1 does not matter.
    fn is_contiguous(&self) -> bool {
        if self.shape.contains(&0) {
            return true;
        }
        let mut expected = 1;
        for (&extent, &stride) in self.shape.iter().zip(&self.stride).rev() {
            if extent != 1 && stride != expected {
                return false;
            }
            expected *= extent;
        }
        true
    }

    /// Copies the elements, of `SIZE` bytes each, in row-major order.
    fn gather<const SIZE: usize>(&self) -> Vec<u8> {
        let (elements, _) = self.storage.as_chunks::<SIZE>();
        let mut gathered = Vec::with_capacity(self.shape.iter().product::<usize>() * SIZE);
        // A contiguous tensor is never gathered, so there is at least one extent and none is 0.
        let Some((&columns, outer)) = self.shape.split_last() else {
            return gathered;
        };
        let column_stride = self.stride[outer.len()];
        let mut index = vec![0; outer.len()];
        loop {
            let row: usize = index.iter().zip(&self.stride).map(|(i, s)| i * s).sum();
            for column in 0..columns {
                gathered.extend_from_slice(&elements[row + column * column_stride]);
            }
            // The next row, the last outer index counting fastest.
            let Some(axis) = (0..outer.len()).rfind(|&axis| index[axis] + 1 < outer[axis]) else {
                return gathered;
            };
            index[axis] += 1;
            index[axis + 1..].fill(0);
        }
    }
}

/// One past the last element that a tensor names; its offset if it has no elements. `None` when that overflows.
fn end_of(shape: &[usize], stride: &[usize], offset: usize) -> Option<usize> {
    if shape.contains(&0) {
        return Some(offset);
    }
    let last = shape
        .iter()
        .zip(stride)
        .try_fold(offset, |last, (&extent, &stride)| {
            last.checked_add((extent - 1).checked_mul(stride)?)
        })?;
    last.checked_add(1)
}
