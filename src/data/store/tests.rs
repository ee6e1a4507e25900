use std::{fs, io::Write as _, path::Path};

use super::*;
use crate::data::{
    Content, Kind, PassedOver, Provenance, Sha256, Spec,
    fixture::{self, LINKED, Machine, TINY, content, factory},
};

fn bring(roots: &Roots, text: &str) -> Result<LocalFiles, Error> {
    let factory = factory();
    let plan = factory.resolve(&Spec::parse(text, roots)?)?.plan()?;
    fixture::store(roots).bring_local(&plan.found, &())
}

fn provenance(files: &LocalFiles) -> Provenance {
    files.get("weights").unwrap().provenance
}

fn pinned(machine: &Machine) -> PathBuf {
    let row = fixture::tiny();
    PinnedCache::new(machine.cache.path())
        .path("toy", row.resources.get("weights").unwrap())
        .unwrap()
}

fn write(path: &Path, bytes: &[u8]) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

/// Users' disks and installers depend on this path: it must never change.
#[test]
fn layout_is_pinned() {
    let resource = Resource {
        key: "weights".to_owned(),
        file: "tiny.en.pt".to_owned(),
        kind: Kind::OpenaiPt,
        namespace: "openai".to_owned(),
        sha256: Some(
            "d3dd57d32accea0b295c96e26691aa14d8822fac7d9d27d5dc00b4ca2826dd03"
                .parse()
                .unwrap(),
        ),
        size: None,
        sources: Vec::new(),
    };
    let cache = PinnedCache::new(Path::new("/cache"));
    assert_eq!(
        cache.path("whisper", &resource).unwrap(),
        Path::new(
            "/cache/pretrained/whisper/openai/d3dd57d32accea0b295c96e26691aa14d8822fac7d9d27d5dc00b4ca2826dd03/tiny.en.pt"
        )
    );
    let nested = Resource {
        file: "1_Pooling/config.json".to_owned(),
        ..resource.clone()
    };
    assert!(
        cache
            .path("embed", &nested)
            .unwrap()
            .ends_with("1_Pooling/config.json")
    );
    assert_eq!(
        cache.path(
            "whisper",
            &Resource {
                sha256: None,
                ..resource.clone()
            }
        ),
        None
    );
}

#[test]
fn pinned_path_comes_before_local_places() {
    let machine = Machine::new();
    write(&machine.upstream.path().join("tiny.pt"), TINY);
    let files = bring(&machine.roots(), "tiny").unwrap();
    assert_eq!(provenance(&files), Provenance::LocalDir);
    assert_eq!(
        files.get("weights").unwrap().path(),
        Some(machine.upstream.path().join("tiny.pt").as_path())
    );

    write(&pinned(&machine), TINY);
    let files = bring(&machine.roots(), "tiny").unwrap();
    assert_eq!(provenance(&files), Provenance::Cached);
    assert_eq!(content(&files), TINY);
}

#[test]
fn linked_bytes_are_used_in_place_and_nothing_is_written() {
    let machine = Machine::new();
    for roots in [machine.roots(), Roots::default()] {
        let files = bring(&roots, "bundled:tiny").unwrap();
        assert_eq!(provenance(&files), Provenance::Bundled);
        let Content::Bytes(bytes) = &files.get("weights").unwrap().content else {
            panic!("{files:?}")
        };
        assert_eq!(bytes.as_ptr(), LINKED.as_ptr());
    }
    assert_eq!(fs::read_dir(machine.cache.path()).unwrap().count(), 0);
}

#[test]
fn missing_file_names_its_places_and_the_linked_model() {
    let machine = Machine::new();
    let Err(Error::NotCached(missing)) = bring(&machine.roots(), "tiny") else {
        panic!("found")
    };
    assert_eq!(
        missing.places,
        [pinned(&machine), machine.upstream.path().join("tiny.pt")]
    );
    assert_eq!(missing.url.as_deref(), Some("https://example.org/tiny.pt"));
    assert_eq!(missing.instead, ["bundled:tiny"]);
    assert_eq!(missing.size, Some(TINY.len() as u64));

    let Err(Error::NotCached(missing)) = bring(&machine.roots(), "base") else {
        panic!("found")
    };
    assert!(missing.instead.is_empty());
}

