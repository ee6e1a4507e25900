//! From floats to weight formats of fewer bits.

/// The largest code; −128 is left unused, so that negation never overflows and zero is the middle.
const MAX_CODE: f64 = 127.0;
/// Scales tried for a row: the one at which its largest value just fits, and smaller ones.
const SCALES_TRIED: u32 = 32;
/// What the smallest scale tried is of the largest, in 128ths: clipping a lone outlier to 3/4 can pay, more seldom does.
const SMALLEST_SCALE_128THS: u32 = 96;

/// Int8 codes `[rows, cols]` and scales `[rows]` of the matrix `weights` `[rows, cols]`, so that
/// `weights[r][c] ≈ codes[r][c] · scales[r]` with codes from −127 to 127.
///
/// For each scale `s` that is tried, `q[c] = round(w[c] / s)`, clipped to the codes, and the scale that fits these codes
/// best in the sense of least squares is `Σ w q / Σ q²`. It leaves a squared error of `Σ w² − (Σ w q)² / Σ q²`, and the
/// codes with the smallest are kept. A row's squared error is therefore never larger than that of plain rounding at
/// `max |w| / 127`, which is at most `cols · (max |w| / 254)²`. Equal weights give equal codes on every machine.
///
/// A row of zeros has codes 0 and scale 1.
///
/// # Panics
/// `cols` is 0 or does not divide the number of weights; a weight is not finite.
pub fn quantize_rows(weights: &[f32], cols: usize) -> (Vec<i8>, Vec<f32>) {
    assert!(
        cols > 0 && weights.len().is_multiple_of(cols),
        "{} weights are not rows of {cols}",
        weights.len()
    );
    assert!(weights.iter().all(|w| w.is_finite()), "weights are finite");
    let mut codes = Vec::with_capacity(weights.len());
    let mut scales = Vec::with_capacity(weights.len() / cols);
    for row in weights.chunks_exact(cols) {
        let (step, scale) = best_fit(row);
        codes.extend(row.iter().map(|&w| code(w, step) as i8));
        scales.push(scale);
    }
    (codes, scales)
}

/// The step to round `row` by, and the scale that fits the codes so found.
fn best_fit(row: &[f32]) -> (f64, f32) {
    let largest = row.iter().fold(0.0f32, |largest, w| largest.max(w.abs()));
    if largest == 0.0 {
        return (1.0, 1.0);
    }
    let mut best = (0.0, 1.0, 1.0);
    for tried in 0..SCALES_TRIED {
        let parts = 128 - tried * (128 - SMALLEST_SCALE_128THS) / (SCALES_TRIED - 1);
        let step = f64::from(largest) / MAX_CODE * f64::from(parts) / 128.0;
        let (mut wq, mut qq) = (0.0, 0.0);
        for &w in row {
            let q = code(w, step);
            wq += f64::from(w) * q;
            qq += q * q;
        }
        // The larger `(Σ w q)² / Σ q²`, the smaller the error; there is a code that is not 0.
        let explained = wq * wq / qq;
        if explained > best.0 {
            best = (explained, step, wq / qq);
        }
    }
    (best.1, best.2 as f32)
}

/// `w` in steps of `step`, a whole number from −127 to 127.
fn code(w: f32, step: f64) -> f64 {
    (f64::from(w) / step)
        .round_ties_even()
        .clamp(-MAX_CODE, MAX_CODE)
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
    #[should_panic(expected = "5 weights are not rows of 3")]
    fn ragged_rows_are_our_mistake() {
        quantize_rows(&[0.0; 5], 3);
    }
}
