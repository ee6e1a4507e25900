//! The CPU: plain loops that the compiler vectorises for the instruction set at hand, spread over threads.
//!
//! Results do not depend on the number of threads: tasks own whole outputs, and every sum runs in one order.

mod activation;
mod attention;
mod buffers;
mod gemm;
mod isa;
mod lanewise;
mod logits;
mod matvec;
mod norm;
mod ops;
mod pool;
mod rms;
mod rope;
mod vecmath;

use std::ops::Range;

use rayon::prelude::*;

use self::attention::{Attention, KeysValues};
use self::buffers::{Buffer, Buffers};
use self::gemm::{Epilogue, Rows};
pub use self::isa::Isa;
use super::reference::assert_repeats;
use super::{Activation, AttentionMask, Backend, Conv, Error, Pool, Ranked, Rope, Weight};

/// Values that are worth spreading over threads in an operation which only moves them.
const PARALLEL_VALUES: usize = 64 * 1024;

/// This machine's processor.
pub struct Cpu {
    isa: Isa,
    pool: rayon::ThreadPool,
    buffers: Buffers,
}

/// Values in memory, row-major.
pub struct Tensor {
    shape: Vec<usize>,
    values: Buffer,
}

/// Keys and values of each sequence, `[batch, capacity, width]`, `len` positions of them written.
pub struct KvCache {
    batch: usize,
    capacity: usize,
    width: usize,
    len: usize,
    keys: Buffer,
    values: Buffer,
}

impl Tensor {
    fn width(&self) -> usize {
        self.shape[self.shape.len() - 1]
    }

    /// The tensor as a matrix of its last axis.
    fn rows(&self) -> Rows<'_> {
        let width = self.width();
        Rows {
            values: &self.values,
            rows: self.values.len() / width,
            width,
            stride: width,
        }
    }

    /// `[batch, length, width]`.
    fn sequences(&self) -> [usize; 3] {
        self.shape[..]
            .try_into()
            .unwrap_or_else(|_| panic!("sequences have three axes, not {:?}", self.shape))
    }
}

impl Cpu {
    /// A backend that runs `isa` on `threads` threads.
    ///
    /// # Errors
    /// [`Error::Threads`] when the threads cannot be started.
    pub fn new(isa: Isa, threads: usize) -> Result<Self, Error> {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .thread_name(|i| format!("compute-{i}"))
            .build()
            .map_err(|source| Error::Threads { threads, source })?;
        Ok(Self {
            isa,
            pool,
            buffers: Buffers::default(),
        })
    }

    /// Runs `work` on one of the backend's threads, which spares every operation in it the way there.
    pub fn enter<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        self.pool.install(work)
    }

    fn tensor(&self, shape: Vec<usize>) -> Tensor {
        let values = self.buffers.take(shape.iter().product());
        Tensor { shape, values }
    }

    fn like(&self, x: &Tensor, width: usize) -> Tensor {
        let mut shape = x.shape.clone();
        if let Some(last) = shape.last_mut() {
            *last = width;
        }
        self.tensor(shape)
    }

    /// Runs `work(out, from, x)` over stretches of whole rows, on several threads when there is much to do.
    fn spread(
        &self,
        out: &mut [f32],
        x: &[f32],
        width: usize,
        work: impl Fn(&mut [f32], usize, &[f32]) + Sync,
    ) {
        if x.len() <= PARALLEL_VALUES {
            return work(out, 0, x);
        }
        let block = (PARALLEL_VALUES / 4).next_multiple_of(width);
        self.pool.install(|| {
            let stretches = out
                .par_chunks_mut(block)
                .zip(x.par_chunks(block))
                .enumerate();
            stretches.for_each(|(i, (out, x))| work(out, i * block, x));
        });
    }

    fn product(
        &self,
        a: Rows,
        w: &Weight,
        bias: Option<&Tensor>,
        activation: Activation,
        c: &mut [f32],
    ) {
        let epilogue = Epilogue {
            bias: bias.map(|bias| &bias.values[..]),
            activation,
        };
        if let Some(bias) = epilogue.bias {
            assert_eq!(bias.len(), w.rows(), "values of a bias");
        }
        self.pool.install(|| {
            if a.rows <= matvec::MAX_ROWS {
                let mut turned = self.buffers.take(c.len());
                matvec::matvec(self.isa, a, w, epilogue, &mut turned, c);
            } else {
                gemm::gemm(self.isa, a, w, epilogue, &self.buffers, c);
            }
        });
    }
}