#[test]
fn machine_without_a_home_says_what_to_set() {
    let error = bring(&Roots::default(), "base").unwrap_err();
    let hint = error.hint().unwrap();
    assert!(
        hint.starts_with("run `pretrained fetch base` where there is a network"),
        "{hint}"
    );
}

#[test]
fn file_of_another_length_is_refused_when_pinned_and_passed_over_when_not() {
    let machine = Machine::new();
    let upstream = machine.upstream.path().join("tiny.pt");
    write(&upstream, &TINY[..3]);
    let error = bring(&machine.roots(), "tiny").unwrap_err();
    assert!(error.to_string().contains("has 3 bytes, not 8"), "{error}");

    write(&pinned(&machine), &TINY[..3]);
    let error = bring(&machine.roots(), "tiny").unwrap_err();
    assert!(
        matches!(
            error,
            Error::WrongSize {
                expected: 8,
                found: 3,
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn directory_in_a_files_place_is_passed_over() {
    let machine = Machine::new();
    fs::create_dir_all(pinned(&machine)).unwrap();
    let Err(Error::NotCached(missing)) = bring(&machine.roots(), "tiny") else {
        panic!("found")
    };
    assert_eq!(
        missing.passed_over,
        [PassedOver {
            path: pinned(&machine),
            reason: "is not a file".to_owned()
        }]
    );
    write(&machine.upstream.path().join("tiny.pt"), TINY);
    assert_eq!(
        provenance(&bring(&machine.roots(), "tiny").unwrap()),
        Provenance::LocalDir
    );
}

#[test]
fn root_that_is_a_file_is_an_empty_cache() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let roots = Roots::default().with_cache(file.path(), "test");
    assert!(matches!(bring(&roots, "tiny"), Err(Error::NotCached(_))));
    assert!(bring(&roots, "bundled:tiny").is_ok());
}

#[test]
fn trusted_file_is_held_against_its_pin_only_when_asked() {
    let machine = Machine::new();
    let mut changed = TINY.to_vec();
    changed[5] ^= 1;
    for path in [machine.upstream.path().join("tiny.pt"), pinned(&machine)] {
        write(&path, &changed);
        let files = bring(&machine.roots(), "tiny").unwrap();
        let error = files.verify().unwrap_err();
        assert!(
            matches!(&error, Error::WrongDigest { linked: false, found, .. } if *found == Sha256::of(&changed))
        );
        assert!(error.to_string().contains(path.to_str().unwrap()));

        write(&path, TINY);
        bring(&machine.roots(), "tiny").unwrap().verify().unwrap();
    }
}

#[test]
fn given_file_has_no_pin_but_a_digest_on_request() {
    let mut file = tempfile::Builder::new().suffix(".pt").tempfile().unwrap();
    file.write_all(TINY).unwrap();
    let files = bring(&Roots::default(), file.path().to_str().unwrap()).unwrap();
    let weights = files.get("weights").unwrap();
    assert_eq!(
        (weights.provenance, weights.digest),
        (Provenance::Given, None)
    );
    files.verify().unwrap();
    assert_eq!(weights.compute_digest().unwrap(), Sha256::of(TINY));
}

#[cfg(unix)]
#[test]
fn read_only_root_serves_what_it_has() {
    use std::os::unix::fs::PermissionsExt;

    let machine = Machine::new();
    write(&pinned(&machine), TINY);
    let chmod = |mode| {
        let dirs = pinned(&machine);
        for dir in dirs
            .ancestors()
            .take_while(|dir| dir.starts_with(machine.cache.path()))
        {
            fs::set_permissions(dir, fs::Permissions::from_mode(mode)).unwrap();
        }
    };
    chmod(0o555);
    let files = bring(&machine.roots(), "tiny");
    chmod(0o755);
    assert_eq!(provenance(&files.unwrap()), Provenance::Cached);
}

#[test]
fn provenance_is_written_as_the_command_line_documents_it() {
    let all = [
        Provenance::Cached,
        Provenance::LocalDir,
        Provenance::HfCache,
        Provenance::Downloaded,
        Provenance::Bundled,
        Provenance::Given,
    ];
    assert_eq!(
        serde_json::to_string(&all).unwrap(),
        r#"["cached","local-dir","hf-cache","downloaded","bundled","given"]"#
    );
}
