//! NEON, with the dot products of Armv8.2 where there are: four lanes.

#![allow(unsafe_code)]

use std::arch::aarch64::*;

use half::{bf16, f16};

use super::{Heights, Lanes};
use crate::compute::weight::{bf16_to_f32, f16_to_f32};

/// Vectors of NEON, which every 64-bit Arm processor has; `DOT` says whether the dot-product extension is there too.
#[derive(Clone, Copy)]
pub(super) struct Neon<const DOT: bool>;

// SAFETY of every block below: NEON is part of the architecture, and every pointer comes from a slice whose length was
// checked in the line before, for as many elements as the instruction touches.
impl<const DOT: bool> Lanes for Neon<DOT> {
    type V = float32x4_t;
    type W = uint32x4_t;
    const WIDTH: usize = 4;
    const CODE_OFFSET: u8 = 0;
    const HEIGHTS: Heights = Heights { tall: 12, low: 4 };
    const GROUP_HEIGHTS: Heights = Heights { tall: 6, low: 2 };

    #[inline(always)]
    fn splat(x: f32) -> float32x4_t {
        // SAFETY: see above.
        unsafe { vdupq_n_f32(x) }
    }

    #[inline(always)]
    fn load(x: &[f32]) -> float32x4_t {
        assert!(x.len() >= Self::WIDTH);
        // SAFETY: see above.
        unsafe { vld1q_f32(x.as_ptr()) }
    }

    #[inline(always)]
    fn load_f16(x: &[f16]) -> float32x4_t {
        Self::load(&[
            f16_to_f32(x[0]),
            f16_to_f32(x[1]),
            f16_to_f32(x[2]),
            f16_to_f32(x[3]),
        ])
    }

    #[inline(always)]
    fn load_bf16(x: &[bf16]) -> float32x4_t {
        Self::load(&[
            bf16_to_f32(x[0]),
            bf16_to_f32(x[1]),
            bf16_to_f32(x[2]),
            bf16_to_f32(x[3]),
        ])
    }

    #[inline(always)]
    fn load_i8(x: &[i8]) -> float32x4_t {
        Self::load(&[
            f32::from(x[0]),
            f32::from(x[1]),
            f32::from(x[2]),
            f32::from(x[3]),
        ])
    }

    #[inline(always)]
    fn store(v: float32x4_t, to: &mut [f32]) {
        assert!(to.len() >= Self::WIDTH);
        // SAFETY: see above.
        unsafe { vst1q_f32(to.as_mut_ptr(), v) }
    }

    #[inline(always)]
    fn add(a: float32x4_t, b: float32x4_t) -> float32x4_t {
        // SAFETY: see above.
        unsafe { vaddq_f32(a, b) }
    }

    #[inline(always)]
    fn sub(a: float32x4_t, b: float32x4_t) -> float32x4_t {
        // SAFETY: see above.
        unsafe { vsubq_f32(a, b) }
    }

    #[inline(always)]
    fn mul(a: float32x4_t, b: float32x4_t) -> float32x4_t {
        // SAFETY: see above.
        unsafe { vmulq_f32(a, b) }
    }

    #[inline(always)]
    fn div(a: float32x4_t, b: float32x4_t) -> float32x4_t {
        // SAFETY: see above.
        unsafe { vdivq_f32(a, b) }
    }

    #[inline(always)]
    fn mul_add(a: float32x4_t, b: float32x4_t, c: float32x4_t) -> float32x4_t {
        // SAFETY: see above.
        unsafe { vfmaq_f32(c, a, b) }
    }

    #[inline(always)]
    fn max(a: float32x4_t, b: float32x4_t) -> float32x4_t {
        // SAFETY: see above.
        unsafe { vbslq_f32(vcgtq_f32(a, b), a, b) }
    }

    #[inline(always)]
    fn min(a: float32x4_t, b: float32x4_t) -> float32x4_t {
        // SAFETY: see above.
        unsafe { vbslq_f32(vcltq_f32(a, b), a, b) }
    }

    #[inline(always)]
    fn where_at_least(x: float32x4_t, limit: float32x4_t, y: float32x4_t) -> float32x4_t {
        // SAFETY: see above.
        unsafe { vbslq_f32(vcgeq_f32(x, limit), y, vdupq_n_f32(0.0)) }
    }

    #[inline(always)]
    fn scale_by_power(x: float32x4_t, shifted: float32x4_t) -> float32x4_t {
        // SAFETY: see above.
        unsafe {
            let n = vshlq_n_s32::<23>(vreinterpretq_s32_f32(shifted));
            vreinterpretq_f32_s32(vaddq_s32(vreinterpretq_s32_f32(x), n))
        }
    }

    #[inline(always)]
    fn sum(v: float32x4_t) -> f32 {
        // SAFETY: see above.
        unsafe { vaddvq_f32(v) }
    }

    #[inline(always)]
    fn largest(v: float32x4_t) -> f32 {
        // SAFETY: see above.
        unsafe { vmaxvq_f32(v) }
    }

    #[inline(always)]
    fn splat_word(word: u32) -> uint32x4_t {
        // SAFETY: see above.
        unsafe { vdupq_n_u32(word) }
    }

    #[inline(always)]
    fn load_words(x: &[u32]) -> uint32x4_t {
        assert!(x.len() >= Self::WIDTH);
        // SAFETY: see above.
        unsafe { vld1q_u32(x.as_ptr()) }
    }

