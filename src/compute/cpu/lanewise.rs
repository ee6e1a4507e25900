//! Slices gone through a register at a time, the last one filled up.
//!
//! Adapters of iterators are functions by themselves, as closures are: around a body of any size the compiler leaves them
//! uninlined, and compiles them without the features of the kernel. Kernels of more than one operand therefore go through
//! these loops.

use super::isa::Lanes;
use super::vecmath::{Unary, lanes_at, load, store};

/// A function of two vectors.
pub(super) trait Binary {
    fn apply<L: Lanes>(&self, a: L::V, b: L::V) -> L::V;
}

/// `a + b`.
#[derive(Clone, Copy)]
pub(super) struct Sum;

impl Binary for Sum {
    #[inline(always)]
    fn apply<L: Lanes>(&self, a: L::V, b: L::V) -> L::V {
        L::add(a, b)
    }
}

/// `a · b`.
#[derive(Clone, Copy)]
pub(super) struct Product;

impl Binary for Product {
    #[inline(always)]
    fn apply<L: Lanes>(&self, a: L::V, b: L::V) -> L::V {
        L::mul(a, b)
    }
}

/// `y = f(x)`.
#[inline(always)]
pub(super) fn map_into<L: Lanes>(x: &[f32], y: &mut [f32], f: &impl Unary) {
    assert_eq!(x.len(), y.len(), "values of an operand and a result");
    let mut at = 0;
    while at < y.len() {
        store::<L>(f.apply::<L>(load::<L, f32>(&x[at..])), lanes_at::<L>(y, at));
        at += L::WIDTH;
    }
}

/// `y = f(a, b)`.
#[inline(always)]
pub(super) fn zip_into<L: Lanes>(a: &[f32], b: &[f32], y: &mut [f32], f: &impl Binary) {
    assert_eq!(a.len(), y.len(), "values of an operand and a result");
    assert_eq!(b.len(), y.len(), "values of an operand and a result");
    let mut at = 0;
    while at < y.len() {
        let (a, b) = (load::<L, f32>(&a[at..]), load::<L, f32>(&b[at..]));
        store::<L>(f.apply::<L>(a, b), lanes_at::<L>(y, at));
        at += L::WIDTH;
    }
}

/// `y = f(y, x)`.
#[inline(always)]
pub(super) fn fold_into<L: Lanes>(x: &[f32], y: &mut [f32], f: &impl Binary) {
    assert_eq!(x.len(), y.len(), "values of an operand and a result");
    let mut at = 0;
    while at < y.len() {
        let (y_so_far, x) = (load::<L, f32>(&y[at..]), load::<L, f32>(&x[at..]));
        store::<L>(f.apply::<L>(y_so_far, x), lanes_at::<L>(y, at));
        at += L::WIDTH;
    }
}
