//! The operations that models are written in.

use bytes::Bytes;

use super::weight::{Format, Weight};

/// What follows a linear layer or a convolution, fused into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activation {
    /// Nothing.
    Identity,
    /// `x · Φ(x)` with the exact Gaussian distribution function, `(1 + erf(x / √2)) / 2`; not its tanh approximation.
    GeluErf,
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
    /// bfloat16; where there are many queries, they and the weights of the mixture are rounded to it too.
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
}
