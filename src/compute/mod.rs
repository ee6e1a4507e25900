//! Tensors become numbers.
