//! Where a model's files are, or would come from.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::error::Error;
use super::json::line;
use super::table::size;
use crate::data::{Content, Found, LocalFile, Provenance, Resource, Sha256, Standing, Store};

/// One file of a model.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct File {
    pub(crate) key: String,
    pub(crate) file: String,
    /// Where it is; `None` while it is not here.
    pub(crate) path: Option<PathBuf>,
    pub(crate) bytes: Option<u64>,
    pub(crate) sha256: Option<String>,
    /// `cached`, `local-dir`, `hf-cache`, `bundled`, `downloaded`; or `to-download` and `nowhere` in a plan.
    pub(crate) from: &'static str,
    /// The address that would be asked first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) url: Option<String>,
}

impl File {
    /// A file on this machine.
    pub(crate) fn here(file: &LocalFile) -> Self {
        let bytes = match &file.content {
            Content::Path(path) => path.metadata().ok().map(|metadata| metadata.len()),
            Content::Bytes(bytes) => Some(bytes.len() as u64),
        };
        Self {
            key: file.key.clone(),
            file: file.file.clone(),
            path: file.path().map(Path::to_owned),
            bytes,
            sha256: file.digest.map(|digest| digest.to_string()),
            from: match file.provenance {
                Provenance::Cached => "cached",
                Provenance::LocalDir => "local-dir",
                Provenance::HfCache => "hf-cache",
                Provenance::Downloaded => "downloaded",
                Provenance::Bundled => "bundled",
                Provenance::Given => "given",
            },
            url: None,
        }
    }

    /// The same, with the digest that its bytes have.
    ///
    /// # Errors
    /// It cannot be read.
    pub(crate) fn hashed(file: &LocalFile) -> Result<Self, Error> {
        Ok(Self {
            sha256: Some(file.compute_digest()?.to_string()),
            ..Self::here(file)
        })
    }

    /// The file at `path`, given as it is.
    ///
    /// # Errors
    /// It cannot be read.
    pub(crate) fn at(path: &Path) -> Result<Self, Error> {
        let unreadable = |source| crate::data::Error::Io {
            path: path.to_owned(),
            source,
        };
        Ok(Self {
            key: "weights".to_owned(),
            file: path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned(),
            path: Some(path.to_owned()),
            bytes: path.metadata().ok().map(|metadata| metadata.len()),
            sha256: Some(Sha256::of_file(path).map_err(unreadable)?.to_string()),
            from: "given",
            url: None,
        })
    }

    /// A file that would be fetched from `url`, if it is published.
    pub(crate) fn planned(resource: &Resource, url: Option<String>) -> Self {
        Self {
            key: resource.key.clone(),
            file: resource.file.clone(),
            path: None,
            bytes: resource.size,
            sha256: resource.sha256.map(|digest| digest.to_string()),
            from: if url.is_some() {
                "to-download"
            } else {
                "nowhere"
            },
            url,
        }
    }

    /// Whether its bytes are in the binary.
    pub(crate) fn is_bundled(&self) -> bool {
        self.from == "bundled"
    }

    /// Whether its bytes come over the network.
    pub(crate) fn is_moved(&self) -> bool {
        matches!(self.from, "downloaded" | "to-download")
    }
}

/// Where the files of the model stand now; nothing is fetched.
///
/// # Errors
/// A file at a pinned path is damaged.
pub(crate) fn standing(store: &Store, found: &Found) -> Result<Vec<File>, Error> {
    let file = |(resource, standing): (Resource, Standing)| match standing {
        Standing::Here(file) => File::here(&file),
        Standing::Published(url) => File::planned(&resource, Some(url)),
        Standing::Nowhere => File::planned(&resource, None),
    };
    Ok(store.status(found)?.into_iter().map(file).collect())
}

/// The bytes of `files` that come over the network.
pub(crate) fn moved_bytes(files: &[File]) -> u64 {
    let moved = files.iter().filter(|file| file.is_moved());
    moved.filter_map(|file| file.bytes).sum()
}

/// The last line of a plan that moves `files`.
pub(crate) fn total(files: &[File]) -> String {
    let is_open = files
        .iter()
        .any(|file| file.is_moved() && file.bytes.is_none());
    let at_least = if is_open { "at least " } else { "" };
    format!("would download {at_least}{}\n", size(moved_bytes(files)))
}

/// What `--dry-run` says of one model, as text or as the `pretrained.plan/1` schema.
///
/// # Errors
/// As [`standing`].
pub(crate) fn dry_run(store: &Store, found: &Found, json: bool) -> Result<String, Error> {
    #[derive(Serialize)]
    struct Document<'a> {
        schema: &'static str,
        spec: &'a str,
        files: &'a [File],
        download_bytes: u64,
    }
    let files = standing(store, found)?;
    let download_bytes = moved_bytes(&files);
    Ok(if json {
        line(&Document {
            schema: "pretrained.plan/1",
            spec: &found.model,
            files: &files,
            download_bytes,
        })
    } else {
        text(&found.model, &files) + &total(&files)
    })
}

/// The plan for `spec`, a line a file.
pub(crate) fn text(spec: &str, files: &[File]) -> String {
    let mut text = format!("{spec}\n");
    for file in files {
        let bytes = file.bytes.map_or_else(|| "unknown size".to_owned(), size);
        let place = match (&file.path, &file.url) {
            (Some(path), _) => path.display().to_string(),
            (None, Some(url)) => url.clone(),
            (None, None) => String::new(),
        };
        writeln!(
            text,
            "  {:<12} {bytes:>12}  {}  {place}",
            file.from, file.file
        )
        .expect("a string takes all");
    }
    text
}
