//! The geometry of a Whisper model.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::Error;
use crate::data::Prefab;

/// The geometry, under OpenAI's names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Dims {
    /// Bins of the log-mel spectrogram.
    pub n_mels: usize,
    /// Tokens, special ones included.
    pub n_vocab: usize,
    /// Positions of the encoder: half the frames of a window.
    pub n_audio_ctx: usize,
    /// Width of the encoder.
    pub n_audio_state: usize,
    /// Attention heads of the encoder.
    pub n_audio_head: usize,
    /// Blocks of the encoder.
    pub n_audio_layer: usize,
    /// Hidden width of an encoder block; OpenAI's files do not state it, it is four times the width.
    pub n_audio_mlp: usize,
    /// Positions of the decoder.
    pub n_text_ctx: usize,
    /// Width of the decoder.
    pub n_text_state: usize,
    /// Attention heads of the decoder.
    pub n_text_head: usize,
    /// Blocks of the decoder.
    pub n_text_layer: usize,
    /// Hidden width of a decoder block.
    pub n_text_mlp: usize,
}

/// Width of a block's hidden layer in OpenAI's models, as a multiple of its own.
const MLP_RATIO: usize = 4;

/// More than any dimension of a real model, and small enough that sizes computed from them cannot overflow.
const MAX_EXTENT: usize = 1 << 20;

impl Dims {
    /// The geometry that a checkpoint carries beside its tensors as `dims.n_mels`, ….
    ///
    /// # Errors
    /// [`Error::Config`] when one of OpenAI's ten is missing, is no number, or cannot be right.
    pub fn from_metadata(metadata: &BTreeMap<String, String>) -> Result<Self, Error> {
        Self::from_openai(|name| {
            let key = format!("dims.{name}");
            let value = metadata
                .get(&key)
                .ok_or_else(|| Error::config(&key, "is missing"))?;
            value
                .parse()
                .map_err(|_| Error::config(&key, format!("is `{value}`, not a whole number")))
        })
    }

    /// The geometry of a compiled-in prefab.
    ///
    /// # Errors
    /// [`Error::Config`] when a dimension is missing or cannot be right.
    pub fn from_prefab(prefab: &Prefab) -> Result<Self, Error> {
        Self::from_openai(|name| {
            let value = prefab.geometry.get(name).and_then(toml::Value::as_integer);
            let value = value.and_then(|value| usize::try_from(value).ok());
            value.ok_or_else(|| Error::config(name, "is missing, or no whole number"))
        })
    }

    /// The geometry whose ten OpenAI dimensions `get` gives by name.
    ///
    /// # Errors
    /// What `get` refuses, or [`Error::Config`] for what cannot be right.
    pub fn from_openai(get: impl Fn(&str) -> Result<usize, Error>) -> Result<Self, Error> {
        let (n_audio_state, n_text_state) = (get("n_audio_state")?, get("n_text_state")?);
        Self {
            n_mels: get("n_mels")?,
            n_vocab: get("n_vocab")?,
            n_audio_ctx: get("n_audio_ctx")?,
            n_audio_state,
            n_audio_head: get("n_audio_head")?,
            n_audio_layer: get("n_audio_layer")?,
            n_audio_mlp: n_audio_state.saturating_mul(MLP_RATIO),
            n_text_ctx: get("n_text_ctx")?,
            n_text_state,
            n_text_head: get("n_text_head")?,
            n_text_layer: get("n_text_layer")?,
            n_text_mlp: n_text_state.saturating_mul(MLP_RATIO),
        }
        .checked()
    }

    /// The geometry of a `config.json` as `transformers` writes it; `file` is where it was read, for messages.
    ///
    /// # Errors
    /// [`Error::ModelType`] when it is another family's, [`Error::ConfigFile`] when it is no JSON or a value is missing or of
    /// another type, [`Error::Config`] when one cannot be right, or asks for something that Whisper does not do.
    pub fn from_config_json(file: &Path, json: &[u8]) -> Result<Self, Error> {
        let malformed = |source| Error::ConfigFile {
            file: file.to_owned(),
            source,
        };
        let kind: ModelKind = serde_json::from_slice(json).map_err(malformed)?;
        if kind.model_type != MODEL_TYPE {
            return Err(Error::ModelType {
                found: kind.model_type,
            });
        }
        let config: ConfigJson = serde_json::from_slice(json).map_err(malformed)?;
        config.dims()?.checked()
    }

    /// Whether the vocabulary is the one of many languages.
    pub fn is_multilingual(&self) -> bool {
        self.n_vocab >= 51_865
    }

    /// Refuses extents that no model has, so that what follows can compute with them.
    fn checked(self) -> Result<Self, Error> {
        let extents = [
            ("n_mels", self.n_mels),
            ("n_vocab", self.n_vocab),
            ("n_audio_ctx", self.n_audio_ctx),
            ("n_audio_state", self.n_audio_state),
            ("n_audio_head", self.n_audio_head),
            ("n_audio_layer", self.n_audio_layer),
            ("n_audio_mlp", self.n_audio_mlp),
            ("n_text_ctx", self.n_text_ctx),
            ("n_text_state", self.n_text_state),
            ("n_text_head", self.n_text_head),
            ("n_text_layer", self.n_text_layer),
            ("n_text_mlp", self.n_text_mlp),
        ];
        for (name, extent) in extents {
            if extent == 0 || extent > MAX_EXTENT {
                return Err(Error::config(
                    name,
                    format!("is {extent}, expected 1 to {MAX_EXTENT}"),
                ));
            }
        }
        if ![80, 128].contains(&self.n_mels) {
            return Err(Error::config(
                "n_mels",
                format!("is {}, expected 80 or 128", self.n_mels),
            ));
        }
        for (state, heads) in [
            (self.n_audio_state, self.n_audio_head),
            (self.n_text_state, self.n_text_head),
        ] {
            if !state.is_multiple_of(heads) || !state.is_multiple_of(2) {
                return Err(Error::config(
                    "heads",
                    format!("{heads} do not divide a width of {state}"),
                ));
            }
        }
        if self.n_audio_state != self.n_text_state {
            let found = format!("{} and {} differ", self.n_audio_state, self.n_text_state);
            return Err(Error::config("widths of encoder and decoder", found));
        }
        Ok(self)
    }
}

