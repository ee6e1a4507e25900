//! What is known of a model, as text and as JSON.

use std::fmt::Write as _;

use serde::Serialize;

use super::contents::{Contents, Difference, Tensor, shape};
use crate::cli::json::line;
use crate::cli::out::printable;
use crate::cli::plan::File;
use crate::cli::table::{grouped, size, table};
use crate::data::{Answer, Found, Layout, Manifest, Outcome};

/// What is known of a model.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Report {
    /// The model as it was given.
    pub(crate) spec: String,
    /// What its table says.
    #[serde(flatten)]
    pub(crate) about: About,
    /// Dimensions under the names that the family's paper gives them.
    pub(crate) geometry: serde_json::Map<String, serde_json::Value>,
    /// The files that the model is made of.
    pub(crate) files: Vec<File>,
    /// What the weights hold; `None` while they are not on this machine.
    #[serde(flatten)]
    pub(crate) contents: Option<Contents>,
    /// Where the weights depart from the geometry; `None` when there is none to compare with.
    pub(crate) differences: Option<Vec<Difference>>,
}

/// What a table says of a model.
#[derive(Debug, Default, Serialize)]
pub(crate) struct About {
    /// Namespace and name of the row that answered; `None` for a path.
    pub(crate) row: Option<String>,
    /// Other names that it answers to.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) aliases: Vec<String>,
    /// Licence of the weights, where it is known.
    pub(crate) licence: Option<String>,
    /// Where the weights come from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) origin: Option<String>,
    /// Whether access must be asked for.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) gated: bool,
    /// Family, when the files are those of one that is supported.
    pub(crate) kit: Option<String>,
    /// Name of the geometry, when it is a published one.
    pub(crate) prefab: Option<String>,
    /// What else the family must know to use it as published.
    #[serde(skip_serializing_if = "toml::Table::is_empty")]
    pub(crate) descriptor: toml::Table,
    /// What each namespace of models said.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) answers: Vec<String>,
}

impl About {
    /// What the row says; of a path, nothing.
    pub(super) fn of(found: &Found) -> Self {
        let answers = found.answers.iter().map(answer).collect();
        let Some(row) = &found.row else {
            return Self::default();
        };
        let provider = found.provider.as_deref().unwrap_or_default();
        let others = row.names().filter(|name| *name != row.short_name());
        Self {
            row: Some(format!("{provider}:{}", row.short_name())),
            aliases: others.map(str::to_owned).collect(),
            licence: Some(row.license.clone()),
            origin: Some(row.origin.clone()),
            gated: row.gated,
            kit: (found.layout == Layout::Pinned).then(|| found.kit.clone()),
            prefab: row.prefab.clone(),
            descriptor: row.descriptor.clone(),
            answers,
        }
    }
}

fn answer(answer: &Answer) -> String {
    let said = match &answer.outcome {
        Outcome::Taken(row) => format!("has it, as {row}: taken"),
        Outcome::AlsoHere(row) => format!("has it too, as {row}"),
        Outcome::NotHere => "no such row".to_owned(),
        Outcome::Failed(why) => format!("could not tell: {why}"),
        Outcome::NotAsked => "not asked".to_owned(),
    };
    format!("{}: {said}", answer.provider)
}

