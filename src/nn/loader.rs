//! From a checkpoint's tensors to a backend's layers.

use super::{Conv1d, LayerNorm, Linear, Precision};
use crate::checkpoint::{self, Checkpoint, Dtype, Tensor, listed};
use crate::compute::{self, Backend, Conv, Format, Weight, WeightFormat};
use crate::data::Derived;

/// Why a layer could not be made from a checkpoint.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The checkpoint lacks a tensor, or its bytes cannot be had.
    #[error(transparent)]
    Checkpoint(#[from] checkpoint::Error),
    /// The checkpoint lacks tensors of the model, or has some that the model has no place for.
    #[error("{}", lacks_and_has(missing, unknown))]
    Names {
        /// What is not there, in the model's order.
        missing: Vec<String>,
        /// What is there besides, in lexical order.
        unknown: Vec<String>,
    },
    /// A tensor does not have the shape that the model's geometry asks for.
    #[error("tensor `{tensor}` has shape {found:?}, expected {expected:?}")]
    Shape {
        /// The tensor's name.
        tensor: String,
        /// The shape that the geometry asks for.
        expected: Vec<usize>,
        /// The shape in the checkpoint.
        found: Vec<usize>,
    },
    /// A tensor's element type cannot serve as a weight.
    #[error("tensor `{tensor}` is {found:?}, expected f32, f16 or bf16")]
    Dtype {
        /// The tensor's name.
        tensor: String,
        /// Its type.
        found: Dtype,
    },
    /// The backend refused.
    #[error(transparent)]
    Backend(#[from] compute::Error),
}

/// What a checkpoint lacks and what it has besides, in words.
fn lacks_and_has(missing: &[String], unknown: &[String]) -> String {
    let tensors = |names: &[String]| match names.len() {
        1 => "1 tensor".to_owned(),
        count => format!("{count} tensors"),
    };
    let lacks =
        (!missing.is_empty()).then(|| format!("lack {}: {}", tensors(missing), listed(missing)));
    let has = (!unknown.is_empty()).then(|| {
        let (count, names) = (tensors(unknown), listed(unknown));
        format!("have {count} that have no place in the model: {names}")
    });
    let both: Vec<_> = lacks.into_iter().chain(has).collect();
    format!("the weights {}", both.join("; and "))
}

/// How weights are prepared for a backend.
#[derive(Clone, Copy)]
pub struct Preparation<'a> {
    /// What they are multiplied in.
    pub precision: Precision,
    /// Where prepared weights are kept from one start to the next, if anywhere.
    pub derived: Option<&'a Derived>,
}

impl Preparation<'_> {
    /// Prepares weights for `precision` anew, and keeps nothing.
    pub fn anew(precision: Precision) -> Self {
        Self {
            precision,
            derived: None,
        }
    }
}

/// Finds the weights of a model, or of a part of it, by name.
///
/// An int8 tensor is a weight of [`WeightFormat::Q8`], and `NAME.scale` holds its scales.
pub struct Loader<'a, B> {
    backend: &'a B,
    checkpoint: &'a dyn Checkpoint,
    preparation: Preparation<'a>,
    /// What linear layers are multiplied in.
    format: Format,
    prefix: String,
}

impl<'a, B: Backend> Loader<'a, B> {
    /// A loader of everything in `checkpoint`.
    pub fn new(
        backend: &'a B,
        checkpoint: &'a dyn Checkpoint,
        preparation: Preparation<'a>,
    ) -> Self {
        Self {
            backend,
            checkpoint,
            preparation,
            format: preparation.precision.decoder(),
            prefix: String::new(),
        }
    }

    /// The loader of the part called `name`.
    pub fn at(&self, name: impl std::fmt::Display) -> Self {
        Self {
            prefix: self.path(name),
            ..*self
        }
    }

    /// The loader of an encoder's part: linear layers are multiplied as [`Precision::encoder`] says, and elsewhere as
    /// [`Precision::decoder`] does.
    pub fn of_encoder(self) -> Self {
        Self {
            format: self.preparation.precision.encoder(),
            ..self
        }
    }

    /// A layer of weight `[n, k]`, with a bias if it `has_bias`.
    ///
    /// # Errors
    /// A tensor is missing, or has another shape or an unfit type.
    pub fn linear(&self, n: usize, k: usize, has_bias: bool) -> Result<Linear<B>, Error> {
        let bias = if has_bias {
            Some(self.values("bias", &[n])?)
        } else {
            None
        };
        Ok(Linear {
            weight: self.matrix("weight", n, k, self.format)?,
            bias,
        })
    }

    /// A normalisation of `width` values.
    ///
    /// # Errors
    /// As [`Loader::linear`].
    pub fn layer_norm(&self, width: usize, eps: f32) -> Result<LayerNorm<B>, Error> {
        Ok(LayerNorm {
            gain: self.values("weight", &[width])?,
            bias: self.values("bias", &[width])?,
            eps,
        })
    }

