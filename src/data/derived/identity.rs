use std::{
    collections::BTreeSet,
    fs::{self, Metadata},
    path::Path,
    time::SystemTime,
};

use serde::{Deserialize, Serialize};

use crate::data::{Content, ContentId, Kind, LocalFile, Provenance, Sha256};

/// What weights are known by, without reading them: the content of each file where it is known, and else the file itself.
///
/// A file's content is known when it was held against its digest as it came into a cache, or when it is linked into the
/// binary. Any other file is known by its path, length, time of change, device and inode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WeightsIdentity {
    files: Vec<Origin>,
}

/// A file that something was derived from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(in crate::data) enum Origin {
    /// Any file of that content.
    Content(ContentId),
    /// A file as it was then.
    File(Stamp),
}

/// A file of whose content nothing is known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::data) struct Stamp {
    /// Without links.
    path: String,
    bytes: u64,
    /// Nanoseconds since 1970.
    modified_ns: u64,
    /// When anything of the file was last changed, which no program can set back; nanoseconds since 1970, zero where the
    /// system does not say.
    changed_ns: i64,
    /// Zero where the system has no such number, as is the next.
    device: u64,
    inode: u64,
}

impl WeightsIdentity {
    /// The identity of weights that are in several files, in that order; `None` when one of them cannot be told.
    pub fn of<'a>(files: impl IntoIterator<Item = &'a LocalFile>) -> Option<Self> {
        let mut all = Vec::new();
        for file in files {
            all.push(Origin::of(file)?);
            if file.kind == Kind::SafetensorsIndex {
                all.extend(shards_beside(file)?);
            }
        }
        (!all.is_empty()).then_some(Self { files: all })
    }

    /// Its name, in the cache too: the digest of a single file whose content is known, else `files-` and a digest over
    /// what is known of each.
    pub fn name(&self) -> String {
        Self::name_of(&self.files)
    }

    /// The name of weights that are in `files`.
    pub(super) fn name_of(files: &[Origin]) -> String {
        if let [Origin::Content(id)] = files {
            return id.to_string();
        }
        let text = serde_json::to_string(files).expect("plain data is JSON");
        format!("files-{}", Sha256::of(text.as_bytes()))
    }

    pub(super) fn files(&self) -> &[Origin] {
        &self.files
    }
}

impl Origin {
    fn of(file: &LocalFile) -> Option<Self> {
        match known_content(file) {
            Some(id) => Some(Self::Content(id)),
            None => Some(Self::File(Stamp::of(file.path()?)?)),
        }
    }

    /// The content, where that is what it is known by.
    pub(in crate::data) fn content(&self) -> Option<&ContentId> {
        match self {
            Self::Content(id) => Some(id),
            Self::File(_) => None,
        }
    }

    /// Whether the file is there and has not changed, or is one of `contents`.
    pub(in crate::data) fn is_there(&self, contents: &BTreeSet<ContentId>) -> bool {
        match self {
            Self::Content(id) => contents.contains(id),
            Self::File(stamp) => Stamp::of(Path::new(&stamp.path)).as_ref() == Some(stamp),
        }
    }
}

/// A pin says nothing of a file in a local place: nobody held that file against it.
fn known_content(file: &LocalFile) -> Option<ContentId> {
    let pinned = file.digest.map(ContentId::Sha256);
    match file.provenance {
        Provenance::Cached | Provenance::Bundled => pinned,
        Provenance::HfCache => blob_name(file.path()?),
        Provenance::Downloaded => blob_name(file.path()?).or(pinned),
        Provenance::LocalDir | Provenance::Given => None,
    }
}

/// The name of the blob that the file at `path` in a snapshot of the hub's cache links to, which is its content's.
fn blob_name(path: &Path) -> Option<ContentId> {
    let target = fs::read_link(path).ok()?;
    let is_blob = target.parent()?.ends_with("blobs");
    let id = ContentId::parse(target.file_name()?.to_str()?)?;
    is_blob.then_some(id)
}

/// The files beside an index that may be its shards. The index is not read: a file too many costs nothing but that what
/// was derived is derived anew when it changes.
fn shards_beside(index: &LocalFile) -> Option<Vec<Origin>> {
    let dir = index.path()?.parent()?;
    let mut paths = Vec::new();
    for entry in fs::read_dir(dir).ok()? {
        let path = entry.ok()?.path();
        if path.extension().is_some_and(|it| it == "safetensors") {
            paths.push(path);
        }
    }
    paths.sort();
    let origin = |path| {
        let shard = LocalFile {
            content: Content::Path(path),
            kind: Kind::Safetensors,
            digest: None,
            git_blob: None,
            ..index.clone()
        };
        Origin::of(&shard)
    };
    paths.into_iter().map(origin).collect()
}

impl Stamp {
    /// What is known of the file at `path`; `None` when it cannot be looked at, or its path is not UTF-8.
    fn of(path: &Path) -> Option<Self> {
        let path = path.canonicalize().ok()?;
        let metadata = path.metadata().ok()?;
        let modified = metadata.modified().ok()?;
        let since = modified.duration_since(SystemTime::UNIX_EPOCH).ok()?;
        let (device, inode, changed_ns) = inode(&metadata);
        Some(Self {
            path: path.to_str()?.to_owned(),
            bytes: metadata.len(),
            modified_ns: u64::try_from(since.as_nanos()).ok()?,
            changed_ns,
            device,
            inode,
        })
    }
}

