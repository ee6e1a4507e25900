//! What came of a fetch, or would, as text and as JSON.

use std::fmt::Write as _;
use std::path::Path;

use serde::Serialize;

use crate::cli::error::Error;
use crate::cli::json::line;
use crate::cli::plan::{File, moved_bytes, text};
use crate::cli::table::size;

/// What came of all specs.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    schema: &'static str,
    specs: Vec<Entry>,
    /// Bytes that came over the network, or would have to.
    downloaded_bytes: u64,
    /// The specs that failed.
    failed: Vec<String>,
    #[serde(skip)]
    dry_run: bool,
}

/// What came of one spec.
#[derive(Debug, Serialize)]
struct Entry {
    spec: String,
    status: Status,
    files: Vec<File>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    errors: Vec<serde_json::Value>,
}

/// How one spec ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Status {
    /// All its files are here.
    Ok,
    /// Nothing was done.
    Planned,
    /// Some of its files are not here.
    Failed,
}

impl Report {
    pub(super) fn new(dry_run: bool) -> Self {
        Self {
            schema: "pretrained.fetch/1",
            specs: Vec::new(),
            downloaded_bytes: 0,
            failed: Vec::new(),
            dry_run,
        }
    }

    /// Takes in what came of `spec`, and gives it as text.
    pub(super) fn add(
        &mut self,
        spec: &str,
        status: Status,
        files: Vec<File>,
        errors: &[Error],
    ) -> String {
        self.downloaded_bytes += moved_bytes(&files);
        if status == Status::Failed {
            self.failed.push(spec.to_owned());
        }
        let text = match status {
            Status::Ok => final_path(&files),
            Status::Planned => text(spec, &files),
            Status::Failed => String::new(),
        };
        self.specs.push(Entry {
            spec: spec.to_owned(),
            status,
            files,
            errors: errors.iter().map(Error::value).collect(),
        });
        text
    }

    /// Whether some specs, or some files of one, are here and others failed.
    pub(super) fn is_partial(&self) -> bool {
        let any = |entry: &Entry| entry.status != Status::Failed || !entry.files.is_empty();
        self.specs.iter().any(any)
    }

    /// Files that are here, or would be.
    pub(super) fn files(&self) -> usize {
        self.specs.iter().map(|entry| entry.files.len()).sum()
    }

    /// The last line of a plan.
    pub(super) fn total(&self) -> String {
        let verb = if self.dry_run {
            "would download"
        } else {
            "downloaded"
        };
        format!("{verb} {}\n", size(self.downloaded_bytes))
    }

    pub(super) fn json(&self) -> String {
        line(self)
    }
}

/// Where a model is: its only file, the directory of all its files, or each of them.
fn final_path(files: &[File]) -> String {
    let paths: Vec<_> = files
        .iter()
        .filter_map(|file| Some((file, file.path.as_ref()?)))
        .collect();
    let dirs = paths.iter().map(|(file, path)| {
        // A snapshot is the directory that all paths in the repository start from.
        let up = file.file.matches('/').count() + 1;
        path.ancestors().nth(up).map(Path::to_owned)
    });
    let mut dirs: Vec<_> = dirs.collect();
    dirs.dedup();
    let mut text = String::new();
    match (paths.as_slice(), dirs.as_slice()) {
        ([(_, path)], _) => writeln!(text, "{}", path.display()),
        ([_, ..], [Some(dir)]) => writeln!(text, "{}", dir.display()),
        _ => paths
            .iter()
            .try_for_each(|(_, path)| writeln!(text, "{}", path.display())),
    }
    .expect("a string takes all");
    text
}
