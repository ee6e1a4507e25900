use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use super::{Slot, local_file};
use crate::data::{
    ContentId, Error, Found, HubCache, LocalFile, Observer, Provenance, Resource,
    hub::{Commit, HubRef, Listing, Put},
    lock::Lock,
    net::{Target, bytes_left},
    store::{Search, Store},
};

/// What ends the name of a file on its way into the hub's cache. The Python library's end in the last word of it; those
/// are not ours to go on with.
const ENDING: &str = "pretrained.incomplete";

/// Files of one content: which blob that is, its length in bytes, and where they stand among the model's.
struct Blob {
    id: ContentId,
    size: u64,
    twins: Vec<usize>,
}

impl Store {
    /// Fetches a repository's files, all under one lock, and then what the revision means.
    pub(super) fn fetch_hub(
        &self,
        found: &Found,
        files: &mut [Slot],
        observer: &dyn Observer,
    ) -> Result<(), Error> {
        let Some((cache, requested, commit)) = self.requested(found) else {
            for (resource, file) in files.iter_mut().filter(|(_, file)| file.is_none()) {
                *file = Some(Err(Search::default().not_cached(found, resource, None)));
            }
            return Ok(());
        };
        let listing = self.hub.listing(&requested.repo, &commit)?;
        let path = cache.lock_path(&requested.repo);
        let lock = self.lock(&path, requested.repo.as_str(), observer)?;
        let fetch = HubFetch {
            store: self,
            cache,
            found,
            listing: &listing,
            alone: lock.excludes(),
            observer,
            told: AtomicBool::new(false),
        };
        let blobs = grouped(files, &listing);
        // Another process may have had the lock before.
        let missing: Vec<_> = blobs.iter().filter(|it| !fetch.has(it, files)).collect();
        let bytes = missing
            .iter()
            .fold(0, |sum: u64, it| sum.saturating_add(it.size));
        let left = missing
            .iter()
            .map(|it| bytes_left(&cache.blob_path(&requested.repo, &it.id), ENDING));
        self.check_space(cache.root(), bytes.saturating_sub(left.sum()))?;
        if lock.excludes() {
            cache.sweep(&requested.repo);
        }
        cache.begin(&listing)?;
        if let Some(first) = missing.first() {
            let host = self.first_host(found, &files[first.twins[0]].0);
            observer.begin(missing.len(), bytes, &host);
        }
        let brought = self.at_once(&blobs, |slot, blob| fetch.bring(blob, files, slot));
        for (blob, results) in blobs.into_iter().zip(brought) {
            for (i, result) in blob.twins.into_iter().zip(results) {
                files[i].1 = Some(result);
            }
        }
        let is_wrong = |file: &Option<Result<_, Error>>| {
            matches!(
                file,
                Some(Err(
                    Error::EntryNotFound { .. } | Error::DownloadFailed { corrupt: true, .. }
                ))
            )
        };
        if files.iter().any(|(_, file)| is_wrong(file)) {
            // Perhaps it is the listing that is wrong; the next run is to ask for it again.
            cache.forget(&listing)?;
        }
        if files.iter().all(|(_, file)| matches!(file, Some(Ok(_)))) {
            let revisions = std::slice::from_ref(&requested.revision);
            cache.finish(&requested.repo, &commit, revisions)?;
        }
        Ok(())
    }

    /// Writes down what is not yet, when all files are here: the listing of a snapshot that another program made, and what
    /// an interrupted fetch did not come to. Only who is offline depends on it, so nobody waits, and a cache that cannot be
    /// written stays as it is.
    pub(super) fn settle(&self, found: &Found) {
        let Some((cache, requested, commit)) = self.requested(found) else {
            return;
        };
        let asked = self.hub.asked(&requested.repo, &commit);
        let unrecorded = asked.filter(|it| cache.listing(&it.repo, &it.commit).is_none());
        if unrecorded.is_none() && cache.is_finished(&commit, requested) {
            return;
        }
        let path = cache.lock_path(&requested.repo);
        if let Ok(lock) = Lock::take(&path, Duration::ZERO, |_| ()) {
            if lock.excludes() {
                cache.sweep(&requested.repo);
            }
            let recorded = unrecorded.map(|listing| cache.record(&listing));
            let revisions = std::slice::from_ref(&requested.revision);
            let _ = recorded
                .unwrap_or(Ok(()))
                .and_then(|()| cache.finish(&requested.repo, &commit, revisions));
        }
    }

    /// What was asked of the hub, and the commit that it means.
    fn requested<'a>(&'a self, found: &'a Found) -> Option<(&'a HubCache, &'a HubRef, Commit)> {
        let requested = found.row.as_ref()?.hub.as_ref()?;
        let at = found.resources.iter().find_map(Resource::hub)?;
        Some((self.hub.cache()?, requested, at.revision.commit()?))
    }
}

/// One fetch of a repository's files.
struct HubFetch<'a> {
    store: &'a Store,
    cache: &'a HubCache,
    found: &'a Found,
    listing: &'a Listing,
    alone: bool,
    observer: &'a dyn Observer,
    /// Whether it was said that there are no links.
    told: AtomicBool,
}

