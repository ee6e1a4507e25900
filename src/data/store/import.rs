//! Files from anywhere are taken into the caches, by what they hash to.

mod archive;

use std::{
    collections::{BTreeMap, HashMap},
    ffi::OsStr,
    fs,
    io::{Read, Write},
    path::{Path, PathBuf},
    time::Duration,
};

use self::archive::each_member;
use crate::data::{
    Catalog, ContentId, Error, HubCache, Pin, PinnedCache, Provider, Resource, Sha256,
    digest::Hashing,
    disk,
    error::{unreadable, unwritable},
    hub::{Commit, Listing, RepoId, Revision},
    lock::Lock,
    resource::is_safe_path,
};

/// Bytes read, written and hashed at a time.
const BLOCK_BYTES: usize = 1 << 20;

/// The longest wait for another import.
const PATIENCE: Duration = Duration::from_secs(24 * 60 * 60);

/// The longest record of a listing or a pin, in bytes.
const RECORD_BYTES: u64 = 64 << 20;

/// Takes files into the caches.
///
/// A file is taken when a row of a table pins its digest, whatever it is called; when its own path ends as a path in the
/// pinned cache does, with the digest that it has; or when it is part of a hub's cache, whose blobs are named by what
/// they hash to. Whatever else is offered is counted and left alone.
pub struct Import<'a> {
    pinned: &'a PinnedCache,
    hub: Option<&'a HubCache>,
    wanted: HashMap<Sha256, Vec<Place>>,
    repos: BTreeMap<RepoId, Repo>,
    /// Records of first fetches, with kit and namespace.
    pins: Vec<(String, String, Pin)>,
    /// What came of it so far.
    pub summary: Summary,
}

/// What came of an import.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// Files in the caches now that were offered, and where.
    pub taken: Vec<PathBuf>,
    /// Bytes of them that were not there before.
    pub bytes: u64,
    /// Files that no model needs.
    pub unknown: usize,
    /// Files whose path promises another digest than they have.
    pub damaged: Vec<String>,
    /// Files that no table pins, and that are taken at the word of whoever exported them: each with its source and digest.
    pub pins: Vec<Pin>,
}

/// A place in the pinned cache.
#[derive(Clone, Debug)]
struct Place {
    kit: String,
    resource: Resource,
}

/// A repository of a hub's cache, as far as it was offered.
#[derive(Default)]
struct Repo {
    listings: BTreeMap<Commit, Vec<u8>>,
    /// Paths of snapshots, with what each link points to.
    paths: BTreeMap<Commit, BTreeMap<String, ContentId>>,
    refs: BTreeMap<Revision, Commit>,
}

/// Where a member of a directory or an archive stands in a cache.
#[derive(Debug, PartialEq, Eq)]
enum Role<'n> {
    /// At `…/<kit>/<namespace>/<sha256>/<file>`.
    Pinned(&'n str, &'n str, Sha256, String),
    /// At `…/<kit>/<namespace>/pins/<digest>.json`.
    Pin(&'n str, &'n str),
    Blob(RepoId, ContentId),
    Listing(RepoId, Commit),
    Snapshot(RepoId, Commit, String),
    Ref(RepoId, Revision),
    Other,
}

impl<'a> Import<'a> {
    /// Takes files into `pinned` and `hub`; those that rows of `catalogs` pin are recognised by their digest.
    pub fn new(pinned: &'a PinnedCache, hub: Option<&'a HubCache>, catalogs: &[Catalog]) -> Self {
        let mut wanted: HashMap<Sha256, Vec<Place>> = HashMap::new();
        for catalog in catalogs {
            let rows = catalog.providers().flat_map(Provider::rows);
            for resource in rows.flat_map(|row| row.resources.iter()) {
                if let Some(digest) = resource.sha256.filter(|_| !resource.is_linked()) {
                    wanted.entry(digest).or_default().push(Place {
                        kit: catalog.kit().to_owned(),
                        resource: resource.clone(),
                    });
                }
            }
        }
        Self {
            pinned,
            hub,
            wanted,
            repos: BTreeMap::new(),
            pins: Vec::new(),
            summary: Summary::default(),
        }
    }

    /// Takes in what is at `path`: a file, a directory, or an archive (`.zip`, `.whl`, `.tar`, `.tar.gz`).
    ///
    /// # Errors
    /// [`Error::Io`] when it cannot be read, [`Error::Write`] when the cache cannot be written.
    pub fn add(&mut self, path: &Path) -> Result<(), Error> {
        // Whoever removes leftovers sees by it that what lies there is in use.
        let _lock = Lock::take(&self.pinned.import_lock(), PATIENCE, |_| ())?;
        each_member(path, &mut |name, content| match content {
            archive::Content::Link(target) => self.link(name, target),
            archive::Content::Bytes(reader) => self.file(name, reader),
        })
    }

