use glob::{MatchOptions, Pattern};

use super::Listing;
use crate::data::{Error, conventions::Weights};

/// What is fetched of a repository when nothing else is said: configuration, tokenizer, templates, and the parts of an
/// embedder's pipeline; the weights are chosen besides.
const DEFAULTS: [&str; 8] = [
    "*.json",
    "*.txt",
    "*.jinja",
    "*.tiktoken",
    "*tokenizer.model",
    "*.spm",
    "1_Pooling/*",
    "*_Dense/*",
];

/// What those patterns would bring of other frameworks.
const OTHERS: [&str; 6] = [
    "onnx/*",
    "openvino/*",
    "coreml/*",
    "*.onnx",
    "*.bin",
    "*.md",
];

/// Which files of a repository are wanted.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    include: Vec<Pattern>,
    exclude: Vec<Pattern>,
    /// Whether weights may come as a pickle when there are no others.
    pub allow_pickle: bool,
}

impl Choice {
    /// The files that match one of `include`, or the usual ones when there is none, less those that match one of
    /// `exclude`. A pattern is matched against the whole path, and `*` crosses slashes; one that ends in a slash means all
    /// that is under it (Python's `fnmatch`, as huggingface_hub `utils/_paths.py` uses it).
    ///
    /// # Errors
    /// The pattern that is none, with the reason.
    pub fn new(include: &[String], exclude: &[String]) -> Result<Self, (String, &'static str)> {
        let patterns = |texts: &[String]| {
            texts
                .iter()
                .map(|text| pattern(text))
                .collect::<Result<_, _>>()
        };
        Ok(Self {
            include: patterns(include)?,
            exclude: patterns(exclude)?,
            allow_pickle: false,
        })
    }

    /// The paths of `listing` that are wanted, in order.
    ///
    /// # Errors
    /// [`Error::OnlyPickle`] when the weights are there only as pickles and those are not allowed;
    /// [`Error::EntryNotFound`] when nothing matches.
    pub(in crate::data) fn of<'a>(
        &self,
        model: &str,
        listing: &'a Listing,
    ) -> Result<Vec<&'a str>, Error> {
        let paths = listing.files.keys().map(String::as_str);
        let kept = |path: &&str| !any(&self.exclude, path);
        if !self.include.is_empty() {
            let chosen: Vec<_> = paths
                .filter(|path| any(&self.include, path))
                .filter(kept)
                .collect();
            if chosen.is_empty() {
                let patterns: Vec<_> = self.include.iter().map(Pattern::as_str).collect();
                return Err(Error::EntryNotFound {
                    repo: listing.repo.to_string(),
                    file: patterns.join("` or `"),
                });
            }
            return Ok(chosen);
        }
        let all: Vec<_> = paths.collect();
        let weights = self.weights(model, &all)?;
        let usual = |path: &&str| {
            let path = *path;
            if weights.contains(&path) {
                return true;
            }
            let is_weights = path.ends_with(".safetensors") || path.ends_with(".index.json");
            let is_part = matches(&DEFAULTS[6..], path);
            matches(&DEFAULTS, path) && !matches(&OTHERS, path) && (!is_weights || is_part)
        };
        Ok(all.iter().copied().filter(usual).filter(kept).collect())
    }

    /// The weights: one file, or an index and its shards; a lone file of another format where there is nothing else.
    fn weights<'a>(&self, model: &str, all: &[&'a str]) -> Result<Vec<&'a str>, Error> {
        let pickles: Vec<_> = all
            .iter()
            .copied()
            .filter(|path| !path.contains('/') && is_pickle(path))
            .collect();
        match Weights::among(all) {
            Weights::File(file) if !is_pickle(file) => Ok(with_shards(file, all)),
            _ if pickles.is_empty() => {
                let ggufs: Vec<_> = all
                    .iter()
                    .copied()
                    .filter(|it| it.ends_with(".gguf"))
                    .collect();
                Ok(if ggufs.len() == 1 { ggufs } else { Vec::new() })
            }
            _ if self.allow_pickle => Ok(pickles),
            _ => Err(Error::OnlyPickle {
                model: model.to_owned(),
                files: pickles.into_iter().map(str::to_owned).collect(),
            }),
        }
    }
}

pub(super) fn is_pickle(path: &str) -> bool {
    [".bin", ".pt", ".pth", ".bin.index.json"]
        .iter()
        .any(|ending| path.ends_with(ending))
}

