//! Normalisation of rows.

use super::isa::{Kernel, Lanes};
use super::vecmath::{store, vectors};

/// `(x − mean) / √(variance + eps) · gain + bias` for each row of `gain.len()` values.
pub(super) struct LayerNorm<'a> {
    pub(super) x: &'a [f32],
    pub(super) gain: &'a [f32],
    pub(super) bias: &'a [f32],
    pub(super) eps: f32,
    pub(super) y: &'a mut [f32],
}

impl Kernel for LayerNorm<'_> {
    #[inline(always)]
    fn run<L: Lanes>(self) {
        let width = self.gain.len();
        for (y, x) in self
            .y
            .chunks_exact_mut(width)
            .zip(self.x.chunks_exact(width))
        {
            let mut total = L::splat(0.0);
            for x in vectors::<L>(x, 0.0) {
                total = L::add(total, x);
            }
            let mean = L::sum(total) / width as f32;
            let mut squares = L::splat(0.0);
            for x in vectors::<L>(x, mean) {
                let off = L::sub(x, L::splat(mean));
                squares = L::mul_add(off, off, squares);
            }
            let scale = 1.0 / (L::sum(squares) / width as f32 + self.eps).sqrt();

            let operands = vectors::<L>(x, 0.0)
                .zip(vectors::<L>(self.gain, 0.0))
                .zip(vectors::<L>(self.bias, 0.0));
            for (((x, gain), bias), y) in operands.zip(y.chunks_mut(L::WIDTH)) {
                let normal = L::mul(L::sub(x, L::splat(mean)), L::splat(scale));
                store::<L>(L::mul_add(normal, gain, bias), y);
            }
        }
    }
}
