//! `c = activation(a · wᵀ + bias)` for a few rows: each weight is read once, where it lies.

use rayon::prelude::*;

use super::gemm::{Epilogue, Rows};
use super::isa::{Isa, Kernel, Lanes};
use super::vecmath::{MAX_WIDTH, dot, widen};
use crate::compute::weight::{Row, Weight};

/// Up to this many rows, reading the weights in place beats packing them first.
pub(super) const MAX_ROWS: usize = 32;
/// Multiplications that are worth a task of their own.
const TASK_PRODUCTS: usize = 64 * 1024;

/// `c` `[a.rows, w.rows]` from `a` `[rows, k]` and `w` `[n, k]`; `turned` is scratch of as many values as `c`.
pub(super) fn matvec(
    isa: Isa,
    a: Rows,
    w: &Weight,
    epilogue: Epilogue,
    turned: &mut [f32],
    c: &mut [f32],
) {
    let (m, n, k) = (a.rows, w.rows(), w.cols());
    assert!(n > 0 && k > 0, "a weight of {n} x {k}");
    assert_eq!(a.width, k, "depth of a product");
    assert_eq!(c.len(), m * n, "size of a product");
    if m == 0 {
        return;
    }
    let per_task = (TASK_PRODUCTS / (k * m))
        .clamp(1, n)
        .next_multiple_of(MAX_WIDTH);
    // Tasks own stretches of columns, which lie apart in `c` unless it is one row: they write the transpose, which is
    // turned afterwards.
    let columns = if m == 1 {
        &mut *c
    } else {
        &mut turned[..m * n]
    };
    columns
        .par_chunks_mut(per_task * m)
        .enumerate()
        .for_each(|(task, out)| {
            isa.run(Columns {
                a,
                w,
                from: task * per_task,
                epilogue,
                out,
            });
        });
    if m == 1 {
        return;
    }
    for (i, c) in c.chunks_exact_mut(n).enumerate() {
        for (c, turned) in c.iter_mut().zip(turned.chunks_exact(m)) {
            *c = turned[i];
        }
    }
}

/// Columns of the product from `from` on: `out` `[columns, a.rows]`.
struct Columns<'a> {
    a: Rows<'a>,
    w: &'a Weight,
    from: usize,
    epilogue: Epilogue<'a>,
    out: &'a mut [f32],
}

impl Kernel for Columns<'_> {
    #[inline(always)]
    fn run<L: Lanes>(self) {
        let m = self.a.rows;
        if m == 1 {
            let a = self.a.row(0);
            for (j, out) in self.out.iter_mut().enumerate() {
                *out = dot_stored::<L>(a, self.w.row(self.from + j));
            }
            self.epilogue.apply::<L>(self.from, self.out);
            return;
        }
        let mut wide = vec![0.0; self.a.width];
        for (j, out) in self.out.chunks_exact_mut(m).enumerate() {
            widen::<L>(self.w.row(self.from + j), &mut wide);
            for (i, out) in out.iter_mut().enumerate() {
                *out = dot::<L, f32>(self.a.row(i), &wide);
                self.epilogue
                    .apply::<L>(self.from + j, std::slice::from_mut(out));
            }
        }
    }
}

/// A dot product with weights as they are stored.
#[inline(always)]
fn dot_stored<L: Lanes>(a: &[f32], w: Row) -> f32 {
    match w {
        Row::F32(w) => dot::<L, _>(a, w),
        Row::F16(w) => dot::<L, _>(a, w),
        Row::Bf16(w) => dot::<L, _>(a, w),
        Row::Q8(w, scale) => dot::<L, _>(a, w) * scale,
    }
}
