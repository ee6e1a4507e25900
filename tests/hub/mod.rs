//! A model hub on loopback: what tests download from, and what fails in the way a test asks for.
//!
//! It speaks the part of the Hugging Face hub's API that downloads need: model info, trees in pages, `resolve` with a
//! redirect for large files, error codes, gated and private repositories, renamed ones. Beside it lie plain files under
//! `/static/`.
//!
//! ```text
//! let hub = Hub::new()
//!     .repo(Repo::new("org/tiny").file("config.json", "{}").lfs("model.safetensors", weights))
//!     .serve();
//! hub.fault("model.safetensors", Fault::CutAfter(100), Times::Once);
//! place.command(&["fetch", "hf:org/tiny"]).env("HF_ENDPOINT", hub.url());
//! assert_eq!(hub.requests_to("GET /cdn/").len(), 2);
//! ```

#![allow(dead_code, reason = "each test file uses a part of this")]
#![allow(
    clippy::unwrap_used,
    reason = "this is test code, though no function here is a test"
)]

mod connections;
mod content;
mod fault;
mod http;
mod repo;
mod site;

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::atomic::Ordering;
use std::sync::{Arc, RwLock};

pub(crate) use content::Content;
pub(crate) use fault::{Fault, Times};
pub(crate) use http::{Host, Request};
pub(crate) use repo::Repo;

use connections::Connections;
use content::File;
use fault::Faults;
use site::Site;

/// What a hub has, before it serves.
pub(crate) struct Hub {
    prefix: String,
    page: usize,
    cdn_elsewhere: bool,
    accounts: Vec<String>,
    statics: BTreeMap<String, File>,
    repos: Vec<Repo>,
}

impl Hub {
    /// A hub without repositories, at the root of its host, that lists 1000 files a page.
    pub(crate) fn new() -> Self {
        Self {
            prefix: String::new(),
            page: 1000,
            cdn_elsewhere: false,
            accounts: Vec::new(),
            statics: BTreeMap::new(),
            repos: Vec::new(),
        }
    }

    pub(crate) fn repo(mut self, repo: Repo) -> Self {
        self.repos.push(repo);
        self
    }

    /// Serves `content` as `/static/<path>`.
    pub(crate) fn static_file(mut self, path: &str, content: impl Into<Content>) -> Self {
        self.statics.insert(path.into(), File::new(content.into()));
        self
    }

    /// Makes `token` that of an account, which may read what everybody may. Tokens that are neither one of these nor
    /// one of a repository are refused everywhere, as the real hub does.
    pub(crate) fn account(mut self, token: &str) -> Self {
        self.accounts.push(token.into());
        self
    }

    /// Puts the hub under a path of its host, such as `/mirror/hf`; other paths are not found.
    pub(crate) fn prefix(mut self, path: &str) -> Self {
        self.prefix = path.into();
        self
    }

    /// The most entries that one page of a tree has.
    pub(crate) fn page(mut self, entries: usize) -> Self {
        self.page = entries;
        self
    }

    /// Redirects large files to another origin, a second port, rather than to `/cdn/` of the same.
    pub(crate) fn cdn_elsewhere(mut self) -> Self {
        self.cdn_elsewhere = true;
        self
    }

    /// Starts to serve, on free ports.
    pub(crate) fn serve(self) -> Server {
        let listen = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let url = |listener: &TcpListener| format!("http://{}", listener.local_addr().unwrap());
        let main = listen();
        let cdn = self.cdn_elsewhere.then(listen);
        let site = Arc::new(Site {
            origin: url(&main),
            prefix: self.prefix,
            cdn_origin: cdn.as_ref().map(url),
            page: self.page,
            accounts: self.accounts,
            statics: self.statics,
            repos: RwLock::new(self.repos),
            faults: Faults::default(),
        });
        let connections = Arc::new(Connections::new(Arc::clone(&site)));
        let addresses: Vec<SocketAddr> = [Some(&main), cdn.as_ref()]
            .into_iter()
            .flatten()
            .map(|listener| listener.local_addr().unwrap())
            .collect();
        connections.accept_from(main, Host::Hub);
        if let Some(cdn) = cdn {
            connections.accept_from(cdn, Host::Cdn);
        }
        Server {
            site,
            connections,
            addresses,
        }
    }
}

/// A hub that serves, until it is stopped or dropped.
pub(crate) struct Server {
    site: Arc<Site>,
    connections: Arc<Connections>,
    addresses: Vec<SocketAddr>,
}

impl Server {
    /// The address for `HF_ENDPOINT`, prefix included, without a slash at the end.
    pub(crate) fn url(&self) -> String {
        self.site.base()
    }

    /// The address of a static file.
    pub(crate) fn static_url(&self, path: &str) -> String {
        format!("{}/static/{path}", self.site.base())
    }

    /// Every request so far, in the order of arrival, refused and failed ones too.
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.connections.log.lock().unwrap().clone()
    }

    /// The requests whose line (`GET /org/tiny/resolve/main/config.json`) has `part` in it.
    pub(crate) fn requests_to(&self, part: &str) -> Vec<Request> {
        let mut requests = self.requests();
        requests.retain(|request| request.line().contains(part));
        requests
    }

    /// Forgets the requests so far.
    pub(crate) fn forget(&self) {
        self.connections.log.lock().unwrap().clear();
    }

    /// The most requests that were being answered at one time.
    pub(crate) fn most_at_once(&self) -> usize {
        self.connections.most_at_once.load(Ordering::SeqCst)
    }

    /// Connections accepted so far.
    pub(crate) fn accepted(&self) -> usize {
        self.connections.accepted.load(Ordering::SeqCst)
    }

    /// Lets the next requests fail whose line (`GET /org/tiny/resolve/main/config.json`) has `part` in it and that this
    /// fault is for; [`Fault`] says which those are. A request takes one fault, the oldest that fits.
    pub(crate) fn fault(&self, part: &str, fault: Fault, times: Times) {
        self.site.faults.add(part, fault, times);
    }

    /// Takes back all faults.
    pub(crate) fn mend(&self) {
        self.site.faults.clear();
    }

    /// How many faults wait to be taken; those for always do not count.
    pub(crate) fn faults_left(&self) -> usize {
        self.site.faults.left()
    }

    /// Points a branch or tag of a repository at another of its commits.
    pub(crate) fn move_ref(&self, repo: &str, name: &str, commit: &str) {
        let mut repos = self.site.repos.write().unwrap();
        let repo = repos.iter_mut().find(|each| each.name == repo).unwrap();
        repo.point(name, commit);
    }

    /// Closes all connections and the ports. The address stays the same, and nobody answers there.
    pub(crate) fn stop(&self) {
        self.connections.stop(&self.addresses);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}
