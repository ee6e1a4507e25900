use std::path::Path;

use super::*;
use crate::data::{
    Outcome, Provider, Roots, Row,
    fixture::{self, LINKED, TINY, catalog, factory},
};

/// File names and contents.
type Files<'a> = &'a [(&'a str, &'a [u8])];

/// A provider that fails, or a hub: neither has rows to list.
struct Stub {
    name: &'static str,
    bare: bool,
    row: Option<Row>,
    fails: bool,
}

impl Provider for Stub {
    fn name(&self) -> &str {
        self.name
    }

    fn answers_bare_names(&self) -> bool {
        self.bare
    }

    fn get(&self, reference: &str) -> Result<Option<Row>, Error> {
        if self.fails {
            return Err(Error::NoSuchPath {
                path: reference.into(),
            });
        }
        Ok(self.row.clone())
    }
}

fn spec(text: &str) -> Spec {
    Spec::parse(text, &Roots::default()).unwrap()
}

fn error(factory: &Factory<fixture::Built, Error>, text: &str) -> Error {
    factory
        .resolve(&spec(text))
        .and_then(DeferredModel::plan)
        .err()
        .unwrap()
}

#[test]
fn first_provider_that_has_a_bare_name_is_taken() {
    let factory = factory();
    let cases = [
        ("tiny", "well-known", "acme/tiny"),
        ("acme/tiny", "well-known", "acme/tiny"),
        ("base", "well-known", "acme/base"),
        ("bundled:tiny", "bundled", "acme/tiny"),
        ("well-known:tiny", "well-known", "acme/tiny"),
    ];
    for (text, provider, row) in cases {
        let plan = factory.resolve(&spec(text)).unwrap().plan().unwrap();
        let found = plan.found;
        assert_eq!(found.provider.as_deref(), Some(provider), "{text}");
        assert_eq!(found.row.unwrap().name, row, "{text}");
        assert_eq!(plan.prefab.unwrap().name, "toy-tiny");
        assert_eq!((found.model.as_str(), found.kit.as_str()), (text, "toy"));
    }
}

#[test]
fn explanation_has_every_providers_answer() {
    let hub = Stub {
        name: "hub",
        bare: false,
        row: Some(fixture::tiny()),
        fails: false,
    };
    let broken = Stub {
        name: "broken",
        bare: true,
        row: None,
        fails: true,
    };
    let factory = fixture::of(catalog().provider(hub).unwrap().provider(broken).unwrap());
    let outcomes = |text| {
        let deferred = factory.resolve(&spec(text)).unwrap();
        deferred
            .explain()
            .iter()
            .map(|answer| answer.outcome.clone())
            .collect::<Vec<_>>()
    };
    let tiny = || "acme/tiny".to_owned();
    let failed = Outcome::Failed("no such file or directory: `tiny`".to_owned());
    assert_eq!(
        outcomes("tiny"),
        [
            Outcome::Taken(tiny()),
            Outcome::AlsoHere(tiny()),
            Outcome::NotAsked,
            failed
        ]
    );
    assert_eq!(
        outcomes("bundled:tiny"),
        [
            Outcome::NotAsked,
            Outcome::Taken(tiny()),
            Outcome::NotAsked,
            Outcome::NotAsked
        ]
    );
}

#[test]
fn provider_that_fails_before_a_row_is_found_stops_the_search() {
    let broken = Stub {
        name: "broken",
        bare: true,
        row: None,
        fails: true,
    };
    let catalog = Catalog::new("toy").provider(broken).unwrap();
    let factory = fixture::of(catalog.provider(fixture::well_known()).unwrap());
    assert!(matches!(
        factory.resolve(&spec("tiny")),
        Err(Error::NoSuchPath { .. })
    ));
    assert!(factory.resolve(&spec("well-known:tiny")).is_ok());
}

