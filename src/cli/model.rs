//! What the commands share of finding a model.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Args, ValueHint};

use super::error::Error;
use super::out::Out;
use crate::checkpoint;
use crate::data::hub::{Choice, HubProvider};
use crate::data::net::{Network, Settings, Token, address, is_on};
use crate::data::{
    self, Catalog, DeferredModel, DerivedStore, Factory, Found, LocalFile, LocalFiles, Manifest,
    Options, Plan, Roots, Spec, Store,
};
use crate::kits::{
    self,
    whisper::{self, Dims, Loading, Package},
};
use crate::nn::UnknownTensors;

/// Where models are looked for and had from: flags of every command.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Where models are")]
pub(crate) struct Sources {
    /// Keep to DIR: find models there, put them there, and look nowhere else [env: PRETRAINED_CACHE_DIR,
    /// which moves this program's own cache only]
    #[arg(long, global = true, value_name = "DIR", value_hint = ValueHint::DirPath)]
    cache_dir: Option<PathBuf>,

    /// The hub's cache, shared with Python's libraries [env: HF_HUB_CACHE, HF_HOME]
    #[arg(long, global = true, value_name = "DIR", value_hint = ValueHint::DirPath)]
    hf_cache: Option<PathBuf>,

    /// Where the openai-whisper package keeps its downloads [default: ~/.cache/whisper]
    #[arg(long, global = true, value_name = "DIR", value_hint = ValueHint::DirPath)]
    upstream_cache_dir: Option<PathBuf>,

    /// A table of models of your own, whose names win; may be repeated [env: PRETRAINED_MANIFEST]
    #[arg(long, global = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    manifest: Vec<PathBuf>,

    /// Use what is on this machine, and ask nothing of any network [env: PRETRAINED_OFFLINE, HF_HUB_OFFLINE]
    #[arg(long, global = true)]
    offline: bool,

    /// The hub's address [env: HF_ENDPOINT]
    #[arg(long, global = true, value_name = "URL", value_hint = ValueHint::Url)]
    origin: Option<String>,

    /// Where a directory of this program's cache is served, asked first for each pinned file; may be repeated
    /// [env: PRETRAINED_MIRROR]
    #[arg(long, global = true, value_name = "URL", value_hint = ValueHint::Url)]
    mirror: Vec<String>,

    /// A file that holds the token for the hub [env: HF_TOKEN, HF_TOKEN_PATH]
    #[arg(long, global = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    token_file: Option<PathBuf>,

    /// Keep nothing that is worked out from weights, such as weights laid out for this machine, and read nothing that was
    /// kept [env: PRETRAINED_NO_DERIVED]
    #[arg(long, global = true)]
    no_derived: bool,

    /// Hash each file before it is used, and stop if it is not the published one; implies --no-derived
    #[arg(long, global = true)]
    verify: bool,
}

/// Files of the user's in place of the model's own: flags of the commands that run one.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Model files")]
pub(crate) struct Overlays {
    /// Use the file PATH as the model's KEY, one of those that `inspect` lists; may be repeated
    #[arg(long, value_name = "KEY=PATH", value_parser = key_and_path)]
    set: Vec<(String, PathBuf)>,

    /// Short for `--set vocabulary=PATH`, a file in tiktoken form
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    vocab: Option<PathBuf>,

    /// Short for `--set tokenizer=PATH`
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    tokenizer: Option<PathBuf>,

    /// Short for `--set config=PATH`
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    config: Option<PathBuf>,

    /// Where the tensors are in a torch archive, as `model.state_dict`, when that is not found by itself
    #[arg(long, value_name = "KEY")]
    state_dict_key: Option<String>,

    /// Pass over tensors that have no place in the model, which otherwise are an error
    #[arg(long)]
    lenient: bool,

    /// Say which files the model is made of, where they are and what would be fetched, and stop
    #[arg(long)]
    pub(crate) dry_run: bool,
}

fn key_and_path(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((key, path)) if !key.is_empty() && !path.is_empty() => {
            Ok((key.to_owned(), PathBuf::from(path)))
        }
        _ => Err("expected KEY=PATH".to_owned()),
    }
}

impl Overlays {
    /// How the weights are loaded.
    pub(crate) fn loading(&self) -> Loading {
        Loading {
            open: checkpoint::Options {
                state_dict_key: self.state_dict_key.clone(),
            },
            unknown_tensors: if self.lenient {
                UnknownTensors::Ignore
            } else {
                UnknownTensors::Refuse
            },
        }
    }

