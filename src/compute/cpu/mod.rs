//! The CPU: kernels in explicit vectors, written once for all instruction sets, spread over threads.
//!
//! Results do not depend on the number of threads: tasks own whole outputs, and every sum runs in one order.

#![allow(
    clippy::needless_range_loop,
    reason = "kernels count: what iterators do inside is not always inlined, and then lacks the instruction set"
)]

mod activation;
mod attention;
mod buffers;
mod isa;
mod kv;
mod lanewise;
mod logits;
mod norm;
mod operand;
mod ops;
mod panels;
mod pool;
mod probe;
mod product;
mod rms;
mod rope;
mod threads;
mod vecmath;

use std::ops::Range;
use std::sync::OnceLock;

use bytes::Bytes;

use self::buffers::{Buffer, Buffers};
pub use self::isa::Isa;
pub use self::kv::KvCache;
use self::operand::{Operand, Rows};
pub use self::panels::Matrix;
pub use self::probe::Peaks;
use self::product::{Epilogue, product};
use self::threads::Threads;
use super::{
    Activation, Attention, Backend, Conv, Error, Format, Fused, KvShape, Pool, Ranked, Rope, Weight,
};

/// Values that are worth spreading over threads in an operation which only moves them.
const PARALLEL_VALUES: usize = 64 * 1024;

/// This machine's processor.
pub struct Cpu {
    isa: Isa,
    threads: Threads,
    buffers: Buffers,
}

/// Values in memory, row-major.
pub struct Tensor {
    shape: Vec<usize>,
    values: Buffer,
    /// The rows as products of one format read them, once one has.
    operand: OnceLock<Operand>,
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
    /// A backend that runs `isa` on `threads` threads, of which the caller's is one.
    ///
    /// # Errors
    /// [`Error::Threads`] when the threads cannot be started.
    pub fn new(isa: Isa, threads: usize) -> Result<Self, Error> {
        Ok(Self {
            isa,
            threads: Threads::new(threads)?,
            buffers: Buffers::default(),
        })
    }

    fn tensor(&self, shape: Vec<usize>) -> Tensor {
        let values = self.buffers.take(shape.iter().product());
        Tensor {
            shape,
            values,
            operand: OnceLock::new(),
        }
    }

    fn like(&self, x: &Tensor, width: usize) -> Tensor {
        let mut shape = x.shape.clone();
        if let Some(last) = shape.last_mut() {
            *last = width;
        }
        self.tensor(shape)
    }

    fn operand(&self, a: Rows, format: Format) -> Operand {
        Operand::new(self.isa, &self.threads, &self.buffers, a, format)
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
        self.threads.chunks(out, block, |i, out| {
            let from = i * block;
            work(out, from, &x[from..from + out.len()]);
        });
    }

    fn product(&self, a: &Operand, w: &Matrix, fused: Fused<'_, Tensor>, c: &mut [f32]) {
        let epilogue = Epilogue {
            bias: fused.bias.map(|bias| &bias.values[..]),
            activation: fused.activation,
            residual: fused.residual.map(|residual| &residual.values[..]),
        };
        if let Some(bias) = epilogue.bias {
            assert_eq!(bias.len(), w.rows(), "values of a bias");
        }
        if let Some(residual) = epilogue.residual {
            assert_eq!(residual.len(), c.len(), "values of a residual");
        }
        product(self.isa, &self.threads, a, w, epilogue, c);
    }
}

impl Backend for Cpu {
    type Tensor = Tensor;
    type Matrix = Matrix;
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

    fn matrix(&self, weight: &Weight, format: Format) -> Result<Matrix, Error> {
        Ok(Matrix::pack(self.isa, &self.threads, weight, format))
    }

    fn layout(&self) -> Option<String> {
        Some(format!("cpu-{}-{}", self.isa.name(), panels::VERSION))
    }

    fn matrix_bytes<'a>(&self, matrix: &'a Matrix) -> Option<&'a Bytes> {
        Some(matrix.bytes())
    }

    fn matrix_from_bytes(
        &self,
        rows: usize,
        cols: usize,
        format: Format,
        bytes: Bytes,
    ) -> Result<Matrix, Error> {
        Matrix::packed(self.isa, rows, cols, format, bytes)
    }

    fn embed(&self, table: &Matrix, ids: &[u32], batch: usize) -> Result<Tensor, Error> {
        let mut y = self.tensor(vec![batch, ids.len() / batch, table.cols()]);
        for (row, &id) in y.values.chunks_exact_mut(table.cols()).zip(ids) {
            table.widen_row(self.isa, id as usize, row);
        }
        Ok(y)
    }

    fn add(&self, x: &Tensor, y: &Tensor) -> Result<Tensor, Error> {
        Ok(ops::add(self, x, y))
    }

    fn linear(&self, x: &Tensor, w: &Matrix, fused: Fused<'_, Tensor>) -> Result<Tensor, Error> {
        let mut y = self.like(x, w.rows());
        let shared = x.operand.get_or_init(|| self.operand(x.rows(), w.format()));
        if shared.format == w.format() {
            self.product(shared, w, fused, &mut y.values);
        } else {
            self.product(&self.operand(x.rows(), w.format()), w, fused, &mut y.values);
        }
        Ok(y)
    }

    fn conv1d(
        &self,
        x: &Tensor,
        w: &Matrix,
        conv: Conv,
        fused: Fused<'_, Tensor>,
    ) -> Result<Tensor, Error> {
        let [batch, length, channels] = x.sequences();
        assert_eq!(channels * conv.kernel, w.cols(), "inputs of a convolution");
        let rows = conv.out_length(length);
        assert!(
            fused.residual.is_none() || batch == 1,
            "a convolution of one sequence where something is added"
        );
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
            self.product(&self.operand(a, w.format()), w, fused, y);
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

    fn kv_cache(&self, shape: KvShape) -> Result<KvCache, Error> {
        Ok(KvCache::new(&self.buffers, shape))
    }

    fn kv_append(&self, cache: &mut KvCache, k: &Tensor, v: &Tensor) -> Result<(), Error> {
        for x in [k, v] {
            let [batch, _, width] = x.sequences();
            let cached = cache.shape.n_kv_head * cache.shape.head_dim;
            assert_eq!(
                (batch, width),
                (cache.shape.batch, cached),
                "sequences of a cache"
            );
        }
        cache.append(self.isa, &k.values, &v.values);
        Ok(())
    }

    fn kv_truncate(&self, cache: &mut KvCache, len: usize) {
        cache.truncate(len);
    }

    fn attention(
        &self,
        q: &Tensor,
        cache: &KvCache,
        attention: Attention,
    ) -> Result<Tensor, Error> {
        let [batch, new, width] = q.sequences();
        let KvShape {
            batch: cached,
            n_kv_head,
            head_dim,
            ..
        } = cache.shape;
        assert_eq!(width, attention.n_head * head_dim, "width of the queries");
        assert!(
            attention.n_head.is_multiple_of(n_kv_head),
            "{} heads of queries share {n_kv_head}",
            attention.n_head
        );
        assert!(
            cached == batch || cached == 1,
            "{batch} sequences against {cached} cached"
        );
        assert!(new <= cache.len, "{new} queries, {} positions", cache.len);
        let mut y = self.tensor(q.shape.clone());
        let task = attention::Task {
            isa: self.isa,
            threads: &self.threads,
            buffers: &self.buffers,
            attention,
            cache,
            q: &q.values,
            batch,
            new,
        };
        task.run(&mut y.values);
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
