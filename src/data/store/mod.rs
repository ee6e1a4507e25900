//! Where files are on this machine, how they come to it, and how they leave it.

mod export;
#[cfg(feature = "net")]
mod fetch;
mod import;
pub mod inventory;
mod pinned;
mod remove;
mod search;

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use self::search::Search;
use super::{
    Error, Found, HubCache, LocalFile, LocalFiles, NotCached, Observer, Resource, Roots,
    hub::Hub,
    net::{Network, without_query},
    resource::WEIGHTS,
};

pub use self::{
    export::Export,
    import::{Import, Summary},
    inventory::Inventory,
    pinned::{Pin, PinnedCache},
    remove::Removal,
};

/// All places on this machine where a model's files may be, and the way to get those that are not.
///
/// A file is looked for at its pinned path first, then in its sources in order. What is found in a local place or in the
/// hub's cache is used in place. What is found nowhere is fetched: a row's files into the pinned cache, a hub
/// repository's into the hub's cache.
pub struct Store {
    pinned: Option<PinnedCache>,
    places: BTreeMap<String, PathBuf>,
    hub: Arc<Hub>,
    network: Arc<Network>,
    options: Options,
}

/// How files are fetched.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Whether a published file that neither a table nor a hub pins may be fetched; its digest is then written down.
    pub allow_unpinned: bool,
    /// Whether what is here is fetched again.
    pub force: bool,
    /// Whether the room on the disk is not asked for before.
    pub skip_space_check: bool,
}

/// A file that was wanted, and what came of it.
pub type Brought = (Resource, Result<LocalFile, Error>);

/// Where a file stands.
#[derive(Clone, Debug)]
pub enum Standing {
    /// On this machine.
    Here(LocalFile),
    /// Published there; the first address that will be asked.
    Published(String),
    /// Nowhere that is known.
    Nowhere,
}

impl Store {
    /// The caches and places of `roots`, and what can be had over `network`.
    pub fn new(roots: &Roots, network: Arc<Network>) -> Self {
        let cache = roots.hub.as_ref().map(|root| HubCache::new(&root.path));
        Self {
            pinned: roots
                .cache
                .as_ref()
                .map(|root| PinnedCache::new(&root.path)),
            places: roots
                .places
                .iter()
                .map(|(name, root)| (name.clone(), root.path.clone()))
                .collect(),
            hub: Arc::new(Hub::new(cache, network.clone())),
            network,
            options: Options::default(),
        }
    }

    /// Fetches as `options` say.
    pub fn with_options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// The hub, for the provider of its repositories.
    pub fn hub(&self) -> &Arc<Hub> {
        &self.hub
    }

    /// How the network is used.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// The pinned cache, where there is one.
    pub fn pinned(&self) -> Option<&PinnedCache> {
        self.pinned.as_ref()
    }

    /// Where each file of the model stands; nothing is fetched, and nothing is asked over the network.
    ///
    /// # Errors
    /// - [`Error::WrongSize`] when the file at a pinned path has another length than its row says.
    /// - [`Error::WrongDigest`] when linked bytes do not have their digest.
    pub fn status(&self, found: &Found) -> Result<Vec<(Resource, Standing)>, Error> {
        let mut status = Vec::new();
        for resource in self.pinned_resources(found) {
            let standing = match Search::default().run(self, &found.kit, &resource)? {
                Some(file) => Standing::Here(file),
                None => self.origin(&resource).map_or(Standing::Nowhere, |url| {
                    Standing::Published(without_query(&url))
                }),
            };
            status.push((resource, standing));
        }
        Ok(status)
    }

    /// The files of the model, when all of them are on this machine.
    ///
    /// # Errors
    /// As [`Store::status`].
    pub fn local(&self, found: &Found) -> Result<Option<LocalFiles>, Error> {
        let here = |(_, standing): (Resource, Standing)| match standing {
            Standing::Here(file) => Some(file),
            Standing::Published(_) | Standing::Nowhere => None,
        };
        let files: Option<Vec<_>> = self.status(found)?.into_iter().map(here).collect();
        Ok(files.map(LocalFiles::new))
    }

