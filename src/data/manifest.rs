use std::{collections::HashSet, ops::Range, path::Path};

use serde::Deserialize;
use toml::Spanned;

use super::{Defect, Error, Prefab, Provider, Row, error::unreadable};

/// The schema of tables that this version reads.
const SCHEMA: u32 = 1;

/// The prefix that chooses the user's own tables.
const MANIFEST: &str = "manifest";

/// A kit's prefabs and rows as one TOML file; the compiled-in tables and a user's own have the same form. It is the
/// provider of its rows.
///
/// ```toml
/// schema = 1
/// kit = "whisper"
///
/// [[prefab]]
/// name = "whisper-tiny.en"
/// [prefab.geometry]
/// n_mels = 80                               # … in the kit's own words
///
/// [[row]]
/// name = "openai/tiny.en"
/// aliases = ["tiny.en"]                     # optional
/// prefab = "whisper-tiny.en"                # optional
/// license = "MIT"
/// origin = "https://github.com/openai/whisper"
/// [[row.resource]]
/// key = "weights"
/// file = "tiny.en.pt"
/// kind = "openai-pt"
/// namespace = "openai"
/// sha256 = "d3dd57d3…"
/// size = 75571315                           # optional
/// sources = [{ local = "openai-whisper" }, { url = "https://…" }]
///
/// [[row]]
/// name = "openai/whisper-tiny.en"
/// license = "Apache-2.0"
/// origin = "https://huggingface.co/openai/whisper-tiny.en"
/// hub = "openai/whisper-tiny.en@87c71024…"  # optional; its files need no namespace, sources or pin
/// [row.descriptor]                          # optional, in the kit's own words
/// languages = ["en"]
/// [[row.resource]]
/// key = "config"
/// file = "config.json"
/// kind = "json"
/// ```
#[derive(Clone, Debug)]
pub struct Manifest {
    /// The name it goes by as a provider, and in errors.
    pub name: String,
    /// The kit that the prefabs and rows belong to.
    pub kit: String,
    /// Geometries, each name once.
    pub prefabs: Vec<Prefab>,
    /// Rows, each name and alias once.
    pub rows: Vec<Row>,
}

impl Manifest {
    /// Reads and checks `text`; `table` names it in errors.
    ///
    /// # Errors
    /// [`Error::Manifest`] with the line: not TOML, a field that is unknown, missing or of the wrong type, a name or
    /// key that is there twice, a resource that is unsafe or unpinned.
    pub fn parse(table: &str, text: &str) -> Result<Self, Error> {
        let at = |span: Range<usize>, defect| Error::Manifest {
            table: table.to_owned(),
            line: line_of(text, span.start),
            defect,
        };
        let file: File = toml::from_str(text).map_err(|error| {
            // A multi-line message would be a table inside our one line.
            let message = error.message().replace('\n', ", ");
            at(error.span().unwrap_or(0..0), Defect::Syntax { message })
        })?;
        if *file.schema.get_ref() != SCHEMA {
            let defect = Defect::Schema {
                found: *file.schema.get_ref(),
                expected: SCHEMA,
            };
            return Err(at(file.schema.span(), defect));
        }

        let mut names = HashSet::new();
        let mut prefabs = Vec::with_capacity(file.prefab.len());
        for prefab in file.prefab {
            let span = prefab.span();
            let prefab = Prefab {
                kit: file.kit.clone(),
                ..prefab.into_inner()
            };
            if !names.insert(prefab.name.clone()) {
                return Err(at(
                    span,
                    Defect::Duplicate {
                        what: "prefab",
                        name: prefab.name,
                    },
                ));
            }
            prefabs.push(prefab);
        }

        let mut names = HashSet::new();
        let mut rows = Vec::with_capacity(file.row.len());
        for row in file.row {
            let span = row.span();
            let mut row = row.into_inner();
            row.complete();
            row.validate().map_err(|defect| at(span.clone(), defect))?;
            for name in row.names() {
                if !names.insert(name.to_owned()) {
                    return Err(at(
                        span,
                        Defect::Duplicate {
                            what: "name",
                            name: name.to_owned(),
                        },
                    ));
                }
            }
            rows.push(row);
        }
        Ok(Self {
            name: table.to_owned(),
            kit: file.kit,
            prefabs,
            rows,
        })
    }

