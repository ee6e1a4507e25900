//! Several processes that fetch the same at one time.
#![cfg(feature = "net")]
#![allow(
    clippy::unwrap_used,
    reason = "this is test code, though not every function is a test"
)]

mod fetching;
mod hub;
mod program;

use std::process::{Child, Command};
use std::time::{Duration, Instant};

use fetching::{Machine, Row, RowFile, TINY, manifest, tiny, tiny_files, weights};
use hub::{Fault, Hub, Server, Times};
use program::Ended;

const PROCESSES: usize = 8;

fn end(child: Child) -> Ended {
    let output = child.wait_with_output().unwrap();
    Ended {
        code: output.status.code().expect("ended by itself"),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// The same with what it has to say besides errors.
fn talking(machine: &Machine, hub: &Server, args: &[&str]) -> Command {
    let args: Vec<_> = ["fetch"].iter().chain(args).copied().collect();
    let mut command = machine.place.command(&args);
    command
        .env_remove("PRETRAINED_OFFLINE")
        .env("HF_ENDPOINT", hub.url());
    command
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let since = Instant::now();
    while !is_so() {
        assert!(since.elapsed() < Duration::from_secs(30), "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn each_file_comes_once_for_all() {
    let hub = Hub::new()
        .repo(tiny())
        .static_file("pinned.bin", weights(3))
        .static_file("unpinned.bin", weights(4))
        .serve();
    let content = weights(3);
    let url = |name, content| RowFile {
        name,
        content,
        urls: vec![hub.static_url(name)],
    };
    let table = manifest(&[Row {
        name: "own",
        hub: "org/tiny",
        files: vec![
            url("pinned.bin", Some(&content)),
            url("unpinned.bin", None),
            RowFile {
                name: "model.safetensors",
                ..RowFile::default()
            },
        ],
    }]);
    let specs: [(&[&str], &[&str], usize); 2] = [
        (
            &["hf:org/tiny"],
            &["1/config.json", "g/config.json", "/cdn/"],
            6,
        ),
        (
            &["own", "--manifest", "t.toml", "--allow-unpinned"],
            &["/pinned.bin", "/unpinned.bin", "/cdn/"],
            3,
        ),
    ];
    for (args, files, trusted) in specs {
        hub.forget();
        hub.fault("", Fault::SlowBody(500_000), Times::Always);
        let machine = Machine::new(&hub);
        machine.file("t.toml", table.as_bytes());
        let children: Vec<_> = (0..PROCESSES)
            .map(|_| machine.command(args).spawn().unwrap())
            .collect();
        let ended: Vec<_> = children
            .into_iter()
            .map(|child| end(child).expect(0))
            .collect();
        assert!(
            ended.iter().all(|it| it.stdout == ended[0].stdout),
            "{ended:#?}"
        );
        for file in files {
            let requests = hub.requests_to(file);
            assert_eq!(requests.len(), 1, "{file}: {requests:#?}");
        }
        machine.assert_trustworthy(&tiny_files());
        assert_eq!(machine.trusted().len(), trusted);
        assert_eq!(machine.on_the_way(), [""; 0]);
        hub.mend();
        machine.fetch_offline(args).expect(0);
    }
}

#[test]
fn one_that_dies_with_the_lock_does_not_keep_the_others() {
    let hub = Hub::new().repo(tiny()).serve();
    let machine = Machine::new(&hub);
    hub.fault("/cdn/", Fault::Hang(Duration::from_secs(600)), Times::Once);
    let mut first = machine.command(&["hf:org/tiny"]).spawn().unwrap();
    wait_until("the first asks", || hub.requests_to("/cdn/").len() == 1);

    let began = Instant::now();
    for timeout in ["1", "0"] {
        let args = ["hf:org/tiny", "--lock-timeout", timeout];
        let ended = machine.fetch(&args).expect(13);
        let line = ended.error_line();
        let holder = format!("is locked by process {}", first.id());
        assert!(line.contains("pretrained.lock"), "{line}");
        assert!(line.contains(&holder), "{line}");
    }
    let took = began.elapsed();
    assert!((1..10).contains(&took.as_secs()), "{took:?}");

    let mut others: Vec<_> = (0..3)
        .map(|_| talking(&machine, &hub, &["hf:org/tiny"]).spawn().unwrap())
        .collect();
    std::thread::sleep(Duration::from_millis(500));
    for other in &mut others {
        assert!(other.try_wait().unwrap().is_none(), "it waits");
    }
    let waiting = format!(
        "waiting for process {}, which is fetching org/tiny",
        first.id()
    );
    first.kill().unwrap();
    first.wait().unwrap();
    for other in others {
        let ended = end(other).expect(0);
        assert!(ended.stderr.contains(&waiting), "{}", ended.stderr);
    }
    assert_eq!(hub.requests_to("/cdn/").len(), 2);
    machine.assert_snapshot(&tiny_files());
}

#[test]
fn what_is_here_is_used_while_another_process_fetches() {
    let second = "2222222222222222222222222222222222222222";
    let repo = tiny()
        .branch("main")
        .commit(second)
        .lfs("model.safetensors", weights(2));
    let hub = Hub::new().repo(repo).serve();
    let machine = Machine::new(&hub);
    let here = machine.fetch(&["hf:org/tiny"]).expect(0).stdout;
    hub.move_ref("org/tiny", "main", second);
    hub.fault(
        "/cdn/",
        Fault::Hang(Duration::from_secs(600)),
        Times::Always,
    );
    let before = hub.requests_to("/cdn/").len();
    let mut refreshing = machine
        .command(&["hf:org/tiny", "--refresh"])
        .spawn()
        .unwrap();
    wait_until("the refresh asks", || {
        hub.requests_to("/cdn/").len() > before
    });
    let args = ["hf:org/tiny", "--lock-timeout", "0"];
    assert_eq!(machine.fetch(&args).expect(0).stdout, here);
    assert_eq!(machine.fetch_offline(&args).expect(0).stdout, here);
    refreshing.kill().unwrap();
    refreshing.wait().unwrap();
    assert!(machine.place.path(&format!("{TINY}/refs/main")).exists());
}
