//! `pretrained cache verify`: whether the bytes in the caches are the published ones, without a network.

use std::path::PathBuf;

use serde::Serialize;

use super::Shelf;
use crate::cli::Globals;
use crate::cli::error::Error;
use crate::cli::exit::Exit;
use crate::cli::json::line;
use crate::cli::out::{Out, printable};
use crate::cli::table::size;
use crate::data::{self, ContentId};

/// Hash what is in the caches, and say what is damaged; no network is needed
///
/// A pinned file is held against the digest in its path, a file of the hub's cache against the name of its blob.
/// Something damaged, or a snapshot that lacks a file, is exit code 8.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Models by the names that `cache ls` shows; none means all
    #[arg(value_name = "NAME")]
    names: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Report {
    schema: &'static str,
    checked: usize,
    bytes: u64,
    bad: Vec<Bad>,
    /// Files whose digest nobody wrote down.
    unknown: Vec<PathBuf>,
}

/// Something that is not as it should be.
#[derive(Debug, Serialize)]
struct Bad {
    name: String,
    path: PathBuf,
    reason: String,
}

/// What is to be hashed.
struct Check {
    name: String,
    path: PathBuf,
    id: Option<ContentId>,
}

pub(super) fn run(
    args: &Args,
    shelf: &Shelf,
    globals: &Globals,
    out: &mut Out,
) -> Result<Exit, Error> {
    let inventory = shelf.inventory()?;
    let mut report = Report {
        schema: "pretrained.cache-verify/1",
        checked: 0,
        bytes: 0,
        bad: Vec::new(),
        unknown: Vec::new(),
    };
    let mut seen = false;
    let wanted = |name: &str, rows: &[String]| {
        let is = |asked: &String| {
            let asked = shelf.canonical(asked);
            asked == name || rows.contains(&asked)
        };
        args.names.is_empty() || args.names.iter().any(is)
    };
    let mut checks = Vec::new();
    for file in &inventory.pinned {
        let rows = shelf.rows_of(&file.kit, &file.sha256);
        let name = rows.first().cloned().unwrap_or_else(|| file.file.clone());
        if wanted(&name, &rows) {
            checks.push(Check {
                name,
                path: file.path.clone(),
                id: Some(ContentId::Sha256(file.sha256)),
            });
        }
    }
    for revision in &inventory.revisions {
        let name = format!("hf:{}", revision.repo);
        if !wanted(&name, &[format!("{name}@{}", revision.commit)]) {
            continue;
        }
        seen = true;
        if revision.unfinished {
            report.bad.push(Bad {
                name: name.clone(),
                path: revision.dir.clone(),
                reason: "a fetch of it was not finished".to_owned(),
            });
        }
        for file in &revision.files {
            let path = revision.dir.join(&file.path);
            match file.stat {
                Some(_) => checks.push(Check {
                    name: name.clone(),
                    path,
                    id: file.id,
                }),
                None => report.bad.push(Bad {
                    name: name.clone(),
                    path,
                    reason: "its blob is not there".to_owned(),
                }),
            }
        }
    }
    if !args.names.is_empty() && checks.is_empty() && !seen {
        return Err(Error::usage(
            format!(
                "nothing in the caches is called `{}`",
                args.names.join("`, `")
            ),
            "`pretrained cache ls` lists what there is",
        ));
    }
    for check in checks {
        report.check(check)?;
    }
    out.data(&if globals.json {
        line(&report)
    } else {
        report.text()
    })?;
    match report.bad.len() {
        0 => Ok(Exit::Done),
        count => Err(Error::Damaged { count }),
    }
}

impl Report {
    fn check(&mut self, check: Check) -> Result<(), Error> {
        let Some(id) = check.id else {
            self.unknown.push(check.path);
            return Ok(());
        };
        let is_right = id
            .is_of_file(&check.path)
            .map_err(|source| data::Error::Io {
                path: check.path.clone(),
                source,
            })?;
        self.checked += 1;
        self.bytes += check.path.metadata().map_or(0, |it| it.len());
        if !is_right {
            self.bad.push(Bad {
                name: check.name,
                path: check.path,
                reason: format!("its bytes do not hash to {id}"),
            });
        }
        Ok(())
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for bad in &self.bad {
            let line = format!("{}: {}: {}", bad.name, bad.path.display(), bad.reason);
            text.push_str(&(printable(&line) + "\n"));
        }
        for path in &self.unknown {
            text.push_str(&format!(
                "{}: nobody wrote down what it should be\n",
                path.display()
            ));
        }
        let verdict = match self.bad.len() {
            0 => "all right".to_owned(),
            n => format!("{n} bad; `pretrained fetch --force NAME` brings a model anew"),
        };
        text.push_str(&format!(
            "{} files, {}: {verdict}\n",
            self.checked,
            size(self.bytes)
        ));
        text
    }
}
