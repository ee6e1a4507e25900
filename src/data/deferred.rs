use std::{fs, path::Path};

use super::{
    Answer, Construct, Error, Factory, LocalFiles, Prefab, ResourceMap, Row, Spec, local,
    resource::WEIGHTS, sniff::weights_kind,
};

/// A model that was found but not touched: its files by key, and what it takes to build it.
pub struct DeferredModel<'f, M, E> {
    factory: &'f Factory<M, E>,
    model: String,
    provider: Option<String>,
    row: Option<Row>,
    resources: ResourceMap,
    overlaid: Vec<String>,
    answers: Vec<Answer>,
    instead: Vec<String>,
}

impl<'f, M, E> DeferredModel<'f, M, E> {
    pub(super) fn given(factory: &'f Factory<M, E>, spec: &Spec, resources: ResourceMap) -> Self {
        Self {
            factory,
            model: spec.to_string(),
            provider: None,
            row: None,
            resources,
            overlaid: Vec::new(),
            answers: Vec::new(),
            instead: Vec::new(),
        }
    }

    pub(super) fn of_row(
        factory: &'f Factory<M, E>,
        spec: &Spec,
        provider: &str,
        row: Row,
        answers: Vec<Answer>,
        instead: Vec<String>,
    ) -> Self {
        Self {
            factory,
            model: spec.to_string(),
            provider: Some(provider.to_owned()),
            resources: row.resources.clone(),
            row: Some(row),
            overlaid: Vec::new(),
            answers,
            instead,
        }
    }

    /// What each provider said, in order; empty for a path.
    pub fn explain(&self) -> &[Answer] {
        &self.answers
    }

    /// Uses the file at `path` as the resource `key`, in place of the row's if it has one.
    ///
    /// # Errors
    /// - [`Error::UnknownKey`] when no constructor of the kit reads such a key.
    /// - [`Error::NoSuchPath`] when there is no file, [`Error::NotWeights`] when it is to be weights and is not.
    pub fn overlay(mut self, key: &str, path: &Path) -> Result<Self, Error> {
        let mut kinds = self.factory.kinds(key);
        let kind = match (kinds.next(), kinds.next()) {
            (None, _) => return Err(self.unknown_key(key, self.factory.keys())),
            _ if !fs::exists(path).unwrap_or(true) => {
                return Err(Error::NoSuchPath {
                    path: path.to_owned(),
                });
            }
            (Some(kind), None) if key != WEIGHTS => kind,
            _ => weights_kind(path)?,
        };
        self.resources
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
        let prefab = match &self.row {
            None => None,
            Some(row) => Some(self.factory.prefab(&row.prefab).cloned().ok_or_else(|| {
                Error::UnknownPrefab {
                    row: row.name.clone(),
                    prefab: row.prefab.clone(),
                }
            })?),
        };
        let construct = self.factory.choose(&self.model, &self.resources)?;
        let read = |key: &str| construct.needs().iter().any(|need| need.key == key);
        if let Some(key) = self.overlaid.iter().find(|key| !read(key)) {
            let known = construct
                .needs()
                .iter()
                .map(|need| need.key.to_owned())
                .collect();
            return Err(self.unknown_key(key, known));
        }
        self.resources.retain(|resource| read(&resource.key));
        for resource in &self.resources {
            let table = self.provider.as_deref().unwrap_or("path");
            resource.validate().map_err(|defect| Error::Manifest {
                table: table.to_owned(),
                line: 1,
                defect,
            })?;
        }
        Ok(Plan {
            model: self.model,
            kit: self.factory.kit().to_owned(),
            provider: self.provider,
            row: self.row,
            prefab,
            resources: self.resources,
            overlaid: self.overlaid,
            answers: self.answers,
            instead: self.instead,
            construct,
        })
    }

    fn unknown_key(&self, key: &str, known: Vec<String>) -> Error {
        Error::UnknownKey {
            model: self.model.clone(),
            key: key.to_owned(),
            known,
        }
    }
}

/// A complete and checked model: which files it is made of and how it is built.
pub struct Plan<'f, M, E> {
    /// The spec, as typed.
    pub model: String,
    /// The kit, which names its directory in the cache.
    pub kit: String,
    /// The provider whose row it is; `None` for a path.
    pub provider: Option<String>,
    /// The row, as the provider has it; `None` for a path.
    pub row: Option<Row>,
    /// The geometry that the row promises; `None` for a path.
    pub prefab: Option<Prefab>,
    /// The files that the constructor reads, overlays applied.
    pub resources: ResourceMap,
    /// The keys that overlays replaced or added.
    pub overlaid: Vec<String>,
    /// What each provider said, in order; empty for a path.
    pub answers: Vec<Answer>,
    /// Specs of the same model that need no file.
    pub instead: Vec<String>,
    construct: &'f Construct<M, E>,
}

impl<M, E> Plan<'_, M, E> {
    /// Builds the model from the files that the cache brought local for this plan.
    ///
    /// # Errors
    /// The kit's.
    pub fn construct(&self, files: &LocalFiles) -> Result<M, E> {
        self.construct.construct(files)
    }
}
