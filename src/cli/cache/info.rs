//! `pretrained cache info` and `cache path`: where the caches are, and who decided that.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::Shelf;
use crate::cli::Globals;
use crate::cli::error::Error;
use crate::cli::exit::Exit;
use crate::cli::json::line;
use crate::cli::out::Out;
use crate::cli::table::{size, table};
use crate::data::hub::Choice;
use crate::data::net::without_query;
use crate::data::{Roots, Standing};

/// Say where the caches are, what decided that, and how full they are
#[derive(Debug, clap::Args)]
pub(crate) struct InfoArgs {}

/// Print where the caches are, or where the files of models are
#[derive(Debug, clap::Args)]
pub(crate) struct PathArgs {
    /// Models; none prints the directories of the caches
    #[arg(value_name = "SPEC")]
    specs: Vec<OsString>,
}

/// One directory that files are looked for in.
#[derive(Debug, Serialize)]
pub(super) struct RootEntry {
    /// `pinned`, `hf`, or the name of a local place.
    name: String,
    path: PathBuf,
    /// The variable or flag that decided, or `default`.
    decided_by: &'static str,
    exists: bool,
    writable: bool,
}

/// The directories that files are looked for in, in order.
pub(super) fn roots(shelf: &Shelf) -> Vec<RootEntry> {
    let Roots {
        cache, hub, places, ..
    } = &shelf.models.roots;
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

/// Whether a file can be made in `dir`, or in the nearest directory above it that exists.
fn is_writable(dir: &Path) -> bool {
    let exists = dir.ancestors().find(|dir| dir.is_dir());
    exists.is_some_and(|dir| tempfile::tempfile_in(dir).is_ok())
}

pub(super) fn info(
    _: &InfoArgs,
    shelf: &Shelf,
    globals: &Globals,
    out: &mut Out,
) -> Result<Exit, Error> {
    #[derive(Serialize)]
    struct Document {
        schema: &'static str,
        roots: Vec<RootEntry>,
        endpoint: String,
        mirrors: Vec<String>,
        offline: Option<&'static str>,
        has_token: bool,
        pinned_files: usize,
        hub_revisions: usize,
        derived_files: usize,
        derived_bytes: u64,
        leftover_bytes: u64,
        total_bytes: u64,
    }
    let inventory = shelf.inventory()?;
    let settings = shelf.models.store.network().settings();
    let document = Document {
        schema: "pretrained.cache-info/1",
        roots: roots(shelf),
        endpoint: without_query(&settings.endpoint),
        mirrors: settings
            .mirrors
            .iter()
            .map(|url| without_query(url))
            .collect(),
        offline: shelf.models.store.network().offline(),
        has_token: settings.token.is_some(),
        pinned_files: inventory.pinned.len(),
        hub_revisions: inventory.revisions.len(),
        derived_files: inventory.derived.len(),
        derived_bytes: inventory.derived.iter().map(|it| it.stat.bytes).sum(),
        leftover_bytes: inventory.leftovers.iter().map(|it| it.stat.bytes).sum(),
        total_bytes: inventory.bytes(),
    };
    if globals.json {
        out.data(&line(&document))?;
        return Ok(Exit::Done);
    }
    let rows: Vec<_> = document.roots.iter().map(RootEntry::row).collect();
    let mut text = table(&["cache", "path", "decided by", "state"], &rows);
    let facts = [
        ("hub", document.endpoint.clone()),
        ("mirrors", document.mirrors.join(", ")),
        (
            "network",
            document.offline.unwrap_or("may be used").to_owned(),
        ),
        (
            "token",
            if document.has_token { "yes" } else { "no" }.to_owned(),
        ),
        (
            "files",
            format!(
                "{} pinned, {} revisions of the hub, {} derived from weights",
                document.pinned_files, document.hub_revisions, document.derived_files
            ),
        ),
        (
            "size",
            format!(
                "{}, of which {} are derived and {} left over",
                size(document.total_bytes),
                size(document.derived_bytes),
                size(document.leftover_bytes)
            ),
        ),
    ];
    for (name, value) in facts.iter().filter(|(_, value)| !value.is_empty()) {
        text.push_str(&format!("{name:<9}{value}\n"));
    }
    out.data(&text)?;
    Ok(Exit::Done)
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

pub(super) fn path(
    args: &PathArgs,
    shelf: &Shelf,
    globals: &Globals,
    out: &mut Out,
) -> Result<Exit, Error> {
    #[derive(Serialize)]
    struct Document {
        schema: &'static str,
        paths: Vec<PathBuf>,
    }
    let mut paths = Vec::new();
    if args.specs.is_empty() {
        paths.extend(roots(shelf).into_iter().map(|root| root.path));
    }
    for spec in &args.specs {
        let models = &shelf.models;
        let found = models.find(&models.spec(spec)?, &Choice::default(), false)?;
        for (_, standing) in models.store.status(&found)? {
            match standing {
                Standing::Here(file) => paths.extend(file.path().map(Path::to_owned)),
                // The error that says where it would be, and what to do.
                Standing::Published(_) | Standing::Nowhere => {
                    return Err(models.store.missing(&found)?.into());
                }
            }
        }
    }
    if globals.json {
        let schema = "pretrained.cache-path/1";
        out.data(&line(&Document { schema, paths }))?;
    } else {
        let lines = paths.iter().map(|path| format!("{}\n", path.display()));
        out.data(&lines.collect::<String>())?;
    }
    Ok(Exit::Done)
}
