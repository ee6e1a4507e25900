//! `pretrained cache ls`: what the caches hold.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::SystemTime;

use serde::{Serialize, Serializer};

use super::Shelf;
use super::filter::{Filter, Sort};
use crate::cli::Globals;
use crate::cli::error::Error;
use crate::cli::exit::Exit;
use crate::cli::json::line;
use crate::cli::out::Out;
use crate::cli::roots::{self, RootEntry};
use crate::cli::table::{ago, size, table};
use crate::data::inventory::{HubRevision, Leftover, PinnedFile, Stat};
use crate::data::{ContentId, DerivedFile, Inventory, Removal};

/// List what is in the caches
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only entries of these names
    #[arg(value_name = "NAME")]
    names: Vec<String>,

    /// Only entries for which this holds, as `size>1GB`, `accessed>30d`, `state=unfinished`; may be repeated
    #[arg(short, long, value_name = "CONDITION")]
    filter: Vec<Filter>,

    /// Order, as `size`, `accessed:asc`, `name`
    #[arg(long, value_name = "KEY")]
    sort: Option<Sort>,

    /// No more entries than that
    #[arg(long, value_name = "N")]
    limit: Option<usize>,

    /// Each revision of a repository by itself
    #[arg(long)]
    revisions: bool,

    /// Also what was derived from weights: weights laid out for this machine
    #[arg(long)]
    derived: bool,
}

/// One thing that can be looked at, and removed.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Entry {
    /// What one would type for it.
    pub(super) name: String,
    /// `pinned`, `hf`, `derived`, or `leftover`.
    pub(super) layout: &'static str,
    /// Family of models, where it is known.
    pub(super) kit: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) namespace: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) sha256: Option<String>,
    /// What the weights are known by that it was derived from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) weights: Option<String>,
    /// How it was derived.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) recipe: Option<String>,
    /// Commits of a repository.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) commits: Vec<String>,
    /// Branches and tags.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) refs: Vec<String>,
    /// Rows that use it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) rows: Vec<String>,
    /// Where it is.
    pub(super) path: PathBuf,
    pub(super) files: usize,
    pub(super) bytes: u64,
    #[serde(serialize_with = "seconds")]
    pub(super) accessed: Option<SystemTime>,
    #[serde(serialize_with = "seconds")]
    pub(super) modified: Option<SystemTime>,
    /// `complete`, `unfinished`, `damaged`, `orphan` when the weights are gone that it was derived from, or `leftover`.
    pub(super) state: &'static str,
    /// Whether this program put it there, or others may have.
    pub(super) owned: bool,
}

/// Digits of an identity of weights that a listing shows.
const SHORT_DIGITS: usize = 18; // twelve after `files-`

/// Seconds since 1970.
fn seconds<S: Serializer>(time: &Option<SystemTime>, serializer: S) -> Result<S::Ok, S::Error> {
    let since = time.and_then(|time| time.duration_since(SystemTime::UNIX_EPOCH).ok());
    since.map(|since| since.as_secs()).serialize(serializer)
}

/// Runs the command.
pub(super) fn run(
    args: &Args,
    shelf: &Shelf,
    globals: &Globals,
    out: &mut Out,
) -> Result<Exit, Error> {
    let inventory = shelf.inventory()?;
    let mut entries = entries(shelf, &inventory, args.revisions);
    if args.derived {
        entries.extend(derived(shelf, &inventory));
    }
    let now = SystemTime::now();
    let names: Vec<_> = args
        .names
        .iter()
        .map(|name| shelf.canonical(name))
        .collect();
    let named = |entry: &Entry| names.is_empty() || names.iter().any(|it| entry.answers_to(it));
    entries.retain(|entry| named(entry) && args.filter.iter().all(|it| it.holds(entry, now)));
    if let Some(sort) = args.sort {
        sort.apply(&mut entries);
    }
    entries.truncate(args.limit.unwrap_or(usize::MAX));
    out.data(&if globals.json {
        json(shelf, &entries, inventory.bytes())
    } else {
        text(&entries, now)
    })?;
    Ok(Exit::Done)
}

/// What the caches hold, one entry a model as far as that is known.
pub(super) fn entries(shelf: &Shelf, inventory: &Inventory, revisions: bool) -> Vec<Entry> {
    let pinned = inventory
        .pinned
        .iter()
        .map(|file| Entry::of_file(shelf, file));
    let mut entries: Vec<_> = pinned.collect();
    let mut rest = inventory.revisions.as_slice();
    while let Some(first) = rest.first() {
        let same = |it: &&HubRevision| it.repo == first.repo;
        let count = if revisions {
            1
        } else {
            rest.iter().take_while(same).count()
        };
        let (repo, after) = rest.split_at(count);
        entries.push(Entry::of_revisions(repo, revisions));
        rest = after;
    }
    entries.extend(inventory.leftovers.iter().map(Entry::of_leftover));
    entries
}