#[test]
fn hub_is_asked_only_by_its_prefix() {
    struct Hub;
    impl Provider for Hub {
        fn name(&self) -> &str {
            "hub"
        }
        fn answers_bare_names(&self) -> bool {
            false
        }
        fn get(&self, reference: &str) -> Result<Option<Row>, Error> {
            assert_eq!(reference, "org/repo");
            Ok(Some(fixture::tiny()))
        }
    }
    let factory = fixture::of(catalog().provider(Hub).unwrap());
    assert!(factory.resolve(&spec("hub:org/repo")).is_ok());
    assert!(factory.resolve(&spec("tiny")).is_ok());
    for unknown in ["tinny", "bundled:tinny"] {
        assert!(matches!(
            factory.resolve(&spec(unknown)),
            Err(Error::NotFound { .. })
        ));
    }
    let dir = directory(&[]);
    assert!(factory.resolve(&Spec::Path(dir.path().to_owned())).is_err());
}

#[test]
fn unknown_names_come_with_a_remedy() {
    let cases = [
        (
            "tinny",
            "no model `tinny` in `well-known`, `bundled`, and no such file or directory",
            "did you mean `tiny`?",
        ),
        (
            "xyzzy",
            "no model `xyzzy` in `well-known`, `bundled`, and no such file or directory",
            "the models are `tiny`, `base`",
        ),
        (
            "bundled:base",
            "no model `base` in `bundled`",
            "did you mean `well-known:base`?",
        ),
        (
            "well-known:bsae",
            "no model `bsae` in `well-known`",
            "did you mean `well-known:base`?",
        ),
        (
            "hf:org/repo@main",
            "no provider `hf` in this build",
            "the providers are `well-known`, `bundled`",
        ),
    ];
    for (text, message, hint) in cases {
        let error = error(&factory(), text);
        assert_eq!(error.to_string(), message);
        assert_eq!(error.hint().as_deref(), Some(hint), "{text}");
    }
}

#[test]
fn providers_and_prefabs_are_unique_by_name() {
    let twice = catalog().provider(fixture::well_known());
    assert!(matches!(
        twice,
        Err(Error::Duplicate {
            what: "provider",
            ..
        })
    ));

    struct Other(Prefab);
    impl Provider for Other {
        fn name(&self) -> &str {
            "other"
        }
        fn get(&self, _: &str) -> Result<Option<Row>, Error> {
            Ok(None)
        }
        fn prefabs(&self) -> &[Prefab] {
            std::slice::from_ref(&self.0)
        }
    }
    let tiny = catalog().prefab("toy-tiny").unwrap().clone();
    let same = catalog().provider(Other(tiny.clone())).unwrap();
    assert_eq!(same.prefabs().count(), 1);
    let different = catalog().provider(Other(Prefab {
        geometry: toml::Table::new(),
        ..tiny
    }));
    assert!(matches!(
        different,
        Err(Error::Duplicate { what: "prefab", .. })
    ));
}

#[test]
fn kinds_choose_the_constructor() {
    let cases: [(Files, &str); 3] = [
        (&[("tiny.pt", TINY), ("config.json", b"{}")], "pt"),
        (
            &[("model.safetensors", LINKED), ("config.json", b"{}")],
            "directory",
        ),
        (&[("model.safetensors", LINKED)], "lone"),
    ];
    for (files, expected) in cases {
        let dir = directory(files);
        let factory = factory();
        let plan = factory
            .resolve(&Spec::Path(dir.path().to_owned()))
            .unwrap()
            .plan()
            .unwrap();
        let store = fixture::store(&Roots::default());
        let files = store.bring_local(&plan.found, &()).unwrap();
        assert_eq!(plan.construct(&files).unwrap().0, expected);
        assert!(plan.found.row.is_none() && plan.prefab.is_none());
        assert!(plan.found.provider.is_none());
    }
}

