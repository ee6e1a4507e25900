//! What is not on this machine is fetched.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use super::{Search, Store};
use crate::data::{
    Content, ContentId, Error, Found, HubCache, Layout, LocalFile, Observer, PinnedCache,
    Provenance, Resource, Sha256, Source,
    hub::{HubRef, Linked, Listing},
    lock::Lock,
    net::{Ask, Failure, Received, Refusal, Target, Want, download},
    pinned::source_of,
};

/// A file that is wanted, and what came of it.
type Slot = (Resource, Option<Result<LocalFile, Error>>);

impl Store {
    /// Fetches every file that has no result yet, several at once, and gives each its result.
    pub(super) fn fetch_missing(
        &self,
        found: &Found,
        files: &mut [Slot],
        observer: &dyn Observer,
    ) -> Result<(), Error> {
        if files.iter().all(|(_, file)| file.is_some()) {
            return Ok(());
        }
        match found.layout {
            Layout::Pinned => self.fetch_pinned(found, files, observer),
            Layout::Hub => self.fetch_hub(found, files, observer),
        }
    }

    fn fetch_pinned(
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
        for (i, (resource, file)) in files.iter_mut().enumerate() {
            if file.is_none() {
                match self.promised(found, resource) {
                    Ok(id) => wanted.push((i, id)),
                    Err(error) => *file = Some(Err(error)),
                }
            }
        }
        self.check_space(cache.root(), wanted.iter().map(|(i, _)| files[*i].0.size))?;
        if let Some((first, _)) = wanted.first() {
            let bytes = total(wanted.iter().map(|(i, _)| files[*i].0.size));
            observer.begin(
                wanted.len(),
                bytes,
                &self.first_host(found, &files[*first].0),
            );
        }
        crate::data::disk::tag_cache(cache.root());
        let results = self.at_once(&wanted, |slot, (i, id)| {
            self.pin_one(cache, found, &files[*i].0, *id, slot, observer)
        });
        for ((i, _), result) in wanted.into_iter().zip(results) {
            files[i].1 = Some(result);
        }
        Ok(())
    }

