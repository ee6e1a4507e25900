use super::{Error, Prefab, Row};

/// A namespace of rows.
pub trait Provider: Send + Sync {
    /// The prefix that chooses it: `well-known`.
    fn name(&self) -> &str;

    /// The row that `reference` names, or `None` when the provider has no such row and the search may go on.
    ///
    /// # Errors
    /// The provider could not tell; the search stops.
    fn get(&self, reference: &str) -> Result<Option<Row>, Error>;

    /// Whether a name without a prefix is offered to it; a hub says no.
    fn answers_bare_names(&self) -> bool {
        true
    }

    /// How the files of its rows are laid out in the cache.
    fn layout(&self) -> Layout {
        Layout::Pinned
    }

    /// The rows it can list, in the order to show them; empty when there are too many to know.
    fn rows(&self) -> &[Row] {
        &[]
    }

    /// The geometries it brings along.
    fn prefabs(&self) -> &[Prefab] {
        &[]
    }
}

/// How files are laid out on this machine once they are fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// By digest, in the pinned cache.
    Pinned,
    /// By repository and commit, in the hub's cache.
    Hub,
}

/// What one provider said when a spec was resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The provider's name.
    pub provider: String,
    /// What it said.
    pub outcome: Outcome,
}

/// A provider's part in resolving a spec.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Its row was taken.
    Taken(String),
    /// It has this row too, but an earlier provider's was taken.
    AlsoHere(String),
    /// It has no such row.
    NotHere,
    /// It could not tell, which did not matter any more.
    Failed(String),
    /// The spec did not concern it.
    NotAsked,
}
