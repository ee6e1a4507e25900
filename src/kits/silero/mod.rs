//! Silero's voice activity detector: how likely it is that somebody speaks, 31 times a second.

use serde::Deserialize;

use super::Outline;
use crate::data::{Catalog, Error, Manifest, Prefab};

/// The models that this program knows by name.
///
/// # Errors
/// The compiled-in table is malformed.
pub fn catalog() -> Result<Catalog, Error> {
    let published = include_str!("../../../assets/silero/well-known.toml");
    Catalog::new("silero").provider(Manifest::well_known(published)?)
}

/// The extents of a geometry of this family: of those that others have, only the number of parameters.
///
/// # Errors
/// [`Error::Geometry`] when that is no whole number.
pub fn outline(prefab: &Prefab) -> Result<Outline, Error> {
    let Geometry { parameters } = prefab.geometry()?;
    Ok(Outline {
        parameters,
        ..Outline::default()
    })
}

#[derive(Deserialize)]
struct Geometry {
    parameters: Option<u64>,
}
