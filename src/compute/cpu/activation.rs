//! What follows a layer, value by value, and the functions it is made of.

use super::isa::{Kernel, Lanes};
use super::lanewise::{Binary, fold_into, map_into};
use super::vecmath::{GeluErf, Unary, exp, map};
use crate::compute::Activation;

/// Values that are activated before they are multiplied: they stay in the first-level cache.
const BLOCK: usize = 2048;

/// The hyperbolic tangent, within 3 ULP; NaN gives −1.
///
/// `t / (t + 2)` with `t = e^(2x) − 1`, which keeps its digits where x is small: with Cody and Waite's `2x = n·ln 2 + r`,
/// `t = 2ⁿ·(eʳ − 1) + (2ⁿ − 1)`. The Taylor polynomial of eʳ − 1 of degree 7 is within 2·10⁻⁸ of it, relatively.
#[inline(always)]
pub(super) fn tanh<L: Lanes>(x: L::V) -> L::V {
    /// Adding and subtracting it rounds to a whole number, which stays in the low bits of the sum.
    const ROUND: f32 = 12_582_912.0; // 1.5 · 2²³
    const LN_2_HIGH: f32 = 0.693_359_4; // 9 bits of ln 2, so that n times it is exact
    const LN_2_LOW: f32 = -2.121_944_4e-4;
    /// Beyond it the tangent rounds to ±1.
    const HIGHEST: f32 = 10.0;

    let x = L::min(L::max(x, L::splat(-HIGHEST)), L::splat(HIGHEST));
    let twice = L::add(x, x);
    let shifted = L::mul_add(twice, L::splat(std::f32::consts::LOG2_E), L::splat(ROUND));
    let n = L::sub(shifted, L::splat(ROUND));
    let r = L::mul_add(n, L::splat(-LN_2_HIGH), twice);
    let r = L::mul_add(n, L::splat(-LN_2_LOW), r);
    let mut p = L::splat(1.0 / 5040.0);
    for coefficient in [1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5] {
        p = L::mul_add(p, r, L::splat(coefficient));
    }
    let e_r = L::mul_add(L::mul(p, r), r, r); // eʳ − 1
    let power = L::scale_by_power(L::splat(1.0), shifted);
    let t = L::mul_add(power, e_r, L::sub(power, L::splat(1.0)));
    L::div(t, L::add(t, L::splat(2.0)))
}

/// `1 / (1 + e^(−x))`, within 3 ULP for x ≥ −87; 0 below, and for NaN.
#[inline(always)]
pub(super) fn sigmoid<L: Lanes>(x: L::V) -> L::V {
    const LOWEST: f32 = -87.0;

    // What lies below is cut off first as well: its quotients are subnormal, which some processors are slow to make.
    let minus_x = L::min(L::sub(L::splat(0.0), x), L::splat(-LOWEST));
    let one = L::splat(1.0);
    let y = L::div(one, L::add(one, exp::<L>(minus_x)));
    L::where_at_least(x, L::splat(LOWEST), y)
}

/// NaN where `x` is NaN, a zero elsewhere.
#[inline(always)]
pub(super) fn nan_or_zero<L: Lanes>(x: L::V) -> L::V {
    // Both give their second operand when one of the two is NaN.
    L::min(L::splat(0.0), L::max(L::splat(0.0), x))
}

/// `x · (1 + tanh(√(2/π) · (x + 0.044715·x³))) / 2`, within 2·10⁻⁷ · |x| absolute.
pub(super) struct GeluTanh;

impl Unary for GeluTanh {
    #[inline(always)]
    fn apply<L: Lanes>(&self, x: L::V) -> L::V {
        // (1 + tanh u) / 2 is the sigmoid of 2u, without the cancellation where u is negative.
        const LINEAR: f32 = 1.595_769; // 2 · √(2/π)
        const CUBIC: f32 = 0.071_354_82; // 0.044715 times that
        let slope = L::mul_add(L::mul(x, x), L::splat(CUBIC), L::splat(LINEAR));
        L::mul(x, sigmoid::<L>(L::mul(x, slope)))
    }
}

/// `x · sigmoid(x)`, within 3 ULP for x ≥ −87; 0 below.
pub(super) struct Silu;