    fn all(&self) -> impl Iterator<Item = (&str, &Path)> {
        let short = [
            ("vocabulary", &self.vocab),
            ("tokenizer", &self.tokenizer),
            ("config", &self.config),
        ];
        let short = short
            .into_iter()
            .filter_map(|(key, path)| Some((key, path.as_deref()?)));
        let set = self
            .set
            .iter()
            .map(|(key, path)| (key.as_str(), path.as_path()));
        set.chain(short)
    }

    /// `model` with these files in place of its own.
    ///
    /// # Errors
    /// A key that the model does not have, a file that is not there.
    pub(crate) fn apply<'f, M, E>(
        &self,
        model: DeferredModel<'f, M, E>,
    ) -> Result<DeferredModel<'f, M, E>, Error> {
        self.all()
            .try_fold(model, |model, (key, path)| Ok(model.overlay(key, path)?))
    }
}

/// All models that can be named, and the way to their files.
pub(crate) struct Models {
    /// Where files are.
    pub(crate) roots: Roots,
    /// What finds and fetches them.
    pub(crate) store: Store,
    /// What was derived from weights.
    pub(crate) derived: DerivedStore,
    /// Whether files are hashed before they are used.
    verify: bool,
    manifests: Vec<Manifest>,
}

impl Models {
    /// The models that `sources` and the environment lead to.
    ///
    /// # Errors
    /// A manifest or a token file that cannot be read.
    pub(crate) fn new(sources: &Sources) -> Result<Self, Error> {
        Self::with(sources, |_| (), Options::default())
    }

    /// The same, fetched as `adjust` and `options` say.
    pub(crate) fn with(
        sources: &Sources,
        adjust: impl FnOnce(&mut Settings),
        options: Options,
    ) -> Result<Self, Error> {
        let var = |name: &str| std::env::var_os(name);
        let roots = sources.roots(Roots::from_vars(var));
        let mut settings = Settings::from_vars(var, roots.home.as_deref());
        sources.adjust(&mut settings)?;
        adjust(&mut settings);
        let network = Arc::new(Network::new(settings));
        Ok(Self {
            store: Store::new(&roots, network).with_options(options),
            // What was derived cannot be held against a digest.
            derived: if sources.no_derived || sources.verify || is_on(var("PRETRAINED_NO_DERIVED"))
            {
                DerivedStore::none()
            } else {
                DerivedStore::new(&roots)
            },
            manifests: sources.manifests(var)?,
            verify: sources.verify,
            roots,
        })
    }

    /// The user's own tables, one a kit.
    pub(crate) fn manifests(&self) -> &[Manifest] {
        &self.manifests
    }

    /// `catalog` with the user's own tables before it and the hub after it; of a repository of the hub, what `choice`
    /// wants.
    ///
    /// # Errors
    /// Two tables have the same name.
    pub(crate) fn catalog(
        &self,
        mut catalog: Catalog,
        choice: Choice,
        refresh: bool,
    ) -> Result<Catalog, Error> {
        if let Some(own) = self.manifests.iter().find(|it| it.kit == catalog.kit()) {
            catalog = catalog.prefer(own.clone())?;
        }
        let hub = HubProvider::new(self.store.hub().clone(), choice, refresh);
        Ok(catalog.provider(hub)?)
    }

    /// The whisper models, their weights loaded as `overlays` say.
    ///
    /// # Errors
    /// A table is malformed.
    pub(crate) fn whisper(
        &self,
        overlays: &Overlays,
    ) -> Result<Factory<Package, whisper::Error>, Error> {
        let catalog = self.catalog(whisper::catalog()?, Choice::default(), false)?;
        Ok(whisper::factory(catalog, &overlays.loading()))
    }

    /// `error`, or that `spec` is known but of another kit than `kit`.
    pub(crate) fn or_of_another_kit(&self, error: data::Error, spec: &Spec, kit: &str) -> Error {
        if error.is_not_found()
            && let Ok(found) = self.find(spec, &Choice::default(), false)
        {
            return Error::usage(
                format!(
                    "`{spec}` is a model of the kit `{}`, not `{kit}`",
                    found.kit
                ),
                format!("`pretrained inspect {spec}` says what it is"),
            );
        }
        error.into()
    }

    /// The model that `spec` names, in whichever kit it is; of a repository of the hub, what `choice` wants.
    ///
    /// # Errors
    /// No kit has it, or one could not tell.
    pub(crate) fn find(&self, spec: &Spec, choice: &Choice, refresh: bool) -> Result<Found, Error> {
        let mut nowhere: Option<data::Error> = None;
        for catalog in kits::catalogs()? {
            let catalog = self.catalog(catalog, choice.clone(), refresh)?;
            match (catalog.find(spec), &mut nowhere) {
                (Err(error), Some(known)) if error.is_not_found() => known.join(error),
                (Err(error), none) if error.is_not_found() => *none = Some(error),
                (found, _) => return Ok(found?),
            }
        }
        Err(nowhere.expect("there is a kit").into())
    }

