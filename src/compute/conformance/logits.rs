//! What is asked of rows of scores.

use super::*;
use crate::compute::Ranked;

/// Relative to each probability: its exponent is rounded to 24 bits, and reaches −87.
const SOFTMAX_BOUND: f64 = 7e-6;
/// Absolute, beside the rounding of the exponents: relative to a sum of exponentials.
const LOG_SUM_BOUND: f64 = 5e-7;

/// Rows of `width` scores: plain ones, equal ones, far apart, low and high ones, some that a rule forbids.
fn rows_of(width: usize) -> Vec<(&'static str, Vec<f32>)> {
    let plain: Vec<f32> = uniform(1, width).iter().map(|x| x * 15.0).collect();
    let with = |f: &dyn Fn(usize, f32) -> f32| -> Vec<f32> {
        plain.iter().enumerate().map(|(i, &x)| f(i, x)).collect()
    };
    vec![
        ("plain", plain.clone()),
        ("equal", vec![1.25; width]),
        (
            "zeros of both signs",
            with(&|i, _| if i % 3 == 0 { -0.0 } else { 0.0 }),
        ),
        ("steps", with(&|_, x| (x * 4.0).round())),
        ("rising", with(&|i, _| i as f32 * 1e-3)),
        ("falling", with(&|i, _| i as f32 * -1e-3)),
        ("far apart", with(&|_, x| x * 1e30)),
        (
            "as far apart as exponents go",
            with(&|_, x| x * (43.0 / 15.0)),
        ),
        ("low", with(&|_, x| x - 1e4)),
        ("subnormal", with(&|_, x| x * 1e-40)),
        (
            "one forbidden",
            with(&|i, x| {
                if i + 1 == width / 2 {
                    f32::NEG_INFINITY
                } else {
                    x
                }
            }),
        ),
        (
            "all but one forbidden",
            with(&|i, x| if i == width / 3 { x } else { f32::NEG_INFINITY }),
        ),
    ]
}

const WIDTHS: [usize; 11] = [1, 2, 7, 31, 63, 64, 65, 1023, 1025, 4099, 151_936];

#[test]
fn softmaxes_agree() {
    fn run<B: Backend>(b: &B, x: &[f32], width: usize) -> Vec<f32> {
        let x = b.upload(&[x.len() / width, width], x).unwrap();
        b.download(&b.softmax(&x).unwrap()).unwrap()
    }
    for (name, cpu) in backends() {
        for width in WIDTHS {
            let rows = rows_of(width);
            let x: Vec<f32> = rows.iter().flat_map(|(_, row)| row).copied().collect();
            let (truth, ours) = (run(&Reference, &x, width), run(&cpu, &x, width));
            for (r, (kind, _)) in rows.iter().enumerate() {
                let row = r * width..(r + 1) * width;
                let truth = &truth[row.clone()];
                let what = format!("{name}: {width}, {kind}");
                assert_close(&what, &ours[row], truth, |i| {
                    SOFTMAX_BOUND * f64::from(truth[i]) + f64::from(f32::MIN_POSITIVE) * 2.0
                });
            }
        }
        assert!(run(&cpu, &[], 5).is_empty(), "{name}");
    }
}

#[test]
fn log_sums_agree() {
    fn run<B: Backend>(b: &B, x: &[f32], width: usize) -> Vec<f64> {
        let x = b.upload(&[x.len() / width, width], x).unwrap();
        b.log_sum_exp(&x).unwrap()
    }
    for (name, cpu) in backends() {
        for width in WIDTHS {
            for (kind, row) in rows_of(width) {
                let (truth, ours) = (run(&Reference, &row, width), run(&cpu, &row, width));
                // Exponents are rounded to 24 bits, and weigh as much as the probabilities they become.
                let bound = LOG_SUM_BOUND + (width as f64).ln() * 6e-8;
                assert!(
                    truth[0].is_finite() && (ours[0] - truth[0]).abs() <= bound,
                    "{name}: {width}, {kind}: {} instead of {} ± {bound:e}",
                    ours[0],
                    truth[0]
                );
            }
        }
        assert!(run(&cpu, &[], 5).is_empty(), "{name}");
    }
}

#[test]
fn the_highest_values_are_exact() {
    fn run<B: Backend>(b: &B, x: &[f32], width: usize, k: usize) -> (Vec<u32>, Vec<Ranked>) {
        let x = b.upload(&[x.len() / width, width], x).unwrap();
        (b.argmax(&x).unwrap(), b.top_k(&x, k).unwrap())
    }
    for width in WIDTHS {
        let mut x: Vec<f32> = rows_of(width).into_iter().flat_map(|(_, x)| x).collect();
        let bad = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1.0];
        for kinds in [1, 2, 3, 4] {
            // Rows of NaN alone, of NaN and ∞, and so on.
            x.extend((0..width).map(|i| bad[i * 7 / 3 % kinds]));
        }
        x.extend((0..width).map(|i| [f32::NAN, f32::NEG_INFINITY][i * 7 / 3 % 2]));
        for k in [0, 1, 2, 50, 1000, width] {
            if width > 10_000 && k > 1000 {
                continue;
            }
            let truth = run(&Reference, &x, width, k);
            for (name, cpu) in backends() {
                let ours = run(&cpu, &x, width, k);
                assert_eq!(ours.0, truth.0, "{name}: argmax of {width}");
                // NaN is not equal to itself.
                let bits = |ranked: &[Ranked]| -> Vec<(u32, u32)> {
                    let bits = ranked.iter().map(|r| (r.id, r.value.to_bits()));
                    bits.collect()
                };
                assert_eq!(bits(&ours.1), bits(&truth.1), "{name}: {k} of {width}");
            }
        }
    }
}

#[test]
fn scores_of_infinities_and_nan_do_not_hide_them() {
    fn check<B: Backend>(name: &str, b: &B) {
        for width in [1, 7, 64, 1030] {
            let forbidden = vec![f32::NEG_INFINITY; width];
            let mut rows = vec![(f32::NEG_INFINITY, forbidden)];
            for bad in [f32::INFINITY, f32::NAN] {
                for at in [0, width / 2, width - 1] {
                    let mut row = uniform(1, width);
                    row[at] = bad;
                    rows.push((bad, row));
                }
            }
            for (sum, row) in rows {
                let x = b.upload(&[1, width], &row).unwrap();
                let probabilities = b.download(&b.softmax(&x).unwrap()).unwrap();
                assert!(
                    probabilities.iter().all(|p| p.is_nan()),
                    "{name}: softmax of {width} with {sum}"
                );
                let found = b.log_sum_exp(&x).unwrap()[0] as f32;
                assert!(
                    found == sum || (found.is_nan() && sum.is_nan()),
                    "{name}: log-sum {found} of {width} with {sum}"
                );
            }
        }
    }
    check("reference", &Reference);
    for (name, cpu) in backends() {
        check(&name, &cpu);
    }
}