impl Unary for Silu {
    #[inline(always)]
    fn apply<L: Lanes>(&self, x: L::V) -> L::V {
        L::mul(x, sigmoid::<L>(x))
    }
}

/// `max(x, 0)`, and NaN for NaN.
pub(super) struct Relu;

impl Unary for Relu {
    #[inline(always)]
    fn apply<L: Lanes>(&self, x: L::V) -> L::V {
        L::max(L::splat(0.0), x)
    }
}

/// The hyperbolic tangent, within 3 ULP, and NaN for NaN.
pub(super) struct Tanh;

impl Unary for Tanh {
    #[inline(always)]
    fn apply<L: Lanes>(&self, x: L::V) -> L::V {
        L::add(tanh::<L>(x), nan_or_zero::<L>(x))
    }
}

/// `cap · tanh(x / cap)`, within 5 ULP and, where `x / cap` is subnormal, cap · 2⁻¹⁴⁹; NaN for NaN.
struct SoftCap(f32);

impl Unary for SoftCap {
    #[inline(always)]
    fn apply<L: Lanes>(&self, x: L::V) -> L::V {
        let cap = L::splat(self.0);
        L::mul(cap, Tanh.apply::<L>(L::div(x, cap)))
    }
}

/// `x · factor`.
struct Scale(f32);

impl Unary for Scale {
    #[inline(always)]
    fn apply<L: Lanes>(&self, x: L::V) -> L::V {
        L::mul(x, L::splat(self.0))
    }
}

impl Unary for Activation {
    #[inline(always)]
    fn apply<L: Lanes>(&self, x: L::V) -> L::V {
        match self {
            Self::Identity => x,
            Self::GeluErf => GeluErf.apply::<L>(x),
            Self::GeluTanh => GeluTanh.apply::<L>(x),
            Self::Silu => Silu.apply::<L>(x),
            Self::Relu => Relu.apply::<L>(x),
            Self::Tanh => Tanh.apply::<L>(x),
        }
    }
}

/// `y = activation(gate) · up`, value by value.
pub(super) struct Gated<'a> {
    pub(super) gate: &'a [f32],
    pub(super) up: &'a [f32],
    pub(super) activation: Activation,
    pub(super) y: &'a mut [f32],
}

impl Kernel for Gated<'_> {
    #[inline(always)]
    fn run<L: Lanes>(self) {
        assert_eq!(self.gate.len(), self.up.len(), "values of a gate");
        assert_eq!(self.gate.len(), self.y.len(), "values of a gated product");
        let blocks = self.gate.chunks(BLOCK).zip(self.up.chunks(BLOCK));
        for (y, (gate, up)) in self.y.chunks_mut(BLOCK).zip(blocks) {
            y.copy_from_slice(gate);
            map::<L>(y, &self.activation);
            fold_into::<L>(up, y, &Product);
        }
    }
}

/// `a · b`.
struct Product;

impl Binary for Product {
    #[inline(always)]
    fn apply<L: Lanes>(&self, a: L::V, b: L::V) -> L::V {
        L::mul(a, b)
    }
}

/// `y = cap · tanh(x / cap)`.
pub(super) struct SoftCapped<'a> {
    pub(super) x: &'a [f32],
    pub(super) cap: f32,
    pub(super) y: &'a mut [f32],
}

impl Kernel for SoftCapped<'_> {
    #[inline(always)]
    fn run<L: Lanes>(self) {
        map_into::<L>(self.x, self.y, &SoftCap(self.cap));
    }
}

/// `y = x · factor`.
pub(super) struct Scaled<'a> {
    pub(super) x: &'a [f32],
    pub(super) factor: f32,
    pub(super) y: &'a mut [f32],
}

