//! What can go wrong in a run, and the one place that says which exit code each failure has.

use std::error::Error as _;
use std::io;
use std::path::PathBuf;

use serde::Serialize;

use super::exit::Exit;
use super::json::line;
use crate::kits::whisper;
use crate::{audio, checkpoint, compute, data, nn};

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// A command line that cannot be.
    #[error("{message}")]
    Usage {
        /// What is wrong with it.
        message: String,
        /// What to type instead.
        hint: Option<String>,
    },
    /// One input failed.
    #[error("{input}")]
    Input {
        /// The input as it was given.
        input: String,
        /// What happened to it.
        #[source]
        source: Box<Error>,
    },
    /// A model failed.
    #[error("model `{model}`")]
    Model {
        /// The model as it was given.
        model: String,
        /// What happened to it.
        #[source]
        source: Box<Error>,
    },
    /// Some of several inputs failed; each has been reported.
    #[error("{failed} of {total} inputs failed")]
    Partial {
        /// How many.
        failed: usize,
        /// Of how many.
        total: usize,
    },
    /// A result cannot be written.
    #[error("cannot write {}", path.display())]
    Write {
        /// The file, the directory, or `stdout`.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// Whoever read our output has gone, as `head` does when it has seen enough.
    #[error("stdout is closed")]
    Closed,
    /// A model differs from the geometry that it claims.
    #[error("{spec} differs from {prefab} in {differences} tensor{}", if *differences == 1 { "" } else { "s" })]
    Differs {
        /// The model as it was given.
        spec: String,
        /// What it was compared with, in words.
        prefab: String,
        /// Tensors that are missing, unexpected, or of another shape.
        differences: usize,
    },
    /// Files in the caches, or some that were offered to them, are not what they should be.
    #[error("{count} file{} not what {} should be", if *count == 1 { " is" } else { "s are" }, if *count == 1 { "it" } else { "they" })]
    Damaged {
        /// How many.
        count: usize,
    },
    /// Nothing that was offered to the caches belongs there.
    #[error("no file of any known model was found")]
    NothingTaken,
    /// A model cannot be found, or its files cannot be had.
    #[error(transparent)]
    Data(#[from] data::Error),
    /// A model file cannot be read.
    #[error(transparent)]
    Checkpoint(#[from] checkpoint::Error),
    /// The device cannot be used.
    #[error(transparent)]
    Compute(#[from] compute::Error),
    /// A recording cannot be read.
    #[error(transparent)]
    Audio(#[from] audio::Error),
    /// A Whisper model cannot be loaded, or fails.
    #[error(transparent)]
    Whisper(#[from] whisper::Error),
}

impl Error {
    /// A usage error with a hint.
    pub(crate) fn usage(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Usage {
            message: message.into(),
            hint: Some(hint.into()),
        }
    }

    /// This failure, said of `input`.
    pub(crate) fn of_input(self, input: &str) -> Self {
        Self::Input {
            input: input.to_owned(),
            source: Box::new(self),
        }
    }

    /// This failure, said of the model that was given as `model`.
    pub(crate) fn of_model(self, model: &str) -> Self {
        Self::Model {
            model: model.to_owned(),
            source: Box::new(self),
        }
    }

    /// The exit code of each failure.
    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::Usage { .. } => Exit::Usage,
            Self::Input { source, .. } | Self::Model { source, .. } => source.exit(),
            Self::Partial { .. } => Exit::Partial,
            Self::Write { .. } => Exit::Internal,
            Self::Closed => Exit::Done,
            Self::Differs { .. } | Self::Damaged { .. } => Exit::CheckFailed,
            Self::NothingTaken => Exit::NotFound,
            Self::Data(error) => data_exit(error),
            Self::Checkpoint(error) => checkpoint_exit(error),
            Self::Compute(error) => compute_exit(error),
            Self::Audio(error) => audio_exit(error),
            Self::Whisper(error) => whisper_exit(error),
        }
    }

    /// What to do about it, where there is something to do.
    pub(crate) fn hint(&self) -> Option<String> {
        match self {
            Self::Usage { hint, .. } => hint.clone(),
            Self::Input { source, .. } | Self::Model { source, .. } => source.hint(),
            Self::Data(error) => error.hint(),
            _ => None,
        }
    }

    /// What happened and why, in one line: the failure, then its causes.
    pub(crate) fn message(&self) -> String {
        let mut text = self.to_string();
        let mut cause = self.source();
        while let Some(error) = cause {
            let why = error.to_string();
            // Some libraries say their cause in their own message already.
            if !text.ends_with(&why) {
                text = format!("{text}: {why}");
            }
            cause = error.source();
        }
        text
    }

    /// The line for people: an input speaks for itself, everything else is said by the program.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Input { .. } => self.message(),
            _ => format!("pretrained: {}", self.message()),
        }
    }

    /// One line of JSON, the `pretrained.error/1` schema.
    pub(crate) fn json(&self) -> String {
        line(&self.document())
    }

    /// The same as a value, for a document that lists several.
    pub(crate) fn value(&self) -> serde_json::Value {
        serde_json::to_value(self.document()).expect("plain data is JSON")
    }

    fn document(&self) -> impl Serialize {
        #[derive(Serialize)]
        struct Document<'a> {
            schema: &'static str,
            code: u8,
            kind: &'static str,
            message: String,
            #[serde(skip_serializing_if = "Option::is_none")]
            file: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            remedy: Option<String>,
        }
        let exit = self.exit();
        let file = match self {
            Self::Input { input, .. } => Some(input.as_str()),
            _ => None,
        };
        Document {
            schema: "pretrained.error/1",
            code: exit.code(),
            kind: exit.kind(),
            message: self.message(),
            file,
            remedy: self.hint(),
        }
    }
}

