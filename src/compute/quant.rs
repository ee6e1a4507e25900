//! From floats to weight formats of fewer bits.
//!
//! What becomes of a row is written in plain loops over eight partial sums, so that every instruction set gives the same
//! codes; a backend compiles them for its own.

use half::{bf16, f16};

use super::weight::{Format, Row};

/// Weights along a row that share a scale in the formats of groups.
pub const GROUP: usize = 32;

/// The largest code; −128 is left unused, so that negation never overflows and zero is the middle.
const MAX_CODE: f64 = 127.0;
/// The largest code of four bits.
const MAX_NIBBLE: f64 = 15.0;
/// Scales tried for a row: the one at which its largest value just fits, and smaller ones.
const SCALES_TRIED: u32 = 32;
/// What the smallest scale tried is of the largest, in 128ths: clipping a lone outlier to 3/4 can pay, more seldom does.
const SMALLEST_SCALE_128THS: u32 = 96;
/// Sums side by side.
const SUMS: usize = 8;

/// Room to bring one row of a weight after another into a format.
pub(super) struct RowRoom {
    values: Vec<f32>,
    rounded: Vec<bf16>,
    codes: Vec<i8>,
    nibbles: Vec<u8>,
    scales: Vec<f16>,
    mins: Vec<f16>,
}

impl RowRoom {
    /// Room for rows of `cols` weights.
    pub(super) fn new(cols: usize) -> Self {
        let groups = cols.div_ceil(GROUP);
        Self {
            values: vec![0.0; cols],
            rounded: vec![bf16::ZERO; cols],
            codes: vec![0; cols],
            nibbles: vec![0; cols],
            scales: vec![f16::ZERO; groups],
            mins: vec![f16::ZERO; groups],
        }
    }

    /// `row` as it is, if that is what `format` multiplies, else brought into it.
    #[inline(always)]
    pub(super) fn in_format<'a>(&'a mut self, row: Row<'a>, format: Format) -> Row<'a> {
        if row.multiplied_in() == format {
            return row;
        }
        let Self {
            values,
            rounded,
            codes,
            nibbles,
            scales,
            mins,
        } = self;
        if let (Row::Q8(stored, scale), Format::Q8Group) = (row, format) {
            // The codes stay what they are; every group has the row's scale.
            codes.copy_from_slice(stored);
            scales.fill(f16::from_f32(scale));
            return Row::Q8Group { codes, scales };
        }
        row.widen(values);
        match format {
            Format::F32 => Row::F32(values),
            Format::Bf16 => {
                for (to, &value) in rounded.iter_mut().zip(&*values) {
                    *to = bf16::from_f32(value);
                }
                Row::Bf16(rounded)
            }
            Format::Q8 => {
                let scale = q8_row(values, codes);
                Row::Q8(codes, scale)
            }
            Format::Q8Group => {
                q8_groups(values, codes, scales);
                Row::Q8Group { codes, scales }
            }
            Format::Q4Group => {
                q4_groups(values, nibbles, scales, mins);
                Row::Q4Group {
                    codes: nibbles,
                    scales,
                    mins,
                }
            }
        }
    }
}

/// Writes a row's int8 codes, −127 to 127, and gives their scale, so that `row[c] ≈ codes[c] · scale`.
///
/// For each step `s` that is tried, `q[c] = round(w[c] / s)`, clipped to the codes, and the scale that fits these codes
/// best in the sense of least squares is `Σ w q / Σ q²`. It leaves a squared error of `Σ w² − (Σ w q)² / Σ q²`, and the
/// codes with the smallest are kept. A row's squared error is therefore never larger than that of plain rounding at
/// `max |w| / 127`, which is at most `cols · (max |w| / 254)²`. Equal weights give equal codes on every machine.
///
/// A row of zeros has codes 0 and scale 1. What is not finite makes the scale NaN.
#[inline(always)]
pub fn q8_row(row: &[f32], codes: &mut [i8]) -> f32 {
    let (step, scale) = best_fit(row);
    round_to_codes(row, step, codes);
    scale
}

/// As [`q8_row`] for each group, with plain rounding at a scale that is a half.
#[inline(always)]
pub(super) fn q8_groups(row: &[f32], codes: &mut [i8], scales: &mut [f16]) {
    let groups = row.chunks(GROUP).zip(codes.chunks_mut(GROUP));
    for ((group, codes), scale) in groups.zip(scales) {
        let largest = f64::from(largest_magnitude(group)) + taint(group);
        *scale = half_at_least(largest / MAX_CODE);
        round_to_codes(group, step_of(*scale), codes);
    }
}

