//! What the geometries of all families have in common.

use serde::Deserialize;

use crate::data::{Error, Prefab};

/// The extents of a geometry that most families have; `None` where a family has no such thing, or its table does not
/// say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outline {
    /// Elements of all tensors, a tied one once; running statistics are not counted.
    pub parameters: Option<u64>,
    /// Layers of the encoder.
    pub encoder_layers: Option<usize>,
    /// Layers of the decoder.
    pub decoder_layers: Option<usize>,
    /// Width of the residual stream, the decoder's where there are two.
    pub width: Option<usize>,
    /// Attention heads a layer, the decoder's where there are two stacks.
    pub heads: Option<usize>,
    /// Token ids.
    pub vocab: Option<usize>,
    /// Bytes of the keys and values that the decoder's self-attention keeps of a token, as 16-bit numbers.
    pub kv_bytes_per_token: Option<u64>,
}

impl Outline {
    /// The outline of a model that is one stack of attention layers, under the names of `config.json` in transformers.
    ///
    /// # Errors
    /// [`Error::Geometry`] for an extent that is no whole number.
    pub(super) fn of_stack(prefab: &Prefab) -> Result<Self, Error> {
        let stack: Stack = prefab.geometry()?;
        Ok(if stack.is_causal() {
            stack.as_decoder()
        } else {
            Self {
                encoder_layers: stack.num_hidden_layers,
                ..stack.extents()
            }
        })
    }
}

/// A stack of attention layers, under the names of `config.json` in transformers.
#[derive(Debug, Deserialize)]
pub(super) struct Stack {
    parameters: Option<u64>,
    vocab_size: Option<usize>,
    hidden_size: Option<usize>,
    pub(super) num_hidden_layers: Option<usize>,
    num_attention_heads: Option<usize>,
    num_key_value_heads: Option<usize>,
    head_dim: Option<usize>,
    #[serde(default)]
    use_bidirectional_attention: bool,
}

impl Stack {
    /// Whether a token sees only those before it: the families here that number their key heads do, unless they say
    /// otherwise.
    fn is_causal(&self) -> bool {
        self.num_key_value_heads.is_some() && !self.use_bidirectional_attention
    }

    /// The outline of a decoder that is this stack.
    pub(super) fn as_decoder(&self) -> Outline {
        let kv = |layers, heads, width| kv_bytes_per_token(layers, heads, width);
        let kv_bytes_per_token = self
            .num_hidden_layers
            .zip(self.num_key_value_heads)
            .zip(self.head_dim)
            .map(|((layers, heads), width)| kv(layers, heads, width));
        Outline {
            decoder_layers: self.num_hidden_layers,
            kv_bytes_per_token,
            ..self.extents()
        }
    }

    fn extents(&self) -> Outline {
        Outline {
            parameters: self.parameters,
            width: self.hidden_size,
            heads: self.num_attention_heads,
            vocab: self.vocab_size,
            ..Outline::default()
        }
    }
}

/// Bytes of a key and a value of `head_dim` 16-bit numbers for each of `heads` heads in each of `layers` layers.
pub(super) fn kv_bytes_per_token(layers: usize, heads: usize, head_dim: usize) -> u64 {
    let numbers = [2, layers, heads, head_dim]
        .iter()
        .fold(1u64, |product, &extent| {
            product.saturating_mul(extent as u64)
        });
    numbers.saturating_mul(size_of::<u16>() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outline(geometry: &str) -> Result<Outline, Error> {
        Outline::of_stack(&Prefab {
            name: "p".to_owned(),
            kit: "k".to_owned(),
            geometry: toml::from_str(geometry).unwrap(),
        })
    }

    #[test]
    fn a_stack_that_looks_back_only_is_a_decoder_and_keeps_keys() {
        let decoder = "num_hidden_layers = 28\nnum_attention_heads = 16\nnum_key_value_heads = 8\nhead_dim = 128\n";
        let outline_of = outline(decoder).unwrap();
        assert_eq!(outline_of.decoder_layers, Some(28));
        assert_eq!(outline_of.encoder_layers, None);
        assert_eq!(outline_of.heads, Some(16));
        assert_eq!(outline_of.kv_bytes_per_token, Some(112 << 10));

        let encoder = format!("{decoder}use_bidirectional_attention = true\n");
        let outline_of = outline(&encoder).unwrap();
        assert_eq!(outline_of.encoder_layers, Some(28));
        assert_eq!(outline_of.decoder_layers, None);
        assert_eq!(outline_of.kv_bytes_per_token, None);

        assert_eq!(outline("").unwrap(), Outline::default());
    }

    #[test]
    fn extents_that_no_model_has_are_errors_not_panics() {
        for geometry in [
            "num_hidden_layers = -1",
            "parameters = 1.5",
            "head_dim = \"a\"",
        ] {
            assert!(
                matches!(outline(geometry), Err(Error::Geometry { .. })),
                "{geometry}"
            );
        }
        let huge = format!(
            "num_hidden_layers = {0}\nnum_key_value_heads = {0}\nhead_dim = {0}",
            i64::MAX
        );
        assert_eq!(outline(&huge).unwrap().kv_bytes_per_token, Some(u64::MAX));
    }
}