    /// Reads the user's own table at `path`, the provider `manifest`.
    ///
    /// # Errors
    /// [`Error::Io`], and as [`Manifest::parse`].
    pub fn read(path: &Path) -> Result<Self, Error> {
        let bytes = std::fs::read(path).map_err(|source| unreadable(path, source))?;
        let table = path.display().to_string();
        let text = String::from_utf8(bytes).map_err(|_| Error::Manifest {
            table: table.clone(),
            line: 1,
            defect: Defect::Syntax {
                message: "is no text in UTF-8".to_owned(),
            },
        })?;
        let mut manifest = Self::parse(&table, &text)?;
        manifest.name = MANIFEST.to_owned();
        Ok(manifest)
    }

    /// Adds the prefabs and rows of `other`, a table of the same kit.
    ///
    /// # Errors
    /// [`Error::Duplicate`] for a name that both have.
    pub fn join(&mut self, other: Self) -> Result<(), Error> {
        let duplicate = |what, name: &str| Error::Duplicate {
            what,
            name: name.to_owned(),
        };
        for prefab in other.prefabs {
            if self.prefabs.iter().any(|known| known.name == prefab.name) {
                return Err(duplicate("prefab", &prefab.name));
            }
            self.prefabs.push(prefab);
        }
        for row in other.rows {
            if let Some(name) = row.names().find(|name| self.row(name).is_some()) {
                return Err(duplicate("name", name));
            }
            self.rows.push(row);
        }
        Ok(())
    }

    /// The row that answers to `name`.
    pub fn row(&self, name: &str) -> Option<&Row> {
        self.rows
            .iter()
            .find(|row| row.names().any(|known| known == name))
    }
}

/// The file as written: spans lead errors found after parsing back to their line.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    schema: Spanned<u32>,
    kit: String,
    #[serde(default)]
    prefab: Vec<Spanned<Prefab>>,
    #[serde(default)]
    row: Vec<Spanned<Row>>,
}

/// The line of `offset`, counted from 1.
fn line_of(text: &str, offset: usize) -> usize {
    text.as_bytes()
        .iter()
        .take(offset)
        .filter(|&&byte| byte == b'\n')
        .count()
        + 1
}

impl Provider for Manifest {
    fn name(&self) -> &str {
        &self.name
    }

    fn get(&self, reference: &str) -> Result<Option<Row>, Error> {
        Ok(self.row(reference).cloned())
    }

    fn rows(&self) -> &[Row] {
        &self.rows
    }

