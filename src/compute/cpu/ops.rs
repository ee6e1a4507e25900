//! Operations on whole tensors that work value by value or row by row: their shapes checked, their work spread.

use std::ops::Range;

use super::activation::{Gated, Scaled, SoftCapped};
use super::isa::{Kernel, Lanes};
use super::lanewise::{Binary, Product, Sum, zip_into};
use super::logits::Softmax;
use super::pool::Pooled;
use super::rms::{L2Normalize, RmsNorm};
use super::rope::{Angles, Turn};
use super::{Cpu, Tensor};
use crate::compute::reference::assert_repeats;
use crate::compute::{Activation, Pool, Rope};

pub(super) fn rms_norm(cpu: &Cpu, x: &Tensor, gain: &Tensor, eps: f32) -> Tensor {
    let width = gain.values.len();
    assert!(
        x.width().is_multiple_of(width),
        "{width} values of a gain for rows of {}",
        x.width()
    );
    let mut y = cpu.tensor(x.shape.clone());
    cpu.spread(&mut y.values, &x.values, width, |y, _, x| {
        cpu.isa.run(RmsNorm {
            x,
            gain: &gain.values,
            eps,
            y,
        });
    });
    y
}

pub(super) fn l2_normalize(cpu: &Cpu, x: &Tensor) -> Tensor {
    let width = x.width();
    let mut y = cpu.tensor(x.shape.clone());
    cpu.spread(&mut y.values, &x.values, width, |y, _, x| {
        cpu.isa.run(L2Normalize { x, width, y });
    });
    y
}

pub(super) fn rope(cpu: &Cpu, x: &Tensor, rope: &Rope<Tensor>, offsets: &[usize]) -> Tensor {
    let [batch, length, width] = x.sequences();
    let half = rope.cos.width();
    assert_eq!(offsets.len(), batch, "offsets of sequences");
    assert_eq!(rope.cos.shape, rope.sin.shape, "cosines and sines");
    assert!(width.is_multiple_of(rope.head_dim), "heads of a row");
    assert!(
        2 * half <= rope.head_dim,
        "{half} pairs in heads of {}",
        rope.head_dim
    );
    let positions = rope.cos.values.len() / half;
    let longest = offsets.iter().max().map_or(0, |offset| offset + length);
    assert!(
        longest <= positions,
        "{longest} positions in a table of {positions}"
    );
    let mut y = cpu.tensor(x.shape.clone());
    cpu.spread(&mut y.values, &x.values, width, |y, from, x| {
        cpu.isa.run(Turn {
            x,
            first: from / width,
            length,
            width,
            offsets,
            angles: Angles {
                cos: &rope.cos.values,
                sin: &rope.sin.values,
                half,
                head_dim: rope.head_dim,
                pairing: rope.pairing,
            },
            y,
        });
    });
    y
}

pub(super) fn gated(cpu: &Cpu, gate: &Tensor, up: &Tensor, activation: Activation) -> Tensor {
    assert_eq!(gate.shape, up.shape, "a gate and what it lets through");
    let mut y = cpu.tensor(gate.shape.clone());
    let up = &up.values[..];
    cpu.spread(&mut y.values, &gate.values, 1, |y, from, gate| {
        cpu.isa.run(Gated {
            gate,
            up: &up[from..][..gate.len()],
            activation,
            y,
        });
    });
    y
}

pub(super) fn add(cpu: &Cpu, x: &Tensor, y: &Tensor) -> Tensor {
    repeated(cpu, x, y, Sum)
}

pub(super) fn multiply(cpu: &Cpu, x: &Tensor, y: &Tensor) -> Tensor {
    repeated(cpu, x, y, Product)
}

/// `f(x, y)`, with `y` repeated over the leading axes that it lacks or has once.
fn repeated(cpu: &Cpu, x: &Tensor, y: &Tensor, f: impl Binary + Copy + Sync) -> Tensor {
    assert_repeats(&x.shape, &y.shape);
    let mut z = cpu.tensor(x.shape.clone());
    let y = &y.values[..];
    if y.is_empty() {
        return z;
    }
    let repeats = x.values.chunks_exact(y.len());
    for (z, x) in z.values.chunks_exact_mut(y.len()).zip(repeats) {
        cpu.spread(z, x, 1, |z, from, x| {
            let y = &y[from..][..x.len()];
            cpu.isa.run(Zip { x, y, z, f });
        });
    }
    z
}

/// `z = f(x, y)`.
struct Zip<'a, F> {
    x: &'a [f32],
    y: &'a [f32],
    z: &'a mut [f32],
    f: F,
}

impl<F: Binary> Kernel for Zip<'_, F> {
    #[inline(always)]
    fn run<L: Lanes>(self) {
        zip_into::<L>(self.x, self.y, self.z, &self.f);
    }
}

pub(super) fn scale(cpu: &Cpu, x: &Tensor, factor: f32) -> Tensor {
    let mut y = cpu.tensor(x.shape.clone());
    cpu.spread(&mut y.values, &x.values, 1, |y, _, x| {
        cpu.isa.run(Scaled { x, factor, y });
    });
    y
}

pub(super) fn soft_cap(cpu: &Cpu, x: &Tensor, cap: f32) -> Tensor {
    let mut y = cpu.tensor(x.shape.clone());
    cpu.spread(&mut y.values, &x.values, 1, |y, _, x| {
        cpu.isa.run(SoftCapped { x, cap, y });
    });
    y
}

pub(super) fn pool(cpu: &Cpu, x: &Tensor, spans: &[Range<usize>], pool: Pool) -> Tensor {
    let [batch, length, width] = x.sequences();
    assert_eq!(spans.len(), batch, "spans of sequences");
    let mut y = cpu.tensor(vec![batch, width]);
    cpu.threads.chunks(&mut y.values, width, |b, y| {
        let span = &spans[b];
        assert!(span.end <= length, "{span:?} of {length} positions");
        let rows = (b * length + span.start) * width..(b * length + span.end) * width;
        cpu.isa.run(Pooled {
            x: &x.values[rows],
            pool,
            y,
        });
    });
    y
}

pub(super) fn softmax(cpu: &Cpu, x: &Tensor) -> Tensor {
    let width = x.width();
    let mut y = cpu.tensor(x.shape.clone());
    cpu.spread(&mut y.values, &x.values, width, |y, _, x| {
        cpu.isa.run(Softmax { x, width, y });
    });
    y
}

/// What `work` finds in each row, in their order.
pub(super) fn per_row<T: Send>(cpu: &Cpu, x: &Tensor, work: impl Fn(&[f32]) -> T + Sync) -> Vec<T> {
    let rows = x.values.len() / x.width();
    let mut found: Vec<Option<T>> = Vec::new();
    found.resize_with(rows, || None);
    cpu.threads.chunks(&mut found, 1, |r, found| {
        found[0] = Some(work(&x.values[r * x.width()..][..x.width()]));
    });
    found.into_iter().flatten().collect()
}
