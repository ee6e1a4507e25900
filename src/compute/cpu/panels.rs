//! Weights as the products read them.
//!
//! A panel holds [`PANEL_VECTORS`] registers of columns. Along k it is a sequence of rows of words, a word a column: one
//! f32, two bfloat16 numbers or four int8 codes. Formats with a scale for every [`GROUP`] weights follow each group's
//! codes with a row of words that hold scale and minimum as IEEE halves; a row of words of 4-bit codes holds those of
//! eight consecutive weights, the first four in the low nibbles. Panels are padded with zeros on both axes.

use bytes::Bytes;
use half::f16;

use super::isa::{Isa, Kernel, Lanes};
use super::threads::{Pieces, Threads};
use super::vecmath;
use crate::compute::quant::{GROUP, RowRoom};
use crate::compute::weight::{Format, Row};
use crate::compute::{Error, Weight};

/// Counted up whenever packed bytes change their meaning.
pub(super) const VERSION: u32 = 1;

/// Registers side by side in a panel, and in the tiles of a product.
pub(super) const PANEL_VECTORS: usize = 2;
/// Rows of the tallest tile.
pub(super) const MAX_HEIGHT: usize = 12;
/// Columns of the widest panel.
pub(super) const MAX_PANEL: usize = PANEL_VECTORS * vecmath::MAX_WIDTH;
/// Where panels begin in memory, and scales after them: a register, a line of the cache.
const ALIGNMENT: usize = 64;

/// Columns of a panel.
pub(super) fn panel_width(isa: Isa) -> usize {
    PANEL_VECTORS * isa.width()
}

/// A weight matrix `[rows, cols]` in panels of its rows, which are the columns of a product.
#[derive(Clone, Debug)]
pub struct Matrix {
    rows: usize,
    cols: usize,
    format: Format,
    panel: usize,
    /// Panels, then for [`Format::Q8`] the scales `[rows]` as f32, padded to whole panels.
    bytes: Bytes,
}

impl Format {
    /// Rows of words in a panel of `cols` weights a column.
    pub(super) fn panel_rows(self, cols: usize) -> usize {
        match self {
            Self::F32 => cols,
            Self::Bf16 => cols.div_ceil(2),
            Self::Q8 => cols.div_ceil(4),
            Self::Q8Group => cols.div_ceil(GROUP) * Q8_GROUP_ROWS,
            Self::Q4Group => cols.div_ceil(GROUP) * Q4_GROUP_ROWS,
        }
    }
}

/// Rows of words of a group: the codes, and scale and minimum.
pub(super) const Q8_GROUP_ROWS: usize = GROUP / 4 + 1;
/// The same for 4-bit codes.
pub(super) const Q4_GROUP_ROWS: usize = GROUP / 8 + 1;

/// Bytes of a packed matrix.
fn size(isa: Isa, rows: usize, cols: usize, format: Format) -> usize {
    let padded = rows.next_multiple_of(panel_width(isa));
    let scales = if format == Format::Q8 { padded } else { 0 };
    (padded * format.panel_rows(cols) + scales) * 4
}

impl Matrix {
    /// Packs `weight` for `isa`, to be multiplied in `format`.
    pub(super) fn pack(isa: Isa, threads: &Threads, weight: &Weight, format: Format) -> Self {
        let (rows, cols) = (weight.rows(), weight.cols());
        let panel = panel_width(isa);
        let mut memory = Memory::zeroed(size(isa, rows, cols, format));
        let words = memory.words_mut();
        let (panels, scales) =
            words.split_at_mut(rows.next_multiple_of(panel) * format.panel_rows(cols));
        let panel_words = panel * format.panel_rows(cols);
        let scales = Pieces(scales.as_mut_ptr());
        threads.chunks(panels, panel_words.max(1), |i, words| {
            let has_scales = if format == Format::Q8 { panel } else { 0 };
            // SAFETY: each panel has its own scales, as many as it has columns.
            #[allow(unsafe_code)]
            let scales = unsafe { scales.piece(i * has_scales, has_scales) };
            isa.run(Pack {
                weight,
                format,
                from: i * panel,
                words,
                scales,
            });
        });
        Self {
            rows,
            cols,
            format,
            panel,
            bytes: Bytes::from_owner(memory),
        }
    }

    /// A matrix that was packed for `isa` before.
    pub(super) fn packed(
        isa: Isa,
        rows: usize,
        cols: usize,
        format: Format,
        bytes: Bytes,
    ) -> Result<Self, Error> {
        let expected = size(isa, rows, cols, format);
        if bytes.len() != expected || bytemuck::try_cast_slice::<u8, u32>(&bytes).is_err() {
            return Err(Error::WeightSize {
                rows,
                cols,
                format: format.name(),
                expected,
                found: bytes.len(),
            });
        }
        Ok(Self {
            rows,
            cols,
            format,
            panel: panel_width(isa),
            bytes,
        })
    }

