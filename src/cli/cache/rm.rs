//! `pretrained cache rm` and `cache prune`: room on the disk.

use std::io::{self, BufRead, IsTerminal};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use serde::Serialize;

use super::Shelf;
use super::filter::age;
use crate::cli::Globals;
use crate::cli::error::Error;
use crate::cli::exit::Exit;
use crate::cli::json::line;
use crate::cli::out::{Out, printable};
use crate::cli::table::size;
use crate::data::{Inventory, Removal};

/// The longest wait for a fetch of what is to be removed.
const PATIENCE: Duration = Duration::from_secs(5);

/// Remove models from the caches, with what was derived from them; a file that another model uses stays
#[derive(Debug, clap::Args)]
pub(crate) struct RmArgs {
    /// Models by name, as `base`, `hf:org/repo` or `hf:org/repo@revision`
    #[arg(value_name = "NAME", required = true)]
    names: Vec<String>,

    #[command(flatten)]
    consent: Consent,
}

/// Remove what no model needs: revisions that no branch means any more, what interrupted fetches left, and what was
/// derived from weights that are gone
///
/// What another process is fetching stays.
#[derive(Debug, clap::Args)]
pub(crate) struct PruneArgs {
    /// Also models that were last used longer ago than that, as `30d`
    #[arg(long, value_name = "AGE", value_parser = age)]
    older_than: Option<Duration>,

    #[command(flatten)]
    consent: Consent,
}

#[derive(Debug, clap::Args)]
struct Consent {
    /// Do not ask
    #[arg(short, long)]
    yes: bool,

    /// Say what would go, and stop
    #[arg(long)]
    dry_run: bool,
}

pub(super) fn rm(
    args: &RmArgs,
    shelf: &Shelf,
    globals: &Globals,
    out: &mut Out,
) -> Result<Exit, Error> {
    let inventory = shelf.inventory()?;
    let mut removal = Removal::default();
    let mut kept = Vec::new();
    let names: Vec<_> = args
        .names
        .iter()
        .map(|name| shelf.canonical(name))
        .collect();
    for file in &inventory.pinned {
        let rows = shelf.rows_of(&file.kit, &file.sha256);
        let full = format!("{}/{}/{}", file.kit, file.namespace, file.file);
        let asked = |row: &String| names.contains(row);
        if !rows.iter().any(asked) && !names.contains(&full) {
            continue;
        }
        // Models that are here and were not asked to go keep their files.
        let others: Vec<_> = rows.iter().filter(|row| !asked(row)).collect();
        match others.iter().find(|row| shelf.is_here(&file.kit, row)) {
            Some(row) => kept.push(format!("{} stays: {row} uses it too", file.path.display())),
            None => removal.files.push(file.path.clone()),
        }
    }
    for revision in &inventory.revisions {
        let repo = format!("hf:{}", revision.repo);
        let mut spellings = vec![repo.clone(), format!("{repo}@{}", revision.commit)];
        spellings.extend(revision.refs.iter().map(|it| format!("{repo}@{it}")));
        if spellings.iter().any(|it| names.contains(it)) {
            removal.add(revision);
        }
    }
    kept.iter().for_each(|text| out.note(text));
    let before = shelf.contents_after(&inventory, &Removal::default());
    let after = shelf.contents_after(&inventory, &removal);
    for file in &inventory.derived {
        if file.is_of_use(&before) && !file.is_of_use(&after) {
            removal.files.push(file.path.clone());
        }
    }
    remove(&removal, &inventory, &args.consent, shelf, globals, out)
}

pub(super) fn prune(
    args: &PruneArgs,
    shelf: &Shelf,
    globals: &Globals,
    out: &mut Out,
) -> Result<Exit, Error> {
    let inventory = shelf.inventory()?;
    let now = SystemTime::now();
    let is_old = |accessed: Option<SystemTime>| {
        let limit = args.older_than;
        let age = accessed.map(|time| now.duration_since(time).unwrap_or_default());
        limit.zip(age).is_some_and(|(limit, age)| age > limit)
    };
    let mut removal = Removal {
        leftovers: inventory.leftovers.clone(),
        ..Removal::default()
    };
    for revision in &inventory.revisions {
        let used = revision
            .files
            .iter()
            .filter_map(|file| Some(file.stat?.accessed))
            .max();
        // What is being fetched has no reference yet either.
        if (revision.refs.is_empty() && !revision.unfinished) || is_old(used) {
            removal.add(revision);
        }
    }
    let old = inventory
        .pinned
        .iter()
        .filter(|file| is_old(Some(file.stat.accessed)));
    removal.files.extend(old.map(|file| file.path.clone()));
    let contents = shelf.contents_after(&inventory, &removal);
    for file in &inventory.derived {
        if !file.is_of_use(&contents) || is_old(Some(file.stat.accessed)) {
            removal.files.push(file.path.clone());
        }
    }
    remove(&removal, &inventory, &args.consent, shelf, globals, out)
}

fn remove(
    removal: &Removal,
    inventory: &Inventory,
    consent: &Consent,
    shelf: &Shelf,
    globals: &Globals,
    out: &mut Out,
) -> Result<Exit, Error> {
    #[derive(Serialize)]
    struct Document {
        schema: &'static str,
        removed: Vec<String>,
        bytes: u64,
        dry_run: bool,
    }
    let bytes = removal.bytes(inventory);
    let lines = lines(removal);
    if !globals.json && !lines.is_empty() {
        out.data(
            &lines
                .iter()
                .map(|line| printable(line) + "\n")
                .collect::<String>(),
        )?;
    }
    if removal.is_empty() && !globals.json {
        out.data("Nothing to delete.\n")?;
        return Ok(Exit::Done);
    }
    if !consent.dry_run && !removal.is_empty() {
        if !consent.yes && !confirmed(&size(bytes), out)? {
            return Ok(Exit::Done);
        }
        removal.run(shelf.models.store.hub().cache(), PATIENCE)?;
    }
    if globals.json {
        out.data(&line(&Document {
            schema: "pretrained.cache-rm/1",
            removed: lines,
            bytes,
            dry_run: consent.dry_run,
        }))?;
    } else {
        let verb = if consent.dry_run {
            "would free"
        } else {
            "freed"
        };
        out.data(&format!("{verb} {}\n", size(bytes)))?;
    }
    Ok(Exit::Done)
}

/// What is to go, a line each.
fn lines(removal: &Removal) -> Vec<String> {
    let path = |path: &PathBuf| path.display().to_string();
    let files = removal.files.iter().map(path);
    let leftovers = removal.leftovers.iter().map(|left| path(&left.path));
    let revisions = removal.revisions.iter().flat_map(|(repo, commits)| {
        commits
            .iter()
            .map(move |commit| format!("hf:{repo}@{commit}"))
    });
    files.chain(leftovers).chain(revisions).collect()
}

/// Asks on the terminal.
///
/// # Errors
/// There is no terminal to ask on.
fn confirmed(size: &str, out: &mut Out) -> Result<bool, Error> {
    if !io::stdin().is_terminal() {
        return Err(Error::usage(
            "there is no terminal to ask on",
            "`-y` removes without asking, `--dry-run` only says what would go",
        ));
    }
    out.requested(&format!("Remove {size}? [y/N] "));
    let mut answer = String::new();
    let read = io::stdin().lock().read_line(&mut answer);
    Ok(read.is_ok() && matches!(answer.trim(), "y" | "Y" | "yes"))
}
