//! What every operation means: plain loops over slices, written to be read.
//!
//! Sums are in f64. Every other backend is held against this one; it is held against the original libraries by goldens.

mod rows;

use std::ops::Range;

use bytes::Bytes;
use half::{bf16, f16};

pub use self::rows::{
    argmax, l2_normalize, log_sum_exp, pool, rms_norm, rope_head, softmax, top_k,
};
use super::quant::{GROUP, RowRoom};
use super::{
    Activation, Attention, AttentionMask, Backend, Conv, Error, Format, Fused, KvFormat, KvShape,
    Pool, Ranked, Rope, Weight,
};

/// The largest int8 code of activations; the scale of codes is the largest magnitude over it.
pub(super) const MAX_CODE: f32 = 127.0;
/// Activations that are all smaller count as zeros when they become int8: `127 / max |x|` stays finite.
pub(super) const SMALLEST_QUANTISED: f32 = 1e-35;

/// Φ's odd relative: `2/√π · ∫₀ˣ e^(−t²) dt`.
pub fn erf(x: f64) -> f64 {
    libm::erf(x)
}

/// Applies an activation to one value.
pub fn activate(activation: Activation, x: f64) -> f64 {
    match activation {
        Activation::Identity => x,
        Activation::GeluErf => 0.5 * x * (1.0 + erf(x * std::f64::consts::FRAC_1_SQRT_2)),
        Activation::GeluTanh => {
            let u = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x.powi(3));
            0.5 * x * (1.0 + u.tanh())
        }
        Activation::Silu => x / (1.0 + (-x).exp()),
        Activation::Relu if x.is_nan() => x,
        Activation::Relu => x.max(0.0),
        Activation::Tanh => x.tanh(),
    }
}

/// A row of activations as a product in `format` sees it.
pub fn as_multiplied(row: &[f32], format: Format) -> Vec<f64> {
    match format {
        Format::F32 => row.iter().map(|&x| f64::from(x)).collect(),
        Format::Bf16 => row.iter().map(|&x| bf16::from_f32(x).to_f64()).collect(),
        Format::Q8 => as_codes(row),
        Format::Q8Group | Format::Q4Group => row.chunks(GROUP).flat_map(as_codes).collect(),
    }
}

/// `round(x · 127 / max |x|) · max |x| / 127`, ties to even; NaN if a value is not finite.
fn as_codes(values: &[f32]) -> Vec<f64> {
    let largest = values
        .iter()
        .fold(0.0f32, |largest, x| largest.max(x.abs()));
    if !values.iter().all(|x| x.is_finite()) {
        return vec![f64::NAN; values.len()];
    }
    if largest < SMALLEST_QUANTISED {
        return vec![0.0; values.len()];
    }
    let (per_step, scale) = (MAX_CODE / largest, largest / MAX_CODE);
    values
        .iter()
        .map(|x| f64::from((x * per_step).round_ties_even()) * f64::from(scale))
        .collect()
}

/// `activation(x · wᵀ + bias) + residual`: `x` `[m, k]`, `w` `[n, k]`, `bias` `[n]`, `residual` and result `[m, n]`.
pub fn linear(x: &[f32], w: &Matrix, fused: Fused<'_, Tensor>) -> Vec<f32> {
    let mut y = Vec::with_capacity(x.len() / w.cols.max(1) * w.rows);
    for row in x.chunks_exact(w.cols) {
        let row = as_multiplied(row, w.format);
        for (j, weights) in w.values.chunks_exact(w.cols).enumerate() {
            let mut sum = fused.bias.map_or(0.0, |bias| f64::from(bias.values[j]));
            for (&x, &w) in row.iter().zip(weights) {
                sum += x * f64::from(w);
            }
            let residual = fused.residual.map_or(0.0, |r| f64::from(r.values[y.len()]));
            y.push((activate(fused.activation, sum) + residual) as f32);
        }
    }
    y
}

/// The patches that a convolution's kernel lies over: `x` `[length, channels]` gives `[out_length, kernel · channels]`.
pub fn patches(x: &[f32], channels: usize, conv: Conv) -> Vec<f32> {
    let length = x.len() / channels;
    let mut rows = Vec::new();
    for out in 0..conv.out_length(length) {
        for tap in 0..conv.kernel {
            match (out * conv.stride + tap).checked_sub(conv.padding) {
                Some(at) if at < length => {
                    rows.extend_from_slice(&x[at * channels..(at + 1) * channels]);
                }
                _ => rows.extend(std::iter::repeat_n(0.0, channels)),
            }
        }
    }
    rows
}

