//! NEON: four lanes.

#![allow(unsafe_code)]

use std::arch::aarch64::*;

use half::{bf16, f16};

use super::Lanes;
use crate::compute::weight::{bf16_to_f32, f16_to_f32};

/// Vectors of NEON, which every 64-bit Arm processor has.
#[derive(Clone, Copy)]
pub(super) struct Neon;

// SAFETY of every block below: NEON is part of the architecture, and every pointer comes from a slice whose length was
// checked in the line before, for as many elements as the instruction touches.
impl Lanes for Neon {
    type V = float32x4_t;
    const WIDTH: usize = 4;

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
}