/// `file`, and when it is an index what it may name: `model-00001-of-00002.safetensors`.
fn with_shards<'a>(file: &'a str, all: &[&'a str]) -> Vec<&'a str> {
    let Some(stem) = file.strip_suffix(".safetensors.index.json") else {
        return vec![file];
    };
    let is_shard = |path: &&str| {
        let rest = path
            .strip_prefix(stem)
            .and_then(|rest| rest.strip_suffix(".safetensors"));
        rest.is_some_and(|rest| rest.starts_with('-'))
    };
    let shards = all.iter().copied().filter(is_shard);
    std::iter::once(file).chain(shards).collect()
}

fn pattern(text: &str) -> Result<Pattern, (String, &'static str)> {
    let mut spelled = text.to_owned();
    if spelled.ends_with('/') {
        spelled.push('*');
    }
    // Two stars mean what one does.
    while spelled.contains("**") {
        spelled = spelled.replace("**", "*");
    }
    Pattern::new(&spelled).map_err(|error| (text.to_owned(), error.msg))
}

fn any(patterns: &[Pattern], path: &str) -> bool {
    let options = MatchOptions {
        case_sensitive: true,
        require_literal_separator: false,
        require_literal_leading_dot: false,
    };
    patterns
        .iter()
        .any(|pattern| pattern.matches_with(path, options))
}

fn matches(patterns: &[&str], path: &str) -> bool {
    let patterns: Vec<_> = patterns
        .iter()
        .map(|text| pattern(text).expect("a constant"))
        .collect();
    any(&patterns, path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{GitBlob, hub::Entry};

    fn listing(paths: &[&str]) -> Listing {
        let entry = Entry {
            size: 0,
            blob_id: GitBlob::of(b""),
            lfs_sha256: None,
            lfs_size: None,
        };
        Listing::new(
            "org/repo".parse().unwrap(),
            "0123456789abcdef0123456789abcdef01234567".parse().unwrap(),
            paths
                .iter()
                .map(|path| ((*path).to_owned(), entry.clone()))
                .collect(),
        )
        .unwrap()
    }

    fn chosen(choice: &Choice, paths: &[&str]) -> Vec<String> {
        let listing = listing(paths);
        let chosen = choice.of("hf:org/repo", &listing).unwrap();
        chosen.into_iter().map(str::to_owned).collect()
    }

    #[test]
    fn usual_choice_is_what_runs_the_model() {
        let cases: [(&[&str], &[&str]); 4] = [
            (
                &[
                    ".gitattributes",
                    "1_Pooling/config.json",
                    "2_Dense/config.json",
                    "2_Dense/model.safetensors",
                    "README.md",
                    "config.json",
                    "data/x.parquet",
                    "flax_model.msgpack",
                    "model.safetensors",
                    "onnx/config.json",
                    "onnx/model.onnx",
                    "openvino/openvino_model.bin",
                    "pytorch_model.bin",
                    "tokenizer.json",
                    "vocab.txt",
                ],
                &[
                    "1_Pooling/config.json",
                    "2_Dense/config.json",
                    "2_Dense/model.safetensors",
                    "config.json",
                    "model.safetensors",
                    "tokenizer.json",
                    "vocab.txt",
                ],
            ),
            (
                &[
                    "config.json",
                    "model-00001-of-00002.safetensors",
                    "model-00002-of-00002.safetensors",
                    "model.fp32-00001-of-00002.safetensors",
                    "model.safetensors.index.fp32.json",
                    "model.safetensors.index.json",
                    "pytorch_model.bin.index.json",
                ],
                &[
                    "config.json",
                    "model-00001-of-00002.safetensors",
                    "model-00002-of-00002.safetensors",
                    "model.safetensors.index.fp32.json",
                    "model.safetensors.index.json",
                ],
            ),
            (
                &["config.json", "model-q8_0.gguf"],
                &["config.json", "model-q8_0.gguf"],
            ),
            (&["a.gguf", "b.gguf", "config.json"], &["config.json"]),
        ];
        for (paths, expected) in cases {
            assert_eq!(chosen(&Choice::default(), paths), expected);
        }
    }

    #[test]
    fn pickles_are_taken_only_when_allowed_and_alone() {
        let mut choice = Choice::default();
        let lone = listing(&["config.json", "pytorch_model.bin"]);
        let error = choice.of("hf:org/repo", &lone).unwrap_err();
        assert!(matches!(error, Error::OnlyPickle { files, .. } if files == ["pytorch_model.bin"]));
        choice.allow_pickle = true;
        assert_eq!(
            chosen(&choice, &["config.json", "pytorch_model.bin"]),
            ["config.json", "pytorch_model.bin"]
        );
        assert_eq!(
            chosen(&choice, &["model.safetensors", "pytorch_model.bin"]),
            ["model.safetensors"]
        );
    }

    #[test]
    fn patterns_match_whole_paths_as_fnmatch_does() {
        let paths = [
            "1_Pooling/config.json",
            "README.md",
            "config.json",
            "onnx/model.onnx",
        ];
        let cases: [(&[&str], &[&str], &[&str]); 5] = [
            (&["*.json"], &[], &["1_Pooling/config.json", "config.json"]),
            (&["onnx/"], &[], &["onnx/model.onnx"]),
            (&["**/config.json"], &[], &["1_Pooling/config.json"]),
            (&["[cR]*"], &["*.md"], &["config.json"]),
            (&["*"], &["*/*"], &["README.md", "config.json"]),
        ];
        let owned = |texts: &[&str]| {
            texts
                .iter()
                .map(|&text| text.to_owned())
                .collect::<Vec<_>>()
        };
        for (include, exclude, expected) in cases {
            let choice = Choice::new(&owned(include), &owned(exclude)).unwrap();
            assert_eq!(chosen(&choice, &paths), expected, "{include:?} {exclude:?}");
        }
        let other_case = Choice::new(&owned(&["CONFIG.json"]), &[]).unwrap();
        let error = other_case.of("hf:org/repo", &listing(&paths)).unwrap_err();
        assert_eq!(error.to_string(), "`org/repo` has no file `CONFIG.json`");
        assert!(Choice::new(&["[".to_owned()], &[]).is_err());
    }
}
