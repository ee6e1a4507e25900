//! What a file of weights holds, and how that departs from a geometry.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::checkpoint::{Checkpoint, Dtype};

/// What a file of weights holds.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Contents {
    /// Elements of all tensors; scales of int8 weights do not count.
    pub(super) parameters: u64,
    /// Bytes of all tensors.
    pub(super) weight_bytes: u64,
    /// Tensors of each element type.
    pub(super) dtypes: BTreeMap<String, usize>,
    /// In lexical order; emptied where they were not asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) tensors: Vec<Tensor>,
}

#[derive(Debug, Serialize)]
pub(super) struct Tensor {
    pub(super) name: String,
    pub(super) dtype: String,
    pub(super) shape: Vec<usize>,
}

/// One way in which weights depart from their geometry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum Difference {
    /// The geometry asks for a tensor that is not there.
    Missing {
        tensor: String,
        expected: Vec<usize>,
    },
    /// A tensor that the geometry has no place for.
    Extra { tensor: String, found: Vec<usize> },
    /// A tensor of another shape.
    Shape {
        tensor: String,
        expected: Vec<usize>,
        found: Vec<usize>,
    },
}

impl Contents {
    /// What `checkpoint` says in its header.
    pub(crate) fn of(checkpoint: &dyn Checkpoint) -> Self {
        let mut contents = Self::default();
        for name in checkpoint.names() {
            let Some(info) = checkpoint.info(name) else {
                continue;
            };
            let elements = elements_of(&info.shape);
            let dtype = info.dtype.name().to_owned();
            if !is_scale(checkpoint, name) {
                contents.parameters = contents.parameters.saturating_add(elements);
            }
            let bytes = info.dtype.byte_len(&info.shape);
            contents.weight_bytes = contents
                .weight_bytes
                .saturating_add(bytes.map_or(u64::MAX, |bytes| bytes as u64));
            *contents.dtypes.entry(dtype.clone()).or_default() += 1;
            contents.tensors.push(Tensor {
                name: name.to_owned(),
                dtype,
                shape: info.shape,
            });
        }
        contents
    }

    /// Where these tensors depart from `expected`, names with shapes: first those that are expected, in their order,
    /// then what is there beside them.
    pub(crate) fn differences(&self, expected: &[(String, Vec<usize>)]) -> Vec<Difference> {
        let shapes: BTreeMap<_, _> = self
            .tensors
            .iter()
            .map(|tensor| (tensor.name.as_str(), &tensor.shape))
            .collect();
        let known: BTreeSet<_> = expected.iter().map(|(name, _)| name.as_str()).collect();
        let departs = |(tensor, expected): &(String, Vec<usize>)| {
            let (tensor, expected) = (tensor.clone(), expected.clone());
            match shapes.get(tensor.as_str()) {
                None => Some(Difference::Missing { tensor, expected }),
                Some(found) if **found != expected => Some(Difference::Shape {
                    tensor,
                    expected,
                    found: (*found).clone(),
                }),
                Some(_) => None,
            }
        };
        let extra = self
            .tensors
            .iter()
            .filter(|tensor| !known.contains(tensor.name.as_str()));
        let extra = extra.map(|tensor| Difference::Extra {
            tensor: tensor.name.clone(),
            found: tensor.shape.clone(),
        });
        expected.iter().filter_map(departs).chain(extra).collect()
    }
}

impl Difference {
    /// Whether it is an extra tensor whose name `is_harmless`.
    pub(crate) fn is_extra(&self, is_harmless: impl Fn(&str) -> bool) -> bool {
        matches!(self, Self::Extra { tensor, .. } if is_harmless(tensor))
    }

    pub(super) fn text(&self) -> String {
        match self {
            Self::Missing { tensor, expected } => {
                format!("{tensor} is missing, expected {}", shape(expected))
            }
            Self::Extra { tensor, found } => {
                format!("{tensor} {} is not part of the geometry", shape(found))
            }
            Self::Shape {
                tensor,
                expected,
                found,
            } => {
                format!("{tensor} is {}, expected {}", shape(found), shape(expected))
            }
        }
    }
}

/// Whether a tensor belongs to the format of another, whose int8 codes it scales.
fn is_scale(checkpoint: &dyn Checkpoint, name: &str) -> bool {
    let scaled = name
        .strip_suffix(".scale")
        .and_then(|name| checkpoint.info(name));
    scaled.is_some_and(|info| info.dtype == Dtype::I8)
}

fn elements_of(shape: &[usize]) -> u64 {
    shape
        .iter()
        .fold(1, |product, &extent| product.saturating_mul(extent as u64))
}

/// Extents in brackets.
pub(super) fn shape(extents: &[usize]) -> String {
    let extents: Vec<_> = extents.iter().map(ToString::to_string).collect();
    format!("[{}]", extents.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tensors_are_held_against_what_is_expected() {
        let tensor = |name: &str, shape: &[usize]| Tensor {
            name: name.into(),
            dtype: "F16".into(),
            shape: shape.to_vec(),
        };
        let tensors = vec![tensor("a", &[2]), tensor("b", &[3, 1]), tensor("d", &[])];
        let contents = Contents {
            tensors,
            ..Contents::default()
        };
        let expected = [("c", vec![4]), ("b", vec![1, 3]), ("a", vec![2])]
            .map(|(name, shape)| (name.to_owned(), shape));
        let found = [
            Difference::Missing {
                tensor: "c".into(),
                expected: vec![4],
            },
            Difference::Shape {
                tensor: "b".into(),
                expected: vec![1, 3],
                found: vec![3, 1],
            },
            Difference::Extra {
                tensor: "d".into(),
                found: vec![],
            },
        ];
        assert_eq!(contents.differences(&expected), found);
    }
}
