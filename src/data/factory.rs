use super::{
    Answer, DeferredModel, Error, Kind, LocalFiles, Outcome, Prefab, Provider, Resource,
    ResourceMap, Row, Spec, local, near::near, resource::WEIGHTS,
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

/// One kit's providers and constructors, each in order.
pub struct Factory<M, E> {
    kit: String,
    providers: Vec<Box<dyn Provider>>,
    constructs: Vec<Construct<M, E>>,
}

impl<M, E> Factory<M, E> {
    /// An empty factory of `kit`, which names its directory in the cache.
    pub fn new(kit: &str) -> Self {
        Self {
            kit: kit.to_owned(),
            providers: Vec::new(),
            constructs: Vec::new(),
        }
    }

    /// Adds a provider after those there are; a bare name is offered to them in this order.
    ///
    /// # Errors
    /// [`Error::Duplicate`] when its name is taken, or when a prefab of it differs from one of the same name.
    pub fn provider(mut self, provider: impl Provider + 'static) -> Result<Self, Error> {
        let duplicate = |what, name: &str| Error::Duplicate {
            what,
            name: name.to_owned(),
        };
        if self
            .providers
            .iter()
            .any(|known| known.name() == provider.name())
        {
            return Err(duplicate("provider", provider.name()));
        }
        for prefab in provider.prefabs() {
            if self
                .prefab(&prefab.name)
                .is_some_and(|known| known != prefab)
            {
                return Err(duplicate("prefab", &prefab.name));
            }
        }
        self.providers.push(Box::new(provider));
        Ok(self)
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
        &self.kit
    }

    /// The providers in order.
    pub fn providers(&self) -> impl Iterator<Item = &dyn Provider> {
        self.providers.iter().map(|provider| &**provider)
    }

    /// All geometries, in the providers' order.
    pub fn prefabs(&self) -> impl Iterator<Item = &Prefab> {
        let all = || self.providers().flat_map(Provider::prefabs);
        all()
            .enumerate()
            .filter(move |(i, prefab)| !all().take(*i).any(|known| known.name == prefab.name))
            .map(|(_, p)| p)
    }

    /// The geometry called `name`.
    pub fn prefab(&self, name: &str) -> Option<&Prefab> {
        self.providers()
            .flat_map(Provider::prefabs)
            .find(|prefab| prefab.name == name)
    }

    /// Finds the model that `spec` names; no file is opened for a name, and no weights are read for a path.
    ///
    /// # Errors
    /// - [`Error::NoProvider`] and [`Error::NotFound`] for names, and whatever a provider fails with.
    /// - For paths, what they lack to be a model: [`Error::MissingWeights`], [`Error::AmbiguousWeights`],
    ///   [`Error::NotWeights`], [`Error::Io`].
    pub fn resolve(&self, spec: &Spec) -> Result<DeferredModel<'_, M, E>, Error> {
        match spec {
            Spec::Path(path) => {
                let resources =
                    local::resources(path).map_err(|error| self.name_the_namesake(error, spec))?;
                Ok(DeferredModel::given(self, spec, resources))
            }
            Spec::Bare(name) => self.resolve_name(spec, name, None),
            Spec::Provider { provider, .. }
                if !self.providers().any(|known| known.name() == provider) =>
            {
                let known = self
                    .providers()
                    .map(|known| known.name().to_owned())
                    .collect();
                Err(Error::NoProvider {
                    provider: provider.clone(),
                    known,
                })
            }
            Spec::Provider {
                provider,
                reference,
            } => self.resolve_name(spec, reference, Some(provider)),
        }
    }

    /// Asks the provider `only`, or each that answers bare names; those after the first that has the row are asked too,
    /// for the explanation.
    fn resolve_name(
        &self,
        spec: &Spec,
        reference: &str,
        only: Option<&str>,
    ) -> Result<DeferredModel<'_, M, E>, Error> {
        let mut taken: Option<(&dyn Provider, Row)> = None;
        let mut answers = Vec::new();
        for provider in self.providers() {
            let outcome = if !concerns(provider, only) {
                Outcome::NotAsked
            } else {
                match (provider.get(reference), &taken) {
                    (Ok(None), _) => Outcome::NotHere,
                    (Ok(Some(row)), Some(_)) => Outcome::AlsoHere(row.name),
                    (Ok(Some(row)), None) => {
                        let name = row.name.clone();
                        taken = Some((provider, row));
                        Outcome::Taken(name)
                    }
                    (Err(error), Some(_)) => Outcome::Failed(error.to_string()),
                    (Err(error), None) => return Err(error),
                }
            };
            answers.push(Answer {
                provider: provider.name().to_owned(),
                outcome,
            });
        }
        let Some((provider, row)) = taken else {
            return Err(self.not_found(reference, only));
        };
        let instead = self.linked_namesakes(provider, reference, &row);
        Ok(DeferredModel::of_row(
            self,
            spec,
            provider.name(),
            row,
            answers,
            instead,
        ))
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
                kit: self.kit.clone(),
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

    /// Specs of rows in other providers that are the same model by name and need no file.
    fn linked_namesakes(&self, taken: &dyn Provider, reference: &str, row: &Row) -> Vec<String> {
        let mut specs = Vec::new();
        for provider in self.tables().filter(|other| other.name() != taken.name()) {
            let is_linked = |row: Row| row.resources.iter().all(Resource::is_linked);
            // The name that was typed is the one to show, if it is known there.
            let mut names = std::iter::once(reference).chain(row.names());
            let name = names.find(|name| provider.get(name).ok().flatten().is_some_and(is_linked));
            specs.extend(name.map(|name| format!("{}:{name}", provider.name())));
        }
        specs
    }

    /// Adds to a path's error the model that goes by the same name, if there is one.
    fn name_the_namesake(&self, mut error: Error, spec: &Spec) -> Error {
        if let Error::MissingWeights { same_name, .. } = &mut error {
            let name = spec.to_string();
            *same_name = self
                .tables()
                .find(|provider| matches!(provider.get(&name), Ok(Some(_))))
                .map(|provider| format!("{}:{name}", provider.name()));
        }
        error
    }

    /// The providers that may be asked what the user did not ask them: those that answer bare names.
    fn tables(&self) -> impl Iterator<Item = &dyn Provider> {
        self.providers()
            .filter(|provider| provider.answers_bare_names())
    }

    fn not_found(&self, reference: &str, only: Option<&str>) -> Error {
        let asked: Vec<_> = self
            .providers()
            .filter(|provider| concerns(*provider, only))
            .collect();
        let spec = |name: &str| {
            only.map_or_else(|| name.to_owned(), |provider| format!("{provider}:{name}"))
        };
        // The same name under another prefix is nearer than any other name.
        let elsewhere = self
            .tables()
            .filter(|provider| matches!(provider.get(reference), Ok(Some(_))))
            .map(|provider| format!("{}:{reference}", provider.name()));
        let names = asked
            .iter()
            .flat_map(|provider| provider.rows())
            .flat_map(Row::names);
        let near = elsewhere
            .chain(near(reference, names).into_iter().map(spec))
            .collect();
        let mut known: Vec<_> = asked
            .iter()
            .flat_map(|provider| provider.rows())
            .map(|row| spec(row.short_name()))
            .collect();
        let mut seen = std::collections::HashSet::new();
        known.retain(|name| seen.insert(name.clone()));
        Error::NotFound {
            reference: reference.to_owned(),
            bare: only.is_none(),
            asked: asked
                .iter()
                .map(|provider| provider.name().to_owned())
                .collect(),
            near,
            known,
        }
    }
}

/// Whether a name is for `provider`: it is the `only` one, or there is none and it answers bare names.
fn concerns(provider: &dyn Provider, only: Option<&str>) -> bool {
    only.map_or_else(
        || provider.answers_bare_names(),
        |only| provider.name() == only,
    )
}

#[cfg(test)]
mod tests;
