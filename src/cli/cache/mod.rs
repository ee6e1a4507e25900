//! `pretrained cache`: what is on this machine, whether it is right, and how it gets off it again.

mod filter;
mod info;
mod ls;
mod rm;
mod tar;
mod verify;

use std::collections::BTreeSet;

use clap::Subcommand;

use super::Globals;
use super::error::Error;
use super::exit::Exit;
use super::model::Models;
use super::out::Out;
use crate::data::hub::Choice;
use crate::data::{self, Catalog, ContentId, Inventory, Provider, Removal, Sha256, Source};
use crate::kits;

/// The models on this machine
#[derive(Debug, Subcommand)]
pub(crate) enum Cache {
    Info(info::InfoArgs),
    Path(info::PathArgs),
    Ls(ls::Args),
    Verify(verify::Args),
    Rm(rm::RmArgs),
    Prune(rm::PruneArgs),
    Export(tar::ExportArgs),
    Import(tar::ImportArgs),
}

/// Runs the command.
pub(crate) fn run(command: &Cache, globals: &Globals, out: &mut Out) -> Result<Exit, Error> {
    let shelf = Shelf::new(globals)?;
    match command {
        Cache::Info(args) => info::info(args, &shelf, globals, out),
        Cache::Path(args) => info::path(args, &shelf, globals, out),
        Cache::Ls(args) => ls::run(args, &shelf, globals, out),
        Cache::Verify(args) => verify::run(args, &shelf, globals, out),
        Cache::Rm(args) => rm::rm(args, &shelf, globals, out),
        Cache::Prune(args) => rm::prune(args, &shelf, globals, out),
        Cache::Export(args) => tar::export(args, &shelf, globals, out),
        Cache::Import(args) => tar::import(args, &shelf, globals, out),
    }
}

/// The caches, and the tables that say what the files in them are.
struct Shelf {
    models: Models,
    catalogs: Vec<Catalog>,
}

impl Shelf {
    fn new(globals: &Globals) -> Result<Self, Error> {
        let models = Models::new(&globals.sources)?;
        let catalog = |catalog| models.catalog(catalog, Choice::default(), false);
        let catalogs = kits::catalogs()?
            .into_iter()
            .map(catalog)
            .collect::<Result<_, _>>()?;
        Ok(Self { models, catalogs })
    }

    fn inventory(&self) -> Result<Inventory, Error> {
        let store = &self.models.store;
        let inventory = Inventory::of(store.pinned(), store.hub().cache())?;
        Ok(inventory.with_derived(&self.models.derived)?)
    }

    /// The contents that a model may have its weights from: those in the caches but for what `removal` takes, and those
    /// linked into the binary.
    fn contents_after(&self, inventory: &Inventory, removal: &Removal) -> BTreeSet<ContentId> {
        let mut contents = inventory.contents_after(removal);
        let tables = self.catalogs.iter().flat_map(Catalog::providers);
        let resources = tables
            .flat_map(Provider::rows)
            .flat_map(|row| row.resources.iter());
        let is_linked = |it: &&data::Resource| {
            let mut sources = it.sources.iter();
            sources.any(|source| matches!(source, Source::Linked(_)))
        };
        let linked = resources.filter(is_linked).filter_map(|it| it.sha256);
        contents.extend(linked.map(ContentId::Sha256));
        contents
    }

    /// The models that have their weights from the content `id`, as one would type them.
    fn models_of(&self, inventory: &Inventory, id: &ContentId) -> Vec<String> {
        let mut names = Vec::new();
        if let ContentId::Sha256(digest) = id {
            for catalog in &self.catalogs {
                names.extend(self.rows_of(catalog.kit(), digest));
            }
        }
        for revision in &inventory.revisions {
            if revision.files.iter().any(|file| file.id == Some(*id)) {
                names.push(format!("hf:{}", revision.repo));
            }
        }
        names.dedup();
        names
    }

    /// The name that listings show for the row that answers to `name`; other names are left as they are.
    fn canonical(&self, name: &str) -> String {
        let bare = name.split_once(':').map_or(name, |(_, bare)| bare);
        let tables = self.catalogs.iter().flat_map(Catalog::providers);
        let mut rows = tables.flat_map(Provider::rows);
        match rows.find(|row| row.names().any(|known| known == bare)) {
            Some(row) if !name.starts_with("hf:") => row.short_name().to_owned(),
            _ => name.to_owned(),
        }
    }

    /// Whether all files of the row `name` of `kit` are on this machine.
    fn is_here(&self, kit: &str, name: &str) -> bool {
        let catalog = self.catalogs.iter().find(|catalog| catalog.kit() == kit);
        let found =
            catalog.and_then(|catalog| catalog.find(&data::Spec::Bare(name.to_owned())).ok());
        let status = found.and_then(|found| self.models.store.status(&found).ok());
        let is_here =
            |(_, standing): &(_, data::Standing)| matches!(standing, data::Standing::Here(_));
        status.is_some_and(|status| status.iter().all(is_here))
    }

    /// The rows that use the file of `kit` with that digest, as one would type them.
    fn rows_of(&self, kit: &str, sha256: &Sha256) -> Vec<String> {
        let mut names = Vec::new();
        for catalog in self.catalogs.iter().filter(|catalog| catalog.kit() == kit) {
            for row in catalog.providers().flat_map(Provider::rows) {
                let uses = |resource: &data::Resource| {
                    let pin = || Some(self.models.store.pinned()?.pin(kit, resource)?.sha256);
                    resource.sha256.or_else(pin).as_ref() == Some(sha256)
                };
                if row.resources.iter().any(uses) {
                    names.push(row.short_name().to_owned());
                }
            }
        }
        names.dedup();
        names
    }
}
