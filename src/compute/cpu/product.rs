//! `c = activation(a · wᵀ + bias) + residual`: tiles of rows meet panels of columns in registers.

use std::marker::PhantomData;
use std::ops::Range;

use super::isa::{Heights, Isa, Kernel, Lanes};
use super::operand::Operand;
use super::panels::{MAX_HEIGHT, MAX_PANEL, Matrix, PANEL_VECTORS, Q4_GROUP_ROWS, Q8_GROUP_ROWS};
use super::threads::{Pieces, Threads};
use super::vecmath::{Unary, lanes_at, load, store};
use crate::compute::Activation;
use crate::compute::quant::GROUP;
use crate::compute::weight::Format;

/// Bytes of activations that a task goes through for each panel: they stay in the second-level cache.
const TASK_BYTES: usize = 256 * 1024;
/// Words of weights times rows that are worth a task of their own.
const TASK_PRODUCTS: usize = 16 * 1024;
/// Tasks for each thread, where there is enough to do, so that a thread which was held up has few left.
const TASKS_PER_THREAD: usize = 8;

/// What follows the sum.
#[derive(Clone, Copy)]
pub(super) struct Epilogue<'a> {
    /// `[n]`.
    pub(super) bias: Option<&'a [f32]>,
    pub(super) activation: Activation,
    /// `[m, n]`, as the result.
    pub(super) residual: Option<&'a [f32]>,
}

/// `c` `[a.rows, w.rows]` from `a` `[rows, k]` and `w` `[n, k]`.
pub(super) fn product(
    isa: Isa,
    threads: &Threads,
    a: &Operand,
    w: &Matrix,
    epilogue: Epilogue,
    c: &mut [f32],
) {
    let (m, n) = (a.rows, w.rows());
    assert_eq!(a.format, w.format(), "formats of a product");
    assert_eq!(a.cols, w.cols(), "depth of a product");
    assert_eq!(c.len(), m * n, "size of a product");
    if c.is_empty() {
        return;
    }
    let panels = n.div_ceil(w.panel_width());
    let row_bytes = 4 * a.format.operand_words(a.cols).max(1);
    let rows = (TASK_BYTES / row_bytes)
        .max(1)
        .next_multiple_of(a.heights.tall)
        .min(m);
    let row_blocks = m.div_ceil(rows);
    // Every task has panels enough to be worth it, and there are tasks enough for all threads.
    let least = (TASK_PRODUCTS / (w.panel_words() * rows).max(1)).clamp(1, panels);
    let wanted = (TASKS_PER_THREAD * threads.count()).div_ceil(row_blocks);
    let panels_each = panels.div_ceil(wanted).max(least);
    let panel_blocks = panels.div_ceil(panels_each);
    let out = Pieces(c.as_mut_ptr());
    threads.run(row_blocks * panel_blocks, &|task| {
        let (row_block, panel_block) = (task / panel_blocks, task % panel_blocks);
        let rows = row_block * rows..((row_block + 1) * rows).min(m);
        let panels = panel_block * panels_each..((panel_block + 1) * panels_each).min(panels);
        isa.run(Block {
            a,
            w,
            epilogue,
            rows,
            panels,
            c: Out { values: &out, n },
        });
    });
}

/// The result, of which a task writes the part of each row that its panels make.
#[derive(Clone, Copy)]
struct Out<'a> {
    values: &'a Pieces<f32>,
    n: usize,
}

impl Out<'_> {
    /// Columns `from..to` of row `r`.
    #[inline(always)]
    #[allow(unsafe_code)]
    fn row(&mut self, r: usize, from: usize, to: usize) -> &mut [f32] {
        assert!(from <= to && to <= self.n);
        // SAFETY: rows and columns lie within the result, whose size was checked, and no other task has this block.
        unsafe { self.values.piece(r * self.n + from, to - from) }
    }
}

/// One task.
struct Block<'a> {
    a: &'a Operand,
    w: &'a Matrix,
    epilogue: Epilogue<'a>,
    rows: Range<usize>,
    panels: Range<usize>,
    c: Out<'a>,
}

