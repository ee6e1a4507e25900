//! A path in place of a name: which files of it are which resources.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use super::{
    Error, Kind, Resource, ResourceMap, Source,
    conventions::{COMPANIONS, WEIGHT_FILES, Weights, looked_for},
    resource::WEIGHTS,
    sniff::weights_kind,
};

/// The resources of the model at `path`, a weight file or a directory that holds one.
///
/// A weight file of a name that only directories use (`model.safetensors`) brings its companions along; one of another
/// name stands alone, for what lies beside it may belong to another model.
///
/// # Errors
/// [`Error::MissingWeights`], [`Error::AmbiguousWeights`], [`Error::NotWeights`], or [`Error::Io`].
pub(super) fn resources(path: &Path) -> Result<ResourceMap, Error> {
    let metadata = fs::metadata(path).map_err(|source| Error::Io {
        path: path.to_owned(),
        source,
    })?;
    let (weights, dir) = if metadata.is_dir() {
        (weights_in(path)?, Some(path))
    } else {
        let conventional = path
            .file_name()
            .is_some_and(|name| WEIGHT_FILES.iter().any(|known| *known == name));
        (
            path.to_owned(),
            if conventional { path.parent() } else { None },
        )
    };
    let mut resources = ResourceMap::default();
    resources.overlay(given(WEIGHTS, weights_kind(&weights)?, weights)?);
    for (key, file, kind) in COMPANIONS {
        let Some(path) = dir.map(|dir| dir.join(file)) else {
            continue;
        };
        if is_file(&path)? {
            resources.overlay(given(key, kind, path)?);
        }
    }
    Ok(resources)
}

/// The file at `path` as the resource `key`.
///
/// # Errors
/// [`Error::NoSuchPath`] when there is none, [`Error::Io`] when that cannot be told.
pub(super) fn given(key: &str, kind: Kind, path: PathBuf) -> Result<Resource, Error> {
    let metadata = match fs::metadata(&path) {
        Ok(metadata) => metadata,
        Err(error) if is_absence(&error) => return Err(Error::NoSuchPath { path }),
        Err(source) => return Err(Error::Io { path, source }),
    };
    Ok(Resource {
        key: key.to_owned(),
        file: path
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default(),
        kind,
        namespace: String::new(),
        sha256: None,
        size: Some(metadata.len()),
        sources: vec![Source::Given(path)],
    })
}

