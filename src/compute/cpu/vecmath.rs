//! Elementary functions without branches, so that loops over them vectorise.

use super::isa::Lanes;

/// Partial sums of a dot product: two registers of AVX-512.
pub(super) const LANES: usize = 32;

/// `eˣ`, within 2 ULP for x in [−87, 88]; 0 below −87.3 and the largest finite value's neighbourhood above 88.
///
/// Cody and Waite's reduction, `x = n·ln 2 + r` with |r| ≤ ln 2 / 2, then the Taylor polynomial of degree 7, whose
/// remainder r⁸/8! is below 6·10⁻⁹.
#[inline(always)]
pub(super) fn exp<L: Lanes>(x: f32) -> f32 {
    /// Adding and subtracting it rounds to a whole number, which stays in the low bits of the sum.
    const ROUND: f32 = 12_582_912.0; // 1.5 · 2²³
    const LN_2_HIGH: f32 = 0.693_359_4; // 9 bits of ln 2, so that n times it is exact
    const LN_2_LOW: f32 = -2.121_944_4e-4;

    let clamped = x.clamp(-87.3, 88.3);
    let shifted = L::mul_add(clamped, std::f32::consts::LOG2_E, ROUND);
    let n = shifted - ROUND;
    let r = L::mul_add(n, -LN_2_LOW, L::mul_add(n, -LN_2_HIGH, clamped));

    let mut p = 1.0 / 5040.0;
    for coefficient in [
        1.0 / 720.0,
        1.0 / 120.0,
        1.0 / 24.0,
        1.0 / 6.0,
        0.5,
        1.0,
        1.0,
    ] {
        p = L::mul_add(p, r, coefficient);
    }
    // 2ⁿ by way of the exponent bits: n lies in the low bits of `shifted`.
    let power = f32::from_bits((shifted.to_bits() << 23).wrapping_add(1.0f32.to_bits()));
    if x < -87.3 { 0.0 } else { p * power }
}

/// The error function, within 5·10⁻⁷ absolute.
///
/// The odd rational function x·P(x²)/Q(x²) with the coefficients of Eigen's single-precision `erf`; beyond |x| = 4 the
/// value rounds to ±1.
#[inline(always)]
pub(super) fn erf<L: Lanes>(x: f32) -> f32 {
    let x = x.clamp(-4.0, 4.0);
    let square = x * x;
    let mut p = -2.726_142_3e-10;
    for coefficient in [
        2.770_681_4e-8,
        -2.101_024e-6,
        -5.692_506_4e-5,
        -7.349_906_3e-4,
        -2.954_6e-3,
        -1.609_603_3e-2,
    ] {
        p = L::mul_add(p, square, coefficient);
    }
    let mut q = -1.456_607_2e-5;
    for coefficient in [
        -2.133_740_6e-4,
        -1.682_827e-3,
        -7.373_329e-3,
        -1.426_473_9e-2,
    ] {
        q = L::mul_add(q, square, coefficient);
    }
    x * p / q
}

/// `x · Φ(x)`, within 5·10⁻⁷ · |x| absolute.
#[inline(always)]
pub(super) fn gelu_erf<L: Lanes>(x: f32) -> f32 {
    let half = 0.5 * x;
    L::mul_add(half, erf::<L>(x * std::f32::consts::FRAC_1_SQRT_2), half)
}

/// `Σ aᵢ·bᵢ` in [`LANES`] partial sums, so that it vectorises.
#[inline(always)]
pub(super) fn dot<L: Lanes>(a: &[f32], b: &[f32]) -> f32 {
    dot_widened::<L, f32>(a, b, |b| b)
}

/// `Σ aᵢ·widen(bᵢ)` in [`LANES`] partial sums.
#[inline(always)]
pub(super) fn dot_widened<L: Lanes, T: Copy>(a: &[f32], b: &[T], widen: impl Fn(T) -> f32) -> f32 {
    assert_eq!(a.len(), b.len(), "lengths of a dot product");
    let (a_blocks, a_rest) = a.as_chunks::<LANES>();
    let (b_blocks, b_rest) = b.as_chunks::<LANES>();
    let mut sums = [0.0; LANES];
    for (a, b) in a_blocks.iter().zip(b_blocks) {
        for lane in 0..LANES {
            sums[lane] = L::mul_add(a[lane], widen(b[lane]), sums[lane]);
        }
    }
    let mut sum = reduce(sums);
    for (&a, &b) in a_rest.iter().zip(b_rest) {
        sum = L::mul_add(a, widen(b), sum);
    }
    sum
}

/// `Σ term(xᵢ)` in [`LANES`] partial sums.
#[inline(always)]
pub(super) fn sum(x: &[f32], term: impl Fn(f32) -> f32) -> f32 {
    let (blocks, rest) = x.as_chunks::<LANES>();
    let mut sums = [0.0; LANES];
    for block in blocks {
        for lane in 0..LANES {
            sums[lane] += term(block[lane]);
        }
    }
    reduce(sums) + rest.iter().map(|&x| term(x)).sum::<f32>()
}

/// The sum of partial sums, in halves.
#[inline(always)]
fn reduce(mut sums: [f32; LANES]) -> f32 {
    let mut width = LANES / 2;
    while width > 0 {
        for lane in 0..width {
            sums[lane] += sums[lane + width];
        }
        width /= 2;
    }
    sums[0]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compute::cpu::isa::{Isa, Kernel};
    use crate::compute::reference;

    struct Map<'a, F>(&'a [f32], &'a mut [f32], F);

    trait Function {
        fn apply<L: Lanes>(&self, x: f32) -> f32;
    }

    impl<F: Function> Kernel for Map<'_, F> {
        #[inline(always)]
        fn run<L: Lanes>(self) {
            for (y, &x) in self.1.iter_mut().zip(self.0) {
                *y = self.2.apply::<L>(x);
            }
        }
    }

    struct Exp;

    impl Function for Exp {
        #[inline(always)]
        fn apply<L: Lanes>(&self, x: f32) -> f32 {
            exp::<L>(x)
        }
    }

    struct Erf;

    impl Function for Erf {
        #[inline(always)]
        fn apply<L: Lanes>(&self, x: f32) -> f32 {
            erf::<L>(x)
        }
    }

    #[test]
    fn exp_is_within_two_ulps() {
        let xs: Vec<f32> = (-870_000..880_000).map(|i| i as f32 * 1e-4).collect();
        let mut ys = vec![0.0; xs.len()];
        for isa in Isa::available() {
            isa.run(Map(&xs, &mut ys, Exp));
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
            let mut y = [1.0; 2];
            isa.run(Map(&[-1e4, f32::NEG_INFINITY], &mut y, Exp));
            assert_eq!(y, [0.0; 2], "{}", isa.name());
        }
    }

    #[test]
    fn erf_is_within_its_bound() {
        let xs: Vec<f32> = (-600_000..600_000).map(|i| i as f32 * 1e-5).collect();
        let mut ys = vec![0.0; xs.len()];
        for isa in Isa::available() {
            isa.run(Map(&xs, &mut ys, Erf));
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