    #[inline(always)]
    fn store_words(w: uint32x4_t, to: &mut [u32]) {
        assert!(to.len() >= Self::WIDTH);
        // SAFETY: see above.
        unsafe { vst1q_u32(to.as_mut_ptr(), w) }
    }

    #[inline(always)]
    fn dot1(sum: float32x4_t, w: uint32x4_t, a: uint32x4_t) -> float32x4_t {
        // SAFETY: see above.
        unsafe { vfmaq_f32(sum, vreinterpretq_f32_u32(w), vreinterpretq_f32_u32(a)) }
    }

    #[inline(always)]
    fn dot2(sum: float32x4_t, w: uint32x4_t, a: uint32x4_t) -> float32x4_t {
        // SAFETY: see above.
        unsafe {
            let high = vdupq_n_u32(0xffff_0000);
            let (w0, a0) = (vshlq_n_u32::<16>(w), vshlq_n_u32::<16>(a));
            let (w1, a1) = (vandq_u32(w, high), vandq_u32(a, high));
            Self::dot1(Self::dot1(sum, w0, a0), w1, a1)
        }
    }

    #[inline(always)]
    fn dot4(sum: uint32x4_t, w: uint32x4_t, a: uint32x4_t) -> uint32x4_t {
        // SAFETY: see above; `DOT` is only true where the processor was asked for the instruction.
        unsafe {
            if DOT {
                let mut sum = sum;
                std::arch::asm!(
                    ".arch_extension dotprod",
                    "sdot {sum:v}.4s, {w:v}.16b, {a:v}.16b",
                    sum = inout(vreg) sum,
                    w = in(vreg) w,
                    a = in(vreg) a,
                    options(pure, nomem, nostack, preserves_flags),
                );
                return sum;
            }
            // Two products of at most 127² each fit 16 bits.
            let (w, a) = (vreinterpretq_s8_u32(w), vreinterpretq_s8_u32(a));
            let (low, high) = (
                vmull_s8(vget_low_s8(w), vget_low_s8(a)),
                vmull_high_s8(w, a),
            );
            let pairs = vpaddq_s16(low, high);
            vreinterpretq_u32_s32(vpadalq_s16(vreinterpretq_s32_u32(sum), pairs))
        }
    }

    #[inline(always)]
    fn to_bits(v: float32x4_t) -> uint32x4_t {
        // SAFETY: see above.
        unsafe { vreinterpretq_u32_f32(v) }
    }

    #[inline(always)]
    fn from_bits(w: uint32x4_t) -> float32x4_t {
        // SAFETY: see above.
        unsafe { vreinterpretq_f32_u32(w) }
    }

    #[inline(always)]
    fn int_to_float(w: uint32x4_t) -> float32x4_t {
        // SAFETY: see above.
        unsafe { vcvtq_f32_s32(vreinterpretq_s32_u32(w)) }
    }

    #[inline(always)]
    fn low_nibbles(w: uint32x4_t) -> uint32x4_t {
        // SAFETY: see above.
        unsafe { vandq_u32(w, vdupq_n_u32(0x0f0f_0f0f)) }
    }

    #[inline(always)]
    fn high_nibbles(w: uint32x4_t) -> uint32x4_t {
        // SAFETY: see above.
        unsafe { vandq_u32(vshrq_n_u32::<4>(w), vdupq_n_u32(0x0f0f_0f0f)) }
    }

    #[inline(always)]
    fn low_half(w: uint32x4_t) -> float32x4_t {
        let mut words = [0; 4];
        Self::store_words(w, &mut words);
        Self::load_f16(&words.map(|word| f16::from_bits(word as u16)))
    }

    #[inline(always)]
    fn high_half(w: uint32x4_t) -> float32x4_t {
        // SAFETY: see above.
        Self::low_half(unsafe { vshrq_n_u32::<16>(w) })
    }

    #[inline(always)]
    fn pair(low: float32x4_t, high: float32x4_t) -> uint32x4_t {
        // SAFETY: see above.
        unsafe { vsriq_n_u32::<16>(round_to_bf16(high), round_to_bf16(low)) }
    }

    #[inline(always)]
    fn store_codes(v: float32x4_t, to: &mut [u32]) {
        // SAFETY: see above.
        unsafe {
            let halves = vmovn_s32(vcvtq_s32_f32(v));
            let codes = vmovn_s16(vcombine_s16(halves, halves));
            to[0] = vget_lane_u32::<0>(vreinterpret_u32_s8(codes));
        }
    }
}

/// The bits of each value, rounded so that the high 16 are the nearest bfloat16 number; a NaN stays one.
///
/// # Safety
/// None beyond NEON, which is part of the architecture.
#[inline(always)]
unsafe fn round_to_bf16(v: float32x4_t) -> uint32x4_t {
    // SAFETY: NEON is part of the architecture.
    unsafe {
        let bits = vreinterpretq_u32_f32(v);
        let odd = vandq_u32(vshrq_n_u32::<16>(bits), vdupq_n_u32(1));
        let rounded = vaddq_u32(bits, vaddq_u32(odd, vdupq_n_u32(0x7fff)));
        let quiet = vorrq_u32(bits, vdupq_n_u32(0x0040_0000));
        vbslq_u32(vceqq_f32(v, v), rounded, quiet)
    }
}
