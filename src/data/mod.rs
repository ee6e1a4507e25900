//! Names become local files.
//!
//! A [`Spec`] is what the user types. A kit's [`Factory`] offers it to its [`Provider`]s in order and answers with a
//! [`DeferredModel`]; [`DeferredModel::plan`] completes and checks it before any byte moves; the [`Store`] brings the
//! plan's files local; [`Plan::construct`] builds the model.
//!
//! ```text
//! Spec ──▶ Row ──▶ DeferredModel ──▶ Plan ──▶ LocalFiles ──▶ the kit's model
//!   Factory, Provider        plan        Store      construct
//! ```
//!
//! Where files are and how they come there is the business of [`store`](Store), of the [`hub`], whose cache is shared
//! with other programs, and of the [`net`].
//!
//! What is worked out from weights, and would be again at each start, is kept in the [`DerivedStore`].
//!
//! The room knows no tensors: a kit tells it which kinds of file it can build a model from, and reads them itself. The
//! environment is read once, by [`Roots::from_vars`], and passed in.

mod bundled;
mod catalog;
mod conventions;
mod defect;
mod deferred;
mod derived;
mod digest;
mod disk;
mod error;
mod factory;
#[cfg(test)]
mod fixture;
pub mod hub;
mod local;
mod local_files;
mod lock;
mod manifest;
mod near;
pub mod net;
mod not_cached;
mod observer;
mod prefab;
mod provider;
mod resource;
mod roots;
mod row;
mod signature;
mod sniff;
mod spec;
mod store;
mod well_known;

pub use catalog::{Catalog, Found};
pub use defect::Defect;
pub use deferred::{DeferredModel, Plan};
pub use derived::{Derived, DerivedFile, DerivedStore, WeightsIdentity};
pub use digest::{ContentId, GitBlob, Sha256};
pub use error::Error;
pub use factory::{Construct, Factory, Need};
pub use hub::HubCache;
pub use local_files::{Content, LocalFile, LocalFiles, Provenance};
pub use manifest::Manifest;
pub use not_cached::{NotCached, PassedOver};
pub use observer::Observer;
pub use prefab::Prefab;
pub use provider::{Answer, Layout, Outcome, Provider};
pub use resource::{Kind, Linked, Resource, ResourceMap, Source};
pub use roots::{Root, Roots};
pub use row::Row;
pub use signature::Signature;
pub use spec::Spec;
pub use store::{
    Brought, Export, Import, Inventory, Options, Pin, PinnedCache, Removal, Standing, Store,
    Summary, inventory,
};
