//! `pretrained` runs pretrained models on your own machine.
//!
//! Work flows one way through the rooms below, and each room knows only the rooms listed before it:
//!
//! ```text
//! name ─▶ row ─▶ local files ─▶ named tensors ─▶ prepared weights ─▶ model ─▶ task ─▶ text
//!   data::         data::         checkpoint::      compute::         kits::   kits::  cli::
//! ```

/// Any audio file becomes 16 kHz mono samples, and those become log-mel features.
pub mod audio;
/// Files become named tensors: safetensors and torch archives behind one trait.
pub mod checkpoint;
/// The command line, the only room that prints.
pub mod cli;
/// Tensors become numbers: the backend trait, its plain reference, and the CPU.
pub mod compute;
/// Names become local files: specs, rows, resources, providers, and the pinned cache.
pub mod data;
/// One folder a model family: its geometry, its forward pass, its task.
pub mod kits;
/// What several models share: linear layers, norms, attention, and how they are loaded.
pub mod nn;
/// Token ids become text and back.
pub mod text;
