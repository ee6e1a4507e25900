//! A checkpoint whose tensors go by other names.

use std::collections::BTreeMap;

use super::{Checkpoint, Error, Tensor, TensorInfo};

/// The tensors of a checkpoint under the names that a rule gives them.
pub struct Renamed<'c> {
    checkpoint: &'c dyn Checkpoint,
    /// The names in the file by those they go by here.
    stored: BTreeMap<String, String>,
}

impl<'c> Renamed<'c> {
    /// `checkpoint` with each tensor called what `rename` says; one that it has no name for keeps its own.
    pub fn new(checkpoint: &'c dyn Checkpoint, rename: impl Fn(&str) -> Option<String>) -> Self {
        let names = checkpoint.names();
        let stored = names
            .iter()
            .map(|&name| {
                (
                    rename(name).unwrap_or_else(|| name.to_owned()),
                    name.to_owned(),
                )
            })
            .collect();
        Self { checkpoint, stored }
    }

    fn stored<'a>(&'a self, name: &'a str) -> &'a str {
        self.stored.get(name).map_or(name, String::as_str)
    }
}

impl Checkpoint for Renamed<'_> {
    fn format(&self) -> &'static str {
        self.checkpoint.format()
    }

    fn names(&self) -> Vec<&str> {
        self.stored.keys().map(String::as_str).collect()
    }

    fn info(&self, name: &str) -> Option<TensorInfo> {
        self.checkpoint.info(self.stored(name))
    }

    fn tensor(&self, name: &str) -> Result<Tensor, Error> {
        self.checkpoint.tensor(self.stored(name))
    }

    fn metadata(&self) -> &BTreeMap<String, String> {
        self.checkpoint.metadata()
    }
}
