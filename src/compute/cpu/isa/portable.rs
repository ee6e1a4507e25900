//! Any processor: four lanes in an array, which compilers turn into what vectors there are.

use half::{bf16, f16};

use super::Lanes;
use crate::compute::weight::{bf16_to_f32, f16_to_f32};

/// Vectors in plain code.
#[derive(Clone, Copy)]
pub(super) struct Portable;

const WIDTH: usize = 4;

impl Lanes for Portable {
    type V = [f32; WIDTH];
    const WIDTH: usize = WIDTH;

    #[inline(always)]
    fn splat(x: f32) -> Self::V {
        [x; WIDTH]
    }

    #[inline(always)]
    fn load(x: &[f32]) -> Self::V {
        [x[0], x[1], x[2], x[3]]
    }

    #[inline(always)]
    fn load_f16(x: &[f16]) -> Self::V {
        [
            f16_to_f32(x[0]),
            f16_to_f32(x[1]),
            f16_to_f32(x[2]),
            f16_to_f32(x[3]),
        ]
    }

    #[inline(always)]
    fn load_bf16(x: &[bf16]) -> Self::V {
        [
            bf16_to_f32(x[0]),
            bf16_to_f32(x[1]),
            bf16_to_f32(x[2]),
            bf16_to_f32(x[3]),
        ]
    }

    #[inline(always)]
    fn load_i8(x: &[i8]) -> Self::V {
        [
            f32::from(x[0]),
            f32::from(x[1]),
            f32::from(x[2]),
            f32::from(x[3]),
        ]
    }

    #[inline(always)]
    fn store(v: Self::V, to: &mut [f32]) {
        to[..WIDTH].copy_from_slice(&v);
    }

    #[inline(always)]
    fn add(a: Self::V, b: Self::V) -> Self::V {
        each(a, b, |a, b| a + b)
    }

    #[inline(always)]
    fn sub(a: Self::V, b: Self::V) -> Self::V {
        each(a, b, |a, b| a - b)
    }

    #[inline(always)]
    fn mul(a: Self::V, b: Self::V) -> Self::V {
        each(a, b, |a, b| a * b)
    }

    #[inline(always)]
    fn div(a: Self::V, b: Self::V) -> Self::V {
        each(a, b, |a, b| a / b)
    }

    #[inline(always)]
    fn mul_add(a: Self::V, b: Self::V, c: Self::V) -> Self::V {
        Self::add(Self::mul(a, b), c)
    }

    #[inline(always)]
    fn max(a: Self::V, b: Self::V) -> Self::V {
        each(a, b, |a, b| if a > b { a } else { b })
    }

    #[inline(always)]
    fn min(a: Self::V, b: Self::V) -> Self::V {
        each(a, b, |a, b| if a < b { a } else { b })
    }

    #[inline(always)]
    fn where_at_least(x: Self::V, limit: Self::V, y: Self::V) -> Self::V {
        let kept = each(x, limit, |x, limit| if x >= limit { 1.0 } else { 0.0 });
        each(kept, y, |kept, y| if kept == 1.0 { y } else { 0.0 })
    }

    #[inline(always)]
    fn scale_by_power(x: Self::V, shifted: Self::V) -> Self::V {
        each(x, shifted, |x, shifted| {
            f32::from_bits(x.to_bits().wrapping_add(shifted.to_bits() << 23))
        })
    }

    #[inline(always)]
    fn sum(v: Self::V) -> f32 {
        (v[0] + v[2]) + (v[1] + v[3])
    }

    #[inline(always)]
    fn largest(v: Self::V) -> f32 {
        v[0].max(v[1]).max(v[2].max(v[3]))
    }
}

#[inline(always)]
fn each(a: [f32; WIDTH], b: [f32; WIDTH], f: impl Fn(f32, f32) -> f32) -> [f32; WIDTH] {
    [f(a[0], b[0]), f(a[1], b[1]), f(a[2], b[2]), f(a[3], b[3])]
}
