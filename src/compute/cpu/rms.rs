//! Division of rows by their length.

use super::isa::{Kernel, Lanes};
use super::lanewise::{Binary, map_into, zip_into};
use super::vecmath::{Unary, vectors};

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
            let scale = 1.0 / mean.sqrt();
            zip_into::<L>(x, self.gain, y, &Scaled { shrink, scale });
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
            let scale = 1.0 / length;
            map_into::<L>(x, y, &Scaled { shrink, scale });
        }
    }
}

/// `x · shrink · scale`, and that times a gain.
struct Scaled {
    shrink: f32,
    scale: f32,
}

impl Unary for Scaled {
    #[inline(always)]
    fn apply<L: Lanes>(&self, x: L::V) -> L::V {
        L::mul(L::mul(x, L::splat(self.shrink)), L::splat(self.scale))
    }
}

impl Binary for Scaled {
    #[inline(always)]
    fn apply<L: Lanes>(&self, x: L::V, gain: L::V) -> L::V {
        L::mul(Unary::apply::<L>(self, x), gain)
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
