//! One cache for `pretrained` and for Python's huggingface_hub: what either has fetched is there for the other.
#![cfg(feature = "net")]
#![allow(
    clippy::unwrap_used,
    reason = "this is test code, though not every function is a test"
)]

mod fetching;
mod hub;
mod model_files;
mod program;

use std::path::PathBuf;
use std::process::{Command, Stdio};

use fetching::{COMMIT, Machine, TINY, git_blob, sha256, tiny, tiny_files, weights};
use hub::{Fault, Hub, Repo, Server, Times};

const SECOND: &str = "2222222222222222222222222222222222222222";

const SNAPSHOT: &str = "from huggingface_hub import snapshot_download
print(snapshot_download('org/tiny'))";

const LOCAL_SNAPSHOT: &str = "from huggingface_hub import snapshot_download
print(snapshot_download('org/tiny', local_files_only=True))";

const EACH_FILE: &str = "from huggingface_hub import hf_hub_download
for file in ['1_Pooling/config.json', 'config.json', 'model.safetensors']:
    print(hf_hub_download('org/tiny', file))";

/// The warnings of a scan, and how many files on their way it sees.
const SCAN: &str = "from huggingface_hub import scan_cache_dir
found = scan_cache_dir()
print(found.warnings, len(found.incomplete_files))
for repo in found.repos:
    for revision in sorted(repo.revisions, key=lambda it: it.commit_hash):
        print(repo.repo_id, revision.commit_hash, len(revision.files), sorted(revision.refs))";

fn python(machine: &Machine, hub: &Server) -> Command {
    let interpreter = std::env::var_os("PRETRAINED_PYTHON").expect("PRETRAINED_PYTHON is set");
    let mut command = Command::new(PathBuf::from(interpreter));
    command
        .current_dir(machine.place.path(""))
        .env_clear()
        .env("HOME", machine.place.path(""))
        .env("HF_ENDPOINT", hub.url())
        .env("HF_HUB_DISABLE_PROGRESS_BARS", "1")
        .stdin(Stdio::null());
    command
}

#[track_caller]
fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    String::from_utf8(output.stdout).unwrap()
}

#[track_caller]
fn run_python(machine: &Machine, hub: &Server, code: &str) -> String {
    run(python(machine, hub).args(["-c", code]))
}

/// The `hf` tool.
#[track_caller]
fn run_hf(machine: &Machine, hub: &Server, args: &[&str]) -> String {
    let code = "from huggingface_hub.cli.hf import main; main()";
    run(python(machine, hub).args(["-c", code]).args(args))
}

fn files_asked(hub: &Server) -> Vec<String> {
    let asked = hub.requests_to("GET ").into_iter();
    let files = asked.filter(|it| it.path.contains("/resolve/"));
    files
        .map(|it| it.path.rsplit('/').next().unwrap().to_owned())
        .collect()
}

#[test]
#[ignore = "needs PRETRAINED_PYTHON, an interpreter that has huggingface_hub"]
fn what_python_has_fetched_is_used_without_a_request() {
    // With its listing of the repository, and without.
    for (code, first_requests) in [(SNAPSHOT, 0), (EACH_FILE, 1)] {
        let hub = Hub::new().repo(tiny()).serve();
        let machine = Machine::new(&hub);
        run_python(&machine, &hub, code);
        hub.forget();
        let expected = format!(
            "{}\n",
            machine
                .place
                .path(&format!("{TINY}/snapshots/{COMMIT}"))
                .display()
        );
        assert_eq!(
            machine.fetch_offline(&["hf:org/tiny"]).expect(0).stdout,
            expected
        );
        assert_eq!(hub.requests().len(), 0);
        assert_eq!(machine.fetch(&["hf:org/tiny"]).expect(0).stdout, expected);
        assert_eq!(hub.requests().len(), first_requests);
        assert_eq!(hub.requests_to("/tree/").len(), first_requests);
        machine.fetch(&["hf:org/tiny"]).expect(0);
        assert_eq!(hub.requests().len(), first_requests);
        // A hub that is away, or forgets the repository, takes nothing away.
        let other = Hub::new().serve();
        machine
            .fetch_with(&[("HF_ENDPOINT", &other.url())], &["hf:org/tiny"])
            .expect(0);
    }
}

