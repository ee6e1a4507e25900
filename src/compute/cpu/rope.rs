//! Rotary position embedding.

use super::isa::{Kernel, Lanes};

use super::vecmath::{load, store};
use crate::compute::RopePairing;

/// Turns the pairs of every head: rows of `width` values from row `first` of `[batch, length, width]` on.
pub(super) struct Turn<'a> {
    pub(super) x: &'a [f32],
    pub(super) first: usize,
    pub(super) length: usize,
    pub(super) width: usize,
    pub(super) offsets: &'a [usize],
    pub(super) angles: Angles<'a>,
    pub(super) y: &'a mut [f32],
}

/// What [`crate::compute::Rope`] holds, in memory; `half` is the width of its tables.
#[derive(Clone, Copy)]
pub(super) struct Angles<'a> {
    pub(super) cos: &'a [f32],
    pub(super) sin: &'a [f32],
    pub(super) half: usize,
    pub(super) head_dim: usize,
    pub(super) pairing: RopePairing,
}

impl Kernel for Turn<'_> {
    #[inline(always)]
    fn run<L: Lanes>(self) {
        let Angles { half, head_dim, .. } = self.angles;
        let rows = self
            .y
            .chunks_exact_mut(self.width)
            .zip(self.x.chunks_exact(self.width));
        for ((y, x), row) in rows.zip(self.first..) {
            let position = self.offsets[row / self.length] + row % self.length;
            let cos = &self.angles.cos[position * half..][..half];
            let sin = &self.angles.sin[position * half..][..half];
            let heads = y.chunks_exact_mut(head_dim).zip(x.chunks_exact(head_dim));
            for (y, x) in heads {
                let ((turned, passed), (x, rest)) =
                    (y.split_at_mut(2 * half), x.split_at(2 * half));
                match self.angles.pairing {
                    RopePairing::Halves => turn_halves::<L>(x, cos, sin, turned),
                    RopePairing::Interleaved => turn_interleaved(x, cos, sin, turned),
                }
                passed.copy_from_slice(rest);
            }
        }
    }
}

#[inline(always)]
fn turn_halves<L: Lanes>(x: &[f32], cos: &[f32], sin: &[f32], y: &mut [f32]) {
    let ((a, b), (a_out, b_out)) = (x.split_at(cos.len()), y.split_at_mut(cos.len()));
    let mut at = 0;
    while at < cos.len() {
        let (a, b) = (load::<L, f32>(&a[at..]), load::<L, f32>(&b[at..]));
        let (cos, sin) = (load::<L, f32>(&cos[at..]), load::<L, f32>(&sin[at..]));
        let minus_b = L::sub(L::splat(0.0), b);
        let turned = L::mul_add(a, cos, L::mul(minus_b, sin));
        store::<L>(turned, &mut a_out[at..]);
        store::<L>(L::mul_add(b, cos, L::mul(a, sin)), &mut b_out[at..]);
        at += L::WIDTH;
    }
}

/// The compiler takes the pairs apart in registers, which [`Lanes`] cannot say.
#[inline(always)]
fn turn_interleaved(x: &[f32], cos: &[f32], sin: &[f32], y: &mut [f32]) {
    let pairs = y.chunks_exact_mut(2).zip(x.chunks_exact(2));
    for ((y, x), (cos, sin)) in pairs.zip(cos.iter().zip(sin)) {
        y[0] = x[0] * cos - x[1] * sin;
        y[1] = x[1] * cos + x[0] * sin;
    }
}