    /// What the content of `resource` must be known by. What its table does not pin, the hub's listing does; what neither
    /// does, nothing, if that is allowed.
    fn promised(&self, found: &Found, resource: &mut Resource) -> Result<Option<ContentId>, Error> {
        if let Some(sha256) = resource.sha256 {
            return Ok(Some(ContentId::Sha256(sha256)));
        }
        if let Some(hub) = resource.hub() {
            let listing = self
                .hub
                .resolve(hub)
                .map_err(|error| ungated(error, found))?;
            let entry = listing
                .files
                .get(&resource.file)
                .ok_or_else(|| Error::EntryNotFound {
                    repo: hub.to_string(),
                    file: resource.file.clone(),
                })?;
            resource.size = Some(entry.size);
            return Ok(Some(entry.id()));
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
        let source = source_of(resource).unwrap_or_default();
        let lock = match resource.sha256 {
            Some(digest) => digest.to_string(),
            None => source.clone(),
        };
        let _lock = self.lock(&cache.lock_path(&lock), &resource.file, observer)?;
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
        let staging = match resource.sha256 {
            Some(digest) => place(digest),
            None => cache.staging_path(&found.kit, resource, &source),
        };
        let target = Target {
            staging: &staging,
            ending: "partial",
            place: &place,
        };
        let received = self.obtain(found, resource, id, target, slot, observer)?;
        if resource.sha256.is_none() {
            cache.write_pin(&found.kit, resource, received.sha256, received.size)?;
            observer.note(&format!(
                "{} of {} has no pin in its table: pinned to sha256 {}",
                resource.file, found.model, received.sha256
            ));
        }
        let digest = received.sha256;
        Ok(local_file(
            resource,
            Provenance::Downloaded,
            Some(digest),
            place(digest),
        ))
    }

    /// Asks one place after another, until one gives what was promised.
    fn obtain(
        &self,
        found: &Found,
        resource: &Resource,
        id: Option<ContentId>,
        target: Target<'_>,
        slot: usize,
        observer: &dyn Observer,
    ) -> Result<Received, Error> {
        let places = self.places_of(found, resource);
        let (mut attempts, mut corrupt, mut last) = (Vec::new(), false, None);
        for (n, place) in places.iter().enumerate() {
            let refusal = match self.download(place, resource, id, target, slot, observer) {
                Ok(received) => return Ok(received),
                Err(Refusal::Here(error)) => return Err(error),
                Err(refusal) => refusal,
            };
            let said = refusal.of_url(&place.url);
            if n + 1 < places.len() {
                observer.note(&format!("{said}; trying the next place"));
            }
            attempts.push(said);
            match refusal {
                Refusal::Corrupt(_) => corrupt = true,
                Refusal::Failure(failure) => last = Some((failure, place)),
                Refusal::Here(error) => return Err(error),
            }
        }
        match last {
            // The last word is the hub's, or the only place's, and it did not break off half-way.
            Some((failure, place)) if !corrupt && !matches!(failure, Failure::Body(_)) => {
                Err(self.failed(&failure, place, found, &resource.file))
            }
            _ => Err(Error::DownloadFailed {
                file: resource.file.clone(),
                attempts,
                corrupt,
            }),
        }
    }

    fn download(
        &self,
        place: &Place<'_>,
        resource: &Resource,
        id: Option<ContentId>,
        target: Target<'_>,
        slot: usize,
        observer: &dyn Observer,
    ) -> Result<Received, Refusal> {
        let settings = self.network.settings();
        let ask = Ask {
            // Only the hub is to know who we are.
            token: settings.token.as_ref().filter(|_| place.hub.is_some()),
            ..Ask::new(&place.url)
        };
        let want = Want {
            size: resource.size,
            id,
        };
        observer.open(slot, &resource.file, resource.size);
        let received = download(self.network.http(), ask, want, target, slot, observer);
        observer.close(slot);
        received
    }

    fn failed(&self, failure: &Failure, place: &Place<'_>, found: &Found, file: &str) -> Error {
        match place.hub {
            Some(hub) => {
                let error = self.hub.api().error(failure, &place.url, hub, Some(file));
                ungated(error, found)
            }
            None => failure.of_url(&place.url),
        }
    }

    /// Where `resource` may be had from: the mirrors, then the places that its table names.
    fn places_of<'r>(&self, found: &Found, resource: &'r Resource) -> Vec<Place<'r>> {
        let settings = self.network.settings();
        let path = PinnedCache::relative_path(&found.kit, resource);
        let mirrors = settings.mirrors.iter().zip(path.iter().cycle());
        let mirrors = mirrors.map(|(mirror, path)| Place {
            url: format!("{mirror}/pretrained/{path}"),
            hub: None,
        });
        let published = resource.sources.iter().filter_map(|source| match source {
            Source::Url(url) => Some(Place {
                url: url.clone(),
                hub: None,
            }),
            Source::Hub(hub) => Some(Place {
                url: settings.resolve_url(hub.repo.as_str(), hub.revision.as_str(), &resource.file),
                hub: Some(hub),
            }),
            Source::Local(_) | Source::Linked(_) | Source::Given(_) => None,
        });
        mirrors.chain(published).collect()
    }

    /// Scheme and host of the place that is asked for `resource` first.
    fn first_host(&self, found: &Found, resource: &Resource) -> String {
        let places = self.places_of(found, resource);
        let url = places.first().map_or("", |place| &place.url);
        let end = url
            .match_indices('/')
            .nth(2)
            .map_or(url.len(), |(at, _)| at);
        url[..end].to_owned()
    }

    fn fetch_hub(
        &self,
        found: &Found,
        files: &mut [Slot],
        observer: &dyn Observer,
    ) -> Result<(), Error> {
        let wanted: Vec<_> = (0..files.len()).filter(|&i| files[i].1.is_none()).collect();
        let requested = found.row.as_ref().and_then(|row| row.hub.as_ref());
        let at = wanted.first().and_then(|&i| files[i].0.hub());
        let commit = at.and_then(|hub| hub.revision.commit());
        let (Some(requested), Some(commit), Some(cache)) = (requested, commit, self.hub.cache())
        else {
            for (resource, file) in files.iter_mut().filter(|(_, file)| file.is_none()) {
                *file = Some(Err(Search::default().not_cached(found, resource, None)));
            }
            return Ok(());
        };
        let listing = self.hub.listing(&requested.repo, &commit)?;
        let path = cache.lock_path(&requested.repo);
        let _lock = self.lock(&path, requested.repo.as_str(), observer)?;
        cache.begin(&listing)?;
        let sizes = || wanted.iter().map(|&i| files[i].0.size);
        self.check_space(cache.root(), sizes())?;
        let host = self.first_host(found, &files[wanted[0]].0);
        observer.begin(wanted.len(), total(sizes()), &host);
        let (blobs, mut results) = grouped(&wanted, files, &listing);
        let blobs: Vec<_> = blobs.into_iter().collect();
        let brought = self.at_once(&blobs, |slot, (id, twins)| {
            let resources: Vec<_> = twins.iter().map(|&i| &files[i].0).collect();
            self.bring_blob(cache, found, &listing, *id, &resources, slot, observer)
        });
        for ((_, twins), files) in blobs.into_iter().zip(brought) {
            results.extend(twins.into_iter().zip(files));
        }
        for (i, result) in results {
            files[i].1 = Some(result);
        }
        if files.iter().all(|(_, file)| matches!(file, Some(Ok(_)))) {
            cache.finish(&listing, std::slice::from_ref(&requested.revision))?;
        }
        Ok(())
    }

    /// Brings the blob `id` and puts it into the snapshot wherever it belongs, once for each of `twins`.
    #[expect(clippy::too_many_arguments, reason = "one call, and all of it is used")]
    fn bring_blob(
        &self,
        cache: &HubCache,
        found: &Found,
        listing: &Listing,
        id: ContentId,
        twins: &[&Resource],
        slot: usize,
        observer: &dyn Observer,
    ) -> Vec<Result<LocalFile, Error>> {
        let blob = cache.blob_path(&listing.repo, &id);
        let snapshot = || cache.snapshot_of(&listing.repo, &listing.commit);
        let here = |file: &str| snapshot().and_then(|snapshot| snapshot.file(file));
        let first = twins[0];
        let size = listing.files[&first.file].size;
        // Another process may have had the lock before.
        let is_here = twins.iter().all(|twin| here(&twin.file).is_some());
        let is_here = !self.options.force && (is_here || is_whole(&blob, size));
        let provenance = if is_here {
            Provenance::HfCache
        } else {
            Provenance::Downloaded
        };
        if !is_here {
            let place = |_| blob.clone();
            let target = Target {
                staging: &blob,
                ending: "incomplete",
                place: &place,
            };
            let wanted = Resource {
                size: Some(size),
                ..first.clone()
            };
            if let Err(error) = self.obtain(found, &wanted, Some(id), target, slot, observer) {
                let others = twins[1..].iter().map(|twin| {
                    Err(Error::DownloadFailed {
                        file: twin.file.clone(),
                        attempts: vec![format!(
                            "it is the same file as `{}`, which failed",
                            first.file
                        )],
                        corrupt: false,
                    })
                });
                return std::iter::once(Err(error)).chain(others).collect();
            }
        }
        let mut copied = false;
        let mut put = |twin: &&Resource| {
            if here(&twin.file).is_none() || !is_here {
                copied |= cache.link(listing, &twin.file)? == Linked::Copied;
            }
            let path = here(&twin.file).ok_or_else(|| Error::DownloadFailed {
                file: twin.file.clone(),
                attempts: vec!["it is not there after it was fetched".to_owned()],
                corrupt: true,
            })?;
            Ok(local_file(twin, provenance, twin.sha256, path))
        };
        let files = twins.iter().map(&mut put).collect();
        if copied {
            observer.note("this file system has no links: the snapshot holds the files themselves");
            let _ = std::fs::remove_file(&blob);
        }
        files
    }

    fn lock(&self, path: &Path, what: &str, observer: &dyn Observer) -> Result<Lock, Error> {
        Lock::take(path, self.network.settings().lock_timeout, |pid| {
            let who = pid.map_or_else(
                || "another process".to_owned(),
                |pid| format!("process {pid}"),
            );
            observer.note(&format!("waiting for {who}, which is fetching {what}"));
        })
    }

    /// Runs `each` over `items` on as many threads as files may come at once, and gives the results in order.
    fn at_once<T: Sync, R: Send>(
        &self,
        items: &[T],
        each: impl Fn(usize, &T) -> R + Sync,
    ) -> Vec<R> {
        let next = AtomicUsize::new(0);
        let results = Mutex::new(Vec::with_capacity(items.len()));
        let jobs = self.network.settings().jobs.clamp(1, items.len().max(1));
        thread::scope(|scope| {
            for _ in 0..jobs {
                scope.spawn(|| {
                    loop {
                        let i = next.fetch_add(1, Ordering::Relaxed);
                        let Some(item) = items.get(i) else { break };
                        let result = each(i, item);
                        let mut results = results.lock().unwrap_or_else(PoisonError::into_inner);
                        results.push((i, result));
                    }
                });
            }
        });
        let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
        results.sort_by_key(|(i, _)| *i);
        results.into_iter().map(|(_, result)| result).collect()
    }

    fn check_space(
        &self,
        dir: &Path,
        sizes: impl Iterator<Item = Option<u64>>,
    ) -> Result<(), Error> {
        let needed = total(sizes);
        let exists = dir.ancestors().find(|dir| dir.is_dir());
        match exists.map(fs4::available_space) {
            Some(Ok(free)) if free < needed && !self.options.skip_space_check => {
                Err(Error::NoSpace {
                    path: dir.to_owned(),
                    needed,
                    free,
                })
            }
            _ => Ok(()), // there is room, or the system does not say
        }
    }
}

