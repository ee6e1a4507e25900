use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, PoisonError},
};

use super::select::is_pickle;
use super::{Choice, Commit, HubCache, HubRef, Listing, RepoId, Snapshot};
use crate::data::{
    Error, Layout, NotCached, Provider, Resource, ResourceMap, Row, Source,
    conventions::{Weights, role, shards_of},
    net::Network,
};

/// The prefix that chooses the hub.
const NAME: &str = "hf";

/// The hub as this machine sees it: its cache, and what can be asked over the network.
pub struct Hub {
    cache: Option<HubCache>,
    network: Arc<Network>,
    /// What was asked in this run.
    listings: Mutex<HashMap<(RepoId, Commit), Listing>>,
}

impl Hub {
    /// The hub behind `network`, with its cache where there is one.
    pub fn new(cache: Option<HubCache>, network: Arc<Network>) -> Self {
        Self {
            cache,
            network,
            listings: Mutex::default(),
        }
    }

    /// Its cache on this machine.
    pub fn cache(&self) -> Option<&HubCache> {
        self.cache.as_ref()
    }

    /// What the reference leads to now, as the network says.
    ///
    /// # Errors
    /// [`Error::NotCached`] when the network may not be asked; else what the hub answers: [`Error::RepositoryNotFound`],
    /// [`Error::RevisionNotFound`], [`Error::Gated`], [`Error::TokenRefused`], [`Error::Unsafe`], [`Error::Network`].
    pub fn resolve(&self, hub: &HubRef) -> Result<Listing, Error> {
        if let Some(why) = self.network.offline() {
            return Err(not_here(hub, why));
        }
        let commit = self.ask_commit(hub)?;
        self.listing(&hub.repo, &commit)
    }

    /// What `repo` holds at `commit`, if that was asked in this run.
    #[cfg(feature = "net")]
    pub(in crate::data) fn asked(&self, repo: &RepoId, commit: &Commit) -> Option<Listing> {
        let listings = self.listings.lock().unwrap_or_else(PoisonError::into_inner);
        listings.get(&(repo.clone(), commit.clone())).cloned()
    }

    /// What `repo` holds at `commit`: as it was asked in this run, or written down, or else asked now.
    ///
    /// # Errors
    /// As [`Hub::resolve`].
    pub fn listing(&self, repo: &RepoId, commit: &Commit) -> Result<Listing, Error> {
        let key = (repo.clone(), commit.clone());
        let asked = || self.listings.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(listing) = asked().get(&key) {
            return Ok(listing.clone());
        }
        if let Some(listing) = self.cache.as_ref().and_then(|it| it.listing(repo, commit)) {
            return Ok(listing);
        }
        if let Some(why) = self.network.offline() {
            let revision = commit.clone().into();
            let repo = repo.clone();
            return Err(not_here(&HubRef { repo, revision }, why));
        }
        let listing = self.ask_listing(repo, commit)?;
        asked().insert(key, listing.clone());
        Ok(listing)
    }

    #[cfg(feature = "net")]
    pub(in crate::data) fn api(&self) -> super::api::Api<'_> {
        super::api::Api {
            http: self.network.http(),
            settings: self.network.settings(),
        }
    }

    #[cfg(feature = "net")]
    fn ask_commit(&self, hub: &HubRef) -> Result<Commit, Error> {
        let mut answer = self.api().commit(hub);
        if let (Err(Error::RevisionNotFound { known, .. }), Some(cache)) =
            (&mut answer, &self.cache)
        {
            let refs = cache.refs(&hub.repo);
            *known = refs
                .into_iter()
                .map(|(revision, _)| revision.to_string())
                .collect();
        }
        answer
    }

    #[cfg(feature = "net")]
    fn ask_listing(&self, repo: &RepoId, commit: &Commit) -> Result<Listing, Error> {
        self.api().listing(repo, commit)
    }

    #[cfg(not(feature = "net"))]
    fn ask_commit(&self, hub: &HubRef) -> Result<Commit, Error> {
        Err(not_here(hub, "this build has no network code"))
    }

    #[cfg(not(feature = "net"))]
    fn ask_listing(&self, repo: &RepoId, commit: &Commit) -> Result<Listing, Error> {
        let revision = commit.clone().into();
        let repo = repo.clone();
        Err(not_here(
            &HubRef { repo, revision },
            "this build has no network code",
        ))
    }
}

fn not_here(hub: &HubRef, offline: &'static str) -> Error {
    Error::NotCached(Box::new(NotCached {
        model: format!("{NAME}:{hub}"),
        file: "its list of files".to_owned(),
        size: None,
        places: Vec::new(),
        passed_over: Vec::new(),
        url: None,
        instead: Vec::new(),
        offline: Some(offline),
    }))
}

/// The provider of the hub's repositories, `hf`: `hf:org/repo`, or `hf:org/repo@revision`.
///
/// It answers no bare name, so that a misspelt one never becomes a request. A repository that is in the cache is
/// answered from there, however its branch has moved on; without a request, once there is a listing of it.
pub struct HubProvider {
    hub: Arc<Hub>,
    choice: Choice,
    refresh: bool,
}

impl HubProvider {
    /// The repositories of `hub`, of each the files that `choice` wants; with `refresh`, the hub is asked even for what is
    /// in the cache.
    pub fn new(hub: Arc<Hub>, choice: Choice, refresh: bool) -> Self {
        Self {
            hub,
            choice,
            refresh,
        }
    }