/// Whether an error of the file system says that there is no such file.
pub(super) fn is_absence(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

fn weights_in(dir: &Path) -> Result<PathBuf, Error> {
    let io = |source| Error::Io {
        path: dir.to_owned(),
        source,
    };
    let mut names = Vec::new();
    for entry in fs::read_dir(dir).map_err(io)? {
        // A name that is not UTF-8 has no ending of ours to recognise.
        let Ok(name) = entry.map_err(io)?.file_name().into_string() else {
            continue;
        };
        if !dir.join(&name).is_dir() {
            names.push(name);
        }
    }
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    match Weights::among(&names) {
        Weights::File(name) => Ok(dir.join(name)),
        Weights::Ambiguous(files) => Err(Error::AmbiguousWeights {
            path: dir.to_owned(),
            files: files.into_iter().map(str::to_owned).collect(),
        }),
        Weights::Missing => Err(Error::MissingWeights {
            path: dir.to_owned(),
            looked_for: looked_for(),
            same_name: None,
        }),
    }
}

fn is_file(path: &Path) -> Result<bool, Error> {
    match fs::metadata(path) {
        Ok(metadata) => Ok(metadata.is_file()),
        // A link that leads nowhere is there, and what it leads to is what is missing.
        Err(error) if is_absence(&error) && fs::symlink_metadata(path).is_err() => Ok(false),
        Err(source) => Err(Error::Io {
            path: path.to_owned(),
            source,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAFETENSORS: &[u8] = b"\x08\0\0\0\0\0\0\0{}      ";
    const ZIP: &[u8] = b"PK\x03\x04";

    /// A directory of `files`, each with content that fits its name.
    fn directory(files: &[&str]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for file in files {
            let bytes = match file.rsplit('.').next().unwrap() {
                "safetensors" => SAFETENSORS,
                "json" => b"{}",
                _ => ZIP,
            };
            fs::write(dir.path().join(file), bytes).unwrap();
        }
        dir
    }

    fn summary(path: &Path) -> Vec<String> {
        let resources = resources(path).unwrap();
        resources
            .iter()
            .map(|r| format!("{} {} {}", r.key, r.kind, r.file))
            .collect()
    }

    #[test]
    fn directories_are_read_by_convention() {
        let cases: [(&[&str], &[&str]); 6] = [
            (
                &[
                    "config.json",
                    "tokenizer.json",
                    "model.safetensors",
                    "pytorch_model.bin",
                    "readme.md",
                ],
                &[
                    "weights safetensors model.safetensors",
                    "config json config.json",
                    "tokenizer tokenizer-json tokenizer.json",
                ],
            ),
            (
                &[
                    "model-00001-of-00002.safetensors",
                    "model-00002-of-00002.safetensors",
                    "model.safetensors.index.json",
                ],
                &["weights safetensors-index model.safetensors.index.json"],
            ),
            (
                &["pytorch_model.bin", "config.json"],
                &[
                    "weights pytorch pytorch_model.bin",
                    "config json config.json",
                ],
            ),
            (&["tiny.en.pt"], &["weights openai-pt tiny.en.pt"]),
            (
                &["tiny.en-q8.safetensors", "tiny.en.pt"],
                &["weights safetensors tiny.en-q8.safetensors"],
            ),
            (
                &["tiny.pt", "generation_config.json"],
                &[
                    "weights openai-pt tiny.pt",
                    "generation_config json generation_config.json",
                ],
            ),
        ];
        for (files, expected) in cases {
            assert_eq!(summary(directory(files).path()), expected, "{files:?}");
        }
    }

    #[test]
    fn conventional_weight_file_brings_its_companions_along() {
        let dir = directory(&["model.safetensors", "config.json", "other.safetensors"]);
        let conventional = summary(&dir.path().join("model.safetensors"));
        assert_eq!(
            conventional,
            [
                "weights safetensors model.safetensors",
                "config json config.json"
            ]
        );
        assert_eq!(
            summary(&dir.path().join("other.safetensors")),
            ["weights safetensors other.safetensors"]
        );
    }

    #[test]
    fn missing_weights_name_everything_looked_for() {
        let dir = directory(&["config.json"]);
        fs::create_dir(dir.path().join("model.safetensors")).unwrap();
        let message = resources(dir.path()).unwrap_err().to_string();
        for name in WEIGHT_FILES.into_iter().chain(["*.safetensors", "*.pt"]) {
            assert!(message.contains(&format!("`{name}`")), "{message}");
        }
    }

    #[test]
    fn two_candidates_are_not_guessed_between() {
        let dir = directory(&["tiny.pt", "base.pt"]);
        let error = resources(dir.path()).unwrap_err();
        assert!(
            matches!(error, Error::AmbiguousWeights { files, .. } if files == ["base.pt", "tiny.pt"])
        );
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed_and_dangling_ones_are_named() {
        let dir = directory(&["blob.pt"]);
        let snapshot = tempfile::tempdir().unwrap();
        let link = |to: &str, name: &str| {
            std::os::unix::fs::symlink(dir.path().join(to), snapshot.path().join(name)).unwrap();
        };
        link("blob.pt", "tiny.pt");
        assert_eq!(summary(snapshot.path()), ["weights openai-pt tiny.pt"]);
        link("none", "model.safetensors");
        let error = resources(snapshot.path()).unwrap_err();
        assert!(matches!(error, Error::Io { path, .. } if path.ends_with("model.safetensors")));
    }
}
