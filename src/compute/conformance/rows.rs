//! Operations that work value by value, row by row, head by head or sequence by sequence.

#![allow(
    clippy::single_range_in_vec_init,
    reason = "the span of one sequence is one range"
)]

use super::*;
use crate::compute::{Pool, Rope, RopePairing};

/// Relative to each value: its row's sum of squares has an error of its own, beside the roundings of the value.
const RMS_BOUND: f64 = 6e-7;
/// Relative to `|a·cos| + |b·sin|`: a rounding of each product and of their sum.
const ROPE_BOUND: f64 = 2e-7;
/// Relative to the product of the magnitudes of gate and `up`.
const GATED_BOUND: f64 = 6e-7;
/// Relative to the magnitude of the result.
const SOFT_CAP_BOUND: f64 = 6e-7;

/// Rows of `width` values with what is hard for a sum of squares: plain ones, zeros, one outlier, subnormals, the largest.
fn hard_rows(width: usize) -> Vec<f32> {
    let plain = uniform(1, width);
    let times = |factor: f32| plain.iter().map(move |x| x * factor);
    let mut rows: Vec<f32> = plain.clone();
    rows.extend(vec![0.0; width]);
    rows.extend(vec![-0.0; width]);
    rows.extend(times(1e-3));
    rows[4 * width - 1] = 3e4;
    for factor in [1e-40, 1e-20, 1e-13, 1e15, 1e19, 1e25, f32::MAX] {
        rows.extend(times(factor));
    }
    rows
}

#[test]
fn rms_norms_agree() {
    fn run<B: Backend>(b: &B, x: &[f32], gain: &[f32], groups: usize, eps: f32) -> Vec<f32> {
        let width = gain.len() * groups;
        let x = b.upload(&[1, x.len() / width, width], x).unwrap();
        let gain = b.upload(&[gain.len()], gain).unwrap();
        b.download(&b.rms_norm(&x, &gain, eps).unwrap()).unwrap()
    }
    for (name, cpu) in backends() {
        for (rows, width, groups) in [
            (0, 5, 1),
            (1, 1, 1),
            (2, 31, 1),
            (3, 33, 7),
            (5, 128, 16),
            (2, 1152, 1),
            (3, 5376, 1),
            (600, 127, 3),
        ] {
            let mut x = uniform(1, rows * groups * width);
            if rows > 0 {
                x.extend(hard_rows(width).repeat(groups));
            }
            let gain = uniform(2, width);
            for eps in [1e-5, 1e-6] {
                let truth = run(&Reference, &x, &gain, groups, eps);
                let ours = run(&cpu, &x, &gain, groups, eps);
                let what = format!("{name}: {rows} rows of {groups} x {width}, {eps:e}");
                assert_close(&what, &ours, &truth, |i| {
                    RMS_BOUND * f64::from(truth[i].abs()) + f64::from(f32::MIN_POSITIVE)
                });
            }
        }
    }
}

#[test]
fn l2_normalised_rows_agree() {
    fn run<B: Backend>(b: &B, x: &[f32], width: usize) -> Vec<f32> {
        let x = b.upload(&[x.len() / width, width], x).unwrap();
        b.download(&b.l2_normalize(&x).unwrap()).unwrap()
    }
    for (name, cpu) in backends() {
        for (rows, width) in [(0, 3), (1, 1), (3, 31), (2, 384), (170, 769)] {
            let mut x = uniform(1, rows * width);
            if rows > 0 {
                x.extend(hard_rows(width));
            }
            let (truth, ours) = (run(&Reference, &x, width), run(&cpu, &x, width));
            let what = format!("{name}: {rows} x {width}");
            assert_close(&what, &ours, &truth, |i| {
                RMS_BOUND * f64::from(truth[i].abs()) + f64::from(f32::MIN_POSITIVE)
            });
        }
    }
}

