//! Layers with weights.

use crate::compute::{Activation, Backend, Conv, Error, Fused};

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
    pub fn forward(&self, b: &B, x: &B::Tensor) -> Result<B::Tensor, Error> {
        self.activated(b, x, Activation::Identity)
    }

    /// As [`Linear::forward`], followed by an activation.
    ///
    /// # Errors
    /// As the backend's.
    pub fn activated(
        &self,
        b: &B,
        x: &B::Tensor,
        activation: Activation,
    ) -> Result<B::Tensor, Error> {
        let fused = Fused {
            bias: self.bias.as_ref(),
            activation,
            residual: None,
        };
        b.linear(x, &self.weight, fused)
    }

    /// As [`Linear::forward`], added to `residual` `[…, out]`.
    ///
    /// # Errors
    /// As the backend's.
    pub fn added_to(&self, b: &B, residual: &B::Tensor, x: &B::Tensor) -> Result<B::Tensor, Error> {
        let fused = Fused {
            bias: self.bias.as_ref(),
            activation: Activation::Identity,
            residual: Some(residual),
        };
        b.linear(x, &self.weight, fused)
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
        let fused = Fused {
            bias: self.bias.as_ref(),
            activation,
            residual: None,
        };
        b.conv1d(x, &self.weight, self.conv, fused)
    }
}
