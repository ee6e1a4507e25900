use std::path::{Path, PathBuf};

use bytes::Bytes;
use serde::Serialize;

use super::{Error, GitBlob, Kind, Sha256, WeightsIdentity, error::unreadable, resource::WEIGHTS};

/// Where a file was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Provenance {
    /// At its pinned path in the cache; trusted.
    Cached,
    /// In a local place, used there; trusted.
    LocalDir,
    /// In the hub's cache, used there; trusted.
    HfCache,
    /// Downloaded in this run, and held against what was promised of it.
    Downloaded,
    /// Linked into the binary; checked against its digest.
    Bundled,
    /// At a path that the user gave.
    Given,
}

/// Where a file's bytes are.
#[derive(Clone, Debug)]
pub enum Content {
    /// In this file.
    Path(PathBuf),
    /// In memory.
    Bytes(Bytes),
}

/// One file of a model, on this machine.
#[derive(Clone, Debug)]
pub struct LocalFile {
    /// What it is to its model.
    pub key: String,
    /// Its name, for messages.
    pub file: String,
    /// What it holds.
    pub kind: Kind,
    /// Where it was found.
    pub provenance: Provenance,
    /// Its pin; whether the bytes were held against it, `provenance` says. `None` for a given path.
    pub digest: Option<Sha256>,
    /// What git calls its content, where a hub lists it so and not by a digest.
    pub git_blob: Option<GitBlob>,
    /// The bytes.
    pub content: Content,
}

impl LocalFile {
    /// The file's path, or `None` when its bytes are in memory.
    pub fn path(&self) -> Option<&Path> {
        match &self.content {
            Content::Path(path) => Some(path),
            Content::Bytes(_) => None,
        }
    }

    /// What the weights in it are known by, its shards included where it is an index of shards; `None` when that cannot
    /// be told. Nothing is read: this takes microseconds a file.
    pub fn identity(&self) -> Option<WeightsIdentity> {
        WeightsIdentity::of([self])
    }

    /// The digest of the bytes, computed by reading all of them.
    ///
    /// # Errors
    /// [`Error::Io`] when the file cannot be read.
    pub fn compute_digest(&self) -> Result<Sha256, Error> {
        match &self.content {
            Content::Path(path) => Sha256::of_file(path).map_err(|source| Error::Io {
                path: path.clone(),
                source,
            }),
            Content::Bytes(bytes) => Ok(Sha256::of(bytes)),
        }
    }

    /// Holds the bytes against the pin, or against what the hub lists, if there is either.
    ///
    /// # Errors
    /// [`Error::WrongDigest`] or [`Error::WrongContent`] when they differ, [`Error::Io`] when the file cannot be read.
    pub fn verify(&self) -> Result<(), Error> {
        let Some(expected) = self.digest else {
            return self.verify_git_blob();
        };
        let found = self.compute_digest()?;
        if found == expected {
            return Ok(());
        }
        let (file, linked) = match &self.content {
            Content::Path(path) => (path.display().to_string(), false),
            Content::Bytes(_) => (self.file.clone(), true),
        };
        Err(Error::WrongDigest {
            file,
            linked,
            expected,
            found,
        })
    }

    fn verify_git_blob(&self) -> Result<(), Error> {
        let (Some(expected), Content::Path(path)) = (self.git_blob, &self.content) else {
            return Ok(());
        };
        let found = GitBlob::of_file(path).map_err(|source| unreadable(path, source))?;
        if found == expected {
            return Ok(());
        }
        Err(Error::WrongContent {
            path: path.clone(),
            expected,
            found,
        })
    }
}

/// The files of a model, all on this machine.
#[derive(Clone, Debug)]
pub struct LocalFiles {
    files: Vec<LocalFile>,
}

impl LocalFiles {
    pub(super) fn new(files: Vec<LocalFile>) -> Self {
        Self { files }
    }

    /// The file of `key`; there is one for every key that the constructor requires.
    pub fn get(&self, key: &str) -> Option<&LocalFile> {
        self.files.iter().find(|file| file.key == key)
    }

    /// What the model's weights are known by; as [`LocalFile::identity`].
    pub fn weights_identity(&self) -> Option<WeightsIdentity> {
        self.get(WEIGHTS)?.identity()
    }

    /// The files in the order of the row's table.
    pub fn iter(&self) -> std::slice::Iter<'_, LocalFile> {
        self.files.iter()
    }

    /// Holds every file against its pin.
    ///
    /// # Errors
    /// As [`LocalFile::verify`], of the first that fails.
    pub fn verify(&self) -> Result<(), Error> {
        self.files.iter().try_for_each(LocalFile::verify)
    }
}

impl<'a> IntoIterator for &'a LocalFiles {
    type Item = &'a LocalFile;
    type IntoIter = std::slice::Iter<'a, LocalFile>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
