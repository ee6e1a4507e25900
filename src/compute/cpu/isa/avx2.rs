//! AVX2 with FMA and F16C, and the dot products of AVX-VNNI where there are: eight lanes.

#![allow(unsafe_code)]

use std::arch::x86_64::*;

use half::{bf16, f16};

use super::{Heights, Lanes};

/// Vectors of AVX2, FMA and F16C; `VNNI` says whether AVX-VNNI is there too.
#[derive(Clone, Copy)]
pub(super) struct Avx2<const VNNI: bool>;

// SAFETY of every block below: methods of this type are only reached through `Isa::run`, from a function that enables
// the features, on a processor that was asked for them; and every pointer comes from a slice whose length was checked
// in the line before, for as many elements as the instruction touches.
impl<const VNNI: bool> Lanes for Avx2<VNNI> {
    type V = __m256;
    type W = __m256i;
    const WIDTH: usize = 8;
    const CODE_OFFSET: u8 = if VNNI { 128 } else { 0 };
    const HEIGHTS: Heights = Heights { tall: 6, low: 2 };
    const GROUP_HEIGHTS: Heights = Heights { tall: 2, low: 2 };

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

    #[inline(always)]
    fn splat_word(word: u32) -> __m256i {
        // SAFETY: see above.
        unsafe { _mm256_set1_epi32(word.cast_signed()) }
    }

    #[inline(always)]
    fn load_words(x: &[u32]) -> __m256i {
        assert!(x.len() >= Self::WIDTH);
        // SAFETY: see above.
        unsafe { _mm256_loadu_si256(x.as_ptr().cast()) }
    }

    #[inline(always)]
    fn store_words(w: __m256i, to: &mut [u32]) {
        assert!(to.len() >= Self::WIDTH);
        // SAFETY: see above.
        unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), w) }
    }

    #[inline(always)]
    fn dot1(sum: __m256, w: __m256i, a: __m256i) -> __m256 {
        // SAFETY: see above.
        unsafe { _mm256_fmadd_ps(_mm256_castsi256_ps(w), _mm256_castsi256_ps(a), sum) }
    }

    #[inline(always)]
    fn dot2(sum: __m256, w: __m256i, a: __m256i) -> __m256 {
        // SAFETY: see above.
        unsafe {
            let high = _mm256_set1_epi32(0xffff_0000u32.cast_signed());
            let (w0, a0) = (_mm256_slli_epi32::<16>(w), _mm256_slli_epi32::<16>(a));
            let (w1, a1) = (_mm256_and_si256(w, high), _mm256_and_si256(a, high));
            Self::dot1(Self::dot1(sum, w0, a0), w1, a1)
        }
    }

    #[inline(always)]
    fn dot4(sum: __m256i, w: __m256i, a: __m256i) -> __m256i {
        // SAFETY: see above; `VNNI` is only true where the processor was asked for the instruction.
        unsafe {
            if VNNI {
                return _mm256_dpbusd_avx_epi32(sum, w, a);
            }
            // The sign moves to the other factor; two products of at most 127² each fit 16 bits.
            let pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(a, w));
            _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)))
        }
    }

    #[inline(always)]
    fn to_bits(v: __m256) -> __m256i {
        // SAFETY: see above.
        unsafe { _mm256_castps_si256(v) }
    }

    #[inline(always)]
    fn from_bits(w: __m256i) -> __m256 {
        // SAFETY: see above.
        unsafe { _mm256_castsi256_ps(w) }
    }

    #[inline(always)]
    fn int_to_float(w: __m256i) -> __m256 {
        // SAFETY: see above.
        unsafe { _mm256_cvtepi32_ps(w) }
    }

    #[inline(always)]
    fn low_nibbles(w: __m256i) -> __m256i {
        // SAFETY: see above.
        unsafe { _mm256_and_si256(w, _mm256_set1_epi8(0x0f)) }
    }

    #[inline(always)]
    fn high_nibbles(w: __m256i) -> __m256i {
        // SAFETY: see above.
        unsafe { _mm256_and_si256(_mm256_srli_epi32::<4>(w), _mm256_set1_epi8(0x0f)) }
    }

    #[inline(always)]
    fn low_half(w: __m256i) -> __m256 {
        // SAFETY: see above.
        unsafe {
            let halves = _mm256_and_si256(w, _mm256_set1_epi32(0xffff));
            let (low, high) = (
                _mm256_castsi256_si128(halves),
                _mm256_extracti128_si256::<1>(halves),
            );
            _mm256_cvtph_ps(_mm_packus_epi32(low, high))
        }
    }

    #[inline(always)]
    fn high_half(w: __m256i) -> __m256 {
        // SAFETY: see above.
        Self::low_half(unsafe { _mm256_srli_epi32::<16>(w) })
    }

    #[inline(always)]
    fn pair(low: __m256, high: __m256) -> __m256i {
        // SAFETY: see above.
        unsafe {
            let low = _mm256_srli_epi32::<16>(round_to_bf16(low));
            _mm256_blend_epi16::<0xaa>(low, round_to_bf16(high))
        }
    }

    #[inline(always)]
    fn store_codes(v: __m256, to: &mut [u32]) {
        assert!(to.len() >= Self::WIDTH / 4);
        // SAFETY: see above.
        unsafe {
            let codes = _mm256_cvtps_epi32(v);
            let (low, high) = (
                _mm256_castsi256_si128(codes),
                _mm256_extracti128_si256::<1>(codes),
            );
            let codes = _mm_packs_epi32(low, high);
            _mm_storel_epi64(to.as_mut_ptr().cast(), _mm_packs_epi16(codes, codes));
        }
    }
}

/// The bits of each value, rounded so that the high 16 are the nearest bfloat16 number; a NaN stays one.
///
/// # Safety
/// The processor has AVX2.
#[inline(always)]
unsafe fn round_to_bf16(v: __m256) -> __m256i {
    // SAFETY: the caller's promise.
    unsafe {
        let bits = _mm256_castps_si256(v);
        let odd = _mm256_and_si256(_mm256_srli_epi32::<16>(bits), _mm256_set1_epi32(1));
        let rounded = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
        let quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x0040_0000));
        let nan = _mm256_castps_si256(_mm256_cmp_ps::<_CMP_UNORD_Q>(v, v));
        _mm256_blendv_epi8(rounded, quiet, nan)
    }
}
