use std::{collections::HashMap, path::PathBuf};

use super::{Slot, local_file, ungated};
use crate::data::{
    ContentId, Error, Found, LocalFile, Observer, PinnedCache, Provenance, Resource, Sha256, disk,
    hub::{HubRef, Listing},
    net::{Target, bytes_left},
    store::pinned::source_of,
    store::{Search, Store},
};

/// What ends the name of a file on its way into the pinned cache.
const ENDING: &str = "partial";

/// A file to be fetched: where it stands among the model's, and what its content must be known by.
struct Wanted {
    index: usize,
    id: Option<ContentId>,
}

impl Store {
    /// Fetches a row's files, each under a lock of its own.
    pub(super) fn fetch_pinned(
        &self,
        found: &Found,
        files: &mut [Slot],
        observer: &dyn Observer,
    ) -> Result<(), Error> {
        let Some(cache) = &self.pinned else {
            for (resource, file) in files.iter_mut().filter(|(_, file)| file.is_none()) {
                *file = Some(Err(Search::default().not_cached(found, resource, None)));
            }
            return Ok(());
        };
        let mut wanted = Vec::new();
        let mut listings = HashMap::new();
        for (index, (resource, file)) in files.iter_mut().enumerate() {
            if file.is_none() {
                match self.promised(found, resource, &mut listings) {
                    Ok(id) => wanted.push(Wanted { index, id }),
                    Err(error) => *file = Some(Err(error)),
                }
            }
        }
        let Some(first) = wanted.first() else {
            return Ok(());
        };
        let sizes = wanted.iter().filter_map(|it| files[it.index].0.size);
        let bytes = sizes.fold(0, u64::saturating_add);
        let left = wanted
            .iter()
            .map(|it| bytes_left(&staging(cache, found, &files[it.index].0), ENDING));
        self.check_space(cache.root(), bytes.saturating_sub(left.sum()))?;
        let host = self.first_host(found, &files[first.index].0);
        observer.begin(wanted.len(), bytes, &host);
        disk::tag_cache(cache.root());
        let results = self.at_once(&wanted, |slot, it| {
            self.pin_one(cache, found, &files[it.index].0, it.id, slot, observer)
        });
        for (it, result) in wanted.into_iter().zip(results) {
            files[it.index].1 = Some(result);
        }
        Ok(())
    }

    /// What the content of `resource` must be known by. What its table does not pin, the hub's listing does, which is
    /// asked once for all files of a row; what neither does, nothing, if that is allowed.
    fn promised(
        &self,
        found: &Found,
        resource: &mut Resource,
        listings: &mut HashMap<HubRef, Listing>,
    ) -> Result<Option<ContentId>, Error> {
        if let Some(sha256) = resource.sha256 {
            return Ok(Some(ContentId::Sha256(sha256)));
        }
        if let Some(hub) = resource.hub() {
            if !listings.contains_key(hub) {
                let listing = self.hub.resolve(hub);
                listings.insert(hub.clone(), listing.map_err(|error| ungated(error, found))?);
            }
            let entry = listings[hub].files.get(&resource.file);
            let entry = entry.ok_or_else(|| Error::EntryNotFound {
                repo: hub.to_string(),
                file: resource.file.clone(),
            })?;
            let (size, id) = (entry.size, entry.id());
            resource.size = Some(size);
            return Ok(Some(id));
        }
        if self.options.allow_unpinned {
            return Ok(None);
        }
        Err(Error::Unpinned {
            model: found.model.clone(),
            file: resource.file.clone(),
        })
    }

    fn pin_one(
        &self,
        cache: &PinnedCache,
        found: &Found,
        resource: &Resource,
        id: Option<ContentId>,
        slot: usize,
        observer: &dyn Observer,
    ) -> Result<LocalFile, Error> {
        let name = match resource.sha256 {
            Some(digest) => digest.to_string(),
            None => source_of(resource).unwrap_or_default(),
        };
        let lock = self.lock(&cache.lock_path(&name), &resource.file, observer)?;
        // Another process may have had the lock before.
        let again = cache.pinned(&found.kit, resource);
        if !self.options.force
            && let Some(file) = Search::default().run(self, &found.kit, &again)?
        {
            return Ok(file);
        }
        let place = |sha256: Sha256| {
            let pinned = Resource {
                sha256: Some(sha256),
                ..resource.clone()
            };
            let path = cache.path(&found.kit, &pinned);
            path.expect("it has a digest")
        };
        let target = Target {
            staging: &staging(cache, found, resource),
            ending: ENDING,
            alone: lock.excludes(),
            place: &place,
        };
        let received = self.obtain(found, resource, id, target, slot, observer)?;
        let digest = received.sha256;
        if resource.sha256.is_none() {
            if lock.excludes() {
                cache.sweep_pin(&found.kit, resource);
            }
            cache.write_pin(&found.kit, resource, digest, received.size)?;
            observer.note(&format!(
                "{} of {} has no pin in its table: pinned to sha256 {digest}",
                resource.file, found.model
            ));
        }
        let path = place(digest);
        Ok(local_file(
            resource,
            Provenance::Downloaded,
            Some(digest),
            path,
        ))
    }
}

/// What the name of `resource` on its way begins with.
fn staging(cache: &PinnedCache, found: &Found, resource: &Resource) -> PathBuf {
    cache.path(&found.kit, resource).unwrap_or_else(|| {
        let source = source_of(resource).unwrap_or_default();
        cache.staging_path(&found.kit, resource, &source)
    })
}
