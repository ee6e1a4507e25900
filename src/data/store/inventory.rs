//! What the caches hold.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    fs,
    path::{Path, PathBuf},
    time::SystemTime,
};

use crate::data::{
    ContentId, DerivedFile, DerivedStore, Error, HubCache, PinnedCache, Removal, Sha256,
    derived::DIRECTORY as DERIVED,
    error::unreadable,
    hub::{Commit, RepoId, Revision, Snapshot},
};

/// What the caches hold, each part in order.
#[derive(Clone, Debug, Default)]
pub struct Inventory {
    /// The files of the pinned cache.
    pub pinned: Vec<PinnedFile>,
    /// The snapshots of the hub's cache.
    pub revisions: Vec<HubRevision>,
    /// What interrupted fetches and removals left, and what nothing refers to.
    pub leftovers: Vec<Leftover>,
    /// What was derived from weights, when that was asked for.
    pub derived: Vec<DerivedFile>,
}

/// A file in the pinned cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PinnedFile {
    /// The kit that its model belongs to.
    pub kit: String,
    /// The directory that it shares with the files of the same origin.
    pub namespace: String,
    /// What its bytes hash to, as its path says.
    pub sha256: Sha256,
    /// Its name there; slashes separate directories.
    pub file: String,
    /// Where it is.
    pub path: PathBuf,
    /// Length in bytes, and when it was last read and written.
    pub stat: Stat,
}

/// A snapshot in the hub's cache.
#[derive(Clone, Debug)]
pub struct HubRevision {
    /// Its repository.
    pub repo: RepoId,
    /// Its commit.
    pub commit: Commit,
    /// The branches and tags that meant it.
    pub refs: Vec<Revision>,
    /// Whether a fetch of it was begun and not ended.
    pub unfinished: bool,
    /// Its directory.
    pub dir: PathBuf,
    /// Its files.
    pub files: Vec<HubFile>,
}

/// A file of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HubFile {
    /// Its path in the repository.
    pub path: String,
    /// Where its bytes are: a blob, or the file itself where the file system has no links.
    pub blob: PathBuf,
    /// What they are to be known by: the blob's name, or the listing's word.
    pub id: Option<ContentId>,
    /// Length in bytes, and when it was last read and written; `None` when the link leads nowhere.
    pub stat: Option<Stat>,
}

/// A file that no model needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leftover {
    /// Where it is.
    pub path: PathBuf,
    /// The lock that whoever may still be writing it holds.
    pub lock: PathBuf,
    /// Length in bytes, and when it was last read and written.
    pub stat: Stat,
}

/// What the file system says of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// Length in bytes.
    pub bytes: u64,
    /// When it was last read, as far as the file system keeps that.
    pub accessed: SystemTime,
    /// When it was last written.
    pub modified: SystemTime,
}

impl Stat {
    pub(in crate::data) fn of(path: &Path) -> Option<Self> {
        let metadata = path.metadata().ok().filter(fs::Metadata::is_file)?;
        let modified = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        Some(Self {
            bytes: metadata.len(),
            accessed: metadata.accessed().unwrap_or(modified),
            modified,
        })
    }
}

impl HubRevision {
    /// Bytes of its blobs, each once.
    pub fn bytes(&self) -> u64 {
        let mut seen = HashSet::new();
        let mine = self.files.iter().filter(|file| seen.insert(&file.blob));
        mine.filter_map(|file| Some(file.stat?.bytes)).sum()
    }

    /// Whether every file is there, and no fetch was left unfinished.
    pub fn is_complete(&self) -> bool {
        !self.unfinished && self.files.iter().all(|file| file.stat.is_some())
    }
}

impl Inventory {
    /// What `pinned` and `hub` hold; a cache whose directory does not exist holds nothing.
    ///
    /// # Errors
    /// [`Error::Io`] when a directory that exists cannot be read.
    pub fn of(pinned: Option<&PinnedCache>, hub: Option<&HubCache>) -> Result<Self, Error> {
        let mut inventory = Self::default();
        if let Some(cache) = pinned {
            inventory.add_pinned(cache)?;
        }
        if let Some(cache) = hub {
            for repo in cache.repos() {
                inventory.add_repo(cache, &repo)?;
            }
        }
        inventory.pinned.sort_by(|a, b| a.path.cmp(&b.path));
        inventory.leftovers.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(inventory)
    }

