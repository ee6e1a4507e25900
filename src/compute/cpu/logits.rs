//! What is asked of a row of scores: how likely each is, which are the highest.

use std::cmp::Ordering;

use super::activation::nan_or_zero;
use super::isa::{Isa, Kernel, Lanes};
use super::lanewise::map_into;
use super::vecmath::{Unary, exp, vectors};
use crate::compute::Ranked;

/// Values whose exponentials are summed in f32; the sums of such blocks are added in f64.
const SUM_BLOCK: usize = 1024;
/// Values of which only the highest is looked at, unless it is among those asked for.
const PEAK_BLOCK: usize = 64;

/// The softmax of each row of `width` values.
pub(super) struct Softmax<'a> {
    pub(super) x: &'a [f32],
    pub(super) width: usize,
    pub(super) y: &'a mut [f32],
}

impl Kernel for Softmax<'_> {
    #[inline(always)]
    fn run<L: Lanes>(self) {
        let rows = self.x.chunks_exact(self.width);
        for (y, x) in self.y.chunks_exact_mut(self.width).zip(rows) {
            let highest = highest_or_nan::<L>(x);
            if !highest.is_finite() {
                y.fill(f32::NAN);
                continue;
            }
            let mut total = 0.0f64;
            for (y, x) in y.chunks_mut(SUM_BLOCK).zip(x.chunks(SUM_BLOCK)) {
                map_into::<L>(x, y, &Exponential(highest));
                let mut sum = L::splat(0.0);
                for y in vectors::<L>(y, 0.0) {
                    sum = L::add(sum, y);
                }
                total += f64::from(L::sum(sum));
            }
            let inverse = (1.0 / total) as f32;
            for y in y {
                *y *= inverse;
            }
        }
    }
}

/// `e^(x − highest)`.
struct Exponential(f32);

impl Unary for Exponential {
    #[inline(always)]
    fn apply<L: Lanes>(&self, x: L::V) -> L::V {
        exp::<L>(L::sub(x, L::splat(self.0)))
    }
}

/// `ln Σ eˣ` over a row.
pub(super) fn log_sum_exp(isa: Isa, x: &[f32]) -> f64 {
    let mut out = 0.0;
    isa.run(LogSumExp { x, out: &mut out });
    out
}

struct LogSumExp<'a> {
    x: &'a [f32],
    out: &'a mut f64,
}

impl Kernel for LogSumExp<'_> {
    #[inline(always)]
    fn run<L: Lanes>(self) {
        let highest = highest_or_nan::<L>(self.x);
        *self.out = f64::from(highest);
        if !highest.is_finite() {
            return;
        }
        let mut total = 0.0f64;
        for x in self.x.chunks(SUM_BLOCK) {
            let mut sum = L::splat(0.0);
            for x in vectors::<L>(x, f32::NEG_INFINITY) {
                sum = L::add(sum, Exponential(highest).apply::<L>(x));
            }
            total += f64::from(L::sum(sum));
        }
        *self.out += total.ln();
    }
}

/// The highest value, or NaN when there is one.
#[inline(always)]
fn highest_or_nan<L: Lanes>(x: &[f32]) -> f32 {
    let (mut highest, mut nan) = (L::splat(f32::NEG_INFINITY), L::splat(0.0));
    for x in vectors::<L>(x, f32::NEG_INFINITY) {
        highest = L::max(x, highest);
        nan = L::add(nan, nan_or_zero::<L>(x));
    }
    L::largest(highest) + L::sum(nan)
}

/// The first position of the highest value; NaN is below all others.
pub(super) fn argmax(isa: Isa, x: &[f32]) -> u32 {
    let peaks = peaks(isa, x);
    let highest = peaks.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    // Where it is −∞, its block may hold nothing but NaN.
    let from = if highest == f32::NEG_INFINITY {
        0
    } else {
        let block = peaks.iter().position(|&peak| peak == highest);
        block.expect("the highest peak is one of them") * PEAK_BLOCK
    };
    let found = x[from..].iter().position(|&x| x == highest);
    found.map_or(0, |i| (from + i) as u32)
}

/// The `k` highest values, or all when there are fewer, in the order of [`rank`].
pub(super) fn top_k(isa: Isa, x: &[f32], k: usize) -> Vec<Ranked> {
    if k == 0 {
        return Vec::new();
    }
    // k blocks have a value that is at least the k-th highest peak: no lower value is among the k highest.
    let peaks = peaks(isa, x);
    let mut threshold = f32::NEG_INFINITY;
    if k < peaks.len() {
        let mut sorted = peaks.clone();
        let (_, &mut kth, _) = sorted.select_nth_unstable_by(k - 1, |a, b| b.total_cmp(a));
        threshold = kth;
    }
    let mut found = Vec::new();
    for (block, (x, &peak)) in x.chunks(PEAK_BLOCK).zip(&peaks).enumerate() {
        if peak < threshold {
            continue;
        }
        for (i, &value) in x.iter().enumerate() {
            // NaN too, which is wanted when all else is −∞ or NaN, and otherwise ranks last.
            if value.partial_cmp(&threshold) != Some(Ordering::Less) {
                let id = (block * PEAK_BLOCK + i) as u32;
                found.push(Ranked { id, value });
            }
        }
    }
    if k < found.len() {
        found.select_nth_unstable_by(k - 1, rank);
        found.truncate(k);
    }
    found.sort_unstable_by(rank);
    found
}

/// Higher values first, NaN last, equal ones by their ids.
fn rank(a: &Ranked, b: &Ranked) -> Ordering {
    let nans = || a.value.is_nan().cmp(&b.value.is_nan());
    let values = b.value.partial_cmp(&a.value);
    values.unwrap_or_else(nans).then(a.id.cmp(&b.id))
}

/// The highest value of each [`PEAK_BLOCK`], NaN not counted: −∞ where there is nothing else.
fn peaks(isa: Isa, x: &[f32]) -> Vec<f32> {
    let mut peaks = vec![0.0; x.len().div_ceil(PEAK_BLOCK)];
    isa.run(Peaks {
        x,
        peaks: &mut peaks,
    });
    peaks
}

struct Peaks<'a> {
    x: &'a [f32],
    peaks: &'a mut [f32],
}

impl Kernel for Peaks<'_> {
    #[inline(always)]
    fn run<L: Lanes>(self) {
        for (peak, x) in self.peaks.iter_mut().zip(self.x.chunks(PEAK_BLOCK)) {
            let mut highest = L::splat(f32::NEG_INFINITY);
            for x in vectors::<L>(x, f32::NEG_INFINITY) {
                highest = L::max(x, highest);
            }
            *peak = L::largest(highest);
        }
    }
}
