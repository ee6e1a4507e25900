//! Normalisation of rows.

use super::isa::{Kernel, Lanes};
use super::vecmath::{filled, lanes_at, load, store};

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
        for row in 0..self.x.len() / width {
            let x = &self.x[row * width..][..width];
            let y = &mut self.y[row * width..][..width];
            let mut total = L::splat(0.0);
            let mut at = 0;
            while at < width {
                total = L::add(total, load::<L, f32>(&x[at..]));
                at += L::WIDTH;
            }
            let mean = L::sum(total) / width as f32;
            let mut squares = L::splat(0.0);
            at = 0;
            while at < width {
                let off = off_mean::<L>(&x[at..], mean);
                squares = L::mul_add(off, off, squares);
                at += L::WIDTH;
            }
            let scale = L::splat(1.0 / (L::sum(squares) / width as f32 + self.eps).sqrt());
            at = 0;
            while at < width {
                let normal = L::mul(off_mean::<L>(&x[at..], mean), scale);
                let (gain, bias) = (
                    load::<L, f32>(&self.gain[at..]),
                    load::<L, f32>(&self.bias[at..]),
                );
                store::<L>(L::mul_add(normal, gain, bias), lanes_at::<L>(y, at));
                at += L::WIDTH;
            }
        }
    }
}

/// `x − mean`, and 0 in the lanes beyond its end.
#[inline(always)]
fn off_mean<L: Lanes>(x: &[f32], mean: f32) -> L::V {
    let x = if x.len() >= L::WIDTH {
        L::load(x)
    } else {
        L::load(&filled(x, mean))
    };
    L::sub(x, L::splat(mean))
}
