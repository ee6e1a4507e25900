//! Every backend against [`Reference`], over the shapes and values that find mistakes.
//!
//! Rows are backends, one for each instruction set of this machine and for one and two threads; a new one joins
//! [`backends`]. Columns are the cases of each operation, with sizes around the lanes, tiles and tasks of the kernels.

mod logits;
mod rows;

use bytes::Bytes;

use super::cpu::{Cpu, Isa};
use super::reference::Reference;
use super::{Activation, AttentionMask, Backend, Conv, Weight, WeightFormat, quant};

/// Relative to the sum of the magnitudes that were added: half a ULP for each of √k independent roundings, and some.
const SUM_BOUND: f64 = 2.4e-7;
/// Relative to the magnitude of a GELU's input, whose erf is within 5·10⁻⁷.
const GELU_BOUND: f64 = 5e-7;
/// Relative to the largest value of a row.
const NORM_BOUND: f64 = 2e-6;
/// Relative to the largest value of `v`.
const ATTENTION_BOUND: f64 = 4e-6;

fn backends() -> Vec<(String, Cpu)> {
    let isas = Isa::available();
    let rows = isas
        .iter()
        .flat_map(|&isa| [1, 2].map(|threads| (isa, threads)));
    rows.map(|(isa, threads)| {
        (
            format!("{} x {threads}", isa.name()),
            Cpu::new(isa, threads).unwrap(),
        )
    })
    .collect()
}

/// Values in [−1, 1), the same for the same seed.
fn uniform(seed: u64, len: usize) -> Vec<f32> {
    let mut rng = fastrand::Rng::with_seed(seed);
    (0..len).map(|_| rng.f32() * 2.0 - 1.0).collect()
}

/// Fails with the worst of `ours` unless each value lies within its `bound` of `truth`.
fn assert_close(what: &str, ours: &[f32], truth: &[f32], bound: impl Fn(usize) -> f64) {
    assert_eq!(ours.len(), truth.len(), "{what}: sizes");
    assert!(
        truth.iter().all(|value| value.is_finite()),
        "{what}: the reference is not finite"
    );
    let excess = |&i: &usize| (f64::from(ours[i]) - f64::from(truth[i])).abs() - bound(i);
    let worst = (0..ours.len()).max_by(|i, j| excess(i).total_cmp(&excess(j)));
    if let Some(i) = worst {
        assert!(
            excess(&i) <= 0.0,
            "{what}: value {i} is {}, not {} ± {:e}",
            ours[i],
            truth[i],
            bound(i)
        );
    }
}

/// Each storage format of a weight with these values, by name.
fn formats(values: &[f32], rows: usize, cols: usize) -> Vec<(&'static str, Weight)> {
    let half: Vec<half::f16> = values.iter().map(|&v| half::f16::from_f32(v)).collect();
    let brain: Vec<half::bf16> = values.iter().map(|&v| half::bf16::from_f32(v)).collect();
    let (codes, scales) = quant::quantize_rows(values, cols);
    let bytes = |slice: &[u8]| Bytes::copy_from_slice(slice);
    let formats = [
        (
            "f32",
            WeightFormat::F32(bytes(bytemuck::cast_slice(values))),
        ),
        ("f16", WeightFormat::F16(bytes(bytemuck::cast_slice(&half)))),
        (
            "bf16",
            WeightFormat::Bf16(bytes(bytemuck::cast_slice(&brain))),
        ),
        (
            "q8",
            WeightFormat::Q8 {
                codes: bytes(bytemuck::cast_slice(&codes)),
                scales,
            },
        ),
    ];
    formats
        .map(|(name, format)| (name, Weight::new(rows, cols, format).unwrap()))
        .into()
}

