//! AVX-512 with the dot products of VNNI, and those of BF16 where there are: sixteen lanes.

#![allow(unsafe_code)]

use std::arch::x86_64::*;

use half::{bf16, f16};

use super::{Heights, Lanes};

/// Vectors of AVX-512 (F, BW, DQ, VL, VNNI); `BF16` says whether that extension is there too.
#[derive(Clone, Copy)]
pub(super) struct Avx512<const BF16: bool>;

// SAFETY of every block below: methods of this type are only reached through `Isa::run`, from a function that enables
// the features, on a processor that was asked for them; and every pointer comes from a slice whose length was checked
// in the line before, for as many elements as the instruction touches.
impl<const BF16: bool> Lanes for Avx512<BF16> {
    type V = __m512;
    type W = __m512i;
    const WIDTH: usize = 16;
    const CODE_OFFSET: u8 = 128;
    const HEIGHTS: Heights = Heights { tall: 12, low: 4 };
    const GROUP_HEIGHTS: Heights = Heights { tall: 6, low: 2 };

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

    #[inline(always)]
    fn splat_word(word: u32) -> __m512i {
        // SAFETY: see above.
        unsafe { _mm512_set1_epi32(word.cast_signed()) }
    }

    #[inline(always)]
    fn load_words(x: &[u32]) -> __m512i {
        assert!(x.len() >= Self::WIDTH);
        // SAFETY: see above.
        unsafe { _mm512_loadu_si512(x.as_ptr().cast()) }
    }

    #[inline(always)]
    fn store_words(w: __m512i, to: &mut [u32]) {
        assert!(to.len() >= Self::WIDTH);
        // SAFETY: see above.
        unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), w) }
    }

    #[inline(always)]
    fn dot1(sum: __m512, w: __m512i, a: __m512i) -> __m512 {
        // SAFETY: see above.
        unsafe { _mm512_fmadd_ps(_mm512_castsi512_ps(w), _mm512_castsi512_ps(a), sum) }
    }

    #[inline(always)]
    fn dot2(sum: __m512, w: __m512i, a: __m512i) -> __m512 {
        // SAFETY: see above; `BF16` is only true where the processor was asked for the instruction.
        unsafe {
            if BF16 {
                return _mm512_dpbf16_ps(
                    sum,
                    std::mem::transmute::<__m512i, __m512bh>(w),
                    std::mem::transmute::<__m512i, __m512bh>(a),
                );
            }
            let high = _mm512_set1_epi32(0xffff_0000u32.cast_signed());
            let (w0, a0) = (_mm512_slli_epi32::<16>(w), _mm512_slli_epi32::<16>(a));
            let (w1, a1) = (_mm512_and_si512(w, high), _mm512_and_si512(a, high));
            Self::dot1(Self::dot1(sum, w0, a0), w1, a1)
        }
    }

    #[inline(always)]
    fn dot4(sum: __m512i, w: __m512i, a: __m512i) -> __m512i {
        // SAFETY: see above.
        unsafe { _mm512_dpbusd_epi32(sum, w, a) }
    }

    #[inline(always)]
    fn to_bits(v: __m512) -> __m512i {
        // SAFETY: see above.
        unsafe { _mm512_castps_si512(v) }
    }

    #[inline(always)]
    fn from_bits(w: __m512i) -> __m512 {
        // SAFETY: see above.
        unsafe { _mm512_castsi512_ps(w) }
    }

    #[inline(always)]
    fn int_to_float(w: __m512i) -> __m512 {
        // SAFETY: see above.
        unsafe { _mm512_cvtepi32_ps(w) }
    }

    #[inline(always)]
    fn low_nibbles(w: __m512i) -> __m512i {
        // SAFETY: see above.
        unsafe { _mm512_and_si512(w, _mm512_set1_epi8(0x0f)) }
    }

    #[inline(always)]
    fn high_nibbles(w: __m512i) -> __m512i {
        // SAFETY: see above.
        unsafe { _mm512_and_si512(_mm512_srli_epi32::<4>(w), _mm512_set1_epi8(0x0f)) }
    }

    #[inline(always)]
    fn low_half(w: __m512i) -> __m512 {
        // SAFETY: see above.
        unsafe { _mm512_cvtph_ps(_mm512_cvtepi32_epi16(w)) }
    }

    #[inline(always)]
    fn high_half(w: __m512i) -> __m512 {
        // SAFETY: see above.
        unsafe { _mm512_cvtph_ps(_mm512_cvtepi32_epi16(_mm512_srli_epi32::<16>(w))) }
    }

    #[inline(always)]
    fn pair(low: __m512, high: __m512) -> __m512i {
        // SAFETY: see above; `BF16` is only true where the processor was asked for the instruction.
        unsafe {
            if BF16 {
                // Sixteen of `low`, then sixteen of `high`, put next to one another.
                let halves = _mm512_cvtne2ps_pbh(high, low);
                let halves = std::mem::transmute::<__m512bh, __m512i>(halves);
                let order = _mm512_loadu_si512(INTERLEAVED.as_ptr().cast());
                return _mm512_permutexvar_epi16(order, halves);
            }
            let low = _mm512_srli_epi32::<16>(round_to_bf16(low));
            _mm512_mask_blend_epi16(0xaaaa_aaaa, low, round_to_bf16(high))
        }
    }

    #[inline(always)]
    fn store_codes(v: __m512, to: &mut [u32]) {
        assert!(to.len() >= Self::WIDTH / 4);
        // SAFETY: see above.
        unsafe {
            let codes = _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(v));
            _mm_storeu_si128(to.as_mut_ptr().cast(), codes);
        }
    }
}

/// Of two runs of sixteen, the first of both, the second of both, and so on.
const INTERLEAVED: [u16; 32] = {
    let mut order = [0; 32];
    let mut i = 0;
    while i < 16 {
        order[2 * i] = i as u16;
        order[2 * i + 1] = 16 + i as u16;
        i += 1;
    }
    order
};

/// The bits of each value, rounded so that the high 16 are the nearest bfloat16 number; a NaN stays one.
///
/// # Safety
/// The processor has AVX-512 F.
#[inline(always)]
unsafe fn round_to_bf16(v: __m512) -> __m512i {
    // SAFETY: the caller's promise.
    unsafe {
        let bits = _mm512_castps_si512(v);
        let odd = _mm512_and_si512(_mm512_srli_epi32::<16>(bits), _mm512_set1_epi32(1));
        let rounded = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
        let quiet = _mm512_or_si512(bits, _mm512_set1_epi32(0x0040_0000));
        _mm512_mask_mov_epi32(rounded, _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(v, v), quiet)
    }
}
