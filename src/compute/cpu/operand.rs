//! Activations as the products read them: rounded or quantised once, and shared by every product that reads them.
//!
//! Rows lie in tiles, whose height is that of the kernel that will take them: along k, one word a row side by side. Tiles
//! of the greatest height come first, then lower ones until no rows are left.

use super::buffers::{Buffer, Buffers};
use super::isa::{Heights, Isa, Kernel, Lanes};
use super::threads::{Pieces, Threads};
use super::vecmath::{MAX_WIDTH, load};
use crate::compute::quant::GROUP;
use crate::compute::reference::{MAX_CODE, SMALLEST_QUANTISED};
use crate::compute::weight::Format;

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

/// A matrix of activations, ready for products with weights of one format.
pub(super) struct Operand {
    pub(super) format: Format,
    pub(super) rows: usize,
    pub(super) cols: usize,
    pub(super) heights: Heights,
    words: Buffer,
    /// Of int8 codes: for each row, or each group of each row, the scale.
    scales: Buffer,
    /// Of int8 codes: their sum, a whole number, for each scale.
    sums: Buffer,
}

impl Operand {
    /// Prepares `a` for products in `format`.
    pub(super) fn new(
        isa: Isa,
        threads: &Threads,
        buffers: &Buffers,
        a: Rows,
        format: Format,
    ) -> Self {
        let per_row = format.operand_words(a.width);
        let scales_per_row = format.scales(a.width);
        let heights = isa.heights(format.is_grouped());
        let mut operand = Self {
            format,
            rows: a.rows,
            cols: a.width,
            heights,
            words: buffers.take(a.rows * per_row),
            scales: buffers.take(a.rows * scales_per_row),
            sums: buffers.take(a.rows * scales_per_row),
        };
        let words = Pieces(operand.words.as_mut_ptr());
        let scales = Pieces(operand.scales.as_mut_ptr());
        let sums = Pieces(operand.sums.as_mut_ptr());
        let per_task = task_rows(a, heights);
        threads.run(a.rows.div_ceil(per_task), &|task| {
            let from = task * per_task;
            let rows = per_task.min(a.rows - from);
            // SAFETY: the rows of tasks are apart, and all within the buffers.
            #[allow(unsafe_code)]
            let (words, scales, sums) = unsafe {
                (
                    words.piece(from * per_row, rows * per_row),
                    scales.piece(from * scales_per_row, rows * scales_per_row),
                    sums.piece(from * scales_per_row, rows * scales_per_row),
                )
            };
            isa.run(Prepare {
                a: Rows {
                    values: &a.values[(from * a.stride).min(a.values.len())..],
                    rows,
                    ..a
                },
                format,
                heights,
                words: bytemuck::cast_slice_mut(words),
                scales,
                sums,
            });
        });
        operand
    }

    /// The words of the tile of `height` rows from `row` on.
    #[inline(always)]
    pub(super) fn tile(&self, row: usize, height: usize) -> &[u32] {
        let per_row = self.format.operand_words(self.cols);
        &bytemuck::cast_slice(&self.words)[row * per_row..][..height * per_row]
    }

    /// The scales of a row's codes, or of each of its groups.
    #[inline(always)]
    pub(super) fn scales(&self, row: usize) -> &[f32] {
        let per_row = self.format.scales(self.cols);
        &self.scales[row * per_row..][..per_row]
    }

    /// The sums of the codes that share a scale.
    #[inline(always)]
    pub(super) fn sums(&self, row: usize) -> &[f32] {
        let per_row = self.format.scales(self.cols);
        &self.sums[row * per_row..][..per_row]
    }
}

/// Rows that are worth a task: whole tiles, some tens of thousands of values.
fn task_rows(a: Rows, heights: Heights) -> usize {
    const TASK_VALUES: usize = 32 * 1024;
    (TASK_VALUES / a.width.max(1))
        .max(1)
        .next_multiple_of(heights.tall)
}

impl Format {
    /// Whether groups along a row have scales of their own.
    pub(super) fn is_grouped(self) -> bool {
        matches!(self, Self::Q8Group | Self::Q4Group)
    }

    /// Words of a row of `cols` activations.
    #[inline(always)]
    pub(super) fn operand_words(self, cols: usize) -> usize {
        match self {
            Self::F32 => cols,
            Self::Bf16 => cols.div_ceil(2),
            Self::Q8 => cols.div_ceil(4),
            Self::Q8Group | Self::Q4Group => cols.div_ceil(GROUP) * (GROUP / 4),
        }
    }

    /// Scales of a row of `cols` activations.
    #[inline(always)]
    fn scales(self, cols: usize) -> usize {
        match self {
            Self::F32 | Self::Bf16 => 0,
            Self::Q8 => 1,
            Self::Q8Group | Self::Q4Group => cols.div_ceil(GROUP),
        }
    }
}

/// Fills the tiles of some rows.
struct Prepare<'a> {
    a: Rows<'a>,
    format: Format,
    heights: Heights,
    words: &'a mut [u32],
    scales: &'a mut [f32],
    sums: &'a mut [f32],
}

