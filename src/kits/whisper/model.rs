//! The forward pass.

use super::names::{check, with_openai_names};
use super::{Dims, Error};
use crate::checkpoint::Checkpoint;
use crate::compute::{
    self, Activation, Attention, AttentionMask, Backend, Conv, Fused, KvFormat, KvShape,
};
use crate::nn::{self, Conv1d, LayerNorm, Linear, Loader, Preparation, UnknownTensors};

type Result<T, E = compute::Error> = std::result::Result<T, E>;

/// Epsilon of every norm: the default of torch's `LayerNorm`, which the original uses.
const EPS: f32 = 1e-5;

/// A model's weights on a backend.
pub struct Whisper<B: Backend> {
    dims: Dims,
    kv_format: KvFormat,
    encoder: Encoder<B>,
    decoder: Decoder<B>,
}

impl<B: Backend> Whisper<B> {
    /// Loads a checkpoint with OpenAI's or `transformers`' tensor names.
    ///
    /// # Errors
    /// Tensors are missing, have another shape than `dims` ask for, or have no place in them and `unknown` refuses that.
    pub fn load(
        b: &B,
        checkpoint: &dyn Checkpoint,
        dims: Dims,
        unknown: UnknownTensors,
        preparation: Preparation<'_>,
    ) -> Result<Self, Error> {
        let checkpoint = with_openai_names(checkpoint);
        check(&checkpoint, &dims, unknown)?;
        let loader = Loader::new(b, &checkpoint, preparation);
        let encoder = Encoder::load(&loader.at("encoder").of_encoder(), &dims)?;
        let decoder = Decoder::load(&loader.at("decoder"), &dims)?;
        Ok(Self {
            dims,
            kv_format: preparation.precision.kv(),
            encoder,
            decoder,
        })
    }

    /// The geometry.
    pub fn dims(&self) -> &Dims {
        &self.dims
    }

    /// Audio features of one window: `mel` `[1, 2 · n_audio_ctx, n_mels]` gives `[1, n_audio_ctx, n_audio_state]`.
    ///
    /// # Errors
    /// As the backend's.
    pub fn encode(&self, b: &B, mel: &B::Tensor) -> Result<B::Tensor> {
        self.encoder.forward(b, mel, self.kv_format)
    }

    /// Each decoder block's keys and values of a window's audio features, which every step on that window reads.
    ///
    /// # Errors
    /// As the backend's.
    pub fn cross_kv(&self, b: &B, xa: &B::Tensor) -> Result<Vec<B::KvCache>> {
        self.decoder
            .blocks
            .iter()
            .map(|block| {
                let attn = &block.cross_attn;
                let shape = attn.kv_shape(1, self.dims.n_audio_ctx, self.kv_format);
                let mut kv = b.kv_cache(shape)?;
                attn.append(b, xa, &mut kv)?;
                Ok(kv)
            })
            .collect()
    }

    /// The state of `batch` texts with nothing written yet.
    ///
    /// # Errors
    /// As the backend's.
    pub fn text_state(&self, b: &B, batch: usize) -> Result<TextState<B>> {
        let blocks = self.decoder.blocks.iter();
        let cache = |block: &DecoderBlock<B>| {
            b.kv_cache(
                block
                    .attn
                    .kv_shape(batch, self.dims.n_text_ctx, self.kv_format),
            )
        };
        Ok(TextState {
            batch,
            len: 0,
            kv: blocks.map(cache).collect::<Result<_>>()?,
        })
    }

    /// Appends `tokens` `[batch, new]` to the texts and gives the logits that follow each new one from `first` on:
    /// `[batch, new − first, n_vocab]`.
    ///
    /// # Errors
    /// As the backend's.
    pub fn decode(
        &self,
        b: &B,
        tokens: &[u32],
        cross_kv: &[B::KvCache],
        state: &mut TextState<B>,
        first: usize,
    ) -> Result<B::Tensor> {
        self.decoder.forward(b, tokens, cross_kv, state, first)
    }
}

/// What the decoder has computed of the texts it is writing.
pub struct TextState<B: Backend> {
    batch: usize,
    len: usize,
    kv: Vec<B::KvCache>,
}

struct Encoder<B: Backend> {
    conv1: Conv1d<B>,
    conv2: Conv1d<B>,
    /// `[n_audio_ctx, n_audio_state]`.
    positional_embedding: B::Tensor,
    blocks: Vec<EncoderBlock<B>>,
    ln_post: LayerNorm<B>,
    n_audio_ctx: usize,
}

impl<B: Backend> Encoder<B> {
    fn load(loader: &Loader<B>, dims: &Dims) -> Result<Self, nn::Error> {
        let &Dims {
            n_mels,
            n_audio_ctx,
            n_audio_state,
            n_audio_head,
            n_audio_layer,
            n_audio_mlp,
            ..
        } = dims;
        let block = |i| {
            EncoderBlock::load(
                &loader.at("blocks").at(i),
                n_audio_state,
                n_audio_head,
                n_audio_mlp,
            )
        };
        Ok(Self {
            conv1: loader.at("conv1").conv1d(
                n_audio_state,
                n_mels,
                Conv {
                    kernel: 3,
                    stride: 1,
                    padding: 1,
                },
            )?,
            conv2: loader.at("conv2").conv1d(
                n_audio_state,
                n_audio_state,
                Conv {
                    kernel: 3,
                    stride: 2,
                    padding: 1,
                },
            )?,
            positional_embedding: loader
                .values("positional_embedding", &[n_audio_ctx, n_audio_state])?,
            blocks: (0..n_audio_layer).map(block).collect::<Result<_, _>>()?,
            ln_post: loader.at("ln_post").layer_norm(n_audio_state, EPS)?,
            n_audio_ctx,
        })
    }