fn data_exit(error: &data::Error) -> Exit {
    use data::Error as E;
    match error {
        E::InvalidSpec { .. }
        | E::Manifest { .. }
        | E::UnknownKey { .. }
        | E::AmbiguousWeights { .. } => Exit::Usage,
        E::NoSuchPath { .. }
        | E::NoProvider { .. }
        | E::NotFound { .. }
        | E::RepositoryNotFound { .. }
        | E::RevisionNotFound { .. }
        | E::EntryNotFound { .. } => Exit::NotFound,
        E::Network { .. } | E::DownloadFailed { corrupt: false, .. } => Exit::Network,
        E::Gated { .. } | E::TokenRefused { .. } => Exit::Gated,
        E::Locked { .. } => Exit::Locked,
        E::NotCached(_) => Exit::Offline,
        E::WrongDigest { .. }
        | E::WrongContent { .. }
        | E::WrongSize { .. }
        | E::Unsafe { .. }
        | E::Unpinned { .. }
        | E::DownloadFailed { corrupt: true, .. } => Exit::CheckFailed,
        E::MissingWeights { .. }
        | E::NotWeights { .. }
        | E::Unsupported { .. }
        | E::OnlyPickle { .. }
        | E::Incomplete { .. } => Exit::IncompleteModel,
        E::Io { source, .. } if source.kind() == io::ErrorKind::NotFound => Exit::NotFound,
        E::Io { .. }
        | E::Write { .. }
        | E::NoSpace { .. }
        | E::Geometry { .. }
        | E::UnknownPrefab { .. }
        | E::Duplicate { .. } => Exit::Internal,
    }
}

fn checkpoint_exit(error: &checkpoint::Error) -> Exit {
    use checkpoint::Error as E;
    match error {
        E::Io { source, .. } if source.kind() == io::ErrorKind::NotFound => Exit::NotFound,
        E::Io { .. } | E::Write { .. } => Exit::Internal,
        _ => Exit::IncompleteModel,
    }
}

fn compute_exit(error: &compute::Error) -> Exit {
    match error {
        compute::Error::WeightSize { .. } => Exit::IncompleteModel,
        compute::Error::UnknownIsa { .. } => Exit::Usage,
        compute::Error::Threads { .. } => Exit::Device,
    }
}

fn audio_exit(error: &audio::Error) -> Exit {
    match error {
        audio::Error::NotFound => Exit::NotFound,
        audio::Error::Spool { .. } => Exit::Internal,
        _ => Exit::BadInput,
    }
}

fn whisper_exit(error: &whisper::Error) -> Exit {
    use whisper::Error as E;
    match error {
        E::Checkpoint(error) | E::Load(nn::Error::Checkpoint(error)) => checkpoint_exit(error),
        E::Backend(error) | E::Load(nn::Error::Backend(error)) => compute_exit(error),
        E::Load(nn::Error::Names { missing, .. }) if missing.is_empty() => Exit::CheckFailed,
        E::Load(nn::Error::Shape { .. }) => Exit::CheckFailed,
        E::ModelType { .. }
        | E::ConfigFile { .. }
        | E::NoGeometry { .. }
        | E::Config { .. }
        | E::VocabularySize { .. }
        | E::Vocabulary(_)
        | E::NotANumber
        | E::Load(_) => Exit::IncompleteModel,
        E::UnknownLanguage { .. } => Exit::Usage,
        E::File { .. } | E::Features(_) => Exit::Internal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_speaks_for_itself() {
        let error = Error::usage("no such thing", "try another").of_input("talk.wav");
        assert_eq!(error.text(), "talk.wav: no such thing");
        assert_eq!(error.exit(), Exit::Usage);
        assert_eq!(error.hint().as_deref(), Some("try another"));
        assert_eq!(
            Error::Partial {
                failed: 1,
                total: 3
            }
            .text(),
            "pretrained: 1 of 3 inputs failed"
        );
    }

    #[test]
    fn causes_follow_the_failure_once() {
        let write = Error::Write {
            path: "a.srt".into(),
            source: io::ErrorKind::StorageFull.into(),
        };
        assert_eq!(
            write.text(),
            "pretrained: cannot write a.srt: no storage space"
        );
        let source = io::ErrorKind::NotADirectory.into();
        let of_input = Error::Write {
            path: "a.srt".into(),
            source,
        }
        .of_input("a.wav");
        assert_eq!(
            of_input.text(),
            "a.wav: cannot write a.srt: not a directory"
        );
    }

    #[test]
    fn the_error_object_names_code_kind_file_and_remedy() {
        let error = Error::usage("bad \"name\"", "try another").of_input("talk.wav");
        assert_eq!(
            error.json(),
            concat!(
                r#"{"schema":"pretrained.error/1","code":2,"kind":"usage","#,
                r#""message":"talk.wav: bad \"name\"","file":"talk.wav","remedy":"try another"}"#,
                "\n"
            )
        );
    }
}