/// Writes 4-bit codes of a row, 0 to 15, and scale and minimum of each group, so that `row[c] ≈ codes[c] · scale + min`.
///
/// For the span of a group and for some narrower ones, whose ends are clipped, values are rounded to sixteen steps, then
/// scale and minimum are fitted to the codes by least squares; the best of these is kept.
#[inline(always)]
pub(super) fn q4_groups(row: &[f32], codes: &mut [u8], scales: &mut [f16], mins: &mut [f16]) {
    let groups = row.chunks(GROUP).zip(codes.chunks_mut(GROUP));
    for ((group, codes), (scale, min)) in groups.zip(scales.iter_mut().zip(mins)) {
        (*scale, *min) = q4_group(group, codes);
    }
}

/// Spans tried for a group of 4-bit codes.
const SPANS_TRIED: u32 = 8;
/// By what part of a group's span each span tried is narrower than the one before.
const SPAN_STEP: f64 = 0.03;

#[inline(always)]
fn q4_group(group: &[f32], codes: &mut [u8]) -> (f16, f16) {
    let (mut low, mut high) = (f32::INFINITY, f32::NEG_INFINITY);
    for &w in group {
        (low, high) = (low.min(w), high.max(w));
    }
    let span = f64::from(high) - f64::from(low);
    let mut best = (f64::INFINITY, f16::ZERO, f16::from_f32(low));
    if span > 0.0 {
        for tried in 0..SPANS_TRIED {
            let clipped = f64::from(tried) * SPAN_STEP * span;
            let (step, min) = (
                (span - clipped) / MAX_NIBBLE,
                f64::from(low) + clipped / 2.0,
            );
            let (scale, min) = fitted(group, step, min);
            let error = q4_error(group, scale, min);
            if error < best.0 {
                best = (error, scale, min);
            }
        }
    }
    let (_, scale, mut min) = best;
    if taint(group).is_nan() {
        min = f16::NAN;
    }
    for (code, &w) in codes.iter_mut().zip(group) {
        *code = nibble(w, 1.0 / step_of(scale), f64::from(min.to_f32())) as u8;
    }
    (scale, min)
}

/// Scale and minimum that fit best, in the sense of least squares, the codes of `group` at `step` and `min`.
#[inline(always)]
fn fitted(group: &[f32], step: f64, min: f64) -> (f16, f16) {
    let (mut q, mut qq, mut w, mut wq) = (0.0, 0.0, 0.0, 0.0);
    for &value in group {
        let code = nibble(value, 1.0 / step, min);
        q += code;
        qq += code * code;
        w += f64::from(value);
        wq += f64::from(value) * code;
    }
    let count = group.len() as f64;
    let spread = count * qq - q * q;
    let (scale, min) = if spread > 0.0 {
        let scale = (count * wq - w * q) / spread;
        (scale, (w - scale * q) / count)
    } else {
        (step, min)
    };
    (f16::from_f64(scale), f16::from_f64(min))
}

#[inline(always)]
fn q4_error(group: &[f32], scale: f16, min: f16) -> f64 {
    let (scale, min) = (step_of(scale), f64::from(min.to_f32()));
    let mut error = 0.0;
    for &w in group {
        let off = f64::from(w) - (nibble(w, 1.0 / scale, min) * scale + min);
        error += off * off;
    }
    error
}

/// `w` in steps above `min`, a whole number from 0 to 15.
#[inline(always)]
fn nibble(w: f32, per_step: f64, min: f64) -> f64 {
    clamped(rounded((f64::from(w) - min) * per_step), 0.0, MAX_NIBBLE)
}

/// The least half that is not below `x`, and not 0 unless `x` is.
#[inline(always)]
fn half_at_least(x: f64) -> f16 {
    let half = f16::from_f64(x);
    if f64::from(half.to_f32()) < x {
        f16::from_bits(half.to_bits() + 1)
    } else {
        half
    }
}

/// What to round by; a scale of 0 belongs to zeros, whose codes are 0 at any step.
#[inline(always)]
fn step_of(scale: f16) -> f64 {
    if scale == f16::ZERO {
        1.0
    } else {
        f64::from(scale.to_f32())
    }
}

/// NaN if a value is not finite, else 0.
#[inline(always)]
fn taint(row: &[f32]) -> f64 {
    let mut taint = 0.0;
    for w in row {
        taint += w * 0.0;
    }
    f64::from(taint)
}

#[inline(always)]
fn largest_magnitude(row: &[f32]) -> f32 {
    let mut largest = 0.0f32;
    for w in row {
        largest = largest.max(w.abs());
    }
    largest
}

