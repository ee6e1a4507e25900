//! From a path to a checkpoint.

use std::path::Path;

use bytes::Bytes;

use super::{Checkpoint, Error, Ggml, Gguf, Safetensors, Sharded, mmap};
use crate::data::Signature;

/// Choices where files leave one.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Which dictionary of a torch archive has the tensors, as a path of keys joined by dots; by default the one that
    /// looks like the model's.
    pub state_dict_key: Option<String>,
}

/// Opens the weights at `path`: a safetensors file, a torch archive, a GGUF file, a model of whisper.cpp, or an index of
/// shards.
///
/// What a file is, is decided by its content; its name only chooses the complaint about a file that is nothing known.
/// Files are memory-mapped: leave them unchanged while the checkpoint is in use.
///
/// # Errors
/// `path` is missing, unreadable, or no regular file; it is no format that is read, or is damaged.
pub fn open(path: &Path) -> Result<Box<dyn Checkpoint>, Error> {
    open_with(path, &Options::default())
}

/// Opens the weights at `path` as [`open`](fn@open) does, with `options`.
///
/// # Errors
/// As for [`open`](fn@open), or the file has no such state dict.
pub fn open_with(path: &Path, options: &Options) -> Result<Box<dyn Checkpoint>, Error> {
    if Signature::of(&mmap::map(path)?) == Signature::Json {
        return Ok(Box::new(Sharded::open(path, options)?));
    }
    open_weights(path, options)
}

/// Opens a file that holds tensors itself, as a shard must.
pub(super) fn open_weights(path: &Path, options: &Options) -> Result<Box<dyn Checkpoint>, Error> {
    let bytes = mmap::map(path)?;
    let is_called_safetensors = path
        .extension()
        .is_some_and(|extension| extension.eq_ignore_ascii_case("safetensors"));
    match (Signature::of(&bytes), options.state_dict_key.as_deref()) {
        (Signature::Zip, key) => open_torch(bytes, path, key),
        (found @ (Signature::Safetensors | Signature::Gguf | Signature::Ggml), Some(key)) => {
            Err(Error::NoStateDict {
                path: path.to_path_buf(),
                found,
                key: key.to_owned(),
            })
        }
        (Signature::Safetensors, None) => Ok(Box::new(Safetensors::from_bytes(bytes, path)?)),
        (Signature::Gguf, None) => Ok(Box::new(Gguf::from_bytes(bytes, path)?)),
        (Signature::Ggml, None) => Ok(Box::new(Ggml::from_bytes(bytes, path)?)),
        // Refused too, but with what is wrong with its header.
        (Signature::Unknown, _) if is_called_safetensors => {
            Ok(Box::new(Safetensors::from_bytes(bytes, path)?))
        }
        (found, _) => Err(Error::NotWeights {
            path: path.to_path_buf(),
            found,
        }),
    }
}

#[cfg(feature = "pickle")]
fn open_torch(bytes: Bytes, path: &Path, key: Option<&str>) -> Result<Box<dyn Checkpoint>, Error> {
    Ok(Box::new(match key {
        Some(key) => super::Torch::with_state_dict(bytes, path, key)?,
        None => super::Torch::from_bytes(bytes, path)?,
    }))
}

