//! A machine that fetches from a hub of the test's own, and what may lie on its disk afterwards.

#![allow(dead_code, reason = "each test file uses a part of this")]
#![allow(
    clippy::unwrap_used,
    reason = "this is test code, though no function here is a test"
)]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use sha1::Sha1;
use sha2::{Digest, Sha256};

use crate::hub::{Repo, Server};
use crate::program::{Ended, Place};

/// The hub's cache in a home.
pub(crate) const HUB: &str = ".cache/huggingface/hub";
/// `org/tiny` in it.
pub(crate) const TINY: &str = ".cache/huggingface/hub/models--org--tiny";
/// The pinned cache in a home.
pub(crate) const PINNED: &str = ".cache/pretrained";

/// Length of [`weights`] in bytes.
pub(crate) const WEIGHTS_BYTES: u64 = 200_000;

/// Files by path.
pub(crate) type Files = BTreeMap<String, Vec<u8>>;

/// A machine with a home of its own, and the address of its hub.
pub(crate) struct Machine {
    pub(crate) place: Place,
    endpoint: String,
}

impl Machine {
    pub(crate) fn new(hub: &Server) -> Self {
        Self {
            place: Place::new(),
            endpoint: hub.url(),
        }
    }

    /// `pretrained fetch` with `args`, which may ask the hub; nothing but errors on stderr.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let args: Vec<_> = ["fetch", "--quiet"].iter().chain(args).copied().collect();
        let mut command = self.place.command(&args);
        command
            .env_remove("PRETRAINED_OFFLINE")
            .env("HF_ENDPOINT", &self.endpoint);
        command
    }

    pub(crate) fn fetch(&self, args: &[&str]) -> Ended {
        self.place.end(&mut self.command(args))
    }

    /// The same with variables set.
    pub(crate) fn fetch_with(&self, vars: &[(&str, &str)], args: &[&str]) -> Ended {
        self.place
            .end(self.command(args).envs(vars.iter().copied()))
    }

    pub(crate) fn fetch_offline(&self, args: &[&str]) -> Ended {
        self.fetch_with(&[("PRETRAINED_OFFLINE", "1")], args)
    }

    /// Writes a file in the home and gives its path.
    pub(crate) fn file(&self, name: &str, bytes: &[u8]) -> String {
        self.place.file(name, bytes);
        self.place.path(name).to_str().unwrap().to_owned()
    }

    /// Every file in the caches by its path in the home; a link that leads nowhere has no bytes.
    pub(crate) fn cached(&self) -> Files {
        let mut files = Files::new();
        collect(&self.place.path(".cache"), ".cache", &mut files);
        files
    }

    /// The files that a reader would trust, less the references.
    pub(crate) fn trusted(&self) -> Files {
        let mut files = self.cached();
        files.retain(|path, _| matches!(Role::of(path), Role::Blob(_) | Role::Snapshot));
        files
    }

    /// The files that are on their way, or were.
    pub(crate) fn on_the_way(&self) -> Vec<String> {
        let files = self.cached().into_keys();
        files
            .filter(|path| matches!(Role::of(path), Role::OnTheWay))
            .collect()
    }

    /// Asserts that whatever a reader would trust is right: a blob has the content of its name, and a snapshot's file is
    /// one of `published`, in which it is by its path in the repository.
    #[track_caller]
    pub(crate) fn assert_trustworthy(&self, published: &Files) {
        for (path, bytes) in self.cached() {
            match Role::of(&path) {
                Role::Blob(id) => assert!(
                    id == git_blob(&bytes) || id == sha256(&bytes),
                    "{path} has other content, {} bytes",
                    bytes.len()
                ),
                Role::Snapshot => {
                    let file = path.splitn(7, '/').last().unwrap();
                    assert_eq!(Some(&bytes), published.get(file), "{path}");
                }
                Role::Reference => assert_eq!(bytes.len(), 40, "{path}"),
                Role::OnTheWay | Role::Other => {}
            }
        }
    }

    /// Asserts that the snapshot [`COMMIT`] of `org/tiny` holds just `expected`, and that nothing is on its way.
    #[track_caller]
    pub(crate) fn assert_snapshot(&self, expected: &Files) {
        let mut files = Files::new();
        collect(
            &self.place.path(&format!("{TINY}/snapshots/{COMMIT}")),
            "",
            &mut files,
        );
        let names = |files: &Files| files.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&files), names(expected));
        assert!(files == *expected, "content differs");
        assert_eq!(self.on_the_way(), [""; 0]);
    }
}

/// What a file of the caches is, by its path.
enum Role<'a> {
    /// Named by its content: a blob of the hub's cache, or a file under its pin.
    Blob(&'a str),
    Snapshot,
    Reference,
    OnTheWay,
    /// A lock, a listing, a tag.
    Other,
}

