//! `pretrained fetch` of rows of a table of the user's: sources in order, mirrors, pins, and what has none.
#![cfg(feature = "net")]
#![allow(
    clippy::unwrap_used,
    reason = "this is test code, though not every function is a test"
)]

mod fetching;
mod hub;
mod program;

use fetching::{
    Machine, PINNED, Row, RowFile, each, manifest, pinned_path, sha256, tiny, tiny_files, weights,
};
use hub::{Fault, Hub, Repo, Server, Times};
use program::Ended;

/// One file with two sources, `first/w.bin` and `second/w.bin`.
fn two_sources(hub: &Server, content: Option<&[u8]>) -> String {
    manifest(&[Row {
        name: "own",
        files: vec![RowFile {
            name: "w.bin",
            content,
            urls: ["first/w.bin", "second/w.bin"]
                .map(|path| hub.static_url(path))
                .into(),
        }],
        ..Row::default()
    }])
}

fn serve_both() -> Server {
    Hub::new()
        .static_file("first/w.bin", weights(1))
        .static_file("second/w.bin", weights(1))
        .serve()
}

/// Fetches `own` of a table, with what is said about it.
fn fetch_own(machine: &Machine, table: &str, args: &[&str]) -> Ended {
    machine.file("t.toml", table.as_bytes());
    let own = ["fetch", "own", "--manifest", "t.toml"];
    let args: Vec<_> = own.iter().chain(args).copied().collect();
    let mut command = machine.place.command(&args);
    machine.place.end(command.env_remove("PRETRAINED_OFFLINE"))
}

#[test]
fn sources_are_asked_in_order_until_one_is_right() {
    struct Case {
        name: &'static str,
        faults: Vec<(&'static str, Fault, Times)>,
        code: i32,
        /// What is said, line by line.
        says: &'static [&'static str],
        /// The sources asked, with the range.
        asked: &'static [(&'static str, &'static str)],
    }
    let first = |fault| ("/first/", fault, Times::Always);
    let second = |fault| ("/second/", fault, Times::Always);
    let cases = [
        Case {
            name: "the first",
            faults: vec![],
            code: 0,
            says: &[],
            asked: &[("first", "")],
        },
        Case {
            name: "the first has nothing",
            faults: vec![first(Fault::Status(404))],
            code: 0,
            says: &["/first/w.bin answered 404; trying the next place"],
            asked: &[("first", ""), ("second", "")],
        },
        Case {
            name: "the first has other bytes",
            faults: vec![first(Fault::WrongBytes)],
            code: 0,
            says: &["/first/w.bin has the digest "],
            asked: &[("first", ""), ("second", "")],
        },
        Case {
            name: "the first has a page",
            faults: vec![first(Fault::HtmlPage)],
            code: 0,
            says: &["/first/w.bin is an HTML page, not the file; trying the next place"],
            asked: &[("first", ""), ("second", "")],
        },
        Case {
            name: "the first breaks off",
            faults: vec![first(Fault::CutAfter(60_000))],
            code: 0,
            says: &["/first/w.bin the answer broke off"],
            asked: &[("first", ""), ("second", "bytes=60000-")],
        },
        Case {
            name: "the second goes on with other bytes",
            faults: vec![
                first(Fault::CutAfter(60_000)),
                ("/second/", Fault::WrongBytes, Times::Once),
            ],
            code: 0,
            says: &["/first/w.bin the answer broke off"],
            asked: &[("first", ""), ("second", "bytes=60000-"), ("second", "")],
        },
        Case {
            name: "both have other bytes",
            faults: vec![first(Fault::WrongBytes), second(Fault::Truncated(7))],
            code: 8,
            says: &[
                "/first/w.bin has the digest",
                "/second/w.bin has 7 bytes, not 200000",
            ],
            asked: &[("first", ""), ("second", "")],
        },
        Case {
            name: "both have nothing",
            faults: vec![first(Fault::Status(404)), second(Fault::Status(410))],
            code: 5,
            says: &["/first/w.bin answered 404", "/second/w.bin: answered 410"],
            asked: &[("first", ""), ("second", "")],
        },
        Case {
            name: "nothing, and other bytes",
            faults: vec![first(Fault::WrongBytes), second(Fault::Status(404))],
            code: 8,
            says: &["/first/w.bin has the digest", "/second/w.bin answered 404"],
            asked: &[("first", ""), ("second", "")],
        },
    ];
    each(
        &cases,
        |case| case.name.to_owned(),
        |case| {
            let hub = serve_both();
            for (part, fault, times) in &case.faults {
                hub.fault(part, fault.clone(), *times);
            }
            let machine = Machine::new(&hub);
            let content = weights(1);
            let table = two_sources(&hub, Some(&content));
            let args = ["--retries", "0"];
            let ended = fetch_own(&machine, &table, &args).expect(case.code);
            for said in case.says {
                assert!(ended.stderr.contains(said), "{said}: {}", ended.stderr);
            }
            let path = pinned_path("test", "w.bin", &content);
            let requests = hub.requests();
            let asked: Vec<_> = requests
                .iter()
                .map(|request| {
                    let source = request.path.split('/').nth(2).unwrap();
                    (source, request.range.as_deref().unwrap_or_default())
                })
                .collect();
            assert_eq!(asked, case.asked);
            assert_eq!(machine.place.path(&path).exists(), case.code == 0);
            machine.assert_trustworthy(&tiny_files());
            hub.mend();
            let printed = fetch_own(&machine, &table, &[]).expect(0).stdout;
            assert!(printed.ends_with(&format!("{path}\n")), "{printed}");
            assert!(std::fs::read(machine.place.path(&path)).unwrap() == content);
            assert_eq!(machine.on_the_way(), [""; 0]);
            let ended = fetch_own(&machine, &table, &["--offline"]).expect(0);
            assert_eq!((ended.stdout, ended.stderr), (printed, String::new()));
        },
    );
}

