//! Qwen3-ASR: speech in thirty languages to text, by an audio encoder in front of a Qwen3 language model.

use serde::Deserialize;

use super::Outline;
use super::outline::Stack;
use crate::data::{Catalog, Error, Manifest, Prefab};

/// The models that this program knows by name.
///
/// # Errors
/// The compiled-in table is malformed.
pub fn catalog() -> Result<Catalog, Error> {
    let published = include_str!("../../../assets/qwen3-asr/well-known.toml");
    Catalog::new("qwen3-asr").provider(Manifest::well_known(published)?)
}

/// The extents of a geometry of this family.
///
/// # Errors
/// [`Error::Geometry`] for an extent that is missing or no whole number.
pub fn outline(prefab: &Prefab) -> Result<Outline, Error> {
    let geometry: Geometry = prefab.geometry()?;
    Ok(Outline {
        parameters: geometry.parameters,
        encoder_layers: Some(geometry.audio_config.encoder_layers),
        ..geometry.text_config.as_decoder()
    })
}

/// The two halves, under the names of `config.json`.
#[derive(Deserialize)]
struct Geometry {
    parameters: Option<u64>,
    audio_config: AudioConfig,
    text_config: Stack,
}

#[derive(Deserialize)]
struct AudioConfig {
    encoder_layers: usize,
}
