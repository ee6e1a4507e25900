//! `pretrained` runs pretrained models on your own machine.
//!
//! Work flows one way through the rooms below, and each room knows only the rooms listed before it:
//!
//! ```text
//! name ─▶ row ─▶ local files ─▶ named tensors ─▶ prepared weights ─▶ model ─▶ task ─▶ text
//!   data::         data::         checkpoint::      compute::         kits::   kits::  cli::
//! ```
//!
//! - [`data`]: names become local files: specs, rows, resources, providers, the pinned cache.
//! - [`checkpoint`]: files become named tensors: safetensors, torch archives, GGUF and GGML behind one trait.
//! - [`compute`]: tensors become numbers: the backend trait, its plain reference, the CPU.
//! - [`nn`]: what several models share: layers, and how their weights are found.
//! - [`audio`]: any recording becomes 16 kHz mono samples, and those become log-mel features.
//! - [`text`]: token ids become text and back.
//! - [`kits`]: one folder a model family: its geometry, its forward pass, its task.
//! - [`cli`]: the command line, the only room that prints.

pub mod data;

pub mod checkpoint;

pub mod compute;

pub mod nn;

pub mod audio;

pub mod text;

pub mod kits;

pub mod cli;