    /// Output features.
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// Input features.
    pub(super) fn cols(&self) -> usize {
        self.cols
    }

    pub(super) fn format(&self) -> Format {
        self.format
    }

    pub(super) fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Words of a panel.
    pub(super) fn panel_words(&self) -> usize {
        self.panel * self.format.panel_rows(self.cols)
    }

    /// Columns of a panel.
    pub(super) fn panel_width(&self) -> usize {
        self.panel
    }

    /// Panel `i`.
    #[inline(always)]
    pub(super) fn panel(&self, i: usize) -> &[u32] {
        &self.words()[i * self.panel_words()..][..self.panel_words()]
    }

    /// All panels, one after another.
    pub(super) fn panels(&self) -> &[u32] {
        &self.words()[..self.rows.div_ceil(self.panel) * self.panel_words()]
    }

    /// The factor of each row's codes, padded to whole panels; none for other formats than [`Format::Q8`].
    pub(super) fn scales(&self) -> &[f32] {
        bytemuck::cast_slice(&self.words()[self.panels().len()..])
    }

    fn words(&self) -> &[u32] {
        bytemuck::cast_slice(&self.bytes)
    }

    /// Writes the values of row `r` to `out`.
    pub(super) fn widen_row(&self, isa: Isa, r: usize, out: &mut [f32]) {
        assert!(r < self.rows, "row {r} of {}", self.rows);
        assert_eq!(out.len(), self.cols, "columns of a row");
        isa.run(Widen {
            matrix: self,
            r,
            out,
        });
    }
}

/// Zeroed memory that begins at a line of the cache.
struct Memory {
    lines: Vec<Line>,
    len: usize,
}

#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C, align(64))]
struct Line([u8; ALIGNMENT]);

impl Memory {
    fn zeroed(len: usize) -> Self {
        Self {
            lines: bytemuck::zeroed_vec(len.div_ceil(ALIGNMENT)),
            len,
        }
    }

    fn words_mut(&mut self) -> &mut [u32] {
        &mut bytemuck::cast_slice_mut(&mut self.lines)[..self.len / 4]
    }
}

impl AsRef<[u8]> for Memory {
    fn as_ref(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.lines)[..self.len]
    }
}

/// Fills the panel of a weight's rows from `from` on, which is zeroed, and their scales.
struct Pack<'a> {
    weight: &'a Weight,
    format: Format,
    from: usize,
    words: &'a mut [u32],
    scales: &'a mut [u32],
}

impl Kernel for Pack<'_> {
    #[inline(always)]
    fn run<L: Lanes>(self) {
        let panel = PANEL_VECTORS * L::WIDTH;
        let (rows, cols) = (self.weight.rows(), self.weight.cols());
        let mut room = RowRoom::new(cols);
        let mut column = vec![0; self.words.len() / panel];
        for (lane, r) in (self.from..rows.min(self.from + panel)).enumerate() {
            let row = room.in_format(self.weight.row(r), self.format);
            row_to_words::<L>(row, &mut column);
            for (to, &word) in self.words[lane..].iter_mut().step_by(panel).zip(&column) {
                *to = word;
            }
            if let Row::Q8(_, scale) = row {
                self.scales[lane] = scale.to_bits();
            }
        }
    }
}

/// The words of one row, as many as `words` has.
#[inline(always)]
fn row_to_words<L: Lanes>(row: Row, words: &mut [u32]) {
    match row {
        Row::F32(_) | Row::F16(_) => row.widen(bytemuck::cast_slice_mut(words)),
        Row::Bf16(values) => {
            for (word, pair) in words.iter_mut().zip(values.chunks(2)) {
                let high = pair.get(1).map_or(0, |value| value.to_bits());
                *word = u32::from(pair[0].to_bits()) | u32::from(high) << 16;
            }
        }
        Row::Q8(codes, _) => codes_to_words(codes, L::CODE_OFFSET, words),
        Row::Q8Group { codes, scales } => {
            let groups = codes.chunks(GROUP).zip(scales);
            for (words, (codes, &scale)) in words.chunks_exact_mut(Q8_GROUP_ROWS).zip(groups) {
                // What a last group lacks are zeros, raised as the others.
                words.fill(u32::from_le_bytes([L::CODE_OFFSET; 4]));
                codes_to_words(codes, L::CODE_OFFSET, &mut words[..Q8_GROUP_ROWS - 1]);
                words[Q8_GROUP_ROWS - 1] = scale_and_min(scale, f16::ZERO);
            }
        }
        Row::Q4Group {
            codes,
            scales,
            mins,
        } => {
            let groups = codes.chunks(GROUP).zip(scales.iter().zip(mins));
            for (words, (codes, (&scale, &min))) in
                words.chunks_exact_mut(Q4_GROUP_ROWS).zip(groups)
            {
                words.fill(0);
                for (word, codes) in words[..Q4_GROUP_ROWS - 1].iter_mut().zip(codes.chunks(8)) {
                    *word = nibbles(codes);
                }
                words[Q4_GROUP_ROWS - 1] = scale_and_min(scale, min);
            }
        }
    }
}

