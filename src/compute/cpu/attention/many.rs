//! Queries in panels: a lane is a query, and keys and values are the tiles that meet the panel.
//!
//! Scores are `[keys, queries]`, so that the softmax over the keys runs down the lanes, and its weights are the panel that
//! the values meet. Keys are taken a block at a time; the highest score so far, the sum of the weights and the mixture of
//! the values are carried from block to block ("Online normalizer calculation for softmax", Milakov and Gimelshein 2018).

#![allow(unsafe_code)]

use super::Task;
use crate::compute::KvFormat;
use crate::compute::cpu::buffers::Buffer;
use crate::compute::cpu::isa::{Kernel, Lanes};
use crate::compute::cpu::kv::Head;
use crate::compute::cpu::operand::{Column, Operand, Rows};
use crate::compute::cpu::panels::{MAX_HEIGHT, MAX_PANEL, PANEL_VECTORS, panel_width};
use crate::compute::cpu::product::{Bf16, F32, Meet, sum};
use crate::compute::cpu::threads::Pieces;
use crate::compute::cpu::vecmath::{MAX_WIDTH, exp, load, rough_exp, widen};
use crate::compute::weight::Format;

/// Keys of a block, a multiple of all heights of tiles and of the keys in a word: their scores for a panel of queries stay
/// in the first-level cache.
const KEY_BLOCK: usize = 240;

/// Below any score; not infinite, so that differences of two of them are not NaN.
const LOWEST: f32 = -1e30;

pub(super) fn run(task: &Task, out: &mut [f32]) {
    let shape = task.cache.shape;
    let format = match shape.format {
        KvFormat::Bf16 | KvFormat::Q8 if task.isa.multiplies_bf16() => Format::Bf16,
        _ => Format::F32,
    };
    let mut packed: Vec<Option<Packed>> = Vec::new();
    packed.resize_with(shape.batch * shape.n_kv_head, || None);
    task.threads.chunks(&mut packed, 1, |i, packed| {
        let (b, h) = (i / shape.n_kv_head, i % shape.n_kv_head);
        packed[0] = Some(Packed::new(task, b, h, format));
    });
    let (n_head, head_dim, width) = (task.attention.n_head, task.head_dim(), task.width());
    let columns = panel_width(task.isa);
    let panels = task.new.div_ceil(columns);
    let out = Pieces(out.as_mut_ptr());
    task.threads.run(task.batch * n_head * panels, &|i| {
        let (b, h, panel) = (i / panels / n_head, i / panels % n_head, i % panels);
        let first = panel * columns;
        let at = (b * task.new + first) * width + h * head_dim;
        if let Some(packed) = &packed[task.sequence(b) * shape.n_kv_head + task.kv_head(h)] {
            task.isa.run(Panel {
                task,
                packed,
                q: Rows {
                    values: &task.q[at..],
                    rows: columns.min(task.new - first),
                    width: head_dim,
                    stride: width,
                },
                first,
                scores: &mut task.buffers.take(KEY_BLOCK * columns),
                weights: &mut task.buffers.take(KEY_BLOCK * columns),
                mixture: &mut task.buffers.take(head_dim * columns),
                out: Out {
                    values: &out,
                    at,
                    head_dim,
                    stride: width,
                },
            });
        }
    });
}

/// Keys and values of one head as tiles.
struct Packed {
    /// A row a key.
    keys: Operand,
    /// A row a dimension: for each tile of dimensions, a word of each for one group of keys after another.
    values: Buffer,
    /// Groups of keys.
    groups: usize,
}

impl Packed {
    fn new(task: &Task, b: usize, h: usize, format: Format) -> Self {
        let (isa, len, head_dim) = (task.isa, task.cache.len, task.head_dim());
        let mut wide = task.buffers.take(len * head_dim);
        isa.run(Widen {
            head: task.cache.keys(b, h),
            out: &mut wide,
        });
        let rows = Rows {
            values: &wide,
            rows: len,
            width: head_dim,
            stride: head_dim,
        };
        let keys = Operand::new(isa, task.threads, task.buffers, rows, format);
        isa.run(Widen {
            head: task.cache.values(b, h),
            out: &mut wide,
        });
        let groups = format.operand_words(len);
        let mut values = task.buffers.take(groups * head_dim);
        isa.run(PackValues {
            values: &wide,
            head_dim,
            format,
            out: bytemuck::cast_slice_mut(&mut values),
        });
        Self {
            keys,
            values,
            groups,
        }
    }
}

/// The values of a head as singles.
struct Widen<'a> {
    head: Head<'a>,
    out: &'a mut [f32],
}