impl Kernel for Block<'_> {
    #[inline(always)]
    fn run<L: Lanes>(self) {
        match self.w.format() {
            Format::F32 => self.tiles::<L, Whole<F32>>(),
            Format::Bf16 => self.tiles::<L, Whole<Bf16>>(),
            Format::Q8 => self.tiles::<L, Whole<Q8>>(),
            Format::Q8Group => self.tiles::<L, Grouped<Q8Group>>(),
            Format::Q4Group => self.tiles::<L, Grouped<Q4Group>>(),
        }
    }
}

impl Block<'_> {
    #[inline(always)]
    fn tiles<L: Lanes, M: Multiply<L>>(mut self) {
        let mut sums = [0; MAX_HEIGHT * MAX_PANEL];
        for panel in self.panels.clone() {
            let words = self.w.panel(panel);
            let after = After::<L>::new(self.w, self.epilogue, panel);
            let mut row = self.rows.start;
            while row < self.rows.end {
                let height = M::HEIGHTS.next(self.rows.end - row);
                // Only the heights that the format has on this instruction set are compiled.
                match height {
                    12 if const { M::HEIGHTS.has(12) } => {
                        M::tile::<12>(self.a, row, words, &mut sums);
                    }
                    6 if const { M::HEIGHTS.has(6) } => {
                        M::tile::<6>(self.a, row, words, &mut sums);
                    }
                    4 if const { M::HEIGHTS.has(4) } => {
                        M::tile::<4>(self.a, row, words, &mut sums);
                    }
                    2 if const { M::HEIGHTS.has(2) } => {
                        M::tile::<2>(self.a, row, words, &mut sums);
                    }
                    _ => M::tile::<1>(self.a, row, words, &mut sums),
                }
                for i in 0..height {
                    let sums = &sums[i * PANEL_VECTORS * L::WIDTH..];
                    self.write_row::<L, M>(row + i, sums, &after);
                }
                row += height;
            }
        }
    }

    /// Writes the part of row `row` that a panel's `sums` make.
    #[inline(always)]
    fn write_row<L: Lanes, M: Multiply<L>>(&mut self, row: usize, sums: &[u32], after: &After<L>) {
        let n = self.w.rows();
        let scale = M::row_scale(self.a, row);
        let c = self.c.row(row, after.from, after.to);
        for j in 0..PANEL_VECTORS {
            let from = j * L::WIDTH;
            if from >= c.len() {
                return;
            }
            let sums = M::value(L::load_words(&sums[from..]));
            let mut y = L::mul_add(sums, L::mul(scale, after.scale[j]), after.bias[j]);
            y = self.epilogue.activation.apply::<L>(y);
            if let Some(residual) = self.epilogue.residual {
                let residual = &residual[row * n + after.from..row * n + after.to];
                y = L::add(y, load::<L, f32>(&residual[from..]));
            }
            store::<L>(y, lanes_at::<L>(c, from));
        }
    }
}

/// What the rows of a panel's product have in common.
struct After<L: Lanes> {
    /// The columns, `from..to`.
    from: usize,
    to: usize,
    /// The scales of the columns' codes, where the format has one a row.
    scale: [L::V; PANEL_VECTORS],
    bias: [L::V; PANEL_VECTORS],
}

impl<L: Lanes> After<L> {
    #[inline(always)]
    fn new(w: &Matrix, epilogue: Epilogue, panel: usize) -> Self {
        let from = panel * PANEL_VECTORS * L::WIDTH;
        let mut after = Self {
            from,
            to: (from + PANEL_VECTORS * L::WIDTH).min(w.rows()),
            scale: [L::splat(1.0); PANEL_VECTORS],
            bias: [L::splat(0.0); PANEL_VECTORS],
        };
        for j in 0..PANEL_VECTORS {
            let from = (from + j * L::WIDTH).min(w.rows());
            if let Some(bias) = epilogue.bias {
                after.bias[j] = load::<L, f32>(&bias[from..]);
            }
            if w.format() == Format::Q8 {
                // Padded to whole panels.
                after.scale[j] = L::load(&w.scales()[after.from + j * L::WIDTH..]);
            }
        }
        after
    }
}

