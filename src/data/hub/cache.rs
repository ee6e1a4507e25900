use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
};

use super::{Commit, HubRef, Listing, RepoId, Revision};
use crate::data::{ContentId, Error, disk, error::unwritable};

/// The directory that holds what only this program keeps of a repository; the Python libraries do not look at it.
const OURS: &str = ".pretrained";

/// The hub's cache on this machine.
#[derive(Clone, Debug)]
pub struct HubCache {
    root: PathBuf,
}

impl HubCache {
    /// The cache at `root`, which need not exist.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Its directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The directory of `repo`.
    pub fn repo_dir(&self, repo: &RepoId) -> PathBuf {
        self.root.join(repo.folder())
    }

    /// The repositories there are, in order.
    pub fn repos(&self) -> Vec<RepoId> {
        let repos: BTreeSet<_> = names_in(&self.root)
            .iter()
            .filter_map(|name| RepoId::from_folder(name))
            .collect();
        repos.into_iter().collect()
    }

    /// The branches and tags of `repo` that are known here, with the commit that each meant when it was fetched.
    pub fn refs(&self, repo: &RepoId) -> Vec<(Revision, Commit)> {
        let mut refs = Vec::new();
        collect_refs(&self.repo_dir(repo).join("refs"), "", &mut refs);
        refs.sort();
        refs
    }

    /// The commits of `repo` that there is a snapshot of, whole or not.
    pub fn commits(&self, repo: &RepoId) -> Vec<Commit> {
        let names = names_in(&self.repo_dir(repo).join("snapshots"));
        let mut commits: Vec<_> = names.iter().filter_map(|name| name.parse().ok()).collect();
        commits.sort();
        commits
    }

    /// The commit that the reference meant when it was fetched; a commit means itself.
    pub fn commit(&self, hub: &HubRef) -> Option<Commit> {
        if let Some(commit) = hub.revision.commit() {
            return Some(commit);
        }
        let path = self.ref_path(&hub.repo, &hub.revision);
        read_commit(&path)
    }

    /// The snapshot that the reference leads to, if there is one.
    pub fn snapshot(&self, hub: &HubRef) -> Option<Snapshot> {
        self.snapshot_of(&hub.repo, &self.commit(hub)?)
    }

    /// The snapshot of `repo` at `commit`, if there is one.
    pub fn snapshot_of(&self, repo: &RepoId, commit: &Commit) -> Option<Snapshot> {
        let dir = self.snapshot_dir(repo, commit);
        dir.is_dir().then(|| Snapshot {
            repo: repo.clone(),
            commit: commit.clone(),
            listing: self.listing(repo, commit),
            unfinished: self.is_unfinished(repo, commit),
            dir,
        })
    }

    /// What `repo` holds at `commit`, as it was when this program or the Python library last asked.
    pub fn listing(&self, repo: &RepoId, commit: &Commit) -> Option<Listing> {
        let read =
            |path: PathBuf| Listing::from_json(repo.clone(), commit.clone(), &read_file(&path)?);
        let dir = self.repo_dir(repo);
        let theirs = dir.join("trees").join(format!("{commit}.json"));
        read(self.listing_path(repo, commit)).or_else(|| read(theirs))
    }

    /// Whether a fetch of the snapshot was begun and not ended, by this program or by `candding`.
    pub fn is_unfinished(&self, repo: &RepoId, commit: &Commit) -> bool {
        let theirs = self.root.join(".candding/in-progress").join(repo.folder());
        self.marker_path(repo, commit).exists() || theirs.join(commit.as_str()).exists()
    }

    /// The lock of `repo`: whoever fetches or removes holds it.
    pub(in crate::data) fn lock_path(&self, repo: &RepoId) -> PathBuf {
        let locks = self.root.join(".locks").join(repo.folder());
        locks.join("pretrained.lock")
    }

    /// The Python library's lock of the blob `id`.
    pub(in crate::data) fn lock_of(&self, repo: &RepoId, id: &str) -> PathBuf {
        let locks = self.root.join(".locks").join(repo.folder());
        locks.join(format!("{id}.lock"))
    }

    /// The blob of a content.
    pub(in crate::data) fn blob_path(&self, repo: &RepoId, id: &ContentId) -> PathBuf {
        self.repo_dir(repo).join("blobs").join(id.to_string())
    }

    /// Clears away what processes that ended early left of this program's own files; for who holds the lock.
    #[cfg(feature = "net")]
    pub(in crate::data) fn sweep(&self, repo: &RepoId) {
        disk::sweep(&self.ours(repo), None);
    }