impl Kernel for Widen<'_> {
    #[inline(always)]
    fn run<L: Lanes>(self) {
        match self.head {
            Head::F32(values) => self.out.copy_from_slice(values),
            Head::F16(values) => widen::<L, _>(values, 1.0, self.out),
            Head::Bf16(values) => widen::<L, _>(values, 1.0, self.out),
            Head::Q8(codes, scales) => {
                let head_dim = codes.len() / scales.len().max(1);
                let rows = codes.chunks_exact(head_dim.max(1)).zip(scales);
                for ((codes, &scale), out) in rows.zip(self.out.chunks_exact_mut(head_dim.max(1))) {
                    widen::<L, _>(codes, scale, out);
                }
            }
        }
    }
}

/// Fills the tiles of values `[len, head_dim]`.
struct PackValues<'a> {
    values: &'a [f32],
    head_dim: usize,
    format: Format,
    out: &'a mut [u32],
}

impl Kernel for PackValues<'_> {
    #[inline(always)]
    fn run<L: Lanes>(self) {
        let head_dim = self.head_dim;
        let keys = if self.format == Format::F32 { 1 } else { 2 };
        let groups = self.out.len() / head_dim;
        let mut words = vec![0; head_dim];
        for (g, rows) in self.values.chunks(keys * head_dim).enumerate() {
            if keys == 1 {
                words.copy_from_slice(bytemuck::cast_slice(rows));
            } else {
                let (low, high) = rows.split_at(head_dim);
                pair_rows::<L>(low, high, &mut words);
            }
            let mut from = 0;
            while from < head_dim {
                let height = L::HEIGHTS.next(head_dim - from);
                let to = from * groups + g * height;
                self.out[to..to + height].copy_from_slice(&words[from..from + height]);
                from += height;
            }
        }
    }
}

/// Words of two bfloat16 numbers, one of each row; of one row and zeros, if there is no second.
#[inline(always)]
fn pair_rows<L: Lanes>(low: &[f32], high: &[f32], words: &mut [u32]) {
    let mut wide = [0; MAX_WIDTH];
    let mut at = 0;
    while at < words.len() {
        let next = load::<L, f32>(&high[at.min(high.len())..]);
        L::store_words(L::pair(load::<L, f32>(&low[at..]), next), &mut wide);
        let end = words.len().min(at + L::WIDTH);
        words[at..end].copy_from_slice(&wide[..end - at]);
        at += L::WIDTH;
    }
}

/// Where a task writes its queries' part of the result.
struct Out<'a> {
    values: &'a Pieces<f32>,
    at: usize,
    head_dim: usize,
    stride: usize,
}

impl Out<'_> {
    /// The part of query `i`.
    #[inline(always)]
    fn row(&mut self, i: usize) -> &mut [f32] {
        // SAFETY: no other task has this head of these queries, and it lies within the result.
        unsafe { self.values.piece(self.at + i * self.stride, self.head_dim) }
    }
}

/// One head of as many queries as a panel has columns, or fewer.
struct Panel<'a> {
    task: &'a Task<'a>,
    packed: &'a Packed,
    /// One head of the queries.
    q: Rows<'a>,
    /// The first query's number.
    first: usize,
    /// Room for `[KEY_BLOCK, columns]`.
    scores: &'a mut [f32],
    /// Room for as many words.
    weights: &'a mut [f32],
    /// Room for `[head_dim, columns]`.
    mixture: &'a mut [f32],
    out: Out<'a>,
}

impl Kernel for Panel<'_> {
    #[inline(always)]
    fn run<L: Lanes>(self) {
        if self.packed.keys.format == Format::F32 {
            self.attend::<L, F32>();
        } else {
            self.attend::<L, Bf16>();
        }
    }
}

/// What is carried from block to block, a lane a query.
struct Carried<L: Lanes> {
    highest: [L::V; PANEL_VECTORS],
    total: [L::V; PANEL_VECTORS],
}

