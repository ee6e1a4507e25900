//! A task for each head of each query.

use super::Task;
use crate::compute::cpu::isa::{Kernel, Lanes};
use crate::compute::cpu::kv::Head;
use crate::compute::cpu::lanewise::{Product, fold_into};
use crate::compute::cpu::vecmath::{self, Stored, dot, store};

pub(super) fn run(task: &Task, out: &mut [f32]) {
    let (head_dim, n_head) = (task.head_dim(), task.attention.n_head);
    task.threads.chunks(out, head_dim, |i, out| {
        let (query, h) = (i / n_head, i % n_head);
        let (b, kv_head) = (task.sequence(query / task.new), task.kv_head(h));
        let visible = task.visible(query % task.new);
        let mut scores = task.buffers.take(visible.len());
        task.isa.run(OneQuery {
            q: &task.q[i * head_dim..][..head_dim],
            keys: task.cache.keys(b, kv_head).rows(visible.clone(), head_dim),
            values: task.cache.values(b, kv_head).rows(visible, head_dim),
            scale: task.attention.scale,
            scores: &mut scores,
            out,
        });
    });
}

impl Head<'_> {
    fn rows(self, rows: std::ops::Range<usize>, head_dim: usize) -> Self {
        let elements = rows.start * head_dim..rows.end * head_dim;
        match self {
            Self::F32(all) => Self::F32(&all[elements]),
            Self::F16(all) => Self::F16(&all[elements]),
            Self::Bf16(all) => Self::Bf16(&all[elements]),
            Self::Q8(all, scales) => Self::Q8(&all[elements], &scales[rows]),
        }
    }
}

/// One head of one query, and the keys and values that it sees.
struct OneQuery<'a> {
    q: &'a [f32],
    keys: Head<'a>,
    values: Head<'a>,
    scale: f32,
    /// Room for one a key.
    scores: &'a mut [f32],
    out: &'a mut [f32],
}

impl Kernel for OneQuery<'_> {
    #[inline(always)]
    fn run<L: Lanes>(self) {
        let Self {
            q,
            keys,
            values,
            scale,
            scores,
            out,
        } = self;
        match keys {
            Head::F32(keys) => score::<L, _>(q, keys, scores),
            Head::F16(keys) => score::<L, _>(q, keys, scores),
            Head::Bf16(keys) => score::<L, _>(q, keys, scores),
            Head::Q8(keys, scales) => {
                score::<L, _>(q, keys, scores);
                fold_into::<L>(scales, scores, &Product);
            }
        }
        let factor = 1.0 / vecmath::exponentials::<L>(scores, scale);
        match values {
            Head::F32(values) => mix::<L, _>(scores, values, factor, out),
            Head::F16(values) => mix::<L, _>(scores, values, factor, out),
            Head::Bf16(values) => mix::<L, _>(scores, values, factor, out),
            Head::Q8(values, scales) => {
                fold_into::<L>(scales, scores, &Product);
                mix::<L, _>(scores, values, factor, out);
            }
        }
    }
}

/// The product of `q` with each of `keys`, `[len, head_dim]`.
#[inline(always)]
fn score<L: Lanes, T: Stored>(q: &[f32], keys: &[T], scores: &mut [f32]) {
    for j in 0..scores.len() {
        scores[j] = dot::<L, T>(q, &keys[j * q.len()..][..q.len()]);
    }
}

/// `factor · Σ wⱼ · vⱼ`, values `[len, head_dim]`.
#[inline(always)]
fn mix<L: Lanes, T: Stored>(weights: &[f32], values: &[T], factor: f32, out: &mut [f32]) {
    let head_dim = out.len();
    let mut from = 0;
    while from + 4 * L::WIDTH <= head_dim {
        let out = &mut out[from..from + 4 * L::WIDTH];
        mix_columns::<L, T, 4>(weights, values, head_dim, from, factor, out);
        from += 4 * L::WIDTH;
    }
    while from < head_dim {
        let out = vecmath::lanes_at::<L>(out, from);
        mix_columns::<L, T, 1>(weights, values, head_dim, from, factor, out);
        from += L::WIDTH;
    }
}

/// Columns of the mixture from `from` on: `N` registers of them, or a part of one. Even and odd rows have sums of their
/// own, to hide the latency of an addition.
#[inline(always)]
fn mix_columns<L: Lanes, T: Stored, const N: usize>(
    weights: &[f32],
    values: &[T],
    head_dim: usize,
    from: usize,
    factor: f32,
    out: &mut [f32],
) {
    let mut sums = [[L::splat(0.0); N]; 2];
    for j in 0..weights.len() {
        let row = &values[j * head_dim + from..][..out.len()];
        let weight = L::splat(weights[j]);
        for i in 0..N {
            let value = vecmath::load::<L, T>(&row[i * L::WIDTH..]);
            sums[j % 2][i] = L::mul_add(weight, value, sums[j % 2][i]);
        }
    }
    for i in 0..N {
        let sum = L::add(sums[0][i], sums[1][i]);
        let out = vecmath::lanes_at::<L>(out, i * L::WIDTH);
        store::<L>(L::mul(sum, L::splat(factor)), out);
    }
}
