//! `c = activation(a · wᵀ + bias)` for many rows: weights packed into panels, then tiles in registers.

use rayon::prelude::*;

use super::buffers::Buffers;
use super::isa::{Isa, Kernel, Kind, Lanes};
use super::vecmath::{self, MAX_WIDTH};
use crate::compute::Activation;
use crate::compute::weight::{Row, Weight};

/// Columns of `a` that one pass covers: a panel of that depth stays in the first-level cache.
const MAX_DEPTH: usize = 384;
/// Rows of `c` in one task; with `MAX_DEPTH` columns of `a` they fit the second-level cache.
const TASK_ROWS: usize = 96;

/// `rows` rows of `width` values each, `stride` values apart; rows may overlap, as a convolution's do.
#[derive(Clone, Copy)]
pub(super) struct Rows<'a> {
    pub(super) values: &'a [f32],
    pub(super) rows: usize,
    pub(super) width: usize,
    pub(super) stride: usize,
}

impl<'a> Rows<'a> {
    pub(super) fn row(&self, i: usize) -> &'a [f32] {
        &self.values[i * self.stride..][..self.width]
    }
}

/// What follows the sum.
#[derive(Clone, Copy)]
pub(super) struct Epilogue<'a> {
    pub(super) bias: Option<&'a [f32]>,
    pub(super) activation: Activation,
}

impl Epilogue<'_> {
    /// Applies itself to a stretch of one row of `c` that begins at column `from`.
    #[inline(always)]
    pub(super) fn apply<L: Lanes>(&self, from: usize, c: &mut [f32]) {
        if let Some(bias) = self.bias {
            for (c, &bias) in c.iter_mut().zip(&bias[from..]) {
                *c += bias;
            }
        }
        if self.activation == Activation::GeluErf {
            vecmath::map::<L>(c, &vecmath::GeluErf);
        }
    }
}

/// Registers side by side in a tile.
const TILE_VECTORS: usize = 2;
/// Rows of the tallest tile; the others' divide it.
const MAX_TILE_ROWS: usize = 12;
/// Columns of the widest tile.
const MAX_COLUMNS: usize = TILE_VECTORS * MAX_WIDTH;

/// Columns in a panel: those of a tile.
pub(super) fn panel_width(isa: Isa) -> usize {
    TILE_VECTORS * isa.width()
}

/// Depths of the passes that `k` columns are covered in.
fn depths(k: usize) -> impl Iterator<Item = std::ops::Range<usize>> {
    let passes = k.div_ceil(MAX_DEPTH).max(1);
    let depth = k.div_ceil(passes).max(1);
    (0..passes).map(move |pass| pass * depth..((pass + 1) * depth).min(k))
}

/// `c` `[a.rows, w.rows]` from `a` `[rows, k]` and `w` `[n, k]`.
pub(super) fn gemm(
    isa: Isa,
    a: Rows,
    w: &Weight,
    epilogue: Epilogue,
    buffers: &Buffers,
    c: &mut [f32],
) {
    let (n, k) = (w.rows(), w.cols());
    assert!(n > 0 && k > 0, "a weight of {n} x {k}");
    assert_eq!(a.width, k, "depth of a product");
    assert_eq!(c.len(), a.rows * n, "size of a product");
    let nr = panel_width(isa);
    let mut packed = buffers.take(n.next_multiple_of(nr) * k);
    packed
        .par_chunks_mut(nr * k)
        .enumerate()
        .for_each(|(panel, out)| {
            isa.run(Pack {
                matrix: w,
                from: panel * nr,
                nr,
                out,
            });
        });
    c.par_chunks_mut(TASK_ROWS * n)
        .enumerate()
        .for_each(|(task, c)| {
            let first = task * TASK_ROWS;
            let a = Rows {
                values: &a.values[first * a.stride..],
                rows: c.len() / n,
                ..a
            };
            let b = Panels {
                values: &packed,
                n,
                k,
            };
            product(isa, a, b, epilogue, buffers, c);
        });
}

/// A packed `[k, n]` matrix: for each panel of columns, `k` rows of one value a column, padded with zeros.
#[derive(Clone, Copy)]
pub(super) struct Panels<'a> {
    pub(super) values: &'a [f32],
    pub(super) n: usize,
    pub(super) k: usize,
}

/// `c` `[a.rows, b.n]`, on this thread.
pub(super) fn product(
    isa: Isa,
    a: Rows,
    b: Panels,
    epilogue: Epilogue,
    buffers: &Buffers,
    c: &mut [f32],
) {
    let mut packed = buffers.take(a.rows.next_multiple_of(MAX_TILE_ROWS) * b.k.min(MAX_DEPTH));
    let packed = &mut packed[..];
    // As many rows as leave registers for the panel's columns and one of `a`: 32, 16, 32 and 16 there are.
    match isa.kind() {
        #[cfg(target_arch = "x86_64")]
        Kind::Avx512 => isa.run(Product::<12> {
            a,
            b,
            epilogue,
            packed,
            c,
        }),
        #[cfg(target_arch = "x86_64")]
        Kind::Avx2 => isa.run(Product::<6> {
            a,
            b,
            epilogue,
            packed,
            c,
        }),
        #[cfg(target_arch = "aarch64")]
        Kind::Neon => isa.run(Product::<12> {
            a,
            b,
            epilogue,
            packed,
            c,
        }),
        Kind::Portable => isa.run(Product::<6> {
            a,
            b,
            epilogue,
            packed,
            c,
        }),
    }
}