#[test]
fn a_transfer_goes_on_in_the_next_process() {
    let hub = serve_both();
    let machine = Machine::new(&hub);
    let content = weights(1);
    let table = two_sources(&hub, Some(&content));
    hub.fault("/first/", Fault::CutAfter(60_000), Times::Exactly(2));
    hub.fault("/second/", Fault::Status(503), Times::Always);
    for _ in 0..2 {
        fetch_own(&machine, &table, &["--retries", "0"]).expect(5);
    }
    assert_eq!(machine.on_the_way().len(), 1);
    fetch_own(&machine, &table, &[]).expect(0);
    let ranges: Vec<_> = hub
        .requests_to("/first/")
        .iter()
        .map(|request| request.range.clone().unwrap_or_default())
        .collect();
    assert_eq!(ranges, ["", "bytes=60000-", "bytes=120000-"]);
    assert_eq!(machine.on_the_way(), [""; 0]);
    machine.assert_trustworthy(&tiny_files());
}

#[test]
fn mirrors_are_asked_first_and_believed_no_more() {
    let content = weights(1);
    let path = format!("pretrained/whisper/test/{}/w.bin", sha256(&content));
    let hub = Hub::new()
        .static_file(&format!("good/{path}"), &content[..])
        .static_file(&format!("bad/{path}"), weights(2))
        .static_file("first/w.bin", &content[..])
        .account("hf_friend")
        .serve();
    let table = two_sources(&hub, Some(&content));
    let [none, bad, good] = ["none", "bad", "good"].map(|name| hub.static_url(name));
    let slash = format!("{good}/");
    let list = format!("{none},{bad},{good}");
    let cases: [(&[&str], &str, &[&str]); 4] = [
        (&["--mirror", &slash], "", &["good"]),
        (&["--mirror", &bad, "--mirror", &good], "", &["bad", "good"]),
        (&["--mirror", &none], &good, &["none", "first"]),
        (&[], &list, &["none", "bad", "good"]),
    ];
    for (args, variable, expected) in cases {
        hub.forget();
        let machine = Machine::new(&hub);
        machine.file("t.toml", table.as_bytes());
        let own = ["own", "--manifest", "t.toml"];
        let args: Vec<_> = own.iter().chain(args).copied().collect();
        let vars = [("PRETRAINED_MIRROR", variable), ("HF_TOKEN", "hf_friend")];
        machine.fetch_with(&vars, &args).expect(0);
        let requests = hub.requests();
        let asked: Vec<_> = requests
            .iter()
            .map(|request| request.path.split('/').nth(2).unwrap())
            .collect();
        assert_eq!(asked, expected);
        assert!(requests.iter().all(|it| it.authorization.is_none()));
        machine.assert_trustworthy(&tiny_files());
        assert_eq!(machine.trusted().len(), 1);
    }
}

