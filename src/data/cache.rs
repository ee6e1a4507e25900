use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use super::{
    Content, Error, Linked, LocalFile, LocalFiles, NotCached, PassedOver, Plan, Provenance,
    Resource, Roots, Source, local::is_absence,
};

/// The pinned cache, and the local places beside it.
///
/// ```text
/// <root>/pretrained/<kit>/<namespace>/<sha256>/<file>
/// ```
///
/// The digest in the path is the pin: whoever wrote the file there vouched for it, and it is not hashed again. A file
/// is looked for there first, then in its row's sources in order; what is found in a local place is used in place.
/// Nothing is ever linked or copied into the cache, and looking needs no write access.
#[derive(Clone, Debug)]
pub struct PinnedCache {
    root: Option<PathBuf>,
    places: BTreeMap<String, PathBuf>,
}

impl PinnedCache {
    /// The cache at `roots.cache`, with the local places of `roots`; without a root, only the others answer.
    pub fn new(roots: &Roots) -> Self {
        Self {
            root: roots.cache.clone(),
            places: roots.places.clone(),
        }
    }

    /// The path that pins `resource`, or `None` when there is no root or no pin.
    pub fn path(&self, kit: &str, resource: &Resource) -> Option<PathBuf> {
        let (root, digest) = self.root.as_ref().zip(resource.sha256)?;
        let dir = root
            .join("pretrained")
            .join(kit)
            .join(&resource.namespace)
            .join(digest.to_string());
        Some(
            resource
                .file
                .split('/')
                .fold(dir, |path, part| path.join(part)),
        )
    }

    /// Finds every file of `plan`; linked bytes are held against their digest.
    ///
    /// # Errors
    /// - [`Error::NotCached`] when a file is in none of its places.
    /// - [`Error::WrongSize`] when the file at a pinned path has another length than its row says.
    /// - [`Error::WrongDigest`] when linked bytes do not have their digest.
    pub fn bring_local<M, E>(&self, plan: &Plan<'_, M, E>) -> Result<LocalFiles, Error> {
        let mut files = Vec::new();
        for resource in &plan.resources {
            let mut search = Search::default();
            let file = search.run(self, &plan.kit, resource)?.ok_or_else(|| {
                Error::NotCached(Box::new(NotCached {
                    model: plan.model.clone(),
                    file: resource.file.clone(),
                    size: resource.size,
                    places: search.places,
                    passed_over: search.passed_over,
                    url: resource.url().map(str::to_owned),
                    instead: plan.instead.clone(),
                }))
            })?;
            files.push(file);
        }
        Ok(LocalFiles::new(plan.prefab.clone(), files))
    }
}

/// One look for one file, and what it saw on the way.
#[derive(Default)]
struct Search {
    places: Vec<PathBuf>,
    passed_over: Vec<PassedOver>,
}

impl Search {
    fn run(
        &mut self,
        cache: &PinnedCache,
        kit: &str,
        resource: &Resource,
    ) -> Result<Option<LocalFile>, Error> {
        let found = |provenance, content| LocalFile {
            key: resource.key.clone(),
            file: resource.file.clone(),
            kind: resource.kind,
            provenance,
            digest: resource.sha256,
            content,
        };
        if let Some(path) = cache.path(kit, resource)
            && let Some(size) = self.look(&path)
        {
            if let Some(expected) = resource.size.filter(|&expected| expected != size) {
                return Err(Error::WrongSize {
                    path,
                    expected,
                    found: size,
                });
            }
            return Ok(Some(found(Provenance::Cached, Content::Path(path))));
        }
        for source in &resource.sources {
            match source {
                Source::Given(path) => {
                    return Ok(Some(found(Provenance::Given, Content::Path(path.clone()))));
                }
                Source::Linked(Linked(bytes)) => {
                    let file = found(Provenance::Bundled, Content::Bytes(bytes.clone()));
                    file.verify()?;
                    return Ok(Some(file));
                }
                Source::Local(place) => {
                    let Some(path) = cache.places.get(place).map(|dir| dir.join(&resource.file))
                    else {
                        continue;
                    };
                    let Some(size) = self.look(&path) else {
                        continue;
                    };
                    match resource.size {
                        // Another tool's unfinished download, or another file of the same name.
                        Some(expected) if expected != size => {
                            self.pass_over(path, format!("has {size} bytes, not {expected}"));
                        }
                        _ => return Ok(Some(found(Provenance::LocalDir, Content::Path(path)))),
                    }
                }
                Source::Url(_) => {}
            }
        }
        Ok(None)
    }

    /// The length of the file at `path`. What cannot be looked at is passed over, not an error: a source that comes
    /// later may have the file.
    fn look(&mut self, path: &Path) -> Option<u64> {
        self.places.push(path.to_owned());
        match fs::metadata(path) {
            Ok(metadata) if metadata.is_file() => return Some(metadata.len()),
            Ok(_) => self.pass_over(path.to_owned(), "is not a file".to_owned()),
            Err(error) if is_absence(&error) => {}
            Err(error) => self.pass_over(path.to_owned(), format!("cannot be read: {error}")),
        }
        None
    }

    fn pass_over(&mut self, path: PathBuf, reason: String) {
        self.passed_over.push(PassedOver { path, reason });
    }
}

#[cfg(test)]
mod tests;