#[test]
fn norms_of_infinities_and_nan_do_not_hide_them() {
    for (name, cpu) in backends() {
        for width in [1, 7, 64, 65] {
            for at in [0, width / 2, width - 1] {
                for bad in [f32::INFINITY, f32::NEG_INFINITY, f32::NAN] {
                    let mut x = uniform(1, width);
                    x[at] = bad;
                    let x = cpu.upload(&[1, width], &x).unwrap();
                    let gain = cpu.upload(&[width], &vec![1.0; width]).unwrap();
                    for y in [
                        cpu.rms_norm(&x, &gain, 1e-6).unwrap(),
                        cpu.l2_normalize(&x).unwrap(),
                    ] {
                        let y = cpu.download(&y).unwrap();
                        let rest = |y: &f32| if bad.is_nan() { y.is_nan() } else { *y == 0.0 };
                        let mut others = y.iter().enumerate().filter(|&(i, _)| i != at);
                        assert!(
                            y[at].is_nan() && others.all(|(_, y)| rest(y)),
                            "{name}: {bad} at {at} of {width}"
                        );
                    }
                }
            }
        }
    }
}

/// Sequences, their positions, heads, their size, pairs that turn.
type RopeCase = (usize, usize, usize, usize, usize);

/// What stands for the cosine and the sine of an angle.
type Angles = [fn(f32) -> f32; 2];

const ANGLES: Angles = [f32::cos, f32::sin];

/// `|a·cos| + |b·sin|` for each value `a` that turns against a `b`, `|a|` for one that passes.
fn rope_magnitudes(
    x: &[f32],
    case: &RopeCase,
    pairing: RopePairing,
    offsets: &[usize],
) -> Vec<f32> {
    let x: Vec<f32> = x.iter().map(|x| x.abs()).collect();
    let run = |sin| {
        run_rope(
            &Reference,
            &x,
            case,
            pairing,
            offsets,
            [|a| a.cos().abs(), sin],
        )
    };
    // The sine is subtracted for the first of a pair and added for the second: the right one of both is the larger.
    let (firsts, seconds) = (run(|a| -a.sin().abs()), run(|a| a.sin().abs()));
    let both = firsts.iter().zip(&seconds);
    both.map(|(a, b)| a.max(*b)).collect()
}

fn run_rope<B: Backend>(
    b: &B,
    x: &[f32],
    &(batch, length, n_head, head_dim, half): &RopeCase,
    pairing: RopePairing,
    offsets: &[usize],
    [cos, sin]: Angles,
) -> Vec<f32> {
    let positions = 40 + length;
    let angle = |i: usize| (i / half) as f32 * 1e4f32.powf(-((i % half) as f32) / half as f32);
    let table = |f: fn(f32) -> f32| {
        let values: Vec<f32> = (0..positions * half).map(|i| f(angle(i))).collect();
        b.upload(&[positions, half], &values).unwrap()
    };
    let rope = Rope {
        cos: table(cos),
        sin: table(sin),
        pairing,
        head_dim,
    };
    let x = b.upload(&[batch, length, n_head * head_dim], x).unwrap();
    b.download(&b.rope(&x, &rope, offsets).unwrap()).unwrap()
}

#[test]
fn rotary_positions_agree() {
    let cases: [RopeCase; 8] = [
        (1, 0, 2, 4, 2),
        (1, 1, 1, 2, 1),
        (1, 1, 16, 128, 64),
        (2, 5, 3, 64, 32),
        (3, 7, 2, 52, 23),  // Moonshine base
        (2, 3, 8, 36, 16),  // Moonshine tiny
        (1, 31, 1, 37, 17), // a tail of every kind
        (5, 67, 3, 128, 64),
    ];
    for (name, cpu) in backends() {
        for case in &cases {
            let &(batch, length, n_head, head_dim, _) = case;
            let offsets = [0, 17, 40, 3, 1];
            let x = uniform(1, batch * length * n_head * head_dim);
            for pairing in [RopePairing::Halves, RopePairing::Interleaved] {
                // As they are, subnormal, and with one that all but overflows.
                let tiny: Vec<f32> = x.iter().map(|x| x * 1e-40).collect();
                let mut huge = x.clone();
                if let Some(last) = huge.last_mut() {
                    *last = 3e38;
                }
                for x in [&x, &tiny, &huge] {
                    let offsets = &offsets[..batch];
                    let truth = run_rope(&Reference, x, case, pairing, offsets, ANGLES);
                    let ours = run_rope(&cpu, x, case, pairing, offsets, ANGLES);
                    let magnitudes = rope_magnitudes(x, case, pairing, offsets);
                    let what = format!("{name}: {case:?}, {pairing:?}");
                    assert_close(&what, &ours, &truth, |i| {
                        // Subnormal products are rounded to a step of 2⁻¹⁴⁹, each by half of it.
                        ROPE_BOUND * f64::from(magnitudes[i]) + 2.0 * f64::from(f32::from_bits(1))
                    });
                }
            }
        }
    }
}

