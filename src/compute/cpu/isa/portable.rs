//! Any processor: four lanes in an array, which compilers turn into what vectors there are.

use half::{bf16, f16};

use super::{Heights, Lanes};
use crate::compute::weight::{bf16_to_f32, f16_to_f32};

/// Vectors in plain code.
#[derive(Clone, Copy)]
pub(super) struct Portable;

const WIDTH: usize = 4;

impl Lanes for Portable {
    type V = [f32; WIDTH];
    type W = [u32; WIDTH];
    const WIDTH: usize = WIDTH;
    const CODE_OFFSET: u8 = 0;
    const HEIGHTS: Heights = Heights { tall: 2, low: 2 };
    const GROUP_HEIGHTS: Heights = Heights { tall: 2, low: 2 };

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

    #[inline(always)]
    fn splat_word(word: u32) -> Self::W {
        [word; WIDTH]
    }

    #[inline(always)]
    fn load_words(x: &[u32]) -> Self::W {
        [x[0], x[1], x[2], x[3]]
    }

    #[inline(always)]
    fn store_words(w: Self::W, to: &mut [u32]) {
        to[..WIDTH].copy_from_slice(&w);
    }

    #[inline(always)]
    fn dot1(sum: Self::V, w: Self::W, a: Self::W) -> Self::V {
        Self::mul_add(Self::from_bits(w), Self::from_bits(a), sum)
    }

    #[inline(always)]
    fn dot2(sum: Self::V, w: Self::W, a: Self::W) -> Self::V {
        let sum = Self::dot1(sum, map(w, |w| w << 16), map(a, |a| a << 16));
        Self::dot1(
            sum,
            map(w, |w| w & 0xffff_0000),
            map(a, |a| a & 0xffff_0000),
        )
    }

    #[inline(always)]
    fn dot4(sum: Self::W, w: Self::W, a: Self::W) -> Self::W {
        let mut sum = sum;
        for ((sum, w), a) in sum.iter_mut().zip(w).zip(a) {
            for (w, a) in w.to_le_bytes().into_iter().zip(a.to_le_bytes()) {
                let product = i32::from(w.cast_signed()) * i32::from(a.cast_signed());
                *sum = sum.wrapping_add_signed(product);
            }
        }
        sum
    }

    #[inline(always)]
    fn to_bits(v: Self::V) -> Self::W {
        v.map(f32::to_bits)
    }

    #[inline(always)]
    fn from_bits(w: Self::W) -> Self::V {
        w.map(f32::from_bits)
    }

    #[inline(always)]
    fn int_to_float(w: Self::W) -> Self::V {
        let mut v = [0.0; WIDTH];
        for (v, w) in v.iter_mut().zip(w) {
            *v = w.cast_signed() as f32;
        }
        v
    }

    #[inline(always)]
    fn low_nibbles(w: Self::W) -> Self::W {
        map(w, |w| w & 0x0f0f_0f0f)
    }

    #[inline(always)]
    fn high_nibbles(w: Self::W) -> Self::W {
        map(w, |w| w >> 4 & 0x0f0f_0f0f)
    }

    #[inline(always)]
    fn low_half(w: Self::W) -> Self::V {
        let half = |w: u32| f16_to_f32(f16::from_bits(w as u16));
        [half(w[0]), half(w[1]), half(w[2]), half(w[3])]
    }

    #[inline(always)]
    fn high_half(w: Self::W) -> Self::V {
        Self::low_half(map(w, |w| w >> 16))
    }

    #[inline(always)]
    fn pair(low: Self::V, high: Self::V) -> Self::W {
        let mut words = [0; WIDTH];
        for ((word, low), high) in words.iter_mut().zip(low).zip(high) {
            *word = u32::from(bf16::from_f32(low).to_bits())
                | u32::from(bf16::from_f32(high).to_bits()) << 16;
        }
        words
    }

    #[inline(always)]
    fn store_codes(v: Self::V, to: &mut [u32]) {
        let code = |x: f32| (x as i8).cast_unsigned();
        to[0] = u32::from_le_bytes([code(v[0]), code(v[1]), code(v[2]), code(v[3])]);
    }
}

#[inline(always)]
fn each(a: [f32; WIDTH], b: [f32; WIDTH], f: impl Fn(f32, f32) -> f32) -> [f32; WIDTH] {
    [f(a[0], b[0]), f(a[1], b[1]), f(a[2], b[2]), f(a[3], b[3])]
}

#[inline(always)]
fn map(w: [u32; WIDTH], f: impl Fn(u32) -> u32) -> [u32; WIDTH] {
    [f(w[0]), f(w[1]), f(w[2]), f(w[3])]
}
