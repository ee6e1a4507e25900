//! Which files of a repository `pretrained fetch` brings, at which commit, and how it says so.
#![cfg(feature = "net")]
#![allow(
    clippy::unwrap_used,
    reason = "this is test code, though not every function is a test"
)]

mod fetching;
mod hub;
mod program;

use std::time::Duration;

use fetching::{
    COMMIT, Files, Machine, TINY, WEIGHTS_BYTES, git_blob, sha256, tiny, tiny_files, weights,
};
use hub::{Fault, Hub, Repo, Times};

const SECOND: &str = "2222222222222222222222222222222222222222";

/// [`tiny`], and a commit with another configuration and the same weights.
fn moved() -> Repo {
    tiny()
        .branch("main")
        .commit(SECOND)
        .file("config.json", "{\"second\": true}")
}

fn snapshot_dir(machine: &Machine, commit: &str) -> String {
    let dir = machine.place.path(&format!("{TINY}/snapshots/{commit}"));
    format!("{}\n", dir.display())
}

fn names(machine: &Machine) -> Vec<String> {
    let prefix = format!("{TINY}/snapshots/{COMMIT}/");
    let files = machine.trusted().into_keys();
    files
        .filter_map(|path| path.strip_prefix(&prefix).map(str::to_owned))
        .collect()
}

#[test]
fn a_branch_stays_what_it_was_until_it_is_refreshed() {
    let hub = Hub::new().repo(moved()).serve();
    let machine = Machine::new(&hub);
    let fetch = |args: &[&str]| machine.fetch(args).expect(0).stdout;
    let (first, second) = (
        snapshot_dir(&machine, COMMIT),
        snapshot_dir(&machine, SECOND),
    );
    assert_eq!(fetch(&["hf:org/tiny"]), first);
    hub.move_ref("org/tiny", "main", SECOND);
    hub.forget();
    assert_eq!(fetch(&["hf:org/tiny"]), first);
    assert_eq!(hub.requests().len(), 0);

    // A refresh that fails leaves the branch where it was.
    hub.fault("2/config.json", Fault::Status(500), Times::Always);
    let args = ["hf:org/tiny", "--refresh", "--retries", "0"];
    machine.fetch(&args).expect(5);
    assert_eq!(fetch(&["hf:org/tiny"]), first);
    assert_eq!(machine.place.read(&format!("{TINY}/refs/main")), COMMIT);

    hub.mend();
    hub.forget();
    assert_eq!(fetch(&["hf:org/tiny", "--refresh"]), second);
    assert_eq!(
        hub.requests_to("/resolve/").len(),
        1,
        "the weights are the same"
    );
    assert_eq!(machine.place.read(&format!("{TINY}/refs/main")), SECOND);
    assert_eq!(fetch(&["hf:org/tiny"]), second);
    assert_eq!(
        fetch(&[&format!("hf:org/tiny@{COMMIT}"), "--offline"]),
        first
    );
    assert_eq!(
        fetch(&["hf:org/tiny", "--revision", COMMIT, "--offline"]),
        first
    );
}

#[test]
fn a_branch_is_known_offline_however_its_files_came() {
    let hub = Hub::new().repo(tiny().tag("v1")).serve();
    let machine = Machine::new(&hub);
    machine.fetch(&[&format!("hf:org/tiny@{COMMIT}")]).expect(0);
    for spec in ["hf:org/tiny", "hf:org/tiny@v1"] {
        machine.fetch_offline(&[spec]).expect(4);
        machine.fetch(&[spec]).expect(0);
        machine.fetch_offline(&[spec]).expect(0);
    }
    assert_eq!(hub.requests_to("/resolve/").len(), tiny_files().len());
}

#[test]
fn patterns_choose() {
    let cases: [(&[&str], &[&str]); 4] = [
        (&["--include", "*.md"], &["README.md"]),
        (
            &["--include", "*"],
            &[
                "1_Pooling/config.json",
                "README.md",
                "config.json",
                "model.safetensors",
                "onnx/model.onnx",
            ],
        ),
        (
            &[
                "--include",
                "*.json",
                "--include",
                "onnx/",
                "--exclude",
                "1*",
            ],
            &["config.json", "onnx/model.onnx"],
        ),
        (
            &["--exclude", "*.safetensors"],
            &["1_Pooling/config.json", "config.json"],
        ),
    ];
    for (args, expected) in cases {
        let hub = Hub::new().repo(tiny()).serve();
        let machine = Machine::new(&hub);
        let args: Vec<_> = ["hf:org/tiny"].iter().chain(args).copied().collect();
        machine.fetch(&args).expect(0);
        assert_eq!(names(&machine), expected, "{args:?}");
        assert_eq!(hub.requests_to("/resolve/").len(), expected.len());
    }
    let hub = Hub::new().repo(tiny()).serve();
    let machine = Machine::new(&hub);
    for (pattern, code, says) in [
        ("[", 2, "`[` is not a pattern"),
        ("*.gguf", 3, "`org/tiny` has no file `*.gguf`"),
    ] {
        let ended = machine.fetch(&["hf:org/tiny", "--include", pattern]);
        let ended = ended.expect(code);
        assert!(ended.error_line().contains(says), "{}", ended.stderr);
        assert!(machine.cached().is_empty());
    }
}

