//! `softmax(q · kᵀ / √head_dim) · v`, head by head.

use rayon::prelude::*;

use super::buffers::Buffers;
use super::gemm::{Epilogue, Pack, Panels, Rows, panel_width, product};
use super::isa::{Isa, Kernel, Lanes};
use super::vecmath::{self, Unary, dot, filled, store, vectors};
use crate::compute::{Activation, AttentionMask};

/// Up to this many queries, reading keys and values in place beats packing them first.
const FEW_QUERIES: usize = 8;
/// Queries in one task: their scores over 1500 keys fit the second-level cache.
const TASK_QUERIES: usize = 48;

const PLAIN: Epilogue = Epilogue {
    bias: None,
    activation: Activation::Identity,
};

/// One sequence's keys and values, `[len, width]` each.
#[derive(Clone, Copy)]
pub(super) struct KeysValues<'a> {
    pub(super) keys: &'a [f32],
    pub(super) values: &'a [f32],
}

/// What one call of the operation shares.
#[derive(Clone, Copy)]
pub(super) struct Attention<'a> {
    pub(super) isa: Isa,
    pub(super) buffers: &'a Buffers,
    pub(super) n_head: usize,
    pub(super) width: usize,
    pub(super) mask: AttentionMask,
}

impl Attention<'_> {
    fn head_dim(&self) -> usize {
        self.width / self.n_head
    }

    fn scale(&self) -> f32 {
        1.0 / (self.head_dim() as f32).sqrt()
    }

    /// Keys that query `i` of `new` sees, of `len`.
    fn visible(&self, i: usize, new: usize, len: usize) -> usize {
        match self.mask {
            AttentionMask::Full => len,
            AttentionMask::Causal => len - new + i + 1,
        }
    }

    /// One sequence: `q` and `out` `[new, width]`.
    pub(super) fn run(&self, q: &[f32], kv: KeysValues, out: &mut [f32]) {
        if q.len() <= FEW_QUERIES * self.width {
            self.run_few(q, kv, out);
        } else {
            self.run_many(q, kv, out);
        }
    }

    /// A task for each head of each query.
    fn run_few(&self, q: &[f32], kv: KeysValues, out: &mut [f32]) {
        let (head_dim, width) = (self.head_dim(), self.width);
        let (new, len) = (q.len() / width, kv.keys.len() / width);
        out.par_chunks_mut(head_dim)
            .enumerate()
            .for_each(|(task, out)| {
                let (i, h) = (task / self.n_head, task % self.n_head);
                let len = self.visible(i, new, len);
                let head_of = |x| head(x, width, h, head_dim, len);
                let q = &q[task * head_dim..][..head_dim];
                let mut scores = self.buffers.take(len);
                self.isa.run(OneQuery {
                    q,
                    k: head_of(kv.keys),
                    v: head_of(kv.values),
                    scale: self.scale(),
                    scores: &mut scores,
                    out,
                });
            });
    }

    /// Keys and values are packed for each head, then a task for each block of queries goes through the heads.
    fn run_many(&self, q: &[f32], kv: KeysValues, out: &mut [f32]) {
        let (head_dim, width, nr) = (self.head_dim(), self.width, panel_width(self.isa));
        let (new, len) = (q.len() / width, kv.keys.len() / width);
        let head_of = |x, h| head(x, width, h, head_dim, len);

        let keys_len = len.next_multiple_of(nr) * head_dim;
        let mut keys = self.buffers.take(keys_len * self.n_head);
        keys.par_chunks_mut(nr * head_dim)
            .enumerate()
            .for_each(|(chunk, out)| {
                let (h, panel) = (chunk / len.div_ceil(nr), chunk % len.div_ceil(nr));
                self.isa.run(Pack {
                    matrix: &head_of(kv.keys, h),
                    from: panel * nr,
                    nr,
                    out,
                });
            });
        let values_len = head_dim.next_multiple_of(nr) * len;
        let mut values = self.buffers.take(values_len * self.n_head);
        values
            .par_chunks_mut(nr * len)
            .enumerate()
            .for_each(|(chunk, out)| {
                let (h, panel) = (chunk / head_dim.div_ceil(nr), chunk % head_dim.div_ceil(nr));
                pack_columns(head_of(kv.values, h), panel * nr, nr, out);
            });

        out.par_chunks_mut(TASK_QUERIES * width)
            .enumerate()
            .for_each(|(task, out)| {
                let first = task * TASK_QUERIES;
                let rows = out.len() / width;
                let mut scores = self.buffers.take(rows * len);
                let mut mixed = self.buffers.take(rows * head_dim);
                for h in 0..self.n_head {
                    let q = head(&q[first * width..], width, h, head_dim, rows);
                    let k = Panels {
                        values: &keys[h * keys_len..][..keys_len],
                        n: len,
                        k: head_dim,
                    };
                    product(self.isa, q, k, PLAIN, self.buffers, &mut scores);
                    for (i, scores) in scores.chunks_exact_mut(len).enumerate() {
                        let visible = self.visible(first + i, new, len);
                        self.isa.run(Softmax {
                            scores,
                            visible,
                            scale: self.scale(),
                        });
                    }
                    let weights = Rows {
                        values: &scores,
                        rows,
                        width: len,
                        stride: len,
                    };
                    let v = Panels {
                        values: &values[h * values_len..][..values_len],
                        n: head_dim,
                        k: len,
                    };
                    product(self.isa, weights, v, PLAIN, self.buffers, &mut mixed);
                    for (out, mixed) in out
                        .chunks_exact_mut(width)
                        .zip(mixed.chunks_exact(head_dim))
                    {
                        out[h * head_dim..][..head_dim].copy_from_slice(mixed);
                    }
                }
            });
    }
}