#[test]
fn what_nothing_pins_is_refused_or_pinned_by_what_comes_first() {
    let hub = serve_both();
    let machine = Machine::new(&hub);
    let table = two_sources(&hub, None);
    let refused = fetch_own(&machine, &table, &[]).expect(8);
    assert!(refused.stderr.contains("`w.bin` of `own` has no sha256"));
    assert!(
        refused.stderr.contains("--allow-unpinned"),
        "{}",
        refused.stderr
    );
    assert_eq!((hub.accepted(), machine.cached().len()), (0, 0));

    // A page is not pinned for the file, and two halves are not joined that may be of two files.
    hub.fault("/second/", Fault::Status(503), Times::Always);
    hub.fault("/first/", Fault::HtmlPage, Times::Once);
    hub.fault("/first/", Fault::CutAfter(60_000), Times::Once);
    let args = ["--allow-unpinned", "--retries", "0"];
    fetch_own(&machine, &table, &args).expect(8);
    fetch_own(&machine, &table, &args).expect(5);
    assert_eq!(machine.on_the_way(), [""; 0]);
    hub.fault("/first/", Fault::CutAfter(60_000), Times::Once);
    hub.fault("/first/", Fault::UntilClose, Times::Once);
    let ended = fetch_own(&machine, &table, &["--allow-unpinned"]).expect(0);
    let digest = sha256(&weights(1));
    assert!(ended.stderr.contains(&digest), "{}", ended.stderr);
    assert!(hub.requests().iter().all(|request| request.range.is_none()));

    // From here on it is pinned.
    hub.forget();
    let offline = fetch_own(&machine, &table, &["--offline", "--json"]).expect(0);
    assert_eq!(offline.json()["specs"][0]["files"][0]["sha256"], digest);
    fetch_own(&machine, &table, &[]).expect(0);
    assert_eq!(hub.requests().len(), 0);
    hub.fault("/first/", Fault::WrongBytes, Times::Always);
    let changed = fetch_own(&machine, &table, &["--force", "--retries", "0"]).expect(8);
    assert!(
        changed.stderr.contains("has the digest"),
        "{}",
        changed.stderr
    );
    fetch_own(&machine, &table, &["--offline"]).expect(0);
    machine.assert_trustworthy(&tiny_files());
}

#[test]
fn a_hub_pins_what_its_row_does_not() {
    let second = "2222222222222222222222222222222222222222";
    let repo = tiny()
        .branch("main")
        .commit(second)
        .file("config.json", "{\"second\": true}");
    let hub = Hub::new().repo(repo).serve();
    let machine = Machine::new(&hub);
    let files = tiny_files();
    let row = |name| RowFile {
        name,
        ..RowFile::default()
    };
    let table = manifest(&[Row {
        name: "own",
        hub: "org/tiny",
        files: files.keys().map(|name| row(name)).collect(),
    }]);
    let ended = fetch_own(&machine, &table, &["--origin", &hub.url()]).expect(0);
    for (name, content) in &files {
        let said = format!(
            "{name} of own has no pin in its table: pinned to sha256 {}",
            sha256(content)
        );
        assert!(ended.stderr.contains(&said), "{said}: {}", ended.stderr);
        let path = machine.place.path(&pinned_path("org", name, content));
        assert!(std::fs::read(path).unwrap() == *content);
    }
    assert_eq!(hub.requests_to("/revision/").len(), 1);
    // The branch moves on; the pins do not.
    hub.move_ref("org/tiny", "main", second);
    hub.forget();
    for args in [&["--offline"][..], &["--origin", &hub.url()]] {
        let again = fetch_own(&machine, &table, args).expect(0);
        assert_eq!(
            (again.stdout, again.stderr.as_str()),
            (ended.stdout.clone(), "")
        );
    }
    assert_eq!(hub.requests().len(), 0);
}