#[test]
fn a_sequence_turns_alike_wherever_it_stands_and_however_it_is_cut() {
    let case = (2, 6, 2, 20, 8);
    let x = uniform(1, 2 * 6 * 40);
    for (name, cpu) in backends() {
        for pairing in [RopePairing::Halves, RopePairing::Interleaved] {
            let whole = run_rope(&cpu, &x, &case, pairing, &[5, 9], ANGLES);
            let alone = (1, 4, 2, 20, 8);
            let part = run_rope(&cpu, &x[8 * 40..], &alone, pairing, &[11], ANGLES);
            assert_eq!(part, whole[8 * 40..], "{name}, {pairing:?}");
        }
    }
}

#[test]
fn gated_products_agree() {
    fn run<B: Backend>(b: &B, gate: &[f32], up: &[f32], activation: Activation) -> Vec<f32> {
        let (gate, up) = (
            b.upload(&[1, gate.len()], gate).unwrap(),
            b.upload(&[1, up.len()], up).unwrap(),
        );
        b.download(&b.gated(&gate, &up, activation).unwrap())
            .unwrap()
    }
    for (name, cpu) in backends() {
        for len in [0, 1, 15, 16, 17, 1009, 200_003] {
            let mut gate: Vec<f32> = uniform(1, len).iter().map(|x| x * 12.0).collect();
            for (gate, extreme) in gate
                .iter_mut()
                .zip([1e-40, -1e-40, 0.0, -0.0, 3e38, -3e38, 88.0, -88.0])
            {
                *gate = extreme;
            }
            let up = uniform(2, len);
            for activation in [
                Activation::Identity,
                Activation::GeluErf,
                Activation::GeluTanh,
                Activation::Silu,
                Activation::Relu,
                Activation::Tanh,
            ] {
                let truth = run(&Reference, &gate, &up, activation);
                let ours = run(&cpu, &gate, &up, activation);
                let what = format!("{name}: {len} values, {activation:?}");
                assert_close(&what, &ours, &truth, |i| {
                    let product = f64::from(gate[i].abs()) * f64::from(up[i].abs());
                    GATED_BOUND * product + 1e-37
                });
            }
        }
    }
}

#[test]
fn products_and_scales_are_exact() {
    fn run<B: Backend>(b: &B, x: &[f32], y: &[f32], rows: usize) -> [Vec<f32>; 2] {
        let x = b.upload(&[2, rows, x.len() / 2 / rows], x).unwrap();
        let y = b.upload(&[1, y.len()], y).unwrap();
        let product = b.multiply(&x, &y).unwrap();
        let scaled = b.scale(&x, 27.712_812).unwrap();
        [product, scaled].map(|y| b.download(&y).unwrap())
    }
    for (name, cpu) in backends() {
        for (rows, width) in [(1, 1), (7, 31), (3, 768), (3, 70_001)] {
            let (mut x, y) = (uniform(1, 2 * rows * width), uniform(2, width));
            x[0] = 1e-41;
            x[1] = f32::NEG_INFINITY;
            let (truth, ours) = (run(&Reference, &x, &y, rows), run(&cpu, &x, &y, rows));
            assert_eq!(ours, truth, "{name}: {rows} x {width}");
        }
    }
}

