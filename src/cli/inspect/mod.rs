//! `pretrained inspect`: what a model is, without running it.

mod contents;
mod report;

use std::ffi::{OsStr, OsString};
use std::path::Path;

use self::contents::Contents;
use self::report::{About, Report};
use super::Globals;
use super::error::Error;
use super::exit::Exit;
use super::model::{Models, Overlays, prefab_name};
use super::out::Out;
use super::plan::{File, standing};
use crate::checkpoint;
use crate::data::hub::Choice;
use crate::data::{self, LocalFiles, Plan, Spec};
use crate::kits::whisper::{self, Dims, Package};

/// Show what a model is: origin, files, geometry, parameters, tensors, digests
///
/// Nothing is fetched. Where the files are on this machine, the tensors are compared with those that the geometry asks
/// for; a difference is exit code 8.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pretrained inspect base
  pretrained inspect --explain tiny.en
  pretrained inspect model.gguf --tensors
  pretrained inspect --manifest rows.toml      # checks a table of your own")]
pub(crate) struct Args {
    /// A model's name, a file of weights, or a directory; none checks the tables given by `--manifest`
    #[arg(value_name = "SPEC")]
    spec: Option<OsString>,

    /// List every tensor
    #[arg(long)]
    tensors: bool,

    /// Say what each namespace of models answered to the name
    #[arg(long)]
    explain: bool,
}

/// Runs the command.
pub(crate) fn run(args: &Args, globals: &Globals, out: &mut Out) -> Result<Exit, Error> {
    let models = Models::new(&globals.sources)?;
    let Some(spec) = &args.spec else {
        return tables(&models, globals, out);
    };
    let mut report = inspect(spec, &models)?;
    if !args.explain {
        report.about.answers.clear();
    }
    if let (Some(contents), false) = (&mut report.contents, args.tensors) {
        contents.tensors.clear();
    }
    out.data(&if globals.json {
        report.json()
    } else {
        report.text()
    })?;
    match report.differences {
        Some(differences) if !differences.is_empty() => Err(Error::Differs {
            spec: report.spec,
            prefab: report.about.prefab.map_or_else(
                || "its geometry".to_owned(),
                |prefab| format!("its prefab `{prefab}`"),
            ),
            differences: differences.len(),
        }),
        _ => Ok(Exit::Done),
    }
}

/// What the user's own tables hold; that they are read at all means that they are sound.
fn tables(models: &Models, globals: &Globals, out: &mut Out) -> Result<Exit, Error> {
    if models.manifests().is_empty() {
        return Err(Error::usage(
            "nothing to inspect",
            "give a model, or a table of your own by `--manifest FILE`",
        ));
    }
    out.data(&report::tables(models.manifests(), globals.json))?;
    Ok(Exit::Done)
}

/// What is known of the model `spec`.
///
/// # Errors
/// The model is not known, or its files are damaged.
fn inspect(spec: &OsStr, models: &Models) -> Result<Report, Error> {
    let parsed = models.spec(spec)?;
    let found = match models.find(&parsed, &Choice::default(), false) {
        Err(Error::Data(error)) => match (&parsed, error) {
            // Weights that no kit reads, or that are not where a model's are, are still tensors.
            (Spec::Path(path), data::Error::NotWeights { .. }) if path.is_file() => {
                return inspect_file(spec, path);
            }
            (_, error) => return Err(error.into()),
        },
        found => found?,
    };
    let mut report = Report {
        spec: spec.to_string_lossy().into_owned(),
        about: About::of(&found),
        files: standing(&models.store, &found)?,
        ..Report::default()
    };
    let factory = models.whisper(&Overlays::default())?;
    let is_whisper = found.kit == factory.kit();
    let plan = if is_whisper {
        factory
            .resolve(&parsed)
            .and_then(data::DeferredModel::plan)
            .ok()
    } else {
        None
    };
    let package = match &plan {
        Some(plan) => whisper_package(models, plan)?,
        None => None,
    };
    match (package, plan) {
        (Some((files, package)), Some(plan)) => {
            report.about.prefab = prefab_name(&factory, &plan, &package.dims)?;
            report.about.kit = Some(factory.kit().to_owned());
            report.add_whisper(&files, &package)?;
        }
        // Another family's, or without a geometry: what tensors there are can be shown all the same.
        _ => report.add_weights(models.store.weights(&found)?)?,
    }
    Ok(report)
}

/// The model, when all its files are here and are those of a Whisper.
fn whisper_package(
    models: &Models,
    plan: &Plan<'_, Package, whisper::Error>,
) -> Result<Option<(LocalFiles, Package)>, Error> {
    let Some(files) = models.store.local(&plan.found)? else {
        return Ok(None);
    };
    match plan.construct(&files) {
        Err(error) if is_of_no_known_family(&error) && plan.prefab.is_none() => Ok(None),
        package => Ok(Some((files, package?))),
    }
}

fn is_of_no_known_family(error: &whisper::Error) -> bool {
    use whisper::Error as E;
    matches!(error, E::ModelType { .. } | E::NoGeometry { .. })
}

/// What is known of a file that is not of a known family.
fn inspect_file(spec: &OsStr, path: &Path) -> Result<Report, Error> {
    let contents = Contents::of(&*checkpoint::open(path)?);
    Ok(Report {
        spec: spec.to_string_lossy().into_owned(),
        files: vec![File::at(path)?],
        contents: Some(contents),
        ..Report::default()
    })
}

impl Report {
    fn add_whisper(&mut self, files: &LocalFiles, package: &Package) -> Result<(), Error> {
        files.verify()?;
        self.files = files.iter().map(File::hashed).collect::<Result<_, _>>()?;
        self.geometry = geometry(&package.dims);
        let expected = whisper::tensors(&package.dims);
        let named = whisper::with_openai_names(&*package.checkpoint);
        let mut differences = Contents::of(&named).differences(&expected);
        differences.retain(|difference| !difference.is_extra(whisper::is_companion));
        self.differences = Some(differences);
        self.contents = Some(Contents::of(&*package.checkpoint));
        Ok(())
    }

    fn add_weights(&mut self, weights: Option<data::LocalFile>) -> Result<(), Error> {
        let Some(weights) = weights else {
            return Ok(());
        };
        let Some(path) = weights.path() else {
            return Ok(());
        };
        self.contents = Some(Contents::of(&*checkpoint::open(path)?));
        let hashed = File::hashed(&weights)?;
        for file in self
            .files
            .iter_mut()
            .filter(|file| file.path == hashed.path)
        {
            *file = hashed.clone();
        }
        Ok(())
    }
}

fn geometry(dims: &Dims) -> serde_json::Map<String, serde_json::Value> {
    match serde_json::to_value(dims) {
        Ok(serde_json::Value::Object(map)) => map,
        _ => serde_json::Map::new(),
    }
}