    /// Says that a fetch of `listing` is under way, and keeps the listing; both before the first file.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub(in crate::data) fn begin(&self, listing: &Listing) -> Result<(), Error> {
        let (repo, commit) = (&listing.repo, &listing.commit);
        let snapshot = self.snapshot_dir(repo, commit);
        for dir in [&snapshot, &self.repo_dir(repo).join("blobs")] {
            fs::create_dir_all(dir).map_err(|source| unwritable(dir, source))?;
        }
        disk::tag_cache(&self.root);
        let aside = self.ours(repo);
        disk::write_whole(&self.marker_path(repo, commit), &aside, b"")?;
        self.record(listing)
    }

    /// Keeps the listing.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub(in crate::data) fn record(&self, listing: &Listing) -> Result<(), Error> {
        let path = self.listing_path(&listing.repo, &listing.commit);
        disk::write_whole(
            &path,
            &self.ours(&listing.repo),
            listing.to_json().as_bytes(),
        )
    }

    /// Puts the files `paths` of the listing, which are of one content and whose blob is there, into the snapshot.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub(in crate::data) fn put(&self, listing: &Listing, paths: &[&str]) -> Result<Put, Error> {
        let (repo, commit) = (&listing.repo, &listing.commit);
        let mut unlinked = Vec::new();
        let mut blob = PathBuf::new();
        for path in paths {
            let id = listing.files[*path].id();
            blob = self.blob_path(repo, &id);
            let file = in_dir(&self.snapshot_dir(repo, commit), path);
            // From the file's directory up to the repository's.
            let up = "../".repeat(2 + path.matches('/').count());
            if !self.link(repo, &format!("{up}blobs/{id}"), &blob, &file)? {
                unlinked.push(file);
            }
        }
        let Some((last, others)) = unlinked.split_last() else {
            return Ok(Put::Linked);
        };
        for file in others {
            disk::copy_whole(&blob, file, &self.ours(repo))?;
        }
        disk::move_whole(&blob, last)?;
        Ok(Put::Moved)
    }

    /// Makes `file` a link to `blob`, which is `target` from there; `false` where links cannot be made, or not be followed.
    fn link(&self, repo: &RepoId, target: &str, blob: &Path, file: &Path) -> Result<bool, Error> {
        let write = |source| unwritable(file, source);
        if let Some(dir) = file.parent() {
            fs::create_dir_all(dir).map_err(write)?;
        }
        if let (Ok(known), Ok(blob)) = (file.canonicalize(), blob.canonicalize())
            && known == blob
        {
            return Ok(true);
        }
        // What is there is damaged, or leads to another file or nowhere: it is replaced at once.
        let made = disk::temporary_path(&self.ours(repo));
        if symlink(target, &made).is_err() {
            return Ok(false);
        }
        fs::rename(&made, file).map_err(write)?;
        let leads_there = file.metadata().is_ok();
        if !leads_there {
            fs::remove_file(file).map_err(write)?;
        }
        Ok(leads_there)
    }

    /// Ends what [`HubCache::begin`] began, when all its files are there: the reference comes last.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub(in crate::data) fn finish(
        &self,
        repo: &RepoId,
        commit: &Commit,
        revisions: &[Revision],
    ) -> Result<(), Error> {
        remove(&self.marker_path(repo, commit))?;
        for revision in revisions.iter().filter(|it| it.commit().is_none()) {
            let path = self.ref_path(repo, revision);
            // The Python library takes every file among the references for one.
            disk::write_whole(&path, &self.ours(repo), commit.as_str().as_bytes())?;
        }
        Ok(())
    }

    /// Whether `hub` leads to `commit` here, and no fetch of that was begun and not ended.
    #[cfg(feature = "net")]
    pub(in crate::data) fn is_finished(&self, commit: &Commit, hub: &HubRef) -> bool {
        !self.marker_path(&hub.repo, commit).exists() && self.commit(hub).as_ref() == Some(commit)
    }

    /// Removes this program's record of a listing that has turned out wrong, so that the hub is asked again.
    ///
    /// # Errors
    /// [`Error::Write`].
    #[cfg(feature = "net")]
    pub(in crate::data) fn forget(&self, listing: &Listing) -> Result<(), Error> {
        remove(&self.listing_path(&listing.repo, &listing.commit))
    }

    /// What only this program keeps of `repo`; files on their way into the other directories begin there.
    fn ours(&self, repo: &RepoId) -> PathBuf {
        self.repo_dir(repo).join(OURS)
    }

    fn snapshot_dir(&self, repo: &RepoId, commit: &Commit) -> PathBuf {
        self.repo_dir(repo).join("snapshots").join(commit.as_str())
    }

    pub(in crate::data) fn ref_path(&self, repo: &RepoId, revision: &Revision) -> PathBuf {
        in_dir(&self.repo_dir(repo).join("refs"), revision.as_str())
    }

    pub(in crate::data) fn listing_path(&self, repo: &RepoId, commit: &Commit) -> PathBuf {
        self.ours(repo).join(format!("{commit}.json"))
    }

    fn marker_path(&self, repo: &RepoId, commit: &Commit) -> PathBuf {
        let name = format!("{commit}.in-progress");
        self.ours(repo).join(name)
    }
}

