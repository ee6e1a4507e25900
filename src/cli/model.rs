//! What the commands share of finding a model.

use std::path::Path;

use super::error::Error;
use crate::data::{Factory, Plan, Roots};
use crate::kits::whisper::{self, Dims, Package};

/// Where models are looked for: what the environment says, but for `cache_dir`.
pub(crate) fn roots(cache_dir: Option<&Path>) -> Roots {
    let roots = Roots::from_vars(|name| std::env::var_os(name));
    match cache_dir {
        Some(dir) => roots.with_cache(dir),
        None => roots,
    }
}

/// The name of the geometry: what the row promises, or the published one that a path's model has.
pub(crate) fn prefab_name(
    factory: &Factory<Package, whisper::Error>,
    plan: &Plan<'_, Package, whisper::Error>,
    dims: &Dims,
) -> Result<Option<String>, Error> {
    if let Some(prefab) = &plan.prefab {
        return Ok(Some(prefab.name.clone()));
    }
    for prefab in factory.prefabs() {
        if Dims::from_prefab(prefab)? == *dims {
            return Ok(Some(prefab.name.clone()));
        }
    }
    Ok(None)
}
