use std::sync::Mutex;

use super::*;
use crate::data::{Content, ContentId, Kind, LocalFile, Provenance, Sha256};

/// What was said.
#[derive(Default)]
struct Notes(Mutex<Vec<String>>);

impl Observer for Notes {
    fn note(&self, text: &str) {
        self.0.lock().unwrap().push(text.to_owned());
    }
}

impl Notes {
    fn count(&self) -> usize {
        self.0.lock().unwrap().len()
    }
}

fn weights(bytes: &[u8]) -> WeightsIdentity {
    let file = LocalFile {
        key: "weights".to_owned(),
        file: "model.safetensors".to_owned(),
        kind: Kind::Safetensors,
        provenance: Provenance::Cached,
        digest: Some(Sha256::of(bytes)),
        git_blob: None,
        content: Content::Path("/no/such/file".into()),
    };
    file.identity().unwrap()
}

fn store(dir: &Path) -> DerivedStore {
    DerivedStore::new(&Roots::default().with_cache(dir, "test"))
}

fn open(store: &DerivedStore) -> Derived {
    store.open(Some(&weights(b"w")), "recipe-1")
}

/// Keeps `blobs`, and says nothing.
fn keep(store: &DerivedStore, blobs: &[(&str, &[u8])]) {
    let notes = Notes::default();
    let derived = open(store);
    for (name, bytes) in blobs {
        derived.add(name, bytes);
    }
    derived.finish(&notes);
    assert_eq!(*notes.0.lock().unwrap(), Vec::<String>::new());
}

/// The file that [`keep`] writes.
fn path(store: &DerivedStore) -> PathBuf {
    open(store).target.unwrap().path
}

fn get(store: &DerivedStore, name: &str) -> Option<Vec<u8>> {
    open(store).get(name).map(|bytes| bytes.to_vec())
}

#[test]
fn what_was_kept_is_there_at_the_beginning_of_a_page() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path());
    assert_eq!(get(&store, "a"), None);
    keep(&store, &[("a", &[7; 5000]), ("b", b"bee"), ("", b"")]);
    let derived = open(&store);
    for (name, bytes) in [("a", &[7; 5000][..]), ("b", b"bee"), ("", b"")] {
        let found = derived.get(name).unwrap();
        assert_eq!(found, bytes, "{name}");
        assert_eq!(found.as_ptr().addr() % file::ALIGNMENT, 0, "{name}");
    }
    assert_eq!(derived.get("c"), None);
    let digest = Sha256::of(b"w");
    let expected = format!("pretrained/derived/{digest}/recipe-1/blobs.1");
    assert!(dir.path().join(expected).is_file());
    assert!(dir.path().join("pretrained/CACHEDIR.TAG").is_file());
}

#[test]
fn other_weights_and_other_recipes_are_apart() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path());
    keep(&store, &[("a", b"1")]);
    assert!(
        store
            .open(Some(&weights(b"x")), "recipe-1")
            .get("a")
            .is_none()
    );
    assert!(
        store
            .open(Some(&weights(b"w")), "recipe-2")
            .get("a")
            .is_none()
    );
    // Not even a file that was moved there counts.
    let other = store.open(Some(&weights(b"w")), "recipe-2").target.unwrap();
    fs::create_dir_all(other.path.parent().unwrap()).unwrap();
    fs::copy(path(&store), &other.path).unwrap();
    assert!(
        store
            .open(Some(&weights(b"w")), "recipe-2")
            .get("a")
            .is_none()
    );
}

#[test]
fn what_is_added_later_joins_what_was_there() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path());
    keep(&store, &[("a", b"1"), ("b", b"2")]);
    let before = open(&store);
    keep(&store, &[("b", b"new"), ("c", b"3"), ("c", b"second")]);
    let found = ["a", "b", "c"].map(|name| get(&store, name).unwrap());
    assert_eq!(found, [b"1".to_vec(), b"new".to_vec(), b"3".to_vec()]);
    assert_eq!(before.get("b").unwrap(), b"2"[..]);
}

#[test]
fn damaged_files_are_derived_anew() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path());
    keep(&store, &[("a", &[1; 10])]);
    let path = path(&store);
    let whole = fs::read(&path).unwrap();
    let mut flipped = whole.clone();
    flipped[whole.len() - 40] ^= 1;
    let damaged: [&[u8]; 6] = [
        b"",
        b"x",
        &whole[..whole.len() - 1],
        &whole[..4096],
        &flipped,
        &[0; 10_000],
    ];
    for bytes in damaged {
        fs::write(&path, bytes).unwrap();
        assert_eq!(get(&store, "a"), None, "{} bytes", bytes.len());
        keep(&store, &[("a", &[1; 10])]);
        assert_eq!(get(&store, "a"), Some(vec![1; 10]));
    }
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    assert_eq!(get(&store, "a"), None);
}