#[cfg(not(feature = "pickle"))]
fn open_torch(_: Bytes, path: &Path, _: Option<&str>) -> Result<Box<dyn Checkpoint>, Error> {
    Err(Error::NoPickle {
        path: path.to_path_buf(),
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A safetensors file of one-byte tensors.
    fn safetensors(names: &[&str]) -> Vec<u8> {
        let entries: Vec<String> = names
            .iter()
            .enumerate()
            .map(|(i, name)| {
                format!(
                    r#""{name}":{{"dtype":"U8","shape":[1],"data_offsets":[{i},{}]}}"#,
                    i + 1
                )
            })
            .collect();
        let header = format!("{{{}}}", entries.join(","));
        let mut file = (header.len() as u64).to_le_bytes().to_vec();
        file.extend(header.into_bytes());
        file.extend((0..names.len()).map(|i| i as u8));
        file
    }

    /// A directory of the files given.
    fn directory(files: &[(&str, &[u8])]) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        for (name, bytes) in files {
            let path = directory.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
        directory
    }

    /// The error of opening `name` in a directory of `files`, without the directory's own path.
    fn complaint(files: &[(&str, &[u8])], name: &str) -> String {
        let directory = directory(files);
        let Err(error) = open(&directory.path().join(name)) else {
            panic!("{name} is refused");
        };
        error
            .to_string()
            .replace(directory.path().to_str().unwrap(), "DIR")
    }

    #[test]
    fn content_decides_and_not_the_name() {
        let directory = directory(&[("weights.pt", &safetensors(&["x"]))]);
        let opened = open(&directory.path().join("weights.pt")).unwrap();
        assert_eq!(
            (opened.format(), opened.names()),
            ("safetensors", vec!["x"])
        );
    }

    #[test]
    fn files_that_are_no_weights_are_called_what_they_are() {
        let pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n";
        let cases: &[(&[u8], &str)] = &[
            (b"", "an empty file, not model weights; download it again"),
            (
                b"<!DOCTYPE html><title>404</title>",
                "an HTML page, not model weights; download it again",
            ),
            (
                pointer,
                "a Git LFS pointer, not model weights; fetch the real file with `git lfs pull`",
            ),
            (b"hello", "a text file, not model weights"),
            (b"\0\0\0\x01", "a file of unknown kind, not model weights"),
        ];
        for (bytes, expected) in cases {
            let complaint = complaint(&[("model.bin", bytes)], "model.bin");
            assert_eq!(complaint, format!("DIR/model.bin is {expected}"));
        }
        let header = complaint(&[("m.safetensors", b"\0\0\0\x01")], "m.safetensors");
        assert_eq!(
            header,
            "DIR/m.safetensors: 4 bytes are too few for a safetensors header"
        );
        assert_eq!(complaint(&[], "absent"), "cannot read DIR/absent");
    }

    #[test]
    fn torch_files_of_the_old_format_are_refused_with_the_remedy() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/torch_zip/legacy.pt");
        let Err(error) = open(&path) else {
            panic!("the old format is refused");
        };
        let error = error.to_string();
        assert!(error.contains("legacy.pt is a torch file from before version 1.6"));
        assert!(error.ends_with("write it again: torch.save(torch.load(\"old.pt\"), \"new.pt\")"));
    }

    #[test]
    fn a_state_dict_is_not_looked_for_where_there_can_be_none() {
        let directory = directory(&[("m.safetensors", &safetensors(&["x"]))]);
        let options = Options {
            state_dict_key: Some("ema".to_owned()),
        };
        let Err(error) = open_with(&directory.path().join("m.safetensors"), &options) else {
            panic!("there is none");
        };
        assert!(
            error
                .to_string()
                .ends_with("m.safetensors is a safetensors file, which has no state dict `ema`")
        );
    }

    #[test]
    fn torch_archives_are_read_only_by_a_build_that_reads_pickles() {
        let path =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/torch_zip/checkpoint.pt");
        let chosen = Options {
            state_dict_key: Some("model_state_dict".to_owned()),
        };
        for options in [Options::default(), chosen] {
            let opened = open_with(&path, &options);
            if cfg!(feature = "pickle") {
                assert_eq!(opened.unwrap().format(), "torch");
            } else {
                let error = opened.err().unwrap().to_string();
                assert!(error.contains("without its feature `pickle`"), "{error}");
            }
        }
    }

    #[test]
    fn shards_answer_as_one_checkpoint() {
        let index = br#"{"metadata":{"total_size":3},"weight_map":{"a":"s/1.safetensors","b":"2.safetensors","c":"s/1.safetensors"}}"#;
        let directory = directory(&[
            ("my.index.json", index),
            ("s/1.safetensors", &safetensors(&["a", "c"])),
            ("2.safetensors", &safetensors(&["b"])),
            // The index does not name it, so it is not looked at: it could not be read, and has a tensor twice.
            ("stray.safetensors", b"no weights"),
            ("3.safetensors", &safetensors(&["a"])),
        ]);
        let opened = open(&directory.path().join("my.index.json")).unwrap();
        assert_eq!(opened.format(), "sharded safetensors");
        assert_eq!(opened.names(), ["a", "b", "c"]);
        assert_eq!(opened.tensor("c").unwrap().data, [1][..]);
        assert_eq!(opened.info("b").unwrap().shape, [1]);
        assert!(opened.info("d").is_none() && opened.tensor("d").is_err());
    }

    #[test]
    fn shards_that_do_not_keep_to_the_index_are_refused() {
        let index = |map: &str| format!(r#"{{"weight_map":{{{map}}}}}"#).into_bytes();
        let (x, y) = (safetensors(&["x"]), safetensors(&["y"]));
        let xy = safetensors(&["x", "y"]);
        let complain = |map: &str, files: &[(&str, &[u8])]| {
            let index = index(map);
            let files = [&[("i.json", &index[..])], files].concat();
            complaint(&files, "i.json")
        };
        assert_eq!(
            complain(r#""x":"1","y":"2""#, &[("1", &x)]),
            "DIR/i.json: shard `2` is missing"
        );
        assert_eq!(
            complain(r#""w":"3","x":"1","y":"2","z":"3""#, &[("1", &x)]),
            "DIR/i.json: 2 shards, `2`, `3`, are missing"
        );
        let many: Vec<String> = (10..30).map(|i| format!(r#""{i}":"{i}""#)).collect();
        assert_eq!(
            complain(&many.join(","), &[("12", &x)]),
            "DIR/i.json: 19 shards, `10`, `11`, `13`, `14`, `15`, `16`, `17`, `18`, 11 more, are missing"
        );
        assert_eq!(
            complain(r#""x":"1","z":"1""#, &[("1", &x)]),
            "DIR/i.json: tensor `z` is not in `1`, where the index puts it"
        );
        assert_eq!(
            complain(r#""x":"2","y":"1""#, &[("1", &x), ("2", &y)]),
            "DIR/i.json: tensor `x` is not in `2`, where the index puts it"
        );
        assert_eq!(
            complain(r#""x":"1","y":"2""#, &[("1", &xy), ("2", &y)]),
            "DIR/i.json: tensor `y` is both in `1` and in `2`"
        );
        for unsafe_path in ["/etc/passwd", "../1", "a/../../1", "", "."] {
            assert_eq!(
                complain(&format!(r#""x":"{unsafe_path}""#), &[("1", &x)]),
                format!(
                    "DIR/i.json: shard `{unsafe_path}` is not a path inside the model's directory"
                )
            );
        }
        assert_eq!(
            complain(r#""x":"i.json""#, &[]),
            "DIR/i.json is a JSON document, not model weights"
        );
        assert_eq!(
            complaint(&[("config.json", b"{\"model_type\": 1}")], "config.json"),
            "DIR/config.json is not an index of shards"
        );
    }
}
