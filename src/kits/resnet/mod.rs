//! ResNets: images to classes, or to the features before them ("Deep Residual Learning for Image Recognition", He et
//! al. 2015).

use serde::Deserialize;

use super::Outline;
use crate::data::{Catalog, Error, Manifest, Prefab};

/// The models that this program knows by name.
///
/// # Errors
/// The compiled-in table is malformed.
pub fn catalog() -> Result<Catalog, Error> {
    let published = include_str!("../../../assets/resnet/well-known.toml");
    Catalog::new("resnet").provider(Manifest::well_known(published)?)
}

/// The extents of a geometry of this family; its layers are those that the name counts: the convolutions on the main
/// path, and the last linear one.
///
/// # Errors
/// [`Error::Geometry`] for an extent that is missing or no whole number, or a block of another kind.
pub fn outline(prefab: &Prefab) -> Result<Outline, Error> {
    let geometry: Geometry = prefab.geometry()?;
    let blocks = geometry
        .layers
        .iter()
        .fold(0, |sum: usize, &blocks| sum.saturating_add(blocks));
    let convolutions = match geometry.block {
        Block::Basic => 2,
        Block::Bottleneck => 3,
    };
    Ok(Outline {
        parameters: geometry.parameters,
        encoder_layers: Some(blocks.saturating_mul(convolutions).saturating_add(2)),
        ..Outline::default()
    })
}

/// The arguments of torchvision's constructor.
#[derive(Deserialize)]
struct Geometry {
    parameters: Option<u64>,
    block: Block,
    /// Blocks of each of the four stages.
    layers: Vec<usize>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Block {
    /// Two 3×3 convolutions.
    Basic,
    /// A 3×3 convolution between two of 1×1.
    Bottleneck,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resnet_has_the_layers_that_its_name_says() {
        let catalog = catalog().unwrap();
        for prefab in catalog.prefabs() {
            let layers = outline(prefab).unwrap().encoder_layers.unwrap();
            assert_eq!(format!("resnet{layers}"), prefab.name);
        }
    }
}