/// What a `config.json` of Whisper says that it is.
const MODEL_TYPE: &str = "whisper";

/// What a `config.json` of any model says that it is.
#[derive(Deserialize)]
struct ModelKind {
    model_type: String,
}

/// The values of a `config.json` that say something about the computation.
#[derive(Deserialize)]
struct ConfigJson {
    num_mel_bins: usize,
    vocab_size: usize,
    max_source_positions: usize,
    max_target_positions: usize,
    d_model: usize,
    encoder_attention_heads: usize,
    decoder_attention_heads: usize,
    encoder_layers: usize,
    decoder_layers: usize,
    encoder_ffn_dim: usize,
    decoder_ffn_dim: usize,
    activation_function: String,
    #[serde(default)]
    scale_embedding: bool,
}

impl ConfigJson {
    fn dims(&self) -> Result<Dims, Error> {
        if self.activation_function != "gelu" {
            let found = format!("is `{}`, expected `gelu`", self.activation_function);
            return Err(Error::config("activation_function", found));
        }
        if self.scale_embedding {
            return Err(Error::config(
                "scale_embedding",
                "is true, which is not supported",
            ));
        }
        Ok(Dims {
            n_mels: self.num_mel_bins,
            n_vocab: self.vocab_size,
            n_audio_ctx: self.max_source_positions,
            n_audio_state: self.d_model,
            n_audio_head: self.encoder_attention_heads,
            n_audio_layer: self.encoder_layers,
            n_audio_mlp: self.encoder_ffn_dim,
            n_text_ctx: self.max_target_positions,
            n_text_state: self.d_model,
            n_text_head: self.decoder_attention_heads,
            n_text_layer: self.decoder_layers,
            n_text_mlp: self.decoder_ffn_dim,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn openai(name: &str) -> usize {
        match name {
            "n_mels" => 80,
            "n_vocab" => 51_864,
            "n_audio_ctx" => 1500,
            "n_text_ctx" => 448,
            "n_audio_state" | "n_text_state" => 384,
            "n_audio_head" | "n_text_head" => 6,
            _ => 4,
        }
    }

    #[test]
    fn a_geometry_that_cannot_be_right_is_refused_by_name() {
        let cases = [
            ("n_mels", 81),
            ("n_vocab", 0),
            ("n_audio_head", 5),
            ("n_text_state", 768),
            ("n_text_layer", usize::MAX),
            ("n_audio_state", usize::MAX),
        ];
        for (name, extent) in cases {
            let get = |asked: &str| Ok(if asked == name { extent } else { openai(asked) });
            assert!(
                matches!(Dims::from_openai(get), Err(Error::Config { .. })),
                "{name} = {extent}"
            );
        }
        assert_eq!(
            Dims::from_openai(|name| Ok(openai(name)))
                .unwrap()
                .n_text_mlp,
            1536
        );
    }

    #[test]
    fn a_config_that_asks_for_something_else_is_refused() {
        let config = serde_json::json!({
            "model_type": "whisper", "num_mel_bins": 80, "vocab_size": 51864, "max_source_positions": 1500,
            "max_target_positions": 448, "d_model": 384, "encoder_attention_heads": 6, "decoder_attention_heads": 6,
            "encoder_layers": 4, "decoder_layers": 4, "encoder_ffn_dim": 1536, "decoder_ffn_dim": 1536,
            "activation_function": "gelu",
        });
        assert_eq!(
            Dims::from_config_json(Path::new("config.json"), config.to_string().as_bytes())
                .unwrap(),
            Dims::from_openai(|name| Ok(openai(name))).unwrap()
        );
        for (key, value) in [
            ("model_type", "bert"),
            ("activation_function", "relu"),
            ("num_mel_bins", "80"),
        ] {
            let mut config = config.clone();
            config[key] = value.into();
            assert!(
                Dims::from_config_json(Path::new("config.json"), config.to_string().as_bytes())
                    .is_err(),
                "{key} = {value}"
            );
        }
    }
    #[test]
    fn what_is_wrong_with_a_config_is_told_with_file_line_and_column() {
        use std::error::Error as _;

        let complaint = |json: &str| {
            let error = Dims::from_config_json(Path::new("m/config.json"), json.as_bytes());
            let error = error.unwrap_err();
            match error.source() {
                Some(source) => format!("{error}: {source}"),
                None => error.to_string(),
            }
        };
        for (json, expected) in [
            (
                "{\"model_type\": \"whisper\",\n \"d_model\" 384}",
                "cannot use m/config.json: expected `:` at line 2 column 12",
            ),
            (
                "",
                "cannot use m/config.json: EOF while parsing a value at line 1 column 0",
            ),
            (
                "{}",
                "cannot use m/config.json: missing field `model_type` at line 1 column 2",
            ),
            (
                "{\"model_type\": \"whisper\",\n \"d_model\": \"384\"}",
                "cannot use m/config.json: invalid type: string \"384\", expected usize at line 2 column 17",
            ),
            (
                "{\"model_type\": \"bert\", \"d_model\": \"384\"}",
                "not supported: models of type `bert`; supported: `whisper`",
            ),
        ] {
            assert_eq!(complaint(json), expected);
        }
    }
}
