//! What can go wrong with a Whisper model.

use std::io;
use std::path::PathBuf;

use crate::{checkpoint, compute, nn, text};

/// Why a model cannot be loaded, or a recording not transcribed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The model is of another family.
    #[error("not supported: models of type `{found}`; supported: `whisper`")]
    ModelType {
        /// What its `config.json` says.
        found: String,
    },
    /// A file of weights says nothing of its geometry, and there is no `config.json`.
    #[error("{file} carries no geometry (`dims`), and there is no config.json beside it")]
    NoGeometry {
        /// The file's name.
        file: String,
    },
    /// The geometry says something that no Whisper model can be.
    #[error("the model's geometry does not fit whisper: {key} {found}")]
    Config {
        /// The value's name, as in the file.
        key: String,
        /// What is wrong with it.
        found: String,
    },
    /// A `config.json` is no JSON, or lacks something, or has a value of another type.
    #[error("cannot use {}", file.display())]
    ConfigFile {
        /// Its path.
        file: PathBuf,
        /// What is wrong, with line and column.
        source: serde_json::Error,
    },
    /// Vocabulary and weights do not belong together.
    #[error(
        "the weights have {n_vocab} tokens, which no whisper vocabulary of {vocabulary} text tokens leads to"
    )]
    VocabularySize {
        /// Rows of the token table.
        n_vocab: usize,
        /// Text tokens of the vocabulary.
        vocabulary: usize,
    },
    /// The rank file is malformed.
    #[error(transparent)]
    Vocabulary(#[from] text::RankFileError),
    /// The weights cannot be read.
    #[error(transparent)]
    Checkpoint(#[from] checkpoint::Error),
    /// The weights do not make up the model.
    #[error(transparent)]
    Load(#[from] nn::Error),
    /// The backend failed.
    #[error(transparent)]
    Backend(#[from] compute::Error),
    /// A file beside the weights cannot be read.
    #[error("cannot read {}", path.display())]
    File {
        /// Its path.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The temporary file that holds a long recording's features cannot be read back.
    #[error("cannot read the features of the recording back")]
    Features(#[source] io::Error),
    /// The model computed something that is not a number: its weights are damaged or not those of this model.
    #[error(
        "the model's output is not a number: its weights are damaged, or belong to another model"
    )]
    NotANumber,
    /// The model has no tokens for this language.
    #[error("this model does not know the language `{language}`; it knows {known}")]
    UnknownLanguage {
        /// The language asked for.
        language: String,
        /// What it knows, in words.
        known: String,
    },
}

impl Error {
    pub(super) fn config(key: &str, found: impl std::fmt::Display) -> Self {
        Self::Config {
            key: key.to_owned(),
            found: found.to_string(),
        }
    }
}