/// How a tile is multiplied in one format.
trait Multiply<L: Lanes> {
    /// Heights of its tiles.
    const HEIGHTS: Heights;

    /// Rows `row..row + MR` of `a` times a panel of words: sums `[MR, columns]`.
    fn tile<const MR: usize>(a: &Operand, row: usize, panel: &[u32], sums: &mut [u32]);

    /// The values of sums, but for the scales of rows and columns.
    fn value(sums: L::W) -> L::V;

    /// The scale of the codes of row `row`, 1 where there is none.
    fn row_scale(a: &Operand, row: usize) -> L::V;
}

/// How words of one format meet, when a whole row is summed in one go.
pub(super) trait Meet {
    /// A register of sums.
    type Sum<L: Lanes>: Copy;

    /// Nothing.
    fn zero<L: Lanes>() -> Self::Sum<L>;
    /// The sums before the first word of a row.
    fn start<L: Lanes>(a: &Operand, row: usize) -> Self::Sum<L>;
    /// The sums with one word more.
    fn step<L: Lanes>(sum: Self::Sum<L>, w: L::W, a: L::W) -> Self::Sum<L>;
    /// The bits of sums.
    fn bits<L: Lanes>(sum: Self::Sum<L>) -> L::W;
    /// The values of sums, but for the scales of rows and columns.
    fn value<L: Lanes>(sum: L::W) -> L::V;
    /// The scale of the codes of row `row`, 1 where there is none.
    fn row_scale<L: Lanes>(a: &Operand, row: usize) -> L::V;
}

/// f32 by f32.
pub(super) struct F32;
/// bfloat16 by bfloat16, in f32.
pub(super) struct Bf16;
/// int8 by int8, in i32.
pub(super) struct Q8;

impl Meet for F32 {
    type Sum<L: Lanes> = L::V;

    #[inline(always)]
    fn zero<L: Lanes>() -> L::V {
        L::splat(0.0)
    }

    #[inline(always)]
    fn start<L: Lanes>(_: &Operand, _: usize) -> L::V {
        Self::zero::<L>()
    }

    #[inline(always)]
    fn step<L: Lanes>(sum: L::V, w: L::W, a: L::W) -> L::V {
        L::dot1(sum, w, a)
    }

    #[inline(always)]
    fn bits<L: Lanes>(sum: L::V) -> L::W {
        L::to_bits(sum)
    }

    #[inline(always)]
    fn value<L: Lanes>(sum: L::W) -> L::V {
        L::from_bits(sum)
    }

    #[inline(always)]
    fn row_scale<L: Lanes>(_: &Operand, _: usize) -> L::V {
        L::splat(1.0)
    }
}

impl Meet for Bf16 {
    type Sum<L: Lanes> = L::V;

    #[inline(always)]
    fn zero<L: Lanes>() -> L::V {
        L::splat(0.0)
    }

    #[inline(always)]
    fn start<L: Lanes>(_: &Operand, _: usize) -> L::V {
        Self::zero::<L>()
    }

    #[inline(always)]
    fn step<L: Lanes>(sum: L::V, w: L::W, a: L::W) -> L::V {
        L::dot2(sum, w, a)
    }

    #[inline(always)]
    fn bits<L: Lanes>(sum: L::V) -> L::W {
        L::to_bits(sum)
    }

    #[inline(always)]
    fn value<L: Lanes>(sum: L::W) -> L::V {
        L::from_bits(sum)
    }

    #[inline(always)]
    fn row_scale<L: Lanes>(_: &Operand, _: usize) -> L::V {
        L::splat(1.0)
    }
}

impl Meet for Q8 {
    type Sum<L: Lanes> = L::W;

    #[inline(always)]
    fn zero<L: Lanes>() -> L::W {
        L::splat_word(0)
    }

    #[inline(always)]
    fn start<L: Lanes>(a: &Operand, row: usize) -> L::W {
        raised_by::<L>(a.sums(row)[0])
    }

