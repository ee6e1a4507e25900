use super::{
    Answer, Error, Layout, Outcome, Prefab, Provider, Resource, ResourceMap, Row, Spec,
    hub::Commit, local, near::near, resource::WEIGHTS,
};

/// One kit's providers, in order: what its models are called and which files they are made of.
pub struct Catalog {
    kit: String,
    providers: Vec<Box<dyn Provider>>,
}

/// What a spec led to: a model's files, none of them touched.
#[derive(Clone, Debug)]
pub struct Found {
    /// The spec, as typed.
    pub model: String,
    /// The kit whose providers were asked; it names the model's directory in the cache.
    pub kit: String,
    /// The provider whose row it is; `None` for a path.
    pub provider: Option<String>,
    /// The row, as the provider has it; `None` for a path.
    pub row: Option<Row>,
    /// Its files by key, those of the row unless overlaid.
    pub resources: ResourceMap,
    /// How its files are laid out once they are fetched.
    pub layout: Layout,
    /// What each provider said, in order; empty for a path.
    pub answers: Vec<Answer>,
    /// Specs of the same model that need no file.
    pub instead: Vec<String>,
}

impl Found {
    /// The commit that its weights are of, where they are a hub repository's.
    pub fn commit(&self) -> Option<Commit> {
        self.resources.get(WEIGHTS)?.hub()?.revision.commit()
    }
}

impl Catalog {
    /// An empty catalog of `kit`.
    pub fn new(kit: &str) -> Self {
        Self {
            kit: kit.to_owned(),
            providers: Vec::new(),
        }
    }

    /// Adds a provider after those there are; a bare name is offered to them in this order.
    ///
    /// # Errors
    /// [`Error::Duplicate`] when its name is taken, or when a prefab of it differs from one of the same name.
    pub fn provider(mut self, provider: impl Provider + 'static) -> Result<Self, Error> {
        self.check(&provider)?;
        self.providers.push(Box::new(provider));
        Ok(self)
    }

    /// Adds a provider before those there are: its rows win over theirs.
    ///
    /// # Errors
    /// As [`Catalog::provider`].
    pub fn prefer(mut self, provider: impl Provider + 'static) -> Result<Self, Error> {
        self.check(&provider)?;
        self.providers.insert(0, Box::new(provider));
        Ok(self)
    }

    fn check(&self, provider: &impl Provider) -> Result<(), Error> {
        let duplicate = |what, name: &str| Error::Duplicate {
            what,
            name: name.to_owned(),
        };
        if self
            .providers()
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
        Ok(())
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
            .map(|(_, prefab)| prefab)
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
    pub fn find(&self, spec: &Spec) -> Result<Found, Error> {
        match spec {
            Spec::Path(path) => {
                let resources =
                    local::resources(path).map_err(|error| self.name_the_namesake(error, spec))?;
                Ok(Found {
                    model: spec.to_string(),
                    kit: self.kit.clone(),
                    provider: None,
                    row: None,
                    resources,
                    layout: Layout::Pinned,
                    answers: Vec::new(),
                    instead: Vec::new(),
                })
            }
            Spec::Bare(name) => self.find_name(spec, name, None),
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
            } => self.find_name(spec, reference, Some(provider)),
        }
    }

    /// Asks the provider `only`, or each that answers bare names; those after the first that has the row are asked too,
    /// for the explanation.
    fn find_name(&self, spec: &Spec, reference: &str, only: Option<&str>) -> Result<Found, Error> {
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
        Ok(Found {
            model: spec.to_string(),
            kit: self.kit.clone(),
            provider: Some(provider.name().to_owned()),
            resources: row.resources.clone(),
            row: Some(row),
            layout: provider.layout(),
            answers,
            instead,
        })
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
        // A row without weights is no model, but a vocabulary, or another program's form of one.
        let mut known: Vec<_> = asked
            .iter()
            .flat_map(|provider| provider.rows())
            .filter(|row| row.resources.get(WEIGHTS).is_some())
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
