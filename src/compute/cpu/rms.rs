//! Division of rows by their length.

use super::isa::{Kernel, Lanes};
use super::vecmath::{store, vectors};

/// Rows whose squares overflow are shrunk by it first: the square of the largest f32 so shrunk is 2⁹⁶.
const SHRINK: f32 = 1.0 / (1u128 << 80) as f32;

/// `x / √(mean(x²) + eps) · gain` for each row of `gain.len()` values.
pub(super) struct RmsNorm<'a> {
    pub(super) x: &'a [f32],
    pub(super) gain: &'a [f32],
    pub(super) eps: f32,
    pub(super) y: &'a mut [f32],
}

impl Kernel for RmsNorm<'_> {
    #[inline(always)]
    fn run<L: Lanes>(self) {
        let width = self.gain.len();
        let rows = self.x.chunks_exact(width);
        for (y, x) in self.y.chunks_exact_mut(width).zip(rows) {
            let squares = sum_of_squares::<L>(x, 1.0);
            // Next to squares that overflow, no eps counts.
            let (shrink, mean) = if squares < f32::INFINITY || squares.is_nan() {
                (1.0, squares / width as f32 + self.eps)
            } else {
                (SHRINK, sum_of_squares::<L>(x, SHRINK) / width as f32)
            };
            let (shrink, scale) = (L::splat(shrink), L::splat(1.0 / mean.sqrt()));
            let operands = vectors::<L>(x, 0.0).zip(vectors::<L>(self.gain, 0.0));
            for ((x, gain), y) in operands.zip(y.chunks_mut(L::WIDTH)) {
                store::<L>(L::mul(L::mul(L::mul(x, shrink), scale), gain), y);
            }
        }
    }
}

/// `x / max(√Σx², 10⁻¹²)` for each row of `width` values.
pub(super) struct L2Normalize<'a> {
    pub(super) x: &'a [f32],
    pub(super) width: usize,
    pub(super) y: &'a mut [f32],
}

impl Kernel for L2Normalize<'_> {
    #[inline(always)]
    fn run<L: Lanes>(self) {
        let rows = self.x.chunks_exact(self.width);
        for (y, x) in self.y.chunks_exact_mut(self.width).zip(rows) {
            let squares = sum_of_squares::<L>(x, 1.0);
            let (shrink, squares) = if squares < f32::INFINITY || squares.is_nan() {
                (1.0, squares)
            } else {
                (SHRINK, sum_of_squares::<L>(x, SHRINK))
            };
            // `max` would hide NaN.
            let length = squares.sqrt();
            let length = if length < 1e-12 { 1e-12 } else { length };
            let (shrink, scale) = (L::splat(shrink), L::splat(1.0 / length));
            for (x, y) in vectors::<L>(x, 0.0).zip(y.chunks_mut(L::WIDTH)) {
                store::<L>(L::mul(L::mul(x, shrink), scale), y);
            }
        }
    }
}

/// `Σ (shrink · xᵢ)²`.
#[inline(always)]
fn sum_of_squares<L: Lanes>(x: &[f32], shrink: f32) -> f32 {
    let shrink = L::splat(shrink);
    let (mut even, mut odd) = (L::splat(0.0), L::splat(0.0));
    let mut pairs = x.chunks_exact(2 * L::WIDTH);
    for pair in &mut pairs {
        let (a, b) = (L::load(pair), L::load(&pair[L::WIDTH..]));
        let (a, b) = (L::mul(a, shrink), L::mul(b, shrink));
        even = L::mul_add(a, a, even);
        odd = L::mul_add(b, b, odd);
    }
    for x in vectors::<L>(pairs.remainder(), 0.0) {
        let x = L::mul(x, shrink);
        even = L::mul_add(x, x, even);
    }
    L::sum(L::add(even, odd))
}
