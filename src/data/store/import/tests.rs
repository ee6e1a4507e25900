use super::*;
use crate::data::{
    GitBlob, Inventory,
    fixture::{self, TINY},
    hub::Entry,
};

const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

struct Target {
    root: tempfile::TempDir,
    pinned: PinnedCache,
    hub: HubCache,
}

impl Target {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        Self {
            pinned: PinnedCache::new(root.path()),
            hub: HubCache::new(root.path().join("hub")),
            root,
        }
    }

    fn import(&self, path: &Path) -> Result<Summary, Error> {
        let catalogs = [fixture::catalog()];
        let mut import = Import::new(&self.pinned, Some(&self.hub), &catalogs);
        import.add(path)?;
        import.finish()
    }

    fn files(&self) -> Vec<String> {
        let inventory = Inventory::of(Some(&self.pinned), Some(&self.hub)).unwrap();
        assert!(inventory.leftovers.is_empty(), "{inventory:?}");
        let pinned = inventory
            .pinned
            .iter()
            .map(|file| format!("{}/{}", file.kit, file.file));
        let hub = inventory.revisions.iter().flat_map(|revision| {
            let file =
                |file: &crate::data::inventory::HubFile| format!("{}:{}", revision.repo, file.path);
            revision.files.iter().map(file).collect::<Vec<_>>()
        });
        pinned.chain(hub).collect()
    }
}

fn zip(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, bytes) in members {
        let options = zip::write::SimpleFileOptions::default()
            .compression_method(zip::CompressionMethod::Deflated);
        writer.start_file(*name, options).unwrap();
        writer.write_all(bytes).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

fn tar(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, bytes) in members {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        builder.append_data(&mut header, name, *bytes).unwrap();
    }
    builder.into_inner().unwrap()
}

fn gz(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn files_are_recognised_by_their_digest_whatever_they_come_in() {
    let members: [(&str, &[u8]); 2] = [("some/where.bin", TINY), ("readme", b"read me")];
    let cases = [
        ("plain.pt", TINY.to_vec(), 0),
        ("wheel.whl", zip(&members), 2),
        ("kit.tar", tar(&members), 2),
        ("kit.tgz", gz(&tar(&members)), 2),
    ];
    for (name, bytes, unknown) in cases {
        let (target, from) = (Target::new(), tempfile::tempdir().unwrap());
        let path = from.path().join(name);
        fs::write(&path, bytes).unwrap();
        let summary = target.import(&path).unwrap();
        assert_eq!(target.files(), ["toy/tiny.pt"], "{name}");
        // An archive is a file itself, and no model.
        assert_eq!(summary.unknown, unknown, "{name}");
        assert_eq!(summary.bytes, TINY.len() as u64);
        // What is there already is not written again.
        assert_eq!(target.import(&path).unwrap().bytes, 0);
    }
}

#[test]
fn directory_is_walked_and_links_out_of_it_are_followed() {
    let (target, from) = (Target::new(), tempfile::tempdir().unwrap());
    let elsewhere = tempfile::NamedTempFile::new().unwrap();
    fs::write(elsewhere.path(), TINY).unwrap();
    fs::create_dir(from.path().join("sub")).unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink(elsewhere.path(), from.path().join("sub/x")).unwrap();
    #[cfg(not(unix))]
    fs::copy(elsewhere.path(), from.path().join("sub/x")).unwrap();
    target.import(from.path()).unwrap();
    assert_eq!(target.files(), ["toy/tiny.pt"]);
}

#[test]
fn path_of_a_pinned_cache_is_taken_at_its_word_only_when_it_is_true() {
    let (target, from) = (Target::new(), tempfile::tempdir().unwrap());
    let digest = Sha256::of(b"abc");
    let path = format!("kit/pretrained/embed/acme/{digest}/1_Pooling/config.json");
    let archive = tar(&[(&path, b"abc"), (&path.replace("config", "other"), b"abd")]);
    let file = from.path().join("kit.tar");
    fs::write(&file, archive).unwrap();
    let summary = target.import(&file).unwrap();
    assert_eq!(target.files(), ["embed/1_Pooling/config.json"]);
    assert_eq!(summary.damaged.len(), 1);
}

#[test]
fn hub_cache_is_put_together_again() {
    let (target, from) = (Target::new(), tempfile::tempdir().unwrap());
    let repo: RepoId = "org/repo".parse().unwrap();
    let entry = |bytes: &[u8]| Entry {
        size: bytes.len() as u64,
        blob_id: GitBlob::of(bytes),
        lfs_sha256: None,
        lfs_size: None,
    };
    let files = [
        ("config.json", entry(b"{}")),
        ("a/b.txt", entry(b"{}")),
        ("gone", entry(b"x")),
    ];
    let files = files.map(|(path, entry)| (path.to_owned(), entry));
    let listing = Listing::new(repo, COMMIT.parse().unwrap(), files.into()).unwrap();
    let dir = "hub/models--org--repo";
    let id = GitBlob::of(b"{}");
    let mut builder = tar::Builder::new(tar(&[
        (
            &format!("{dir}/.pretrained/{COMMIT}.json"),
            listing.to_json().as_bytes(),
        ),
        (&format!("{dir}/blobs/{id}"), b"{}"),
        (&format!("{dir}/blobs/{}", GitBlob::of(b"x")), b"damaged"),
        (&format!("{dir}/refs/main"), COMMIT.as_bytes()),
        (&format!("{dir}/snapshots/{COMMIT}/a/b.txt"), b"{}"),
    ]));
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(tar::EntryType::Symlink);
    header.set_size(0);
    let bytes = builder.get_mut();
    bytes.truncate(bytes.len() - 1024);
    let link = format!("{dir}/snapshots/{COMMIT}/config.json");
    builder
        .append_link(&mut header, link, format!("../../blobs/{id}"))
        .unwrap();
    let file = from.path().join("kit.tar");
    fs::write(&file, builder.into_inner().unwrap()).unwrap();

    let summary = target.import(&file).unwrap();
    assert_eq!(target.files(), ["org/repo:a/b.txt", "org/repo:config.json"]);
    assert_eq!(summary.damaged.len(), 1);
    let snapshot = target.hub.snapshot(&"org/repo".parse().unwrap()).unwrap();
    assert!(snapshot.file("config.json").is_some() && !snapshot.unfinished);
    drop(target.root);
}

#[test]
fn hostile_names_lead_nowhere() {
    let digest = Sha256::of(b"abc");
    for name in [
        format!("../../{digest}/x"),
        format!("a/../{digest}/x"),
        format!("/a/b/{digest}/x"),
        format!("a/b/{digest}/../x"),
        format!("a/b/{digest}"),
        "models--org--repo/snapshots/main/x".to_owned(),
        "models--../refs/main".to_owned(),
        "models--org--repo/refs/../x".to_owned(),
        String::new(),
    ] {
        assert_eq!(role(&name), Role::Other, "{name}");
    }
}