#[test]
#[ignore = "needs PRETRAINED_PYTHON, an interpreter that has huggingface_hub"]
fn what_python_has_fetched_is_loaded() {
    let model = model_files::safetensors(&model_files::Weights::small());
    let repo = Repo::new("org/tiny")
        .file("config.json", model_files::config())
        .lfs("model.safetensors", model);
    let hub = Hub::new().repo(repo).serve();
    let machine = Machine::new(&hub);
    run_python(&machine, &hub, SNAPSHOT);
    let accepted = hub.accepted();
    let inspected = machine.place.run(&["inspect", "hf:org/tiny"]).expect(0);
    assert!(inspected.stdout.contains("whisper"), "{}", inspected.stdout);
    assert_eq!(hub.accepted(), accepted);
}

#[test]
#[ignore = "needs PRETRAINED_PYTHON, an interpreter that has huggingface_hub"]
fn what_python_has_fetched_in_part_is_completed() {
    let patterns = "from huggingface_hub import snapshot_download
snapshot_download('org/tiny', allow_patterns=['*.json'])";
    let one_file = "from huggingface_hub import hf_hub_download
hf_hub_download('org/tiny', 'config.json')";
    let cases = [
        (patterns, "model.safetensors", 1),
        (one_file, "its list of files", 2),
    ];
    for (code, missing, asked) in cases {
        let hub = Hub::new().repo(tiny()).serve();
        let machine = Machine::new(&hub);
        run_python(&machine, &hub, code);
        hub.forget();
        let ended = machine.fetch_offline(&["hf:org/tiny"]).expect(4);
        assert!(ended.error_line().contains(missing), "{}", ended.stderr);
        machine.fetch(&["hf:org/tiny"]).expect(0);
        assert_eq!(files_asked(&hub).len(), asked);
        machine.assert_snapshot(&tiny_files());
        run_python(&machine, &hub, LOCAL_SNAPSHOT_OF_OURS);
    }
}

/// With its own listing, Python wants to be told what is enough.
const LOCAL_SNAPSHOT_OF_OURS: &str = "from huggingface_hub import snapshot_download
wanted = ['1_Pooling/config.json', 'config.json', 'model.safetensors']
print(snapshot_download('org/tiny', local_files_only=True, allow_patterns=wanted))";

