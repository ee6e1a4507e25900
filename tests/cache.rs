//! `pretrained cache`: what is on this machine, and how it gets there without a network, and off again.
#![cfg(feature = "net")]
#![allow(
    clippy::unwrap_used,
    reason = "this is test code, though not every function is a test"
)]

mod hub;
mod program;

use std::path::Path;

use hub::{Hub, Repo, Server};
use program::{Ended, Place};
use serde_json::json;
use sha2::{Digest, Sha256};

const WEIGHTS: &[u8] = b"\x08\0\0\0\0\0\0\0{}      ";
const COMMITS: [&str; 2] = [
    "1111111111111111111111111111111111111111",
    "2222222222222222222222222222222222222222",
];

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// Two commits that share their weights; `main` means the second.
fn hub() -> Server {
    let repo = Repo::new("org/tiny")
        .commit(COMMITS[0])
        .file("config.json", "{}")
        .lfs("model.safetensors", WEIGHTS)
        .branch("old")
        .commit(COMMITS[1])
        .file("config.json", "{\"a\": 1}")
        .branch("main");
    Hub::new()
        .repo(repo)
        .static_file("own.safetensors", b"own")
        .serve()
}

/// A table of two models that share a file.
fn manifest(place: &Place, hub: &Server) -> String {
    let row = |name: &str, weights: &[u8]| {
        format!(
            "[[row]]\nname = \"{name}\"\nlicense = \"MIT\"\norigin = \"here\"\n\
             [[row.resource]]\nkey = \"weights\"\nfile = \"w.safetensors\"\nkind = \"safetensors\"\n\
             namespace = \"acme\"\nsha256 = \"{}\"\nsources = [{{ url = \"{}\" }}]\n",
            sha256(weights),
            hub.static_url("own.safetensors"),
        )
    };
    let text = format!(
        "schema = 1\nkit = \"whisper\"\n{}{}",
        row("own", b"own"),
        row("twin", b"own")
    );
    place.file("rows.toml", text.as_bytes());
    place.path("rows.toml").to_str().unwrap().to_owned()
}

fn online(place: &Place, hub: &Server, args: &[&str]) -> Ended {
    let mut command = place.command(args);
    command
        .env_remove("PRETRAINED_OFFLINE")
        .env("HF_ENDPOINT", hub.url());
    place.end(&mut command)
}

/// A place with both revisions of the repository and one pinned file.
fn filled() -> (Place, Server, String) {
    let (place, hub) = (Place::new(), hub());
    let rows = manifest(&place, &hub);
    for spec in ["hf:org/tiny", "hf:org/tiny@old", "own"] {
        online(&place, &hub, &["fetch", spec, "--manifest", &rows]).expect(0);
    }
    (place, hub, rows)
}

fn entries(place: &Place, args: &[&str]) -> Vec<serde_json::Value> {
    let args: Vec<_> = ["cache", "ls", "--json"]
        .iter()
        .chain(args)
        .copied()
        .collect();
    let document = place.run(&args).expect(0).json();
    assert_eq!(document["schema"], "pretrained.cache/1");
    document["entries"].as_array().unwrap().clone()
}

#[test]
fn listing_shows_both_layouts_and_counts_what_is_shared_once() {
    let (place, _hub, rows) = filled();
    let all = entries(&place, &["--manifest", &rows]);
    let summary: Vec<_> = all
        .iter()
        .map(|it| (&it["name"], &it["layout"], &it["state"]))
        .collect();
    let text = |text: &str| json!(text);
    assert_eq!(
        summary,
        [
            (&text("own"), &text("pinned"), &text("complete")),
            (&text("hf:org/tiny"), &text("hf"), &text("complete")),
        ]
    );
    assert_eq!(all[0]["rows"], json!(["own", "twin"]));
    assert_eq!(all[1]["bytes"], json!(WEIGHTS.len() + 2 + 8));
    let mut commits = all[1]["commits"].as_array().unwrap().clone();
    commits.sort_by_key(ToString::to_string);
    assert_eq!(commits, COMMITS.map(|commit| json!(commit)));

    assert_eq!(entries(&place, &["--revisions"]).len(), 3);
    assert_eq!(entries(&place, &["--filter", "size>1MB"]).len(), 0);
    assert_eq!(entries(&place, &["--filter", "layout=hf"]).len(), 1);
    assert_eq!(entries(&place, &["hf:org/tiny"]).len(), 1);
    let sorted = entries(&place, &["--sort", "size", "--limit", "1"]);
    assert_eq!(sorted[0]["name"], "hf:org/tiny");
}