#[test]
fn of_two_at_once_the_last_to_finish_is_kept_and_the_others_map_stays() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path());
    let (first, second) = (open(&store), open(&store));
    first.add("a", b"first");
    second.add("a", b"second");
    assert_eq!(get(&store, "a"), None);
    first.finish(&());
    let mapped = open(&store).get("a").unwrap();
    second.finish(&());
    assert_eq!(mapped, b"first"[..]);
    assert_eq!(get(&store, "a").unwrap(), b"second");
    let left = fs::read_dir(path(&store).parent().unwrap()).unwrap();
    assert_eq!(left.count(), 1);
}

#[test]
fn threads_may_add_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path());
    let derived = open(&store);
    std::thread::scope(|scope| {
        for thread in 0..4_u8 {
            let derived = &derived;
            scope.spawn(move || derived.add(&thread.to_string(), &vec![thread; 5000]));
        }
    });
    derived.finish(&());
    for thread in 0..4_u8 {
        let found = get(&store, &thread.to_string());
        assert_eq!(found, Some(vec![thread; 5000]));
    }
}

#[test]
fn an_unfinished_file_leaves_nothing_and_an_abandoned_one_is_swept() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path());
    let names = || {
        let entries = fs::read_dir(path(&store).parent().unwrap()).unwrap();
        let names: Vec<_> = entries.map(|it| it.unwrap().file_name()).collect();
        names
    };
    let derived = open(&store);
    derived.add("a", b"1");
    assert_eq!(names().len(), 1);
    drop(derived);
    assert!(names().is_empty());
    let left = path(&store).with_file_name(".blobs.1.AbCd12.tmp");
    fs::write(left, b"half").unwrap();
    keep(&store, &[("a", b"1")]);
    assert_eq!(names(), ["blobs.1"]);
}

#[test]
fn a_store_that_is_off_leaves_no_trace() {
    let (store, notes) = (DerivedStore::none(), Notes::default());
    assert_eq!(store.root(), None);
    let derived = open(&store);
    assert_eq!(derived.get("a"), None);
    derived.add("a", b"1");
    derived.finish(&notes);
    assert_eq!(notes.count(), 0);
}

#[test]
fn weights_that_nothing_is_known_of_have_nothing_kept() {
    let dir = tempfile::tempdir().unwrap();
    let (store, notes) = (store(dir.path()), Notes::default());
    let derived = store.open(None, "recipe-1");
    derived.add("a", b"1");
    derived.finish(&notes);
    assert_eq!(notes.count(), 0);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn what_cannot_be_kept_is_said_once_and_stops_nothing() {
    let dir = tempfile::tempdir().unwrap();
    // A file in the place of a directory stops even the superuser.
    fs::write(dir.path().join("pretrained"), b"").unwrap();
    let nowhere = DerivedStore::new(&Roots::default());
    for store in [store(dir.path()), nowhere] {
        let notes = Notes::default();
        for _ in 0..2 {
            let derived = open(&store);
            assert_eq!(derived.get("a"), None);
            derived.add("a", b"1");
            derived.add("b", b"2");
            derived.finish(&notes);
        }
        assert_eq!(notes.count(), 1);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let (store, notes) = (store(dir.path()), Notes::default());
    let derived = open(&store);
    let writer = Writer::create(&path(&store), Table::new("recipe-1", &[])).unwrap();
    *derived.written.lock().unwrap() = Written::Blobs(writer.on_a_full_disk());
    derived.add("a", b"1");
    derived.finish(&notes);
    assert!(notes.0.lock().unwrap()[0].contains("No space left"));
    let left = fs::read_dir(path(&store).parent().unwrap()).unwrap();
    assert_eq!(left.count(), 0);
}

#[test]
#[should_panic(expected = "a recipe is the name of a directory")]
fn a_recipe_cannot_lead_elsewhere() {
    DerivedStore::none().open(None, "../x");
}

#[test]
fn contents_tell_what_is_of_use() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path());
    assert_eq!(store.contents().unwrap(), []);
    keep(&store, &[("a", b"1")]);
    let good = path(&store);
    let busy = open(&store);
    busy.add("b", b"2");
    let write = |name: &str| {
        let path = good.with_file_name(name);
        fs::write(&path, b"half").unwrap();
        path
    };
    let (old, abandoned) = (write("blobs.0"), write(".blobs.1.AbCd12.tmp"));
    write("a stranger's");
    let contents = store.contents().unwrap();
    let paths: Vec<_> = contents.iter().map(|file| file.path.clone()).collect();
    assert_eq!(paths, [abandoned, old, good.clone()]);
    let whole: Vec<_> = contents.iter().map(DerivedFile::is_whole).collect();
    assert_eq!(whole, [false, false, true]);
    assert_eq!(contents[2].weights, Sha256::of(b"w").to_string());
    assert_eq!(contents[2].recipe, "recipe-1");
    let digest = ContentId::Sha256(Sha256::of(b"w"));
    for (known, expected) in [(vec![digest], [false, false, true]), (vec![], [false; 3])] {
        let known = known.into_iter().collect();
        let of_use: Vec<_> = contents.iter().map(|it| it.is_of_use(&known)).collect();
        assert_eq!(of_use, expected);
    }
    store.forget(&weights(b"x"));
    assert!(good.exists());
    store.forget(&weights(b"w"));
    assert!(!good.exists());
}
