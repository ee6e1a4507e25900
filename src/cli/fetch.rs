//! `pretrained fetch`: models to this machine, without running them.

mod report;

use std::ffi::OsString;

use self::report::{Report, Status};
use super::Globals;
use super::error::Error;
use super::exit::Exit;
use super::model::Models;
use super::out::Out;
use super::plan::{File, standing};
use crate::data::hub::Choice;
use crate::data::{self, Found, Options, Spec};

/// Bring models to this machine, to be used later without a network
///
/// Prints where each model is. What is here already is not fetched again; what broke off is completed.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pretrained fetch base all-minilm-l6-v2
  pretrained fetch hf:openai/whisper-tiny@main --exclude '*.txt'
  pretrained fetch tiny.en --cache-dir kit     # then, elsewhere: --cache-dir kit --offline")]
pub(crate) struct Args {
    /// Models by name, as `base` or `hf:org/repo@revision`
    #[arg(value_name = "SPEC", required = true)]
    specs: Vec<OsString>,

    /// Of a repository of the hub, fetch what matches, not what is usually needed; `*` crosses slashes; may be
    /// repeated
    #[arg(long, value_name = "GLOB")]
    include: Vec<String>,

    /// Leave out what matches; may be repeated
    #[arg(long, value_name = "GLOB")]
    exclude: Vec<String>,

    /// Revision of repositories that are named without one
    #[arg(long, value_name = "REV")]
    revision: Option<String>,

    /// Say what would be fetched from where, and stop
    #[arg(long)]
    dry_run: bool,

    /// Files fetched at once
    #[arg(short, long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=64))]
    jobs: u16,

    /// Further attempts after one that failed
    #[arg(long, value_name = "N", default_value_t = 3)]
    retries: u32,

    /// Go on after a file or a model that failed, and report all at the end
    #[arg(long)]
    keep_going: bool,

    /// Ask the hub where a branch points now, even if it is here
    #[arg(long)]
    refresh: bool,

    /// Fetch again what is here
    #[arg(long)]
    force: bool,

    /// Take weights that a repository has only as a pickle; nothing in it is run when it is read
    #[arg(long)]
    allow_pickle: bool,

    /// Take files that nothing pins; their digests are printed
    #[arg(long)]
    allow_unpinned: bool,

    /// Longest wait for another process that fetches the same, in seconds [default: a day]
    #[arg(long, value_name = "SECONDS")]
    lock_timeout: Option<u64>,
}

/// Runs the command.
pub(crate) fn run(args: &Args, globals: &Globals, out: &mut Out) -> Result<Exit, Error> {
    let models = args.models(globals)?;
    let mut report = Report::new(args.dry_run);
    let mut failed = Vec::new();
    for spec in &args.specs {
        let name = spec.to_string_lossy();
        let fetched = args.find(&models, spec).and_then(|found| {
            if args.dry_run {
                Ok(Fetched {
                    files: standing(&models.store, &found)?,
                    errors: Vec::new(),
                })
            } else {
                fetch(&models, &found, args, out)
            }
        });
        let fetched = match fetched {
            Ok(fetched) => fetched,
            Err(error) if args.keep_going && args.specs.len() > 1 => Fetched {
                files: Vec::new(),
                errors: vec![error],
            },
            Err(error) => return Err(error),
        };
        for error in &fetched.errors {
            out.input_error(error);
        }
        let status = match (fetched.errors.is_empty(), args.dry_run) {
            (false, _) => Status::Failed,
            (true, true) => Status::Planned,
            (true, false) => Status::Ok,
        };
        if !fetched.files.is_empty() && fetched.files.iter().all(File::is_bundled) {
            out.note(&format!(
                "{name} is in this binary: there is nothing to fetch"
            ));
        }
        let entry = report.add(&name, status, fetched.files, &fetched.errors);
        if !globals.json {
            out.data(&entry)?;
        }
        failed.extend(fetched.errors);
    }
    if globals.json {
        out.data(&report.json())?;
    } else if args.dry_run {
        out.data(&report.total())?;
    }
    match failed.len() {
        0 => Ok(Exit::Done),
        1 if !report.is_partial() && args.specs.len() == 1 => {
            if globals.json {
                out.error(&failed[0]); // in text it has been said
            }
            Ok(failed[0].exit())
        }
        failed => Err(Error::Partial {
            failed,
            total: report.files() + failed,
        }),
    }
}

/// What came of one spec.
struct Fetched {
    files: Vec<File>,
    errors: Vec<Error>,
}

impl Args {
    fn models(&self, globals: &Globals) -> Result<Models, Error> {
        let options = Options {
            allow_unpinned: self.allow_unpinned,
            force: self.force,
            ..Options::default()
        };
        let adjust = |settings: &mut data::net::Settings| {
            settings.jobs = self.jobs.into();
            settings.retries = self.retries;
            if let Some(seconds) = self.lock_timeout {
                settings.lock_timeout = std::time::Duration::from_secs(seconds);
            }
        };
        Models::with(&globals.sources, adjust, options)
    }

    /// The model that `spec` names, in whichever kit it is.
    fn find(&self, models: &Models, spec: &OsString) -> Result<Found, Error> {
        let mut parsed = models.spec(spec)?;
        if let (
            Some(revision),
            Spec::Provider {
                provider,
                reference,
            },
        ) = (&self.revision, &mut parsed)
            && provider == "hf"
            && !reference.contains('@')
        {
            *reference = format!("{reference}@{revision}");
        }
        if matches!(parsed, Spec::Path(_)) {
            return Err(Error::usage(
                format!("`{}` is on this machine already", spec.to_string_lossy()),
                "give the name of a model",
            ));
        }
        let mut choice = Choice::new(&self.include, &self.exclude).map_err(|(pattern, why)| {
            Error::usage(
                format!("`{pattern}` is not a pattern: {why}"),
                "as in `*.json`",
            )
        })?;
        choice.allow_pickle = self.allow_pickle;
        models.find(&parsed, &choice, self.refresh || self.force)
    }
}

fn fetch(models: &Models, found: &Found, args: &Args, out: &mut Out) -> Result<Fetched, Error> {
    let results = models
        .store
        .bring_each(found, &out.transfers(&found.model))?;
    let mut fetched = Fetched {
        files: Vec::new(),
        errors: Vec::new(),
    };
    for (_, result) in results {
        match result.and_then(|file| models.verified(file)) {
            Ok(file) => {
                // What was here before may have been damaged, and so what was derived from it.
                if args.force
                    && let Some(weights) = file.identity()
                {
                    models.derived.forget(&weights);
                }
                fetched.files.push(File::here(&file));
            }
            Err(error) if args.keep_going => fetched.errors.push(error.into()),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(fetched)
}
