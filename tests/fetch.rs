//! `pretrained fetch` over real HTTP, from a hub on this machine.
#![cfg(feature = "net")]

mod hub;
mod program;

use hub::{Hub, Repo, Server};
use program::{Ended, Place};

/// A repository as the embedders' are, with weights in large-file storage.
fn tiny() -> Repo {
    Repo::new("org/tiny")
        .file("config.json", "{\"model_type\": \"bert\"}")
        .file("1_Pooling/config.json", "{}")
        .file("README.md", "read me")
        .file("onnx/model.onnx", "onnx")
        .lfs("model.safetensors", b"\x08\0\0\0\0\0\0\0{}      ")
}

fn fetch(place: &Place, hub: &Server, args: &[&str]) -> Ended {
    let args: Vec<_> = ["fetch"].iter().chain(args).copied().collect();
    let mut command = place.command(&args);
    command
        .env_remove("PRETRAINED_OFFLINE")
        .env("HF_ENDPOINT", hub.url());
    place.end(&mut command)
}

#[test]
fn repository_is_laid_out_as_the_hubs_own_tools_do() {
    let hub = Hub::new().repo(tiny().branch("main")).serve();
    let place = Place::new();
    let ended = fetch(&place, &hub, &["hf:org/tiny"]).expect(0);
    let snapshot = ended.stdout.trim_end();
    let root = ".cache/huggingface/hub/models--org--tiny";
    let commit = place.read(&format!("{root}/refs/main"));
    assert!(
        snapshot.ends_with(&format!("{root}/snapshots/{commit}")),
        "{snapshot}"
    );
    assert_eq!(
        place.names(&format!("{root}/snapshots/{commit}")),
        ["1_Pooling", "config.json", "model.safetensors"]
    );
    assert_eq!(place.names(&format!("{root}/blobs")).len(), 3);
    // What is here is not asked for again, whatever became of the hub.
    hub.stop();
    let again = place.run(&["fetch", "hf:org/tiny"]).expect(0);
    assert_eq!(again.stdout, ended.stdout);
}