/// How files came into their snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::data) enum Put {
    /// As links to their blob.
    Linked,
    /// Themselves, for this file system has no links; there is no blob any more.
    Moved,
}

/// The files of a repository at a commit.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The repository.
    pub repo: RepoId,
    /// The commit.
    pub commit: Commit,
    /// Its directory.
    pub dir: PathBuf,
    /// What the repository holds there, when that was written down.
    pub listing: Option<Listing>,
    /// Whether a fetch of it was begun and not ended.
    pub unfinished: bool,
}

impl Snapshot {
    /// The file `path`, when all of it is there: a link must lead somewhere, and the length must be the listed one, or
    /// more than nothing where none is listed.
    pub fn file(&self, path: &str) -> Option<PathBuf> {
        let file = in_dir(&self.dir, path);
        let metadata = file.metadata().ok().filter(fs::Metadata::is_file)?;
        let listed = self.listing.as_ref().and_then(|it| it.files.get(path));
        let is_whole = listed.map_or(metadata.len() > 0, |entry| entry.size == metadata.len());
        is_whole.then_some(file)
    }

    /// The paths that there are, whole or not, in order.
    pub fn paths(&self) -> Vec<String> {
        let mut paths = Vec::new();
        collect_paths(&self.dir, "", &mut paths);
        paths.sort();
        paths
    }
}

/// `path`, whose parts are separated by slashes, in `dir`.
fn in_dir(dir: &Path, path: &str) -> PathBuf {
    path.split('/')
        .fold(dir.to_owned(), |dir, part| dir.join(part))
}

/// Removes a file that need not be there.
fn remove(path: &Path) -> Result<(), Error> {
    match fs::remove_file(path) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => Err(unwritable(path, source)),
        _ => Ok(()),
    }
}

#[cfg(unix)]
fn symlink(target: &str, link: &Path) -> std::io::Result<()> {
    std::os::unix::fs::symlink(target, link)
}

#[cfg(windows)]
fn symlink(target: &str, link: &Path) -> std::io::Result<()> {
    std::os::windows::fs::symlink_file(target.replace('/', "\\"), link)
}

/// The names in `dir` that are UTF-8; none when it cannot be read.
fn names_in(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect()
}

/// Whether it is a directory itself: a link to one could lead round in a circle.
fn is_real_dir(path: &Path) -> bool {
    path.symlink_metadata()
        .is_ok_and(|metadata| metadata.is_dir())
}

/// The bytes of a file; `None` for whatever else lies there, a pipe for one would never end.
fn read_file(path: &Path) -> Option<Vec<u8>> {
    if path.metadata().ok()?.is_file() {
        fs::read(path).ok()
    } else {
        None
    }
}

fn read_commit(path: &Path) -> Option<Commit> {
    let text = String::from_utf8(read_file(path)?).ok()?;
    text.trim().parse().ok()
}

fn collect_refs(dir: &Path, prefix: &str, refs: &mut Vec<(Revision, Commit)>) {
    for name in names_in(dir) {
        let path = dir.join(&name);
        let name = format!("{prefix}{name}");
        if is_real_dir(&path) {
            collect_refs(&path, &format!("{name}/"), refs);
        } else if let Some((revision, commit)) = name.parse().ok().zip(read_commit(&path)) {
            refs.push((revision, commit));
        }
    }
}

fn collect_paths(dir: &Path, prefix: &str, paths: &mut Vec<String>) {
    for name in names_in(dir) {
        let path = dir.join(&name);
        let name = format!("{prefix}{name}");
        if is_real_dir(&path) {
            collect_paths(&path, &format!("{name}/"), paths);
        } else {
            paths.push(name);
        }
    }
}