    fn forward(&self, b: &B, mel: &B::Tensor, kv_format: KvFormat) -> Result<B::Tensor> {
        let mut x = self.embed(b, mel)?;
        for block in &self.blocks {
            let shape = block.attn.kv_shape(1, self.n_audio_ctx, kv_format);
            x = block.forward(b, &x, &mut b.kv_cache(shape)?)?;
        }
        self.ln_post.forward(b, &x)
    }

    /// `mel` `[1, 2 · n_audio_ctx, n_mels]` in, `[1, n_audio_ctx, n_audio_state]` with positions out.
    fn embed(&self, b: &B, mel: &B::Tensor) -> Result<B::Tensor> {
        let x = self.conv1.forward(b, mel, Activation::GeluErf)?;
        let x = self.conv2.forward(b, &x, Activation::GeluErf)?;
        b.add(&x, &self.positional_embedding)
    }
}

struct EncoderBlock<B: Backend> {
    attn_ln: LayerNorm<B>,
    attn: MultiHeadAttention<B>,
    mlp_ln: LayerNorm<B>,
    mlp: Mlp<B>,
}

impl<B: Backend> EncoderBlock<B> {
    fn load(
        loader: &Loader<B>,
        n_state: usize,
        n_head: usize,
        n_mlp: usize,
    ) -> Result<Self, nn::Error> {
        Ok(Self {
            attn_ln: loader.at("attn_ln").layer_norm(n_state, EPS)?,
            attn: MultiHeadAttention::load(&loader.at("attn"), n_state, n_head)?,
            mlp_ln: loader.at("mlp_ln").layer_norm(n_state, EPS)?,
            mlp: Mlp::load(&loader.at("mlp"), n_state, n_mlp)?,
        })
    }

    /// `x` `[1, n_audio_ctx, n_audio_state]` in, same out; `kv` is room for this block's keys and values.
    fn forward(&self, b: &B, x: &B::Tensor, kv: &mut B::KvCache) -> Result<B::Tensor> {
        let x = self
            .attn
            .attend_self(b, x, &self.attn_ln, kv, AttentionMask::Full)?;
        self.mlp.forward(b, &x, &self.mlp_ln)
    }
}

struct Decoder<B: Backend> {
    /// `[n_vocab, n_text_state]`, the output head too.
    token_embedding: B::Matrix,
    /// `[1, n_text_ctx, n_text_state]`.
    positional_embedding: B::Tensor,
    blocks: Vec<DecoderBlock<B>>,
    ln: LayerNorm<B>,
}

impl<B: Backend> Decoder<B> {
    fn load(loader: &Loader<B>, dims: &Dims) -> Result<Self, nn::Error> {
        let &Dims {
            n_vocab,
            n_text_ctx,
            n_text_state,
            n_text_head,
            n_text_layer,
            n_text_mlp,
            ..
        } = dims;
        let block = |i| {
            DecoderBlock::load(
                &loader.at("blocks").at(i),
                n_text_state,
                n_text_head,
                n_text_mlp,
            )
        };
        Ok(Self {
            token_embedding: loader
                .at("token_embedding")
                .embedding(n_vocab, n_text_state)?,
            positional_embedding: loader.sequence(
                "positional_embedding",
                n_text_ctx,
                n_text_state,
            )?,
            blocks: (0..n_text_layer).map(block).collect::<Result<_, _>>()?,
            ln: loader.at("ln").layer_norm(n_text_state, EPS)?,
        })
    }

    fn forward(
        &self,
        b: &B,
        tokens: &[u32],
        cross_kv: &[B::KvCache],
        state: &mut TextState<B>,
        first: usize,
    ) -> Result<B::Tensor> {
        let new = tokens.len() / state.batch;
        let mut x = self.embed(b, tokens, state)?;
        for ((block, kv), cross_kv) in self.blocks.iter().zip(&mut state.kv).zip(cross_kv) {
            x = block.forward(b, &x, kv, cross_kv)?;
        }
        state.len += new;
        let x = self.ln.forward(b, &b.positions(&x, first, new)?)?;
        b.linear(&x, &self.token_embedding, Fused::default())
    }

    /// `tokens` `[batch, new]` in, `[batch, new, n_text_state]` with the positions that follow `state` out.
    fn embed(&self, b: &B, tokens: &[u32], state: &TextState<B>) -> Result<B::Tensor> {
        let x = b.embed(&self.token_embedding, tokens, state.batch)?;
        let new = tokens.len() / state.batch;
        b.add(
            &x,
            &b.positions(&self.positional_embedding, state.len, state.len + new)?,
        )
    }
}