    /// The same, with what `store` holds.
    ///
    /// # Errors
    /// As [`Inventory::of`].
    pub fn with_derived(mut self, store: &DerivedStore) -> Result<Self, Error> {
        self.derived = store.contents()?;
        Ok(self)
    }

    /// The contents that a model may have its weights from: those of all files but the ones that `removal` takes.
    pub fn contents_after(&self, removal: &Removal) -> BTreeSet<ContentId> {
        let pinned = self.pinned.iter();
        let stays = pinned.filter(|file| !removal.files.contains(&file.path));
        let pinned = stays.map(|file| ContentId::Sha256(file.sha256));
        let revisions = self.revisions.iter().filter(|it| !removal.takes(it));
        let blobs = revisions.flat_map(|revision| &revision.files);
        pinned.chain(blobs.filter_map(|file| file.id)).collect()
    }

    /// What `repo` of the hub's cache holds.
    pub(in crate::data) fn of_repo(cache: &HubCache, repo: &RepoId) -> Result<Self, Error> {
        let mut inventory = Self::default();
        inventory.add_repo(cache, repo)?;
        Ok(inventory)
    }

    /// Bytes of all files, each once however many snapshots share it.
    pub fn bytes(&self) -> u64 {
        let mut blobs = BTreeMap::new();
        for file in self.revisions.iter().flat_map(|revision| &revision.files) {
            if let Some(stat) = file.stat {
                blobs.insert(&file.blob, stat.bytes);
            }
        }
        let pinned = self.pinned.iter().map(|file| file.stat.bytes);
        let left = self.leftovers.iter().map(|file| file.stat.bytes);
        let derived = self.derived.iter().map(|file| file.stat.bytes);
        pinned
            .chain(left)
            .chain(derived)
            .chain(blobs.into_values())
            .sum()
    }

    /// Files at `<kit>/<namespace>/<sha256>/…`; whatever else lies there is not ours to judge.
    fn add_pinned(&mut self, cache: &PinnedCache) -> Result<(), Error> {
        for path in files_under(cache.root())? {
            let Some(stat) = Stat::of(&path) else {
                continue;
            };
            let relative = path.strip_prefix(cache.root()).unwrap_or(&path);
            let parts: Option<Vec<_>> = relative.iter().map(|part| part.to_str()).collect();
            if let Some([name]) = parts.as_deref()
                && name.starts_with(".import.")
            {
                let lock = cache.import_lock();
                self.leftovers.push(Leftover { path, lock, stat });
                continue;
            }
            let Some([kit, namespace, digest, file @ ..]) = parts.as_deref() else {
                continue;
            };
            if *kit == DERIVED {
                continue; // which is no kit
            }
            let (true, Some(name)) = (is_digest_or_pins(digest), file.last()) else {
                continue;
            };
            if is_on_its_way(name, "partial") || name.ends_with(".tmp") {
                let lock = lock_of(cache, digest, name);
                self.leftovers.push(Leftover { path, lock, stat });
            } else if let Ok(sha256) = digest.parse() {
                self.pinned.push(PinnedFile {
                    kit: (*kit).to_owned(),
                    namespace: (*namespace).to_owned(),
                    sha256,
                    file: file.join("/"),
                    path,
                    stat,
                });
            }
        }
        Ok(())
    }

    fn add_repo(&mut self, cache: &HubCache, repo: &RepoId) -> Result<(), Error> {
        let refs = cache.refs(repo);
        for commit in cache.commits(repo) {
            let Some(snapshot) = cache.snapshot_of(repo, &commit) else {
                continue;
            };
            let files = files_of(&snapshot);
            self.revisions.push(HubRevision {
                repo: repo.clone(),
                refs: refs
                    .iter()
                    .filter(|(_, of)| *of == commit)
                    .map(|(revision, _)| revision.clone())
                    .collect(),
                commit,
                unfinished: snapshot.unfinished,
                dir: snapshot.dir,
                files,
            });
        }
        self.leftovers
            .extend(blobs_left(cache, repo).unwrap_or_default());
        Ok(())
    }
}

