//! Caches on file systems that lack something: room, links, locks, or leave to write.
#![cfg(feature = "net")]
#![cfg(all(target_os = "linux", target_env = "gnu"))]
#![allow(
    clippy::unwrap_used,
    reason = "this is test code, though not every function is a test"
)]

mod fetching;
mod hub;
mod lacking;
mod program;

use fetching::{
    COMMIT, Machine, PINNED, Row, RowFile, TINY, manifest, pinned_path, sha256, tiny, tiny_files,
    weights,
};
use hub::{Fault, Hub, Repo, Server, Times};
use lacking::{Lack, Mounts, shim, skip};
use program::Ended;

const MIB: usize = 1 << 20;

fn random_bytes(len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    fastrand::Rng::with_seed(7).fill(&mut bytes);
    bytes
}

/// The table of a row `own` with one file of `content` at `/static/w.bin`.
fn own(hub: &Server, content: &[u8]) -> String {
    manifest(&[Row {
        name: "own",
        files: vec![RowFile {
            name: "w.bin",
            content: Some(content),
            urls: vec![hub.static_url("w.bin")],
        }],
        ..Row::default()
    }])
}

/// `fetch` with `args` where `mounts` are, with all that it has to say.
fn fetch_in(mounts: &Mounts, machine: &Machine, args: &[&str]) -> Ended {
    let mut command = machine.command(args);
    machine.place.end(&mut mounts.enter(&mut command))
}

#[test]
fn a_read_only_cache_gives_what_it_has() {
    let hub = Hub::new()
        .repo(tiny().tag("v1"))
        .static_file("w.bin", weights(3))
        .serve();
    let machine = Machine::new(&hub);
    let table = machine.file("t.toml", own(&hub, &weights(3)).as_bytes());
    machine.fetch(&["hf:org/tiny"]).expect(0);
    machine.fetch(&["own", "--manifest", &table]).expect(0);
    let home = machine.place.path("");
    let home = home.display();
    let Some(mounts) = Mounts::make(&format!(
        "mount --bind {home} {home} && mount -o remount,bind,ro {home}"
    )) else {
        return skip("a mount namespace");
    };
    let fetch = |args: &[&str]| fetch_in(&mounts, &machine, args);
    hub.forget();
    for args in [
        &["hf:org/tiny"][..],
        &["hf:org/tiny", "--offline"],
        &["own", "--manifest", &table],
        &["own", "--manifest", &table, "--offline", "--verify"],
    ] {
        let ended = fetch(args).expect(0);
        assert_eq!(ended.stderr, "");
    }
    assert_eq!(hub.requests().len(), 0);
    // What is not written down is asked each time, and what is missing cannot come.
    fetch(&["hf:org/tiny@v1"]).expect(0);
    for args in [
        &["hf:org/tiny", "--force"][..],
        &["own", "--manifest", &table, "--force"],
    ] {
        let ended = fetch(args).expect(1);
        let line = ended.error_line();
        assert!(line.contains("cannot write"), "{line}");
        assert!(line.to_lowercase().contains("read-only"), "{line}");
    }
    machine.assert_snapshot(&tiny_files());
}

#[test]
fn without_links_the_snapshot_holds_the_files() {
    let fat =
        "truncate -s 64M HOME/fat && mkfs.vfat HOME/fat && mount -o loop HOME/fat HOME/.cache";
    let places = [
        ("a library that refuses links", None),
        (
            "nosymfollow",
            Some("mount -t tmpfs -o nosymfollow none HOME/.cache"),
        ),
        ("vfat", Some(fat)),
    ];
    for (name, mount) in places {
        let twin = tiny().file("tokenizer.json", "{}");
        let hub = Hub::new().repo(twin).serve();
        let machine = Machine::new(&hub);
        std::fs::create_dir(machine.place.path(".cache")).unwrap();
        let home = machine.place.path("");
        let script = mount.map(|mount| mount.replace("HOME/", home.to_str().unwrap()));
        let mounts = script.as_deref().map(Mounts::make);
        if mounts.as_ref().is_some_and(Option::is_none) {
            skip(name);
            continue;
        }
        let mounts = mounts.flatten();
        let fetch = |args: &[&str]| {
            let mut command = machine.place.command(&[&["fetch"], args].concat());
            command
                .env("PRETRAINED_OFFLINE", "0")
                .env("HF_ENDPOINT", hub.url());
            machine.place.end(&mut match &mounts {
                Some(mounts) => mounts.enter(&mut command),
                None => shim(command, Lack::Links),
            })
        };
        let snapshot = format!("{TINY}/snapshots/{COMMIT}");
        let read = |file: &str| {
            let path = machine.place.path(&format!("{snapshot}/{file}"));
            match &mounts {
                Some(mounts) => mounts.read(&path),
                None => std::fs::read(path).unwrap(),
            }
        };
        let mut files = tiny_files();
        files.insert("tokenizer.json".to_owned(), b"{}".to_vec());
        let assert_all = |when: &str| {
            for (file, content) in &files {
                assert!(read(file) == *content, "{name}, {when}: {file}");
            }
        };

        let ended = fetch(&["hf:org/tiny"]).expect(0);
        let notices = ended
            .stderr
            .matches("this file system has no links")
            .count();
        assert_eq!(notices, 1, "{name}: {}", ended.stderr);
        assert!(
            ended.stdout.trim_end().ends_with(&snapshot),
            "{}",
            ended.stdout
        );
        assert_all("first");
        assert_eq!(hub.requests_to("/resolve/").len(), 3);
        hub.forget();
        for args in [&["hf:org/tiny"][..], &["hf:org/tiny", "--offline"]] {
            let again = fetch(args).expect(0);
            assert_eq!(
                (again.stdout.as_str(), again.stderr.as_str()),
                (ended.stdout.as_str(), "")
            );
        }
        assert_eq!(hub.requests().len(), 0, "{name}");
        fetch(&["hf:org/tiny", "--force", "--quiet"]).expect(0);
        assert_all("forced");
        if mounts.is_none() {
            machine.file(&format!("{snapshot}/model.safetensors"), b"cut");
            hub.forget();
            fetch(&["hf:org/tiny"]).expect(0);
            assert_eq!(hub.requests_to("/resolve/").len(), 1);
            assert_all("repaired");
            assert_eq!(machine.place.names(&format!("{TINY}/blobs")), [""; 0]);
            machine.assert_trustworthy(&files);
        }
    }
}