impl HubFetch<'_> {
    /// Whether nothing of `blob` need come over the network.
    fn has(&self, blob: &Blob, files: &[Slot]) -> bool {
        if self.store.options.force {
            return false;
        }
        // It got its name only when all of it was there, and a length that differs is damage.
        let path = self.cache.blob_path(&self.listing.repo, &blob.id);
        let is_whole = path
            .metadata()
            .is_ok_and(|it| it.is_file() && it.len() == blob.size);
        is_whole || blob.twins.iter().all(|&i| self.path(&files[i].0).is_some())
    }

    /// Where a file is in the snapshot, if it is.
    fn path(&self, resource: &Resource) -> Option<PathBuf> {
        let snapshot = self
            .cache
            .snapshot_of(&self.listing.repo, &self.listing.commit)?;
        snapshot.file(&resource.file)
    }

    /// Brings `blob` and puts it into the snapshot wherever it belongs; a result for each of its twins.
    fn bring(&self, blob: &Blob, files: &[Slot], slot: usize) -> Vec<Result<LocalFile, Error>> {
        let twins: Vec<_> = blob.twins.iter().map(|&i| &files[i].0).collect();
        let mut has = self.has(blob, files);
        let brought = if has {
            Ok(())
        } else {
            self.lock(blob, twins[0]).and_then(|_lock| {
                has = self.has(blob, files);
                if has {
                    Ok(())
                } else {
                    self.obtain(blob, twins[0], slot)
                }
            })
        };
        if let Err(error) = brought.and_then(|()| self.put(&twins, !has)) {
            let others = twins[1..].iter().map(|twin| {
                Err(Error::DownloadFailed {
                    file: twin.file.clone(),
                    attempts: vec![format!(
                        "it is the same file as `{}`, which failed",
                        twins[0].file
                    )],
                    corrupt: false,
                })
            });
            return std::iter::once(Err(error)).chain(others).collect();
        }
        let provenance = if has {
            Provenance::HfCache
        } else {
            Provenance::Downloaded
        };
        let local = |twin: &&Resource| {
            let path = self.path(twin).ok_or_else(|| Error::DownloadFailed {
                file: twin.file.clone(),
                attempts: vec!["it is not there after it was fetched".to_owned()],
                corrupt: true,
            })?;
            Ok(LocalFile {
                git_blob: self.listing.files[&twin.file].git_blob(),
                ..local_file(twin, provenance, twin.sha256, path)
            })
        };
        twins.iter().map(local).collect()
    }

    /// The lock that the Python library takes for a blob; without it the same comes twice, and nothing worse.
    fn lock(&self, blob: &Blob, first: &Resource) -> Result<Option<Lock>, Error> {
        let path = self.cache.lock_of(&self.listing.repo, &blob.id.to_string());
        match self.store.lock(&path, &first.file, self.observer) {
            Ok(lock) => Ok(Some(lock)),
            Err(error @ Error::Locked { .. }) => Err(error),
            Err(_) => Ok(None),
        }
    }

    fn obtain(&self, blob: &Blob, first: &Resource, slot: usize) -> Result<(), Error> {
        let path = self.cache.blob_path(&self.listing.repo, &blob.id);
        let target = Target {
            staging: &path,
            ending: ENDING,
            alone: self.alone,
            place: &|_| path.clone(),
        };
        let wanted = Resource {
            size: Some(blob.size),
            ..first.clone()
        };
        let (found, observer) = (self.found, self.observer);
        self.store
            .obtain(found, &wanted, Some(blob.id), target, slot, observer)
            .map(drop)
    }

    /// Puts the files into the snapshot that are not there, or all of them when they are `new`.
    fn put(&self, twins: &[&Resource], new: bool) -> Result<(), Error> {
        let paths: Vec<_> = twins
            .iter()
            .filter(|twin| new || self.path(twin).is_none())
            .map(|twin| twin.file.as_str())
            .collect();
        match self.cache.put(self.listing, &paths) {
            Ok(Put::Linked) => {}
            Ok(Put::Moved) => {
                if !self.told.swap(true, Ordering::Relaxed) {
                    self.observer.note(
                        "this file system has no links: the snapshot holds the files themselves",
                    );
                }
            }
            // Where there are no locks either, another process may have moved the blob.
            Err(_) if !self.alone && twins.iter().all(|twin| self.path(twin).is_some()) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

/// The wanted files by content; those that the listing does not have get their error.
fn grouped(files: &mut [Slot], listing: &Listing) -> Vec<Blob> {
    let mut blobs: BTreeMap<ContentId, Blob> = BTreeMap::new();
    let wanted = files.iter_mut().enumerate();
    for (i, (resource, file)) in wanted.filter(|(_, (_, file))| file.is_none()) {
        let Some(entry) = listing.files.get(&resource.file) else {
            *file = Some(Err(Error::EntryNotFound {
                repo: listing.repo.to_string(),
                file: resource.file.clone(),
            }));
            continue;
        };
        let blob = blobs.entry(entry.id()).or_insert_with(|| Blob {
            id: entry.id(),
            size: entry.size,
            twins: Vec::new(),
        });
        blob.twins.push(i);
    }
    blobs.into_values().collect()
}
