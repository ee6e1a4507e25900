//! `pretrained doctor`: what there is to run models on.
#![allow(
    clippy::unwrap_used,
    reason = "this is test code, though not every function is a test"
)]

mod program;

use program::Place;
use serde_json::{Value, json};

/// The document of a run with the variables `vars`.
fn document(place: &Place, args: &[&str], vars: &[(&str, &str)]) -> Value {
    let args: Vec<_> = ["doctor", "--json"].iter().chain(args).copied().collect();
    let mut command = place.command(&args);
    command.envs(vars.iter().copied());
    let ended = place.end(&mut command).expect(0);
    assert_eq!(ended.stderr, "");
    assert!(!ended.stdout.contains("hf_secret"), "{}", ended.stdout);
    ended.json()
}

#[test]
fn document_has_what_a_run_would_use() {
    let place = Place::new();
    let found = document(&place, &[], &[]);
    assert_eq!(found["schema"], "pretrained.doctor/1");
    assert_eq!(found["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(found["system"]["os"], std::env::consts::OS);
    let available = found["kernels"]["available"].as_array().unwrap();
    assert_eq!(found["kernels"]["chosen"], available[0]);
    assert_eq!(available.last().unwrap(), "portable");
    assert_eq!(found["kernels"]["chosen_by"], Value::Null);
    assert!(found["threads"]["count"].as_u64().unwrap() > 0);
    assert!(found["processor"]["features"].is_array());
    let features = found["features"].as_array().unwrap();
    assert_eq!(features.contains(&json!("net")), cfg!(feature = "net"));
    let offline = if cfg!(feature = "net") {
        "PRETRAINED_OFFLINE is set"
    } else {
        "this build has no network code"
    };
    assert_eq!(found["offline"], offline);
    assert_eq!(found["has_token"], false);
    assert_eq!(found["keeps_derived"], true);
    assert_eq!(found["roots"][0]["decided_by"], "default");
    assert_eq!(found["roots"][0]["writable"], true);
    // Looking left nothing.
    assert_eq!(place.names("."), Vec::<String>::new());
}

#[test]
fn what_decides_is_said() {
    let place = Place::new();
    let vars = [
        ("PRETRAINED_ISA", "portable"),
        ("PRETRAINED_THREADS", "1"),
        ("PRETRAINED_CACHE_DIR", "cache"),
        ("HF_TOKEN", "hf_secret"),
    ];
    let found = document(&place, &["--no-derived"], &vars);
    assert_eq!(found["kernels"]["chosen"], "portable");
    assert_eq!(found["kernels"]["chosen_by"], "PRETRAINED_ISA");
    assert_eq!(found["threads"]["count"], 1);
    assert_eq!(found["threads"]["decided_by"], "variable");
    assert_eq!(found["roots"][0]["path"], "cache/pretrained");
    assert_eq!(found["roots"][0]["decided_by"], "PRETRAINED_CACHE_DIR");
    assert_eq!(found["has_token"], true);
    assert_eq!(found["keeps_derived"], false);
    let flag = document(&place, &["-t", "1"], &[("PRETRAINED_THREADS", "2")]);
    assert_eq!(flag["threads"]["decided_by"], "flag");
}

#[test]
fn a_cache_that_cannot_be_made_is_seen() {
    let place = Place::new();
    place.file("file", b"");
    let found = document(&place, &[], &[("PRETRAINED_CACHE_DIR", "file/cache")]);
    assert_eq!(found["roots"][0]["exists"], false);
    assert_eq!(found["roots"][0]["writable"], false);
    let homeless = document(
        &place,
        &[],
        &[("HOME", ""), ("PRETRAINED_CACHE_DIR", ""), ("HF_HOME", "")],
    );
    assert_eq!(homeless["roots"], json!([]));
    assert_eq!(homeless["keeps_derived"], false);
}

#[test]
fn text_says_the_same_and_never_the_token() {
    let place = Place::new();
    let mut command = place.command(&["doctor"]);
    command.env("HF_TOKEN", "hf_secret");
    let ended = place.end(&mut command).expect(0);
    for line in [
        "version ",
        "system ",
        "kernels ",
        "threads ",
        "pinned ",
        "token      yes",
    ] {
        let has = ended.stdout.lines().any(|it| it.starts_with(line));
        assert!(has, "{line}: {}", ended.stdout);
    }
    assert!(!ended.stdout.contains("hf_secret"));
}

#[test]
fn what_would_stop_a_run_is_an_error_here_too() {
    let place = Place::new();
    for (variable, exit) in [("PRETRAINED_ISA", None), ("PRETRAINED_THREADS", Some(2))] {
        let mut command = place.command(&["doctor"]);
        command.env(variable, "nonsense");
        let ended = place.end(&mut command);
        assert!(ended.error_line().contains("nonsense"), "{}", ended.stderr);
        assert_ne!(ended.code, 0);
        assert_eq!(exit.unwrap_or(ended.code), ended.code);
    }
}