impl Backend for Cpu {
    type Tensor = Tensor;
    type Matrix = Weight;
    type KvCache = KvCache;

    fn device(&self) -> &'static str {
        "cpu"
    }

    fn upload(&self, shape: &[usize], values: &[f32]) -> Result<Tensor, Error> {
        assert_eq!(
            values.len(),
            shape.iter().product::<usize>(),
            "values of a {shape:?} tensor"
        );
        let mut x = self.tensor(shape.to_vec());
        x.values.copy_from_slice(values);
        Ok(x)
    }

    fn download(&self, x: &Tensor) -> Result<Vec<f32>, Error> {
        Ok(x.values.to_vec())
    }

    fn matrix(&self, weight: Weight) -> Result<Weight, Error> {
        Ok(weight)
    }

    fn embed(&self, table: &Weight, ids: &[u32], batch: usize) -> Result<Tensor, Error> {
        let mut y = self.tensor(vec![batch, ids.len() / batch, table.cols()]);
        for (row, &id) in y.values.chunks_exact_mut(table.cols()).zip(ids) {
            table.row(id as usize).widen(row);
        }
        Ok(y)
    }

    fn add(&self, x: &Tensor, y: &Tensor) -> Result<Tensor, Error> {
        assert_repeats(&x.shape, &y.shape);
        let mut sum = self.tensor(x.shape.clone());
        let y = &y.values[..];
        for (sum, x) in sum
            .values
            .chunks_exact_mut(y.len())
            .zip(x.values.chunks_exact(y.len()))
        {
            self.spread(sum, x, 1, |sum, from, x| {
                for ((sum, x), y) in sum.iter_mut().zip(x).zip(&y[from..]) {
                    *sum = x + y;
                }
            });
        }
        Ok(sum)
    }

    fn linear(
        &self,
        x: &Tensor,
        w: &Weight,
        bias: Option<&Tensor>,
        activation: Activation,
    ) -> Result<Tensor, Error> {
        let mut y = self.like(x, w.rows());
        self.product(x.rows(), w, bias, activation, &mut y.values);
        Ok(y)
    }

    fn conv1d(
        &self,
        x: &Tensor,
        w: &Weight,
        bias: Option<&Tensor>,
        conv: Conv,
        activation: Activation,
    ) -> Result<Tensor, Error> {
        let [batch, length, channels] = x.sequences();
        assert_eq!(channels * conv.kernel, w.cols(), "inputs of a convolution");
        let rows = conv.out_length(length);
        let mut y = self.tensor(vec![batch, rows, w.rows()]);
        // With the channels innermost, what lies under the kernel is one stretch of the padded input: the patches are
        // rows that overlap, and need no copy.
        let edge = conv.padding * channels;
        let mut padded = self.buffers.take(length * channels + 2 * edge);
        for (b, y) in y.values.chunks_exact_mut(rows * w.rows()).enumerate() {
            padded[..edge].fill(0.0);
            padded[edge..edge + length * channels]
                .copy_from_slice(&x.values[b * length * channels..][..length * channels]);
            padded[edge + length * channels..].fill(0.0);
            let a = Rows {
                values: &padded,
                rows,
                width: w.cols(),
                stride: conv.stride * channels,
            };
            self.product(a, w, bias, activation, y);
        }
        Ok(y)
    }

    fn layer_norm(
        &self,
        x: &Tensor,
        gain: &Tensor,
        bias: &Tensor,
        eps: f32,
    ) -> Result<Tensor, Error> {
        let width = x.width();
        assert_eq!(
            (gain.values.len(), bias.values.len()),
            (width, width),
            "width of a norm"
        );
        let mut y = self.tensor(x.shape.clone());
        self.spread(&mut y.values, &x.values, width, |y, _, x| {
            self.isa.run(norm::LayerNorm {
                x,
                gain: &gain.values,
                bias: &bias.values,
                eps,
                y,
            });
        });
        Ok(y)
    }

    fn positions(&self, x: &Tensor, from: usize, to: usize) -> Result<Tensor, Error> {
        let [batch, length, width] = x.sequences();
        let mut y = self.tensor(vec![batch, to - from, width]);
        for (y, x) in y
            .values
            .chunks_exact_mut((to - from) * width)
            .zip(x.values.chunks_exact(length * width))
        {
            y.copy_from_slice(&x[from * width..to * width]);
        }
        Ok(y)
    }

    fn kv_cache(&self, batch: usize, capacity: usize, width: usize) -> Result<KvCache, Error> {
        // Positions that were never written are never read.
        let room = batch * capacity * width;
        Ok(KvCache {
            batch,
            capacity,
            width,
            len: 0,
            keys: self.buffers.take(room),
            values: self.buffers.take(room),
        })
    }

    fn kv_append(&self, cache: &mut KvCache, k: &Tensor, v: &Tensor) -> Result<(), Error> {
        let [batch, new, width] = k.sequences();
        assert_eq!(
            (batch, width),
            (cache.batch, cache.width),
            "sequences of a cache"
        );
        assert!(
            cache.len + new <= cache.capacity,
            "{} + {new} positions in a cache of {}",
            cache.len,
            cache.capacity
        );
        for b in 0..batch {
            let from = (b * cache.capacity + cache.len) * width;
            let rows = b * new * width..(b + 1) * new * width;
            cache.keys[from..from + new * width].copy_from_slice(&k.values[rows.clone()]);
            cache.values[from..from + new * width].copy_from_slice(&v.values[rows]);
        }
        cache.len += new;
        Ok(())
    }

    fn kv_truncate(&self, cache: &mut KvCache, len: usize) {
        cache.len = cache.len.min(len);
    }

    fn attention(
        &self,
        q: &Tensor,
        cache: &KvCache,
        n_head: usize,
        mask: AttentionMask,
    ) -> Result<Tensor, Error> {
        let [batch, new, width] = q.sequences();
        assert_eq!(width, cache.width, "width of queries and keys");
        assert!(
            cache.batch == batch || cache.batch == 1,
            "{batch} sequences against {} cached",
            cache.batch
        );
        let mut y = self.tensor(q.shape.clone());
        let attention = Attention {
            isa: self.isa,
            buffers: &self.buffers,
            n_head,
            width,
            mask,
        };
        self.pool.install(|| {
            y.values
                .par_chunks_mut(new * width)
                .zip(q.values.par_chunks(new * width))
                .enumerate()
                .for_each(|(b, (y, q))| {
                    let sequence = if cache.batch == 1 { 0 } else { b };
                    let rows = sequence * cache.capacity * width
                        ..(sequence * cache.capacity + cache.len) * width;
                    attention.run(
                        q,
                        KeysValues {
                            keys: &cache.keys[rows.clone()],
                            values: &cache.values[rows],
                        },
                        y,
                    );
                });
        });
        Ok(y)
    }

    fn rms_norm(&self, x: &Tensor, gain: &Tensor, eps: f32) -> Result<Tensor, Error> {
        Ok(ops::rms_norm(self, x, gain, eps))
    }

    fn l2_normalize(&self, x: &Tensor) -> Result<Tensor, Error> {
        Ok(ops::l2_normalize(self, x))
    }

    fn rope(&self, x: &Tensor, rope: &Rope<Tensor>, offsets: &[usize]) -> Result<Tensor, Error> {
        Ok(ops::rope(self, x, rope, offsets))
    }

    fn gated(&self, gate: &Tensor, up: &Tensor, activation: Activation) -> Result<Tensor, Error> {
        Ok(ops::gated(self, gate, up, activation))
    }

    fn multiply(&self, x: &Tensor, y: &Tensor) -> Result<Tensor, Error> {
        Ok(ops::multiply(self, x, y))
    }

    fn scale(&self, x: &Tensor, factor: f32) -> Result<Tensor, Error> {
        Ok(ops::scale(self, x, factor))
    }

    fn soft_cap(&self, x: &Tensor, cap: f32) -> Result<Tensor, Error> {
        Ok(ops::soft_cap(self, x, cap))
    }

    fn pool(&self, x: &Tensor, spans: &[Range<usize>], pool: Pool) -> Result<Tensor, Error> {
        Ok(ops::pool(self, x, spans, pool))
    }

    fn softmax(&self, x: &Tensor) -> Result<Tensor, Error> {
        Ok(ops::softmax(self, x))
    }

    fn log_sum_exp(&self, x: &Tensor) -> Result<Vec<f64>, Error> {
        Ok(ops::per_row(self, x, |row| {
            logits::log_sum_exp(self.isa, row)
        }))
    }

    fn argmax(&self, x: &Tensor) -> Result<Vec<u32>, Error> {
        Ok(ops::per_row(self, x, |row| logits::argmax(self.isa, row)))
    }

    fn top_k(&self, x: &Tensor, k: usize) -> Result<Vec<Ranked>, Error> {
        let rows = ops::per_row(self, x, |row| logits::top_k(self.isa, row, k));
        Ok(rows.concat())
    }
}
