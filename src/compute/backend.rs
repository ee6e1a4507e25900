//! The operations that models are written in.

use std::ops::Range;

use bytes::Bytes;

use super::weight::{Format, Weight};

/// What follows a linear layer or a convolution, fused into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activation {
    /// Nothing.
    Identity,
    /// `x · Φ(x)` with the exact Gaussian distribution function, `(1 + erf(x / √2)) / 2`; not its tanh approximation.
    GeluErf,
    /// `x · (1 + tanh(√(2/π) · (x + 0.044715·x³))) / 2`, the tanh approximation of the one above: `gelu_pytorch_tanh`.
    GeluTanh,
    /// `x · σ(x)` with the logistic `σ(x) = 1 / (1 + e^(−x))`, also called swish.
    Silu,
    /// `max(x, 0)`.
    Relu,
    /// The hyperbolic tangent.
    Tanh,
}

/// Which values of a head a rotary position embedding turns against one another, among the first `rotary`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RopePairing {
    /// Value i and value i + `rotary` / 2, as transformers' `rotate_half` does.
    Halves,
    /// Value 2i and value 2i + 1, as the paper does, and Moonshine.
    Interleaved,
}

/// A rotary position embedding: by what angles, and what they turn.
///
/// How frequencies are scaled for long contexts is the business of who fills the tables; one that also scales the turned
/// values, as yarn does, multiplies both tables.
#[derive(Clone, Debug)]
pub struct Rope<T> {
    /// Cosines of pair i's angle at each position, `[positions, rotary / 2]`.
    pub cos: T,
    /// Their sines, of the same shape.
    pub sin: T,
    /// Which values are pairs.
    pub pairing: RopePairing,
    /// Values of a head: the first `rotary` are turned, the others pass.
    pub head_dim: usize,
}

/// How the positions of a sequence become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pool {
    /// Their mean. That of one position is the position itself: the first or the last token.
    Mean,
    /// The highest value of each column, and NaN where there is one.
    Max,
}

/// A value of a row and where it stood.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ranked {
    /// Its place in the row.
    pub id: u32,
    /// The value.
    pub value: f32,
}

/// Which keys a query sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttentionMask {
    /// All of them.
    Full,
    /// Those up to its own position, the queries being the last ones appended to the cache.
    Causal,
    /// The last so many up to its own position.
    Window(usize),
}

/// How queries look at keys.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Attention {
    /// Heads of the queries, a multiple of those of keys and values: neighbours share one.
    pub n_head: usize,
    /// Keys that a query sees.
    pub mask: AttentionMask,
    /// Factor of the scores, most often `1 / √head_dim`.
    pub scale: f32,
}

/// What a cache of keys and values keeps them in, and with it how they are multiplied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KvFormat {
    /// f32.
    F32,
    /// IEEE halves; products in f32.
    F16,
    /// bfloat16; where there are many queries, they and the weights of the mixture may be rounded to it too.
    Bf16,
    /// int8 with a scale for each position and head; as [`KvFormat::Bf16`] where there are many queries.
    Q8,
}

/// The extents of a cache of keys and values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KvShape {
    /// Sequences.
    pub batch: usize,
    /// Positions that a sequence has room for.
    pub capacity: usize,
    /// Heads of keys and values.
    pub n_kv_head: usize,
    /// Values of a key, and of a value.
    pub head_dim: usize,
    /// What they are kept in.
    pub format: KvFormat,
}

/// What a linear layer does besides multiplying: `activation(x · wᵀ + bias) + residual`.
#[derive(Debug)]
pub struct Fused<'a, T> {
    /// `[out]`.
    pub bias: Option<&'a T>,
    /// Applied to the sum.
    pub activation: Activation,
    /// Of the shape of the result.
    pub residual: Option<&'a T>,
}

impl<T> Clone for Fused<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Fused<'_, T> {}

impl<T> Default for Fused<'_, T> {
    fn default() -> Self {
        Self {
            bias: None,
            activation: Activation::Identity,
            residual: None,
        }
    }
}

/// A one-dimensional convolution over `[batch, length, channels]`, zero-padded on both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conv {
    /// Positions under the kernel.
    pub kernel: usize,
    /// Positions from one output to the next.
    pub stride: usize,
    /// Zero positions added at each end.
    pub padding: usize,
}

impl Conv {
    /// Output positions for `length` input positions.
    pub fn out_length(self, length: usize) -> usize {
        (length + 2 * self.padding)
            .checked_sub(self.kernel)
            .map_or(0, |span| span / self.stride + 1)
    }
}