/// Packs `nr` rows of a matrix, starting at `from`, into one panel.
pub(super) struct Pack<'a, M> {
    pub(super) matrix: &'a M,
    pub(super) from: usize,
    pub(super) nr: usize,
    pub(super) out: &'a mut [f32],
}

/// A matrix `[rows, width]` whose rows can be read one by one.
pub(super) trait Matrix {
    fn rows(&self) -> usize;
    fn width(&self) -> usize;
    fn row(&self, i: usize) -> Row<'_>;
}

impl Matrix for Weight {
    fn rows(&self) -> usize {
        self.rows()
    }

    fn width(&self) -> usize {
        self.cols()
    }

    #[inline(always)]
    fn row(&self, i: usize) -> Row<'_> {
        self.row(i)
    }
}

impl Matrix for Rows<'_> {
    fn rows(&self) -> usize {
        self.rows
    }

    fn width(&self) -> usize {
        self.width
    }

    #[inline(always)]
    fn row(&self, i: usize) -> Row<'_> {
        Row::F32(Rows::row(self, i))
    }
}

impl<M: Matrix> Kernel for Pack<'_, M> {
    #[inline(always)]
    fn run<L: Lanes>(self) {
        const STRETCH: usize = 64;
        let mut wide = [0.0; STRETCH];
        for lane in 0..self.nr {
            if self.from + lane >= self.matrix.rows() {
                self.out[lane..]
                    .iter_mut()
                    .step_by(self.nr)
                    .for_each(|out| *out = 0.0);
                continue;
            }
            let row = self.matrix.row(self.from + lane);
            for from in (0..self.matrix.width()).step_by(STRETCH) {
                let to = (from + STRETCH).min(self.matrix.width());
                vecmath::widen::<L>(row.columns(from, to), &mut wide[..to - from]);
                let column = self.out[from * self.nr + lane..]
                    .iter_mut()
                    .step_by(self.nr);
                for (out, &value) in column.zip(&wide[..to - from]) {
                    *out = value;
                }
            }
        }
    }
}

/// A product in tiles of `MR` rows, which stay in registers over a pass.
struct Product<'a, const MR: usize> {
    a: Rows<'a>,
    b: Panels<'a>,
    epilogue: Epilogue<'a>,
    /// Room for the tiles of one pass.
    packed: &'a mut [f32],
    c: &'a mut [f32],
}

impl<const MR: usize> Kernel for Product<'_, MR> {
    #[inline(always)]
    fn run<L: Lanes>(self) {
        let Panels { values, n, k } = self.b;
        let nr = TILE_VECTORS * L::WIDTH;
        let rows = self.a.rows.next_multiple_of(MR);
        for depth in depths(k) {
            let packed = &mut self.packed[..rows * depth.len()];
            pack_tiles::<MR>(self.a, depth.clone(), packed);
            for (panel, b) in values.chunks_exact(nr * k).enumerate() {
                let b = &b[depth.start * nr..depth.end * nr];
                let columns = panel * nr..((panel + 1) * nr).min(n);
                for (tile, a) in packed.chunks_exact(MR * depth.len()).enumerate() {
                    let sums = multiply::<L, MR>(a, b);
                    let rows = (tile * MR..self.a.rows).take(MR);
                    for (row, sums) in rows.zip(sums) {
                        let mut wide = [0.0; MAX_COLUMNS];
                        L::store(sums[0], &mut wide);
                        L::store(sums[1], &mut wide[L::WIDTH..]);
                        let c = &mut self.c[row * n..][columns.clone()];
                        if depth.start == 0 {
                            c.copy_from_slice(&wide[..c.len()]);
                        } else {
                            for (c, sum) in c.iter_mut().zip(wide) {
                                *c += sum;
                            }
                        }
                        if depth.end == k {
                            self.epilogue.apply::<L>(columns.start, c);
                        }
                    }
                }
            }
        }
    }
}

/// Columns `depth` of `a`, for each tile of `MR` rows one value a row side by side; a ragged last tile repeats its row.
#[inline(always)]
fn pack_tiles<const MR: usize>(a: Rows, depth: std::ops::Range<usize>, packed: &mut [f32]) {
    for (tile, packed) in packed.chunks_exact_mut(MR * depth.len()).enumerate() {
        for lane in 0..MR {
            let row = &a.row((tile * MR + lane).min(a.rows - 1))[depth.clone()];
            for (packed, &value) in packed[lane..].iter_mut().step_by(MR).zip(row) {
                *packed = value;
            }
        }
    }
}

/// A tile: `a` `[depth, MR]` and one panel `b` `[depth, nr]` give `[MR, nr]`.
#[inline(always)]
fn multiply<L: Lanes, const MR: usize>(a: &[f32], b: &[f32]) -> [[L::V; TILE_VECTORS]; MR] {
    let mut sums = [[L::splat(0.0); TILE_VECTORS]; MR];
    for (a, b) in a
        .as_chunks::<MR>()
        .0
        .iter()
        .zip(b.chunks_exact(TILE_VECTORS * L::WIDTH))
    {
        let b = [L::load(b), L::load(&b[L::WIDTH..])];
        for i in 0..MR {
            let a = L::splat(a[i]);
            for j in 0..TILE_VECTORS {
                sums[i][j] = L::mul_add(a, b[j], sums[i][j]);
            }
        }
    }
    sums
}
