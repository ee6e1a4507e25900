//! Elementary functions and reductions over vectors.

use std::marker::PhantomData;

use half::{bf16, f16};

use super::isa::Lanes;
use crate::compute::weight::Row;

/// `eˣ`, within 2 ULP for x in [−87, 88]; 0 below −87.3, and as at 88.3 above that.
///
/// Cody and Waite's reduction, `x = n·ln 2 + r` with |r| ≤ ln 2 / 2, then the Taylor polynomial of degree 7, whose
/// remainder r⁸/8! is below 6·10⁻⁹.
#[inline(always)]
pub(super) fn exp<L: Lanes>(x: L::V) -> L::V {
    /// Adding and subtracting it rounds to a whole number, which stays in the low bits of the sum.
    const ROUND: f32 = 12_582_912.0; // 1.5 · 2²³
    const LN_2_HIGH: f32 = 0.693_359_4; // 9 bits of ln 2, so that n times it is exact
    const LN_2_LOW: f32 = -2.121_944_4e-4;
    const LOWEST: f32 = -87.3;
    const HIGHEST: f32 = 88.3;

    let clamped = L::min(L::max(x, L::splat(LOWEST)), L::splat(HIGHEST));
    let shifted = L::mul_add(clamped, L::splat(std::f32::consts::LOG2_E), L::splat(ROUND));
    let n = L::sub(shifted, L::splat(ROUND));
    let r = L::mul_add(n, L::splat(-LN_2_HIGH), clamped);
    let r = L::mul_add(n, L::splat(-LN_2_LOW), r);
    let mut p = L::splat(1.0 / 5040.0);
    for coefficient in [
        1.0 / 720.0,
        1.0 / 120.0,
        1.0 / 24.0,
        1.0 / 6.0,
        0.5,
        1.0,
        1.0,
    ] {
        p = L::mul_add(p, r, L::splat(coefficient));
    }
    L::where_at_least(x, L::splat(LOWEST), L::scale_by_power(p, shifted))
}

/// The error function, within 5·10⁻⁷ absolute.
///
/// The odd rational function x·P(x²)/Q(x²) with the coefficients of Eigen's single-precision `erf`; beyond |x| = 4 the
/// value rounds to ±1.
#[inline(always)]
pub(super) fn erf<L: Lanes>(x: L::V) -> L::V {
    const P: [f32; 7] = [
        -2.726_142_3e-10,
        2.770_681_4e-8,
        -2.101_024e-6,
        -5.692_506_4e-5,
        -7.349_906_3e-4,
        -2.954_6e-3,
        -1.609_603_3e-2,
    ];
    const Q: [f32; 5] = [
        -1.456_607_2e-5,
        -2.133_740_6e-4,
        -1.682_827e-3,
        -7.373_329e-3,
        -1.426_473_9e-2,
    ];

    let x = L::min(L::max(x, L::splat(-4.0)), L::splat(4.0));
    let square = L::mul(x, x);
    L::div(
        L::mul(x, polynomial::<L>(square, &P)),
        polynomial::<L>(square, &Q),
    )
}

/// The polynomial of the coefficients, highest power first.
#[inline(always)]
fn polynomial<L: Lanes>(x: L::V, coefficients: &[f32]) -> L::V {
    let mut y = L::splat(0.0);
    for &coefficient in coefficients {
        y = L::mul_add(y, x, L::splat(coefficient));
    }
    y
}

/// `x · Φ(x)`, within 5·10⁻⁷ · |x| absolute.
pub(super) struct GeluErf;

impl Unary for GeluErf {
    #[inline(always)]
    fn apply<L: Lanes>(&self, x: L::V) -> L::V {
        let half = L::mul(x, L::splat(0.5));
        L::mul_add(
            half,
            erf::<L>(L::mul(x, L::splat(std::f32::consts::FRAC_1_SQRT_2))),
            half,
        )
    }
}

/// The widest register: what a rest that does not fill one is padded to.
pub(super) const MAX_WIDTH: usize = 16;

