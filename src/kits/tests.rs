//! What holds of every compiled-in table of published models.

use std::collections::{HashMap, HashSet};

use super::*;
use crate::data::{Kind, Provider, Resource, Row, Sha256, Source, Spec};

/// Each kit with its catalog.
fn tables() -> Vec<(&'static Kit, Catalog)> {
    KITS.iter()
        .map(|kit| (kit, kit.catalog().unwrap()))
        .collect()
}

/// The rows of the compiled-in table, without those of a model that is linked in.
fn published(catalog: &Catalog) -> impl Iterator<Item = &Row> {
    catalog
        .providers()
        .filter(|provider| provider.name() == "well-known")
        .flat_map(Provider::rows)
}

/// `f` of every published row; it says what is wrong with one, if anything is.
fn no_row(f: impl Fn(&Catalog, &Row) -> Option<String>) {
    let mut failures = Vec::new();
    for (_, catalog) in tables() {
        failures.extend(published(&catalog).filter_map(|row| {
            let wrong = f(&catalog, row)?;
            Some(format!("{}: {wrong}", row.name))
        }));
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

/// `f` of every file of every published row.
fn no_file(f: impl Fn(&Row, &Resource) -> Option<String>) {
    no_row(|_, row| {
        let mut wrong = row.resources.iter().filter_map(|file| {
            let wrong = f(row, file)?;
            Some(format!("{}: {wrong}", file.key))
        });
        wrong.next()
    });
}

#[test]
fn each_kit_has_a_catalog_of_its_name_with_rows_and_prefabs() {
    for (kit, catalog) in tables() {
        assert_eq!(catalog.kit(), kit.name);
        assert!(published(&catalog).count() > 0, "{}", kit.name);
        assert!(catalog.prefabs().count() > 0, "{}", kit.name);
        // A table that says it is another kit's would be found, but kept in the wrong directory.
        assert!(
            catalog.prefabs().all(|prefab| prefab.kit == kit.name),
            "{}",
            kit.name
        );
    }
}

#[test]
fn a_name_means_one_model_whatever_the_kit() {
    let mut owners: HashMap<String, String> = HashMap::new();
    let mut twice = Vec::new();
    for (_, catalog) in tables() {
        for row in published(&catalog) {
            for name in row.names() {
                if let Some(other) = owners.insert(name.to_owned(), row.name.clone()) {
                    twice.push(format!("{name}: {other} and {}", row.name));
                }
            }
        }
    }
    assert!(twice.is_empty(), "{twice:#?}");
}

#[test]
fn names_to_show_are_easily_typed() {
    // `timm/resnet34` has no other: what it could be called is taken by better weights of the same depth.
    no_row(|_, row| {
        let short = row.short_name();
        let typed = short
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "-._@".contains(c));
        (!typed && !row.aliases.is_empty()).then(|| format!("`{short}`"))
    });
}

#[test]
fn every_row_has_its_prefab_and_every_prefab_a_row() {
    no_row(|catalog, row| {
        let prefab = row.prefab.as_ref()?;
        catalog
            .prefab(prefab)
            .is_none()
            .then(|| format!("no prefab `{prefab}`"))
    });
    for (_, catalog) in tables() {
        let used: HashSet<_> = published(&catalog)
            .filter_map(|row| row.prefab.as_deref())
            .collect();
        for prefab in catalog.prefabs() {
            assert!(
                used.contains(&*prefab.name),
                "{} is used by no row",
                prefab.name
            );
        }
    }
}

#[test]
fn every_file_has_a_pin_or_a_place_that_gives_one() {
    no_file(|row, file| {
        let remote = |source: &Source| matches!(source, Source::Url(_) | Source::Hub(_));
        let unpinned = file.sha256.is_none() && !file.sources.iter().any(remote);
        let homeless = row.hub.is_some() && file.hub().is_none();
        (unpinned || homeless || file.size == Some(0)).then(|| format!("{file:?}"))
    });
}

#[test]
fn hub_repositories_are_pinned_to_a_commit_or_not_at_all() {
    no_row(|_, row| {
        let hub = row.hub.as_ref()?;
        let revision = hub.revision.as_str();
        let sound = hub.revision.commit().is_some() || revision == "main";
        let page = format!("https://huggingface.co/{}", hub.repo);
        (!sound || row.origin != page).then(|| format!("{hub} from {}", row.origin))
    });
}

#[test]
fn gated_rows_say_where_nobody_asks() {
    no_row(|_, row| {
        let sound = match &row.ungated {
            Some(spec) => row.gated && spec.starts_with("hf:"),
            None => !row.gated,
        };
        (!sound).then(|| format!("{} {:?}", row.gated, row.ungated))
    });
}

#[test]
fn licences_are_spdx_expressions() {
    const KNOWN: [&str; 3] = ["MIT", "Apache-2.0", "BSD-3-Clause"];
    no_row(|_, row| {
        let known = KNOWN.contains(&&*row.license) || row.license.starts_with("LicenseRef-");
        (!known).then(|| row.license.clone())
    });
}

#[test]
fn one_digest_has_one_size() {
    let mut sizes: HashMap<Sha256, u64> = HashMap::new();
    for (_, catalog) in tables() {
        for row in published(&catalog) {
            for file in &row.resources {
                let Some((digest, size)) = file.sha256.zip(file.size) else {
                    continue;
                };
                let known = *sizes.entry(digest).or_insert(size);
                assert_eq!(known, size, "{} {}", row.name, file.key);
            }
        }
    }
    assert!(sizes.len() > 150);
}

#[test]
fn urls_end_in_the_file_and_agree_with_its_digest() {
    no_file(|_, file| {
        let url = file.url()?;
        // A `.pth` file is named for the first eight digits of its digest, OpenAI's directory for all of them.
        let tag = file
            .file
            .strip_suffix(".pth")
            .and_then(|stem| stem.rsplit('-').next());
        let agrees = file.sha256.is_none_or(|digest| {
            let digest = digest.to_string();
            tag.is_none_or(|tag| digest.starts_with(tag))
                && (file.kind != Kind::OpenaiPt || url.contains(&format!("/{digest}/")))
        });
        (!agrees || !url.starts_with("https://") || !url.ends_with(&format!("/{}", file.file)))
            .then(|| url.to_owned())
    });
}

#[test]
fn an_index_has_its_shards_in_order() {
    no_row(|_, row| {
        let weights = row.resources.get("weights")?;
        let shards = row
            .resources
            .iter()
            .filter(|file| file.key.starts_with("shard-"));
        let keys: Vec<_> = shards.map(|file| file.key.clone()).collect();
        let expected: Vec<_> = (1..=keys.len()).map(|n| format!("shard-{n}")).collect();
        let is_index = weights.kind == Kind::SafetensorsIndex;
        (keys != expected || keys.is_empty() == is_index).then(|| format!("{keys:?}"))
    });
}

#[test]
fn weights_are_as_large_as_their_geometry_says() {
    let mut checked = 0;
    for (kit, catalog) in tables() {
        for row in published(&catalog) {
            let Some(prefab) = row.prefab.as_deref().and_then(|name| catalog.prefab(name)) else {
                continue;
            };
            let Some(parameters) = kit.outline(prefab).unwrap().parameters else {
                continue;
            };
            // Shards, dense layers after the pooling and the audio tower of a GGUF pair are files of their own.
            let holds_tensors = |file: &&Resource| {
                use Kind::{Gguf, OpenaiPt, Pytorch, Safetensors};
                matches!(file.kind, Gguf | OpenaiPt | Pytorch | Safetensors)
            };
            let files = || row.resources.iter().filter(holds_tensors);
            let Some(bytes) = files().map(|file| file.size).sum::<Option<u64>>() else {
                continue;
            };
            let is_gguf = files().all(|file| file.kind == Kind::Gguf);
            // From 4 to 8 bits a number and its share of a scale, or from 16 to 32 and at most 2 % that is not counted; some
            // files repeat the tied token table as the output head.
            let expected = if is_gguf { 0.5..1.4 } else { 2.0..4.08 };
            let found = bytes as f64 / parameters as f64;
            assert!(
                expected.contains(&found),
                "{}: {found} bytes a parameter",
                row.name
            );
            checked += 1;
        }
    }
    assert!(checked > 40, "{checked}");
}

#[test]
fn geometries_have_the_extents_that_are_published() {
    /// Parameters as the hub counts them, or the paper; layers of the encoder and of the decoder; keys and values
    /// worked out by hand.
    struct Case(
        &'static str,
        &'static str,
        u64,
        [Option<usize>; 2],
        Option<usize>,
        Option<u64>,
    );
    let cases = [
        Case(
            "whisper",
            "whisper-base",
            72_593_920,
            [Some(6), Some(6)],
            Some(512),
            Some(12_288),
        ),
        Case(
            "moonshine",
            "moonshine-tiny",
            27_092_736,
            [Some(6), Some(6)],
            Some(288),
            Some(6_912),
        ),
        Case(
            "moonshine",
            "moonshine-streaming-medium",
            265_898_113,
            [Some(14), Some(14)],
            Some(640),
            Some(35_840),
        ),
        Case(
            "qwen3-asr",
            "qwen3-asr-0.6b",
            782_426_112,
            [Some(18), Some(28)],
            Some(1024),
            Some(114_688),
        ),
        Case(
            "embed",
            "bert-minilm-l6",
            22_713_216,
            [Some(6), None],
            Some(384),
            None,
        ),
        Case(
            "embed",
            "modernbert-base",
            149_014_272,
            [Some(22), None],
            Some(768),
            None,
        ),
        Case(
            "embed",
            "gemma3-embedding-300m",
            307_581_696,
            [Some(24), None],
            Some(768),
            None,
        ),
        Case(
            "embed",
            "qwen3-embedding-0.6b",
            595_776_512,
            [None, Some(28)],
            Some(1024),
            Some(114_688),
        ),
        Case(
            "lm",
            "qwen3-0.6b",
            596_049_920,
            [None, Some(28)],
            Some(1024),
            Some(114_688),
        ),
        Case(
            "lm",
            "gemma3-1b",
            999_885_952,
            [None, Some(26)],
            Some(1152),
            Some(26_624),
        ),
        Case(
            "lm",
            "smollm2-360m",
            361_821_120,
            [None, Some(32)],
            Some(960),
            Some(40_960),
        ),
        Case(
            "silero",
            "silero-vad-16k",
            309_633,
            [None, None],
            None,
            None,
        ),
        Case(
            "resnet",
            "resnet50",
            25_557_032,
            [Some(50), None],
            None,
            None,
        ),
    ];
    for Case(kit, prefab, parameters, [encoder_layers, decoder_layers], width, kv) in cases {
        let kit = KITS.iter().find(|known| known.name == kit).unwrap();
        let catalog = kit.catalog().unwrap();
        let outline = kit.outline(catalog.prefab(prefab).unwrap()).unwrap();
        let expected = Outline {
            parameters: Some(parameters),
            encoder_layers,
            decoder_layers,
            width,
            kv_bytes_per_token: kv,
            ..outline
        };
        assert_eq!(outline, expected, "{prefab}");
    }
}

#[test]
fn a_broken_geometry_is_an_error_not_a_panic() {
    for kit in &KITS {
        let prefab = Prefab {
            name: "p".to_owned(),
            kit: kit.name.to_owned(),
            geometry: toml::from_str("parameters = -1\nhidden_size = 0\n").unwrap(),
        };
        assert!(
            matches!(kit.outline(&prefab), Err(Error::Geometry { .. })),
            "{}",
            kit.name
        );
    }
}

#[test]
fn a_vocabulary_can_be_had_but_is_not_offered_as_a_model() {
    let catalog = whisper::catalog().unwrap();
    let find = |name: &str| catalog.find(&Spec::Bare(name.to_owned()));
    assert_eq!(find("gpt2.tiktoken").unwrap().resources.iter().count(), 1);
    let Err(Error::NotFound { known, .. }) = find("no such model") else {
        panic!("there is no such model");
    };
    assert!(known.contains(&"base".to_owned()));
    assert!(!known.contains(&"gpt2.tiktoken".to_owned()));
}
