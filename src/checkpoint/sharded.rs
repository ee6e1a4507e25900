//! A checkpoint in several files, with an index that says which tensor is where.

use std::collections::{BTreeMap, HashMap};
use std::path::{Component, Path, PathBuf};

use serde::Deserialize;

use super::error::printable;
use super::open::open_weights;
use super::{Checkpoint, Error, Options, Tensor, TensorInfo, mmap};

/// The shards of a `model.safetensors.index.json`, answering as one checkpoint.
pub struct Sharded {
    shards: Vec<Box<dyn Checkpoint>>,
    /// Name to place in `shards`.
    tensors: BTreeMap<String, usize>,
    metadata: BTreeMap<String, String>,
}

/// The part of an index that places tensors; its `metadata` only repeats sizes.
#[derive(Deserialize)]
struct Index {
    weight_map: BTreeMap<String, String>,
}

impl Sharded {
    /// Reads the index at `path` and opens the shards that it names, which lie beside it or below, with `options`.
    ///
    /// Files that the index does not name are not looked at.
    ///
    /// # Errors
    /// The index is not one; it names a shard outside its directory, one that is missing or cannot be read, or a
    /// tensor that its shard lacks; two shards hold a tensor of the same name.
    pub fn open(path: &Path, options: &Options) -> Result<Self, Error> {
        let index: Index =
            serde_json::from_slice(&mmap::map(path)?).map_err(|source| Error::Index {
                path: path.to_path_buf(),
                source,
            })?;
        let directory = path.parent().unwrap_or(Path::new(""));

        // In name order, so that the first complaint does not depend on a hash seed.
        let mut files: Vec<&str> = index.weight_map.values().map(String::as_str).collect();
        files.sort_unstable();
        files.dedup();

        let paths = files.iter().map(|file| shard_path(path, directory, file));
        let paths: Vec<PathBuf> = paths.collect::<Result<_, _>>()?;
        let is_missing = |(path, _): &(&PathBuf, &&str)| !path.exists();
        let missing = paths.iter().zip(&files).filter(is_missing);
        let missing: Vec<String> = missing.map(|(_, &file)| file.to_owned()).collect();
        if !missing.is_empty() {
            return Err(Error::MissingShards {
                index: path.to_path_buf(),
                shards: missing,
            });
        }

        let mut shards = Vec::with_capacity(files.len());
        let mut metadata = BTreeMap::new();
        let mut tensors = BTreeMap::new();
        for (place, file) in files.iter().enumerate() {
            let shard = open_weights(&paths[place], options)?;
            for name in shard.names() {
                if let Some(other) = tensors.insert(name.to_owned(), place) {
                    return Err(Error::RepeatedTensor {
                        index: path.to_path_buf(),
                        tensor: printable(name),
                        first: printable(files[other]),
                        second: printable(file),
                    });
                }
            }
            metadata.extend(shard.metadata().clone());
            shards.push(shard);
        }

        let places: HashMap<&str, usize> = files.iter().copied().zip(0..).collect();
        for (tensor, file) in &index.weight_map {
            if tensors.get(tensor) != places.get(file.as_str()) {
                return Err(Error::AbsentTensor {
                    index: path.to_path_buf(),
                    tensor: printable(tensor),
                    shard: printable(file),
                });
            }
        }
        Ok(Self {
            shards,
            tensors,
            metadata,
        })
    }
}

/// Where a shard lies, if that is inside the index's directory.
fn shard_path(index: &Path, directory: &Path, shard: &str) -> Result<PathBuf, Error> {
    let mut components = Path::new(shard).components();
    let is_inside =
        !shard.is_empty() && components.all(|part| matches!(part, Component::Normal(_)));
    if !is_inside {
        return Err(Error::UnsafeShard {
            index: index.to_path_buf(),
            shard: printable(shard),
        });
    }
    Ok(directory.join(shard))
}

impl Checkpoint for Sharded {
    fn format(&self) -> &'static str {
        match self.shards.first().map(|shard| shard.format()) {
            Some("torch") => "sharded torch",
            _ => "sharded safetensors",
        }
    }

    fn names(&self) -> Vec<&str> {
        self.tensors.keys().map(String::as_str).collect()
    }

    fn info(&self, name: &str) -> Option<TensorInfo> {
        self.shards[*self.tensors.get(name)?].info(name)
    }

    fn tensor(&self, name: &str) -> Result<Tensor, Error> {
        let place = self
            .tensors
            .get(name)
            .ok_or_else(|| Error::MissingTensor { name: name.into() })?;
        self.shards[*place].tensor(name)
    }

    fn metadata(&self) -> &BTreeMap<String, String> {
        &self.metadata
    }
}
