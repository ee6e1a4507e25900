use std::{
    io,
    path::{Path, PathBuf},
};

use super::{Defect, GitBlob, Kind, NotCached, Sha256, Signature};

/// Why a name did not become local files.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The text is neither a path nor a well-formed name.
    #[error("`{spec}` is not a model: {reason}")]
    InvalidSpec {
        /// As typed.
        spec: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// What can only be a path does not exist.
    #[error("no such file or directory: `{}`", path.display())]
    NoSuchPath {
        /// The path, `~/` expanded.
        path: PathBuf,
    },
    /// The prefix names no provider of the kit.
    #[error("no provider `{provider}` in this build")]
    NoProvider {
        /// What stood before the colon.
        provider: String,
        /// The providers there are.
        known: Vec<String>,
    },
    /// Every provider that was asked answered that it has no such row.
    #[error("no model `{reference}` in {}{}", list(asked), if *bare { ", and no such file or directory" } else { "" })]
    NotFound {
        /// As asked.
        reference: String,
        /// Whether it was typed without a provider, so that it could have been a path.
        bare: bool,
        /// The providers asked.
        asked: Vec<String>,
        /// Specs that were perhaps meant, best first.
        near: Vec<String>,
        /// Specs of all rows.
        known: Vec<String>,
    },
    /// A file is in none of its places, and cannot be fetched.
    #[error(transparent)]
    NotCached(Box<NotCached>),
    /// The hub gives the files only to those who asked for them and were let in.
    #[error("the files of `{repo}` are given only to accounts that were granted access{}", if *with_token { ", and this token's was not" } else { "" })]
    Gated {
        /// The repository.
        repo: String,
        /// Its page, where access is asked for.
        page: String,
        /// Whether a token was sent.
        with_token: bool,
        /// A spec of the same model where nobody asks.
        ungated: Option<String>,
    },
    /// The hub does not know the token that it was sent.
    #[error("the hub refuses the token that was sent for `{repo}`")]
    TokenRefused {
        /// The repository.
        repo: String,
    },
    /// The hub has no such repository, or does not show it to us.
    #[error("the hub has no repository `{repo}`, or it is private and {}", if *with_token { "this token may not see it" } else { "there is no token" })]
    RepositoryNotFound {
        /// The repository.
        repo: String,
        /// Whether a token was sent.
        with_token: bool,
    },
    /// The repository has no such branch, tag or commit.
    #[error("`{repo}` has no revision `{revision}`")]
    RevisionNotFound {
        /// The repository.
        repo: String,
        /// The revision.
        revision: String,
        /// Revisions of it that are in the cache.
        known: Vec<String>,
    },
    /// The repository has no such file.
    #[error("`{repo}` has no file `{file}`")]
    EntryNotFound {
        /// The repository, with its revision.
        repo: String,
        /// The file.
        file: String,
    },
    /// A hub's listing or commit cannot be trusted; nothing was downloaded.
    #[error("`{repo}`: the hub's {what} `{value}` is refused: {reason}")]
    Unsafe {
        /// The repository.
        repo: String,
        /// `path` or `commit`.
        what: &'static str,
        /// As listed.
        value: String,
        /// Why.
        reason: &'static str,
    },
    /// No answer that could be used.
    #[error("{url}: {reason}")]
    Network {
        /// What was asked for, without its query.
        url: String,
        /// What came of it.
        reason: String,
        /// What the user can do about it.
        remedy: Option<&'static str>,
    },
    /// A file was answered with other bytes than promised; nothing of it was kept.
    #[error("cannot download `{file}`: {}", attempts.join("; "))]
    DownloadFailed {
        /// The file.
        file: String,
        /// What each place answered.
        attempts: Vec<String>,
        /// Whether the bytes were there but wrong.
        corrupt: bool,
    },
    /// The file system has no room for what is to be fetched.
    #[error("`{}` has {free} bytes free, and {needed} are needed", path.display())]
    NoSpace {
        /// Where.
        path: PathBuf,
        /// Bytes to come.
        needed: u64,
        /// Bytes there are.
        free: u64,
    },
    /// Another process holds a lock.
    #[error("`{}` is locked{}", path.display(), holder.map(|pid| format!(" by process {pid}")).unwrap_or_default())]
    Locked {
        /// The lock.
        path: PathBuf,
        /// The process that holds it.
        holder: Option<u32>,
    },
    /// The file system refused to take something.
    #[error("cannot write `{}`", path.display())]
    Write {
        /// What was to be written.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// A repository's weights are only there as a pickle, and nobody allowed that.
    #[error("`{model}` has its weights only as {}", list(files))]
    OnlyPickle {
        /// The spec.
        model: String,
        /// The pickles.
        files: Vec<String>,
    },
    /// A published file that nothing pins, and that no hub lists either.
    #[error("`{file}` of `{model}` has no sha256 to hold it against")]
    Unpinned {
        /// The spec.
        model: String,
        /// The file.
        file: String,
    },
    /// A file's bytes do not have the digest that pins them.
    #[error("`{file}` has sha256 {found}, expected {expected}")]
    WrongDigest {
        /// Its path, or its name when its bytes are linked in.
        file: String,
        /// Whether its bytes are linked into the binary.
        linked: bool,
        /// The pin.
        expected: Sha256,
        /// Computed from the bytes.
        found: Sha256,
    },
    /// A file of a hub's repository is not what the hub listed.
    #[error("git calls `{}` {found}, and the hub lists {expected}", path.display())]
    WrongContent {
        /// Its path.
        path: PathBuf,
        /// What the hub lists.
        expected: GitBlob,
        /// Computed from the bytes.
        found: GitBlob,
    },
    /// A file at its pinned path has another length than its row says.
    #[error("`{}` has {found} bytes, expected {expected}", path.display())]
    WrongSize {
        /// The pinned path.
        path: PathBuf,
        /// The row's.
        expected: u64,
        /// The file's.
        found: u64,
    },
    /// A directory holds no weights.
    #[error("no weights in `{}`: looked for {}", path.display(), list(looked_for))]
    MissingWeights {
        /// The directory.
        path: PathBuf,
        /// Every name and pattern looked for.
        looked_for: Vec<String>,
        /// The spec of a model that has the directory's name.
        same_name: Option<String>,
    },
    /// A directory holds several weight files and no rule says which one is meant.
    #[error("several weight files in `{}`: {}", path.display(), list(files))]
    AmbiguousWeights {
        /// The directory.
        path: PathBuf,
        /// Their names.
        files: Vec<String>,
    },
    /// A file given as weights is something else.
    #[error("`{}` is {found}, not model weights", path.display())]
    NotWeights {
        /// The file.
        path: PathBuf,
        /// What it is, with its article.
        found: &'static str,
    },
    /// No constructor of the kit reads weights of this kind.
    #[error("{kit} cannot read weights of kind {found} (`{model}`)")]
    Unsupported {
        /// The spec.
        model: String,
        /// The kit.
        kit: String,
        /// The kind of the weights.
        found: Kind,
        /// The kinds that can be read.
        readable: Vec<String>,
    },
    /// Weights are there, but not what the kit needs beside them.
    #[error("`{model}` is incomplete: no {}", list(missing))]
    Incomplete {
        /// The spec.
        model: String,
        /// The keys that are missing.
        missing: Vec<String>,
    },
    /// An overlay's key means nothing to this model.
    #[error("`{model}` has no resource `{key}`")]
    UnknownKey {
        /// The spec.
        model: String,
        /// The overlay's key.
        key: String,
        /// The keys it has or may have.
        known: Vec<String>,
    },
    /// A row names a prefab that the factory does not have.
    #[error("row `{row}` names the prefab `{prefab}`, which does not exist")]
    UnknownPrefab {
        /// The row.
        row: String,
        /// The missing prefab.
        prefab: String,
    },
    /// A prefab's geometry is not what its kit expects.
    #[error("prefab `{prefab}`: {message}")]
    Geometry {
        /// The prefab.
        prefab: String,
        /// Which field, and what is wrong with it.
        message: String,
    },
    /// A table of rows cannot be used.
    #[error("{table}:{line}: {defect}")]
    Manifest {
        /// The file or table.
        table: String,
        /// Counted from 1.
        line: usize,
        /// What is wrong there.
        defect: Defect,
    },
    /// A second provider of the same name, or a second, different prefab of the same name.
    #[error("{what} `{name}` is there already")]
    Duplicate {
        /// `provider` or `prefab`.
        what: &'static str,
        /// Its name.
        name: String,
    },
    /// The file system refused.
    #[error("cannot read `{}`", path.display())]
    Io {
        /// What was to be read.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
}

/// How many models' names a hint gives.
const MODELS_SHOWN: usize = 24;

impl Error {
    /// Whether it says no more than that nobody knows the name.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::NotFound { .. })
    }

    /// Adds what another search for the same name says.
    pub fn join(&mut self, other: Self) {
        if let (
            Self::NotFound {
                asked, near, known, ..
            },
            Self::NotFound {
                asked: more_asked,
                near: more_near,
                known: more_known,
                ..
            },
        ) = (self, other)
        {
            let news = more_asked
                .into_iter()
                .filter(|provider| !asked.contains(provider));
            let news: Vec<_> = news.collect();
            asked.extend(news);
            near.extend(more_near);
            known.extend(more_known);
        }
    }

    /// What the user can do about it, in one line.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NoProvider { known, .. } => Some(format!("the providers are {}", list(known))),
            Self::NotFound { near, known, .. } if near.is_empty() => {
                let shown = &known[..known.len().min(MODELS_SHOWN)];
                let more = match known.len() - shown.len() {
                    0 => String::new(),
                    more => format!(", and {more} more"),
                };
                (!known.is_empty()).then(|| format!("the models are {}{more}", list(shown)))
            }
            Self::NotFound { near, .. } => Some(format!("did you mean {}?", either(near))),
            Self::NotCached(missing) => Some(missing.hint()),
            Self::WrongDigest { linked: true, .. } => {
                Some("this binary is damaged: install it again".to_owned())
            }
            Self::WrongContent { .. } => {
                Some("`pretrained fetch --force` fetches it again".to_owned())
            }
            Self::WrongDigest { .. } | Self::WrongSize { .. } => Some(
                "the file is damaged or another one: `pretrained fetch --force NAME` brings it anew"
                    .to_owned(),
            ),
            Self::MissingWeights {
                same_name: Some(spec),
                ..
            } => Some(format!("for the model of that name write `{spec}`")),
            Self::AmbiguousWeights { .. } => Some("give the path of one of them".to_owned()),
            Self::NotWeights { found, .. } if *found == Signature::LfsPointer.words() => {
                Some("fetch the real file with `git lfs pull`".to_owned())
            }
            Self::NotWeights { .. } => Some(
                "give a safetensors file, a torch archive, or a directory that holds one"
                    .to_owned(),
            ),
            Self::Gated {
                page,
                with_token,
                ungated,
                ..
            } => Some(gated_hint(page, *with_token, ungated.as_deref())),
            Self::TokenRefused { .. } => Some(
                "it has expired or is misspelt: put another one into HF_TOKEN, or none for what is public"
                    .to_owned(),
            ),
            Self::RepositoryNotFound {
                with_token: false, ..
            } => Some("check the spelling; for a private one put a token into HF_TOKEN".to_owned()),
            Self::RepositoryNotFound { .. } => Some("check the spelling, and the token".to_owned()),
            Self::RevisionNotFound { known, .. } => {
                (!known.is_empty()).then(|| format!("in the cache there is {}", list(known)))
            }
            Self::Unsafe { .. } => {
                Some("this hub is broken or hostile: nothing was downloaded".to_owned())
            }
            Self::Network { remedy, .. } => remedy.map(str::to_owned),
            Self::DownloadFailed { corrupt: true, .. } => {
                Some("what came is not the published file; nothing of it was kept".to_owned())
            }
            Self::DownloadFailed { .. } => Some("try again: what has come is kept".to_owned()),
            Self::NoSpace { .. } => {
                Some("make room, or name another place by `--cache-dir`".to_owned())
            }
            Self::Locked { .. } => Some("wait for it, or end it".to_owned()),
            Self::OnlyPickle { .. } => Some(
                "`--allow-pickle` fetches them; they are read without running anything in them"
                    .to_owned(),
            ),
            Self::Unpinned { .. } => Some(
                "`pretrained fetch --allow-unpinned` fetches it and prints the digest to pin it by"
                    .to_owned(),
            ),
            Self::Unsupported { readable, .. } => Some(format!("it reads {}", list(readable))),
            Self::Incomplete { .. } => Some("put it beside the weights".to_owned()),
            Self::UnknownKey { known, .. } => Some(format!("the keys are {}", list(known))),
            _ => None,
        }
    }
}

