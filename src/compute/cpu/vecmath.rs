//! Elementary functions and reductions over vectors.

use std::marker::PhantomData;

use half::{bf16, f16};

use super::isa::Lanes;

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

/// `eˣ` for x ≤ 0, within 10⁻⁴ of itself: enough for what is rounded to bfloat16. 0 below −87.3.
///
/// As [`exp`], with the reduction in one step and the minimax polynomial of degree 3 for 2ʳ, |r| ≤ 1/2.
#[inline(always)]
pub(super) fn rough_exp<L: Lanes>(x: L::V) -> L::V {
    const ROUND: f32 = 12_582_912.0; // 1.5 · 2²³
    const LOWEST: f32 = -87.3;

    let clamped = L::max(x, L::splat(LOWEST));
    let shifted = L::mul_add(clamped, L::splat(std::f32::consts::LOG2_E), L::splat(ROUND));
    let n = L::sub(shifted, L::splat(ROUND));
    let r = L::sub(L::mul(clamped, L::splat(std::f32::consts::LOG2_E)), n);
    let mut p = L::splat(ROUGH_EXP[0]);
    for coefficient in &ROUGH_EXP[1..] {
        p = L::mul_add(p, r, L::splat(*coefficient));
    }
    L::where_at_least(x, L::splat(LOWEST), L::scale_by_power(p, shifted))
}

/// Of 2ʳ on [−1/2, 1/2], highest power first.
const ROUGH_EXP: [f32; 4] = [0.055_171_553, 0.242_611_36, 0.693_261, 0.999_928_06];

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
// itself, without the features of the function that it stands in, and each of its instructions becomes a call. The same
// befalls the inside of iterators that are not inlined, so that inner loops count.

/// A function of one vector.
pub(super) trait Unary {
    fn apply<L: Lanes>(&self, x: L::V) -> L::V;
}

/// Replaces every value of `x` by what `f` makes of it.
#[inline(always)]
pub(super) fn map<L: Lanes>(x: &mut [f32], f: &impl Unary) {
    let mut at = 0;
    while at < x.len() {
        let y = f.apply::<L>(load::<L, f32>(&x[at..]));
        store::<L>(y, lanes_at::<L>(x, at));
        at += L::WIDTH;
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
    let mut at = 0;
    while at + 2 * L::WIDTH <= a.len() {
        even = L::mul_add(L::load(&a[at..]), T::load::<L>(&b[at..]), even);
        let next = at + L::WIDTH;
        odd = L::mul_add(L::load(&a[next..]), T::load::<L>(&b[next..]), odd);
        at += 2 * L::WIDTH;
    }
    while at < a.len() {
        even = L::mul_add(load::<L, f32>(&a[at..]), load::<L, T>(&b[at..]), even);
        at += L::WIDTH;
    }
    L::sum(L::add(even, odd))
}

/// The values of a register from `at` on, or as many as there are.
#[inline(always)]
pub(super) fn lanes_at<L: Lanes>(x: &mut [f32], at: usize) -> &mut [f32] {
    let end = x.len().min(at + L::WIDTH);
    &mut x[at..end]
}

/// The lanes of a slice, zeros beyond its end.
#[inline(always)]
pub(super) fn load<L: Lanes, T: Stored>(x: &[T]) -> L::V {
    if x.len() >= L::WIDTH {
        T::load::<L>(x)
    } else {
        T::load::<L>(&filled(x, T::default()))
    }
}

/// Writes `scale · x` to `out`.
#[inline(always)]
pub(super) fn widen<L: Lanes, T: Stored>(x: &[T], scale: f32, out: &mut [f32]) {
    assert_eq!(x.len(), out.len(), "values to widen");
    let scale = L::splat(scale);
    let mut at = 0;
    while at < x.len() {
        let y = L::mul(load::<L, T>(&x[at..]), scale);
        store::<L>(y, lanes_at::<L>(out, at));
        at += L::WIDTH;
    }
}

/// Turns `scores` into `e^(scale · (score − highest))` and gives their sum.
#[inline(always)]
pub(super) fn exponentials<L: Lanes>(scores: &mut [f32], scale: f32) -> f32 {
    let mut highest = L::splat(f32::NEG_INFINITY);
    for x in vectors::<L>(scores, f32::NEG_INFINITY) {
        highest = L::max(x, highest);
    }
    let exponential = Exponential {
        highest: L::largest(highest),
        scale,
    };
    map::<L>(scores, &exponential);
    let mut total = L::splat(0.0);
    for x in vectors::<L>(scores, 0.0) {
        total = L::add(total, x);
    }
    L::sum(total)
}

/// `e^(scale · (x − highest))`.
struct Exponential {
    highest: f32,
    scale: f32,
}

impl Unary for Exponential {
    #[inline(always)]
    fn apply<L: Lanes>(&self, x: L::V) -> L::V {
        exp::<L>(L::mul(
            L::sub(x, L::splat(self.highest)),
            L::splat(self.scale),
        ))
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

    struct RoughExp;

    impl Unary for RoughExp {
        #[inline(always)]
        fn apply<L: Lanes>(&self, x: L::V) -> L::V {
            rough_exp::<L>(x)
        }
    }

    #[test]
    fn rough_exp_is_within_its_bound() {
        let xs: Vec<f32> = (-870_000..=0).map(|i| i as f32 * 1e-4).collect();
        for isa in Isa::available() {
            let mut ys = xs.clone();
            isa.run(Map(&mut ys, RoughExp));
            for (&x, &y) in xs.iter().zip(&ys) {
                let truth = f64::from(x).exp();
                assert!(
                    (f64::from(y) - truth).abs() <= 1e-4 * truth,
                    "{}: exp({x}) = {y}, not {truth}",
                    isa.name()
                );
            }
            let mut hidden = [-1e4, f32::NEG_INFINITY];
            isa.run(Map(&mut hidden, RoughExp));
            assert_eq!(hidden, [0.0; 2], "{}", isa.name());
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