/// The rows of the user's own tables.
pub(super) fn tables(manifests: &[Manifest], json: bool) -> String {
    #[derive(Serialize)]
    struct Row<'a> {
        kit: &'a str,
        name: &'a str,
        aliases: &'a [String],
        files: usize,
        /// Files that the first fetch will pin.
        unpinned: usize,
    }
    #[derive(Serialize)]
    struct Document<'a> {
        schema: &'static str,
        rows: Vec<Row<'a>>,
    }
    let rows = manifests.iter().flat_map(|manifest| {
        manifest.rows.iter().map(|row| Row {
            kit: &manifest.kit,
            name: &row.name,
            aliases: &row.aliases,
            files: row.resources.iter().count(),
            unpinned: row
                .resources
                .iter()
                .filter(|it| it.sha256.is_none())
                .count(),
        })
    });
    let rows: Vec<_> = rows.collect();
    if json {
        let schema = "pretrained.manifest/1";
        return line(&Document { schema, rows });
    }
    let cells = |row: &Row<'_>| {
        vec![
            row.name.to_owned(),
            row.kit.to_owned(),
            row.files.to_string(),
            row.unpinned.to_string(),
            row.aliases.join(", "),
        ]
    };
    let rows: Vec<_> = rows.iter().map(cells).collect();
    table(&["row", "kit", "files", "unpinned", "aliases"], &rows)
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
            let _ = writeln!(text, "{name:<12}{}", printable(value));
        };
        fact("model", &self.spec);
        let about = &self.about;
        let aliases = Some(about.aliases.join(", ")).filter(|aliases| !aliases.is_empty());
        let gated = about.gated.then(|| "access must be asked for".to_owned());
        let named = [
            ("row", &about.row),
            ("aliases", &aliases),
            ("licence", &about.licence),
            ("origin", &about.origin),
            ("gated", &gated),
            ("kit", &about.kit),
            ("prefab", &about.prefab),
        ];
        for (name, value) in named {
            if let Some(value) = value {
                fact(name, value);
            }
        }
        for answer in &about.answers {
            fact("asked", answer);
        }
        if !self.geometry.is_empty() {
            let dimensions: Vec<_> = self
                .geometry
                .iter()
                .map(|(name, value)| format!("{name} {value}"))
                .collect();
            fact("geometry", &dimensions.join(", "));
        }
        for (name, value) in &about.descriptor {
            fact("descriptor", &format!("{name} = {}", json_of(value)));
        }
        for file in &self.files {
            fact("file", &file_line(file));
        }
        if let Some(contents) = &self.contents {
            fact("parameters", &grouped(contents.parameters));
            let dtypes: Vec<_> = contents
                .dtypes
                .iter()
                .map(|(dtype, count)| format!("{count} {dtype}"))
                .collect();
            let bytes = size(contents.weight_bytes);
            fact("tensors", &format!("{}, {bytes}", dtypes.join(", ")));
        }
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
        if let Some(contents) = self.contents.as_ref().filter(|it| !it.tensors.is_empty()) {
            let row = |tensor: &Tensor| {
                vec![
                    printable(&tensor.name),
                    tensor.dtype.clone(),
                    shape(&tensor.shape),
                ]
            };
            let rows: Vec<_> = contents.tensors.iter().map(row).collect();
            text.push('\n');
            text.push_str(&table(&["tensor", "dtype", "shape"], &rows));
        }
        text
    }
}

fn json_of(value: &toml::Value) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

fn file_line(file: &File) -> String {
    let place = match (&file.path, &file.url) {
        (Some(path), _) => path.display().to_string(),
        (None, Some(url)) => format!("{}, not here, at {url}", file.file),
        (None, None) if file.from == "bundled" => format!("{} (in this binary)", file.file),
        (None, None) => format!("{}, not here", file.file),
    };
    let bytes = file.bytes.map_or_else(|| "unknown size".to_owned(), size);
    match &file.sha256 {
        Some(sha256) => format!("{}  {place}  {bytes}  sha256 {sha256}", file.key),
        None => format!("{}  {place}  {bytes}", file.key),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn report() -> Report {
        Report {
            spec: "tiny.en".into(),
            about: About {
                row: Some("bundled:tiny.en".into()),
                kit: Some("whisper".into()),
                prefab: Some("tiny.en".into()),
                ..About::default()
            },
            geometry: [
                ("n_mels".to_owned(), 80.into()),
                ("n_audio_ctx".to_owned(), 1500.into()),
            ]
            .into_iter()
            .collect(),
            files: vec![File {
                key: "weights".into(),
                file: "model.safetensors".into(),
                path: Some("model.safetensors".into()),
                bytes: Some(1500),
                sha256: Some("ab".into()),
                from: "given",
                url: None,
            }],
            contents: Some(Contents {
                parameters: 1100,
                weight_bytes: 1400,
                dtypes: BTreeMap::from([("F32".into(), 1), ("I8".into(), 2)]),
                tensors: vec![Tensor {
                    name: "decoder.ln.bias".into(),
                    dtype: "F32".into(),
                    shape: vec![384],
                }],
            }),
            differences: Some(Vec::new()),
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
file        weights  model.safetensors  1.5 kB  sha256 ab
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
