//! What several models share: layers, and how their weights are found in a checkpoint.

mod layers;
mod loader;

pub use layers::{Conv1d, LayerNorm, Linear};
pub use loader::{Error, Loader};