/// `rest`, filled up to the widest register.
#[inline(always)]
pub(super) fn filled<T: Copy>(rest: &[T], fill: T) -> [T; MAX_WIDTH] {
    let mut padded = [fill; MAX_WIDTH];
    padded[..rest.len()].copy_from_slice(rest);
    padded
}

/// Writes as many lanes as `to` has room for.
#[inline(always)]
pub(super) fn store<L: Lanes>(v: L::V, to: &mut [f32]) {
    if to.len() >= L::WIDTH {
        return L::store(v, to);
    }
    let mut wide = [0.0; MAX_WIDTH];
    L::store(v, &mut wide);
    to.copy_from_slice(&wide[..to.len()]);
}

/// The vectors of `x`, the last filled up with `fill`.
#[inline(always)]
pub(super) fn vectors<L: Lanes>(x: &[f32], fill: f32) -> Vectors<'_, L> {
    Vectors {
        rest: x,
        fill,
        lanes: PhantomData,
    }
}

pub(super) struct Vectors<'a, L> {
    rest: &'a [f32],
    fill: f32,
    lanes: PhantomData<L>,
}

impl<L: Lanes> Iterator for Vectors<'_, L> {
    type Item = L::V;

    #[inline(always)]
    fn next(&mut self) -> Option<L::V> {
        if let Some((whole, rest)) = self.rest.split_at_checked(L::WIDTH) {
            self.rest = rest;
            return Some(L::load(whole));
        }
        if self.rest.is_empty() {
            return None;
        }
        let padded = filled(self.rest, self.fill);
        self.rest = &[];
        Some(L::load(&padded))
    }
}

// What kernels pass to one another are types with `#[inline(always)]` methods, not closures: a closure is compiled by
// itself, without the features of the function that it stands in, and each of its instructions becomes a call.

/// A function of one vector.
pub(super) trait Unary {
    fn apply<L: Lanes>(&self, x: L::V) -> L::V;
}

/// Replaces every value of `x` by what `f` makes of it.
#[inline(always)]
pub(super) fn map<L: Lanes>(x: &mut [f32], f: &impl Unary) {
    let mut chunks = x.chunks_exact_mut(L::WIDTH);
    for chunk in &mut chunks {
        L::store(f.apply::<L>(L::load(chunk)), chunk);
    }
    let rest = chunks.into_remainder();
    if !rest.is_empty() {
        store::<L>(f.apply::<L>(L::load(&filled(rest, 0.0))), rest);
    }
}

/// A type in which weights are stored.
pub(super) trait Stored: Copy + Default {
    /// The values of the first lanes of a slice.
    fn load<L: Lanes>(x: &[Self]) -> L::V;
}

impl Stored for f32 {
    #[inline(always)]
    fn load<L: Lanes>(x: &[Self]) -> L::V {
        L::load(x)
    }
}

impl Stored for f16 {
    #[inline(always)]
    fn load<L: Lanes>(x: &[Self]) -> L::V {
        L::load_f16(x)
    }
}

impl Stored for bf16 {
    #[inline(always)]
    fn load<L: Lanes>(x: &[Self]) -> L::V {
        L::load_bf16(x)
    }
}

impl Stored for i8 {
    #[inline(always)]
    fn load<L: Lanes>(x: &[Self]) -> L::V {
        L::load_i8(x)
    }
}

/// `Σ aᵢ·bᵢ`, in two sums at a time, to hide the latency of an addition.
#[inline(always)]
pub(super) fn dot<L: Lanes, T: Stored>(a: &[f32], b: &[T]) -> f32 {
    assert_eq!(a.len(), b.len(), "lengths of a dot product");
    let (mut even, mut odd) = (L::splat(0.0), L::splat(0.0));
    let (mut a_pairs, mut b_pairs) = (a.chunks_exact(2 * L::WIDTH), b.chunks_exact(2 * L::WIDTH));
    for (a, b) in (&mut a_pairs).zip(&mut b_pairs) {
        even = L::mul_add(L::load(a), T::load::<L>(b), even);
        odd = L::mul_add(L::load(&a[L::WIDTH..]), T::load::<L>(&b[L::WIDTH..]), odd);
    }
    for (a, b) in a_pairs
        .remainder()
        .chunks(L::WIDTH)
        .zip(b_pairs.remainder().chunks(L::WIDTH))
    {
        even = L::mul_add(
            L::load(&filled(a, 0.0)),
            T::load::<L>(&filled(b, T::default())),
            even,
        );
    }
    L::sum(L::add(even, odd))
}

