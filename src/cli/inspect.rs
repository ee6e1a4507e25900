//! `pretrained inspect`: what a model is, without running it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde::Serialize;

use super::Globals;
use super::error::Error;
use super::exit::Exit;
use super::json::line;
use super::model;
use super::out::Out;
use super::table::{grouped, size, table};
use crate::checkpoint::{Checkpoint, Dtype};

/// Show what a model is: geometry, parameters, tensors, digests
///
/// Its tensors are compared with those that its geometry asks for; a difference is exit code 8.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A model's name, a file of weights, or a directory
    #[arg(value_name = "SPEC")]
    spec: String,

    /// List every tensor
    #[arg(long)]
    tensors: bool,
}

/// What is known of a model.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Report {
    /// The model as it was given.
    pub(crate) spec: String,
    /// Namespace and name of the row that answered; `None` for a path.
    pub(crate) row: Option<String>,
    /// Licence of the weights, where it is known.
    pub(crate) licence: Option<String>,
    /// Family, when the files are those of one that is supported.
    pub(crate) kit: Option<String>,
    /// Name of the geometry, when it is a published one.
    pub(crate) prefab: Option<String>,
    /// Dimensions under the names that the family's paper gives them.
    pub(crate) geometry: serde_json::Map<String, serde_json::Value>,
    /// The files that the model is made of.
    pub(crate) files: Vec<File>,
    /// What the weights hold.
    #[serde(flatten)]
    pub(crate) contents: Contents,
    /// Where the weights depart from the geometry; `None` when there is none to compare with.
    pub(crate) differences: Option<Vec<Difference>>,
}

/// One file of a model.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct File {
    /// Where it is.
    pub(crate) path: String,
    /// Its length.
    pub(crate) bytes: u64,
    /// SHA-256 of its bytes in hex.
    pub(crate) sha256: String,
}

/// What a file of weights holds.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Contents {
    /// Elements of all tensors; scales of int8 weights do not count.
    parameters: u64,
    /// Bytes of all tensors.
    weight_bytes: u64,
    /// Tensors of each element type.
    dtypes: BTreeMap<String, usize>,
    /// In lexical order; emptied where they were not asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tensors: Vec<Tensor>,
}

#[derive(Debug, Serialize)]
struct Tensor {
    name: String,
    dtype: String,
    shape: Vec<usize>,
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

/// Runs the command.
pub(crate) fn run(args: &Args, globals: &Globals, out: &mut Out) -> Result<Exit, Error> {
    let mut report = model::inspect(&args.spec, globals.cache_dir.as_deref())?;
    if !args.tensors {
        report.contents.tensors.clear();
    }
    out.data(&if globals.json {
        report.json()
    } else {
        report.text()
    })?;
    match report.differences {
        Some(differences) if !differences.is_empty() => Err(Error::Differs {
            spec: report.spec,
            prefab: report.prefab.unwrap_or_else(|| "geometry".to_owned()),
            differences: differences.len(),
        }),
        _ => Ok(Exit::Done),
    }
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
            contents.weight_bytes = contents
                .weight_bytes
                .saturating_add(elements.saturating_mul(info.dtype.size() as u64));
            *contents.dtypes.entry(dtype.clone()).or_default() += 1;
            contents.tensors.push(Tensor {
                name: name.to_owned(),
                dtype,
                shape: info.shape,
            });
        }
        contents
    }

    /// The element type of most bytes.
    pub(crate) fn main_dtype(&self) -> Option<&str> {
        let mut elements = BTreeMap::<&str, u64>::new();
        for tensor in &self.tensors {
            *elements.entry(&tensor.dtype).or_default() += elements_of(&tensor.shape);
        }
        elements
            .into_iter()
            .max_by_key(|(_, count)| *count)
            .map(|(dtype, _)| dtype)
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

impl Report {
    fn json(&self) -> String {
        #[derive(Serialize)]
        struct Document<'a> {
            schema: &'static str,
            #[serde(flatten)]
            report: &'a Report,
        }
        line(&Document {
            schema: "pretrained.inspect/1",
            report: self,
        })
    }

    fn text(&self) -> String {
        let mut text = String::new();
        let mut fact = |name: &str, value: &str| {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{name:<12}{value}");
        };
        fact("model", &self.spec);
        let named = [
            ("row", &self.row),
            ("licence", &self.licence),
            ("kit", &self.kit),
            ("prefab", &self.prefab),
        ];
        for (name, value) in named {
            if let Some(value) = value {
                fact(name, value);
            }
        }
        if !self.geometry.is_empty() {
            let dimensions: Vec<_> = self
                .geometry
                .iter()
                .map(|(name, value)| format!("{name} {value}"))
                .collect();
            fact("geometry", &dimensions.join(", "));
        }
        for file in &self.files {
            fact(
                "file",
                &format!(
                    "{}  {}  sha256 {}",
                    file.path,
                    size(file.bytes),
                    file.sha256
                ),
            );
        }
        fact("parameters", &grouped(self.contents.parameters));
        let dtypes: Vec<_> = self
            .contents
            .dtypes
            .iter()
            .map(|(dtype, count)| format!("{count} {dtype}"))
            .collect();
        fact(
            "tensors",
            &format!(
                "{}, {}",
                dtypes.join(", "),
                size(self.contents.weight_bytes)
            ),
        );
        match self.differences.as_deref() {
            Some([]) => fact(
                "check",
                "every tensor of the geometry is there, of the right shape",
            ),
            Some(differences) => {
                for difference in differences {
                    fact("difference", &difference.text());
                }
            }
            None => {}
        }
        if !self.contents.tensors.is_empty() {
            let row = |tensor: &Tensor| {
                vec![
                    tensor.name.clone(),
                    tensor.dtype.clone(),
                    shape(&tensor.shape),
                ]
            };
            let rows: Vec<_> = self.contents.tensors.iter().map(row).collect();
            text.push('\n');
            text.push_str(&table(&["tensor", "dtype", "shape"], &rows));
        }
        text
    }
}