/// Head `h` of `x` `[rows, width]`.
fn head(x: &[f32], width: usize, h: usize, head_dim: usize, rows: usize) -> Rows<'_> {
    Rows {
        values: &x[h * head_dim..],
        rows,
        width: head_dim,
        stride: width,
    }
}

/// Packs `nr` columns of a matrix, starting at `from`, into one panel.
fn pack_columns(matrix: Rows, from: usize, nr: usize, out: &mut [f32]) {
    let taken = nr.min(matrix.width - from);
    for (i, out) in out.chunks_exact_mut(nr).enumerate() {
        out[..taken].copy_from_slice(&matrix.row(i)[from..from + taken]);
        out[taken..].fill(0.0);
    }
}

/// `scores` become `softmax(scale · scores)` over the first `visible` of them, 0 beyond.
struct Softmax<'a> {
    scores: &'a mut [f32],
    visible: usize,
    scale: f32,
}

impl Kernel for Softmax<'_> {
    #[inline(always)]
    fn run<L: Lanes>(self) {
        let (seen, hidden) = self.scores.split_at_mut(self.visible);
        let inverse = 1.0 / exponentials::<L>(seen, self.scale);
        for score in seen {
            *score *= inverse;
        }
        hidden.fill(0.0);
    }
}

/// Turns `scores` into `e^(scale · (score − highest))` and gives their sum.
#[inline(always)]
fn exponentials<L: Lanes>(scores: &mut [f32], scale: f32) -> f32 {
    let mut highest = L::splat(f32::NEG_INFINITY);
    for x in vectors::<L>(scores, f32::NEG_INFINITY) {
        highest = L::max(x, highest);
    }
    vecmath::map::<L>(
        scores,
        &Exponential {
            highest: L::largest(highest),
            scale,
        },
    );
    let mut total = L::splat(0.0);
    for x in vectors::<L>(scores, 0.0) {
        total = L::add(total, x);
    }
    L::sum(total)
}

/// `e^(scale · (x − highest))`.
struct Exponential {
    highest: f32,
    scale: f32,
}

impl Unary for Exponential {
    #[inline(always)]
    fn apply<L: Lanes>(&self, x: L::V) -> L::V {
        vecmath::exp::<L>(L::mul(
            L::sub(x, L::splat(self.highest)),
            L::splat(self.scale),
        ))
    }
}

/// One head of one query.
struct OneQuery<'a> {
    q: &'a [f32],
    k: Rows<'a>,
    v: Rows<'a>,
    scale: f32,
    scores: &'a mut [f32],
    out: &'a mut [f32],
}

impl Kernel for OneQuery<'_> {
    #[inline(always)]
    fn run<L: Lanes>(self) {
        for (j, score) in self.scores.iter_mut().enumerate() {
            *score = dot::<L, f32>(self.q, self.k.row(j));
        }
        let inverse = 1.0 / exponentials::<L>(self.scores, self.scale);
        let mut from = 0;
        let mut blocks = self.out.chunks_exact_mut(4 * L::WIDTH);
        for out in &mut blocks {
            weighted_sum::<L, 4>(self.scores, self.v, from, inverse, out);
            from += out.len();
        }
        for out in blocks.into_remainder().chunks_mut(L::WIDTH) {
            weighted_sum::<L, 1>(self.scores, self.v, from, inverse, out);
            from += out.len();
        }
    }
}

/// Columns of `Σ wⱼ · vⱼ` from `from` on, times `factor`: up to `N` registers of them.
#[inline(always)]
fn weighted_sum<L: Lanes, const N: usize>(
    weights: &[f32],
    v: Rows,
    from: usize,
    factor: f32,
    out: &mut [f32],
) {
    let mut sums = [L::splat(0.0); N];
    for (j, &weight) in weights.iter().enumerate() {
        let v = &v.row(j)[from..from + out.len()];
        let weight = L::splat(weight);
        for (i, sum) in sums.iter_mut().enumerate() {
            let v = &v[i * L::WIDTH..];
            let v = if v.len() >= L::WIDTH {
                L::load(v)
            } else {
                L::load(&filled(v, 0.0))
            };
            *sum = L::mul_add(weight, v, *sum);
        }
    }
    for (sum, out) in sums.into_iter().zip(out.chunks_mut(L::WIDTH)) {
        store::<L>(L::mul(sum, L::splat(factor)), out);
    }
}