/// The step to round `row` by, and the scale that fits the codes so found.
#[inline(always)]
fn best_fit(row: &[f32]) -> (f64, f32) {
    let largest = largest_magnitude(row);
    if largest == 0.0 {
        return (1.0, 1.0);
    }
    let mut best = (0.0, 1.0, f64::NAN);
    for tried in 0..SCALES_TRIED {
        let parts = 128 - tried * (128 - SMALLEST_SCALE_128THS) / (SCALES_TRIED - 1);
        let step = f64::from(largest) / MAX_CODE * f64::from(parts) / 128.0;
        let (wq, qq) = products(row, step);
        // The larger `(Σ w q)² / Σ q²`, the smaller the error; there is a code that is not 0.
        let explained = wq * wq / qq;
        if explained > best.0 {
            best = (explained, step, wq / qq);
        }
    }
    (best.1, best.2 as f32)
}

/// `Σ w q` and `Σ q²` of the codes `q` of a row.
#[inline(always)]
fn products(row: &[f32], step: f64) -> (f64, f64) {
    let (mut wq, mut qq) = ([0.0; SUMS], [0.0; SUMS]);
    let (whole, rest) = row.as_chunks::<SUMS>();
    for eight in whole {
        add_products(eight, step, &mut wq, &mut qq);
    }
    let mut last = [0.0; SUMS];
    last[..rest.len()].copy_from_slice(rest);
    add_products(&last, step, &mut wq, &mut qq);
    (wq.iter().sum(), qq.iter().sum())
}

#[inline(always)]
fn add_products(w: &[f32; SUMS], step: f64, wq: &mut [f64; SUMS], qq: &mut [f64; SUMS]) {
    let mut q = [0.0; SUMS];
    for i in 0..SUMS {
        q[i] = code(w[i], step);
    }
    for i in 0..SUMS {
        wq[i] += f64::from(w[i]) * q[i];
        qq[i] += q[i] * q[i];
    }
}

#[inline(always)]
fn round_to_codes(row: &[f32], step: f64, codes: &mut [i8]) {
    for (to, &w) in codes.iter_mut().zip(row) {
        *to = code(w, step) as i8;
    }
}

/// `w` in steps, a whole number from −127 to 127.
#[inline(always)]
fn code(w: f32, step: f64) -> f64 {
    // Divided, not multiplied by a reciprocal: weights that lie between two codes go to the even one.
    clamped(rounded(f64::from(w) / step), -MAX_CODE, MAX_CODE)
}

/// `x` within its bounds, in the two comparisons that processors have an instruction for; NaN stays NaN.
#[inline(always)]
fn clamped(x: f64, low: f64, high: f64) -> f64 {
    let x = if x < low { low } else { x };
    if x > high { high } else { x }
}

