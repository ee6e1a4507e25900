//! `pretrained cache export` and `cache import`: models from one machine to another.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};

use clap::ValueHint;
use serde::Serialize;

use super::Shelf;
use crate::cli::Globals;
use crate::cli::error::Error;
use crate::cli::exit::Exit;
use crate::cli::json::line;
use crate::cli::out::Out;
use crate::cli::table::size;
use crate::data::hub::Choice;
use crate::data::{Export, Import, Standing, Summary};

/// Write models to a tar archive, for `cache import` on another machine
///
/// Unpacked, the archive is a directory for `--cache-dir`. Models that are in the binary are left out.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pretrained cache export base hf:org/repo > models.tar
  pretrained cache export base -o models.tar")]
pub(crate) struct ExportArgs {
    /// Models that are on this machine
    #[arg(value_name = "SPEC", required = true)]
    specs: Vec<OsString>,

    /// Write there, not to stdout
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: Option<PathBuf>,
}

/// Take files into the caches, whatever they are called: by what they hash to
///
/// Each file that a model's table pins is put where that model is looked for. What `cache export` wrote, another
/// cache directory, a wheel and a folder of downloads are all the same to it.
#[derive(Debug, clap::Args)]
pub(crate) struct ImportArgs {
    /// Files, directories, and archives (zip, wheel, tar, tar.gz)
    #[arg(value_name = "PATH", required = true, value_hint = ValueHint::AnyPath)]
    paths: Vec<PathBuf>,
}

pub(super) fn export(
    args: &ExportArgs,
    shelf: &Shelf,
    globals: &Globals,
    out: &mut Out,
) -> Result<Exit, Error> {
    if args.output.is_none() && (io::stdout().is_terminal() || globals.json) {
        return Err(Error::usage(
            "an archive is nothing for this stdout",
            "`-o FILE` writes it to a file, and so does `> FILE`",
        ));
    }
    let models = &shelf.models;
    let mut wanted = Vec::new();
    for spec in &args.specs {
        let found = models.find(&models.spec(spec)?, &Choice::default(), false)?;
        let mut files = Vec::new();
        for (resource, standing) in models.store.status(&found)? {
            match standing {
                Standing::Here(file) => files.push((resource, file)),
                Standing::Published(_) | Standing::Nowhere => {
                    return Err(models.store.missing(&found)?.into());
                }
            }
        }
        wanted.push((found, files));
    }
    let partial = args
        .output
        .as_ref()
        .map(|path| path.with_added_extension("partial"));
    let writer: Box<dyn Write> = match &partial {
        Some(path) => Box::new(File::create(path).map_err(|source| unwritable(path, source))?),
        None => Box::new(io::stdout().lock()),
    };
    let mut export = Export::new(&models.store, BufWriter::with_capacity(1 << 20, writer));
    for (found, files) in &wanted {
        export.add(found, files)?;
    }
    export.finish()?;
    if let (Some(partial), Some(path)) = (&partial, &args.output) {
        std::fs::rename(partial, path).map_err(|source| unwritable(path, source))?;
        out.note(&format!("wrote {}", path.display()));
    }
    Ok(Exit::Done)
}

fn unwritable(path: &Path, source: io::Error) -> Error {
    Error::Write {
        path: path.to_owned(),
        source,
    }
}

pub(super) fn import(
    args: &ImportArgs,
    shelf: &Shelf,
    globals: &Globals,
    out: &mut Out,
) -> Result<Exit, Error> {
    let store = &shelf.models.store;
    let Some(pinned) = store.pinned() else {
        return Err(Error::usage(
            "there is no cache to import into",
            "name one by `--cache-dir DIR`",
        ));
    };
    let mut import = Import::new(pinned, store.hub().cache(), &shelf.catalogs);
    for path in &args.paths {
        import.add(path)?;
    }
    let summary = import.finish()?;
    out.data(&if globals.json {
        json(&summary)
    } else {
        text(&summary)
    })?;
    for pin in &summary.pins {
        out.note(&format!(
            "{} is pinned to sha256 {} from now on, at the word of what was imported",
            pin.source, pin.sha256
        ));
    }
    for name in &summary.damaged {
        out.note(&format!(
            "{name} does not have the digest that its path promises"
        ));
    }
    match (summary.damaged.len(), summary.taken.len()) {
        (0, 0) => Err(Error::NothingTaken),
        (0, _) => Ok(Exit::Done),
        (count, _) => Err(Error::Damaged { count }),
    }
}

fn text(summary: &Summary) -> String {
    let mut text: String = summary
        .taken
        .iter()
        .map(|path| format!("{}\n", path.display()))
        .collect();
    text.push_str(&format!(
        "{} taken, {} new; {} that no model needs\n",
        counted(summary.taken.len()),
        size(summary.bytes),
        summary.unknown
    ));
    text
}

fn counted(files: usize) -> String {
    if files == 1 {
        "1 file".to_owned()
    } else {
        format!("{files} files")
    }
}

fn json(summary: &Summary) -> String {
    #[derive(Serialize)]
    struct Document<'a> {
        schema: &'static str,
        taken: &'a [PathBuf],
        new_bytes: u64,
        unknown: usize,
        damaged: &'a [String],
    }
    line(&Document {
        schema: "pretrained.cache-import/1",
        taken: &summary.taken,
        new_bytes: summary.bytes,
        unknown: summary.unknown,
        damaged: &summary.damaged,
    })
}