    fn listing_row(&self, hub: &HubRef, listing: &Listing) -> Result<Row, Error> {
        let model = format!("{NAME}:{hub}");
        // A pickle that is here was allowed when it was fetched.
        let mut choice = self.choice.clone();
        let here = self.hub.cache.as_ref();
        let here = here.and_then(|cache| cache.snapshot_of(&hub.repo, &listing.commit));
        choice.allow_pickle |= here.is_some_and(|it| it.paths().iter().any(|path| is_pickle(path)));
        let paths = choice.of(&model, listing)?;
        let files = paths.iter().map(|&path| {
            let entry = &listing.files[path];
            (path.to_owned(), entry.lfs_sha256, Some(entry.size))
        });
        row(hub, &listing.commit, files.collect())
    }

    /// A snapshot that another program made says what it has, and its index what it should have.
    fn snapshot_row(&self, hub: &HubRef, snapshot: &Snapshot) -> Result<Row, Error> {
        let mut paths = snapshot.paths();
        paths.extend(weights(snapshot));
        paths.sort();
        paths.dedup();
        let files = paths.into_iter().map(|path| (path, None, None));
        row(hub, &snapshot.commit, files.collect())
    }
}

impl Provider for HubProvider {
    fn name(&self) -> &str {
        NAME
    }

    fn get(&self, reference: &str) -> Result<Option<Row>, Error> {
        let hub: HubRef = reference.parse().map_err(|reason| Error::InvalidSpec {
            spec: format!("{NAME}:{reference}"),
            reason,
        })?;
        let cached = self
            .hub
            .cache
            .as_ref()
            .and_then(|cache| cache.snapshot(&hub));
        let is_offline = self.hub.network.offline().is_some();
        let listing = match cached.filter(|_| !self.refresh || is_offline) {
            None => self.hub.resolve(&hub)?,
            Some(snapshot) => match snapshot.listing.clone() {
                Some(listing) => listing,
                // Another program made it, perhaps with no more than it needed.
                None if !is_offline => match self.hub.listing(&hub.repo, &snapshot.commit) {
                    Ok(listing) => listing,
                    Err(_) if looks_whole(&snapshot) => {
                        return self.snapshot_row(&hub, &snapshot).map(Some);
                    }
                    Err(error) => return Err(error),
                },
                None if !snapshot.unfinished && !weights(&snapshot).is_empty() => {
                    return self.snapshot_row(&hub, &snapshot).map(Some);
                }
                // Perhaps no more than a configuration that somebody looked at; only the hub knows what is missing.
                None => self.hub.resolve(&hub)?,
            },
        };
        self.listing_row(&hub, &listing).map(Some)
    }

    fn answers_bare_names(&self) -> bool {
        false
    }

    fn layout(&self) -> Layout {
        Layout::Hub
    }
}

/// The weights that the snapshot has, and the shards that their index says it should have.
fn weights(snapshot: &Snapshot) -> Vec<String> {
    let paths = snapshot.paths();
    let names: Vec<_> = paths.iter().map(String::as_str).collect();
    if let Weights::File(file) = Weights::among(&names) {
        let shards = snapshot.file(file).and_then(|index| shards_of(&index));
        let shards = shards.into_iter().flatten();
        return shards.chain([file.to_owned()]).collect();
    }
    let is_gguf = |path: &String| path.ends_with(".gguf");
    paths.into_iter().filter(is_gguf).collect()
}

/// Whether the snapshot has weights, and all of them, as far as it says itself.
fn looks_whole(snapshot: &Snapshot) -> bool {
    let weights = weights(snapshot);
    !snapshot.unfinished
        && !weights.is_empty()
        && weights.iter().all(|path| snapshot.file(path).is_some())
}

/// A repository as a row: `files` are paths with digests and lengths, as far as they are known.
fn row(
    hub: &HubRef,
    commit: &Commit,
    files: Vec<(String, Option<crate::data::Sha256>, Option<u64>)>,
) -> Result<Row, Error> {
    let paths: Vec<_> = files.iter().map(|(path, ..)| path.as_str()).collect();
    let mut weights = match Weights::among(&paths) {
        Weights::File(name) => Some(name.to_owned()),
        _ => None,
    };
    if weights.is_none() {
        weights = paths
            .iter()
            .find(|path| path.ends_with(".gguf"))
            .map(|&path| path.to_owned());
    }
    let pinned = HubRef {
        repo: hub.repo.clone(),
        revision: commit.clone().into(),
    };
    let mut resources = BTreeMap::new();
    for (path, sha256, size) in files {
        let (key, kind) = role(&path, weights.as_deref());
        let resource = Resource {
            key: key.to_owned(),
            kind,
            namespace: hub.repo.owner().to_owned(),
            sha256,
            size,
            sources: vec![Source::Hub(pinned.clone())],
            file: path.clone(),
        };
        resources.insert(path, resource);
    }
    let resources = ResourceMap::try_from(resources.into_values().collect::<Vec<_>>());
    Ok(Row {
        name: hub.repo.to_string(),
        aliases: Vec::new(),
        prefab: None,
        license: "unknown".to_owned(),
        origin: format!("{NAME}:{hub}"),
        hub: Some(hub.clone()),
        gated: false,
        ungated: None,
        descriptor: toml::Table::new(),
        resources: resources.map_err(|defect| Error::Manifest {
            table: NAME.to_owned(),
            line: 1,
            defect,
        })?,
    })
}