/// Writes the values of a weight's row, or of a part of it, to `out`.
#[inline(always)]
pub(super) fn widen<L: Lanes>(row: Row, out: &mut [f32]) {
    match row {
        Row::F32(row) => out.copy_from_slice(row),
        Row::F16(row) => widen_scaled::<L, _>(row, 1.0, out),
        Row::Bf16(row) => widen_scaled::<L, _>(row, 1.0, out),
        Row::Q8(row, scale) => widen_scaled::<L, _>(row, scale, out),
    }
}

#[inline(always)]
fn widen_scaled<L: Lanes, T: Stored>(row: &[T], scale: f32, out: &mut [f32]) {
    assert_eq!(row.len(), out.len(), "columns of a row");
    let scale = L::splat(scale);
    let (mut whole, mut row) = (out.chunks_exact_mut(L::WIDTH), row.chunks_exact(L::WIDTH));
    for (out, row) in (&mut whole).zip(&mut row) {
        L::store(L::mul(T::load::<L>(row), scale), out);
    }
    let rest = whole.into_remainder();
    if !rest.is_empty() {
        store::<L>(
            L::mul(T::load::<L>(&filled(row.remainder(), T::default())), scale),
            rest,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compute::cpu::isa::{Isa, Kernel};
    use crate::compute::reference;

    struct Exp;

    impl Unary for Exp {
        #[inline(always)]
        fn apply<L: Lanes>(&self, x: L::V) -> L::V {
            exp::<L>(x)
        }
    }

    struct Erf;

    impl Unary for Erf {
        #[inline(always)]
        fn apply<L: Lanes>(&self, x: L::V) -> L::V {
            erf::<L>(x)
        }
    }

    struct Map<'a, F>(&'a mut [f32], F);

    impl<F: Unary> Kernel for Map<'_, F> {
        #[inline(always)]
        fn run<L: Lanes>(self) {
            map::<L>(self.0, &self.1);
        }
    }

    #[test]
    fn exp_is_within_two_ulps() {
        let xs: Vec<f32> = (-870_000..880_000).map(|i| i as f32 * 1e-4).collect();
        for isa in Isa::available() {
            let mut ys = xs.clone();
            isa.run(Map(&mut ys, Exp));
            for (&x, &y) in xs.iter().zip(&ys) {
                let truth = f64::from(x).exp();
                let ulp = f64::from((truth as f32).next_up() - truth as f32);
                assert!(
                    (f64::from(y) - truth).abs() <= 2.0 * ulp,
                    "{}: exp({x}) = {y}, not {truth}",
                    isa.name()
                );
            }
        }
    }

    #[test]
    fn exp_of_what_a_mask_leaves_is_zero() {
        for isa in Isa::available() {
            let mut y = [-1e4, f32::NEG_INFINITY];
            isa.run(Map(&mut y, Exp));
            assert_eq!(y, [0.0; 2], "{}", isa.name());
        }
    }

    #[test]
    fn erf_is_within_its_bound() {
        let xs: Vec<f32> = (-600_000..600_000).map(|i| i as f32 * 1e-5).collect();
        for isa in Isa::available() {
            let mut ys = xs.clone();
            isa.run(Map(&mut ys, Erf));
            for (&x, &y) in xs.iter().zip(&ys) {
                let truth = reference::erf(f64::from(x));
                assert!(
                    (f64::from(y) - truth).abs() <= 5e-7,
                    "{}: erf({x}) = {y}, not {truth}",
                    isa.name()
                );
            }
        }
    }
}