/// Why a backend could not do its work.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A weight's bytes do not hold the values that its shape and format promise.
    #[error("weight of {rows} x {cols} needs {expected} bytes as {format}, found {found}")]
    WeightSize {
        /// Output features.
        rows: usize,
        /// Input features.
        cols: usize,
        /// Name of the format.
        format: &'static str,
        /// Bytes that the shape asks for.
        expected: usize,
        /// Bytes there are.
        found: usize,
    },
    /// `PRETRAINED_ISA` names an instruction set that this processor or build lacks.
    #[error("PRETRAINED_ISA names `{name}`, which is not to be had here; there is {available}")]
    UnknownIsa {
        /// The name asked for.
        name: String,
        /// Names that would work, separated by commas.
        available: String,
    },
    /// The operating system refused to start the worker threads.
    #[error("cannot start {threads} worker threads: {source}")]
    Threads {
        /// How many were asked for.
        threads: usize,
        /// The reason.
        source: std::io::Error,
    },
}

/// A processor that runs models.
///
/// Activations are f32 and row-major, `[…, width]`; weights keep the format they were stored in. A shape that does not
/// fit is a mistake of the model's code and panics: shapes read from files are checked when the weights are loaded.
pub trait Backend: Send + Sync {
    /// Activations.
    type Tensor: Send + Sync;
    /// A weight matrix, ready for this backend's kernels.
    type Matrix: Send + Sync;
    /// Keys and values of one attention layer.
    type KvCache: Send + Sync;

    /// What runs, in the words of the command line: `cpu`, …
    fn device(&self) -> &'static str;

    /// Copies `values` in as a tensor of `shape`.
    ///
    /// # Errors
    /// Out of device memory.
    fn upload(&self, shape: &[usize], values: &[f32]) -> Result<Self::Tensor, Error>;

    /// Copies a tensor's values out.
    ///
    /// # Errors
    /// The device was lost.
    fn download(&self, x: &Self::Tensor) -> Result<Vec<f32>, Error>;

    /// Prepares a weight `[out, in]` to be multiplied in `format`.
    ///
    /// # Errors
    /// Out of device memory.
    fn matrix(&self, weight: &Weight, format: Format) -> Result<Self::Matrix, Error>;

    /// The name of the layout that this backend prepares weights in, if prepared weights can be kept as bytes: equal names
    /// mean that each can use the other's.
    fn layout(&self) -> Option<String>;

