//! What this processor can do at best, to hold the kernels against.

use std::hint::black_box;
use std::time::Instant;

use super::Cpu;
use super::isa::{Kernel, Lanes};
use super::panels::{MAX_PANEL, PANEL_VECTORS};
use super::product::{Bf16, F32, Meet, Q8};
use super::vecmath::MAX_WIDTH;

/// The most of several runs: others may have had a share of the processor during the rest.
const RUNS: usize = 5;
/// Steps of a run, about a millisecond's.
const STEPS: usize = 100_000;
/// Bytes read in a run: several times what caches hold.
const READ_BYTES: usize = 128 << 20;

/// Rates of all threads of a backend together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Peaks {
    /// f32 multiplications and additions a second, a pair counted once.
    pub f32: f64,
    /// The same of bfloat16 numbers, summed in f32.
    pub bf16: f64,
    /// The same of int8 numbers, summed in i32.
    pub int8: f64,
    /// Bytes a second read from memory.
    pub read: f64,
}

impl Cpu {
    /// Measures for a few hundred milliseconds what the instruction set in use can do: products of registers, and reads of
    /// 128 MiB.
    pub fn peaks(&self) -> Peaks {
        Peaks {
            f32: self.products::<F32>(1),
            bf16: self.products::<Bf16>(2),
            int8: self.products::<Q8>(4),
            read: self.reads(),
        }
    }

    fn products<M: Meet>(&self, in_word: usize) -> f64 {
        let threads = self.threads.count();
        let height = self.isa.heights(false).tall;
        let lanes = height * PANEL_VECTORS * self.isa.width();
        let products = (threads * STEPS * lanes * in_word) as f64;
        self.fastest(products, &|| {
            self.threads.run(threads, &|_| {
                self.isa.run(Products::<M>(std::marker::PhantomData));
            });
        })
    }

    fn reads(&self) -> f64 {
        let values = vec![1.0f32; READ_BYTES / 4];
        let part = values.len().div_ceil(self.threads.count());
        self.fastest(READ_BYTES as f64, &|| {
            self.threads.run(self.threads.count(), &|i| {
                let part = &values[i * part..values.len().min((i + 1) * part)];
                self.isa.run(Read { values: part });
            });
        })
    }

    /// `amount` over the shortest time that `work` takes.
    fn fastest(&self, amount: f64, work: &dyn Fn()) -> f64 {
        let runs = (0..RUNS).map(|_| {
            let started = Instant::now();
            work();
            started.elapsed().as_secs_f64()
        });
        amount / runs.fold(f64::INFINITY, f64::min)
    }
}

/// The products of one tile, over and over.
struct Products<M>(std::marker::PhantomData<M>);

impl<M: Meet> Kernel for Products<M> {
    #[inline(always)]
    fn run<L: Lanes>(self) {
        match L::HEIGHTS.tall {
            12 if const { L::HEIGHTS.has(12) } => steps::<L, M, 12>(),
            6 if const { L::HEIGHTS.has(6) } => steps::<L, M, 6>(),
            _ => steps::<L, M, 2>(),
        }
    }
}

#[inline(always)]
fn steps<L: Lanes, M: Meet, const MR: usize>() {
    // Small numbers, so that no sum overflows. They are read anew in each step, as a product's are, or what several
    // instructions make of them would be made once.
    let (mut w_words, mut a_words) = ([0x0101_0101; MAX_PANEL], [0x0101_0101; MR]);
    let mut sums = [[M::zero::<L>(); PANEL_VECTORS]; MR];
    for _ in 0..STEPS {
        let (w_words, a_words) = (black_box(&mut w_words), black_box(&mut a_words));
        let w = [L::load_words(w_words), L::load_words(&w_words[L::WIDTH..])];
        for i in 0..MR {
            let a = L::splat_word(a_words[i]);
            for j in 0..PANEL_VECTORS {
                sums[i][j] = M::step::<L>(sums[i][j], w[j], a);
            }
        }
    }
    let mut sink = [0; MAX_WIDTH];
    for i in 0..MR {
        for j in 0..PANEL_VECTORS {
            L::store_words(M::bits::<L>(sums[i][j]), &mut sink);
            black_box(&sink);
        }
    }
}

/// Reads all values.
struct Read<'a> {
    values: &'a [f32],
}

impl Kernel for Read<'_> {
    #[inline(always)]
    fn run<L: Lanes>(self) {
        const SUMS: usize = 8;
        let mut sums = [L::splat(0.0); SUMS];
        let stretch = SUMS * L::WIDTH;
        for at in 0..self.values.len() / stretch {
            let values = &self.values[at * stretch..][..stretch];
            for i in 0..SUMS {
                sums[i] = L::add(sums[i], L::load(&values[i * L::WIDTH..]));
            }
        }
        for sum in sums {
            black_box(L::sum(sum));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compute::cpu::Isa;

    #[test]
    fn every_instruction_set_has_peaks() {
        for isa in Isa::available() {
            let peaks = Cpu::new(isa, 1).unwrap().peaks();
            for rate in [peaks.f32, peaks.bf16, peaks.int8, peaks.read] {
                assert!(rate.is_finite() && rate > 1e6, "{}: {peaks:?}", isa.name());
            }
        }
    }
}
