//! Models are fetched on one machine and run on another that has no network and may not write to them.
#![cfg(all(feature = "net", target_os = "linux"))]
#![allow(
    clippy::unwrap_used,
    reason = "this is test code, though not every function is a test"
)]

mod hub;
mod program;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use hub::{Content, Hub, Repo};
use program::{Place, sample, words};
use sha2::{Digest, Sha256};

/// The revision of all-MiniLM-L6-v2 that its row pins.
const MINILM: &str = "1110a243fdf4706b3f48f1d95db1a4f5529b4d41";

fn fixtures() -> PathBuf {
    PathBuf::from(
        std::env::var_os("PRETRAINED_FIXTURES").expect("PRETRAINED_FIXTURES names the fixtures"),
    )
}

/// A repository with the files of the directory; weights are in large-file storage.
fn repo(name: &str, commit: &str, dir: &Path) -> Repo {
    let mut repo = Repo::new(name).commit(commit);
    let mut dirs = vec![dir.to_owned()];
    while let Some(next) = dirs.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                dirs.push(path);
                continue;
            }
            let file = path.strip_prefix(dir).unwrap().to_str().unwrap().to_owned();
            repo = if file.ends_with(".safetensors") {
                repo.lfs(&file, Content::on_disk(&path))
            } else {
                repo.file(&file, fs::read(&path).unwrap())
            };
        }
    }
    repo.branch("main")
}

/// A table that calls the fixture's checkpoint `tiny.en`: it is not byte for byte the published one.
fn table(url: &str, weights: &[u8]) -> String {
    let sha256: String = Sha256::digest(weights)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!(
        "schema = 1\nkit = \"whisper\"\n\
         [[row]]\nname = \"openai/tiny.en\"\naliases = [\"tiny.en\"]\nlicense = \"MIT\"\norigin = \"here\"\n\
         [[row.resource]]\nkey = \"weights\"\nfile = \"tiny.en.pt\"\nkind = \"openai-pt\"\nnamespace = \"openai\"\n\
         sha256 = \"{sha256}\"\nsize = {}\nsources = [{{ url = \"{url}\" }}]\n",
        weights.len()
    )
}

#[test]
#[ignore = "needs PRETRAINED_FIXTURES with whisper-tiny.en.pt and all-minilm-l6-v2, and the right to make namespaces"]
fn fetched_directory_works_read_only_in_a_namespace_without_interfaces() {
    let fixtures = fixtures();
    let weights = fs::read(fixtures.join("whisper-tiny.en.pt")).unwrap();
    let minilm = repo(
        "sentence-transformers/all-MiniLM-L6-v2",
        MINILM,
        &fixtures.join("all-minilm-l6-v2"),
    );
    let hub = Hub::new()
        .repo(minilm)
        .static_file("tiny.en.pt", weights.clone())
        .serve();

    let here = Place::new();
    here.file(
        "rows.toml",
        table(&hub.static_url("tiny.en.pt"), &weights).as_bytes(),
    );
    let mut fetch = here.command(&["fetch", "--cache-dir", "kit", "tiny.en", "all-minilm-l6-v2"]);
    fetch
        .env_remove("PRETRAINED_OFFLINE")
        .env("HF_ENDPOINT", hub.url())
        .env("PRETRAINED_MANIFEST", "rows.toml");
    let fetched = here.end(&mut fetch).expect(0);
    assert!(
        fetched
            .stderr
            .contains("sentence_bert_config.json of all-minilm-l6-v2 has no pin"),
        "{}",
        fetched.stderr
    );
    assert_eq!(
        here.names("."),
        ["kit", "rows.toml"],
        "nothing is put anywhere else"
    );

    let script = "mount --bind kit kit && mount -o remount,bind,ro kit && ! touch kit/x 2>/dev/null && exec \"$@\"";
    let in_namespace = |args: &[&str]| {
        let mut command = Command::new("unshare");
        command
            .args([
                "--net",
                "--mount",
                "--map-root-user",
                "sh",
                "-c",
                script,
                "sh",
            ])
            .arg(env!("CARGO_BIN_EXE_pretrained"))
            .args(args)
            .current_dir(here.path(""))
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("PRETRAINED_MANIFEST", "rows.toml");
        here.end(&mut command)
    };
    let talk = sample();
    let talk = talk.to_str().unwrap();
    let text = in_namespace(&[
        "--cache-dir",
        "kit",
        "--offline",
        "asr",
        "whisper",
        "-m",
        "tiny.en",
        talk,
    ]);
    let heard = words(&text.expect(0).stdout).join(" ");
    assert!(
        heard.contains("ask not what your country can do for you"),
        "{heard}"
    );
    let minilm = [
        "--cache-dir",
        "kit",
        "--offline",
        "fetch",
        "all-minilm-l6-v2",
        "--json",
    ];
    let report = in_namespace(&minilm).expect(0).json();
    assert_eq!(report["downloaded_bytes"], 0);
    let from = report["specs"][0]["files"].as_array().unwrap();
    assert!(from.iter().all(|file| file["from"] == "cached"), "{report}");
    in_namespace(&["--cache-dir", "kit", "cache", "verify"]).expect(0);
}