/// `activation(x · wᵀ + bias)` on a backend and on the reference, within the bound of a sum.
fn linear_agrees(
    name: &str,
    cpu: &Cpu,
    x: &[f32],
    weight: &Weight,
    m: usize,
    activation: Activation,
) {
    let (n, k) = (weight.rows(), weight.cols());
    let bias = uniform(3, n);
    let truth = run_linear(&Reference, x, weight, &bias, m, activation);
    let ours = run_linear(cpu, x, weight, &bias, m, activation);

    let mut magnitudes = Reference.matrix(weight.clone()).unwrap();
    magnitudes.2.iter_mut().for_each(|w| *w = w.abs());
    let x: Vec<f32> = x.iter().map(|x| x.abs()).collect();
    let x = Reference.upload(&[m, k], &x).unwrap();
    let sums = Reference
        .linear(&x, &magnitudes, None, Activation::Identity)
        .unwrap();
    let sums = Reference.download(&sums).unwrap();
    let slack = if activation == Activation::GeluErf {
        GELU_BOUND
    } else {
        0.0
    };
    assert_close(name, &ours, &truth, |i| {
        let sum = f64::from(sums[i]) + f64::from(bias[i % n].abs());
        (SUM_BOUND * (k as f64).sqrt()) * sum + slack * sum + f64::from(f32::MIN_POSITIVE)
    });
}

fn run_linear<B: Backend>(
    b: &B,
    x: &[f32],
    w: &Weight,
    bias: &[f32],
    m: usize,
    activation: Activation,
) -> Vec<f32> {
    let x = b.upload(&[m, w.cols()], x).unwrap();
    let bias = b.upload(&[bias.len()], bias).unwrap();
    let w = b.matrix(w.clone()).unwrap();
    b.download(&b.linear(&x, &w, Some(&bias), activation).unwrap())
        .unwrap()
}

#[test]
fn linear_layers_agree() {
    let sizes = [
        (0, 3, 5),
        (1, 1, 1),
        (1, 31, 33),
        (1, 1030, 96),
        (2, 33, 31),
        (5, 257, 64),
        (31, 7, 65),
        (32, 40, 32),
        (33, 32, 31),
        (33, 1, 7),
        (97, 33, 385),
        (107, 65, 384),
        (100, 67, 769),
        (193, 129, 1),
    ];
    for (name, cpu) in backends() {
        for (m, n, k) in sizes {
            let (x, w) = (uniform(1, m * k), uniform(2, n * k));
            for (format, weight) in formats(&w, n, k) {
                for activation in [Activation::Identity, Activation::GeluErf] {
                    let what = format!("{name}: {m} x {n} x {k}, {format}, {activation:?}");
                    linear_agrees(&what, &cpu, &x, &weight, m, activation);
                }
            }
        }
    }
}

#[test]
fn linear_layers_agree_on_extreme_values() {
    let (m, n, k) = (34, 35, 66);
    let outlier = |seed, len| {
        let mut values = uniform(seed, len);
        values[len / 2] = 3e4;
        values
    };
    let kinds: [(&str, Vec<f32>, Vec<f32>); 4] = [
        ("zeros", vec![0.0; m * k], vec![0.0; n * k]),
        ("one outlier", outlier(1, m * k), outlier(2, n * k)),
        ("subnormals", vec![1e-40; m * k], uniform(2, n * k)),
        ("negative zeros", vec![-0.0; m * k], uniform(2, n * k)),
    ];
    for (name, cpu) in backends() {
        for (kind, x, w) in &kinds {
            for (format, weight) in formats(w, n, k) {
                for rows in [1, 3, m] {
                    let what = format!("{name}: {kind}, {format}, {rows} rows");
                    linear_agrees(
                        &what,
                        &cpu,
                        &x[..rows * k],
                        &weight,
                        rows,
                        Activation::Identity,
                    );
                }
            }
        }
    }
}

#[test]
fn infinities_and_nans_stay_visible() {
    let weight = Weight::from_f32(3, 2, vec![1.0; 6]);
    for (name, cpu) in backends() {
        for rows in [1, 2, 40] {
            for bad in [f32::INFINITY, f32::NAN] {
                let y = run_linear(
                    &cpu,
                    &vec![bad; rows * 2],
                    &weight,
                    &[0.0; 3],
                    rows,
                    Activation::Identity,
                );
                assert!(
                    y.iter().all(|y| !y.is_finite()),
                    "{name}: {bad} in {rows} rows gave {y:?}"
                );
            }
        }
    }
}

