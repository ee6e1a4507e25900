use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use super::{
    DerivedStore,
    file::Table,
    file_name,
    identity::{Origin, WeightsIdentity},
    map::map,
};
use crate::data::{
    ContentId, Error, disk,
    inventory::{Stat, files_under},
};

/// A file of the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DerivedFile {
    /// What the weights are called that it was derived from: [`WeightsIdentity::name`].
    pub weights: String,
    /// How it was derived.
    pub recipe: String,
    /// Where it is.
    pub path: PathBuf,
    /// Length in bytes, and when it was last read and written.
    pub stat: Stat,
    /// The files of the weights; `None` when this file is damaged, of another version, or was never finished.
    origins: Option<Vec<Origin>>,
}

impl DerivedStore {
    /// The files that it holds, in order; without those that somebody is writing.
    ///
    /// # Errors
    /// [`Error::Io`] when a directory that exists cannot be read.
    pub fn contents(&self) -> Result<Vec<DerivedFile>, Error> {
        let Some(root) = self.root() else {
            return Ok(Vec::new());
        };
        let paths = files_under(root)?.into_iter();
        Ok(paths
            .filter_map(|path| DerivedFile::at(path, root))
            .collect())
    }
}

impl DerivedFile {
    /// The file at `<root>/<weights>/<recipe>/<name>`; whatever else lies there is not ours to judge.
    fn at(path: PathBuf, root: &Path) -> Option<Self> {
        let relative = path.strip_prefix(root).ok()?;
        let parts: Option<Vec<_>> = relative.iter().map(|part| part.to_str()).collect();
        let [weights, recipe, name] = parts?.try_into().ok()?;
        let is_ours = name.starts_with("blobs.");
        if !is_ours && !disk::is_abandoned(&path) {
            return None;
        }
        let (weights, recipe) = (weights.to_owned(), recipe.to_owned());
        let is_current = name == file_name();
        let table = is_current.then(|| Table::read(&map(&path)?)).flatten();
        let table = table.filter(|table| {
            table.recipe == recipe && WeightsIdentity::name_of(&table.weights) == weights
        });
        Some(Self {
            stat: Stat::of(&path)?,
            origins: table.map(|table| table.weights),
            weights,
            recipe,
            path,
        })
    }

    /// Whether it can be used.
    pub fn is_whole(&self) -> bool {
        self.origins.is_some()
    }

    /// The contents that it was derived from, where that is what its weights are known by.
    pub fn contents(&self) -> impl Iterator<Item = &ContentId> {
        self.origins.iter().flatten().filter_map(Origin::content)
    }

    /// Whether it can be used and its weights are still there; `contents` are those that there are of such as are known by
    /// their content.
    pub fn is_of_use(&self, contents: &BTreeSet<ContentId>) -> bool {
        let origins = self.origins.as_ref();
        origins.is_some_and(|all| all.iter().all(|origin| origin.is_there(contents)))
    }
}
