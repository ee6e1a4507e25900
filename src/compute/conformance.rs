//! Every backend against [`Reference`], over the shapes and values that find mistakes.
//!
//! Rows are backends, one for each instruction set of this machine and for one and two threads; a new one joins
//! [`backends`]. Columns are the cases of each operation, with sizes around the lanes, tiles and tasks of the kernels.

mod attention;
mod logits;
mod rows;
mod shapes;

use bytes::Bytes;

use super::cpu::{Cpu, Isa};
use super::reference::Reference;
use super::{
    Activation, AttentionMask, Backend, Conv, Format, Fused, KvFormat, Weight, WeightFormat, quant,
};

/// Relative to the sum of the magnitudes that were added: half a ULP for each of √k independent roundings, and some.
const SUM_BOUND: f64 = 2.4e-7;
/// Relative to the magnitude of an activation's input: the error function is within 5·10⁻⁷, the others are closer.
const ACTIVATION_BOUND: f64 = 5e-7;
/// Relative to the largest value of a row.
const NORM_BOUND: f64 = 2e-6;
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

/// Each format that a weight with these values can be stored and multiplied in, by name.
fn formats(values: &[f32], rows: usize, cols: usize) -> Vec<(String, Weight, Format)> {
    let half: Vec<half::f16> = values.iter().map(|&v| half::f16::from_f32(v)).collect();
    let brain: Vec<half::bf16> = values.iter().map(|&v| half::bf16::from_f32(v)).collect();
    let mut codes = vec![0; values.len()];
    let scales = codes
        .chunks_exact_mut(cols)
        .zip(values.chunks_exact(cols))
        .map(|(codes, row)| quant::q8_row(row, codes))
        .collect();
    let bytes = |slice: &[u8]| Bytes::copy_from_slice(slice);
    let stored = [
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
    let stored = stored.map(|(name, format)| (name, Weight::new(rows, cols, format).unwrap()));
    let formats = [
        Format::F32,
        Format::Bf16,
        Format::Q8,
        Format::Q8Group,
        Format::Q4Group,
    ];
    let pairs = stored.iter().flat_map(|(name, weight)| {
        formats.map(|format| {
            let name = format!("{name} as {}", format.name());
            (name, weight.clone(), format)
        })
    });
    // From singles into each format, and each other storage into its own and into singles.
    pairs
        .filter(|(name, weight, format)| {
            name.starts_with("f32") || *format == Format::F32 || *format == weight.multiplied_in()
        })
        .collect()
}

/// A linear layer to be compared: `m` rows of `x`, a weight and what it is multiplied in, and what follows.
struct Layer<'a> {
    x: &'a [f32],
    m: usize,
    weight: &'a Weight,
    format: Format,
    activation: Activation,
    has_residual: bool,
}

