//! What is not on this machine is fetched.

mod hub;
mod pinned;

use std::{
    path::{Path, PathBuf},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use super::Store;
use crate::data::{
    Content, ContentId, Error, Found, Layout, LocalFile, Observer, PinnedCache, Provenance,
    Resource, Sha256, Source,
    hub::HubRef,
    lock::Lock,
    net::{Ask, Failure, Received, Refusal, Target, Want, download, without_query},
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
            let all_here = files.iter().all(|(_, file)| matches!(file, Some(Ok(_))));
            if found.layout == Layout::Hub && all_here && self.network.offline().is_none() {
                self.settle(found);
            }
            return Ok(());
        }
        match found.layout {
            Layout::Pinned => self.fetch_pinned(found, files, observer),
            Layout::Hub => self.fetch_hub(found, files, observer),
        }
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
        let url = without_query(url);
        let end = url
            .match_indices('/')
            .nth(2)
            .map_or(url.len(), |(at, _)| at);
        url[..end].to_owned()
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

    /// Whether `needed` bytes have room in `dir`, or where it will be made.
    fn check_space(&self, dir: &Path, needed: u64) -> Result<(), Error> {
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
        git_blob: None,
        content: Content::Path(path),
    }
}

/// A gate's error with the way around it that the row knows.
fn ungated(mut error: Error, found: &Found) -> Error {
    if let Error::Gated { ungated, .. } = &mut error {
        ungated.clone_from(&found.row.as_ref().and_then(|row| row.ungated.clone()));
    }
    error
}
