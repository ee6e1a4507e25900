//! AVX-512: sixteen lanes.

#![allow(unsafe_code)]

use std::arch::x86_64::*;

use half::{bf16, f16};

use super::Lanes;

/// Vectors of AVX-512 (F, BW, DQ, VL).
#[derive(Clone, Copy)]
pub(super) struct Avx512;

// SAFETY of every block below: methods of this type are only reached through `Isa::run`, from a function that enables
// the features, on a processor that was asked for them; and every pointer comes from a slice whose length was checked
// in the line before, for as many elements as the instruction touches.
impl Lanes for Avx512 {
    type V = __m512;
    const WIDTH: usize = 16;

    #[inline(always)]
    fn splat(x: f32) -> __m512 {
        // SAFETY: see above.
        unsafe { _mm512_set1_ps(x) }
    }

    #[inline(always)]
    fn load(x: &[f32]) -> __m512 {
        assert!(x.len() >= Self::WIDTH);
        // SAFETY: see above.
        unsafe { _mm512_loadu_ps(x.as_ptr()) }
    }

    #[inline(always)]
    fn load_f16(x: &[f16]) -> __m512 {
        assert!(x.len() >= Self::WIDTH);
        // SAFETY: see above.
        unsafe { _mm512_cvtph_ps(_mm256_loadu_si256(x.as_ptr().cast())) }
    }

    #[inline(always)]
    fn load_bf16(x: &[bf16]) -> __m512 {
        assert!(x.len() >= Self::WIDTH);
        // SAFETY: see above.
        unsafe {
            let wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256(x.as_ptr().cast()));
            _mm512_castsi512_ps(_mm512_slli_epi32::<16>(wide))
        }
    }

    #[inline(always)]
    fn load_i8(x: &[i8]) -> __m512 {
        assert!(x.len() >= Self::WIDTH);
        // SAFETY: see above.
        unsafe { _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(x.as_ptr().cast()))) }
    }

    #[inline(always)]
    fn store(v: __m512, to: &mut [f32]) {
        assert!(to.len() >= Self::WIDTH);
        // SAFETY: see above.
        unsafe { _mm512_storeu_ps(to.as_mut_ptr(), v) }
    }

    #[inline(always)]
    fn add(a: __m512, b: __m512) -> __m512 {
        // SAFETY: see above.
        unsafe { _mm512_add_ps(a, b) }
    }

    #[inline(always)]
    fn sub(a: __m512, b: __m512) -> __m512 {
        // SAFETY: see above.
        unsafe { _mm512_sub_ps(a, b) }
    }

    #[inline(always)]
    fn mul(a: __m512, b: __m512) -> __m512 {
        // SAFETY: see above.
        unsafe { _mm512_mul_ps(a, b) }
    }

    #[inline(always)]
    fn div(a: __m512, b: __m512) -> __m512 {
        // SAFETY: see above.
        unsafe { _mm512_div_ps(a, b) }
    }

    #[inline(always)]
    fn mul_add(a: __m512, b: __m512, c: __m512) -> __m512 {
        // SAFETY: see above.
        unsafe { _mm512_fmadd_ps(a, b, c) }
    }

    #[inline(always)]
    fn max(a: __m512, b: __m512) -> __m512 {
        // SAFETY: see above.
        unsafe { _mm512_max_ps(a, b) }
    }

    #[inline(always)]
    fn min(a: __m512, b: __m512) -> __m512 {
        // SAFETY: see above.
        unsafe { _mm512_min_ps(a, b) }
    }

    #[inline(always)]
    fn where_at_least(x: __m512, limit: __m512, y: __m512) -> __m512 {
        // SAFETY: see above.
        unsafe { _mm512_maskz_mov_ps(_mm512_cmp_ps_mask::<_CMP_GE_OQ>(x, limit), y) }
    }

    #[inline(always)]
    fn scale_by_power(x: __m512, shifted: __m512) -> __m512 {
        // SAFETY: see above.
        unsafe {
            let n = _mm512_slli_epi32::<23>(_mm512_castps_si512(shifted));
            _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(x), n))
        }
    }

    #[inline(always)]
    fn sum(v: __m512) -> f32 {
        // SAFETY: see above.
        unsafe { _mm512_reduce_add_ps(v) }
    }

    #[inline(always)]
    fn largest(v: __m512) -> f32 {
        // SAFETY: see above.
        unsafe { _mm512_reduce_max_ps(v) }
    }
}