    /// The bytes of a prepared weight.
    fn matrix_bytes<'a>(&self, matrix: &'a Self::Matrix) -> Option<&'a Bytes>;

    /// A weight that a backend of the same layout has prepared, where its bytes lie.
    ///
    /// # Errors
    /// The bytes are not as many as shape and format ask for, or not aligned for words of 32 bits.
    fn matrix_from_bytes(
        &self,
        rows: usize,
        cols: usize,
        format: Format,
        bytes: Bytes,
    ) -> Result<Self::Matrix, Error>;

    /// Rows `ids` of `table` `[vocab, width]`: `[batch, ids / batch, width]`.
    ///
    /// # Errors
    /// The device was lost.
    fn embed(&self, table: &Self::Matrix, ids: &[u32], batch: usize)
    -> Result<Self::Tensor, Error>;

    /// `x + y`, with `y` repeated over the leading axes that it lacks or has once.
    ///
    /// # Errors
    /// The device was lost.
    fn add(&self, x: &Self::Tensor, y: &Self::Tensor) -> Result<Self::Tensor, Error>;

    /// `activation(x · wᵀ + bias) + residual`: `x` `[…, in]`, `w` `[out, in]`, result `[…, out]`.
    ///
    /// # Errors
    /// The device was lost.
    fn linear(
        &self,
        x: &Self::Tensor,
        w: &Self::Matrix,
        fused: Fused<'_, Self::Tensor>,
    ) -> Result<Self::Tensor, Error>;

    /// Convolution over positions: `x` `[batch, length, in]`, `w` `[out, kernel · in]` with the kernel position outermost,
    /// result `[batch, out_length, out]`.
    ///
    /// # Errors
    /// The device was lost.
    fn conv1d(
        &self,
        x: &Self::Tensor,
        w: &Self::Matrix,
        conv: Conv,
        fused: Fused<'_, Self::Tensor>,
    ) -> Result<Self::Tensor, Error>;

    /// `(x − mean) / √(variance + eps) · gain + bias` over the last axis; `gain` and `bias` `[width]`.
    ///
    /// # Errors
    /// The device was lost.
    fn layer_norm(
        &self,
        x: &Self::Tensor,
        gain: &Self::Tensor,
        bias: &Self::Tensor,
        eps: f32,
    ) -> Result<Self::Tensor, Error>;

    /// Positions `from..to` of every sequence: `[batch, length, width]` to `[batch, to − from, width]`.
    ///
    /// # Errors
    /// The device was lost.
    fn positions(&self, x: &Self::Tensor, from: usize, to: usize) -> Result<Self::Tensor, Error>;

    /// An empty cache.
    ///
    /// # Errors
    /// Out of device memory.
    fn kv_cache(&self, shape: KvShape) -> Result<Self::KvCache, Error>;

    /// Appends `k` and `v` `[batch, new, n_kv_head · head_dim]` to a cache.
    ///
    /// # Errors
    /// The device was lost.
    fn kv_append(
        &self,
        cache: &mut Self::KvCache,
        k: &Self::Tensor,
        v: &Self::Tensor,
    ) -> Result<(), Error>;

    /// Forgets all but the first `len` positions of a cache.
    fn kv_truncate(&self, cache: &mut Self::KvCache, len: usize);

    /// `softmax(scale · q · kᵀ) · v` for each head: `q` `[batch, new, n_head · head_dim]`, the heads side by side, gives the
    /// same shape. A cache of one sequence serves every sequence of `q`.
    ///
    /// # Errors
    /// The device was lost.
    fn attention(
        &self,
        q: &Self::Tensor,
        cache: &Self::KvCache,
        attention: Attention,
    ) -> Result<Self::Tensor, Error>;

    /// `x / √(mean(x²) + eps) · gain` over stretches of `gain.len()` values of the last axis, which their number divides: a
    /// `gain` `[width]` normalises rows, one of `[head_dim]` every head of rows of `n_head · head_dim`.
    ///
    /// NaN makes its whole stretch NaN; beside ∞, which becomes NaN, a stretch is 0.
    ///
    /// # Errors
    /// The device was lost.
    fn rms_norm(
        &self,
        x: &Self::Tensor,
        gain: &Self::Tensor,
        eps: f32,
    ) -> Result<Self::Tensor, Error>;

    /// `x / max(√Σx², 10⁻¹²)` over the last axis, with NaN and ∞ as in [`Backend::rms_norm`].
    ///
    /// # Errors
    /// The device was lost.
    fn l2_normalize(&self, x: &Self::Tensor) -> Result<Self::Tensor, Error>;

    /// Turns each pair `(a, b)` of every head of `x` `[batch, length, n_head · head_dim]` to
    /// `(a·cos − b·sin, b·cos + a·sin)`, by the angle of its position: sequence i begins at position `offsets[i]`.
    ///
    /// # Errors
    /// The device was lost.
    fn rope(
        &self,
        x: &Self::Tensor,
        rope: &Rope<Self::Tensor>,
        offsets: &[usize],
    ) -> Result<Self::Tensor, Error>;

    /// `activation(gate) · up`, value by value, for two tensors of one shape.
    ///
    /// # Errors
    /// The device was lost.
    fn gated(
        &self,
        gate: &Self::Tensor,
        up: &Self::Tensor,
        activation: Activation,
    ) -> Result<Self::Tensor, Error>;

    /// `x · y`, value by value, with `y` repeated as in [`Backend::add`].
    ///
    /// # Errors
    /// The device was lost.
    fn multiply(&self, x: &Self::Tensor, y: &Self::Tensor) -> Result<Self::Tensor, Error>;

    /// `x · factor`.
    ///
    /// # Errors
    /// The device was lost.
    fn scale(&self, x: &Self::Tensor, factor: f32) -> Result<Self::Tensor, Error>;

    /// `cap · tanh(x / cap)`, which keeps values within ±`cap`.
    ///
    /// # Errors
    /// The device was lost.
    fn soft_cap(&self, x: &Self::Tensor, cap: f32) -> Result<Self::Tensor, Error>;

    /// Positions `spans[i]` of sequence i become one: `[batch, length, width]` to `[batch, width]`. No positions give zeros.
    ///
    /// # Errors
    /// The device was lost.
    fn pool(
        &self,
        x: &Self::Tensor,
        spans: &[Range<usize>],
        pool: Pool,
    ) -> Result<Self::Tensor, Error>;

    /// `eˣ / Σ eˣ` over the last axis.
    ///
    /// A row with NaN or ∞, or of nothing but −∞, is NaN throughout.
    ///
    /// # Errors
    /// The device was lost.
    fn softmax(&self, x: &Self::Tensor) -> Result<Self::Tensor, Error>;

    /// `ln Σ eˣ` of each row of the last axis: what a value of the row lacks to be a log-probability.
    ///
    /// That of a row with NaN is NaN, of one with ∞ is ∞, of nothing but −∞ is −∞.
    ///
    /// # Errors
    /// The device was lost.
    fn log_sum_exp(&self, x: &Self::Tensor) -> Result<Vec<f64>, Error>;

    /// The place of the highest value of each row of the last axis, the first where several are equal.
    ///
    /// NaN is below all other values.
    ///
    /// # Errors
    /// The device was lost.
    fn argmax(&self, x: &Self::Tensor) -> Result<Vec<u32>, Error>;

    /// The `k` highest values of each row of the last axis, or all that there are: the highest first, equal ones by their
    /// place, row after row.
    ///
    /// NaN is below all other values.
    ///
    /// # Errors
    /// The device was lost.
    fn top_k(&self, x: &Self::Tensor, k: usize) -> Result<Vec<Ranked>, Error>;
}
