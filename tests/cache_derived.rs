//! What was derived from weights: listed, and removed when the weights are gone.
#![allow(
    clippy::unwrap_used,
    reason = "this is test code, though not every function is a test"
)]

mod program;

use pretrained::data::{
    Content, DerivedStore, Kind, LocalFile, Observer, Provenance, Roots, Sha256,
};
use program::Place;
use serde_json::{Value, json};

/// Nobody has anything to say here.
struct Silent;

impl Observer for Silent {
    fn note(&self, text: &str) {
        panic!("{text}");
    }
}

fn weights(provenance: Provenance, path: &std::path::Path, bytes: &[u8]) -> LocalFile {
    LocalFile {
        key: "weights".to_owned(),
        file: "w.safetensors".to_owned(),
        kind: Kind::Safetensors,
        provenance,
        digest: Some(Sha256::of(bytes)),
        git_blob: None,
        content: Content::Path(path.to_owned()),
    }
}

/// Keeps 10 bytes derived from `file`.
fn derive(place: &Place, file: &LocalFile) {
    let roots = Roots::default().with_cache(place.path(".cache"), "test");
    let identity = file.identity().unwrap();
    let derived = DerivedStore::new(&roots).open(Some(&identity), "test-1");
    derived.add("a", &[0; 10]);
    derived.finish(&Silent);
}

/// A place with two pinned files of one table, each with something derived from it, and a file of the user's own.
fn filled() -> Place {
    let place = Place::new();
    let mut table = "schema = 1\nkit = \"whisper\"\n".to_owned();
    for name in ["own", "other"] {
        let digest = Sha256::of(name.as_bytes());
        let pinned = format!(".cache/pretrained/whisper/acme/{digest}/w.safetensors");
        let path = place.path(place.file(&pinned, name.as_bytes()));
        derive(&place, &weights(Provenance::Cached, &path, name.as_bytes()));
        table += &format!(
            "[[row]]\nname = \"{name}\"\nlicense = \"MIT\"\norigin = \"here\"\n\
             [[row.resource]]\nkey = \"weights\"\nfile = \"w.safetensors\"\nkind = \"safetensors\"\n\
             namespace = \"acme\"\nsha256 = \"{digest}\"\nsources = [{{ url = \"http://127.0.0.1:9/w\" }}]\n",
        );
    }
    place.file("rows.toml", table.as_bytes());
    let given = place.path(place.file("given.safetensors", b"given"));
    derive(&place, &weights(Provenance::Given, &given, b"given"));
    place
}

fn listed(place: &Place, args: &[&str]) -> Vec<Value> {
    let first = ["cache", "ls", "--json", "--filter", "layout=derived"];
    let last = ["--manifest", "rows.toml"];
    let args: Vec<_> = first.iter().chain(args).chain(&last).copied().collect();
    let document = place.run(&args).expect(0).json();
    document["entries"].as_array().unwrap().clone()
}

/// Name and state of each, in order of names.
fn states(place: &Place) -> Vec<(String, String)> {
    let entries = listed(place, &["--derived", "--sort", "name"]);
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let entries = entries.iter();
    entries
        .map(|it| (text(&it["name"]), text(&it["state"])))
        .collect()
}

#[test]
fn listing_shows_it_when_asked() {
    let place = filled();
    assert_eq!(listed(&place, &[]), Vec::<Value>::new());
    assert_eq!(
        listed(&place, &["--derived", "--no-derived"]),
        Vec::<Value>::new()
    );
    let entries = listed(&place, &["--derived", "own"]);
    let [entry] = entries.as_slice() else {
        panic!("{entries:?}")
    };
    let digest = Sha256::of(b"own").to_string();
    assert_eq!(entry["weights"], json!(digest));
    assert_eq!(entry["recipe"], "test-1");
    assert_eq!(entry["state"], "complete");
    assert_eq!(listed(&place, &["--derived"]).len(), 3);
    let text = place
        .run(&["cache", "ls", "--derived", "--manifest", "rows.toml"])
        .expect(0)
        .stdout;
    assert!(
        text.contains(&format!("{}/test-1", &digest[..18])),
        "{text}"
    );
    let info = place.run(&["cache", "info", "--json"]).expect(0).json();
    assert_eq!(info["derived_files"], 3);
    let off = ["cache", "info", "--json", "--no-derived"];
    assert_eq!(place.run(&off).expect(0).json()["derived_files"], 0);
    let mut command = place.command(&["cache", "info", "--json"]);
    command.env("PRETRAINED_NO_DERIVED", "1");
    assert_eq!(place.end(&mut command).expect(0).json()["derived_files"], 0);
    place.run(&["cache", "verify"]).expect(0);
}

#[test]
fn it_goes_with_its_model_and_others_stay() {
    let place = filled();
    let rm = ["cache", "rm", "own", "-y", "--manifest", "rows.toml"];
    let removed = place.run(&rm).expect(0).stdout;
    assert_eq!(removed.matches("blobs.1").count(), 1, "{removed}");
    let left: Vec<_> = states(&place).into_iter().map(|(name, _)| name).collect();
    assert_eq!(left.len(), 2, "{left:?}");
    assert!(left.contains(&"other".to_owned()));
    let digest = Sha256::of(b"own");
    assert!(
        !place
            .path(&format!(".cache/pretrained/derived/{digest}"))
            .exists()
    );
}

#[test]
fn prune_takes_what_lost_its_weights_or_was_never_finished() {
    let place = filled();
    let prune = ["cache", "prune", "-y", "--manifest", "rows.toml"];
    let nothing = place.run(&prune).expect(0).stdout;
    assert_eq!(nothing, "Nothing to delete.\n");

    let digest = Sha256::of(b"own");
    let pinned = format!(".cache/pretrained/whisper/acme/{digest}/w.safetensors");
    std::fs::remove_file(place.path(&pinned)).unwrap();
    place.file("given.safetensors", b"another");
    let other = Sha256::of(b"other");
    let dir = format!(".cache/pretrained/derived/{other}/test-1");
    place.file(&format!("{dir}/blobs.0"), b"of an older version");
    place.file(&format!("{dir}/.blobs.1.AbCd12.tmp"), b"of a dead process");
    let mut found: Vec<_> = states(&place).into_iter().map(|(_, state)| state).collect();
    found.sort();
    assert_eq!(
        found,
        ["complete", "leftover", "leftover", "orphan", "orphan"]
    );
    place.run(&prune).expect(0);
    assert_eq!(
        states(&place),
        [("other".to_owned(), "complete".to_owned())]
    );
    assert_eq!(place.names(&dir), ["blobs.1"]);
    assert_eq!(
        place.names(".cache/pretrained/derived"),
        [other.to_string()]
    );
    let old = ["cache", "prune", "-y", "--older-than", "0s"];
    place.run(&old).expect(0);
    assert_eq!(states(&place), []);
}