struct DecoderBlock<B: Backend> {
    attn_ln: LayerNorm<B>,
    attn: MultiHeadAttention<B>,
    cross_attn_ln: LayerNorm<B>,
    cross_attn: MultiHeadAttention<B>,
    mlp_ln: LayerNorm<B>,
    mlp: Mlp<B>,
}

impl<B: Backend> DecoderBlock<B> {
    fn load(
        loader: &Loader<B>,
        n_state: usize,
        n_head: usize,
        n_mlp: usize,
    ) -> Result<Self, nn::Error> {
        Ok(Self {
            attn_ln: loader.at("attn_ln").layer_norm(n_state, EPS)?,
            attn: MultiHeadAttention::load(&loader.at("attn"), n_state, n_head)?,
            cross_attn_ln: loader.at("cross_attn_ln").layer_norm(n_state, EPS)?,
            cross_attn: MultiHeadAttention::load(&loader.at("cross_attn"), n_state, n_head)?,
            mlp_ln: loader.at("mlp_ln").layer_norm(n_state, EPS)?,
            mlp: Mlp::load(&loader.at("mlp"), n_state, n_mlp)?,
        })
    }

    /// `x` `[batch, new, n_text_state]` in, same out.
    fn forward(
        &self,
        b: &B,
        x: &B::Tensor,
        kv: &mut B::KvCache,
        cross_kv: &B::KvCache,
    ) -> Result<B::Tensor> {
        let x = self
            .attn
            .attend_self(b, x, &self.attn_ln, kv, AttentionMask::Causal)?;
        let normed = self.cross_attn_ln.forward(b, &x)?;
        let x = self
            .cross_attn
            .attend(b, &x, &normed, cross_kv, AttentionMask::Full)?;
        self.mlp.forward(b, &x, &self.mlp_ln)
    }
}

struct MultiHeadAttention<B: Backend> {
    query: Linear<B>,
    key: Linear<B>,
    value: Linear<B>,
    out: Linear<B>,
    n_head: usize,
    head_dim: usize,
}

impl<B: Backend> MultiHeadAttention<B> {
    fn load(loader: &Loader<B>, n_state: usize, n_head: usize) -> Result<Self, nn::Error> {
        let linear = |name, has_bias| loader.at(name).linear(n_state, n_state, has_bias);
        Ok(Self {
            query: linear("query", true)?,
            key: linear("key", false)?,
            value: linear("value", true)?,
            out: linear("out", true)?,
            n_head,
            head_dim: n_state / n_head,
        })
    }

    /// The keys and values that this attention reads.
    fn kv_shape(&self, batch: usize, capacity: usize, format: KvFormat) -> KvShape {
        KvShape {
            batch,
            capacity,
            n_kv_head: self.n_head,
            head_dim: self.head_dim,
            format,
        }
    }

    /// `x` and, added to it, the attention of its normed positions among themselves and to those before them in `kv`, to
    /// which they are appended.
    fn attend_self(
        &self,
        b: &B,
        x: &B::Tensor,
        norm: &LayerNorm<B>,
        kv: &mut B::KvCache,
        mask: AttentionMask,
    ) -> Result<B::Tensor> {
        let normed = norm.forward(b, x)?;
        self.append(b, &normed, kv)?;
        self.attend(b, x, &normed, kv, mask)
    }

    /// `x` and, added to it, the attention of `normed` `[batch, new, n_state]` to what is in `kv`.
    fn attend(
        &self,
        b: &B,
        x: &B::Tensor,
        normed: &B::Tensor,
        kv: &B::KvCache,
        mask: AttentionMask,
    ) -> Result<B::Tensor> {
        let attention = Attention {
            n_head: self.n_head,
            mask,
            scale: 1.0 / (self.head_dim as f32).sqrt(),
        };
        let q = self.query.forward(b, normed)?;
        let mixed = b.attention(&q, kv, attention)?;
        self.out.added_to(b, x, &mixed)
    }

    fn append(&self, b: &B, x: &B::Tensor, kv: &mut B::KvCache) -> Result<()> {
        let k = self.key.forward(b, x)?;
        let v = self.value.forward(b, x)?;
        b.kv_append(kv, &k, &v)
    }
}

struct Mlp<B: Backend> {
    up: Linear<B>,
    down: Linear<B>,
}

impl<B: Backend> Mlp<B> {
    fn load(loader: &Loader<B>, n_state: usize, n_mlp: usize) -> Result<Self, nn::Error> {
        // `1` is the activation between them.
        Ok(Self {
            up: loader.at("0").linear(n_mlp, n_state, true)?,
            down: loader.at("2").linear(n_state, n_mlp, true)?,
        })
    }

    /// `x` and, added to it, what the layers make of its normed rows.
    fn forward(&self, b: &B, x: &B::Tensor, norm: &LayerNorm<B>) -> Result<B::Tensor> {
        let up = self
            .up
            .activated(b, &norm.forward(b, x)?, Activation::GeluErf)?;
        self.down.added_to(b, x, &up)
    }
}

#[cfg(test)]
mod tests;
