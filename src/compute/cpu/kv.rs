//! Keys and values of one attention layer.

use half::{bf16, f16};

use super::buffers::{Buffer, Buffers};
use super::isa::{Isa, Kernel, Lanes};
use super::vecmath::vectors;
use crate::compute::reference::{MAX_CODE, SMALLEST_QUANTISED};
use crate::compute::{KvFormat, KvShape};

/// Keys and values of each sequence and head, one position after another: `[batch, n_kv_head, capacity, head_dim]`.
pub struct KvCache {
    pub(super) shape: KvShape,
    /// Positions written.
    pub(super) len: usize,
    keys: Store,
    values: Store,
}

/// Values in one format, and for int8 the scale of each position's.
struct Store {
    /// Memory for elements of any type.
    elements: Buffer,
    scales: Buffer,
}

/// One head of one sequence: rows of `head_dim` elements.
#[derive(Clone, Copy)]
pub(super) enum Head<'a> {
    F32(&'a [f32]),
    F16(&'a [f16]),
    Bf16(&'a [bf16]),
    /// With the scale of each row.
    Q8(&'a [i8], &'a [f32]),
}

impl KvFormat {
    /// Bytes of an element.
    fn size(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F16 | Self::Bf16 => 2,
            Self::Q8 => 1,
        }
    }
}

impl KvCache {
    pub(super) fn new(buffers: &Buffers, shape: KvShape) -> Self {
        // Positions that were never written are never read.
        let rows = shape.batch * shape.n_kv_head * shape.capacity;
        let store = || Store {
            elements: buffers.take((rows * shape.head_dim * shape.format.size()).div_ceil(4)),
            scales: buffers.take(if shape.format == KvFormat::Q8 {
                rows
            } else {
                0
            }),
        };
        Self {
            shape,
            len: 0,
            keys: store(),
            values: store(),
        }
    }

    /// Appends `k` and `v` `[batch, new, n_kv_head · head_dim]`.
    pub(super) fn append(&mut self, isa: Isa, k: &[f32], v: &[f32]) {
        let KvShape {
            batch,
            n_kv_head,
            head_dim,
            capacity,
            ..
        } = self.shape;
        let new = k.len() / (batch * n_kv_head * head_dim).max(1);
        assert!(
            self.len + new <= capacity,
            "{} + {new} positions in a cache of {capacity}",
            self.len
        );
        for (store, rows) in [(&mut self.keys, k), (&mut self.values, v)] {
            isa.run(Append {
                shape: self.shape,
                len: self.len,
                new,
                rows,
                store,
            });
        }
        self.len += new;
    }

    pub(super) fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// The keys of head `h` of sequence `b`.
    pub(super) fn keys(&self, b: usize, h: usize) -> Head<'_> {
        self.head(&self.keys, b, h)
    }

    /// The values of head `h` of sequence `b`.
    pub(super) fn values(&self, b: usize, h: usize) -> Head<'_> {
        self.head(&self.values, b, h)
    }

    fn head<'a>(&self, store: &'a Store, b: usize, h: usize) -> Head<'a> {
        let KvShape {
            n_kv_head,
            head_dim,
            capacity,
            format,
            ..
        } = self.shape;
        let first = (b * n_kv_head + h) * capacity;
        let rows = first..first + self.len;
        let elements = rows.start * head_dim..rows.end * head_dim;
        match format {
            KvFormat::F32 => Head::F32(&store.elements[elements]),
            KvFormat::F16 => Head::F16(&bytemuck::cast_slice(&store.elements)[elements]),
            KvFormat::Bf16 => Head::Bf16(&bytemuck::cast_slice(&store.elements)[elements]),
            KvFormat::Q8 => Head::Q8(
                &bytemuck::cast_slice(&store.elements)[elements],
                &store.scales[rows],
            ),
        }
    }
}

struct Append<'a> {
    shape: KvShape,
    len: usize,
    new: usize,
    rows: &'a [f32],
    store: &'a mut Store,
}

impl Kernel for Append<'_> {
    #[inline(always)]
    fn run<L: Lanes>(self) {
        let KvShape {
            n_kv_head,
            head_dim,
            capacity,
            format,
            ..
        } = self.shape;
        for (i, row) in self.rows.chunks_exact(head_dim).enumerate() {
            let (b, position, h) = (
                i / n_kv_head / self.new,
                i / n_kv_head % self.new,
                i % n_kv_head,
            );
            let at = (b * n_kv_head + h) * capacity + self.len + position;
            let elements = at * head_dim..(at + 1) * head_dim;
            match format {
                KvFormat::F32 => self.store.elements[elements].copy_from_slice(row),
                KvFormat::F16 => {
                    let to: &mut [f16] = bytemuck::cast_slice_mut(&mut self.store.elements);
                    for (to, &value) in to[elements].iter_mut().zip(row) {
                        *to = f16::from_f32(value);
                    }
                }
                KvFormat::Bf16 => {
                    let to: &mut [bf16] = bytemuck::cast_slice_mut(&mut self.store.elements);
                    for (to, &value) in to[elements].iter_mut().zip(row) {
                        *to = bf16::from_f32(value);
                    }
                }
                KvFormat::Q8 => {
                    let mut largest = L::splat(0.0);
                    for x in vectors::<L>(row, 0.0) {
                        largest = L::max(L::max(x, L::sub(L::splat(0.0), x)), largest);
                    }
                    let largest = L::largest(largest);
                    let (per_step, scale) = if largest < SMALLEST_QUANTISED {
                        (0.0, 0.0)
                    } else {
                        (MAX_CODE / largest, largest / MAX_CODE)
                    };
                    let to: &mut [i8] = bytemuck::cast_slice_mut(&mut self.store.elements);
                    for (to, &value) in to[elements].iter_mut().zip(row) {
                        *to = (value * per_step).round_ties_even() as i8;
                    }
                    self.store.scales[at] = scale;
                }
            }
        }
    }
}
