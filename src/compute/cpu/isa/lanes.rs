//! The vectors that kernels are written in.

use half::{bf16, f16};

/// Heights of the tiles that products are made of: as many rows as leave registers for the weights, fewer, and one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::compute::cpu) struct Heights {
    pub(in crate::compute::cpu) tall: usize,
    pub(in crate::compute::cpu) low: usize,
}

impl Heights {
    /// The height of the tile that begins with `left` rows to go.
    #[inline(always)]
    pub(in crate::compute::cpu) fn next(self, left: usize) -> usize {
        if left >= self.tall {
            self.tall
        } else if left >= self.low {
            self.low
        } else {
            1
        }
    }

    /// Whether there are tiles of this height.
    pub(in crate::compute::cpu) const fn has(self, height: usize) -> bool {
        self.tall == height || self.low == height
    }
}

/// A register of f32 lanes and what an instruction set does with it.
///
/// Methods that take a slice read or write its first [`Lanes::WIDTH`] elements and panic when there are fewer.
///
/// A word is 32 bits of a matrix's row: one f32, two bfloat16 numbers or four int8 codes, the first in the lowest bits.
pub(in crate::compute::cpu) trait Lanes: Copy {
    /// A register of f32 lanes.
    type V: Copy;
    /// A register of words, as many as there are lanes.
    type W: Copy;
    /// The lanes of a register.
    const WIDTH: usize;
    /// What packed int8 weights are raised by, 128 where the processor multiplies unsigned by signed bytes, else 0.
    const CODE_OFFSET: u8;
    /// Tiles of two registers of columns.
    const HEIGHTS: Heights;
    /// The same with sums of integers and of floats side by side.
    const GROUP_HEIGHTS: Heights;

    /// `x` in every lane.
    fn splat(x: f32) -> Self::V;
    /// The values of a slice.
    fn load(x: &[f32]) -> Self::V;
    /// The values of IEEE halves.
    fn load_f16(x: &[f16]) -> Self::V;
    /// The values of bfloat16 numbers.
    fn load_bf16(x: &[bf16]) -> Self::V;
    /// The values of signed bytes.
    fn load_i8(x: &[i8]) -> Self::V;
    /// Writes the lanes to a slice.
    fn store(v: Self::V, to: &mut [f32]);

    /// `a + b`.
    fn add(a: Self::V, b: Self::V) -> Self::V;
    /// `a − b`.
    fn sub(a: Self::V, b: Self::V) -> Self::V;
    /// `a · b`.
    fn mul(a: Self::V, b: Self::V) -> Self::V;
    /// `a / b`.
    fn div(a: Self::V, b: Self::V) -> Self::V;
    /// `a · b + c`, rounded once where the processor can.
    fn mul_add(a: Self::V, b: Self::V, c: Self::V) -> Self::V;
    /// The larger of each pair; `b` where `a` is NaN.
    fn max(a: Self::V, b: Self::V) -> Self::V;
    /// The smaller of each pair; `b` where `a` is NaN.
    fn min(a: Self::V, b: Self::V) -> Self::V;
    /// `y` where `x ≥ limit`, 0 elsewhere.
    fn where_at_least(x: Self::V, limit: Self::V, y: Self::V) -> Self::V;
    /// `x · 2ⁿ`, with the whole number n in the low bits of `shifted` and `x · 2ⁿ` a normal number.
    fn scale_by_power(x: Self::V, shifted: Self::V) -> Self::V;
    /// The sum of the lanes, in halves.
    fn sum(v: Self::V) -> f32;
    /// The largest lane.
    fn largest(v: Self::V) -> f32;

    /// `word` in every lane.
    fn splat_word(word: u32) -> Self::W;
    /// The words of a slice.
    fn load_words(x: &[u32]) -> Self::W;
    /// Writes the words to a slice.
    fn store_words(w: Self::W, to: &mut [u32]);
    /// `sum + w · a`, words of one f32.
    fn dot1(sum: Self::V, w: Self::W, a: Self::W) -> Self::V;
    /// `sum + w₀·a₀ + w₁·a₁`, words of two bfloat16 numbers; subnormal ones may count as 0.
    fn dot2(sum: Self::V, w: Self::W, a: Self::W) -> Self::V;
    /// `sum + Σ wᵢ·aᵢ` in i32, words of four int8 codes; those of `w` are raised by [`Lanes::CODE_OFFSET`], or lie
    /// between 0 and 15, and those of `a` are not −128.
    fn dot4(sum: Self::W, w: Self::W, a: Self::W) -> Self::W;
    /// The bits of each lane.
    fn to_bits(v: Self::V) -> Self::W;
    /// The lanes of these bits.
    fn from_bits(w: Self::W) -> Self::V;
    /// The i32 in each word as f32.
    fn int_to_float(w: Self::W) -> Self::V;
    /// The low four bits of each byte.
    fn low_nibbles(w: Self::W) -> Self::W;
    /// The high four bits of each byte.
    fn high_nibbles(w: Self::W) -> Self::W;
    /// The IEEE half in the low 16 bits of each word; subnormals, infinities and NaNs included.
    fn low_half(w: Self::W) -> Self::V;
    /// The IEEE half in the high 16 bits of each word.
    fn high_half(w: Self::W) -> Self::V;
    /// Words of two bfloat16 numbers, rounded to the nearest, ties to even; subnormal ones may become 0.
    fn pair(low: Self::V, high: Self::V) -> Self::W;
    /// Writes lanes that are whole numbers from −128 to 127 as words of four int8 codes.
    fn store_codes(v: Self::V, to: &mut [u32]);
}
