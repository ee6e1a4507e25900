//! What is known of a model, as text and as JSON.

use std::fmt::Write as _;

use serde::Serialize;

use super::contents::{Contents, Difference, Tensor, shape};
use crate::cli::json::line;
use crate::cli::out::printable;
use crate::cli::table::{grouped, size, table};

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

impl Report {
    pub(super) fn json(&self) -> String {
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

    pub(super) fn text(&self) -> String {
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
                    fact("difference", &printable(&difference.text()));
                }
            }
            None => {}
        }
        if !self.contents.tensors.is_empty() {
            let row = |tensor: &Tensor| {
                vec![
                    printable(&tensor.name),
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

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
