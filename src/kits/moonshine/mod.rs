//! Moonshine: speech to text on small machines, whole clips or as they are spoken.

use serde::Deserialize;

use super::Outline;
use super::outline::{Stack, kv_bytes_per_token};
use crate::data::{Catalog, Error, Manifest, Prefab};

/// The models that this program knows by name.
///
/// # Errors
/// The compiled-in table is malformed.
pub fn catalog() -> Result<Catalog, Error> {
    let published = include_str!("../../../assets/moonshine/well-known.toml");
    Catalog::new("moonshine").provider(Manifest::well_known(published)?)
}

/// The extents of a geometry of this family.
///
/// # Errors
/// [`Error::Geometry`] for an extent that is missing or no whole number.
pub fn outline(prefab: &Prefab) -> Result<Outline, Error> {
    if prefab.geometry.contains_key("encoder_config") {
        let Streaming { encoder_config } = prefab.geometry()?;
        let decoder: Stack = prefab.geometry()?;
        return Ok(Outline {
            encoder_layers: encoder_config.num_hidden_layers,
            ..decoder.as_decoder()
        });
    }
    let clip: Clip = prefab.geometry()?;
    let heads = clip.decoder_num_attention_heads.max(1);
    Ok(Outline {
        parameters: clip.parameters,
        encoder_layers: Some(clip.encoder_num_hidden_layers),
        decoder_layers: Some(clip.decoder_num_hidden_layers),
        width: Some(clip.hidden_size),
        heads: Some(clip.decoder_num_attention_heads),
        vocab: Some(clip.vocab_size),
        kv_bytes_per_token: Some(kv_bytes_per_token(
            clip.decoder_num_hidden_layers,
            clip.decoder_num_key_value_heads,
            clip.hidden_size / heads,
        )),
    })
}

/// A model of whole clips, under the names of its `config.json`.
#[derive(Deserialize)]
struct Clip {
    parameters: Option<u64>,
    vocab_size: usize,
    hidden_size: usize,
    encoder_num_hidden_layers: usize,
    decoder_num_hidden_layers: usize,
    decoder_num_attention_heads: usize,
    decoder_num_key_value_heads: usize,
}

/// A streaming model nests its encoder in its decoder's configuration.
#[derive(Deserialize)]
struct Streaming {
    encoder_config: Stack,
}
