use std::{fs::File, io::Read, path::Path};

use super::signature::PREFIX_BYTES;
use super::{Error, Kind, Signature, conventions};

/// What the weight file at `path` holds: by its content where that is conclusive, else by its name, so that a damaged
/// file still reaches the reader that can say how it is damaged.
///
/// # Errors
/// [`Error::NotWeights`] for what is certainly something else, [`Error::Io`] when the file cannot be read.
pub(super) fn weights_kind(path: &Path) -> Result<Kind, Error> {
    let io = |source| Error::Io {
        path: path.to_owned(),
        source,
    };
    let not_weights = |found| Error::NotWeights {
        path: path.to_owned(),
        found,
    };
    let metadata = path.metadata().map_err(io)?;
    if metadata.is_dir() {
        return Err(not_weights("a directory"));
    }
    if !metadata.is_file() {
        return Err(not_weights("not a regular file"));
    }
    let mut head = Vec::with_capacity(PREFIX_BYTES);
    File::open(path)
        .map_err(io)?
        .take(PREFIX_BYTES as u64)
        .read_to_end(&mut head)
        .map_err(io)?;
    match Signature::of(&head) {
        Signature::Zip if named(path, ".pt") => Ok(Kind::OpenaiPt),
        Signature::Zip => Ok(Kind::Pytorch),
        Signature::Safetensors => Ok(Kind::Safetensors),
        Signature::Gguf => Ok(Kind::Gguf),
        Signature::Ggml => Ok(Kind::Ggml),
        found @ (Signature::Empty | Signature::Html | Signature::LfsPointer) => {
            Err(not_weights(found.words()))
        }
        found => kind_by_name(path).ok_or_else(|| not_weights(found.words())),
    }
}

/// The kind of a weight file by its ending; a document beside weights is none.
fn kind_by_name(path: &Path) -> Option<Kind> {
    let kind = conventions::kind_by_name(path.file_name()?.to_str()?)?;
    matches!(
        kind,
        Kind::Safetensors | Kind::SafetensorsIndex | Kind::OpenaiPt | Kind::Pytorch | Kind::Gguf
    )
    .then_some(kind)
}

fn named(path: &Path, end: &str) -> bool {
    path.file_name()
        .is_some_and(|name| name.as_encoded_bytes().ends_with(end.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_decides_and_the_name_helps() {
        let safetensors = b"\x08\0\0\0\0\0\0\0{}      ";
        let cases: [(&str, &[u8], Result<Kind, &str>); 14] = [
            ("tiny.pt", b"PK\x03\x04rest", Ok(Kind::OpenaiPt)),
            ("pytorch_model.bin", b"PK\x03\x04rest", Ok(Kind::Pytorch)),
            ("model.safetensors", safetensors, Ok(Kind::Safetensors)),
            ("misnamed.pt", safetensors, Ok(Kind::Safetensors)),
            ("x", b"GGUF\x03\0\0\0", Ok(Kind::Gguf)),
            ("ggml-base.bin", b"lmgg\x01", Ok(Kind::Ggml)),
            (
                "model.safetensors.index.json",
                b"{\"metadata\": {}}",
                Ok(Kind::SafetensorsIndex),
            ),
            (
                "lying.safetensors",
                b"\xff\xff\xff\xff\xff\xff\xff\xff{}",
                Ok(Kind::Safetensors),
            ),
            ("short.pt", b"P", Ok(Kind::OpenaiPt)),
            ("empty.pt", b"", Err("an empty file")),
            (
                "page.safetensors",
                b"\n<!DOCTYPE html><html>",
                Err("an HTML page"),
            ),
            ("page.pt", b"<HTML>", Err("an HTML page")),
            (
                "pointer.safetensors",
                b"version https://git-lfs.github.com/spec/v1\noid sha256:",
                Err("a Git LFS pointer"),
            ),
            ("notes.txt", b"hello", Err("a text file")),
        ];
        let dir = tempfile::tempdir().unwrap();
        for (name, bytes, expected) in cases {
            let path = dir.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            match (weights_kind(&path), expected) {
                (Ok(kind), Ok(expected)) => assert_eq!(kind, expected, "{name}"),
                (Err(Error::NotWeights { found, .. }), Err(expected)) => {
                    assert_eq!(found, expected, "{name}");
                }
                (other, _) => panic!("{name}: {other:?}"),
            }
        }
        assert!(matches!(
            weights_kind(dir.path()),
            Err(Error::NotWeights {
                found: "a directory",
                ..
            })
        ));
        assert!(matches!(
            weights_kind(&dir.path().join("none")),
            Err(Error::Io { .. })
        ));
    }
}
