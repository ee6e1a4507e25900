//! `pretrained inspect`: what a model is, without running it.

mod contents;
mod report;

use std::ffi::{OsStr, OsString};
use std::path::Path;

use self::contents::Contents;
use self::report::{File, Report};
use super::Globals;
use super::error::Error;
use super::exit::Exit;
use super::model::{Models, Sources, prefab_name};
use super::out::Out;
use crate::checkpoint;
use crate::data::{self, LocalFiles, Spec};
use crate::kits::whisper::{self, Dims};

/// Show what a model is: geometry, parameters, tensors, digests
///
/// Its tensors are compared with those that its geometry asks for; a difference is exit code 8.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A model's name, a file of weights, or a directory
    #[arg(value_name = "SPEC")]
    spec: OsString,

    /// List every tensor
    #[arg(long)]
    tensors: bool,
}

/// Runs the command.
pub(crate) fn run(args: &Args, globals: &Globals, out: &mut Out) -> Result<Exit, Error> {
    let mut report = inspect(&args.spec, &globals.sources, out)?;
    if !args.tensors {
        report.contents.tensors.clear();
    }
    out.data(&if globals.json {
        report.json()
    } else {
        report.text()
    })?;
    match report.differences {
        Some(differences) if !differences.is_empty() => Err(Error::Differs {
            spec: report.spec,
            prefab: report.prefab.map_or_else(
                || "its geometry".to_owned(),
                |prefab| format!("its prefab `{prefab}`"),
            ),
            differences: differences.len(),
        }),
        _ => Ok(Exit::Done),
    }
}

/// What is known of the model `spec`.
///
/// # Errors
/// The model is not known or not here, or its files are damaged.
fn inspect(spec: &OsStr, sources: &Sources, out: &Out) -> Result<Report, Error> {
    let models = Models::new(sources)?;
    let parsed = models.spec(spec)?;
    let factory = models.whisper()?;
    let found = factory.resolve(&parsed).and_then(data::DeferredModel::plan);
    let plan = match (found, &parsed) {
        // Weights of another family, or without what belongs to them, are still tensors.
        (
            Err(data::Error::Unsupported { .. } | data::Error::Incomplete { .. }),
            Spec::Path(path),
        ) => {
            return inspect_file(spec, path);
        }
        (found, _) => found?,
    };
    let files = models.bring_local(&plan.found, out)?;
    let row = plan.found.row.as_ref();
    let package = match plan.construct(&files) {
        // Another family's, or without a geometry: a path's tensors can be shown all the same.
        Err(error) if is_of_no_known_family(&error) && row.is_none() => {
            let weights = files.get("weights").and_then(data::LocalFile::path);
            return weights.map_or(Err(error.into()), |weights| inspect_file(spec, weights));
        }
        package => package?,
    };
    files.verify()?;
    let expected = whisper::tensors(&package.dims);
    let mut differences =
        Contents::of(&whisper::with_openai_names(&*package.checkpoint)).differences(&expected);
    differences.retain(|difference| !difference.is_extra(whisper::is_companion));
    Ok(Report {
        spec: spec.to_string_lossy().into_owned(),
        row: row
            .zip(plan.found.provider.as_ref())
            .map(|(row, provider)| format!("{provider}:{}", row.short_name())),
        licence: row.map(|row| row.license.clone()),
        kit: Some(factory.kit().to_owned()),
        prefab: prefab_name(&factory, &plan, &package.dims)?,
        geometry: geometry(&package.dims),
        files: described(&files)?,
        contents: Contents::of(&*package.checkpoint),
        differences: Some(differences),
    })
}

fn is_of_no_known_family(error: &whisper::Error) -> bool {
    use whisper::Error as E;
    matches!(error, E::ModelType { .. } | E::NoGeometry { .. })
}

/// What is known of a file of weights of no known family.
fn inspect_file(spec: &OsStr, path: &Path) -> Result<Report, Error> {
    let checkpoint = checkpoint::open(path)?;
    let bytes = std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    let sha256 = data::Sha256::of_file(path)
        .map_err(|source| data::Error::Io {
            path: path.to_owned(),
            source,
        })?
        .to_string();
    Ok(Report {
        spec: spec.to_string_lossy().into_owned(),
        files: vec![File {
            path: path.display().to_string(),
            bytes,
            sha256,
        }],
        contents: Contents::of(&*checkpoint),
        ..Report::default()
    })
}

fn described(files: &LocalFiles) -> Result<Vec<File>, Error> {
    let describe = |file: &data::LocalFile| {
        let (path, bytes) = match &file.content {
            data::Content::Path(path) => (
                path.display().to_string(),
                std::fs::metadata(path).map_or(0, |metadata| metadata.len()),
            ),
            data::Content::Bytes(bytes) => (
                format!("{} (in this binary)", file.file),
                bytes.len() as u64,
            ),
        };
        Ok(File {
            path,
            bytes,
            sha256: file.compute_digest()?.to_string(),
        })
    };
    files.iter().map(describe).collect()
}

fn geometry(dims: &Dims) -> serde_json::Map<String, serde_json::Value> {
    match serde_json::to_value(dims) {
        Ok(serde_json::Value::Object(map)) => map,
        _ => serde_json::Map::new(),
    }
}
