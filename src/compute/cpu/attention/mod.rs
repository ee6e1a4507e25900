//! `softmax(scale · q · kᵀ) · v`, head by head.
//!
//! A few queries read keys and values where they lie ([`few`]); many are taken a panel at a time ([`many`]).

mod few;
mod many;

use std::ops::Range;

use super::buffers::Buffers;
use super::isa::Isa;
use super::kv::KvCache;
use super::threads::Threads;
use crate::compute::{Attention, AttentionMask};

/// Up to this many queries, reading keys and values in place beats packing them first.
const FEW_QUERIES: usize = 8;

/// One call of the operation.
#[derive(Clone, Copy)]
pub(super) struct Task<'a> {
    pub(super) isa: Isa,
    pub(super) threads: &'a Threads,
    pub(super) buffers: &'a Buffers,
    pub(super) attention: Attention,
    pub(super) cache: &'a KvCache,
    /// `[batch, new, n_head · head_dim]`.
    pub(super) q: &'a [f32],
    pub(super) batch: usize,
    pub(super) new: usize,
}

impl Task<'_> {
    /// Writes `out`, of the shape of `q`.
    pub(super) fn run(&self, out: &mut [f32]) {
        if self.new <= FEW_QUERIES {
            few::run(self, out);
        } else {
            many::run(self, out);
        }
    }

    fn head_dim(&self) -> usize {
        self.cache.shape.head_dim
    }

    /// Values of a query, all heads together.
    fn width(&self) -> usize {
        self.attention.n_head * self.head_dim()
    }

    /// The cached sequence that sequence `b` of the queries looks at.
    fn sequence(&self, b: usize) -> usize {
        if self.cache.shape.batch == 1 { 0 } else { b }
    }

    /// The head of keys and values that head `h` of the queries looks at.
    fn kv_head(&self, h: usize) -> usize {
        h / (self.attention.n_head / self.cache.shape.n_kv_head)
    }

    /// Keys that query `i` of a sequence sees.
    fn visible(&self, i: usize) -> Range<usize> {
        let len = self.cache.len;
        let end = len - self.new + i + 1;
        match self.attention.mask {
            AttentionMask::Full => 0..len,
            AttentionMask::Causal => 0..end,
            AttentionMask::Window(size) => end.saturating_sub(size)..end,
        }
    }
}