#[test]
fn damage_is_found_without_a_network() {
    let (place, _hub, rows) = filled();
    let all_right = place.run(&["cache", "verify", "--json"]).expect(0).json();
    assert_eq!(all_right["bad"], json!([]));
    assert_eq!(all_right["checked"], 5);

    let root = ".cache/huggingface/hub/models--org--tiny";
    place.file(
        &format!("{root}/blobs/{}", sha256(WEIGHTS)),
        b"\x08\0\0\0\0\0\0\0{ }     ",
    );
    let pinned = format!(
        ".cache/pretrained/whisper/acme/{}/w.safetensors",
        sha256(b"own")
    );
    place.file(&pinned, b"owm");
    let damaged = place.run(&["cache", "verify", "--json"]).expect(8).json();
    assert_eq!(damaged["bad"].as_array().unwrap().len(), 3, "{damaged}");
    let named = place
        .run(&["cache", "verify", "own", "--manifest", &rows])
        .expect(8);
    assert!(
        named
            .stdout
            .contains("w.safetensors: its bytes do not hash to"),
        "{}",
        named.stdout
    );
    place.run(&["cache", "verify", "nothing"]).expect(2);
}

#[test]
fn one_revision_goes_and_the_other_keeps_its_files() {
    let (place, _hub, _) = filled();
    let dry = place
        .run(&["cache", "rm", "hf:org/tiny@old", "--dry-run"])
        .expect(0);
    assert!(dry.stdout.ends_with("would free 2 B\n"), "{}", dry.stdout);
    place.run(&["cache", "rm", "hf:org/tiny@old"]).expect(2);
    place
        .run(&["cache", "rm", "hf:org/tiny@old", "-y"])
        .expect(0);
    assert_eq!(
        entries(&place, &["hf:org/tiny"])[0]["commits"],
        json!([COMMITS[1]])
    );
    place.run(&["cache", "verify"]).expect(0);
    place.run(&["fetch", "hf:org/tiny"]).expect(0);
    place.run(&["fetch", "hf:org/tiny@old"]).expect(4);

    place.run(&["cache", "rm", "hf:org/tiny", "-y"]).expect(0);
    assert_eq!(
        place.names(".cache/huggingface/hub"),
        [".locks", "CACHEDIR.TAG"]
    );
    let nothing = place.run(&["cache", "rm", "hf:org/tiny"]).expect(0);
    assert_eq!(nothing.stdout, "Nothing to delete.\n");
}

#[test]
fn file_that_another_model_uses_stays() {
    let (place, _hub, rows) = filled();
    let kept = place
        .run(&["cache", "rm", "own", "-y", "--manifest", &rows])
        .expect(0);
    assert!(kept.stderr.contains("twin uses it too"), "{}", kept.stderr);
    place
        .run(&["cache", "path", "twin", "--manifest", &rows])
        .expect(0);
    place
        .run(&["cache", "rm", "own", "twin", "-y", "--manifest", &rows])
        .expect(0);
    place
        .run(&["cache", "path", "twin", "--manifest", &rows])
        .expect(4);
}

#[test]
fn prune_takes_detached_revisions_and_leftovers() {
    let (place, hub, _) = filled();
    hub.move_ref("org/tiny", "old", COMMITS[1]);
    online(&place, &hub, &["fetch", "hf:org/tiny@old", "--refresh"]).expect(0);
    let root = ".cache/huggingface/hub/models--org--tiny";
    place.file(&format!("{root}/blobs/0.AbCd1234.incomplete"), b"12345");
    let dry = place.run(&["cache", "prune", "--dry-run"]).expect(0);
    assert!(
        dry.stdout.contains(&format!("hf:org/tiny@{}", COMMITS[0])),
        "{}",
        dry.stdout
    );
    assert!(dry.stdout.ends_with("would free 7 B\n"), "{}", dry.stdout);
    place.run(&["cache", "prune", "-y"]).expect(0);
    assert_eq!(place.names(&format!("{root}/snapshots")), [COMMITS[1]]);
    assert_eq!(place.names(&format!("{root}/blobs")).len(), 2);
    place.run(&["cache", "verify"]).expect(0);
}