impl Panel<'_> {
    #[inline(always)]
    fn attend<L: Lanes, M: Meet<Sum<L> = L::V> + Weights>(mut self) {
        let columns = PANEL_VECTORS * L::WIDTH;
        let queries = self.query_panel::<L>();
        let seen = self.seen();
        let keys = self.task.cache.len;
        self.mixture.fill(0.0);
        let mut carried = Carried::<L> {
            highest: [L::splat(LOWEST); PANEL_VECTORS],
            total: [L::splat(0.0); PANEL_VECTORS],
        };
        let lowest = seen[..self.q.rows].iter().map(|seen| seen.start).min();
        let mut from = lowest.unwrap_or(0) / KEY_BLOCK * KEY_BLOCK;
        let end = seen[..self.q.rows].iter().map(|seen| seen.end).max();
        while from < end.unwrap_or(0) {
            let to = (from + KEY_BLOCK).min(keys);
            self.score::<L, M>(&queries, from, to);
            self.mask(columns, &seen, from, to);
            let rescale = self.weigh::<L, M>(to - from, &mut carried);
            self.mix::<L, M>(from, to, rescale);
            from = to;
        }
        self.write::<L>(&carried);
    }

    /// Keys that each lane sees; lanes without a query see what the last one does.
    fn seen(&self) -> [Seen; MAX_PANEL] {
        std::array::from_fn(|lane| {
            let visible = self.task.visible(self.first + lane.min(self.q.rows - 1));
            Seen {
                start: visible.start,
                end: visible.end,
            }
        })
    }

    /// The queries as a panel of words, the scale of the scores in them.
    #[inline(always)]
    fn query_panel<L: Lanes>(&self) -> Vec<u32> {
        let columns = PANEL_VECTORS * L::WIDTH;
        let format = self.packed.keys.format;
        let mut words = vec![0; format.operand_words(self.q.width) * columns];
        let mut scaled = vec![0.0; self.q.width];
        for lane in 0..self.q.rows {
            widen::<L, f32>(self.q.row(lane), self.task.attention.scale, &mut scaled);
            let mut column = Column {
                words: &mut words[lane..],
                height: columns,
            };
            if format == Format::F32 {
                column.fill_f32(&scaled);
            } else {
                column.fill_bf16::<L>(&scaled);
            }
        }
        words
    }

    /// Scores of keys `from..to`.
    #[inline(always)]
    fn score<L: Lanes, M: Meet<Sum<L> = L::V>>(&mut self, queries: &[u32], from: usize, to: usize) {
        let mut key = from;
        while key < to {
            let height = L::HEIGHTS.next(self.packed.keys.rows - key);
            let out = &mut self.scores[(key - from) * PANEL_VECTORS * L::WIDTH..];
            tile_of::<L, M>(height, self.packed.keys.tile(key, height), queries, out);
            key += height;
        }
    }

    /// Takes from each lane the keys `from..to` that it does not see.
    fn mask(&mut self, columns: usize, seen: &[Seen; MAX_PANEL], from: usize, to: usize) {
        if seen[..columns]
            .iter()
            .all(|seen| seen.start <= from && seen.end >= to)
        {
            return;
        }
        for (key, scores) in (from..to).zip(self.scores.chunks_exact_mut(columns)) {
            for (score, seen) in scores.iter_mut().zip(seen) {
                if key < seen.start || key >= seen.end {
                    *score = f32::NEG_INFINITY;
                }
            }
        }
    }

    /// Turns the scores of a block of `keys` into words of weights, and gives what the mixture so far is to be scaled by.
    #[inline(always)]
    fn weigh<L: Lanes, M: Weights>(
        &mut self,
        keys: usize,
        carried: &mut Carried<L>,
    ) -> [L::V; PANEL_VECTORS] {
        let mut rescale = carried.highest;
        for j in 0..PANEL_VECTORS {
            let scores = &self.scores[j * L::WIDTH..];
            let mut highest = carried.highest[j];
            for key in 0..keys {
                highest = L::max(L::load(&scores[key * PANEL_VECTORS * L::WIDTH..]), highest);
            }
            rescale[j] = exp::<L>(L::sub(carried.highest[j], highest));
            let weights = bytemuck::cast_slice_mut(&mut self.weights[j * L::WIDTH..]);
            let total = M::weigh::<L>(scores, keys, highest, weights);
            carried.total[j] = L::mul_add(carried.total[j], rescale[j], total);
            carried.highest[j] = highest;
        }
        rescale
    }

    /// Adds the values of keys `from..to`, weighted, to the mixture so far times `rescale`.
    #[inline(always)]
    fn mix<L: Lanes, M: Meet<Sum<L> = L::V>>(
        &mut self,
        from: usize,
        to: usize,
        rescale: [L::V; PANEL_VECTORS],
    ) {
        let columns = PANEL_VECTORS * L::WIDTH;
        let format = self.packed.keys.format;
        let groups = format.operand_words(from)..format.operand_words(to);
        let weights: &[u32] = bytemuck::cast_slice(&self.weights[..groups.len() * columns]);
        let words: &[u32] = bytemuck::cast_slice(&self.packed.values);
        let head_dim = self.q.width;
        let mut d = 0;
        let mut fresh = [0.0; MAX_HEIGHT * MAX_PANEL];
        while d < head_dim {
            let height = L::HEIGHTS.next(head_dim - d);
            let tile = &words[d * self.packed.groups..];
            let tile = &tile[groups.start * height..groups.end * height];
            tile_of::<L, M>(height, tile, weights, &mut fresh);
            for i in 0..height {
                for j in 0..PANEL_VECTORS {
                    let fresh = L::load(&fresh[i * columns + j * L::WIDTH..]);
                    let mixture = &mut self.mixture[(d + i) * columns + j * L::WIDTH..];
                    L::store(L::mul_add(L::load(mixture), rescale[j], fresh), mixture);
                }
            }
            d += height;
        }
    }

    /// Writes the mixtures over the sums of their weights.
    #[inline(always)]
    fn write<L: Lanes>(mut self, carried: &Carried<L>) {
        let columns = PANEL_VECTORS * L::WIDTH;
        let mut inverse = [0.0; MAX_PANEL];
        for (j, &total) in carried.total.iter().enumerate() {
            L::store(L::div(L::splat(1.0), total), &mut inverse[j * L::WIDTH..]);
        }
        for lane in 0..self.q.rows {
            let mixture = self.mixture[lane..].iter().step_by(columns);
            for (out, &sum) in self.out.row(lane).iter_mut().zip(mixture) {
                *out = sum * inverse[lane];
            }
        }
    }
}