#[test]
fn a_row_of_the_hub_fails_as_the_hub_says() {
    let content = weights(1);
    let pinned = |name| RowFile {
        name,
        content: Some(&content[..]),
        ..RowFile::default()
    };
    let unpinned = |name| RowFile {
        name,
        ..RowFile::default()
    };
    // A gate that the row knows a way around.
    let around =
        |table: String| table.replace("license", "gated = true\nungated = \"hf:a/b\"\nlicense");
    let cases = [
        (
            "org/tiny",
            pinned("none.bin"),
            3,
            "`org/tiny` has no file `none.bin`",
        ),
        (
            "org/tiny",
            unpinned("none.bin"),
            3,
            "`org/tiny` has no file `none.bin`",
        ),
        (
            "org/tiny@v9",
            pinned("w.bin"),
            3,
            "`org/tiny` has no revision `v9`",
        ),
        ("org/none", pinned("w.bin"), 3, "no repository `org/none`"),
        (
            "org/gated",
            pinned("w.bin"),
            6,
            "or use `hf:a/b`, the same model without a gate",
        ),
        (
            "org/tiny",
            pinned("config.json"),
            8,
            "config.json has 42 bytes, not 200000",
        ),
    ];
    let gated = Repo::new("org/gated").file("w.bin", "w").gated();
    let hub = Hub::new().repo(tiny()).repo(gated).serve();
    for (repo, file, code, says) in cases {
        let machine = Machine::new(&hub);
        let table = around(manifest(&[Row {
            name: "own",
            hub: repo,
            files: vec![file],
        }]));
        let ended = fetch_own(&machine, &table, &["--origin", &hub.url()]).expect(code);
        assert!(ended.stderr.contains(says), "{says}: {}", ended.stderr);
        assert_eq!(machine.trusted().len(), 0);
        assert_eq!(machine.on_the_way(), [""; 0]);
    }
}

#[test]
fn what_the_hubs_cache_has_is_used_there() {
    let hub = Hub::new().repo(tiny()).serve();
    let machine = Machine::new(&hub);
    machine.fetch(&["hf:org/tiny"]).expect(0);
    let content = weights(1);
    let table = manifest(&[Row {
        name: "own",
        hub: "org/tiny",
        files: vec![RowFile {
            name: "model.safetensors",
            content: Some(&content),
            ..RowFile::default()
        }],
    }]);
    let ended = fetch_own(&machine, &table, &["--offline", "--json"]).expect(0);
    assert_eq!(ended.json()["specs"][0]["files"][0]["from"], "hf-cache");
    assert!(!machine.place.path(PINNED).exists());
}

#[test]
fn a_damaged_file_under_its_pin_is_named_and_replaced_by_force() {
    let hub = serve_both();
    let machine = Machine::new(&hub);
    let content = weights(1);
    let table = two_sources(&hub, Some(&content));
    fetch_own(&machine, &table, &[]).expect(0);
    let path = pinned_path("test", "w.bin", &content);
    machine.file(&path, b"cut");
    let ended = fetch_own(&machine, &table, &[]).expect(8);
    let says = format!("{path}` has 3 bytes, expected 200000");
    assert!(ended.stderr.contains(&says), "{}", ended.stderr);
    fetch_own(&machine, &table, &["--force"]).expect(0);
    fetch_own(&machine, &table, &["--verify", "--offline"]).expect(0);
}
