//! `inspect`: what a model is, and whether it is what it claims.
#![allow(
    clippy::unwrap_used,
    reason = "this is test code, though not every function is a test"
)]

mod model_files;
mod program;

use model_files::{Weights, config, safetensors};
use program::Place;

fn small_model(weights: &Weights) -> Place {
    let place = Place::new();
    place.file("model/config.json", config().as_bytes());
    place.file("model/model.safetensors", &safetensors(weights));
    place
}

#[cfg(feature = "bundled-whisper")]
#[test]
fn the_built_in_model_is_what_it_claims() {
    let ended = Place::new()
        .run(&["inspect", "bundled:tiny.en", "--json"])
        .expect(0);
    assert_eq!(ended.stderr, "");
    let report = ended.json();
    assert_eq!(report["schema"], "pretrained.inspect/1");
    assert_eq!(report["geometry"]["n_audio_state"], 384);
    assert_eq!(report["differences"], serde_json::json!([]));
    assert_eq!(report["files"][0]["sha256"].as_str().unwrap().len(), 64);
}

#[test]
fn a_directory_is_described() {
    let weights = Weights::small();
    let place = small_model(&weights);
    let report = place
        .run(&["inspect", "./model", "--json"])
        .expect(0)
        .json();
    assert_eq!(report["parameters"], weights.elements());
    assert_eq!(report["weight_bytes"], 2 * weights.elements());
    assert_eq!(
        report["dtypes"],
        serde_json::json!({"F16": weights.count()})
    );
    assert_eq!(
        (&report["kit"], &report["geometry"]["n_audio_state"]),
        (&"whisper".into(), &64.into())
    );
    assert!(report.get("tensors").is_none(), "only when asked for");
}

#[test]
fn tensors_are_listed_when_asked_for() {
    let weights = Weights::small();
    let place = small_model(&weights);
    let text = place
        .run(&["inspect", "./model", "--tensors"])
        .expect(0)
        .stdout;
    let line = text
        .lines()
        .find(|line| line.starts_with("model.encoder.conv1.weight "))
        .unwrap();
    assert!(
        line.contains("F16") && line.contains("[64, 80, 3]"),
        "{line}"
    );
    let report = place
        .run(&["inspect", "./model", "--tensors", "--json"])
        .expect(0)
        .json();
    assert_eq!(report["tensors"].as_array().unwrap().len(), weights.count());
}

#[test]
fn a_file_is_inspected_like_its_directory() {
    let place = small_model(&Weights::small());
    let report = place
        .run(&["inspect", "./model/model.safetensors", "--json"])
        .expect(0)
        .json();
    assert_eq!(report["parameters"], Weights::small().elements());
}

#[test]
fn a_model_that_departs_from_its_geometry_is_described_and_exit_8() {
    let mut weights = Weights::small();
    weights.remove("model.decoder.layer_norm.bias");
    weights.reshape("model.encoder.conv1.bias", &[65]);
    let place = small_model(&weights);
    let ended = place.run(&["inspect", "./model", "--json"]).expect(8);
    let report = ended.json();
    let differences = report["differences"].as_array().unwrap();
    let of = |tensor: &str| {
        differences
            .iter()
            .find(|difference| difference["tensor"] == tensor)
            .unwrap()
    };
    assert_eq!(of("decoder.ln.bias")["kind"], "missing");
    assert_eq!(of("encoder.conv1.bias")["found"], serde_json::json!([65]));
    assert_eq!(ended.error_object()["kind"], "check_failed");
}

#[test]
fn what_is_no_model_is_one_line() {
    let place = Place::new();
    place.file("notes.safetensors", b"not a model");
    for (spec, code) in [
        ("./none.safetensors", 3),
        ("tinny", 3),
        ("./notes.safetensors", 12),
    ] {
        let ended = place.run(&["inspect", spec]).expect(code);
        assert_eq!(ended.stdout, "", "{spec}");
        assert!(
            ended.error_line().contains(spec.trim_start_matches("./")),
            "{spec}: {}",
            ended.stderr
        );
    }
}

#[test]
fn quantised_tensors_count_with_the_bytes_of_their_blocks() {
    let place = Place::new();
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/gguf/");
    place.file(
        "m.gguf",
        &std::fs::read(format!("{golden}v3.gguf")).unwrap(),
    );
    let expected = std::fs::read(format!("{golden}expected.json")).unwrap();
    let expected: serde_json::Value = serde_json::from_slice(&expected).unwrap();
    let tensors = expected["tensors"].as_object().unwrap();

    let report = place
        .run(&["inspect", "./m.gguf", "--json"])
        .expect(0)
        .json();
    let bytes: u64 = tensors
        .values()
        .map(|about| about["bytes"].as_u64().unwrap())
        .sum();
    assert_eq!(report["weight_bytes"], bytes);
    let extents = |about: &serde_json::Value| -> u64 {
        let extents = about["shape"].as_array().unwrap().iter();
        extents.map(|extent| extent.as_u64().unwrap()).product()
    };
    assert_eq!(
        report["parameters"],
        tensors.values().map(extents).sum::<u64>()
    );
    assert_eq!(
        (&report["dtypes"]["Q8_0"], &report["dtypes"]["F32"]),
        (&1.into(), &1.into())
    );
}

#[test]
fn a_model_in_whisper_cpp_s_form_has_all_tensors_of_its_geometry() {
    let place = Place::new();
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/ggml/narrow.bin");
    place.file("ggml-narrow.bin", &std::fs::read(golden).unwrap());
    let report = place
        .run(&["inspect", "./ggml-narrow.bin", "--json"])
        .expect(0)
        .json();
    assert_eq!(report["differences"], serde_json::json!([]));
    assert_eq!(
        (&report["kit"], &report["geometry"]["n_text_layer"]),
        (&"whisper".into(), &3.into())
    );
}
