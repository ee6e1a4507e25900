//! From what was typed to a loaded model: the calls into the rooms below.

use std::num::NonZeroUsize;
use std::path::Path;

use super::asr::{Task, Transcriber};
use super::error::Error;
use super::inspect::{Contents, Report};
use super::out::Out;
use super::output::Model;
use super::prefabs::{Kit, Prefab};

/// What `asr whisper` asks of a model.
pub(crate) struct Options<'a> {
    /// The model as typed; `None` takes the default.
    pub(crate) spec: Option<&'a str>,
    /// Where models are looked for, when it is not the user's cache directory.
    pub(crate) cache_dir: Option<&'a Path>,
    /// Language as typed; `None` detects it.
    pub(crate) language: Option<&'a str>,
    /// What becomes of the language.
    pub(crate) task: Task,
    /// Threads to compute with.
    pub(crate) threads: NonZeroUsize,
}

/// A model ready to transcribe.
pub(crate) struct Loaded {
    /// The model at work.
    pub(crate) transcriber: Box<dyn Transcriber>,
    /// What it is.
    pub(crate) model: Model,
    /// Instruction set of the kernels in use.
    pub(crate) isa: String,
}

/// Finds and loads the model that `options` ask for. Says so on `out` when it is the default.
///
/// # Errors
/// The model is not known or not here, its files are damaged, or it cannot do the language or the task.
pub(crate) fn whisper(options: &Options<'_>, out: &mut Out) -> Result<Loaded, Error> {
    if options.spec.is_none() {
        out.note("using the built-in model tiny.en, English only; `-m base` is better and knows 99 languages");
    }
    Err(Error::Unwired)
}

/// What is known of the model `spec`.
///
/// # Errors
/// The model is not known or not here, or its files are damaged.
pub(crate) fn inspect(_spec: &str, _cache_dir: Option<&Path>) -> Result<Report, Error> {
    Err(Error::Unwired)
}

/// The geometries of `kit`, or of all, in the order of their tables.
///
/// # Errors
/// A compiled-in table cannot be read.
pub(crate) fn prefabs(_kit: Option<Kit>) -> Result<Vec<Prefab>, Error> {
    Err(Error::Unwired)
}
