//! The directories that files are looked for in, and what can be done there.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::table::table;
use crate::data::Roots;

/// One directory that files are looked for in.
#[derive(Debug, Serialize)]
pub(crate) struct RootEntry {
    /// `pinned`, `hf`, or the name of a local place.
    name: String,
    pub(crate) path: PathBuf,
    /// The variable or flag that decided, or `default`.
    decided_by: &'static str,
    exists: bool,
    writable: bool,
}

/// The directories of `roots`, in the order in which files are looked for in them.
pub(crate) fn entries(roots: &Roots) -> Vec<RootEntry> {
    let Roots {
        cache, hub, places, ..
    } = roots;
    let pinned = cache
        .iter()
        .map(|root| ("pinned", root.path.join("pretrained"), root.decided_by));
    let hub = hub
        .iter()
        .map(|root| ("hf", root.path.clone(), root.decided_by));
    let places = places
        .iter()
        .map(|(name, root)| (name.as_str(), root.path.clone(), root.decided_by));
    let entry = |(name, path, decided_by): (&str, PathBuf, &'static str)| RootEntry {
        name: name.to_owned(),
        exists: path.is_dir(),
        writable: is_writable(&path),
        path,
        decided_by,
    };
    pinned.chain(hub).chain(places).map(entry).collect()
}

/// `entries` as a table.
pub(crate) fn text(entries: &[RootEntry]) -> String {
    let rows: Vec<_> = entries.iter().map(RootEntry::row).collect();
    table(&["cache", "path", "decided by", "state"], &rows)
}

/// Whether a file can be made in `dir`, or in what there is of the way to it.
fn is_writable(dir: &Path) -> bool {
    let there = dir
        .ancestors()
        .map(|dir| {
            if dir.as_os_str().is_empty() {
                Path::new(".")
            } else {
                dir
            }
        })
        .find(|dir| dir.symlink_metadata().is_ok());
    // A file in the way lets no directory be made.
    there.is_some_and(|dir| dir.is_dir() && tempfile::tempfile_in(dir).is_ok())
}

impl RootEntry {
    fn row(&self) -> Vec<String> {
        let state = match (self.exists, self.writable) {
            (true, true) => "there",
            (true, false) => "read-only",
            (false, true) => "not made yet",
            (false, false) => "cannot be made",
        };
        vec![
            self.name.clone(),
            self.path.display().to_string(),
            self.decided_by.to_owned(),
            state.to_owned(),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_can_be_made_is_writable() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("file"), b"").unwrap();
        assert!(is_writable(dir.path()));
        assert!(is_writable(&dir.path().join("a/b")));
        assert!(!is_writable(&dir.path().join("file/a")));
        assert!(is_writable(Path::new("no-such-directory/a")));
    }
}