#[test]
fn without_locks_everybody_fetches_for_themselves() {
    for lack in [Lack::Locks, Lack::Exclusion, Lack::LinksAndLocks] {
        let hub = Hub::new()
            .repo(tiny())
            .static_file("w.bin", weights(3))
            .serve();
        hub.fault("", Fault::SlowBody(400_000), Times::Always);
        let machine = Machine::new(&hub);
        machine.file("t.toml", own(&hub, &weights(3)).as_bytes());
        for args in [&["hf:org/tiny"][..], &["own", "--manifest", "t.toml"]] {
            let children: Vec<_> = (0..8)
                .map(|_| shim(machine.command(args), lack).spawn().unwrap())
                .collect();
            for child in children {
                let output = child.wait_with_output().unwrap();
                let stderr = String::from_utf8_lossy(&output.stderr);
                assert!(output.status.success(), "{lack:?}: {stderr}");
            }
            machine.assert_trustworthy(&tiny_files());
            machine.fetch_offline(args).expect(0);
            assert_eq!(machine.on_the_way(), [""; 0]);
        }
    }
}

#[test]
fn a_full_disk_is_seen_before_a_byte_comes_and_survived_when_it_is_not() {
    let large = random_bytes(6 * MIB);
    let half = random_bytes(3 * MIB);
    let hub = Hub::new()
        .repo(Repo::new("org/large").lfs("model.safetensors", large.clone()))
        .repo(Repo::new("org/half").lfs("model.safetensors", half.clone()))
        .static_file("w.bin", large.clone())
        .serve();
    let machine = Machine::new(&hub);
    let sized = own(&hub, &large);
    let unsized_table = sized.replace(&format!("size = {}\n", large.len()), "");
    assert_ne!(sized, unsized_table);
    let sized = machine.file("sized.toml", sized.as_bytes());
    let without_size = machine.file("unsized.toml", unsized_table.as_bytes());
    let cache = machine.place.path(".cache");
    std::fs::create_dir(&cache).unwrap();
    let cache = cache.display();
    let Some(mounts) = Mounts::make(&format!("mount -t tmpfs -o size=4m none {cache}")) else {
        return skip("a mount namespace");
    };
    let fetch = |args: &[&str]| fetch_in(&mounts, &machine, args);
    for args in [&["hf:org/large"][..], &["own", "--manifest", &sized]] {
        let ended = fetch(args).expect(1);
        let line = ended.error_line();
        assert!(
            line.contains(" bytes free, and 6291456 are needed"),
            "{line}"
        );
        assert!(ended.stderr.contains("--cache-dir"), "{}", ended.stderr);
        assert_eq!(hub.requests_to("/resolve/").len(), 0);
        assert_eq!(hub.requests_to("/static/").len(), 0);
    }

    // What is there already needs no room.
    hub.fault("/cdn/", Fault::CutAfter(2 * MIB as u64), Times::Once);
    fetch(&["hf:org/half", "--retries", "0"]).expect(5);
    fetch(&["hf:org/half"]).expect(0);
    let ranges: Vec<_> = hub
        .requests_to("/cdn/")
        .into_iter()
        .map(|request| request.range.unwrap_or_default())
        .collect();
    assert_eq!(ranges, ["", "bytes=2097152-"]);

    // Nobody says how long this one is.
    hub.fault("/static/", Fault::Chunked, Times::Always);
    let args = ["own", "--manifest", &without_size];
    for _ in 0..2 {
        let ended = fetch(&args).expect(1);
        let line = ended.error_line();
        assert!(line.contains("cannot write"), "{line}");
        assert!(line.contains("No space left"), "{line}");
    }
    fetch(&["hf:org/half", "--offline"]).expect(0);
    mounts.run(&format!("mount -o remount,size=32m {cache}"));
    fetch(&args).expect(0);
    let path = pinned_path("test", "w.bin", &large);
    assert!(mounts.read(&machine.place.path(&path)) == large);
    let dir = machine
        .place
        .path(&format!("{PINNED}/whisper/test/{}", sha256(&large)));
    assert_eq!(mounts.run(&format!("ls -A {}", dir.display())), "w.bin\n");
}