#[test]
fn what_was_derived_from_a_file_goes_when_it_is_fetched_anew() {
    let (place, hub, rows) = filled();
    let derived = format!(".cache/pretrained/derived/{}/test-1", sha256(b"own"));
    place.file(&format!("{derived}/blobs.1"), b"of damaged weights");
    online(&place, &hub, &["fetch", "own", "--manifest", &rows]).expect(0);
    assert_eq!(place.names(&derived), ["blobs.1"]);
    let anew = ["fetch", "own", "--force", "--manifest", &rows];
    online(&place, &hub, &anew).expect(0);
    assert!(!place.path(&derived).exists());
}

#[test]
fn archive_brings_models_to_another_machine() {
    let (place, _hub, rows) = filled();
    let specs = ["own", "hf:org/tiny", "-o", "kit.tar", "--manifest", &rows];
    let args: Vec<_> = ["cache", "export"].iter().chain(&specs).copied().collect();
    place.run(&args).expect(0);

    let other = Place::new();
    let kit = place.path("kit.tar");
    let kit = kit.to_str().unwrap();
    let summary = other
        .run(&["cache", "import", kit, "--json"])
        .expect(0)
        .json();
    assert_eq!(summary["damaged"], json!([]));
    for args in [["cache", "path", "hf:org/tiny"], ["cache", "path", "own"]] {
        let args: Vec<_> = args.iter().chain(&["--manifest", &rows]).copied().collect();
        let path = other.run(&args).expect(0).stdout;
        assert!(path.contains(other.path("").to_str().unwrap()), "{path}");
    }
    other.run(&["cache", "verify"]).expect(0);

    // Unpacked, it is a cache directory itself.
    let status = std::process::Command::new("tar")
        .args(["-xf", kit, "-C"])
        .arg(other.path(""))
        .status()
        .unwrap();
    assert!(status.success());
    other
        .run(&[
            "fetch",
            "hf:org/tiny",
            "own",
            "--cache-dir",
            ".",
            "--manifest",
            &rows,
        ])
        .expect(0);
}

#[test]
fn download_of_any_name_is_taken_by_its_digest() {
    let hub = hub();
    let place = Place::new();
    let rows = manifest(&place, &hub);
    place.file("downloads/whatever.bin", b"own");
    place.file("downloads/readme", b"read me");
    let imported = place
        .run(&["cache", "import", "downloads", "--manifest", &rows])
        .expect(0);
    assert!(
        imported
            .stdout
            .ends_with("1 file taken, 3 B new; 1 that no model needs\n"),
        "{}",
        imported.stdout
    );
    place
        .run(&["fetch", "own", "twin", "--manifest", &rows])
        .expect(0);
    place
        .run(&["cache", "import", "downloads/readme", "--manifest", &rows])
        .expect(3);
}

#[test]
fn roots_say_what_decided_them() {
    let place = Place::new();
    let mut command = place.command(&["cache", "info", "--json"]);
    command
        .env("HF_HOME", "~/f")
        .env("PRETRAINED_CACHE_DIR", "/p")
        .env("HF_TOKEN", "hf_secret");
    let ended = place.end(&mut command).expect(0);
    assert!(!ended.stdout.contains("hf_secret"));
    let info = ended.json();
    let roots: Vec<_> = info["roots"]
        .as_array()
        .unwrap()
        .iter()
        .map(|root| {
            (
                root["path"].as_str().unwrap(),
                root["decided_by"].as_str().unwrap(),
            )
        })
        .collect();
    let hub = place.path("f/hub");
    let whisper = place.path(".cache/whisper");
    assert_eq!(
        roots,
        [
            ("/p/pretrained", "PRETRAINED_CACHE_DIR"),
            (hub.to_str().unwrap(), "HF_HOME"),
            (whisper.to_str().unwrap(), "default"),
        ]
    );
    assert_eq!(
        (&info["has_token"], &info["offline"]),
        (&json!(true), &json!("PRETRAINED_OFFLINE is set"))
    );

    let confined = place
        .run(&["cache", "path", "--cache-dir", "kit"])
        .expect(0)
        .stdout;
    let paths: Vec<_> = confined.lines().map(Path::new).collect();
    assert_eq!(
        paths,
        [
            Path::new("kit/pretrained"),
            Path::new("kit/huggingface/hub")
        ]
    );
}