impl Difference {
    /// Whether it is an extra tensor whose name `is_harmless`.
    pub(crate) fn is_extra(&self, is_harmless: impl Fn(&str) -> bool) -> bool {
        matches!(self, Self::Extra { tensor, .. } if is_harmless(tensor))
    }

    fn text(&self) -> String {
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

fn shape(extents: &[usize]) -> String {
    let extents: Vec<_> = extents.iter().map(ToString::to_string).collect();
    format!("[{}]", extents.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        Report {
            spec: "tiny.en".into(),
            row: Some("bundled:tiny.en".into()),
            kit: Some("whisper".into()),
            prefab: Some("tiny.en".into()),
            geometry: [
                ("n_mels".to_owned(), 80.into()),
                ("n_audio_ctx".to_owned(), 1500.into()),
            ]
            .into_iter()
            .collect(),
            files: vec![File {
                path: "model.safetensors".into(),
                bytes: 1500,
                sha256: "ab".into(),
            }],
            contents: Contents {
                parameters: 1100,
                weight_bytes: 1400,
                dtypes: BTreeMap::from([("F32".into(), 1), ("I8".into(), 2)]),
                tensors: vec![Tensor {
                    name: "decoder.ln.bias".into(),
                    dtype: "F32".into(),
                    shape: vec![384],
                }],
            },
            differences: Some(Vec::new()),
            ..Report::default()
        }
    }

    #[test]
    fn facts_stand_one_a_line() {
        let expected = "\
model       tiny.en
row         bundled:tiny.en
kit         whisper
prefab      tiny.en
geometry    n_mels 80, n_audio_ctx 1500
file        model.safetensors  1.5 kB  sha256 ab
parameters  1,100
tensors     1 F32, 2 I8, 1.4 kB
check       every tensor of the geometry is there, of the right shape

tensor           dtype  shape
decoder.ln.bias  F32    [384]
";
        assert_eq!(report().text(), expected);
    }

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

    #[test]
    fn differences_name_the_tensor_and_both_shapes() {
        let tensor = || "decoder.ln.bias".to_owned();
        let differences = [
            Difference::Missing {
                tensor: tensor(),
                expected: vec![384],
            },
            Difference::Extra {
                tensor: tensor(),
                found: vec![],
            },
            Difference::Shape {
                tensor: tensor(),
                expected: vec![384],
                found: vec![512, 3],
            },
        ];
        let expected = [
            "decoder.ln.bias is missing, expected [384]",
            "decoder.ln.bias [] is not part of the geometry",
            "decoder.ln.bias is [512, 3], expected [384]",
        ];
        assert_eq!(differences.each_ref().map(Difference::text), expected);
        let report = Report {
            differences: Some(differences.to_vec()),
            ..report()
        };
        let value: serde_json::Value = serde_json::from_str(&report.json()).unwrap();
        assert_eq!(value["schema"], "pretrained.inspect/1");
        assert_eq!(value["differences"][2]["kind"], "shape");
        assert_eq!(
            value["differences"][2]["found"],
            serde_json::json!([512, 3])
        );
        assert_eq!(value["geometry"]["n_mels"], 80);
    }
}
