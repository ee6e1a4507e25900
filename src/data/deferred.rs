use std::{fs, path::Path};

use super::{
    Answer, Construct, Error, Factory, Found, LocalFiles, Prefab, local, resource::WEIGHTS,
    sniff::weights_kind,
};

/// A model that was found but not touched: its files by key, and what it takes to build it.
pub struct DeferredModel<'f, M, E> {
    factory: &'f Factory<M, E>,
    found: Found,
    overlaid: Vec<String>,
}

impl<'f, M, E> DeferredModel<'f, M, E> {
    pub(super) fn new(factory: &'f Factory<M, E>, found: Found) -> Self {
        Self {
            factory,
            found,
            overlaid: Vec::new(),
        }
    }

    /// What each provider said, in order; empty for a path.
    pub fn explain(&self) -> &[Answer] {
        &self.found.answers
    }

    /// Uses the file at `path` as the resource `key`, in place of the row's if it has one.
    ///
    /// # Errors
    /// - [`Error::UnknownKey`] when no constructor of the kit reads such a key.
    /// - [`Error::NoSuchPath`] when there is no file, [`Error::NotWeights`] when it is to be weights and is not.
    pub fn overlay(mut self, key: &str, path: &Path) -> Result<Self, Error> {
        let mut kinds = self.factory.kinds(key);
        let kind = match (kinds.next(), kinds.next()) {
            (None, _) => return Err(unknown_key(&self.found.model, key, self.factory.keys())),
            _ if !fs::exists(path).unwrap_or(true) => {
                return Err(Error::NoSuchPath {
                    path: path.to_owned(),
                });
            }
            (Some(kind), None) if key != WEIGHTS => kind,
            _ => weights_kind(path)?,
        };
        self.found
            .resources
            .overlay(local::given(key, kind, path.to_owned())?);
        self.overlaid.push(key.to_owned());
        Ok(self)
    }

    /// Completes and checks the map, before any byte moves: the row's prefab exists, a constructor fits the kinds and
    /// has all it requires, every overlay is used, and every path stays where it belongs.
    ///
    /// # Errors
    /// [`Error::UnknownPrefab`], [`Error::Unsupported`], [`Error::Incomplete`], [`Error::UnknownKey`], or
    /// [`Error::Manifest`] for a row that a provider did not validate.
    pub fn plan(mut self) -> Result<Plan<'f, M, E>, Error> {
        let found = &mut self.found;
        let promised = found
            .row
            .as_ref()
            .and_then(|row| Some((row, row.prefab.as_ref()?)));
        let prefab =
            match promised {
                None => None,
                Some((row, name)) => Some(self.factory.prefab(name).cloned().ok_or_else(|| {
                    Error::UnknownPrefab {
                        row: row.name.clone(),
                        prefab: name.clone(),
                    }
                })?),
            };
        let construct = self.factory.choose(&found.model, &found.resources)?;
        let read = |key: &str| construct.needs().iter().any(|need| need.key == key);
        if let Some(key) = self.overlaid.iter().find(|key| !read(key)) {
            let known = construct
                .needs()
                .iter()
                .map(|need| need.key.to_owned())
                .collect();
            return Err(unknown_key(&found.model, key, known));
        }
        found.resources.retain(|resource| read(&resource.key));
        for resource in &found.resources {
            let table = found.provider.as_deref().unwrap_or("path");
            resource.validate().map_err(|defect| Error::Manifest {
                table: table.to_owned(),
                line: 1,
                defect,
            })?;
        }
        Ok(Plan {
            found: self.found,
            prefab,
            overlaid: self.overlaid,
            construct,
        })
    }
}

fn unknown_key(model: &str, key: &str, known: Vec<String>) -> Error {
    Error::UnknownKey {
        model: model.to_owned(),
        key: key.to_owned(),
        known,
    }
}

/// A complete and checked model: which files it is made of and how it is built.
pub struct Plan<'f, M, E> {
    /// The model; its resources are the files that the constructor reads, overlays applied.
    pub found: Found,
    /// The geometry that the row promises; `None` for a path.
    pub prefab: Option<Prefab>,
    /// The keys that overlays replaced or added.
    pub overlaid: Vec<String>,
    construct: &'f Construct<M, E>,
}

impl<M, E> Plan<'_, M, E> {
    /// Builds the model from the files that were brought local for this plan.
    ///
    /// # Errors
    /// The kit's.
    pub fn construct(&self, files: &LocalFiles) -> Result<M, E> {
        self.construct.construct(files)
    }
}