/// `(x − mean) / √(variance + eps) · gain + bias` for each row of `width` values.
pub fn layer_norm(x: &[f32], gain: &[f32], bias: &[f32], eps: f32) -> Vec<f32> {
    let width = gain.len();
    let mut y = Vec::with_capacity(x.len());
    for row in x.chunks_exact(width) {
        let mean = row.iter().map(|&x| f64::from(x)).sum::<f64>() / width as f64;
        let variance = row
            .iter()
            .map(|&x| (f64::from(x) - mean).powi(2))
            .sum::<f64>()
            / width as f64;
        let scale = 1.0 / (variance + f64::from(eps)).sqrt();
        for ((&x, &gain), &bias) in row.iter().zip(gain).zip(bias) {
            y.push(((f64::from(x) - mean) * scale * f64::from(gain) + f64::from(bias)) as f32);
        }
    }
    y
}

/// One head: `softmax(scale · q · kᵀ) · v` with `q` `[new, head_dim]`, `k` and `v` `[len, head_dim]`.
pub fn attention_head(
    q: &[f32],
    k: &[f32],
    v: &[f32],
    head_dim: usize,
    mask: AttentionMask,
    scale: f32,
) -> Vec<f32> {
    let (new, len) = (q.len() / head_dim, k.len() / head_dim);
    let mut out = Vec::with_capacity(q.len());
    for (i, q) in q.chunks_exact(head_dim).enumerate() {
        let own = len - new + i;
        let visible = match mask {
            AttentionMask::Full => 0..len,
            AttentionMask::Causal => 0..own + 1,
            AttentionMask::Window(size) => (own + 1).saturating_sub(size)..own + 1,
        };
        let keys = k
            .chunks_exact(head_dim)
            .take(visible.end)
            .skip(visible.start);
        let values = || v.chunks_exact(head_dim).skip(visible.start);
        let scores: Vec<f64> = keys
            .map(|k| {
                let products = q.iter().zip(k).map(|(&q, &k)| f64::from(q) * f64::from(k));
                products.sum::<f64>() * f64::from(scale)
            })
            .collect();
        let highest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let weights: Vec<f64> = scores.iter().map(|score| (score - highest).exp()).collect();
        let total: f64 = weights.iter().sum();
        for d in 0..head_dim {
            let sum: f64 = weights
                .iter()
                .zip(values())
                .map(|(w, v)| w * f64::from(v[d]))
                .sum();
            out.push((sum / total) as f32);
        }
    }
    out
}

/// A key or a value as a cache of `format` gives it back.
pub fn as_kept(row: &[f32], format: KvFormat) -> Vec<f32> {
    match format {
        KvFormat::F32 => row.to_vec(),
        KvFormat::F16 => row.iter().map(|&x| f16::from_f32(x).to_f32()).collect(),
        KvFormat::Bf16 => row.iter().map(|&x| bf16::from_f32(x).to_f32()).collect(),
        KvFormat::Q8 => as_codes(row).into_iter().map(|x| x as f32).collect(),
    }
}

/// Panics unless a tensor of shape `y` can be repeated over one of shape `x`.
pub(super) fn assert_repeats(x: &[usize], y: &[usize]) {
    let ones = y.iter().take_while(|&&extent| extent == 1).count();
    assert!(
        x.len() >= y.len() && x.ends_with(&y[ones..]),
        "{y:?} cannot be repeated over {x:?}"
    );
}

/// The backend of the plain loops.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reference;

/// Values in memory, row-major.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    shape: Vec<usize>,
    values: Vec<f32>,
}

/// A weight's values, and what it is multiplied in.
#[derive(Clone, Debug)]
pub struct Matrix {
    rows: usize,
    cols: usize,
    format: Format,
    values: Vec<f32>,
}

impl Matrix {
    /// The matrix with every value's magnitude.
    pub fn magnitudes(mut self) -> Self {
        self.values
            .iter_mut()
            .for_each(|value| *value = value.abs());
        self
    }
}

/// Keys and values of each sequence, `[len, n_kv_head · head_dim]`.
#[derive(Clone, Debug)]
pub struct KvCache {
    shape: KvShape,
    sequences: Vec<(Vec<f32>, Vec<f32>)>,
}