/// How scores become weights in one format.
trait Weights {
    /// Writes the words of `e^(score − highest)` of `keys` scores, and gives the sum of the weights. Scores and words are
    /// those of one register of a panel.
    fn weigh<L: Lanes>(scores: &[f32], keys: usize, highest: L::V, words: &mut [u32]) -> L::V;
}

impl Weights for F32 {
    #[inline(always)]
    fn weigh<L: Lanes>(scores: &[f32], keys: usize, highest: L::V, words: &mut [u32]) -> L::V {
        let mut total = L::splat(0.0);
        for key in 0..keys {
            let at = key * PANEL_VECTORS * L::WIDTH;
            let weight = exp::<L>(L::sub(L::load(&scores[at..]), highest));
            total = L::add(total, weight);
            L::store_words(L::to_bits(weight), &mut words[at..]);
        }
        total
    }
}

impl Weights for Bf16 {
    #[inline(always)]
    fn weigh<L: Lanes>(scores: &[f32], keys: usize, highest: L::V, words: &mut [u32]) -> L::V {
        let columns = PANEL_VECTORS * L::WIDTH;
        // Two sums, to hide the latency of an addition.
        let (mut even, mut odd) = (L::splat(0.0), L::splat(0.0));
        for pair in 0..keys / 2 {
            let low = L::load(&scores[2 * pair * columns..]);
            let high = L::load(&scores[(2 * pair + 1) * columns..]);
            let low = rough_exp::<L>(L::sub(low, highest));
            let high = rough_exp::<L>(L::sub(high, highest));
            even = L::add(even, low);
            odd = L::add(odd, high);
            L::store_words(L::pair(low, high), &mut words[pair * columns..]);
        }
        if keys % 2 == 1 {
            let last = L::load(&scores[(keys - 1) * columns..]);
            let last = rough_exp::<L>(L::sub(last, highest));
            even = L::add(even, last);
            let word = L::pair(last, L::splat(0.0));
            L::store_words(word, &mut words[keys / 2 * columns..]);
        }
        L::add(even, odd)
    }
}

/// The keys that a lane's query sees.
#[derive(Clone, Copy)]
struct Seen {
    start: usize,
    end: usize,
}

/// A tile `a` `[words, height]` and the panel `w` `[words, columns]` give `out` `[height, columns]`.
#[inline(always)]
fn tile_of<L: Lanes, M: Meet<Sum<L> = L::V>>(height: usize, a: &[u32], w: &[u32], out: &mut [f32]) {
    match height {
        12 if const { L::HEIGHTS.has(12) } => tile::<L, M, 12>(a, w, out),
        6 if const { L::HEIGHTS.has(6) } => tile::<L, M, 6>(a, w, out),
        4 if const { L::HEIGHTS.has(4) } => tile::<L, M, 4>(a, w, out),
        2 if const { L::HEIGHTS.has(2) } => tile::<L, M, 2>(a, w, out),
        _ => tile::<L, M, 1>(a, w, out),
    }
}

#[inline(always)]
fn tile<L: Lanes, M: Meet<Sum<L> = L::V>, const MR: usize>(a: &[u32], w: &[u32], out: &mut [f32]) {
    let sums = sum::<L, M, MR>(a, w, [L::splat(0.0); MR]);
    for i in 0..MR {
        for j in 0..PANEL_VECTORS {
            L::store(sums[i][j], &mut out[(i * PANEL_VECTORS + j) * L::WIDTH..]);
        }
    }
}