    /// Puts repositories of the hub together from what was offered of them.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub fn finish(mut self) -> Result<Summary, Error> {
        for (kit, namespace, pin) in std::mem::take(&mut self.pins) {
            let dir = self.pinned.root().join(&kit).join(&namespace);
            let is_here = dir.join(pin.sha256.to_string()).is_dir();
            if is_here && self.pinned.adopt_pin(&kit, &namespace, &pin)? {
                self.summary.pins.push(pin);
            }
        }
        let Some(cache) = self.hub else {
            return Ok(self.summary);
        };
        for (repo, offered) in std::mem::take(&mut self.repos) {
            for (commit, paths) in offered.paths {
                let recorded = offered.listings.get(&commit);
                let listing = recorded
                    .and_then(|json| Listing::from_json(repo.clone(), commit.clone(), json))
                    .or_else(|| cache.listing(&repo, &commit));
                let Some(mut listing) = listing else {
                    self.summary.unknown += paths.len();
                    continue;
                };
                let whole = listing.clone();
                // Only what is listed, is here, and has the listed content.
                listing.files.retain(|path, entry| {
                    paths.get(path) == Some(&entry.id())
                        && cache.blob_path(&repo, &entry.id()).is_file()
                });
                if listing.files.is_empty() {
                    continue;
                }
                cache.begin(&whole)?;
                let mut twins: BTreeMap<_, Vec<&str>> = BTreeMap::new();
                for (path, entry) in &listing.files {
                    twins.entry(entry.id()).or_default().push(path);
                }
                for paths in twins.values() {
                    cache.put(&whole, paths)?;
                }
                let meant = offered.refs.iter().filter(|(_, of)| **of == commit);
                let revisions: Vec<_> = meant.map(|(revision, _)| revision.clone()).collect();
                cache.finish(&repo, &commit, &revisions)?;
            }
        }
        Ok(self.summary)
    }

    /// Takes a file, and says whether it was of use.
    fn file(&mut self, name: &str, reader: &mut dyn Read) -> Result<bool, Error> {
        let role = role(name);
        match (&role, self.hub) {
            (Role::Listing(repo, commit), Some(_)) => {
                let json =
                    read_record(reader).map_err(|source| unreadable(Path::new(name), source))?;
                let offered = self.repos.entry(repo.clone()).or_default();
                offered.listings.insert(commit.clone(), json);
                return Ok(true);
            }
            (Role::Ref(repo, revision), Some(_)) => {
                let text =
                    read_record(reader).map_err(|source| unreadable(Path::new(name), source))?;
                let commit = String::from_utf8(text)
                    .ok()
                    .and_then(|text| text.trim().parse().ok());
                if let Some(commit) = commit {
                    let offered = self.repos.entry(repo.clone()).or_default();
                    offered.refs.insert(revision.clone(), commit);
                }
                return Ok(true);
            }
            (Role::Pin(kit, namespace), _) => {
                let json =
                    read_record(reader).map_err(|source| unreadable(Path::new(name), source))?;
                if let Ok(pin) = serde_json::from_slice::<Pin>(&json) {
                    self.pins
                        .push(((*kit).to_owned(), (*namespace).to_owned(), pin));
                }
                return Ok(true);
            }
            _ => {}
        }
        let received = Received::read(self.pinned.root(), name, reader)?;
        self.place(name, &role, received)
    }

    /// Remembers what a link of a snapshot points to, and says whether it is one.
    fn link(&mut self, name: &str, target: &Path) -> Result<bool, Error> {
        let id = target
            .file_name()
            .and_then(|it| it.to_str())
            .and_then(ContentId::parse);
        if let (Role::Snapshot(repo, commit, path), Some(id)) = (role(name), id) {
            let offered = self.repos.entry(repo).or_default();
            offered.paths.entry(commit).or_default().insert(path, id);
            return Ok(true);
        }
        Ok(false)
    }

    /// Puts a file wherever it belongs.
    fn place(&mut self, name: &str, role: &Role<'_>, received: Received) -> Result<bool, Error> {
        let mut targets: Vec<_> = self
            .wanted
            .get(&received.sha256)
            .into_iter()
            .flatten()
            .filter_map(|place| self.pinned.path(&place.kit, &place.resource))
            .collect();
        match role {
            Role::Pinned(kit, namespace, digest, file) if *digest == received.sha256 => {
                let dir = self
                    .pinned
                    .root()
                    .join(kit)
                    .join(namespace)
                    .join(digest.to_string());
                targets.push(file.split('/').fold(dir, |dir, part| dir.join(part)));
            }
            Role::Pinned(..) => self.summary.damaged.push(name.to_owned()),
            Role::Blob(repo, id) => match self.hub {
                Some(cache) if received.has(id) => targets.push(cache.blob_path(repo, id)),
                Some(_) => self.summary.damaged.push(name.to_owned()),
                None => {}
            },
            // A snapshot of a file system without links: the listing says, in the end, what it must be.
            Role::Snapshot(repo, commit, path) => {
                if let Some(cache) = self.hub {
                    let offered = self.repos.entry(repo.clone()).or_default();
                    let id = offered.id_of(repo, commit, path, cache);
                    if let Some(id) = id.filter(|id| received.has(id)) {
                        let paths = offered.paths.entry(commit.clone()).or_default();
                        paths.insert(path.clone(), id);
                        targets.push(cache.blob_path(repo, &id));
                    }
                }
            }
            _ => {}
        }
        targets.sort();
        targets.dedup();
        if targets.is_empty() {
            self.summary.unknown += 1;
            received.discard()?;
            return Ok(false);
        }
        disk::tag_cache(self.pinned.root());
        // A length alone would leave damage as it is.
        let is_here = |target: &PathBuf| {
            target.metadata().is_ok_and(|it| it.len() == received.size)
                && Sha256::of_file(target).is_ok_and(|digest| digest == received.sha256)
        };
        let missing: Vec<_> = targets.iter().filter(|target| !is_here(target)).collect();
        self.summary.bytes += received.size * missing.len() as u64;
        for target in &missing {
            let dir = target.parent().unwrap_or(self.pinned.root());
            disk::copy_whole(received.file.path(), target, dir)?;
        }
        self.summary.taken.extend(targets);
        received.discard()?;
        Ok(true)
    }
}