#[test]
#[ignore = "needs PRETRAINED_PYTHON, an interpreter that has huggingface_hub"]
fn damage_to_what_python_has_fetched_is_seen_and_repaired() {
    let shard = |i| format!("model-0000{i}-of-00002.safetensors");
    let index = format!(
        "{{\"weight_map\": {{\"a\": \"{}\", \"b\": \"{}\"}}}}",
        shard(1),
        shard(2)
    );
    let repo = || {
        Repo::new("org/tiny")
            .commit(COMMIT)
            .file("config.json", "{}")
            .file("model.safetensors.index.json", index.as_str())
            .lfs(&shard(1), weights(1))
            .lfs(&shard(2), weights(2))
    };
    let each_file = format!(
        "from huggingface_hub import hf_hub_download
for file in ['config.json', 'model.safetensors.index.json', '{}', '{}']:
    hf_hub_download('org/tiny', file)",
        shard(1),
        shard(2)
    );
    let second = sha256(&weights(2));
    let blob = format!("{TINY}/blobs/{second}");
    let link = format!("{TINY}/snapshots/{COMMIT}/{}", shard(2));
    for code in [SNAPSHOT, &each_file] {
        for harm in ["link removed", "blob removed", "cut to nothing", "cut"] {
            // Without a listing, nobody knows how long a file should be.
            if harm == "cut" && code != SNAPSHOT {
                continue;
            }
            let hub = Hub::new().repo(repo()).serve();
            let machine = Machine::new(&hub);
            run_python(&machine, &hub, code);
            let path = |name: &str| machine.place.path(name);
            match harm {
                "link removed" => std::fs::remove_file(path(&link)).unwrap(),
                "blob removed" => std::fs::remove_file(path(&blob)).unwrap(),
                "cut to nothing" => std::fs::write(path(&blob), "").unwrap(),
                _ => std::fs::write(path(&blob), &weights(2)[..1000]).unwrap(),
            }
            hub.forget();
            let ended = machine.fetch_offline(&["hf:org/tiny"]).expect(4);
            let line = ended.error_line();
            assert!(line.contains(&shard(2)), "{harm}: {line}");
            machine.fetch(&["hf:org/tiny"]).expect(0);
            let asked = files_asked(&hub);
            let expected = if harm == "link removed" {
                vec![]
            } else {
                vec![shard(2)]
            };
            assert_eq!(asked, expected, "{harm}");
            assert!(std::fs::read(path(&link)).unwrap() == weights(2), "{harm}");
            run_python(&machine, &hub, LOCAL_SNAPSHOT);
            run_hf(
                &machine,
                &hub,
                &["cache", "verify", "org/tiny", "--fail-on-missing-files"],
            );
        }
    }
}

#[test]
#[ignore = "needs PRETRAINED_PYTHON, an interpreter that has huggingface_hub"]
fn python_uses_what_we_have_fetched() {
    let hub = Hub::new().repo(tiny()).serve();
    let machine = Machine::new(&hub);
    let snapshot = machine.fetch(&["hf:org/tiny"]).expect(0).stdout;
    hub.forget();
    assert_eq!(run_python(&machine, &hub, LOCAL_SNAPSHOT), snapshot);
    let found = run_python(
        &machine,
        &hub,
        "from huggingface_hub import try_to_load_from_cache as find
for file in ['1_Pooling/config.json', 'config.json', 'model.safetensors']:
    print(open(find('org/tiny', file), 'rb').read().__len__())
print(find('org/tiny', 'README.md'))",
    );
    assert_eq!(found, "2\n42\n200000\nNone\n");
    let scan = run_python(&machine, &hub, SCAN);
    assert_eq!(scan, format!("[] 0\norg/tiny {COMMIT} 3 ['main']\n"));
    assert!(run_hf(&machine, &hub, &["cache", "ls"]).contains("org/tiny"));
    assert_eq!(hub.requests_to("org/tiny").len(), 0, "{:?}", hub.requests());
    let verified = run_hf(&machine, &hub, &["cache", "verify", "org/tiny"]);
    assert!(verified.contains("Verified 3 file(s)"), "{verified}");
    // What it lacks it fetches, and nothing else.
    hub.forget();
    assert_eq!(run_python(&machine, &hub, SNAPSHOT), snapshot);
    let mut asked = files_asked(&hub);
    asked.sort();
    assert_eq!(asked, ["README.md", "model.onnx"]);
    run_hf(
        &machine,
        &hub,
        &["cache", "verify", "org/tiny", "--fail-on-missing-files"],
    );

    // Neither is a fetch that was interrupted anything to complain of.
    let hub = Hub::new().repo(tiny()).serve();
    let machine = Machine::new(&hub);
    hub.fault("/cdn/", Fault::CutAfter(60_000), Times::Always);
    machine.fetch(&["hf:org/tiny", "--retries", "0"]).expect(5);
    let scan = run_python(&machine, &hub, SCAN);
    assert_eq!(scan, format!("[] 1\norg/tiny {COMMIT} 2 []\n"));
    hub.mend();
    run_python(&machine, &hub, SNAPSHOT);
    machine.fetch_offline(&["hf:org/tiny"]).expect(0);
}