#[test]
fn convolutions_agree() {
    let cases = [
        (
            1,
            7,
            5,
            4,
            Conv {
                kernel: 3,
                stride: 1,
                padding: 1,
            },
        ),
        (
            2,
            40,
            3,
            33,
            Conv {
                kernel: 3,
                stride: 2,
                padding: 1,
            },
        ),
        (
            1,
            201,
            8,
            17,
            Conv {
                kernel: 5,
                stride: 2,
                padding: 0,
            },
        ),
        (
            3,
            1,
            4,
            2,
            Conv {
                kernel: 3,
                stride: 1,
                padding: 1,
            },
        ),
    ];
    for (name, cpu) in backends() {
        for (batch, length, channels, n, conv) in cases {
            let x = uniform(1, batch * length * channels);
            let w = Weight::from_f32(
                n,
                conv.kernel * channels,
                uniform(2, n * conv.kernel * channels),
            );
            let bias = uniform(3, n);
            let shape = [batch, length, channels];
            let truth = run_conv(&Reference, &x, &shape, &w, &bias, conv);
            let ours = run_conv(&cpu, &x, &shape, &w, &bias, conv);
            let bound = SUM_BOUND * (w.cols() as f64).sqrt() * (w.cols() + 1) as f64;
            assert_close(
                &format!("{name}: {length} x {channels} -> {n}, {conv:?}"),
                &ours,
                &truth,
                |_| bound,
            );
        }
    }
}

fn run_conv<B: Backend>(
    b: &B,
    x: &[f32],
    shape: &[usize],
    w: &Weight,
    bias: &[f32],
    conv: Conv,
) -> Vec<f32> {
    let (x, bias) = (
        b.upload(shape, x).unwrap(),
        b.upload(&[bias.len()], bias).unwrap(),
    );
    let w = b.matrix(w.clone()).unwrap();
    b.download(
        &b.conv1d(&x, &w, Some(&bias), conv, Activation::Identity)
            .unwrap(),
    )
    .unwrap()
}

#[test]
fn layer_norms_agree() {
    for (name, cpu) in backends() {
        for (rows, width) in [(1, 1), (3, 31), (2, 33), (5, 384), (700, 129)] {
            let mut x = uniform(1, rows * width);
            x[..width].fill(0.25); // a row without variance
            x.iter_mut().skip(width).for_each(|x| *x = *x * 3.0 + 10.0);
            let truth = run_norm(&Reference, &x, width);
            let ours = run_norm(&cpu, &x, width);
            let highest = truth.iter().fold(1.0f32, |highest, y| highest.max(y.abs()));
            let bound = NORM_BOUND * 16.0 * f64::from(highest);
            assert_close(&format!("{name}: {rows} x {width}"), &ours, &truth, |_| {
                bound
            });
        }
    }
}

fn run_norm<B: Backend>(b: &B, x: &[f32], width: usize) -> Vec<f32> {
    let gain = b.upload(&[width], &uniform(2, width)).unwrap();
    let bias = b.upload(&[width], &uniform(3, width)).unwrap();
    let x = b.upload(&[x.len() / width, width], x).unwrap();
    b.download(&b.layer_norm(&x, &gain, &bias, 1e-5).unwrap())
        .unwrap()
}

/// Queries, cached positions, heads and their size, sequences of queries, sequences cached.
struct AttentionCase {
    new: usize,
    len: usize,
    n_head: usize,
    head_dim: usize,
    batch: usize,
    cached: usize,
}

#[test]
fn attention_agrees() {
    let case = |new, len, n_head, head_dim, batch, cached| AttentionCase {
        new,
        len,
        n_head,
        head_dim,
        batch,
        cached,
    };
    let cases = [
        case(1, 1, 1, 1, 1, 1),
        case(1, 33, 3, 5, 1, 1),
        case(1, 65, 2, 64, 5, 1),
        case(3, 7, 2, 16, 2, 2),
        case(8, 100, 1, 33, 1, 1),
        case(9, 9, 3, 64, 1, 1),
        case(50, 131, 2, 40, 2, 2),
        case(97, 97, 4, 8, 1, 1),
    ];
    for (name, cpu) in backends() {
        for case in &cases {
            for mask in [AttentionMask::Full, AttentionMask::Causal] {
                let (truth, ours) = (
                    run_attention(&Reference, case, mask),
                    run_attention(&cpu, case, mask),
                );
                let AttentionCase {
                    new,
                    len,
                    n_head,
                    head_dim,
                    batch,
                    ..
                } = case;
                let what = format!(
                    "{name}: {new} x {len}, {n_head} heads of {head_dim}, batch {batch}, {mask:?}"
                );
                assert_close(&what, &ours, &truth, |_| ATTENTION_BOUND);
            }
        }
    }
}