    #[inline(always)]
    fn step<L: Lanes>(sum: L::W, w: L::W, a: L::W) -> L::W {
        L::dot4(sum, w, a)
    }

    #[inline(always)]
    fn bits<L: Lanes>(sum: L::W) -> L::W {
        sum
    }

    #[inline(always)]
    fn value<L: Lanes>(sum: L::W) -> L::V {
        L::int_to_float(sum)
    }

    #[inline(always)]
    fn row_scale<L: Lanes>(a: &Operand, row: usize) -> L::V {
        L::splat(a.scales(row)[0])
    }
}

/// What makes good that the weights' codes are raised: their offset times the sum of the codes that they meet.
#[inline(always)]
fn raised_by<L: Lanes>(sum: f32) -> L::W {
    L::splat_word((-i32::from(L::CODE_OFFSET) * sum as i32).cast_unsigned())
}

/// Formats whose rows are summed in one go.
struct Whole<M>(PhantomData<M>);

impl<L: Lanes, M: Meet> Multiply<L> for Whole<M> {
    const HEIGHTS: Heights = L::HEIGHTS;

    #[inline(always)]
    fn tile<const MR: usize>(a: &Operand, row: usize, panel: &[u32], out: &mut [u32]) {
        let mut start = [M::start::<L>(a, row); MR];
        for i in 1..MR {
            start[i] = M::start::<L>(a, row + i);
        }
        let sums = sum::<L, M, MR>(a.tile(row, MR), panel, start);
        for i in 0..MR {
            for j in 0..PANEL_VECTORS {
                let at = (i * PANEL_VECTORS + j) * L::WIDTH;
                L::store_words(M::bits::<L>(sums[i][j]), &mut out[at..]);
            }
        }
    }

    #[inline(always)]
    fn value(sums: L::W) -> L::V {
        M::value::<L>(sums)
    }

    #[inline(always)]
    fn row_scale(a: &Operand, row: usize) -> L::V {
        M::row_scale::<L>(a, row)
    }
}

/// A tile of `a` `[words, MR]` and one panel `w` `[words, columns]` give `[MR, columns]`.
#[inline(always)]
pub(super) fn sum<L: Lanes, M: Meet, const MR: usize>(
    a: &[u32],
    w: &[u32],
    start: [M::Sum<L>; MR],
) -> [[M::Sum<L>; PANEL_VECTORS]; MR] {
    let mut sums = [[start[0]; PANEL_VECTORS]; MR];
    for i in 0..MR {
        sums[i] = [start[i]; PANEL_VECTORS];
    }
    let columns = PANEL_VECTORS * L::WIDTH;
    let a = a.as_chunks::<MR>().0;
    for row in 0..a.len().min(w.len() / columns) {
        let a = &a[row];
        let w = &w[row * columns..][..columns];
        let w = [L::load_words(w), L::load_words(&w[L::WIDTH..])];
        for i in 0..MR {
            let a = L::splat_word(a[i]);
            for j in 0..PANEL_VECTORS {
                sums[i][j] = M::step::<L>(sums[i][j], w[j], a);
            }
        }
    }
    sums
}

/// Formats with a scale for each group.
struct Grouped<C>(PhantomData<C>);

/// The codes of a group.
trait Codes {
    /// Rows of words of a group in a panel, the last of which holds scale and minimum.
    const ROWS: usize;
    /// Whether the minimum counts.
    const HAS_MIN: bool;

    /// The sums before the first code.
    fn start<L: Lanes>(sum: f32) -> L::W;
    /// The sums of one group: `a` `[words, MR]`, `w` `[words, columns]`.
    fn sums<L: Lanes, const MR: usize>(
        a: &[u32],
        w: &[u32],
        start: [L::W; MR],
    ) -> [[L::W; PANEL_VECTORS]; MR];
}

struct Q8Group;
struct Q4Group;

impl Codes for Q8Group {
    const ROWS: usize = Q8_GROUP_ROWS;
    const HAS_MIN: bool = false;

