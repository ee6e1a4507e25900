use super::{Dims, tensors};
use crate::data::{Error, Prefab};
use crate::kits::Outline;
use crate::kits::outline::kv_bytes_per_token;

/// The extents of a geometry of this family; the encoder's fixed positions count among the parameters, as OpenAI's files
/// carry them.
///
/// # Errors
/// [`Error::Geometry`] when a dimension is missing or cannot be right.
pub fn outline(prefab: &Prefab) -> Result<Outline, Error> {
    let dims = Dims::from_prefab(prefab).map_err(|error| Error::Geometry {
        prefab: prefab.name.clone(),
        message: error.to_string(),
    })?;
    let elements = |(_, shape): &(String, Vec<usize>)| shape.iter().product::<usize>() as u64;
    Ok(Outline {
        parameters: Some(tensors(&dims).iter().map(elements).sum()),
        encoder_layers: Some(dims.n_audio_layer),
        decoder_layers: Some(dims.n_text_layer),
        width: Some(dims.n_text_state),
        heads: Some(dims.n_text_head),
        vocab: Some(dims.n_vocab),
        kv_bytes_per_token: Some(kv_bytes_per_token(dims.n_text_layer, 1, dims.n_text_state)),
    })
}