    /// Reads what the user typed for a model.
    ///
    /// # Errors
    /// It is neither a path nor a name.
    pub(crate) fn spec(&self, text: &OsStr) -> Result<Spec, Error> {
        Ok(Spec::parse(text, &self.roots)?)
    }

    /// Brings the files of a model to this machine, and says on `out` how far that is.
    ///
    /// # Errors
    /// They are not here and cannot be had; or, where `--verify` asks, are not the published ones.
    pub(crate) fn bring_local(&self, found: &Found, out: &Out) -> Result<LocalFiles, Error> {
        let files = self
            .store
            .bring_local(found, &out.transfers(&found.model))?;
        if self.verify {
            files.verify()?;
        }
        Ok(files)
    }

    /// `file`, if it is the published one or nobody asked.
    ///
    /// # Errors
    /// It is another, and `--verify` asked.
    pub(crate) fn verified(&self, file: LocalFile) -> Result<LocalFile, data::Error> {
        if self.verify {
            file.verify()?;
        }
        Ok(file)
    }
}

impl Sources {
    fn roots(&self, mut roots: Roots) -> Roots {
        if let Some(dir) = &self.cache_dir {
            roots = roots.confined_to(dir);
        }
        if let Some(dir) = &self.hf_cache {
            roots = roots.with_hub(dir, "--hf-cache");
        }
        match &self.upstream_cache_dir {
            Some(dir) => roots.with_place(Roots::OPENAI_WHISPER, dir, "--upstream-cache-dir"),
            None => roots,
        }
    }

    fn adjust(&self, settings: &mut Settings) -> Result<(), Error> {
        if self.offline {
            settings.offline = Some("--offline was given");
        }
        for url in self.origin.iter().chain(&self.mirror) {
            if !url.starts_with("http://") && !url.starts_with("https://") {
                return Err(Error::usage(
                    format!("`{url}` is no address of http or https"),
                    "as in `https://models.example.org`",
                ));
            }
        }
        if let Some(url) = &self.origin {
            settings.endpoint = address(url);
        }
        if !self.mirror.is_empty() {
            settings.mirrors = self.mirror.iter().map(|url| address(url)).collect();
        }
        if let Some(path) = &self.token_file {
            let token = Token::read(path).map_err(|source| data::Error::Io {
                path: path.clone(),
                source,
            })?;
            settings.token = Some(token.ok_or_else(|| {
                Error::usage(
                    format!("`{}` holds no token", path.display()),
                    "a token is one line of printable characters",
                )
            })?);
        }
        Ok(())
    }

    /// The user's tables, one a kit.
    fn manifests(
        &self,
        var: impl Fn(&str) -> Option<std::ffi::OsString>,
    ) -> Result<Vec<Manifest>, Error> {
        let named = || {
            let paths = var("PRETRAINED_MANIFEST").filter(|paths| !paths.is_empty());
            let paths = paths.map(|paths| std::env::split_paths(&paths).collect::<Vec<_>>());
            paths.unwrap_or_default()
        };
        let paths = if self.manifest.is_empty() {
            named()
        } else {
            self.manifest.clone()
        };
        let mut manifests: Vec<Manifest> = Vec::new();
        for path in paths {
            let manifest = Manifest::read(&path)?;
            let kits: Vec<_> = kits::KITS.iter().map(|kit| kit.name).collect();
            if !kits.contains(&manifest.kit.as_str()) {
                return Err(Error::usage(
                    format!("`{}`: there is no kit `{}`", path.display(), manifest.kit),
                    format!("the kits are {}", kits.join(", ")),
                ));
            }
            match manifests.iter_mut().find(|known| known.kit == manifest.kit) {
                Some(known) => known.join(manifest)?,
                None => manifests.push(manifest),
            }
        }
        Ok(manifests)
    }
}

/// The name of the geometry: what the row promises, or the published one that a path's model has.
pub(crate) fn prefab_name(
    factory: &Factory<Package, whisper::Error>,
    plan: &Plan<'_, Package, whisper::Error>,
    dims: &Dims,
) -> Result<Option<String>, Error> {
    if let Some(prefab) = &plan.prefab {
        return Ok(Some(prefab.name.clone()));
    }
    for prefab in factory.prefabs() {
        if Dims::from_prefab(prefab)? == *dims {
            return Ok(Some(prefab.name.clone()));
        }
    }
    Ok(None)
}
