use super::{
    Catalog, DeferredModel, Error, Kind, LocalFiles, Prefab, ResourceMap, Spec, resource::WEIGHTS,
};

/// A file that a constructor reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Need {
    /// The resource's key.
    pub key: &'static str,
    /// The kind that the constructor can read under this key.
    pub kind: Kind,
    /// Whether it cannot do without.
    pub required: bool,
}

impl Need {
    /// A file that must be there.
    pub const fn required(key: &'static str, kind: Kind) -> Self {
        Self {
            key,
            kind,
            required: true,
        }
    }

    /// A file that is used when it is there.
    pub const fn optional(key: &'static str, kind: Kind) -> Self {
        Self {
            key,
            kind,
            required: false,
        }
    }
}

type Build<M, E> = dyn Fn(&LocalFiles) -> Result<M, E> + Send + Sync;

/// How a kit builds its model `M` from local files, or fails with its own `E`.
pub struct Construct<M, E> {
    needs: Vec<Need>,
    build: Box<Build<M, E>>,
}

impl<M, E> Construct<M, E> {
    /// The files it reads.
    pub fn needs(&self) -> &[Need] {
        &self.needs
    }

    /// Builds the model.
    ///
    /// # Errors
    /// The kit's.
    pub fn construct(&self, files: &LocalFiles) -> Result<M, E> {
        (self.build)(files)
    }

    /// Whether all it requires is in `resources`, in the kinds that it reads.
    fn is_for(&self, resources: &ResourceMap) -> bool {
        self.missing(resources).next().is_none()
    }

    fn missing(&self, resources: &ResourceMap) -> impl Iterator<Item = &Need> {
        let has = |need: &Need| {
            resources
                .get(need.key)
                .is_some_and(|resource| resource.kind == need.kind)
        };
        self.needs
            .iter()
            .filter(move |need| need.required && !has(need))
    }
}

/// One kit's catalog and constructors, each in order.
pub struct Factory<M, E> {
    catalog: Catalog,
    constructs: Vec<Construct<M, E>>,
}

impl<M, E> Factory<M, E> {
    /// A factory of the models of `catalog` that reads nothing yet.
    pub fn new(catalog: Catalog) -> Self {
        Self {
            catalog,
            constructs: Vec::new(),
        }
    }

    /// Adds a constructor after those there are; the first whose required needs a model's files meet is chosen.
    pub fn construct(
        mut self,
        needs: &[Need],
        build: impl Fn(&LocalFiles) -> Result<M, E> + Send + Sync + 'static,
    ) -> Self {
        self.constructs.push(Construct {
            needs: needs.to_vec(),
            build: Box::new(build),
        });
        self
    }

    /// The kit's name.
    pub fn kit(&self) -> &str {
        self.catalog.kit()
    }

    /// All geometries, in the providers' order.
    pub fn prefabs(&self) -> impl Iterator<Item = &Prefab> {
        self.catalog.prefabs()
    }

    /// The geometry called `name`.
    pub fn prefab(&self, name: &str) -> Option<&Prefab> {
        self.catalog.prefab(name)
    }

    /// Finds the model that `spec` names; no file is opened for a name, and no weights are read for a path.
    ///
    /// # Errors
    /// As [`Catalog::find`].
    pub fn resolve(&self, spec: &Spec) -> Result<DeferredModel<'_, M, E>, Error> {
        Ok(DeferredModel::new(self, self.catalog.find(spec)?))
    }

    /// The constructor for `resources`; `model` is what the user typed.
    pub(super) fn choose(
        &self,
        model: &str,
        resources: &ResourceMap,
    ) -> Result<&Construct<M, E>, Error> {
        if let Some(construct) = self
            .constructs
            .iter()
            .find(|construct| construct.is_for(resources))
        {
            return Ok(construct);
        }
        let incomplete = |missing| Error::Incomplete {
            model: model.to_owned(),
            missing,
        };
        let Some(weights) = resources.get(WEIGHTS) else {
            return Err(incomplete(vec![WEIGHTS.to_owned()]));
        };
        let reads = |construct: &&Construct<M, E>| {
            construct
                .needs
                .iter()
                .any(|need| need.key == WEIGHTS && need.kind == weights.kind)
        };
        match self.constructs.iter().find(reads) {
            Some(construct) => Err(incomplete(
                construct
                    .missing(resources)
                    .map(|need| need.key.to_owned())
                    .collect(),
            )),
            None => Err(Error::Unsupported {
                model: model.to_owned(),
                kit: self.kit().to_owned(),
                found: weights.kind,
                readable: self.kinds(WEIGHTS).map(|kind| kind.to_string()).collect(),
            }),
        }
    }

    /// The kinds that some constructor reads under `key`, each once.
    pub(super) fn kinds(&self, key: &str) -> impl Iterator<Item = Kind> {
        let mut kinds: Vec<_> = self
            .needs()
            .filter(|need| need.key == key)
            .map(|need| need.kind)
            .collect();
        kinds.sort_unstable();
        kinds.dedup();
        kinds.into_iter()
    }

    /// The keys that some constructor reads, each once.
    pub(super) fn keys(&self) -> Vec<String> {
        let mut keys: Vec<_> = self.needs().map(|need| need.key.to_owned()).collect();
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    fn needs(&self) -> impl Iterator<Item = &Need> {
        self.constructs
            .iter()
            .flat_map(|construct| &construct.needs)
    }
}

#[cfg(test)]
mod tests;
