//! A kit for the tests of this room: a table of two published models, one linked in, and constructors that only say
//! which of them was chosen.

use std::sync::Arc;

use super::{
    Catalog, Content, Error, Factory, Kind, LocalFiles, Manifest, Need, Roots, Row, Sha256, Store,
    net::{Network, Settings},
};

/// What the fixture's constructors build: which one it was, and the keys and provenances it got.
pub(super) type Built = (&'static str, Vec<String>);

/// The content of `tiny.pt` and of the linked safetensors.
pub(super) const TINY: &[u8] = b"PK\x03\x04tiny";
/// The linked bytes.
pub(super) static LINKED: &[u8] = b"\x08\0\0\0\0\0\0\0{}      ";

pub(super) fn row(name: &str, alias: &str, file: &str, kind: Kind, content: &[u8]) -> String {
    format!(
        r#"
[[row]]
name = "{name}"
aliases = ["{alias}"]
prefab = "toy-tiny"
license = "MIT"
origin = "nowhere"
[[row.resource]]
key = "weights"
file = "{file}"
kind = "{kind}"
namespace = "acme"
sha256 = "{}"
size = {}
sources = [{{ local = "openai-whisper" }}, {{ url = "https://example.org/{file}" }}]
"#,
        Sha256::of(content),
        content.len()
    )
}

const HEAD: &str = "schema = 1\nkit = \"toy\"\n";

pub(super) fn well_known() -> Manifest {
    let prefab = "[[prefab]]\nname = \"toy-tiny\"\ngeometry = { n_layer = 4 }\n";
    let tiny = row("acme/tiny", "tiny", "tiny.pt", Kind::OpenaiPt, TINY);
    let base = row("acme/base", "base", "base.pt", Kind::OpenaiPt, b"base");
    Manifest::well_known(&format!("{HEAD}{prefab}{tiny}{base}")).unwrap()
}

pub(super) fn bundled(bytes: &'static [u8]) -> Manifest {
    let row = row(
        "acme/tiny",
        "tiny",
        "tiny.safetensors",
        Kind::Safetensors,
        LINKED,
    );
    Manifest::bundled(&format!("{HEAD}{row}"), &[("tiny.safetensors", bytes)]).unwrap()
}

/// A factory of `catalog` whose constructors only say which of them was chosen.
pub(super) fn of(catalog: Catalog) -> Factory<Built, Error> {
    let build = |name: &'static str| {
        move |files: &LocalFiles| {
            let describe = |file: &super::LocalFile| format!("{} {:?}", file.key, file.provenance);
            Ok((name, files.iter().map(describe).collect()))
        }
    };
    Factory::new(catalog)
        .construct(
            &[
                Need::required("weights", Kind::OpenaiPt),
                Need::optional("vocab", Kind::Tiktoken),
            ],
            build("pt"),
        )
        .construct(
            &[
                Need::required("weights", Kind::Safetensors),
                Need::required("config", Kind::Json),
            ],
            build("directory"),
        )
        .construct(
            &[
                Need::required("weights", Kind::Pytorch),
                Need::required("config", Kind::Json),
            ],
            build("pickle"),
        )
}

/// The two models, the linked one sound.
pub(super) fn catalog() -> Catalog {
    let catalog = Catalog::new("toy").provider(well_known()).unwrap();
    catalog.provider(bundled(LINKED)).unwrap()
}

/// A factory that can build the linked model without a config.
pub(super) fn factory() -> Factory<Built, Error> {
    of(catalog()).construct(&[Need::required("weights", Kind::Safetensors)], |_| {
        Ok(("lone", Vec::new()))
    })
}

/// A cache root and an upstream cache, both empty, and the roots that name them.
pub(super) struct Machine {
    pub(super) cache: tempfile::TempDir,
    pub(super) upstream: tempfile::TempDir,
}

impl Machine {
    pub(super) fn new() -> Self {
        Self {
            cache: tempfile::tempdir().unwrap(),
            upstream: tempfile::tempdir().unwrap(),
        }
    }

    pub(super) fn roots(&self) -> Roots {
        Roots::default()
            .with_cache(self.cache.path(), "test")
            .with_place(Roots::OPENAI_WHISPER, self.upstream.path(), "test")
    }
}

/// The store of `roots`, and no network.
pub(super) fn store(roots: &Roots) -> Store {
    let mut settings = Settings::from_vars(|_| None, None);
    settings.offline = Some("this is a test");
    Store::new(roots, Arc::new(Network::new(settings)))
}

/// The row's only file as bytes, for comparison.
pub(super) fn content(files: &LocalFiles) -> Vec<u8> {
    match &files.get("weights").unwrap().content {
        Content::Path(path) => std::fs::read(path).unwrap(),
        Content::Bytes(bytes) => bytes.to_vec(),
    }
}

/// A row as a provider of the tests may answer it.
pub(super) fn tiny() -> Row {
    use super::Provider;

    well_known().get("tiny").unwrap().unwrap()
}
