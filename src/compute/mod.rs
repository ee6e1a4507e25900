//! Tensors become numbers.

pub mod quant;