impl Kernel for Scaled<'_> {
    #[inline(always)]
    fn run<L: Lanes>(self) {
        map_into::<L>(self.x, self.y, &Scale(self.factor));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compute::cpu::isa::Isa;
    use crate::compute::reference;

    struct Sigmoid;

    impl Unary for Sigmoid {
        #[inline(always)]
        fn apply<L: Lanes>(&self, x: L::V) -> L::V {
            sigmoid::<L>(x)
        }
    }

    struct Map<'a, F>(&'a mut [f32], &'a F);

    impl<F: Unary> Kernel for Map<'_, F> {
        #[inline(always)]
        fn run<L: Lanes>(self) {
            map::<L>(self.0, self.1);
        }
    }

    /// Every magnitude that f32 has, 4096 of each power of two, and both signs.
    fn all_magnitudes() -> Vec<f32> {
        (0..f32::INFINITY.to_bits())
            .step_by(1 << 11)
            .map(f32::from_bits)
            .flat_map(|x| [x, -x])
            .collect()
    }

    /// Values on a fine grid within ±`limit`.
    fn grid(limit: f32) -> impl Iterator<Item = f32> {
        (-600_000..=600_000).map(move |i| i as f32 / 600_000.0 * limit)
    }

    fn ulp(truth: f64) -> f64 {
        let magnitude = (truth.abs() as f32).min(f32::MAX.next_down());
        f64::from(magnitude.next_up() - magnitude)
    }

    /// Holds `f` to `truth` on every instruction set, over all magnitudes and a grid; `bound` of an input and its truth.
    fn assert_within(
        what: &str,
        f: &impl Unary,
        truth: impl Fn(f64) -> f64,
        bound: impl Fn(f64, f64) -> f64,
    ) {
        let mut xs = all_magnitudes();
        xs.extend(grid(10.0).chain(grid(100.0)));
        for isa in Isa::available() {
            let mut ys = xs.clone();
            isa.run(Map(&mut ys, f));
            for (&x, &y) in xs.iter().zip(&ys) {
                let truth = truth(f64::from(x));
                let error = (f64::from(y) - truth).abs();
                assert!(
                    error <= bound(f64::from(x), truth),
                    "{}: {what}({x:e}) = {y:e}, not {truth:e}",
                    isa.name()
                );
            }
        }
    }

    #[test]
    fn tanh_is_within_3_ulps() {
        assert_within("tanh", &Tanh, f64::tanh, |_, y| 3.0 * ulp(y));
    }

    #[test]
    fn sigmoid_is_within_3_ulps() {
        let truth = |x: f64| 1.0 / (1.0 + (-x).exp());
        assert_within("sigmoid", &Sigmoid, truth, |x, y| {
            if x >= -87.0 { 3.0 * ulp(y) } else { 1.7e-38 }
        });
    }

    #[test]
    fn silu_is_within_3_ulps() {
        let truth = |x| reference::activate(Activation::Silu, x);
        assert_within("silu", &Silu, truth, |x, y| {
            if x >= -87.0 { 3.0 * ulp(y) } else { 1.5e-36 }
        });
    }

    #[test]
    fn gelu_tanh_is_within_its_bound() {
        let truth = |x| reference::activate(Activation::GeluTanh, x);
        assert_within("gelu_tanh", &GeluTanh, truth, |x, _| {
            2e-7 * x.abs() + f64::from(f32::MIN_POSITIVE)
        });
    }

    #[test]
    fn soft_caps_are_within_5_ulps() {
        for cap in [0.1, 1.0, 30.0, 50.0] {
            let truth = |x: f64| f64::from(cap) * (x / f64::from(cap)).tanh();
            let subnormal = f64::from(cap) * f64::from(f32::from_bits(1));
            assert_within("soft_cap", &SoftCap(cap), truth, |_, y| {
                5.0 * ulp(y) + subnormal
            });
        }
    }

    #[test]
    fn relu_is_exact() {
        assert_within("relu", &Relu, |x| x.max(0.0), |_, _| 0.0);
    }

    #[test]
    fn activations_of_infinities_and_nan_are_those_of_the_reference() {
        let xs = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY];
        for isa in Isa::available() {
            for activation in [
                Activation::Identity,
                Activation::GeluErf,
                Activation::GeluTanh,
                Activation::Silu,
                Activation::Relu,
                Activation::Tanh,
            ] {
                let (mut ys, ones) = ([7.0; 3], [1.0; 3]);
                isa.run(Gated {
                    gate: &xs,
                    up: &ones,
                    activation,
                    y: &mut ys,
                });
                for (x, y) in xs.into_iter().zip(ys) {
                    let truth = reference::activate(activation, f64::from(x)) as f32;
                    assert!(
                        y == truth || (y.is_nan() && truth.is_nan()),
                        "{}: {activation:?} of {x} is {y}, not {truth}",
                        isa.name()
                    );
                }
            }
        }
    }
}
