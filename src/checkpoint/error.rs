//! Why a checkpoint cannot be read or written.

use std::io;
use std::path::PathBuf;

use super::{Dtype, GgmlFault, GgufFault, HeaderFault};
use crate::data::Signature;

/// Why a checkpoint cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The name is not in the checkpoint.
    #[error("no tensor `{name}`")]
    MissingTensor {
        /// The name asked for.
        name: String,
    },
    /// The file system refused.
    #[error("cannot read {path}")]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A directory, pipe or device where a file of weights was expected.
    #[error("{path} is not a regular file")]
    NotAFile {
        /// The path given.
        path: PathBuf,
    },
    /// The file is something else: a web page, a Git LFS pointer, a format that is not read.
    #[error("{path} is {found}, not model weights{}", remedy(*.found))]
    NotWeights {
        /// The file.
        path: PathBuf,
        /// What it is.
        found: Signature,
    },
    /// A safetensors file whose header does not fit its bytes.
    #[error("{path}: {fault}")]
    Safetensors {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        fault: HeaderFault,
    },
    /// An index of shards that is not JSON of the expected form.
    #[error("{path} is not an index of shards")]
    Index {
        /// The index.
        path: PathBuf,
        /// Where and how it departs from the form.
        source: serde_json::Error,
    },
    /// An index names a shard outside its own directory.
    #[error("{index}: shard `{shard}` is not a path inside the model's directory")]
    UnsafeShard {
        /// The index.
        index: PathBuf,
        /// The shard's name as written there.
        shard: String,
    },
    /// An index names shards that are not there.
    #[error("{index}: {} missing", shards_are(.shards))]
    MissingShards {
        /// The index.
        index: PathBuf,
        /// Their names as written there.
        shards: Vec<String>,
    },
    /// An index promises a tensor that its shard does not hold.
    #[error("{index}: tensor `{tensor}` is not in `{shard}`, where the index puts it")]
    AbsentTensor {
        /// The index.
        index: PathBuf,
        /// The tensor.
        tensor: String,
        /// The shard that should hold it.
        shard: String,
    },
    /// Two shards hold a tensor of the same name.
    #[error("{index}: tensor `{tensor}` is both in `{first}` and in `{second}`")]
    RepeatedTensor {
        /// The index.
        index: PathBuf,
        /// The tensor.
        tensor: String,
        /// A shard that holds it.
        first: String,
        /// Another.
        second: String,
    },
    /// A torch archive that is damaged or refused.
    #[cfg(feature = "pickle")]
    #[error("{path}: {fault}")]
    Torch {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        fault: super::TorchFault,
    },
    /// A torch archive, and a build that reads none.
    #[error("{path} is a torch archive, and this build, without its feature `pickle`, reads none")]
    NoPickle {
        /// The file.
        path: PathBuf,
    },
    /// A state dict is asked for in a file of a format that has none.
    #[error("{path} is {found}, which has no state dict `{key}`")]
    NoStateDict {
        /// The file.
        path: PathBuf,
        /// What it is.
        found: Signature,
        /// The path of keys asked for.
        key: String,
    },
    /// A GGUF file whose header does not fit its bytes.
    #[error("{path}: {fault}")]
    Gguf {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        fault: GgufFault,
    },
    /// A file of whisper.cpp's form that cannot be used.
    #[error("{path}: {fault}")]
    Ggml {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        fault: GgmlFault,
    },
    /// A tensor whose values are stored in blocks.
    #[error(
        "{path}: tensor `{tensor}` is quantised as {dtype}, which cannot be used; take a file of F32, F16 or BF16"
    )]
    Quantised {
        /// The file.
        path: PathBuf,
        /// The tensor.
        tensor: String,
        /// Its type.
        dtype: Dtype,
    },
    /// A file of tensors cannot be written.
    #[error("cannot write {path}")]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// What to do about a file that holds no weights, as the end of a message.
fn remedy(found: Signature) -> &'static str {
    match found {
        Signature::LfsPointer => "; fetch the real file with `git lfs pull`",
        Signature::Html | Signature::Empty => "; download it again",
        Signature::LegacyTorch | Signature::BarePickle => {
            "; load it in Python and write it again: torch.save(torch.load(\"old.pt\"), \"new.pt\")"
        }
        _ => "",
    }
}

/// The names of shards, and the verb that follows them.
fn shards_are(names: &[String]) -> String {
    match names {
        [_] => format!("shard {} is", listed(names)),
        _ => format!("{} shards, {}, are", names.len(), listed(names)),
    }
}

/// The first eight of `names`, each fit for a message, and how many more there are.
pub(crate) fn listed(names: &[String]) -> String {
    const MAX_LISTED: usize = 8;
    let shown = names.iter().take(MAX_LISTED);
    let mut list: Vec<_> = shown.map(|name| format!("`{}`", printable(name))).collect();
    if let Some(more) = names.len().checked_sub(MAX_LISTED).filter(|&more| more > 0) {
        list.push(format!("{more} more"));
    }
    list.join(", ")
}

/// A name out of a file, fit for one line of a message: control characters escaped, and cut after 100 characters.
pub(super) fn printable(name: &str) -> String {
    const MAX_CHARS: usize = 100;
    let mut shown = String::new();
    for (i, c) in name.chars().enumerate() {
        if i == MAX_CHARS {
            shown.push('…');
            break;
        }
        if c.is_control() {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_from_files_cannot_break_a_line_or_fill_the_screen() {
        assert_eq!(printable("a\nb\x1b[31m"), "a\\nb\\u{1b}[31m");
        assert_eq!(printable(&"x".repeat(1000)).chars().count(), 101);
    }

    #[test]
    fn messages_are_one_line_and_say_what_to_do() {
        let error = Error::NotWeights {
            path: "m.safetensors".into(),
            found: Signature::LfsPointer,
        };
        assert_eq!(
            error.to_string(),
            "m.safetensors is a Git LFS pointer, not model weights; fetch the real file with `git lfs pull`"
        );
    }
}
