//! AVX2 with FMA and F16C: eight lanes.

#![allow(unsafe_code)]

use std::arch::x86_64::*;

use half::{bf16, f16};

use super::Lanes;

/// Vectors of AVX2, FMA and F16C.
#[derive(Clone, Copy)]
pub(super) struct Avx2;

// SAFETY of every block below: methods of this type are only reached through `Isa::run`, from a function that enables
// the features, on a processor that was asked for them; and every pointer comes from a slice whose length was checked
// in the line before, for as many elements as the instruction touches.
impl Lanes for Avx2 {
    type V = __m256;
    const WIDTH: usize = 8;

    #[inline(always)]
    fn splat(x: f32) -> __m256 {
        // SAFETY: see above.
        unsafe { _mm256_set1_ps(x) }
    }

    #[inline(always)]
    fn load(x: &[f32]) -> __m256 {
        assert!(x.len() >= Self::WIDTH);
        // SAFETY: see above.
        unsafe { _mm256_loadu_ps(x.as_ptr()) }
    }

    #[inline(always)]
    fn load_f16(x: &[f16]) -> __m256 {
        assert!(x.len() >= Self::WIDTH);
        // SAFETY: see above.
        unsafe { _mm256_cvtph_ps(_mm_loadu_si128(x.as_ptr().cast())) }
    }

    #[inline(always)]
    fn load_bf16(x: &[bf16]) -> __m256 {
        assert!(x.len() >= Self::WIDTH);
        // SAFETY: see above.
        unsafe {
            let wide = _mm256_cvtepu16_epi32(_mm_loadu_si128(x.as_ptr().cast()));
            _mm256_castsi256_ps(_mm256_slli_epi32::<16>(wide))
        }
    }

    #[inline(always)]
    fn load_i8(x: &[i8]) -> __m256 {
        assert!(x.len() >= Self::WIDTH);
        // SAFETY: see above.
        unsafe { _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(x.as_ptr().cast()))) }
    }

    #[inline(always)]
    fn store(v: __m256, to: &mut [f32]) {
        assert!(to.len() >= Self::WIDTH);
        // SAFETY: see above.
        unsafe { _mm256_storeu_ps(to.as_mut_ptr(), v) }
    }

    #[inline(always)]
    fn add(a: __m256, b: __m256) -> __m256 {
        // SAFETY: see above.
        unsafe { _mm256_add_ps(a, b) }
    }

    #[inline(always)]
    fn sub(a: __m256, b: __m256) -> __m256 {
        // SAFETY: see above.
        unsafe { _mm256_sub_ps(a, b) }
    }

    #[inline(always)]
    fn mul(a: __m256, b: __m256) -> __m256 {
        // SAFETY: see above.
        unsafe { _mm256_mul_ps(a, b) }
    }

    #[inline(always)]
    fn div(a: __m256, b: __m256) -> __m256 {
        // SAFETY: see above.
        unsafe { _mm256_div_ps(a, b) }
    }

    #[inline(always)]
    fn mul_add(a: __m256, b: __m256, c: __m256) -> __m256 {
        // SAFETY: see above.
        unsafe { _mm256_fmadd_ps(a, b, c) }
    }

    #[inline(always)]
    fn max(a: __m256, b: __m256) -> __m256 {
        // SAFETY: see above.
        unsafe { _mm256_max_ps(a, b) }
    }

    #[inline(always)]
    fn min(a: __m256, b: __m256) -> __m256 {
        // SAFETY: see above.
        unsafe { _mm256_min_ps(a, b) }
    }

    #[inline(always)]
    fn where_at_least(x: __m256, limit: __m256, y: __m256) -> __m256 {
        // SAFETY: see above.
        unsafe { _mm256_and_ps(_mm256_cmp_ps::<_CMP_GE_OQ>(x, limit), y) }
    }

    #[inline(always)]
    fn scale_by_power(x: __m256, shifted: __m256) -> __m256 {
        // SAFETY: see above.
        unsafe {
            let n = _mm256_slli_epi32::<23>(_mm256_castps_si256(shifted));
            _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(x), n))
        }
    }

    #[inline(always)]
    fn sum(v: __m256) -> f32 {
        // SAFETY: see above.
        unsafe {
            let v = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps::<1>(v));
            let v = _mm_add_ps(v, _mm_movehl_ps(v, v));
            _mm_cvtss_f32(_mm_add_ss(v, _mm_movehdup_ps(v)))
        }
    }

    #[inline(always)]
    fn largest(v: __m256) -> f32 {
        // SAFETY: see above.
        unsafe {
            let v = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps::<1>(v));
            let v = _mm_max_ps(v, _mm_movehl_ps(v, v));
            _mm_cvtss_f32(_mm_max_ss(v, _mm_movehdup_ps(v)))
        }
    }
}