impl Kernel for Prepare<'_> {
    #[inline(always)]
    fn run<L: Lanes>(self) {
        let Self {
            a,
            format,
            heights,
            words,
            scales,
            sums,
        } = self;
        let per_row = format.operand_words(a.width);
        let per_scale = format.scales(a.width);
        let mut first = 0;
        while first < a.rows {
            let height = heights.next(a.rows - first);
            let tile = &mut words[first * per_row..][..height * per_row];
            for lane in 0..height {
                let r = first + lane;
                let row = a.row(r);
                let mut column = Column {
                    words: &mut tile[lane..],
                    height,
                };
                let (scales, sums) = (
                    &mut scales[r * per_scale..][..per_scale],
                    &mut sums[r * per_scale..][..per_scale],
                );
                match format {
                    Format::F32 => column.fill_f32(row),
                    Format::Bf16 => column.fill_bf16::<L>(row),
                    Format::Q8 => {
                        (scales[0], sums[0]) = column.fill_codes::<L>(row);
                    }
                    Format::Q8Group | Format::Q4Group => {
                        let groups = row.chunks(GROUP).zip(scales.iter_mut().zip(sums));
                        for (group, (scale, sum)) in groups {
                            let mut whole = [0.0; GROUP];
                            whole[..group.len()].copy_from_slice(group);
                            (*scale, *sum) = column.fill_codes::<L>(&whole);
                            column.skip(GROUP / 4);
                        }
                    }
                }
            }
            first += height;
        }
    }
}

/// A row's words among those of others: every `height`th, beginning with the first.
pub(super) struct Column<'a> {
    pub(super) words: &'a mut [u32],
    pub(super) height: usize,
}

impl Column<'_> {
    #[inline(always)]
    pub(super) fn fill_f32(&mut self, row: &[f32]) {
        for (i, value) in row.iter().enumerate() {
            self.words[i * self.height] = value.to_bits();
        }
    }

    #[inline(always)]
    pub(super) fn fill_bf16<L: Lanes>(&mut self, row: &[f32]) {
        let mut words = [0; MAX_WIDTH];
        let mut word = 0;
        while 2 * word < row.len() {
            // Neighbours in the row are lanes of the same number in the two registers.
            let (mut low, mut high) = ([0.0; MAX_WIDTH], [0.0; MAX_WIDTH]);
            let pairs = &row[2 * word..row.len().min(2 * (word + L::WIDTH))];
            for i in 0..pairs.len() / 2 {
                (low[i], high[i]) = (pairs[2 * i], pairs[2 * i + 1]);
            }
            if pairs.len() % 2 == 1 {
                low[pairs.len() / 2] = pairs[pairs.len() - 1];
            }
            L::store_words(L::pair(L::load(&low), L::load(&high)), &mut words);
            for i in 0..pairs.len().div_ceil(2) {
                self.words[(word + i) * self.height] = words[i];
            }
            word += L::WIDTH;
        }
    }

    /// Writes `round(x · 127 / max |x|)` and gives the scale of these codes and their sum. The scale is NaN when a value
    /// is not finite.
    #[inline(always)]
    fn fill_codes<L: Lanes>(&mut self, row: &[f32]) -> (f32, f32) {
        let (mut highest, mut lowest) = (L::splat(0.0), L::splat(0.0));
        // NaN if any value is not finite, else 0.
        let mut taint = L::splat(0.0);
        let mut from = 0;
        while from < row.len() {
            let x = load::<L, f32>(&row[from..]);
            highest = L::max(x, highest);
            lowest = L::min(x, lowest);
            taint = L::add(taint, L::sub(x, x));
            from += L::WIDTH;
        }
        let largest = L::largest(L::max(highest, L::sub(L::splat(0.0), lowest)));
        let per_step = if largest < SMALLEST_QUANTISED {
            0.0
        } else {
            MAX_CODE / largest
        };
        let factor = L::splat(per_step);
        let mut total = L::splat(0.0);
        let words = self.words.len().div_ceil(self.height);
        let mut codes = [0; MAX_WIDTH / 4];
        let mut word = 0;
        let mut from = 0;
        while from < row.len() {
            let code = rounded::<L>(L::mul(load::<L, f32>(&row[from..]), factor));
            total = L::add(total, code);
            L::store_codes(code, &mut codes);
            // Of a last register, only the words that the row has.
            for i in 0..(L::WIDTH / 4).min(words - word) {
                self.words[(word + i) * self.height] = codes[i];
            }
            word += L::WIDTH / 4;
            from += L::WIDTH;
        }
        let scale = if per_step == 0.0 {
            0.0
        } else {
            largest / MAX_CODE
        };
        (scale + L::sum(taint), L::sum(total))
    }

    #[inline(always)]
    fn skip(&mut self, words: usize) {
        let words_here = std::mem::take(&mut self.words);
        let skipped = (words * self.height).min(words_here.len());
        self.words = &mut words_here[skipped..];
    }
}

/// The nearest whole number, of two the even one, for magnitudes below 2²².
#[inline(always)]
fn rounded<L: Lanes>(x: L::V) -> L::V {
    const SHIFT: f32 = 12_582_912.0; // 1.5 · 2²³: the sum has no bits for fractions
    L::sub(L::add(x, L::splat(SHIFT)), L::splat(SHIFT))
}
