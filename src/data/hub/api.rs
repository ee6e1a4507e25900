use std::collections::{BTreeMap, HashSet};

use serde::Deserialize;

use super::{Commit, Entry, HubRef, Listing, RepoId};
use crate::data::{
    Error, GitBlob, Sha256, Signature,
    net::{Ask, Document, Failure, Http, Settings, escaped},
};

/// Pages that a listing may have; the hub's have a thousand files each.
const PAGES: usize = 1000;

/// What the hub answers of a repository.
pub(in crate::data) struct Api<'a> {
    pub(in crate::data) http: &'a Http,
    pub(in crate::data) settings: &'a Settings,
}

impl Api<'_> {
    /// The commit that the reference means now.
    ///
    /// # Errors
    /// [`Error::RepositoryNotFound`], [`Error::RevisionNotFound`], [`Error::Gated`], [`Error::TokenRefused`],
    /// [`Error::Network`], or [`Error::Unsafe`] for what is no commit.
    pub(in crate::data) fn commit(&self, hub: &HubRef) -> Result<Commit, Error> {
        #[derive(Deserialize)]
        struct Info {
            sha: String,
        }
        if let Some(commit) = hub.revision.commit() {
            return Ok(commit);
        }
        let revision = escaped(hub.revision.as_str(), "");
        let url = format!(
            "{}/api/models/{}/revision/{revision}",
            self.settings.endpoint, hub.repo
        );
        let page = self.document(&url, hub, None)?;
        let info: Info = parsed(&url, &page.bytes)?;
        info.sha.parse().map_err(|reason| Error::Unsafe {
            repo: hub.repo.to_string(),
            what: "commit",
            value: info.sha,
            reason,
        })
    }

    /// What `repo` holds at `commit`.
    ///
    /// # Errors
    /// As [`Api::commit`]; [`Error::Unsafe`] for a path that must not become a file.
    pub(in crate::data) fn listing(
        &self,
        repo: &RepoId,
        commit: &Commit,
    ) -> Result<Listing, Error> {
        let hub = HubRef {
            repo: repo.clone(),
            revision: commit.clone().into(),
        };
        let mut files = BTreeMap::new();
        let mut url = format!(
            "{}/api/models/{repo}/tree/{commit}?recursive=true&expand=false",
            self.settings.endpoint
        );
        let mut seen = HashSet::new();
        while seen.len() < PAGES && seen.insert(url.clone()) {
            let page = self.document(&url, &hub, None)?;
            let items: Vec<Item> = parsed(&url, &page.bytes)?;
            files.extend(items.into_iter().filter_map(Item::into_entry));
            let Some(next) = page.next else {
                return Listing::new(repo.clone(), commit.clone(), files);
            };
            url = self.next(&url, next)?;
        }
        Err(Failure::Redirect("lists without end").of_url(&url))
    }

    /// The address of a following page, which must be the hub's own: the token goes there too.
    fn next(&self, url: &str, next: String) -> Result<String, Error> {
        if next.starts_with(&format!("{}/", self.settings.endpoint)) {
            return Ok(next);
        }
        match next.split_once("/api/models/") {
            // Behind a proxy the hub may not know its own address.
            Some((_, rest)) => Ok(format!("{}/api/models/{rest}", self.settings.endpoint)),
            None => Err(Failure::Redirect("goes on at an address of another kind").of_url(url)),
        }
    }

    fn document(&self, url: &str, hub: &HubRef, file: Option<&str>) -> Result<Document, Error> {
        let ask = Ask {
            token: self.settings.token.as_ref(),
            ..Ask::new(url)
        };
        self.http
            .document(ask)
            .map_err(|failure| self.error(&failure, url, hub, file))
    }

    /// The failure of a request for `file` of a repository, or for what is said of it, as the room's error.
    pub(in crate::data) fn error(
        &self,
        failure: &Failure,
        url: &str,
        hub: &HubRef,
        file: Option<&str>,
    ) -> Error {
        let Failure::Status { status, code, .. } = failure else {
            return failure.of_url(url);
        };
        let with_token = self.settings.token.is_some();
        let repo = hub.repo.to_string();
        match (code.as_deref(), status) {
            (Some("GatedRepo"), _) | (None, 403) => Error::Gated {
                page: format!("{}/{repo}", self.settings.endpoint),
                repo,
                with_token,
                ungated: None,
            },
            (Some("RevisionNotFound"), _) => Error::RevisionNotFound {
                repo,
                revision: hub.revision.to_string(),
                known: Vec::new(),
            },
            (Some("EntryNotFound"), _) => Error::EntryNotFound {
                repo: hub.to_string(),
                file: file.unwrap_or_default().to_owned(),
            },
            (None, 401) if with_token => Error::TokenRefused { repo },
            // The hub answers 401 for what does not exist, too, so as not to tell.
            (Some("RepoNotFound"), _) | (None, 401) => {
                Error::RepositoryNotFound { repo, with_token }
            }
            (None, 404) => match file {
                Some(file) => Error::EntryNotFound {
                    repo: hub.to_string(),
                    file: file.to_owned(),
                },
                None => Error::RepositoryNotFound { repo, with_token },
            },
            _ => failure.of_url(url),
        }
    }
}

/// One line of the hub's listing.
#[derive(Deserialize)]
struct Item {
    #[serde(rename = "type")]
    kind: String,
    path: String,
    #[serde(default)]
    size: u64,
    oid: Option<GitBlob>,
    lfs: Option<Lfs>,
}

#[derive(Deserialize)]
struct Lfs {
    oid: Sha256,
    size: u64,
}

impl Item {
    /// The path and what is there, unless it is a directory.
    fn into_entry(self) -> Option<(String, Entry)> {
        let blob_id = self.oid.filter(|_| self.kind == "file")?;
        let entry = Entry {
            size: self.lfs.as_ref().map_or(self.size, |lfs| lfs.size),
            blob_id,
            lfs_sha256: self.lfs.as_ref().map(|lfs| lfs.oid),
            lfs_size: self.lfs.as_ref().map(|lfs| lfs.size),
        };
        Some((self.path, entry))
    }
}

fn parsed<'a, T: Deserialize<'a>>(url: &str, bytes: &'a [u8]) -> Result<T, Error> {
    serde_json::from_slice(bytes).map_err(|error| Error::Network {
        url: url.split('?').next().unwrap_or(url).to_owned(),
        reason: match Signature::of(bytes) {
            found @ Signature::Html => format!("is {found}, no answer of a hub"),
            _ => format!("is no answer of a hub: {error}"),
        },
        remedy: Some("look after HF_ENDPOINT, and whether the network asks for a login"),
    })
}
