use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Commit, RepoId, safety::first_unsafe};
use crate::data::{ContentId, Error, GitBlob, Sha256};

/// What a repository holds at a commit, by path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    /// The repository.
    pub repo: RepoId,
    /// The commit.
    pub commit: Commit,
    /// Its files.
    pub files: BTreeMap<String, Entry>,
}

/// One file of a [`Listing`], in the words of the Python library's own record of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Length in bytes.
    pub size: u64,
    /// The name that git gives what it stores: the content, or the pointer to large-file storage.
    pub blob_id: GitBlob,
    /// The content's digest, when it is in large-file storage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lfs_sha256: Option<Sha256>,
    /// Its length there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lfs_size: Option<u64>,
}

impl Entry {
    /// What the content is known by, which is the name of its blob in the cache.
    pub fn id(&self) -> ContentId {
        self.lfs_sha256
            .map_or(ContentId::GitBlob(self.blob_id), ContentId::Sha256)
    }

    /// What git calls the content, when git holds it itself.
    pub fn git_blob(&self) -> Option<GitBlob> {
        match self.id() {
            ContentId::GitBlob(id) => Some(id),
            ContentId::Sha256(_) => None,
        }
    }
}

/// The record of a listing on disk: the form of huggingface_hub `_tree_cache.py`.
#[derive(Serialize, Deserialize)]
struct Record {
    format_version: u32,
    files: BTreeMap<String, Entry>,
}

const FORMAT_VERSION: u32 = 1;

impl Listing {
    /// The listing of `files`, if each may become a file.
    ///
    /// # Errors
    /// [`Error::Unsafe`] for a path that could leave its place, or takes the place of another.
    pub fn new(
        repo: RepoId,
        commit: Commit,
        files: BTreeMap<String, Entry>,
    ) -> Result<Self, Error> {
        match first_unsafe(files.keys().map(String::as_str)) {
            Some((path, reason)) => Err(Error::Unsafe {
                repo: repo.to_string(),
                what: "path",
                value: path.to_owned(),
                reason,
            }),
            None => Ok(Self {
                repo,
                commit,
                files,
            }),
        }
    }

    /// Reads what [`Listing::to_json`] or the Python library wrote; anything else is no record.
    pub fn from_json(repo: RepoId, commit: Commit, json: &[u8]) -> Option<Self> {
        let record: Record = serde_json::from_slice(json).ok()?;
        if record.format_version != FORMAT_VERSION {
            return None;
        }
        Self::new(repo, commit, record.files).ok()
    }

    /// The record of it.
    pub fn to_json(&self) -> String {
        let record = Record {
            format_version: FORMAT_VERSION,
            files: self.files.clone(),
        };
        serde_json::to_string_pretty(&record).expect("plain data is JSON")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

    fn entry(lfs: bool) -> Entry {
        Entry {
            size: 3,
            blob_id: GitBlob::of(b"abc"),
            lfs_sha256: lfs.then(|| Sha256::of(b"abc")),
            lfs_size: lfs.then_some(3),
        }
    }

    fn listing(paths: &[&str]) -> Result<Listing, Error> {
        let files = paths.iter().map(|path| ((*path).to_owned(), entry(false)));
        Listing::new(
            "org/repo".parse().unwrap(),
            COMMIT.parse().unwrap(),
            files.collect(),
        )
    }

    #[test]
    fn record_is_read_as_it_is_written() {
        let mut listing = listing(&["config.json"]).unwrap();
        listing
            .files
            .insert("model.safetensors".to_owned(), entry(true));
        let read = Listing::from_json(
            listing.repo.clone(),
            listing.commit.clone(),
            listing.to_json().as_bytes(),
        );
        assert_eq!(read.unwrap(), listing);
    }

    #[test]
    fn python_librarys_record_is_read() {
        // As huggingface_hub 2.4 writes it, a hash of another storage included.
        let json = r#"{"format_version": 1, "files": {"m": {"size": 3,
            "blob_id": "f2ba8f84ab5c1bce84a7b441cb1959cfc7093b7f",
            "lfs_sha256": "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
            "lfs_size": 3, "xet_hash": "00"}}}"#;
        let read = |json: &str| {
            let (repo, commit) = ("org/repo".parse().unwrap(), COMMIT.parse().unwrap());
            Listing::from_json(repo, commit, json.as_bytes())
        };
        let listing = read(json).unwrap();
        assert_eq!(
            listing.files["m"].id(),
            ContentId::Sha256(Sha256::of(b"abc"))
        );
        for other in [
            "",
            "{}",
            &json.replace(": 1", ": 2"),
            &json.replace("\"m\"", "\"../m\""),
        ] {
            assert_eq!(read(other), None, "{other}");
        }
    }

    #[test]
    fn unsafe_paths_make_no_listing() {
        for path in ["../x", r"C:\x", "a/../../x", "con.txt"] {
            let error = listing(&["config.json", path]).unwrap_err();
            assert!(matches!(&error, Error::Unsafe { value, .. } if value == path));
        }
    }
}
