//! The vectors that kernels are written in.

use half::{bf16, f16};

/// A register of f32 lanes and what an instruction set does with it.
///
/// Methods that take a slice read or write its first [`Lanes::WIDTH`] elements and panic when there are fewer.
pub(in crate::compute::cpu) trait Lanes: Copy {
    /// A register.
    type V: Copy;
    /// Its lanes.
    const WIDTH: usize;

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
}