    fn prefabs(&self) -> &[Prefab] {
        &self.prefabs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGEST: &str = "d3dd57d32accea0b295c96e26691aa14d8822fac7d9d27d5dc00b4ca2826dd03";

    fn table() -> String {
        format!(
            r#"schema = 1
kit = "whisper"

[[prefab]]
name = "p"
[prefab.geometry]
n_mels = 80

[[row]]
name = "openai/tiny"
aliases = ["tiny"]
prefab = "p"
license = "MIT"
origin = "here"
[[row.resource]]
key = "weights"
file = "tiny.pt"
kind = "openai-pt"
namespace = "openai"
sha256 = "{DIGEST}"
sources = [{{ local = "openai-whisper" }}, {{ url = "https://example.org/tiny.pt" }}]
"#
        )
    }

    #[test]
    fn table_is_read_whole() {
        let manifest = Manifest::parse("t.toml", &table()).unwrap();
        assert_eq!(manifest.prefabs[0].kit, "whisper");
        assert_eq!(manifest.row("tiny"), manifest.row("openai/tiny"));
        assert_eq!(manifest.row("p"), None);
        let weights = manifest.rows[0].resources.get("weights").unwrap();
        assert_eq!(weights.url(), Some("https://example.org/tiny.pt"));
        assert_eq!(weights.sources.len(), 2);
        assert_eq!(weights.sha256.unwrap().to_string(), DIGEST);
    }

    #[test]
    fn defects_are_named_with_their_line() {
        struct Case {
            replace: (&'static str, &'static str),
            message: &'static str,
        }
        let row =
            "[[row]]\nname = \"other\"\nprefab = \"p\"\nlicense = \"MIT\"\norigin = \"here\"\n";
        let twice = format!("{row}aliases = [\"tiny\"]\nresource = []\n");
        let cases = [
            Case {
                replace: ("schema = 1", "schema = 2"),
                message: "t.toml:1: schema 2 is not known, expected 1",
            },
            Case {
                replace: ("kit =", "kit"),
                message: "t.toml:2: ",
            },
            Case {
                replace: (
                    "n_mels = 80",
                    "n_mels = 80\n[[prefab]]\nname = \"p\"\ngeometry = {}",
                ),
                message: "t.toml:8: duplicate prefab `p`",
            },
            Case {
                replace: ("aliases = [\"tiny\"]", "aliases = [\"openai/tiny\"]"),
                message: "t.toml:9: duplicate name `openai/tiny`",
            },
            Case {
                replace: ("aliases = [\"tiny\"]", "aliases = [\"a:b\"]"),
                message: "t.toml:9: `a:b` is not a name",
            },
            Case {
                replace: ("license", "licence"),
                message: "t.toml:13: unknown field `licence`",
            },
            Case {
                replace: ("kind = \"openai-pt\"", "kind = \"pickle\""),
                message: "t.toml:18: unknown variant `pickle`",
            },
            Case {
                replace: ("file = \"tiny.pt\"", "file = \"../tiny.pt\""),
                message: "t.toml:9: resource `weights`: `../tiny.pt`",
            },
            Case {
                replace: ("sha256 = \"d3", "sha256 = \"D3"),
                message: "t.toml:20: `D3dd57",
            },
            Case {
                replace: ("https://example.org/tiny.pt", "file:///etc/passwd"),
                message: "t.toml:9: resource `weights`: `file:///etc/passwd` is no address",
            },
            Case {
                replace: ("{ local =", "{ linked ="),
                message: "t.toml:21: unknown variant `linked`",
            },
        ];
        let mut failures = Vec::new();
        for case in cases {
            let text = table().replacen(case.replace.0, case.replace.1, 1);
            assert_ne!(text, table(), "{:?}", case.replace);
            let message = Manifest::parse("t.toml", &text).unwrap_err().to_string();
            if !message.starts_with(case.message) || message.contains('\n') {
                failures.push(format!("expected `{}`, found `{message}`", case.message));
            }
        }
        let without_pin = table()
            .lines()
            .filter(|line| !line.starts_with("sha256"))
            .collect::<Vec<_>>()
            .join("\n")
            .replace(", { url = \"https://example.org/tiny.pt\" }", "");
        for (text, expected) in [
            (without_pin, "t.toml:9: resource `weights` has no sha256"),
            (table() + &twice, "t.toml:22: row `other` has no resources"),
            (
                table() + &table()[table().find("[[row.resource]]").unwrap()..],
                "t.toml:",
            ),
        ] {
            let message = Manifest::parse("t.toml", &text).unwrap_err().to_string();
            if !message.starts_with(expected) {
                failures.push(format!("expected `{expected}`, found `{message}`"));
            }
        }
        assert!(failures.is_empty(), "{failures:#?}");
    }

    #[test]
    fn no_truncation_panics() {
        let table = table();
        for end in 0..table.len() {
            let _ = Manifest::parse("t.toml", &table[..end]);
        }
    }

    #[test]
    fn no_mutation_panics() {
        let table = table().into_bytes();
        let mut random = fastrand::Rng::with_seed(1);
        for _ in 0..2000 {
            let mut mutated = table.clone();
            for _ in 0..random.usize(1..4) {
                let at = random.usize(..mutated.len());
                mutated[at] = *random.choice(b"\"\n[]{}=.,#'\\a0-_ \0").unwrap();
            }
            let _ = Manifest::parse("t.toml", std::str::from_utf8(&mutated).unwrap());
        }
    }

    #[test]
    fn rows_survive_a_round_trip() {
        let manifest = Manifest::parse("t.toml", &table()).unwrap();
        let json = serde_json::to_string(&manifest.rows).unwrap();
        assert_eq!(
            serde_json::from_str::<Vec<Row>>(&json).unwrap(),
            manifest.rows
        );
    }
}