    #[inline(always)]
    fn start<L: Lanes>(sum: f32) -> L::W {
        raised_by::<L>(sum)
    }

    #[inline(always)]
    fn sums<L: Lanes, const MR: usize>(
        a: &[u32],
        w: &[u32],
        start: [L::W; MR],
    ) -> [[L::W; PANEL_VECTORS]; MR] {
        sum::<L, Q8, MR>(a, w, start)
    }
}

impl Codes for Q4Group {
    const ROWS: usize = Q4_GROUP_ROWS;
    const HAS_MIN: bool = true;

    #[inline(always)]
    fn start<L: Lanes>(_: f32) -> L::W {
        L::splat_word(0)
    }

    #[inline(always)]
    fn sums<L: Lanes, const MR: usize>(
        a: &[u32],
        w: &[u32],
        start: [L::W; MR],
    ) -> [[L::W; PANEL_VECTORS]; MR] {
        let mut sums = [[start[0]; PANEL_VECTORS]; MR];
        let columns = PANEL_VECTORS * L::WIDTH;
        let pairs = a.as_chunks::<MR>().0.as_chunks::<2>().0;
        for row in 0..pairs.len().min(w.len() / columns) {
            let [low, high] = &pairs[row];
            let w = &w[row * columns..][..columns];
            for j in 0..PANEL_VECTORS {
                let w = L::load_words(&w[j * L::WIDTH..]);
                let (w_low, w_high) = (L::low_nibbles(w), L::high_nibbles(w));
                for i in 0..MR {
                    let sum = L::dot4(sums[i][j], w_low, L::splat_word(low[i]));
                    sums[i][j] = L::dot4(sum, w_high, L::splat_word(high[i]));
                }
            }
        }
        sums
    }
}

impl<L: Lanes, C: Codes> Multiply<L> for Grouped<C> {
    const HEIGHTS: Heights = L::GROUP_HEIGHTS;

    #[inline(always)]
    fn tile<const MR: usize>(a: &Operand, row: usize, panel: &[u32], out: &mut [u32]) {
        let columns = PANEL_VECTORS * L::WIDTH;
        let mut scales = [a.scales(row); MR];
        let mut code_sums = [a.sums(row); MR];
        for i in 0..MR {
            scales[i] = a.scales(row + i);
            code_sums[i] = a.sums(row + i);
        }
        let mut values = [[L::splat(0.0); PANEL_VECTORS]; MR];
        let tile = a.tile(row, MR);
        let (a_words, w_words) = (GROUP / 4 * MR, C::ROWS * columns);
        for g in 0..tile.len() / a_words {
            let a = &tile[g * a_words..][..a_words];
            let w = &panel[g * w_words..][..w_words];
            let (w, halves) = w.split_at((C::ROWS - 1) * columns);
            let mut start = [L::splat_word(0); MR];
            for i in 0..MR {
                start[i] = C::start::<L>(code_sums[i][g]);
            }
            let sums = C::sums::<L, MR>(a, w, start);
            for j in 0..PANEL_VECTORS {
                let halves = L::load_words(&halves[j * L::WIDTH..]);
                let scale = L::low_half(halves);
                for i in 0..MR {
                    let a_scale = L::splat(scales[i][g]);
                    let sum = L::int_to_float(sums[i][j]);
                    values[i][j] = L::mul_add(sum, L::mul(scale, a_scale), values[i][j]);
                    if C::HAS_MIN {
                        let a_sum = L::splat(scales[i][g] * code_sums[i][g]);
                        values[i][j] = L::mul_add(L::high_half(halves), a_sum, values[i][j]);
                    }
                }
            }
        }
        for i in 0..MR {
            for j in 0..PANEL_VECTORS {
                let at = (i * PANEL_VECTORS + j) * L::WIDTH;
                L::store_words(L::to_bits(values[i][j]), &mut out[at..]);
            }
        }
    }

    #[inline(always)]
    fn value(sums: L::W) -> L::V {
        L::from_bits(sums)
    }

    #[inline(always)]
    fn row_scale(_: &Operand, _: usize) -> L::V {
        L::splat(1.0)
    }
}