/// What was derived from weights, one entry a file.
fn derived(shelf: &Shelf, inventory: &Inventory) -> Vec<Entry> {
    let contents = shelf.contents_after(inventory, &Removal::default());
    let files = inventory.derived.iter();
    files
        .map(|file| Entry::of_derived(shelf, inventory, file, &contents))
        .collect()
}

impl Entry {
    fn of_file(shelf: &Shelf, file: &PinnedFile) -> Self {
        let rows = shelf.rows_of(&file.kit, &file.sha256);
        let name = rows.first().cloned();
        Self {
            name: name.unwrap_or_else(|| format!("{}/{}/{}", file.kit, file.namespace, file.file)),
            layout: "pinned",
            kit: Some(file.kit.clone()),
            namespace: Some(file.namespace.clone()),
            file: Some(file.file.clone()),
            sha256: Some(file.sha256.to_string()),
            rows,
            path: file.path.clone(),
            state: "complete",
            owned: true,
            ..Self::default()
        }
        .with([Some(file.stat)])
    }

    /// Revisions of one repository; a blob that several share counts once.
    fn of_revisions(revisions: &[HubRevision], alone: bool) -> Self {
        let first = &revisions[0];
        let mut blobs = std::collections::BTreeMap::new();
        for file in revisions.iter().flat_map(|it| &it.files) {
            blobs.insert(&file.blob, file.stat);
        }
        let state = match revisions {
            all if all.iter().all(HubRevision::is_complete) => "complete",
            all if all.iter().any(|it| it.unfinished) => "unfinished",
            _ => "damaged",
        };
        let refs = revisions
            .iter()
            .flat_map(|it| &it.refs)
            .map(ToString::to_string);
        let suffix = if alone {
            format!("@{}", first.commit)
        } else {
            String::new()
        };
        let dir = if alone {
            Some(first.dir.as_path())
        } else {
            first.dir.ancestors().nth(2)
        };
        Self {
            name: format!("hf:{}{suffix}", first.repo),
            layout: "hf",
            commits: revisions.iter().map(|it| it.commit.to_string()).collect(),
            refs: refs.collect(),
            path: dir.unwrap_or(&first.dir).to_owned(),
            state,
            ..Self::default()
        }
        .with(blobs.into_values())
    }

    fn of_derived(
        shelf: &Shelf,
        inventory: &Inventory,
        file: &DerivedFile,
        contents: &BTreeSet<ContentId>,
    ) -> Self {
        let rows: Vec<_> = file
            .contents()
            .flat_map(|id| shelf.models_of(inventory, id))
            .collect();
        let short: String = file.weights.chars().take(SHORT_DIGITS).collect();
        let state = match (file.is_whole(), file.is_of_use(contents)) {
            (false, _) => "leftover",
            (true, false) => "orphan",
            (true, true) => "complete",
        };
        Self {
            name: rows.first().cloned().unwrap_or_else(|| short.clone()),
            layout: "derived",
            file: Some(format!("{short}/{}", file.recipe)),
            weights: Some(file.weights.clone()),
            recipe: Some(file.recipe.clone()),
            rows,
            path: file.path.clone(),
            state,
            owned: true,
            ..Self::default()
        }
        .with([Some(file.stat)])
    }

    fn of_leftover(left: &Leftover) -> Self {
        let name = left.path.file_name().unwrap_or_default();
        Self {
            name: name.to_string_lossy().into_owned(),
            layout: "leftover",
            path: left.path.clone(),
            state: "leftover",
            owned: true,
            ..Self::default()
        }
        .with([Some(left.stat)])
    }

    fn with(mut self, stats: impl IntoIterator<Item = Option<Stat>>) -> Self {
        for stat in stats {
            self.files += 1;
            let Some(stat) = stat else { continue };
            self.bytes += stat.bytes;
            self.accessed = self.accessed.max(Some(stat.accessed));
            self.modified = self.modified.max(Some(stat.modified));
        }
        self
    }

    /// Whether `name` is the entry's, or that of a row that uses it.
    fn answers_to(&self, name: &str) -> bool {
        let rest = self.name.strip_prefix(name);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('@'))
            || self.rows.iter().any(|row| row == name)
    }
}

fn text(entries: &[Entry], now: SystemTime) -> String {
    let row = |entry: &Entry| {
        vec![
            entry.name.clone(),
            entry.layout.to_owned(),
            entry
                .file
                .clone()
                .unwrap_or_else(|| format!("{} files", entry.files)),
            size(entry.bytes),
            entry
                .accessed
                .map_or_else(String::new, |time| ago(time, now)),
            entry.state.to_owned(),
        ]
    };
    let rows: Vec<_> = entries.iter().map(row).collect();
    table(&["name", "layout", "file", "size", "used", "state"], &rows)
}

fn json(shelf: &Shelf, entries: &[Entry], total_bytes: u64) -> String {
    #[derive(Serialize)]
    struct Document<'a> {
        schema: &'static str,
        roots: Vec<RootEntry>,
        entries: &'a [Entry],
        total_bytes: u64,
    }
    line(&Document {
        schema: "pretrained.cache/1",
        roots: roots::entries(&shelf.models.roots),
        entries,
        total_bytes,
    })
}