/// One place to ask.
struct Place<'r> {
    url: String,
    /// The repository, when the place is the hub.
    hub: Option<&'r HubRef>,
}

/// The wanted files by content, each content once, and the files that the listing does not have.
#[expect(clippy::type_complexity, reason = "an index with what came of it")]
fn grouped(
    wanted: &[usize],
    files: &[Slot],
    listing: &Listing,
) -> (
    BTreeMap<ContentId, Vec<usize>>,
    Vec<(usize, Result<LocalFile, Error>)>,
) {
    let mut blobs: BTreeMap<ContentId, Vec<usize>> = BTreeMap::new();
    let mut missing = Vec::new();
    for &i in wanted {
        let file = &files[i].0.file;
        match listing.files.get(file) {
            Some(entry) => blobs.entry(entry.id()).or_default().push(i),
            None => missing.push((
                i,
                Err(Error::EntryNotFound {
                    repo: listing.repo.to_string(),
                    file: file.clone(),
                }),
            )),
        }
    }
    (blobs, missing)
}

fn local_file(
    resource: &Resource,
    provenance: Provenance,
    digest: Option<Sha256>,
    path: PathBuf,
) -> LocalFile {
    LocalFile {
        key: resource.key.clone(),
        file: resource.file.clone(),
        kind: resource.kind,
        provenance,
        digest,
        content: Content::Path(path),
    }
}

/// Whether all of the blob is there. It got its name only when it was, and a length that differs is damage.
fn is_whole(blob: &Path, size: u64) -> bool {
    blob.metadata()
        .is_ok_and(|it| it.is_file() && it.len() == size)
}

/// A gate's error with the way around it that the row knows.
fn ungated(mut error: Error, found: &Found) -> Error {
    if let Error::Gated { ungated, .. } = &mut error {
        ungated.clone_from(&found.row.as_ref().and_then(|row| row.ungated.clone()));
    }
    error
}

/// Bytes of the files whose length is known.
fn total(sizes: impl Iterator<Item = Option<u64>>) -> u64 {
    sizes.flatten().fold(0, u64::saturating_add)
}
