//! Tensors become numbers.
//!
//! A model's forward pass is written once, against [`Backend`]. [`mod@reference`] says what every operation means, in plain
//! loops; [`cpu`] is what runs. A backend's tensors are opaque to the models, so that they can live on a device.

mod backend;
pub mod cpu;
pub mod quant;
pub mod reference;
mod weight;

#[cfg(test)]
mod conformance;

pub use backend::{
    Activation, Attention, AttentionMask, Backend, Conv, Error, Fused, KvFormat, KvShape, Pool,
    Ranked, Rope, RopePairing,
};
pub use weight::{Format, Weight, WeightFormat};