/// Four codes a word, raised by `offset`; zeros fill up the last word.
#[inline(always)]
fn codes_to_words(codes: &[i8], offset: u8, words: &mut [u32]) {
    let mut fours = codes.chunks_exact(4);
    let mut words = words.iter_mut();
    for (four, word) in (&mut fours).zip(&mut words) {
        let four = [four[0], four[1], four[2], four[3]];
        *word = u32::from_le_bytes(four.map(|code| code.cast_unsigned().wrapping_add(offset)));
    }
    if let Some(word) = words.next()
        && !fours.remainder().is_empty()
    {
        let mut four = [offset; 4];
        for (raised, code) in four.iter_mut().zip(fours.remainder()) {
            *raised = code.cast_unsigned().wrapping_add(offset);
        }
        *word = u32::from_le_bytes(four);
    }
}

/// Eight codes from 0 to 15: the first four in the low halves of the bytes, the others in the high ones.
fn nibbles(codes: &[u8]) -> u32 {
    let mut bytes = [0; 4];
    for (i, code) in codes.iter().enumerate() {
        bytes[i % 4] |= code << (4 * (i / 4));
    }
    u32::from_le_bytes(bytes)
}

fn scale_and_min(scale: f16, min: f16) -> u32 {
    u32::from(scale.to_bits()) | u32::from(min.to_bits()) << 16
}

/// Writes the values of a matrix's row to `out`.
struct Widen<'a> {
    matrix: &'a Matrix,
    r: usize,
    out: &'a mut [f32],
}

impl Kernel for Widen<'_> {
    #[inline(always)]
    fn run<L: Lanes>(self) {
        let Self { matrix, r, out } = self;
        let panel = PANEL_VECTORS * L::WIDTH;
        let words = matrix.panel_words();
        let column = &matrix.panels()[r / panel * words..][r % panel..words];
        let mut words = column.iter().step_by(panel).copied();
        match matrix.format {
            Format::F32 => {
                for (out, word) in out.iter_mut().zip(words) {
                    *out = f32::from_bits(word);
                }
            }
            Format::Bf16 => {
                for (out, word) in out.chunks_mut(2).zip(words) {
                    let pair = [word << 16, word & 0xffff_0000];
                    for (out, bits) in out.iter_mut().zip(pair) {
                        *out = f32::from_bits(bits);
                    }
                }
            }
            Format::Q8 => {
                let scale = matrix.scales()[r];
                for (out, word) in out.chunks_mut(4).zip(words) {
                    for (out, code) in out.iter_mut().zip(word.to_le_bytes()) {
                        *out = lowered::<L>(code) * scale;
                    }
                }
            }
            Format::Q8Group => {
                for out in out.chunks_mut(GROUP) {
                    let codes: [u32; Q8_GROUP_ROWS - 1] =
                        std::array::from_fn(|_| words.next().unwrap_or(0));
                    let (scale, _) = halves(words.next().unwrap_or(0));
                    let codes = codes.iter().flat_map(|word| word.to_le_bytes());
                    for (out, code) in out.iter_mut().zip(codes) {
                        *out = lowered::<L>(code) * scale;
                    }
                }
            }
            Format::Q4Group => {
                for out in out.chunks_mut(GROUP) {
                    let codes: [u32; Q4_GROUP_ROWS - 1] =
                        std::array::from_fn(|_| words.next().unwrap_or(0));
                    let (scale, min) = halves(words.next().unwrap_or(0));
                    let codes = codes
                        .iter()
                        .flat_map(|word| [word & 0x0f0f_0f0f, word >> 4 & 0x0f0f_0f0f])
                        .flat_map(u32::to_le_bytes);
                    for (out, code) in out.iter_mut().zip(codes) {
                        *out = f32::from(code) * scale + min;
                    }
                }
            }
        }
    }
}

/// The value of a packed code, without its scale.
#[inline(always)]
fn lowered<L: Lanes>(code: u8) -> f32 {
    f32::from(code.wrapping_sub(L::CODE_OFFSET).cast_signed())
}

/// Scale and minimum of a group.
fn halves(word: u32) -> (f32, f32) {
    let half = |bits: u32| f16::from_bits(bits as u16).to_f32();
    (half(word), half(word >> 16))
}