    /// A convolution of weight `[n, channels, kernel]` with a bias.
    ///
    /// # Errors
    /// As [`Loader::linear`].
    pub fn conv1d(&self, n: usize, channels: usize, conv: Conv) -> Result<Conv1d<B>, Error> {
        let format = self.preparation.precision.convolutions();
        let weight = self.prepared("weight", n, conv.kernel * channels, format, || {
            let stored = self.host_values("weight", &[n, channels, conv.kernel])?;
            let mut weight = Vec::with_capacity(stored.len());
            for filter in stored.chunks_exact(channels * conv.kernel) {
                for tap in 0..conv.kernel {
                    weight.extend((0..channels).map(|channel| filter[channel * conv.kernel + tap]));
                }
            }
            Ok(Weight::from_f32(n, conv.kernel * channels, weight))
        })?;
        Ok(Conv1d {
            weight,
            bias: Some(self.values("bias", &[n])?),
            conv,
        })
    }

    /// The table of embeddings `[rows, cols]`, which may be an output layer too.
    ///
    /// # Errors
    /// As [`Loader::linear`].
    pub fn embedding(&self, rows: usize, cols: usize) -> Result<B::Matrix, Error> {
        self.matrix(
            "weight",
            rows,
            cols,
            self.preparation.precision.embeddings(),
        )
    }

    /// The weight `name` `[rows, cols]`, to be multiplied in `format`.
    fn matrix(
        &self,
        name: &str,
        rows: usize,
        cols: usize,
        format: Format,
    ) -> Result<B::Matrix, Error> {
        self.prepared(name, rows, cols, format, || self.weight(name, rows, cols))
    }

    /// The weight `name` as the backend prepared it once before, or prepared from what `weight` reads.
    fn prepared(
        &self,
        name: &str,
        rows: usize,
        cols: usize,
        format: Format,
        weight: impl FnOnce() -> Result<Weight, Error>,
    ) -> Result<B::Matrix, Error> {
        let path = self.path(name);
        let kept = self.preparation.derived.and_then(|it| it.get(&path));
        if let Some(bytes) = kept
            && let Ok(matrix) = self.backend.matrix_from_bytes(rows, cols, format, bytes)
        {
            return Ok(matrix);
        }
        let matrix = self.backend.matrix(&weight()?, format)?;
        if let Some(derived) = self.preparation.derived
            && let Some(bytes) = self.backend.matrix_bytes(&matrix)
        {
            derived.add(&path, bytes);
        }
        Ok(matrix)
    }

    /// The weight `name` as it is stored.
    fn weight(&self, name: &str, rows: usize, cols: usize) -> Result<Weight, Error> {
        let Tensor { dtype, data, .. } = self.tensor(name, &[rows, cols])?;
        let format = match dtype {
            Dtype::F32 => WeightFormat::F32(data),
            Dtype::F16 => WeightFormat::F16(data),
            Dtype::Bf16 => WeightFormat::Bf16(data),
            Dtype::I8 => {
                let scales = self.host_values(&format!("{name}.scale"), &[rows])?;
                WeightFormat::Q8 {
                    codes: data,
                    scales,
                }
            }
            found => {
                return Err(Error::Dtype {
                    tensor: self.path(name),
                    found,
                });
            }
        };
        Ok(Weight::new(rows, cols, format)?)
    }

    /// The tensor `name` as activations.
    ///
    /// # Errors
    /// As [`Loader::linear`].
    pub fn values(&self, name: &str, shape: &[usize]) -> Result<B::Tensor, Error> {
        Ok(self
            .backend
            .upload(shape, &self.host_values(name, shape)?)?)
    }

    /// The table `name` `[len, width]` as one sequence `[1, len, width]`.
    ///
    /// # Errors
    /// As [`Loader::linear`].
    pub fn sequence(&self, name: &str, len: usize, width: usize) -> Result<B::Tensor, Error> {
        Ok(self
            .backend
            .upload(&[1, len, width], &self.host_values(name, &[len, width])?)?)
    }

    fn host_values(&self, name: &str, shape: &[usize]) -> Result<Vec<f32>, Error> {
        let Tensor { dtype, data, .. } = self.tensor(name, shape)?;
        let format = match dtype {
            Dtype::F32 => WeightFormat::F32(data),
            Dtype::F16 => WeightFormat::F16(data),
            Dtype::Bf16 => WeightFormat::Bf16(data),
            found => {
                return Err(Error::Dtype {
                    tensor: self.path(name),
                    found,
                });
            }
        };
        Ok(Weight::new(1, shape.iter().product(), format)?.values())
    }

    fn tensor(&self, name: &str, expected: &[usize]) -> Result<Tensor, Error> {
        let path = self.path(name);
        let tensor = self.checkpoint.tensor(&path)?;
        if tensor.shape != expected {
            return Err(Error::Shape {
                tensor: path,
                expected: expected.to_vec(),
                found: tensor.shape,
            });
        }
        Ok(tensor)
    }

    fn path(&self, name: impl std::fmt::Display) -> String {
        if self.prefix.is_empty() {
            name.to_string()
        } else {
            format!("{}.{name}", self.prefix)
        }
    }
}