#[test]
#[ignore = "needs PRETRAINED_PYTHON, an interpreter that has huggingface_hub"]
fn both_use_one_cache_in_turn() {
    let repo = tiny()
        .branch("main")
        .branch("refs/pr/1")
        .commit(SECOND)
        .file("config.json", "{\"second\": true}");
    let hub = Hub::new().repo(repo).serve();
    let machine = Machine::new(&hub);
    run_python(&machine, &hub, SNAPSHOT);
    machine.fetch(&["hf:org/tiny@refs/pr/1"]).expect(0);
    hub.move_ref("org/tiny", "main", SECOND);
    hub.forget();
    machine.fetch(&["hf:org/tiny", "--refresh"]).expect(0);
    assert_eq!(
        files_asked(&hub),
        ["config.json"],
        "the weights are one blob for both"
    );
    hub.forget();
    let theirs = run_python(&machine, &hub, SNAPSHOT);
    assert!(theirs.trim_end().ends_with(SECOND), "{theirs}");
    assert_eq!(
        files_asked(&hub),
        [""; 0],
        "they are blobs of the first commit"
    );
    let ours = machine.fetch_offline(&["hf:org/tiny"]).expect(0).stdout;
    assert_eq!(ours, theirs);
    let of_first = machine.fetch_offline(&[&format!("hf:org/tiny@{COMMIT}")]);
    assert!(of_first.expect(0).stdout.trim_end().ends_with(COMMIT));
    let scan = run_python(&machine, &hub, SCAN);
    let expected =
        format!("[] 0\norg/tiny {COMMIT} 5 ['refs/pr/1']\norg/tiny {SECOND} 5 ['main']\n");
    assert_eq!(scan, expected);
    for revision in [COMMIT, SECOND, "refs/pr/1", "main"] {
        run_hf(
            &machine,
            &hub,
            &["cache", "verify", "org/tiny", "--revision", revision],
        );
    }
    // And what one removes the other misses.
    let id = git_blob(b"{\"second\": true}");
    std::fs::remove_file(machine.place.path(&format!("{TINY}/blobs/{id}"))).unwrap();
    let ended = machine.fetch_offline(&["hf:org/tiny"]).expect(4);
    assert!(ended.error_line().contains("config.json"));
    run_python(&machine, &hub, SNAPSHOT);
    machine.fetch_offline(&["hf:org/tiny"]).expect(0);
}

#[test]
#[ignore = "needs PRETRAINED_PYTHON, an interpreter that has huggingface_hub"]
fn both_may_fetch_at_one_time() {
    // Whoever is first, the large file comes once.
    for python_first in [true, false] {
        let hub = Hub::new().repo(tiny()).serve();
        hub.fault("/cdn/", Fault::SlowBody(100_000), Times::Always);
        let machine = Machine::new(&hub);
        let mut theirs = python(&machine, &hub);
        let mut ours = machine.command(&["hf:org/tiny"]);
        let mut commands = [
            theirs.args(["-c", SNAPSHOT]).stdout(Stdio::null()),
            &mut ours,
        ];
        if !python_first {
            commands.reverse();
        }
        let children = commands.map(|command| {
            let mut child = command.spawn().unwrap();
            while hub.requests_to("GET /cdn/").is_empty() {
                assert!(
                    child.try_wait().unwrap().is_none(),
                    "it asks for the weights"
                );
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
            child
        });
        for mut child in children {
            assert!(child.wait().unwrap().success());
        }
        assert_eq!(hub.requests_to("GET /cdn/").len(), 1);
        run_hf(
            &machine,
            &hub,
            &["cache", "verify", "org/tiny", "--fail-on-missing-files"],
        );
        machine.fetch_offline(&["hf:org/tiny"]).expect(0);
    }
}
