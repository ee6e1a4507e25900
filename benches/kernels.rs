//! What the kernels make of the processor: products as a share of the multiply-adds that registers alone reach, and of the
//! bytes that memory gives, measured in the same run.
//!
//! `cargo bench --bench kernels` runs on two threads; `-- 4` on four. `PRETRAINED_ISA` forces an instruction set. Rates are
//! medians; peaks are the best of several runs, measured anew before each group of rows.
#![allow(
    clippy::unwrap_used,
    reason = "a benchmark that cannot run has nothing to say"
)]
#![allow(clippy::print_stdout, reason = "the table is the result")]

use std::time::Instant;

use pretrained::compute::cpu::{Cpu, Isa, Peaks};
use pretrained::compute::{
    Attention, AttentionMask, Backend as _, Format, Fused, KvFormat, KvShape, Weight,
};

const RUNS: usize = 15;

fn main() {
    let threads = std::env::args()
        .find_map(|arg| arg.parse().ok())
        .unwrap_or(2);
    let isa = Isa::choose(std::env::var("PRETRAINED_ISA").ok().as_deref()).unwrap();
    let cpu = Cpu::new(isa, threads).unwrap();
    println!("{} on {threads} threads", isa.name());
    matrices(&cpu);
    vectors(&cpu);
    attention(&cpu);
}

/// Values in [−1/2, 1/2).
fn uniform(len: usize) -> Vec<f32> {
    let mut random = fastrand::Rng::with_seed(1);
    (0..len).map(|_| random.f32() - 0.5).collect()
}

/// Median seconds of `work`, after a first run that does not count.
fn seconds(mut work: impl FnMut()) -> f64 {
    work();
    let mut runs: Vec<f64> = (0..RUNS)
        .map(|_| {
            let started = Instant::now();
            work();
            started.elapsed().as_secs_f64()
        })
        .collect();
    runs.sort_by(f64::total_cmp);
    runs[RUNS / 2]
}

/// What a format's products are held against.
fn peak(peaks: &Peaks, format: Format) -> f64 {
    match format {
        Format::F32 => peaks.f32,
        Format::Bf16 => peaks.bf16,
        Format::Q8 | Format::Q8Group | Format::Q4Group => peaks.int8,
    }
}

fn row(what: &str, rate: f64, unit: &str, peak: f64, wanted: &str) {
    println!(
        "{what:<44} {:>8.1} {unit:<7} {:>4.0} % of {:>7.1}   {wanted}",
        rate / 1e9,
        100.0 * rate / peak,
        peak / 1e9
    );
}

/// Products of many rows, the preparation of the activations included.
fn matrices(cpu: &Cpu) {
    println!("\nmatrix products, m x k x n, activations prepared anew");
    for (m, k, n) in [
        (1500, 512, 2048),
        (1500, 384, 1536),
        (1500, 2048, 512),
        (512, 640, 2048),
    ] {
        let peaks = cpu.peaks();
        let x = uniform(m * k);
        for (format, wanted) in [
            (Format::Q8, "> 60 %"),
            (Format::Bf16, "> 60 %"),
            (Format::F32, "> 75 %"),
            (Format::Q8Group, ""),
            (Format::Q4Group, ""),
        ] {
            let weight = Weight::from_f32(n, k, uniform(n * k));
            let w = cpu.matrix(&weight, format).unwrap();
            let fresh = || cpu.upload(&[m, k], &x).unwrap();
            let (copied, multiplied) = (
                seconds(|| drop(fresh())),
                seconds(|| {
                    let x = fresh();
                    cpu.linear(&x, &w, Fused::default()).unwrap();
                }),
            );
            let rate = (m * k * n) as f64 / (multiplied - copied);
            let what = format!("{m} x {k} x {n}, {}", format.name());
            row(&what, rate, "GMAC/s", peak(&peaks, format), wanted);
        }
    }
}

/// Products of one row with matrices beyond the caches.
fn vectors(cpu: &Cpu) {
    println!("\none row, a matrix beyond the caches");
    let (n, k) = (65_536, 4096);
    let weight = Weight::from_f32(n, k, uniform(n * k));
    let x = cpu.upload(&[1, k], &uniform(k)).unwrap();
    for (format, wanted) in [
        (Format::Q8, "> 85 %"),
        (Format::Q8Group, "> 85 %"),
        (Format::Q4Group, "> 85 %"),
        (Format::Bf16, ""),
    ] {
        let w = cpu.matrix(&weight, format).unwrap();
        let bytes = cpu.matrix_bytes(&w).unwrap().len() as f64;
        let peaks = cpu.peaks();
        let rate = bytes / seconds(|| drop(cpu.linear(&x, &w, Fused::default()).unwrap()));
        let what = format!("{k} x {n}, {}", format.name());
        row(&what, rate, "GB/s", peaks.read, wanted);
    }
}

/// All heads of an encoder's layer among its 1500 positions.
fn attention(cpu: &Cpu) {
    println!("\nattention, 8 heads of 64 over 1500 positions, softmax included");
    let peaks = cpu.peaks();
    let shape = [1, 1500, 512];
    let x = cpu.upload(&shape, &uniform(1500 * 512)).unwrap();
    for (format, peak) in [(KvFormat::F32, peaks.f32), (KvFormat::Bf16, peaks.bf16)] {
        let mut kv = cpu
            .kv_cache(KvShape {
                batch: 1,
                capacity: 1500,
                n_kv_head: 8,
                head_dim: 64,
                format,
            })
            .unwrap();
        cpu.kv_append(&mut kv, &x, &x).unwrap();
        let attention = Attention {
            n_head: 8,
            mask: AttentionMask::Full,
            scale: 0.125,
        };
        let took = seconds(|| drop(cpu.attention(&x, &kv, attention).unwrap()));
        let rate = 2.0 * 1500.0 * 1500.0 * 512.0 / took;
        row(&format!("{format:?}"), rate, "GMAC/s", peak, "");
    }
}