#[test]
fn soft_caps_agree() {
    fn run<B: Backend>(b: &B, x: &[f32], cap: f32) -> Vec<f32> {
        let x = b.upload(&[x.len()], x).unwrap();
        b.download(&b.soft_cap(&x, cap).unwrap()).unwrap()
    }
    for (name, cpu) in backends() {
        for len in [0, 1, 17, 70_001] {
            let mut x: Vec<f32> = uniform(1, len).iter().map(|x| x * 100.0).collect();
            for (x, extreme) in
                x.iter_mut()
                    .zip([1e-40, f32::INFINITY, f32::NEG_INFINITY, 1e-5, -0.0])
            {
                *x = extreme;
            }
            for cap in [30.0, 50.0] {
                let (truth, ours) = (run(&Reference, &x, cap), run(&cpu, &x, cap));
                assert_close(&format!("{name}: {len}, {cap}"), &ours, &truth, |i| {
                    SOFT_CAP_BOUND * f64::from(truth[i].abs()) + 1e-43
                });
            }
        }
        let capped = run(&cpu, &[f32::NAN; 3], 30.0);
        assert!(capped.iter().all(|y| y.is_nan()), "{name}: {capped:?}");
    }
}

#[test]
fn pooled_sequences_agree() {
    let cases = [
        (1, 1, 1, vec![0..1]),
        (3, 7, 31, vec![0..7, 6..7, 2..2]),
        (2, 127, 769, vec![0..127, 3..120]),
        (2, 3, 2050, vec![0..1, 1..3]),
        (0, 5, 3, vec![]),
    ];
    for (name, cpu) in backends() {
        for (batch, length, width, spans) in &cases {
            let x = uniform(1, batch * length * width);
            for pool in [Pool::Mean, Pool::Max] {
                let shape = [*batch, *length, *width];
                let truth = run_pool(&Reference, &x, &shape, spans, pool);
                let ours = run_pool(&cpu, &x, &shape, spans, pool);
                let what = format!("{name}: {shape:?}, {spans:?}, {pool:?}");
                let bound = match pool {
                    Pool::Mean => SUM_BOUND * (*length as f64).sqrt(),
                    Pool::Max => 0.0,
                };
                assert_close(&what, &ours, &truth, |_| bound);
            }
        }
    }
}

fn run_pool<B: Backend>(
    b: &B,
    x: &[f32],
    shape: &[usize],
    spans: &[std::ops::Range<usize>],
    pool: Pool,
) -> Vec<f32> {
    let x = b.upload(shape, x).unwrap();
    b.download(&b.pool(&x, spans, pool).unwrap()).unwrap()
}

#[test]
fn pooling_one_position_is_that_position_and_nan_stays() {
    for (name, cpu) in backends() {
        let x = uniform(1, 5 * 19);
        for pool in [Pool::Mean, Pool::Max] {
            let last = run_pool(&cpu, &x, &[1, 5, 19], &[4..5], pool);
            assert_eq!(last, x[4 * 19..], "{name}");
            for row in 0..5 {
                let mut x = x.clone();
                x[row * 19 + 17] = f32::NAN;
                let y = run_pool(&cpu, &x, &[1, 5, 19], &[0..5], pool);
                let nans = y.iter().filter(|y| y.is_nan()).count();
                assert!(y[17].is_nan() && nans == 1, "{name}: {pool:?}, row {row}");
            }
        }
    }
}

#[test]
fn the_number_of_threads_does_not_change_a_bit() {
    let x: Vec<f32> = uniform(1, 3 * 300 * 260).iter().map(|x| x * 9.0).collect();
    for isa in Isa::available() {
        let results = [1, 2, 3].map(|threads| {
            let b = Cpu::new(isa, threads).unwrap();
            let gain = b.upload(&[130], &uniform(2, 130)).unwrap();
            let sequences = b.upload(&[3, 300, 260], &x).unwrap();
            let by_rows = [
                b.rms_norm(&sequences, &gain, 1e-6),
                b.l2_normalize(&sequences),
                b.softmax(&sequences),
                b.gated(&sequences, &sequences, Activation::Silu),
                b.soft_cap(&sequences, 30.0),
                b.pool(&sequences, &[0..300, 1..300, 7..200], Pool::Mean),
            ];
            let by_rows = by_rows.map(|y| b.download(&y.unwrap()).unwrap());
            let turned = run_rope(
                &b,
                &x,
                &(3, 300, 2, 130, 60),
                RopePairing::Halves,
                &[0, 3, 40],
                ANGLES,
            );
            (by_rows, turned, b.log_sum_exp(&sequences).unwrap())
        });
        assert!(
            results[0] == results[1] && results[0] == results[2],
            "{}",
            isa.name()
        );
    }
}
