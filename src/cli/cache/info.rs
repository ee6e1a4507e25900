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
use crate::cli::roots::{self, RootEntry};
use crate::cli::table::size;
use crate::data::Standing;
use crate::data::hub::Choice;
use crate::data::net::without_query;

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
        roots: roots::entries(&shelf.models.roots),
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
    let mut text = roots::text(&document.roots);
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
        let roots = roots::entries(&shelf.models.roots);
        paths.extend(roots.into_iter().map(|root| root.path));
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