/// The blobs that no snapshot uses, and those on their way; `None` when that cannot be told for sure: a snapshot that
/// cannot be read to its end, or a directory of blobs that is somewhere else.
fn blobs_left(cache: &HubCache, repo: &RepoId) -> Option<Vec<Leftover>> {
    let dir = cache.repo_dir(repo);
    let (snapshots, blobs) = (dir.join("snapshots"), dir.join("blobs"));
    if blobs.symlink_metadata().ok()?.is_symlink() {
        return None;
    }
    let mut used = BTreeSet::new();
    for entry in fs::read_dir(snapshots).ok()? {
        for path in files_under(&entry.ok()?.path()).ok()? {
            // By what it really is: a link may lead there by way of another.
            used.extend(path.canonicalize().ok());
        }
    }
    let mut left = Vec::new();
    for path in files_under(&blobs).ok()? {
        let real = path.canonicalize().ok()?;
        let name = path.file_name()?.to_str().unwrap_or_default();
        let lock = match name.strip_suffix(".incomplete") {
            // The Python library holds a lock a blob.
            Some(id) if ContentId::parse(id).is_some() => cache.lock_of(repo, id),
            Some(_) => cache.lock_path(repo),
            None if ContentId::parse(name).is_some() => cache.lock_path(repo),
            None => continue, // a stranger
        };
        if let (false, Some(stat)) = (used.contains(&real), Stat::of(&path)) {
            left.push(Leftover { path, lock, stat });
        }
    }
    Some(left)
}

fn files_of(snapshot: &Snapshot) -> Vec<HubFile> {
    let file = |path: String| {
        let place = path
            .split('/')
            .fold(snapshot.dir.clone(), |dir, part| dir.join(part));
        let target = fs::read_link(&place).ok();
        let blob = match &target {
            Some(target) => normal(&place.parent().unwrap_or(&place).join(target)),
            None => place.clone(),
        };
        let by_name = || ContentId::parse(target.as_ref()?.file_name()?.to_str()?);
        let listed = snapshot.listing.as_ref().and_then(|it| it.files.get(&path));
        HubFile {
            id: listed.map(crate::data::hub::Entry::id).or_else(by_name),
            stat: Stat::of(&place),
            path,
            blob,
        }
    };
    snapshot.paths().into_iter().map(file).collect()
}

/// `path` without `..`, which links of snapshots have in front.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::ParentDir => {
                normal.pop();
            }
            part => normal.push(part),
        }
    }
    normal
}

/// The lock under which the file `name` in the directory `dir` came in: that of its digest, or of its source where the
/// digest was not known.
fn lock_of(cache: &PinnedCache, dir: &str, name: &str) -> PathBuf {
    match name.split_once(".file.") {
        Some((source, _)) if dir == "pins" => cache.lock_of_source(source),
        _ => cache.lock_path(dir),
    }
}

fn is_digest_or_pins(name: &str) -> bool {
    name == "pins" || name.parse::<Sha256>().is_ok()
}

/// Whether `name` is that of a file on its way: `<file>.<random>.<ending>`.
fn is_on_its_way(name: &str, ending: &str) -> bool {
    let random = name
        .strip_suffix(ending)
        .and_then(|name| name.strip_suffix('.'))
        .and_then(|name| name.rsplit_once('.'));
    random.is_some_and(|(_, random)| random.len() == 8)
}

