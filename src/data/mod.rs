//! Names become local files.
//!
//! A [`Spec`] is what the user types. A kit's [`Factory`] offers it to its [`Provider`]s in order and answers with a
//! [`DeferredModel`]; [`DeferredModel::plan`] completes and checks it before any byte moves; the [`PinnedCache`] brings
//! the plan's files local; [`Plan::construct`] builds the model.
//!
//! ```text
//! Spec ──▶ Row ──▶ DeferredModel ──▶ Plan ──▶ LocalFiles ──▶ the kit's model
//!   Factory, Provider        plan      PinnedCache    construct
//! ```
//!
//! The room knows no tensors: a kit tells it which kinds of file it can build a model from, and reads them itself. The
//! environment is read once, by [`Roots::from_vars`], and passed in.

mod bundled;
mod catalog;
mod conventions;
mod deferred;
mod digest;
mod disk;
mod error;
mod export;
mod factory;
#[cfg(test)]
mod fixture;
pub mod hub;
mod import;
pub mod inventory;
mod local;
mod local_files;
mod lock;
mod manifest;
mod near;
pub mod net;
mod observer;
mod pinned;
mod prefab;
mod provider;
mod remove;
mod resource;
mod roots;
mod row;
mod signature;
mod sniff;
mod spec;
mod store;
mod well_known;

pub use catalog::{Catalog, Found};
pub use deferred::{DeferredModel, Plan};
pub use digest::{ContentId, GitBlob, Sha256};
pub use error::{Defect, Error, NotCached, PassedOver};
pub use export::Export;
pub use factory::{Construct, Factory, Need};
pub use hub::HubCache;
pub use import::{Import, Summary};
pub use inventory::Inventory;
pub use local_files::{Content, LocalFile, LocalFiles, Provenance};
pub use manifest::Manifest;
pub use observer::Observer;
pub use pinned::{Pin, PinnedCache};
pub use prefab::Prefab;
pub use provider::{Answer, Layout, Outcome, Provider};
pub use remove::Removal;
pub use resource::{Kind, Linked, Resource, ResourceMap, Source};
pub use roots::{Root, Roots};
pub use row::Row;
pub use signature::Signature;
pub use spec::Spec;
pub use store::{Brought, Options, Standing, Store};