#[test]
fn what_no_constructor_reads_is_refused_in_the_plan() {
    let cases: [(Files, &str, &str); 2] = [
        (
            &[("model.bin", b"GGUF")],
            "toy cannot read weights of kind gguf",
            "it reads `openai-pt`, `pytorch`, `safetensors`",
        ),
        (
            &[("pytorch_model.bin", TINY)],
            "is incomplete: no `config`",
            "put it beside the weights",
        ),
    ];
    for (files, message, hint) in cases {
        let dir = directory(files);
        let error = error(&factory(), dir.path().join(files[0].0).to_str().unwrap());
        assert!(error.to_string().contains(message), "{error}");
        assert_eq!(error.hint().as_deref(), Some(hint));
    }
}

#[test]
fn directory_without_weights_points_to_the_model_of_its_name() {
    struct Named(String);
    impl Provider for Named {
        fn name(&self) -> &str {
            "well-known"
        }
        fn get(&self, reference: &str) -> Result<Option<Row>, Error> {
            Ok((reference == self.0).then(fixture::tiny))
        }
    }
    let dir = directory(&[]);
    let name = dir.path().to_str().unwrap().to_owned();
    let catalog = Catalog::new("toy").provider(Named(name.clone())).unwrap();
    let hint = error(&fixture::of(catalog), &name).hint();
    assert_eq!(
        hint.unwrap(),
        format!("for the model of that name write `well-known:{name}`")
    );
}

#[test]
fn row_of_an_unknown_prefab_is_refused() {
    let row = Row {
        prefab: Some("toy-huge".to_owned()),
        ..fixture::tiny()
    };
    let stub = Stub {
        name: "stub",
        bare: true,
        row: Some(row),
        fails: false,
    };
    let catalog = Catalog::new("toy").provider(stub).unwrap();
    let error = error(&fixture::of(catalog), "tiny");
    assert_eq!(
        error.to_string(),
        "row `acme/tiny` names the prefab `toy-huge`, which does not exist"
    );
}

#[test]
fn overlay_replaces_by_key() {
    let dir = directory(&[
        ("mine.txt", b""),
        ("mine.safetensors", LINKED),
        ("page.pt", b"<html>"),
    ]);
    let at = |name: &str| dir.path().join(name);
    let overlaid = |text: &str, key: &str, path: &Path| {
        let factory = factory();
        let plan = factory.resolve(&spec(text))?.overlay(key, path)?.plan()?;
        Ok::<_, Error>(
            plan.found
                .resources
                .iter()
                .map(|r| format!("{} {} {}", r.key, r.kind, r.file))
                .collect::<Vec<_>>(),
        )
    };
    // A file's kind follows from its key where only one kind can be read there.
    assert_eq!(
        overlaid("tiny", "vocab", &at("mine.txt")).unwrap(),
        ["weights openai-pt tiny.pt", "vocab tiktoken mine.txt"]
    );
    assert_eq!(
        overlaid("tiny", "weights", &at("mine.safetensors")).unwrap(),
        ["weights safetensors mine.safetensors"]
    );
    assert!(matches!(
        overlaid("tiny", "weights", &at("page.pt")),
        Err(Error::NotWeights { .. })
    ));
    assert!(matches!(
        overlaid("tiny", "vocab", &at("none")),
        Err(Error::NoSuchPath { .. })
    ));
    let unknown = overlaid("tiny", "vocabulary", &at("mine.txt")).unwrap_err();
    assert_eq!(
        unknown.hint().unwrap(),
        "the keys are `config`, `vocab`, `weights`"
    );
    // The kit knows the key, but the chosen constructor would ignore the file.
    let unread = overlaid("tiny", "config", &at("mine.txt")).unwrap_err();
    assert_eq!(unread.hint().unwrap(), "the keys are `weights`, `vocab`");
}

fn directory(files: Files) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, bytes) in files {
        std::fs::write(dir.path().join(name), bytes).unwrap();
    }
    dir
}
