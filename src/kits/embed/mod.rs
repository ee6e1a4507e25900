//! Models that turn text into vectors: BERT and its kin, and decoders whose last token stands for the text.

use super::Outline;
use crate::data::{Catalog, Error, Manifest, Prefab};

/// The models that this program knows by name.
///
/// # Errors
/// The compiled-in table is malformed.
pub fn catalog() -> Result<Catalog, Error> {
    let published = include_str!("../../../assets/embed/well-known.toml");
    Catalog::new("embed").provider(Manifest::well_known(published)?)
}

/// The extents of a geometry of this family.
///
/// # Errors
/// [`Error::Geometry`] for an extent that is no whole number.
pub fn outline(prefab: &Prefab) -> Result<Outline, Error> {
    Outline::of_stack(prefab)
}
