use std::{
    fs,
    path::{Path, PathBuf},
};

use super::Store;
use crate::data::{
    Content, Error, Linked, LocalFile, PassedOver, Provenance, Resource, Source, hub::Entry,
    local::is_absence,
};

/// One look for one file, and what it saw on the way.
#[derive(Default)]
pub(super) struct Search {
    /// Where the file may be put, in the order in which it was looked for.
    pub(super) places: Vec<PathBuf>,
    /// What was there and could not be used.
    pub(super) passed_over: Vec<PassedOver>,
}

impl Search {
    /// Looks for `resource` of `kit` wherever it may be on this machine.
    pub(super) fn run(
        &mut self,
        store: &Store,
        kit: &str,
        resource: &Resource,
    ) -> Result<Option<LocalFile>, Error> {
        let found = |provenance, content| LocalFile {
            key: resource.key.clone(),
            file: resource.file.clone(),
            kind: resource.kind,
            provenance,
            digest: resource.sha256,
            git_blob: None,
            content,
        };
        let pinned = store.pinned.as_ref();
        if let Some(path) = pinned.and_then(|cache| cache.path(kit, resource))
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
            let mut git_blob = None;
            let (provenance, path) = match source {
                Source::Given(path) => {
                    return Ok(Some(found(Provenance::Given, Content::Path(path.clone()))));
                }
                Source::Linked(Linked(bytes)) => {
                    // What is linked in was held against its pin when this program was tested.
                    let content = Content::Bytes(bytes.clone());
                    return Ok(Some(found(Provenance::Bundled, content)));
                }
                Source::Url(_) => continue,
                Source::Local(place) => {
                    let dir = store.places.get(place);
                    (
                        Provenance::LocalDir,
                        dir.map(|dir| dir.join(&resource.file)),
                    )
                }
                Source::Hub(hub) => {
                    let snapshot = store.hub.cache().and_then(|cache| cache.snapshot(hub));
                    let file = snapshot.as_ref().and_then(|it| it.file(&resource.file));
                    let listing = snapshot.and_then(|snapshot| snapshot.listing);
                    let entry = listing.as_ref().and_then(|it| it.files.get(&resource.file));
                    git_blob = entry.and_then(Entry::git_blob);
                    (Provenance::HfCache, file)
                }
            };
            let Some(path) = path else { continue };
            let Some(size) = self.look(&path) else {
                continue;
            };
            match resource.size {
                // Another tool's unfinished download, or another file of the same name.
                Some(expected) if expected != size => {
                    self.pass_over(path, format!("has {size} bytes, not {expected}"));
                }
                _ => {
                    return Ok(Some(LocalFile {
                        git_blob,
                        ..found(provenance, Content::Path(path))
                    }));
                }
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
