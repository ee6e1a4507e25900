//! Operations on one row, one head or one sequence.

use crate::compute::{Pool, Ranked, RopePairing};

/// `x / √(mean(x²) + eps) · gain` for each stretch of `gain.len()` values.
pub fn rms_norm(x: &[f32], gain: &[f32], eps: f32) -> Vec<f32> {
    let width = gain.len();
    let mut y = Vec::with_capacity(x.len());
    for row in x.chunks_exact(width) {
        let mean = row.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>() / width as f64;
        let scale = 1.0 / (mean + f64::from(eps)).sqrt();
        for (&x, &gain) in row.iter().zip(gain) {
            y.push((f64::from(x) * scale * f64::from(gain)) as f32);
        }
    }
    y
}

/// `x / max(√Σx², 10⁻¹²)` for each row of `width` values.
pub fn l2_normalize(x: &[f32], width: usize) -> Vec<f32> {
    let mut y = Vec::with_capacity(x.len());
    for row in x.chunks_exact(width) {
        let squares: f64 = row.iter().map(|&x| f64::from(x).powi(2)).sum();
        let scale = if squares < 1e-24 {
            1e12
        } else {
            1.0 / squares.sqrt()
        };
        y.extend(row.iter().map(|&x| (f64::from(x) * scale) as f32));
    }
    y
}

/// One head `[head_dim]` at one position: its pairs `(a, b)` become `(a·cos − b·sin, b·cos + a·sin)`; `cos` and `sin`
/// `[rotary / 2]`.
pub fn rope_head(x: &[f32], cos: &[f32], sin: &[f32], pairing: RopePairing) -> Vec<f32> {
    let half = cos.len();
    let mut y = x.to_vec();
    for i in 0..half {
        let (first, second) = match pairing {
            RopePairing::Halves => (i, i + half),
            RopePairing::Interleaved => (2 * i, 2 * i + 1),
        };
        let (a, b) = (f64::from(x[first]), f64::from(x[second]));
        let (cos, sin) = (f64::from(cos[i]), f64::from(sin[i]));
        y[first] = (a * cos - b * sin) as f32;
        y[second] = (b * cos + a * sin) as f32;
    }
    y
}

/// `[width]` from `x` `[rows, width]`, zeros from no rows.
pub fn pool(x: &[f32], width: usize, pool: Pool) -> Vec<f32> {
    let rows = x.len() / width;
    let column = |j: usize| x.iter().skip(j).step_by(width).map(|&x| f64::from(x));
    let higher = |a: f64, b: f64| if a > b || a.is_nan() { a } else { b };
    let pooled = |j| match pool {
        _ if rows == 0 => 0.0,
        Pool::Mean => column(j).sum::<f64>() / rows as f64,
        Pool::Max => column(j).fold(f64::NEG_INFINITY, higher),
    };
    (0..width).map(|j| pooled(j) as f32).collect()
}

/// `eˣ / Σ eˣ` over a row.
pub fn softmax(x: &[f32]) -> Vec<f32> {
    let highest = x.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let off = |&x: &f32| f64::from(x) - f64::from(highest);
    let total: f64 = x.iter().map(|x| off(x).exp()).sum();
    x.iter().map(|x| (off(x).exp() / total) as f32).collect()
}

/// `ln Σ eˣ` over a row.
pub fn log_sum_exp(x: &[f32]) -> f64 {
    let highest = x.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let total: f64 = if highest.is_infinite() && !x.iter().any(|x| x.is_nan()) {
        1.0
    } else {
        let off = |&x: &f32| f64::from(x) - f64::from(highest);
        x.iter().map(|x| off(x).exp()).sum()
    };
    f64::from(highest) + total.ln()
}

/// The place of the highest value of a row, the first where several are equal; NaN is below all others.
pub fn argmax(x: &[f32]) -> u32 {
    top_k(x, 1)[0].id
}

/// The `k` highest values of a row, the highest first, equal ones by their place; NaN is below all others.
pub fn top_k(x: &[f32], k: usize) -> Vec<Ranked> {
    let mut ranked: Vec<Ranked> = x
        .iter()
        .enumerate()
        .map(|(i, &value)| Ranked {
            id: i as u32,
            value,
        })
        .collect();
    // The sort is stable.
    ranked.sort_by(|a, b| match (a.value.is_nan(), b.value.is_nan()) {
        (false, false) => b.value.partial_cmp(&a.value).expect("neither is NaN"),
        (a, b) => a.cmp(&b),
    });
    ranked.truncate(k);
    ranked
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quarter_turn_shows_which_values_are_pairs() {
        let (x, cos, sin) = ([1.0, 2.0, 3.0, 4.0, 5.0], [0.0, 1.0], [1.0, 0.0]);
        let turned = |pairing| rope_head(&x, &cos, &sin, pairing);
        assert_eq!(turned(RopePairing::Halves), [-3.0, 2.0, 1.0, 4.0, 5.0]);
        assert_eq!(turned(RopePairing::Interleaved), [-2.0, 1.0, 3.0, 4.0, 5.0]);
    }

    #[test]
    fn norms_divide_by_the_root_of_the_mean_and_of_the_sum() {
        assert_eq!(
            rms_norm(&[6.0, -8.0], &[50.0, 5.0], 0.0),
            [
                (300.0 / 50.0f64.sqrt()) as f32,
                (-40.0 / 50.0f64.sqrt()) as f32
            ]
        );
        assert_eq!(l2_normalize(&[3.0, 4.0, 0.0, 0.0], 2), [0.6, 0.8, 0.0, 0.0]);
    }

    #[test]
    fn equal_values_rank_by_their_place_and_nan_last() {
        let x = [f32::NAN, 1.0, f32::NEG_INFINITY, 2.0, 1.0, 2.0];
        let ids: Vec<u32> = top_k(&x, 6).iter().map(|r| r.id).collect();
        assert_eq!((argmax(&x), &ids[..]), (3, &[3, 5, 1, 4, 2, 0][..]));
    }

    #[test]
    fn probabilities_are_those_of_their_logarithms() {
        let x = [0.0, 2f32.ln(), 5f32.ln()];
        assert_eq!(softmax(&x), [0.125, 0.25, 0.625]);
        assert!((log_sum_exp(&x) - 8f64.ln()).abs() < 1e-7);
    }

    #[test]
    fn pools_are_column_by_column() {
        let x = [1.0, -5.0, 3.0, -7.0];
        assert_eq!(pool(&x, 2, Pool::Mean), [2.0, -6.0]);
        assert_eq!(pool(&x, 2, Pool::Max), [3.0, -5.0]);
        assert_eq!(pool(&[], 2, Pool::Max), [0.0, 0.0]);
    }
}
