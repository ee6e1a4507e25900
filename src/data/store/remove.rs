//! What the caches hold is removed, and no model loses a file of its own.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use crate::data::{
    Error, HubCache,
    error::unwritable,
    hub::{Commit, RepoId},
    inventory::{HubRevision, Inventory, Leftover},
    lock::Lock,
};

/// Files and snapshots that are to go.
#[derive(Clone, Debug, Default)]
pub struct Removal {
    /// Files that stand for themselves.
    pub files: Vec<PathBuf>,
    /// What nothing needs; whatever somebody is writing stays.
    pub leftovers: Vec<Leftover>,
    /// Snapshots, by repository.
    pub revisions: BTreeMap<RepoId, BTreeSet<Commit>>,
}

impl Removal {
    /// Whether there is nothing to remove.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty() && self.leftovers.is_empty() && self.revisions.is_empty()
    }

    /// Adds a snapshot.
    pub fn add(&mut self, revision: &HubRevision) {
        let commits = self.revisions.entry(revision.repo.clone()).or_default();
        commits.insert(revision.commit.clone());
    }

    /// Whether `revision` is to go.
    pub fn takes(&self, revision: &HubRevision) -> bool {
        let commits = self.revisions.get(&revision.repo);
        commits.is_some_and(|commits| commits.contains(&revision.commit))
    }

    /// Bytes that are free afterwards: a blob that another snapshot uses stays.
    pub fn bytes(&self, inventory: &Inventory) -> u64 {
        let goes = |revision: &HubRevision| self.takes(revision);
        let mut blobs = BTreeMap::new();
        for file in inventory
            .revisions
            .iter()
            .filter(|it| goes(it))
            .flat_map(|it| &it.files)
        {
            blobs.insert(&file.blob, file.stat.map_or(0, |stat| stat.bytes));
        }
        for file in inventory
            .revisions
            .iter()
            .filter(|it| !goes(it))
            .flat_map(|it| &it.files)
        {
            blobs.remove(&file.blob);
        }
        let lone = self
            .files
            .iter()
            .filter_map(|path| Some(path.metadata().ok()?.len()));
        let left = self.leftovers.iter().map(|left| left.stat.bytes);
        blobs.into_values().chain(lone).chain(left).sum()
    }

    /// Removes all of it. A repository that a fetch holds is waited for no longer than `patience`.
    ///
    /// # Errors
    /// [`Error::Locked`], or [`Error::Write`] for what the file system keeps.
    pub fn run(&self, hub: Option<&HubCache>, patience: Duration) -> Result<(), Error> {
        for path in &self.files {
            remove_file(path)?;
            remove_empty_dirs(path);
        }
        for left in &self.leftovers {
            match Lock::take(&left.lock, Duration::ZERO, |_| ()) {
                Ok(_lock) => remove_file(&left.path)?,
                Err(Error::Locked { .. }) => continue,
                Err(error) => return Err(error),
            }
            remove_empty_dirs(&left.path);
        }
        let Some(cache) = hub else { return Ok(()) };
        sweep_removed(cache.root());
        for (repo, commits) in &self.revisions {
            let _lock = Lock::take(&cache.lock_path(repo), patience, |_| ())?;
            remove_revisions(cache, repo, commits)?;
        }
        Ok(())
    }
}

/// Ends removals that were interrupted. What cannot be removed is in nobody's way.
fn sweep_removed(dir: &Path) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        if entry
            .file_name()
            .as_encoded_bytes()
            .starts_with(REMOVED.as_bytes())
        {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// What begins the name of a directory that is being removed.
const REMOVED: &str = ".removed-";

/// The references go first, then the snapshot in one step, then the blobs that nothing uses any more: whoever looks
/// meanwhile finds the model whole or not at all.
fn remove_revisions(
    cache: &HubCache,
    repo: &RepoId,
    commits: &BTreeSet<Commit>,
) -> Result<(), Error> {
    let dir = cache.repo_dir(repo);
    let trash = |dir: &Path| -> Result<(), Error> {
        let away = dir.with_file_name(format!(
            "{REMOVED}{}",
            std::iter::repeat_with(fastrand::alphanumeric)
                .take(8)
                .collect::<String>()
        ));
        fs::rename(dir, &away).map_err(|source| unwritable(dir, source))?;
        fs::remove_dir_all(&away).map_err(|source| unwritable(&away, source))
    };
    if cache
        .commits(repo)
        .iter()
        .all(|commit| commits.contains(commit))
    {
        return trash(&dir);
    }
    for (revision, commit) in cache.refs(repo) {
        if commits.contains(&commit) {
            let path = revision
                .as_str()
                .split('/')
                .fold(dir.join("refs"), |dir, part| dir.join(part));
            remove_file(&path)?;
        }
    }
    for commit in commits {
        let snapshot = dir.join("snapshots").join(commit.as_str());
        if snapshot.is_dir() {
            trash(&snapshot)?;
        }
        for record in [
            dir.join(format!(".pretrained/{commit}.json")),
            dir.join(format!(".pretrained/{commit}.in-progress")),
            dir.join(format!("trees/{commit}.json")),
        ] {
            remove_file(&record)?;
        }
    }
    // What is on its way there may be another program's.
    let left = Inventory::of_repo(cache, repo)?.leftovers;
    let blobs = left
        .iter()
        .filter(|left| left.lock == cache.lock_path(repo));
    blobs
        .filter(|left| left.path.extension().is_none())
        .try_for_each(|left| remove_file(&left.path))
}

fn remove_file(path: &Path) -> Result<(), Error> {
    match fs::remove_file(path) {
        Err(error) if !crate::data::local::is_absence(&error) => Err(unwritable(path, error)),
        _ => Ok(()),
    }
}

/// Removes the directories above `path` that hold nothing any more, as far up as a digest's.
fn remove_empty_dirs(path: &Path) {
    for dir in path.ancestors().skip(1) {
        let is_digest = dir.file_name().is_some_and(|name| name.len() == 64);
        if fs::remove_dir(dir).is_err() || is_digest {
            break;
        }
    }
}