/// The nearest whole number, of two the even one, for magnitudes below 2⁵¹.
#[inline(always)]
fn rounded(x: f64) -> f64 {
    const SHIFT: f64 = 6_755_399_441_055_744.0; // 1.5 · 2⁵²: the sum has no bits for fractions
    (x + SHIFT) - SHIFT
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sum over a row of `(w − q s)²`.
    fn squared_error(row: &[f32], codes: &[i8], scale: f32) -> f64 {
        row.iter()
            .zip(codes)
            .map(|(&w, &q)| (f64::from(w) - f64::from(q) * f64::from(scale)).powi(2))
            .sum()
    }

    /// The same for plain rounding at `max |w| / 127`.
    fn plain_error(row: &[f32]) -> f64 {
        let largest = row.iter().fold(0.0f32, |largest, w| largest.max(w.abs()));
        let step = f64::from(largest) / MAX_CODE;
        row.iter()
            .map(|&w| (f64::from(w) - code(w, step) * step).powi(2))
            .sum()
    }

    /// Sums of three uniform draws, near enough to the bell shape of real weights.
    fn bell(random: &mut fastrand::Rng, len: usize) -> Vec<f32> {
        (0..len)
            .map(|_| (0..3).map(|_| random.f32() - 0.5).sum())
            .collect()
    }

    /// Codes and scales of rows.
    fn quantize_rows(weights: &[f32], cols: usize) -> (Vec<i8>, Vec<f32>) {
        let mut codes = vec![0; weights.len()];
        let rows = weights.chunks_exact(cols).zip(codes.chunks_exact_mut(cols));
        let scales = rows.map(|(row, codes)| q8_row(row, codes)).collect();
        (codes, scales)
    }

    #[test]
    fn a_row_of_zeros_stays_zero() {
        let (codes, scales) = quantize_rows(&[0.0, -0.0, 0.0, 1.0, 0.0, -1.0], 3);
        assert_eq!(codes, [0, 0, 0, 127, 0, -127]);
        assert_eq!(scales[0], 1.0);
        assert!((scales[1] * 127.0 - 1.0).abs() < 1e-6);
        assert_eq!(quantize_rows(&[], 3), (vec![], vec![]));
    }

    #[test]
    fn whole_steps_are_kept_exactly() {
        let row: Vec<f32> = (-127..=127).map(|q| q as f32 * 0.25).collect();
        let (codes, scales) = quantize_rows(&row, row.len());
        assert!(codes.iter().copied().eq(-127..=127));
        assert_eq!(scales, [0.25]);
    }

    #[test]
    fn the_error_is_never_above_that_of_plain_rounding() {
        let mut random = fastrand::Rng::with_seed(8);
        for (cols, amplitude) in [(1, 1.0), (2, 1e-3), (7, 3e4), (384, 1.0), (1536, 1e-30)] {
            let weights: Vec<f32> = bell(&mut random, cols * 9)
                .iter()
                .map(|w| w * amplitude)
                .collect();
            let (codes, scales) = quantize_rows(&weights, cols);
            for ((row, codes), &scale) in weights.chunks(cols).zip(codes.chunks(cols)).zip(&scales)
            {
                assert!(codes.iter().all(|&q| q != i8::MIN));
                let largest = row.iter().fold(0.0f32, |largest, w| largest.max(w.abs()));
                let bound = cols as f64 * (f64::from(largest) / 254.0).powi(2);
                // The scale is rounded to a single: 2⁻²⁴ of 127 codes each.
                let slack = cols as f64 * (f64::from(largest) * 2f64.powi(-23)).powi(2);
                let error = squared_error(row, codes, scale);
                assert!(error <= plain_error(row) + slack, "{cols}: {error}");
                assert!(error <= bound + slack, "{cols}: {error} over {bound}");
            }
        }
    }

    #[test]
    fn one_outlier_is_clipped_where_that_helps_the_others() {
        let mut random = fastrand::Rng::with_seed(9);
        let mut row = bell(&mut random, 1 << 16);
        row[17] = 2.0;
        let (codes, scales) = quantize_rows(&row, row.len());
        assert_eq!(codes[17], 127);
        assert!(scales[0] < 2.0 / 127.0);
        assert!(squared_error(&row, &codes, scales[0]) < 0.9 * plain_error(&row));
    }

    #[test]
    fn what_is_not_finite_stays_visible() {
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let mut row = vec![1.0; 70];
            row[40] = bad;
            let mut codes = vec![0; 70];
            assert!(!q8_row(&row, &mut codes).is_finite());
            let (mut scales, mut mins) = ([f16::ZERO; 3], [f16::ZERO; 3]);
            q8_groups(&row, &mut codes, &mut scales);
            assert!(scales[0].is_finite() && !scales[1].is_finite(), "{bad}");
            q4_groups(&row, &mut [0; 70], &mut scales, &mut mins);
            assert!(mins[0].is_finite() && !mins[1].is_finite(), "{bad}");
        }
    }

    /// Squared errors of groups in 8 and in 4 bits, over the sum of squares.
    fn group_errors(values: &[f32]) -> (f64, f64) {
        let groups = values.len().div_ceil(GROUP);
        let (mut scales, mut mins) = (vec![f16::ZERO; groups], vec![f16::ZERO; groups]);
        let mut error = |format| {
            let mut wide = vec![0.0; values.len()];
            let mut codes = vec![0; values.len()];
            let mut nibbles = vec![0; values.len()];
            let row = if format == Format::Q8Group {
                q8_groups(values, &mut codes, &mut scales);
                Row::Q8Group {
                    codes: &codes,
                    scales: &scales,
                }
            } else {
                q4_groups(values, &mut nibbles, &mut scales, &mut mins);
                Row::Q4Group {
                    codes: &nibbles,
                    scales: &scales,
                    mins: &mins,
                }
            };
            row.widen(&mut wide);
            let square = |x: f32| f64::from(x).powi(2);
            let errors = values.iter().zip(&wide).map(|(v, w)| square(v - w));
            errors.sum::<f64>() / values.iter().map(|&v| square(v)).sum::<f64>()
        };
        (error(Format::Q8Group), error(Format::Q4Group))
    }

    #[test]
    fn groups_keep_the_precision_of_their_bits() {
        let mut random = fastrand::Rng::with_seed(8);
        for len in [1, 31, 32, 33, 100, 1536] {
            let (eight, four) = group_errors(&bell(&mut random, len));
            assert!(eight < 3e-5 && four < 8e-3, "{len}: {eight:e}, {four:e}");
        }
    }

    #[test]
    fn groups_of_equal_values_are_kept() {
        for value in [0.0, 0.5, -3.0] {
            let (eight, four) = group_errors(&[value; 40]);
            assert!(
                !(eight > 1e-6 || four > 1e-6),
                "{value}: {eight:e}, {four:e}"
            );
        }
    }
}
