//! Model families, a folder each.

pub mod whisper;

use crate::data::{Catalog, Error};

/// The models of every family that this program knows by name.
///
/// # Errors
/// A compiled-in table is malformed.
pub fn catalogs() -> Result<Vec<Catalog>, Error> {
    Ok(vec![whisper::catalog()?])
}
