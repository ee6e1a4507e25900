//! How exactly a model computes.

use crate::compute::{Format, KvFormat};

/// What a model's weights are kept and multiplied in. Norms, softmax, sums and the activations between layers are f32 in all
/// of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Precision {
    /// f32: what the reference implementations compute.
    F32,
    /// bfloat16 products, summed in f32.
    Bf16,
    /// int8 matrices and activations, with a scale for each group of 32 in encoders and for each row in decoders;
    /// convolutions, keys and values in bfloat16.
    Q8,
    /// 4-bit matrices with scale and minimum for each group of 32; convolutions, keys and values in bfloat16.
    Q4,
}

impl Precision {
    /// `f32`, `bf16`, `q8` or `q4`.
    pub fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::Bf16 => "bf16",
            Self::Q8 => "q8",
            Self::Q4 => "q4",
        }
    }

    /// What the linear layers of an encoder are multiplied in: it sees many positions at a time, so that finer scales, which
    /// cost arithmetic, read no more memory to speak of.
    pub fn encoder(self) -> Format {
        match self {
            Self::F32 => Format::F32,
            Self::Bf16 => Format::Bf16,
            Self::Q8 => Format::Q8Group,
            Self::Q4 => Format::Q4Group,
        }
    }

    /// What the linear layers of a decoder are multiplied in: it reads all weights for every token.
    pub fn decoder(self) -> Format {
        match self {
            Self::Q8 => Format::Q8,
            other => other.encoder(),
        }
    }

    /// What the token table is multiplied in, which is an output layer too: four bits cost it more than they save.
    pub fn embeddings(self) -> Format {
        match self {
            Self::Q4 => Format::Q8,
            other => other.decoder(),
        }
    }

    /// What convolutions are multiplied in: they see the raw features, and are few.
    pub fn convolutions(self) -> Format {
        match self {
            Self::F32 => Format::F32,
            Self::Bf16 | Self::Q8 | Self::Q4 => Format::Bf16,
        }
    }

    /// What keys and values are kept in.
    pub fn kv(self) -> KvFormat {
        match self {
            Self::F32 => KvFormat::F32,
            Self::Bf16 | Self::Q8 | Self::Q4 => KvFormat::Bf16,
        }
    }
}
