//! A fetch that is killed at any moment leaves nothing wrong behind, and the next one completes it.
#![cfg(feature = "net")]
#![allow(
    clippy::unwrap_used,
    reason = "this is test code, though not every function is a test"
)]

mod fetching;
mod hub;
mod program;

use std::process::Stdio;
use std::time::Duration;

use fetching::{Files, Machine, Row, RowFile, each, manifest, tiny, tiny_files, weights};
use hub::{Fault, Hub, Server, Times};

/// Kills altogether, and those of one machine after another.
const KILLS: u32 = 50;
const MACHINES: u32 = 10;

/// The latest moment of a kill, and how long a file takes to come.
const LATEST: Duration = Duration::from_millis(500);
const BYTES_PER_SEC: u64 = 350_000;

/// A repository with three files, two of them large, and a row of three more: by a pin, by nothing, by a hub.
struct World {
    hub: Server,
    machine: Machine,
    published: Files,
    args: Vec<&'static str>,
}

impl World {
    fn new(kind: u32) -> Self {
        let hub = Hub::new()
            .repo(tiny().lfs("2_Dense/model.safetensors", weights(2)))
            .static_file("pinned.bin", weights(3))
            .static_file("unpinned.bin", weights(4))
            .serve();
        let machine = Machine::new(&hub);
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
        machine.file("t.toml", table.as_bytes());
        let mut published = tiny_files();
        published.insert("2_Dense/model.safetensors".to_owned(), weights(2));
        Self {
            hub,
            machine,
            published,
            args: match kind {
                0 => vec!["hf:org/tiny"],
                _ => vec!["own", "--manifest", "t.toml", "--allow-unpinned"],
            },
        }
    }

    /// Kills a fetch after `moment`, and says whether it was not done by then.
    fn kill(&self, moment: Duration) -> bool {
        self.hub
            .fault("", Fault::SlowBody(BYTES_PER_SEC), Times::Always);
        let mut command = self.machine.command(&self.args);
        let mut child = command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(moment);
        child.kill().unwrap();
        self.hub.mend();
        match child.wait().unwrap().code() {
            None | Some(1) => true,
            Some(code) => {
                assert_eq!(code, 0);
                false
            }
        }
    }

    /// What is here is right, and is used only when it is whole.
    fn check(&self) {
        self.machine.assert_trustworthy(&self.published);
        let ended = self.machine.fetch_offline(&self.args);
        if ended.code == 0 {
            self.assert_whole();
        } else {
            let ended = ended.expect(4);
            let line = ended.error_line();
            assert!(line.contains("is not on this machine"), "{line}");
        }
        let on_the_way = self.machine.on_the_way();
        let large = on_the_way.iter().filter(|path| !path.ends_with(".tmp"));
        assert!(large.count() <= self.published.len(), "{on_the_way:#?}");
    }

    fn assert_whole(&self) {
        if self.args[0] == "own" {
            assert_eq!(self.machine.trusted().len(), 3);
        } else {
            let files = self.machine.trusted().into_iter();
            let snapshot = files.filter(|(path, _)| path.contains("/snapshots/"));
            assert_eq!(snapshot.count(), self.published.len());
        }
    }

    fn complete(&self) {
        self.machine.fetch(&self.args).expect(0);
        self.machine.assert_trustworthy(&self.published);
        self.assert_whole();
        assert_eq!(self.machine.on_the_way(), [""; 0]);
        self.machine.fetch_offline(&self.args).expect(0);
    }
}

#[test]
fn whatever_the_moment_of_the_kill() {
    let seeds: Vec<_> = (0..MACHINES).collect();
    let in_the_middle = std::sync::atomic::AtomicU32::new(0);
    each(
        &seeds,
        |seed| format!("seed {seed}"),
        |&seed| {
            let mut random = fastrand::Rng::with_seed(seed.into());
            let mut world = World::new(seed % 2);
            for _ in 0..KILLS / MACHINES {
                if world.kill(LATEST.mul_f64(random.f64())) {
                    in_the_middle.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                }
                world.check();
                // What was killed more than once is completed as well.
                if random.bool() {
                    world.complete();
                    world = World::new(seed % 2);
                }
            }
            world.complete();
        },
    );
    let in_the_middle = in_the_middle.into_inner();
    assert!(
        in_the_middle > KILLS / 2,
        "only {in_the_middle} were not done"
    );
}