fn run_attention<B: Backend>(b: &B, case: &AttentionCase, mask: AttentionMask) -> Vec<f32> {
    let &AttentionCase {
        new,
        len,
        n_head,
        head_dim,
        batch,
        cached,
    } = case;
    let width = n_head * head_dim;
    let upload = |seed, batch, rows| {
        b.upload(&[batch, rows, width], &uniform(seed, batch * rows * width))
            .unwrap()
    };
    let mut cache = b.kv_cache(cached, len + 3, width).unwrap();
    b.kv_append(&mut cache, &upload(6, cached, len), &upload(7, cached, len))
        .unwrap();
    b.kv_truncate(&mut cache, 0); // what was there before must not shine through
    let first = len / 2; // in two steps, as a prompt and its continuation
    b.kv_append(
        &mut cache,
        &upload(2, cached, first),
        &upload(3, cached, first),
    )
    .unwrap();
    b.kv_append(
        &mut cache,
        &upload(4, cached, len - first),
        &upload(5, cached, len - first),
    )
    .unwrap();
    b.download(
        &b.attention(&upload(1, batch, new), &cache, n_head, mask)
            .unwrap(),
    )
    .unwrap()
}

#[test]
fn gathers_sums_and_positions_are_exact() {
    let table = uniform(1, 7 * 5);
    for (name, cpu) in backends() {
        for (format, weight) in formats(&table, 7, 5) {
            let what = format!("{name}, {format}");
            assert_eq!(
                run_moves(&cpu, &weight),
                run_moves(&Reference, &weight),
                "{what}"
            );
        }
    }
}

fn run_moves<B: Backend>(b: &B, table: &Weight) -> Vec<f32> {
    let table = b.matrix(table.clone()).unwrap();
    let x = b.embed(&table, &[6, 0, 3, 3, 1, 2], 2).unwrap();
    let y = b.upload(&[3, 5], &uniform(2, 15)).unwrap();
    let x = b.add(&x, &y).unwrap();
    b.download(&b.positions(&x, 1, 3).unwrap()).unwrap()
}

#[test]
fn sums_of_many_values_are_exact() {
    let (x, y) = (uniform(1, 3 * 70_001), uniform(2, 70_001));
    for (name, cpu) in backends() {
        let sum = |b: &Cpu| {
            let (x, y) = (
                b.upload(&[3, 70_001, 1], &x).unwrap(),
                b.upload(&[70_001, 1], &y).unwrap(),
            );
            b.download(&b.add(&x, &y).unwrap()).unwrap()
        };
        let truth: Vec<f32> = x.iter().zip(y.iter().cycle()).map(|(x, y)| x + y).collect();
        assert_eq!(sum(&cpu), truth, "{name}");
    }
}

#[test]
fn the_number_of_threads_does_not_change_a_bit() {
    let weight = Weight::from_f32(130, 400, uniform(2, 130 * 400));
    let case = AttentionCase {
        new: 60,
        len: 90,
        n_head: 4,
        head_dim: 16,
        batch: 1,
        cached: 1,
    };
    for isa in Isa::available() {
        let results = [1, 2, 3].map(|threads| {
            let cpu = Cpu::new(isa, threads).unwrap();
            let many = run_linear(
                &cpu,
                &uniform(1, 200 * 400),
                &weight,
                &uniform(3, 130),
                200,
                Activation::GeluErf,
            );
            let one = run_linear(
                &cpu,
                &uniform(1, 400),
                &weight,
                &uniform(3, 130),
                1,
                Activation::GeluErf,
            );
            (many, one, run_attention(&cpu, &case, AttentionMask::Causal))
        });
        assert!(
            results[0] == results[1] && results[0] == results[2],
            "{}",
            isa.name()
        );
    }
}