/// Every file under `dir`, links not followed; none when there is no such directory.
pub(in crate::data) fn files_under(dir: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut files = Vec::new();
    let mut dirs = vec![dir.to_owned()];
    while let Some(dir) = dirs.pop() {
        let entries = match fs::read_dir(&dir) {
            Ok(entries) => entries,
            Err(error) if crate::data::local::is_absence(&error) => continue,
            Err(source) => return Err(unreadable(&dir, source)),
        };
        for entry in entries {
            let entry = entry.map_err(|source| unreadable(&dir, source))?;
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => dirs.push(entry.path()),
                Ok(_) => files.push(entry.path()),
                Err(source) => return Err(unreadable(&entry.path(), source)),
            }
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

    fn write(path: PathBuf, bytes: &[u8]) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    #[test]
    fn pinned_files_and_what_is_on_its_way_are_told_apart() {
        let root = tempfile::tempdir().unwrap();
        let digest = Sha256::of(b"abc");
        let dir = root.path().join(format!("pretrained/embed/acme/{digest}"));
        write(dir.join("1_Pooling/config.json"), b"abc");
        write(dir.join("m.bin.AbCd1234.partial"), b"a");
        write(root.path().join("pretrained/CACHEDIR.TAG"), b"");
        write(root.path().join("pretrained/locks/x.lock"), b"");
        let inventory = Inventory::of(Some(&PinnedCache::new(root.path())), None).unwrap();
        let [file] = inventory.pinned.as_slice() else {
            panic!("{inventory:?}")
        };
        assert_eq!(
            (file.kit.as_str(), file.namespace.as_str()),
            ("embed", "acme")
        );
        assert_eq!(
            (file.file.as_str(), file.sha256),
            ("1_Pooling/config.json", digest)
        );
        assert_eq!(inventory.leftovers.len(), 1);
        assert_eq!(inventory.bytes(), 4);
    }

    #[cfg(unix)]
    #[test]
    fn shared_blobs_count_once_and_dangling_links_are_seen() {
        let root = tempfile::tempdir().unwrap();
        let repo = root.path().join("models--org--repo");
        let other = COMMIT.replace('0', "f");
        let link = |commit: &str, name: &str, blob: &str| {
            let dir = repo.join("snapshots").join(commit);
            fs::create_dir_all(&dir).unwrap();
            let target = format!("../../blobs/{blob}");
            std::os::unix::fs::symlink(target, dir.join(name)).unwrap();
        };
        let digest = Sha256::of(b"abc").to_string();
        write(repo.join("blobs").join(&digest), b"abc");
        let orphan = Sha256::of(b"12").to_string();
        write(repo.join("blobs").join(&orphan), b"12");
        write(repo.join("blobs/stranger.txt"), b"thesis");
        write(repo.join("refs/main"), COMMIT.as_bytes());
        link(COMMIT, "m.safetensors", &digest);
        link(&other, "m.safetensors", &digest);
        link(&other, "gone", "none");
        let inventory = Inventory::of(None, Some(&HubCache::new(root.path()))).unwrap();
        let complete: Vec<_> = inventory
            .revisions
            .iter()
            .map(|it| (it.refs.len(), it.is_complete(), it.bytes()))
            .collect();
        assert_eq!(complete, [(1, true, 3), (0, false, 3)]);
        assert_eq!(inventory.bytes(), 5);
        let [left] = inventory.leftovers.as_slice() else {
            panic!("{inventory:?}")
        };
        assert!(left.path.ends_with(&orphan));
        let file = &inventory.revisions[0].files[0];
        assert_eq!(file.id, Some(ContentId::Sha256(Sha256::of(b"abc"))));
    }

    #[cfg(unix)]
    #[test]
    fn what_cannot_be_judged_is_not_left_over() {
        let root = tempfile::tempdir().unwrap();
        let repo = root.path().join("models--org--repo");
        let digest = Sha256::of(b"abc").to_string();
        let cache = HubCache::new(root.path());
        let left = || Inventory::of(None, Some(&cache)).unwrap().leftovers.len();
        write(repo.join("blobs").join(&digest), b"abc");
        // Snapshots are no directory, or lead to the blob in a roundabout way, or have another name.
        write(repo.join("snapshots"), b"");
        assert_eq!(left(), 0);
        fs::remove_file(repo.join("snapshots")).unwrap();
        let odd = repo.join("snapshots/v1.0");
        fs::create_dir_all(&odd).unwrap();
        assert_eq!(left(), 1);
        let blob = repo.join("blobs").join(&digest).canonicalize().unwrap();
        std::os::unix::fs::symlink(&blob, odd.join("m")).unwrap();
        assert_eq!(left(), 0);
        // Blobs that are somewhere else are not this cache's to judge.
        let away = root.path().join("away");
        fs::rename(repo.join("blobs"), &away).unwrap();
        fs::remove_dir_all(&odd).unwrap();
        std::os::unix::fs::symlink(&away, repo.join("blobs")).unwrap();
        assert_eq!(left(), 0);
    }

    #[test]
    fn cache_that_does_not_exist_is_empty() {
        let none = Path::new("/no/such/cache");
        let (pinned, hub) = (PinnedCache::new(none), HubCache::new(none));
        let inventory = Inventory::of(Some(&pinned), Some(&hub)).unwrap();
        assert_eq!(inventory.bytes(), 0);
    }
}
