//! What several models share: layers, and how their weights are found in a checkpoint.

mod layers;
mod loader;
mod names;
mod precision;

pub use layers::{Conv1d, LayerNorm, Linear};
pub use loader::{Error, Loader, Preparation};
pub use names::{UnknownTensors, check_names};
pub use precision::Precision;