    /// The weights of the model, when they are on this machine.
    ///
    /// # Errors
    /// As [`Store::status`].
    pub fn weights(&self, found: &Found) -> Result<Option<LocalFile>, Error> {
        let is_weights = |(resource, _): &(Resource, Standing)| resource.key == WEIGHTS;
        let weights = self.status(found)?.into_iter().find(is_weights);
        Ok(match weights {
            Some((_, Standing::Here(file))) => Some(file),
            _ => None,
        })
    }

    /// The error that says which file of the model is not here, and what to do about it.
    ///
    /// # Errors
    /// As [`Store::status`].
    pub fn missing(&self, found: &Found) -> Result<Error, Error> {
        for resource in self.pinned_resources(found) {
            let mut search = Search::default();
            if search.run(self, &found.kit, &resource)?.is_none() {
                let why = "this command fetches nothing";
                return Ok(search.not_cached(found, &resource, Some(why)));
            }
        }
        let spec = found.model.clone();
        let reason = "all of it is here";
        Ok(Error::InvalidSpec { spec, reason })
    }

    /// Brings every file of the model to this machine.
    ///
    /// # Errors
    /// As [`Store::status`]; [`Error::NotCached`] when a file is in none of its places and the network may not be asked,
    /// or knows no better; else why the first file that failed could not be fetched.
    pub fn bring_local(&self, found: &Found, observer: &dyn Observer) -> Result<LocalFiles, Error> {
        let files = self.bring_each(found, observer)?;
        let files = files
            .into_iter()
            .map(|(_, file)| file)
            .collect::<Result<_, _>>()?;
        Ok(LocalFiles::new(files))
    }

    /// Brings every file of the model to this machine, and says of each what came of it.
    ///
    /// # Errors
    /// As [`Store::status`], and what keeps all files from being fetched.
    pub fn bring_each(
        &self,
        found: &Found,
        observer: &dyn Observer,
    ) -> Result<Vec<Brought>, Error> {
        let mut files: Vec<(Resource, Option<Result<LocalFile, Error>>)> = Vec::new();
        for resource in self.pinned_resources(found) {
            let mut search = Search::default();
            let mut here = match self.origin(&resource) {
                // Nor does it matter that what is here is damaged.
                Some(_) if self.options.force => None,
                _ => search.run(self, &found.kit, &resource)?.map(Ok),
            };
            let offline = self.network.offline();
            if here.is_none() && (offline.is_some() || self.origin(&resource).is_none()) {
                let offline = offline.filter(|_| self.origin(&resource).is_some());
                here = Some(Err(search.not_cached(found, &resource, offline)));
            }
            files.push((resource, here));
        }
        self.fetch_missing(found, &mut files, observer)?;
        let settled = |(resource, file): (Resource, Option<_>)| -> Brought {
            (
                resource,
                file.expect("every file that was missing was asked for"),
            )
        };
        Ok(files.into_iter().map(settled).collect())
    }

    #[cfg(not(feature = "net"))]
    fn fetch_missing(
        &self,
        _: &Found,
        _: &mut [(Resource, Option<Result<LocalFile, Error>>)],
        _: &dyn Observer,
    ) -> Result<(), Error> {
        Ok(()) // offline, every missing file has its error already
    }

    /// The files of the model with what their tables or earlier fetches pin them by.
    fn pinned_resources(&self, found: &Found) -> Vec<Resource> {
        let pinned = |resource: &Resource| match &self.pinned {
            Some(cache) => cache.pinned(&found.kit, resource),
            None => resource.clone(),
        };
        found.resources.iter().map(pinned).collect()
    }

    /// The address that `resource` would be asked of first.
    fn origin(&self, resource: &Resource) -> Option<String> {
        let settings = self.network.settings();
        let hub = resource.hub().map(|hub| {
            let (repo, revision) = (hub.repo.as_str(), hub.revision.as_str());
            settings.resolve_url(repo, revision, &resource.file)
        });
        resource.url().map(str::to_owned).or(hub)
    }
}

impl Search {
    fn not_cached(
        self,
        found: &Found,
        resource: &Resource,
        offline: Option<&'static str>,
    ) -> Error {
        Error::NotCached(Box::new(NotCached {
            model: found.model.clone(),
            file: resource.file.clone(),
            size: resource.size,
            places: self.places,
            passed_over: self.passed_over,
            url: resource.url().map(str::to_owned),
            instead: found.instead.clone(),
            offline,
        }))
    }
}

#[cfg(test)]
mod tests;
