//! Many positions become one.

use super::activation::nan_or_zero;
use super::isa::{Kernel, Lanes};
use super::lanewise::{Binary, Sum, fold_into};
use crate::compute::Pool;

/// Columns that are pooled at a time: their results stay in the first-level cache.
const COLUMNS: usize = 1024;

/// `y` `[width]` from the rows of `x` `[rows, width]`; zeros when there are none.
pub(super) struct Pooled<'a> {
    pub(super) x: &'a [f32],
    pub(super) pool: Pool,
    pub(super) y: &'a mut [f32],
}

impl Kernel for Pooled<'_> {
    #[inline(always)]
    fn run<L: Lanes>(self) {
        let width = self.y.len();
        let rows = self.x.len() / width;
        if rows == 0 {
            return self.y.fill(0.0);
        }
        for (block, y) in self.y.chunks_mut(COLUMNS).enumerate() {
            let columns = block * COLUMNS..block * COLUMNS + y.len();
            y.copy_from_slice(&self.x[columns.clone()]);
            for row in self.x.chunks_exact(width).skip(1) {
                let row = &row[columns.clone()];
                match self.pool {
                    Pool::Mean => fold_into::<L>(row, y, &Sum),
                    Pool::Max => fold_into::<L>(row, y, &Highest),
                }
            }
            if self.pool == Pool::Mean {
                for y in y {
                    *y /= rows as f32;
                }
            }
        }
    }
}

/// The higher of both, NaN when one is.
struct Highest;

impl Binary for Highest {
    #[inline(always)]
    fn apply<L: Lanes>(&self, a: L::V, b: L::V) -> L::V {
        L::add(L::max(a, b), nan_or_zero::<L>(a))
    }
}