/// The error of a file system that would not take `path`.
pub(super) fn unwritable(path: &Path, source: io::Error) -> Error {
    Error::Write {
        path: path.to_owned(),
        source,
    }
}

/// The error of a file system that would not give `path`.
pub(super) fn unreadable(path: &Path, source: io::Error) -> Error {
    Error::Io {
        path: path.to_owned(),
        source,
    }
}

fn gated_hint(page: &str, with_token: bool, ungated: Option<&str>) -> String {
    let ask = if with_token {
        format!("ask for access at {page}")
    } else {
        format!("ask for access at {page}, and put a token of that account into HF_TOKEN")
    };
    ungated.map_or_else(
        || ask.clone(),
        |spec| format!("{ask}; or use `{spec}`, the same model without a gate"),
    )
}

/// Quoted items after one another.
pub(super) fn list(items: &[String]) -> String {
    items
        .iter()
        .map(|item| format!("`{item}`"))
        .collect::<Vec<_>>()
        .join(", ")
}

/// Quoted items of which one is to be chosen.
pub(super) fn either(items: &[String]) -> String {
    items
        .iter()
        .map(|item| format!("`{item}`"))
        .collect::<Vec<_>>()
        .join(" or ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Results carry the error by value; clippy's `result_large_err` draws the line at 128 bytes.
    #[test]
    fn error_is_small() {
        assert!(size_of::<Error>() <= 128, "{}", size_of::<Error>());
    }

    #[test]
    fn a_hint_names_so_many_models_and_counts_the_rest() {
        let hint = |models: usize| {
            let known = (0..models).map(|n| format!("m{n}")).collect();
            let error = Error::NotFound {
                reference: "x".to_owned(),
                bare: true,
                asked: Vec::new(),
                near: Vec::new(),
                known,
            };
            error.hint()
        };
        assert_eq!(hint(0), None);
        assert_eq!(hint(2).unwrap(), "the models are `m0`, `m1`");
        assert!(hint(MODELS_SHOWN).unwrap().ends_with(", `m23`"));
        assert!(hint(100).unwrap().ends_with(", `m23`, and 76 more"));
    }
}