impl Tensor {
    fn new(shape: Vec<usize>, values: Vec<f32>) -> Self {
        assert_eq!(
            values.len(),
            shape.iter().product::<usize>(),
            "values of a {shape:?} tensor"
        );
        Self { shape, values }
    }

    fn width(&self) -> usize {
        self.shape[self.shape.len() - 1]
    }

    fn with(&self, values: Vec<f32>) -> Self {
        Self::new(self.shape.clone(), values)
    }

    fn with_width(&self, width: usize, values: Vec<f32>) -> Self {
        let mut shape = self.shape.clone();
        if let Some(last) = shape.last_mut() {
            *last = width;
        }
        Self::new(shape, values)
    }
}

impl Backend for Reference {
    type Tensor = Tensor;
    type Matrix = Matrix;
    type KvCache = KvCache;

    fn device(&self) -> &'static str {
        "reference"
    }

    fn upload(&self, shape: &[usize], values: &[f32]) -> Result<Tensor, Error> {
        Ok(Tensor::new(shape.to_vec(), values.to_vec()))
    }

    fn download(&self, x: &Tensor) -> Result<Vec<f32>, Error> {
        Ok(x.values.clone())
    }

    fn matrix(&self, weight: &Weight, format: Format) -> Result<Matrix, Error> {
        let (rows, cols) = (weight.rows(), weight.cols());
        let mut values = vec![0.0; rows * cols];
        let mut room = RowRoom::new(cols);
        for (r, row) in values.chunks_exact_mut(cols.max(1)).enumerate() {
            room.in_format(weight.row(r), format).widen(row);
        }
        Ok(Matrix {
            rows,
            cols,
            format,
            values,
        })
    }

    fn layout(&self) -> Option<String> {
        None
    }

    fn matrix_bytes<'a>(&self, _: &'a Matrix) -> Option<&'a Bytes> {
        None
    }

    fn matrix_from_bytes(
        &self,
        rows: usize,
        cols: usize,
        format: Format,
        bytes: Bytes,
    ) -> Result<Matrix, Error> {
        Err(Error::WeightSize {
            rows,
            cols,
            format: format.name(),
            expected: 0,
            found: bytes.len(),
        })
    }

    fn embed(&self, table: &Matrix, ids: &[u32], batch: usize) -> Result<Tensor, Error> {
        let width = table.cols;
        let rows = ids
            .iter()
            .flat_map(|&id| &table.values[id as usize * width..][..width]);
        Ok(Tensor::new(
            vec![batch, ids.len() / batch, width],
            rows.copied().collect(),
        ))
    }

    fn add(&self, x: &Tensor, y: &Tensor) -> Result<Tensor, Error> {
        assert_repeats(&x.shape, &y.shape);
        let sums = x
            .values
            .iter()
            .zip(y.values.iter().cycle())
            .map(|(x, y)| x + y);
        Ok(Tensor::new(x.shape.clone(), sums.collect()))
    }

    fn linear(&self, x: &Tensor, w: &Matrix, fused: Fused<'_, Tensor>) -> Result<Tensor, Error> {
        assert_eq!(x.width(), w.cols, "inputs of a linear layer");
        Ok(x.with_width(w.rows, linear(&x.values, w, fused)))
    }

    fn conv1d(
        &self,
        x: &Tensor,
        w: &Matrix,
        conv: Conv,
        fused: Fused<'_, Tensor>,
    ) -> Result<Tensor, Error> {
        let [batch, length, channels] = x.shape[..] else {
            panic!("a convolution's input has three axes, not {:?}", x.shape);
        };
        assert_eq!(channels * conv.kernel, w.cols, "inputs of a convolution");
        let rows: Vec<f32> = x
            .values
            .chunks_exact(length * channels)
            .flat_map(|x| patches(x, channels, conv))
            .collect();
        let shape = vec![batch, conv.out_length(length), w.rows];
        Ok(Tensor::new(shape, linear(&rows, w, fused)))
    }

    fn layer_norm(
        &self,
        x: &Tensor,
        gain: &Tensor,
        bias: &Tensor,
        eps: f32,
    ) -> Result<Tensor, Error> {
        assert_eq!(x.width(), gain.values.len(), "width of a norm");
        Ok(x.with_width(
            x.width(),
            layer_norm(&x.values, &gain.values, &bias.values, eps),
        ))
    }

    fn positions(&self, x: &Tensor, from: usize, to: usize) -> Result<Tensor, Error> {
        let [batch, length, width] = x.shape[..] else {
            panic!("sequences have three axes, not {:?}", x.shape);
        };
        let kept = x
            .values
            .chunks_exact(length * width)
            .flat_map(|x| &x[from * width..to * width]);
        Ok(Tensor::new(
            vec![batch, to - from, width],
            kept.copied().collect(),
        ))
    }

    fn kv_cache(&self, shape: KvShape) -> Result<KvCache, Error> {
        Ok(KvCache {
            shape,
            sequences: vec![Default::default(); shape.batch],
        })
    }

    fn kv_append(&self, cache: &mut KvCache, k: &Tensor, v: &Tensor) -> Result<(), Error> {
        let KvShape {
            head_dim, format, ..
        } = cache.shape;
        let per_sequence = k.values.len() / cache.sequences.len();
        for (i, (keys, values)) in cache.sequences.iter_mut().enumerate() {
            let new = i * per_sequence..(i + 1) * per_sequence;
            for (kept, x) in [(keys, k), (values, v)] {
                let heads = x.values[new.clone()].chunks_exact(head_dim);
                kept.extend(heads.flat_map(|head| as_kept(head, format)));
                assert!(
                    kept.len() <= cache.shape.capacity * cache.shape.n_kv_head * head_dim,
                    "more positions than the cache holds"
                );
            }
        }
        Ok(())
    }

    fn kv_truncate(&self, cache: &mut KvCache, len: usize) {
        let width = cache.shape.n_kv_head * cache.shape.head_dim;
        for (keys, values) in &mut cache.sequences {
            keys.truncate(len * width);
            values.truncate(len * width);
        }
    }

    fn attention(
        &self,
        q: &Tensor,
        cache: &KvCache,
        Attention {
            n_head,
            mask,
            scale,
        }: Attention,
    ) -> Result<Tensor, Error> {
        let [batch, new, width] = q.shape[..] else {
            panic!("queries have three axes, not {:?}", q.shape);
        };
        let KvShape {
            n_kv_head,
            head_dim,
            ..
        } = cache.shape;
        assert_eq!(width, n_head * head_dim, "width of the queries");
        let head = |x: &[f32], heads: usize, h: usize| -> Vec<f32> {
            x.chunks_exact(heads * head_dim)
                .flat_map(|row| &row[h * head_dim..(h + 1) * head_dim])
                .copied()
                .collect()
        };
        let mut out = vec![0.0; q.values.len()];
        for b in 0..batch {
            let (k, v) = &cache.sequences[if cache.sequences.len() == 1 { 0 } else { b }];
            let q = &q.values[b * new * width..(b + 1) * new * width];
            for h in 0..n_head {
                let kv_head = h / (n_head / n_kv_head);
                let y = attention_head(
                    &head(q, n_head, h),
                    &head(k, n_kv_head, kv_head),
                    &head(v, n_kv_head, kv_head),
                    head_dim,
                    mask,
                    scale,
                );
                for (i, y) in y.chunks_exact(head_dim).enumerate() {
                    out[(b * new + i) * width + h * head_dim..][..head_dim].copy_from_slice(y);
                }
            }
        }
        Ok(Tensor::new(q.shape.clone(), out))
    }

    fn rms_norm(&self, x: &Tensor, gain: &Tensor, eps: f32) -> Result<Tensor, Error> {
        assert!(
            x.width().is_multiple_of(gain.values.len()),
            "{} values of a gain for rows of {}",
            gain.values.len(),
            x.width()
        );
        Ok(x.with(rms_norm(&x.values, &gain.values, eps)))
    }

    fn l2_normalize(&self, x: &Tensor) -> Result<Tensor, Error> {
        Ok(x.with(l2_normalize(&x.values, x.width())))
    }

    fn rope(&self, x: &Tensor, rope: &Rope<Tensor>, offsets: &[usize]) -> Result<Tensor, Error> {
        let [batch, length, width] = x.shape[..] else {
            panic!("sequences have three axes, not {:?}", x.shape);
        };
        assert_eq!(offsets.len(), batch, "offsets of sequences");
        assert!(width.is_multiple_of(rope.head_dim), "heads of a row");
        let half = rope.cos.width();
        let mut y = Vec::with_capacity(x.values.len());
        for (row, x) in x.values.chunks_exact(width).enumerate() {
            let position = offsets[row / length] + row % length;
            let angles = position * half..(position + 1) * half;
            for head in x.chunks_exact(rope.head_dim) {
                y.extend(rope_head(
                    head,
                    &rope.cos.values[angles.clone()],
                    &rope.sin.values[angles.clone()],
                    rope.pairing,
                ));
            }
        }
        Ok(x.with(y))
    }

    fn gated(&self, gate: &Tensor, up: &Tensor, activation: Activation) -> Result<Tensor, Error> {
        assert_eq!(gate.shape, up.shape, "a gate and what it lets through");
        let pairs = gate.values.iter().zip(&up.values);
        let y = pairs
            .map(|(&gate, &up)| (activate(activation, f64::from(gate)) * f64::from(up)) as f32);
        Ok(gate.with(y.collect()))
    }

    fn multiply(&self, x: &Tensor, y: &Tensor) -> Result<Tensor, Error> {
        assert_repeats(&x.shape, &y.shape);
        let pairs = x.values.iter().zip(y.values.iter().cycle());
        Ok(x.with(pairs.map(|(x, y)| x * y).collect()))
    }

    fn scale(&self, x: &Tensor, factor: f32) -> Result<Tensor, Error> {
        Ok(x.with(x.values.iter().map(|x| x * factor).collect()))
    }

    fn soft_cap(&self, x: &Tensor, cap: f32) -> Result<Tensor, Error> {
        let cap = f64::from(cap);
        let capped = |&x: &f32| (cap * (f64::from(x) / cap).tanh()) as f32;
        Ok(x.with(x.values.iter().map(capped).collect()))
    }

    fn pool(&self, x: &Tensor, spans: &[Range<usize>], how: Pool) -> Result<Tensor, Error> {
        let [batch, length, width] = x.shape[..] else {
            panic!("sequences have three axes, not {:?}", x.shape);
        };
        assert_eq!(spans.len(), batch, "spans of sequences");
        let mut y = Vec::with_capacity(batch * width);
        for (b, span) in spans.iter().enumerate() {
            assert!(span.end <= length, "{span:?} of {length} positions");
            let sequence = &x.values[b * length * width..(b + 1) * length * width];
            let rows = &sequence[span.start * width..span.end * width];
            y.extend(pool(rows, width, how));
        }
        Ok(Tensor::new(vec![batch, width], y))
    }

    fn softmax(&self, x: &Tensor) -> Result<Tensor, Error> {
        let rows = x.values.chunks_exact(x.width());
        Ok(x.with(rows.flat_map(softmax).collect()))
    }

    fn log_sum_exp(&self, x: &Tensor) -> Result<Vec<f64>, Error> {
        let rows = x.values.chunks_exact(x.width());
        Ok(rows.map(log_sum_exp).collect())
    }

    fn argmax(&self, x: &Tensor) -> Result<Vec<u32>, Error> {
        Ok(x.values.chunks_exact(x.width()).map(argmax).collect())
    }

    fn top_k(&self, x: &Tensor, k: usize) -> Result<Vec<Ranked>, Error> {
        let rows = x.values.chunks_exact(x.width());
        Ok(rows.flat_map(|x| top_k(x, k)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causal_attention_sees_only_what_came_before() {
        let (q, k) = ([1.0, 0.0, 0.0, 1.0], [1.0, 0.0, 0.0, 1.0, 9.0, 9.0]);
        let v = [1.0, 2.0, 3.0, 4.0, 100.0, 100.0];
        let causal = attention_head(&q, &k, &v, 2, AttentionMask::Causal, 1.0);
        let full = attention_head(&q[..2], &k[..4], &v[..4], 2, AttentionMask::Full, 1.0);
        assert_eq!(
            causal[..2],
            full[..],
            "the first of two queries sees two of three keys"
        );
    }

    #[test]
    fn a_convolution_pads_with_zeros_and_strides() {
        let conv = Conv {
            kernel: 3,
            stride: 2,
            padding: 1,
        };
        assert_eq!(
            patches(&[1.0, 2.0, 3.0, 4.0], 1, conv),
            [0.0, 1.0, 2.0, 2.0, 3.0, 4.0]
        );
    }
}