impl Layer<'_> {
    fn bias(&self) -> Vec<f32> {
        uniform(3, self.weight.rows())
    }

    fn run<B: Backend>(&self, b: &B) -> Vec<f32> {
        let n = self.weight.rows();
        let x = b.upload(&[self.m, self.weight.cols()], self.x).unwrap();
        let bias = b.upload(&[n], &self.bias()).unwrap();
        let residual = b.upload(&[self.m, n], &uniform(4, self.m * n)).unwrap();
        let w = b.matrix(self.weight, self.format).unwrap();
        let fused = Fused {
            bias: Some(&bias),
            activation: self.activation,
            residual: self.has_residual.then_some(&residual),
        };
        b.download(&b.linear(&x, &w, fused).unwrap()).unwrap()
    }

    /// Fails unless the layer's values are the reference's, within the bound of a sum.
    fn agrees(&self, name: &str, cpu: &Cpu) {
        let (n, k) = (self.weight.rows(), self.weight.cols());
        let bias = self.bias();
        let (ours, truth) = (self.run(cpu), self.run(&Reference));

        let magnitudes = Reference
            .matrix(self.weight, self.format)
            .unwrap()
            .magnitudes();
        let x: Vec<f32> = self.x.iter().map(|x| x.abs()).collect();
        let x = Reference.upload(&[self.m, k], &x).unwrap();
        let sums = Reference.linear(&x, &magnitudes, Fused::default()).unwrap();
        let sums = Reference.download(&sums).unwrap();
        let slack = if self.activation == Activation::Identity {
            0.0
        } else {
            ACTIVATION_BOUND
        };
        assert_close(name, &ours, &truth, |i| {
            let sum = f64::from(sums[i]) + f64::from(bias[i % n].abs());
            let residual = if self.has_residual { 1.0 } else { 0.0 };
            SUM_BOUND * (k as f64).sqrt() * (sum + residual)
                + slack * sum
                + f64::from(f32::MIN_POSITIVE)
        });
    }
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
        (13, 2, 70_001), // rows longer than a task's
    ];
    for (name, cpu) in backends() {
        for (m, n, k) in sizes {
            let (x, w) = (uniform(1, m * k), uniform(2, n * k));
            for (format_name, weight, format) in formats(&w, n, k) {
                // What follows the sum is the same for all formats.
                let followed_by: &[_] = if format == Format::F32 {
                    &[
                        (Activation::Identity, false),
                        (Activation::GeluErf, true),
                        (Activation::GeluTanh, false),
                        (Activation::Silu, false),
                        (Activation::Relu, true),
                        (Activation::Tanh, false),
                    ]
                } else {
                    &[(Activation::Identity, true)]
                };
                for &(activation, has_residual) in followed_by {
                    let layer = Layer {
                        x: &x,
                        m,
                        weight: &weight,
                        format,
                        activation,
                        has_residual,
                    };
                    layer.agrees(
                        &format!("{name}: {m} x {n} x {k}, {format_name}, {activation:?}"),
                        &cpu,
                    );
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
            for (format_name, weight, format) in formats(w, n, k) {
                for rows in [1, 3, m] {
                    let layer = Layer {
                        x: &x[..rows * k],
                        m: rows,
                        weight: &weight,
                        format,
                        activation: Activation::Identity,
                        has_residual: false,
                    };
                    layer.agrees(&format!("{name}: {kind}, {format_name}, {rows} rows"), &cpu);
                }
            }
        }
    }
}

#[test]
fn infinities_and_nans_stay_visible() {
    for (name, cpu) in backends() {
        for (format_name, weight, format) in formats(&[1.0; 3 * 70], 3, 70) {
            for rows in [1, 2, 40] {
                for bad in [f32::INFINITY, f32::NEG_INFINITY, f32::NAN] {
                    let mut x = vec![0.5; rows * 70];
                    x.iter_mut().skip(33).step_by(70).for_each(|x| *x = bad);
                    let layer = Layer {
                        x: &x,
                        m: rows,
                        weight: &weight,
                        format,
                        activation: Activation::Identity,
                        has_residual: false,
                    };
                    let y = layer.run(&cpu);
                    assert!(
                        y.iter().all(|y| !y.is_finite()),
                        "{name}, {format_name}: {bad} in {rows} rows gave {y:?}"
                    );
                }
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
    let w = b.matrix(w, Format::F32).unwrap();
    let fused = Fused {
        bias: Some(&bias),
        ..Fused::default()
    };
    b.download(&b.conv1d(&x, &w, conv, fused).unwrap()).unwrap()
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

#[test]
fn gathers_sums_and_positions_are_exact() {
    let table = uniform(1, 7 * 5);
    for (name, cpu) in backends() {
        for (format_name, weight, format) in formats(&table, 7, 5) {
            assert_eq!(
                run_moves(&cpu, &weight, format),
                run_moves(&Reference, &weight, format),
                "{name}, {format_name}"
            );
        }
    }
}

fn run_moves<B: Backend>(b: &B, table: &Weight, format: Format) -> Vec<f32> {
    let table = b.matrix(table, format).unwrap();
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
fn packed_weights_can_be_kept_and_used_again() {
    let (n, k) = (37, 70);
    for (name, cpu) in backends() {
        for (format_name, weight, format) in formats(&uniform(2, n * k), n, k) {
            let packed = cpu.matrix(&weight, format).unwrap();
            let bytes = cpu.matrix_bytes(&packed).unwrap().clone();
            let again = cpu.matrix_from_bytes(n, k, format, bytes.clone()).unwrap();
            let x = cpu.upload(&[3, k], &uniform(1, 3 * k)).unwrap();
            let run = |w| {
                cpu.download(&cpu.linear(&x, w, Fused::default()).unwrap())
                    .unwrap()
            };
            assert_eq!(run(&packed), run(&again), "{name}, {format_name}");
            for (rows, bytes) in [(n + 32, bytes.clone()), (n, bytes.slice(4..))] {
                cpu.matrix_from_bytes(rows, k, format, bytes).unwrap_err();
            }
        }
    }
}

#[test]
fn the_number_of_threads_does_not_change_a_bit() {
    let weight = Weight::from_f32(130, 400, uniform(2, 130 * 400));
    let case = attention::Case {
        new: 60,
        len: 90,
        n_head: 4,
        n_kv_head: 4,
        head_dim: 16,
        batch: 1,
        cached: 1,
    };
    for isa in Isa::available() {
        for format in [Format::F32, Format::Bf16, Format::Q8, Format::Q4Group] {
            let results = [1, 2, 3].map(|threads| {
                let cpu = Cpu::new(isa, threads).unwrap();
                let layer = |m| {
                    Layer {
                        x: &uniform(1, m * 400),
                        m,
                        weight: &weight,
                        format,
                        activation: Activation::GeluErf,
                        has_residual: true,
                    }
                    .run(&cpu)
                };
                let attended = attention::run(&cpu, case, AttentionMask::Causal, KvFormat::Bf16);
                (layer(200), layer(1), attended)
            });
            assert!(
                results[0] == results[1] && results[0] == results[2],
                "{}, {}",
                isa.name(),
                format.name()
            );
        }
    }
}