impl<'a> Role<'a> {
    fn of(path: &'a str) -> Self {
        let name = path.rsplit('/').next().unwrap();
        if [".incomplete", ".partial", ".tmp"]
            .iter()
            .any(|ending| name.ends_with(ending))
        {
            return Self::OnTheWay;
        }
        let parts: Vec<_> = path.split('/').collect();
        match parts.as_slice() {
            [".cache", "huggingface", "hub", _, "blobs", id] => Self::Blob(id),
            [".cache", "huggingface", "hub", _, "snapshots", ..] => Self::Snapshot,
            [".cache", "huggingface", "hub", _, "refs", ..] => Self::Reference,
            [".cache", "pretrained", _, _, id, ..] if id.len() == 64 => Self::Blob(id),
            _ => Self::Other,
        }
    }
}

fn collect(dir: &Path, prefix: &str, files: &mut Files) {
    let Ok(entries) = std::fs::read_dir(dir) else {
        return;
    };
    for entry in entries {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        let name = match prefix {
            "" => name.to_owned(),
            prefix => format!("{prefix}/{name}"),
        };
        if path.is_dir() {
            collect(&path, &name, files);
        } else {
            files.insert(name, std::fs::read(path).unwrap_or_default());
        }
    }
}

/// Bytes that look like weights: none like the next, the same every time.
pub(crate) fn weights(seed: u64) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut bytes = vec![0; usize::try_from(WEIGHTS_BYTES).unwrap()];
    random.fill(&mut bytes);
    bytes
}

/// A repository as the embedders' are, with weights in large-file storage.
pub(crate) fn tiny() -> Repo {
    Repo::new("org/tiny")
        .commit(COMMIT)
        .file("README.md", "read me")
        .file("onnx/model.onnx", "onnx")
        .file("config.json", CONFIG)
        .file("1_Pooling/config.json", "{}")
        .lfs("model.safetensors", weights(1))
}

/// The commit of [`tiny`].
pub(crate) const COMMIT: &str = "1111111111111111111111111111111111111111";

const CONFIG: &str = "{\"model_type\": \"bert\", \"hidden_size\": 384}";

/// What is fetched of [`tiny`] when nothing else is said.
pub(crate) fn tiny_files() -> Files {
    let files: [(&str, Vec<u8>); 3] = [
        ("1_Pooling/config.json", b"{}".to_vec()),
        ("config.json", CONFIG.into()),
        ("model.safetensors", weights(1)),
    ];
    files.map(|(path, bytes)| (path.to_owned(), bytes)).into()
}

/// A file of a table of the user's.
#[derive(Clone, Default)]
pub(crate) struct Row<'a> {
    pub(crate) name: &'a str,
    /// A repository of the hub that has its files.
    pub(crate) hub: &'a str,
    pub(crate) files: Vec<RowFile<'a>>,
}

/// A file of a row.
#[derive(Clone, Default)]
pub(crate) struct RowFile<'a> {
    pub(crate) name: &'a str,
    /// What pins it.
    pub(crate) content: Option<&'a [u8]>,
    /// Where it is published.
    pub(crate) urls: Vec<String>,
}

/// A table of rows.
pub(crate) fn manifest(rows: &[Row<'_>]) -> String {
    let mut text = "schema = 1\nkit = \"whisper\"\n".to_owned();
    for row in rows {
        let Row { name, hub, files } = row;
        write!(
            text,
            "[[row]]\nname = \"{name}\"\nlicense = \"MIT\"\norigin = \"here\"\n"
        )
        .unwrap();
        if !hub.is_empty() {
            writeln!(text, "hub = \"{hub}\"").unwrap();
        }
        for (i, file) in files.iter().enumerate() {
            let name = file.name;
            writeln!(
                text,
                "[[row.resource]]\nkey = \"k{i}\"\nfile = \"{name}\"\nkind = \"json\""
            )
            .unwrap();
            if let Some(content) = file.content {
                let (digest, size) = (sha256(content), content.len());
                writeln!(text, "sha256 = \"{digest}\"\nsize = {size}").unwrap();
            }
            if !file.urls.is_empty() {
                let urls: Vec<_> = file
                    .urls
                    .iter()
                    .map(|url| format!("{{ url = \"{url}\" }}"))
                    .collect();
                writeln!(
                    text,
                    "namespace = \"test\"\nsources = [{}]",
                    urls.join(", ")
                )
                .unwrap();
            }
        }
    }
    text
}

/// Where a file that `content` pins is in the pinned cache of a home.
pub(crate) fn pinned_path(namespace: &str, file: &str, content: &[u8]) -> String {
    format!("{PINNED}/whisper/{namespace}/{}/{file}", sha256(content))
}

pub(crate) fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

pub(crate) fn git_blob(bytes: &[u8]) -> String {
    let header = format!("blob {}\0", bytes.len());
    hex(&Sha1::new_with_prefix(header).chain_update(bytes).finalize())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Runs `check` over all of `cases`, several at a time for they mostly wait, and names every one that fails.
pub(crate) fn each<C: Sync>(
    cases: &[C],
    name: impl Fn(&C) -> String + Sync,
    check: impl Fn(&C) + Sync,
) {
    let next = AtomicUsize::new(0);
    let failed = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..cases.len().min(6) {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let checked = catch_unwind(AssertUnwindSafe(|| check(case)));
                    if let Err(panic) = checked {
                        let said = panic.downcast_ref::<String>().cloned().unwrap_or_default();
                        failed
                            .lock()
                            .unwrap()
                            .push(format!("{}: {said}", name(case)));
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap();
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
}