impl Repo {
    /// What the listing says that `path` is to be known by.
    fn id_of(
        &self,
        repo: &RepoId,
        commit: &Commit,
        path: &str,
        cache: &HubCache,
    ) -> Option<ContentId> {
        let recorded = self.listings.get(commit);
        let recorded =
            recorded.and_then(|json| Listing::from_json(repo.clone(), commit.clone(), json));
        let listing = recorded.or_else(|| cache.listing(repo, commit))?;
        Some(listing.files.get(path)?.id())
    }
}

/// A file that was read once, and hashed.
struct Received {
    file: tempfile::NamedTempFile,
    size: u64,
    sha256: Sha256,
}

impl Received {
    /// Copies `reader` to a file of its own in `dir`.
    fn read(dir: &Path, name: &str, reader: &mut dyn Read) -> Result<Self, Error> {
        fs::create_dir_all(dir).map_err(|source| unwritable(dir, source))?;
        let mut file =
            disk::temporary(dir, OsStr::new("import")).map_err(|source| unwritable(dir, source))?;
        let mut hashing = Hashing::new(None);
        let mut block = vec![0; BLOCK_BYTES];
        let mut size = 0;
        loop {
            let read = match reader.read(&mut block) {
                Ok(0) => break,
                Ok(read) => read,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(source) => return Err(unreadable(Path::new(name), source)),
            };
            hashing.update(&block[..read]);
            file.write_all(&block[..read])
                .map_err(|source| unwritable(dir, source))?;
            size += read as u64;
        }
        let (sha256, _) = hashing.finish();
        Ok(Self { file, size, sha256 })
    }

    fn has(&self, id: &ContentId) -> bool {
        id.is_of_file(self.file.path()).unwrap_or(false)
    }

    fn discard(self) -> Result<(), Error> {
        let path = self.file.path().to_owned();
        self.file
            .close()
            .map_err(|source| unwritable(&path, source))
    }
}

fn read_record(reader: &mut dyn Read) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    reader.take(RECORD_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Where a file of that path stands in a cache; what comes before the cache's own part of the path does not matter.
fn role(name: &str) -> Role<'_> {
    if !is_safe_path(name) {
        return Role::Other;
    }
    let parts: Vec<_> = name.split('/').collect();
    if let Some(at) = parts.iter().position(|part| part.starts_with("models--"))
        && let Some(repo) = RepoId::from_folder(parts[at])
    {
        return role_in_repo(repo, &parts[at + 1..]);
    }
    for (at, part) in parts.iter().enumerate().skip(2) {
        let (kit, namespace) = (parts[at - 2], parts[at - 1]);
        if *part == "pins" && parts.len() == at + 2 && name.ends_with(".json") {
            return Role::Pin(kit, namespace);
        }
        if let Ok(digest) = part.parse()
            && parts.len() > at + 1
        {
            return Role::Pinned(kit, namespace, digest, parts[at + 1..].join("/"));
        }
    }
    Role::Other
}

fn role_in_repo<'n>(repo: RepoId, parts: &[&str]) -> Role<'n> {
    let commit_of = |name: &str| {
        name.strip_suffix(".json")
            .and_then(|name| name.parse().ok())
    };
    match parts {
        ["blobs", name] => ContentId::parse(name).map_or(Role::Other, |id| Role::Blob(repo, id)),
        ["snapshots", commit, path @ ..] if !path.is_empty() => match commit.parse() {
            Ok(commit) => Role::Snapshot(repo, commit, path.join("/")),
            Err(_) => Role::Other,
        },
        ["refs", revision @ ..] => match revision.join("/").parse() {
            Ok(revision) => Role::Ref(repo, revision),
            Err(_) => Role::Other,
        },
        [".pretrained" | "trees", name] => match commit_of(name) {
            Some(commit) => Role::Listing(repo, commit),
            None => Role::Other,
        },
        _ => Role::Other,
    }
}

#[cfg(test)]
mod tests;
