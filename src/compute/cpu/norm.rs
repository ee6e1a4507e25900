//! Normalisation of rows.

use super::isa::{Kernel, Lanes};
use super::vecmath::sum;

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
            let mean = sum(x, |x| x) / width as f32;
            let variance = sum(x, |x| (x - mean) * (x - mean)) / width as f32;
            let scale = 1.0 / (variance + self.eps).sqrt();
            for (y, ((&x, &gain), &bias)) in
                y.iter_mut().zip(x.iter().zip(self.gain).zip(self.bias))
            {
                *y = L::mul_add((x - mean) * scale, gain, bias);
            }
        }
    }
}
