//! Layers with weights.

use crate::compute::{Activation, Backend, Conv, Error};

/// `x · weightᵀ + bias`.
pub struct Linear<B: Backend> {
    /// `[out, in]`.
    pub weight: B::Matrix,
    /// `[out]`.
    pub bias: Option<B::Tensor>,
}

impl<B: Backend> Linear<B> {
    /// `x` `[…, in]` in, `[…, out]` out.
    ///
    /// # Errors
    /// As the backend's.
    pub fn forward(
        &self,
        b: &B,
        x: &B::Tensor,
        activation: Activation,
    ) -> Result<B::Tensor, Error> {
        b.linear(x, &self.weight, self.bias.as_ref(), activation)
    }
}

/// Normalisation over the last axis.
pub struct LayerNorm<B: Backend> {
    /// `[width]`.
    pub gain: B::Tensor,
    /// `[width]`.
    pub bias: B::Tensor,
    /// Added to the variance.
    pub eps: f32,
}

impl<B: Backend> LayerNorm<B> {
    /// `x` `[…, width]` in, same out.
    ///
    /// # Errors
    /// As the backend's.
    pub fn forward(&self, b: &B, x: &B::Tensor) -> Result<B::Tensor, Error> {
        b.layer_norm(x, &self.gain, &self.bias, self.eps)
    }
}

/// Convolution over positions.
pub struct Conv1d<B: Backend> {
    /// `[out, kernel · in]`, the kernel position outermost.
    pub weight: B::Matrix,
    /// `[out]`.
    pub bias: Option<B::Tensor>,
    /// Kernel, stride and padding.
    pub conv: Conv,
}

impl<B: Backend> Conv1d<B> {
    /// `x` `[batch, length, in]` in, `[batch, out_length, out]` out.
    ///
    /// # Errors
    /// As the backend's.
    pub fn forward(
        &self,
        b: &B,
        x: &B::Tensor,
        activation: Activation,
    ) -> Result<B::Tensor, Error> {
        b.conv1d(x, &self.weight, self.bias.as_ref(), self.conv, activation)
    }
}