#[test]
fn a_dry_run_says_what_would_come_and_writes_nothing() {
    let hub = Hub::new().repo(tiny()).serve();
    let machine = Machine::new(&hub);
    let dry = |args: &[&str]| {
        let args: Vec<_> = ["hf:org/tiny", "--dry-run"]
            .iter()
            .chain(args)
            .copied()
            .collect();
        machine.fetch(&args).expect(0)
    };
    let text = dry(&[]).stdout;
    for said in [
        "to-download",
        "1_Pooling/config.json",
        "model.safetensors",
        &format!("{}/org/tiny/resolve/{COMMIT}/config.json", hub.url()),
        "would download 200.0 kB",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
    let plan = dry(&["--json"]).json();
    assert_eq!(plan["downloaded_bytes"], WEIGHTS_BYTES + 42 + 2);
    assert!(machine.cached().is_empty());
    assert_eq!(hub.requests_to("/resolve/").len(), 0);
    machine.fetch(&["hf:org/tiny"]).expect(0);
    assert_eq!(dry(&["--json"]).json()["downloaded_bytes"], 0);
}

#[test]
fn json_tells_of_each_file() {
    let hub = Hub::new().repo(tiny()).serve();
    let machine = Machine::new(&hub);
    let mut froms = Vec::new();
    for _ in 0..2 {
        let ended = machine.fetch(&["hf:org/tiny", "--json"]).expect(0);
        assert_eq!(ended.stderr, "");
        let report = ended.json();
        assert_eq!(report["schema"], "pretrained.fetch/1");
        assert_eq!(report["specs"][0]["spec"], "hf:org/tiny");
        assert_eq!(report["specs"][0]["status"], "ok");
        assert_eq!(report["failed"], serde_json::json!([]));
        let files = report["specs"][0]["files"].as_array().unwrap();
        let mut found = Files::new();
        for file in files {
            let bytes = std::fs::read(file["path"].as_str().unwrap()).unwrap();
            assert_eq!(file["bytes"], bytes.len());
            froms.push(file["from"].as_str().unwrap().to_owned());
            found.insert(file["file"].as_str().unwrap().to_owned(), bytes);
        }
        assert!(found == tiny_files());
        assert_eq!(files[2]["sha256"], sha256(&weights(1)));
    }
    assert_eq!(froms, [["downloaded"; 3], ["hf-cache"; 3]].concat());
    let error = machine
        .fetch(&["hf:org/none", "--json"])
        .expect(3)
        .error_object();
    assert_eq!(error["code"], 3);
}

#[test]
fn files_come_as_many_at_once_as_jobs_allow() {
    let files = (0..6).fold(Repo::new("org/many"), |repo, i| {
        repo.file(&format!("{i}.json"), vec![i; 1000])
    });
    for (jobs, expected) in [("1", 1), ("3", 3)] {
        let hub = Hub::new().repo(files.clone()).serve();
        hub.fault(
            "/resolve/",
            Fault::Stall(0, Duration::from_millis(300)),
            Times::Always,
        );
        let machine = Machine::new(&hub);
        machine.fetch(&["hf:org/many", "--jobs", jobs]).expect(0);
        assert_eq!(hub.most_at_once(), expected);
    }
}

#[test]
fn what_is_here_is_fetched_again_only_by_force() {
    let hub = Hub::new().repo(tiny()).serve();
    let machine = Machine::new(&hub);
    machine.fetch(&["hf:org/tiny"]).expect(0);
    // Damage that has the right length is seen by those who look at the bytes.
    let config = &tiny_files()["config.json"];
    let damages = [
        (sha256(&weights(1)), weights(1), weights(2)),
        (
            git_blob(config),
            config.clone(),
            config.to_ascii_uppercase(),
        ),
    ];
    for (id, right, wrong) in &damages {
        let blob = format!("{TINY}/blobs/{id}");
        machine.file(&blob, wrong);
        hub.forget();
        machine.fetch(&["hf:org/tiny"]).expect(0);
        let ended = machine.fetch(&["hf:org/tiny", "--verify"]).expect(8);
        assert!(ended.error_line().contains(id), "{}", ended.stderr);
        assert_eq!(hub.requests().len(), 0);
        machine.file(&blob, right);
        machine.fetch(&["hf:org/tiny", "--verify"]).expect(0);
    }
    for (id, _, wrong) in &damages {
        machine.file(&format!("{TINY}/blobs/{id}"), wrong);
    }
    machine.fetch(&["hf:org/tiny", "--force"]).expect(0);
    assert_eq!(hub.requests_to("/resolve/").len(), 3);
    machine.assert_snapshot(&tiny_files());
    machine.fetch(&["hf:org/tiny", "--verify"]).expect(0);
}

#[test]
fn with_keep_going_what_can_come_comes() {
    let hub = Hub::new().repo(tiny()).serve();
    hub.fault("1/config.json", Fault::Status(404), Times::Always);
    let machine = Machine::new(&hub);
    let specs = ["hf:org/none", "hf:org/tiny", "--keep-going"];
    let ended = machine.fetch(&specs).expect(9);
    let errors: Vec<_> = ended
        .stderr
        .lines()
        .filter(|line| line.starts_with("pretrained: "))
        .collect();
    assert_eq!(errors.len(), 3, "{}", ended.stderr);
    assert!(errors[0].contains("org/none") && errors[1].contains("`config.json`"));
    assert!(errors[2].contains("2 of 4 inputs failed"), "{}", errors[2]);
    assert_eq!(
        names(&machine),
        ["1_Pooling/config.json", "model.safetensors"]
    );

    let json = ["hf:org/none", "hf:org/tiny", "--keep-going", "--json"];
    let report = machine.fetch(&json).expect(9).json();
    assert_eq!(
        report["failed"],
        serde_json::json!(["hf:org/none", "hf:org/tiny"])
    );
    assert_eq!(report["specs"][1]["errors"][0]["code"], 3);
    assert_eq!(report["specs"][1]["files"].as_array().unwrap().len(), 2);

    hub.mend();
    machine.fetch(&["hf:org/tiny", "--keep-going"]).expect(0);
    machine.assert_snapshot(&tiny_files());
    machine.fetch(&["hf:org/none", "hf:org/tiny"]).expect(3);
}

#[test]
fn pickles_come_only_when_they_are_allowed() {
    let repo = Repo::new("org/old")
        .file("config.json", "{}")
        .lfs("pytorch_model.bin", weights(3));
    let hub = Hub::new().repo(repo).serve();
    let machine = Machine::new(&hub);
    let ended = machine.fetch(&["hf:org/old"]).expect(12);
    assert!(ended.error_line().contains("`pytorch_model.bin`"));
    assert!(ended.stderr.contains("--allow-pickle"), "{}", ended.stderr);
    assert!(machine.cached().is_empty());
    machine.fetch(&["hf:org/old", "--allow-pickle"]).expect(0);
    assert_eq!(machine.trusted().len(), 4);
}

#[test]
fn a_missing_shard_is_named_offline_and_fetched_online() {
    let shard = |i| format!("model-0000{i}-of-00002.safetensors");
    let index = format!(
        "{{\"weight_map\": {{\"a\": \"{}\", \"b\": \"{}\"}}}}",
        shard(1),
        shard(2)
    );
    let repo = tiny()
        .without("model.safetensors")
        .file("model.safetensors.index.json", index)
        .lfs(&shard(1), weights(1))
        .lfs(&shard(2), weights(2))
        .lfs("other.safetensors", weights(3));
    let hub = Hub::new().repo(repo).serve();
    let machine = Machine::new(&hub);
    machine.fetch(&["hf:org/tiny"]).expect(0);
    let all = names(&machine);
    let expected = [
        "1_Pooling/config.json",
        "config.json",
        &shard(1),
        &shard(2),
        "model.safetensors.index.json",
    ];
    assert_eq!(all, expected);

    let link = machine
        .place
        .path(&format!("{TINY}/snapshots/{COMMIT}/{}", shard(2)));
    let blob = machine
        .place
        .path(&format!("{TINY}/blobs/{}", sha256(&weights(2))));
    let cut = || std::fs::write(&blob, &weights(2)[..1000]).unwrap();
    let damages: [(&str, &dyn Fn(), usize); 4] = [
        (
            "its link is gone",
            &|| std::fs::remove_file(&link).unwrap(),
            0,
        ),
        (
            "its link leads nowhere",
            &|| std::fs::remove_file(&blob).unwrap(),
            1,
        ),
        ("it is cut", &cut, 1),
        (
            "a file in its place is cut",
            &|| {
                std::fs::remove_file(&link).unwrap();
                std::fs::write(&link, "cut").unwrap();
            },
            0,
        ),
    ];
    for (damage, harm, requests) in damages {
        harm();
        let ended = machine.fetch_offline(&["hf:org/tiny"]).expect(4);
        let line = ended.error_line();
        assert!(
            line.contains(&shard(2)) && !line.contains(&shard(1)),
            "{damage}: {line}"
        );
        hub.forget();
        machine.fetch(&["hf:org/tiny"]).expect(0);
        assert_eq!(hub.requests_to("/resolve/").len(), requests, "{damage}");
        machine.fetch_offline(&["hf:org/tiny"]).expect(0);
        assert!(std::fs::read(&link).unwrap() == weights(2), "{damage}");
    }
    // What nobody needs may go.
    std::fs::remove_file(
        machine
            .place
            .path(&format!("{TINY}/.pretrained/{COMMIT}.json")),
    )
    .unwrap();
    machine.fetch_offline(&["hf:org/tiny"]).expect(0);
}