/// The file's device, its number there, and when anything of it was last changed, in nanoseconds since 1970.
#[cfg(unix)]
fn inode(metadata: &Metadata) -> (u64, u64, i64) {
    use std::os::unix::fs::MetadataExt as _;
    let changed = metadata.ctime().saturating_mul(1_000_000_000) + metadata.ctime_nsec();
    (metadata.dev(), metadata.ino(), changed)
}

#[cfg(not(unix))]
fn inode(_: &Metadata) -> (u64, u64, i64) {
    (0, 0, 0)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use bytes::Bytes;

    use super::*;

    fn local(provenance: Provenance, content: Content) -> LocalFile {
        LocalFile {
            key: "weights".to_owned(),
            file: "model.safetensors".to_owned(),
            kind: Kind::Safetensors,
            provenance,
            digest: Some(Sha256::of(b"abc")),
            git_blob: None,
            content,
        }
    }

    fn name(file: &LocalFile) -> String {
        file.identity().unwrap().name()
    }

    #[test]
    fn known_content_is_the_identity_wherever_it_lies() {
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let nowhere = || Content::Path(PathBuf::from("/no/such/file"));
        assert_eq!(name(&local(Provenance::Cached, nowhere())), expected);
        let linked = Content::Bytes(Bytes::from_static(b"abc"));
        assert_eq!(name(&local(Provenance::Bundled, linked)), expected);
    }

    #[cfg(unix)]
    #[test]
    fn blobs_of_the_hub_give_their_names_and_other_links_do_not() {
        let dir = tempfile::tempdir().unwrap();
        let link = |target: &str| {
            let path = dir.path().join("snapshots/1/model.safetensors");
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            let _ = fs::remove_file(&path);
            std::os::unix::fs::symlink(target, &path).unwrap();
            local(Provenance::HfCache, Content::Path(path))
        };
        let digest = Sha256::of(b"123").to_string();
        assert_eq!(name(&link(&format!("../../blobs/{digest}"))), digest);
        // Where there is no name to trust, the file itself counts, and there is none.
        assert_eq!(link(&format!("../../{digest}")).identity(), None);
        assert_eq!(link("../../blobs/model").identity(), None);
    }

    #[test]
    fn file_of_the_users_own_is_another_after_each_change() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("model.safetensors");
        let write = |bytes: &[u8], seconds| {
            fs::write(&path, bytes).unwrap();
            let time = SystemTime::UNIX_EPOCH + std::time::Duration::from_nanos(seconds);
            let file = fs::File::options().write(true).open(&path).unwrap();
            file.set_modified(time).unwrap();
            name(&local(Provenance::Given, Content::Path(path.clone())))
        };
        let first = write(b"abc", 1_000);
        assert_eq!(
            name(&local(Provenance::Given, Content::Path(path.clone()))),
            first
        );
        // Written in place, with its old time put back: longer ago than a tick of the file system's clock.
        std::thread::sleep(std::time::Duration::from_millis(50));
        assert_ne!(write(b"123", 1_000), first);
        assert!(first.starts_with("files-"), "{first}");
        let other = [write(b"abc", 2_000), write(b"abcd", 1_000)];
        assert!(!other.contains(&first));
        // The pin that came along was never checked.
        let local = local(Provenance::LocalDir, Content::Path(path.clone()));
        assert!(name(&local).starts_with("files-"));
        let origin = &local.identity().unwrap().files[0];
        assert!(origin.is_there(&BTreeSet::new()));
        fs::write(&path, b"other").unwrap();
        assert!(!origin.is_there(&BTreeSet::new()));
    }

    #[test]
    fn shards_make_one_identity() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["index.json", "b.safetensors", "a.safetensors", "notes.txt"] {
            fs::write(dir.path().join(name), name).unwrap();
        }
        let index = LocalFile {
            kind: Kind::SafetensorsIndex,
            ..local(
                Provenance::Given,
                Content::Path(dir.path().join("index.json")),
            )
        };
        let identity = index.identity().unwrap();
        assert_eq!(identity.files().len(), 3);
        fs::write(dir.path().join("a.safetensors"), "longer than before").unwrap();
        assert_ne!(index.identity().unwrap(), identity);
    }

    #[test]
    fn names_on_disk_stay() {
        let content = |bytes| Origin::Content(ContentId::Sha256(Sha256::of(bytes)));
        let stamp = Origin::File(Stamp {
            path: "/m/model.safetensors".to_owned(),
            bytes: 3,
            modified_ns: 1_700_000_000_000_000_001,
            changed_ns: 1_700_000_000_000_000_002,
            device: 2,
            inode: 7,
        });
        let cases = [
            (
                vec![content(b"abc"), content(b"123")],
                "files-79a6e601e34d373bf6a8dd345962c245e17a1ed9082871382e3ad1fa02cd73cd",
            ),
            (
                vec![stamp],
                "files-f27358aa57d4d9a24475b1f23355ff767c6cada35853f015373f3b4749810922",
            ),
        ];
        for (files, expected) in cases {
            assert_eq!(WeightsIdentity { files }.name(), expected);
        }
    }
}
