//! What was derived from weights, kept for the next start.

mod contents;
mod file;
mod identity;
mod map;

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use bytes::Bytes;

use self::file::{Table, VERSION, Writer};
pub use self::{contents::DerivedFile, identity::WeightsIdentity};
use super::{Error, Observer, Roots, disk};

/// The directory of the store in the cache.
pub(super) const DIRECTORY: &str = "derived";

/// Data derived from weights, such as weights laid out for one kernel: named runs of bytes, written once and mapped into
/// memory afterwards.
///
/// ```text
/// <root>/pretrained/derived/<weights>/<recipe>/blobs.1                   the data; 1 is the version of its form
/// <root>/pretrained/derived/<weights>/<recipe>/.blobs.1.<random>.tmp     on its way, locked by its writer
/// ```
///
/// Nothing here is needed: what is missing, damaged, of another version or cannot be written is derived anew, and is no
/// error. Several processes may derive the same at once; the last to finish is kept, and whoever has mapped another goes on
/// with that.
#[derive(Clone, Debug)]
pub struct DerivedStore {
    place: Place,
    has_warned: Arc<AtomicBool>,
}

#[derive(Clone, Debug)]
enum Place {
    /// Nobody wants anything kept.
    Off,
    /// There is no cache.
    Nowhere,
    Directory(PathBuf),
}

/// What is derived from some weights by one recipe: read from the store, or on its way into it.
///
/// ```
/// # use pretrained::data::{DerivedStore, LocalFiles};
/// # fn packed() -> Vec<u8> { Vec::new() }
/// # fn load(store: &DerivedStore, files: &LocalFiles) {
/// let derived = store.open(files.weights_identity().as_ref(), "whisper-avx512-q8.1");
/// let weight = derived.get("encoder.conv1").unwrap_or_else(|| {
///     let packed = packed();
///     derived.add("encoder.conv1", &packed);
///     packed.into()
/// });
/// derived.finish(&());
/// # }
/// ```
pub struct Derived {
    store: DerivedStore,
    found: Option<(Bytes, Table)>,
    target: Option<Target>,
    written: Mutex<Written>,
}

/// Where new blobs go.
struct Target {
    path: PathBuf,
    table: Table,
}

/// How far new blobs are.
enum Written {
    Nothing,
    Blobs(Writer),
    /// Why nothing is kept.
    Failed(String),
}

impl DerivedStore {
    /// The store in the cache of `roots`.
    pub fn new(roots: &Roots) -> Self {
        Self::at(match &roots.cache {
            Some(root) => Place::Directory(root.path.join("pretrained").join(DIRECTORY)),
            None => Place::Nowhere,
        })
    }

    /// A store that has nothing and keeps nothing.
    pub fn none() -> Self {
        Self::at(Place::Off)
    }

    fn at(place: Place) -> Self {
        Self {
            place,
            has_warned: Arc::default(),
        }
    }

    /// Its directory, which need not exist; `None` when it keeps nothing.
    pub fn root(&self) -> Option<&Path> {
        match &self.place {
            Place::Directory(dir) => Some(dir),
            Place::Off | Place::Nowhere => None,
        }
    }

    /// What `recipe` derives from `weights`. Weights that are not known by anything have nothing kept of them.
    ///
    /// The recipe names everything that the data depends on besides the weights' bytes: what for, the kernel, the form and
    /// its version, and whatever chooses among the tensors of a file.
    ///
    /// # Panics
    /// `recipe` is not made of letters, digits, `.`, `-` and `_`, or begins with `.`.
    pub fn open(&self, weights: Option<&WeightsIdentity>, recipe: &str) -> Derived {
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        assert!(
            !recipe.is_empty() && !recipe.starts_with('.') && recipe.chars().all(is_part),
            "a recipe is the name of a directory, not `{recipe}`"
        );
        let target = self.root().zip(weights).map(|(root, weights)| Target {
            path: root.join(weights.name()).join(recipe).join(file_name()),
            table: Table::new(recipe, weights.files()),
        });
        Derived {
            store: self.clone(),
            found: target.as_ref().and_then(Target::read),
            target,
            written: Mutex::new(Written::Nothing),
        }
    }

    /// Removes what was derived from `weights`, as when they turn out to have been damaged. Whoever has it mapped goes on
    /// with it; what cannot be removed stays.
    pub fn forget(&self, weights: &WeightsIdentity) {
        if let Some(root) = self.root() {
            let _ = fs::remove_dir_all(root.join(weights.name()));
        }
    }

    /// Says on `observer` why nothing is kept; once, however often it happens.
    fn warn(&self, observer: &dyn Observer, reason: &str) {
        if !self.has_warned.swap(true, Ordering::Relaxed) {
            observer.note(&format!(
                "the weights laid out for this machine are not kept for the next start: {reason}"
            ));
        }
    }
}

fn file_name() -> String {
    format!("blobs.{VERSION}")
}

impl Target {
    /// The file that is there, when it is whole and holds what is wanted.
    fn read(&self) -> Option<(Bytes, Table)> {
        let bytes = map::map(&self.path)?;
        let table = Table::read(&bytes)?;
        let is_wanted = table.recipe == self.table.recipe && table.weights == self.table.weights;
        is_wanted.then_some((bytes, table))
    }

    fn create(&self) -> Result<Writer, Error> {
        let dir = self.path.parent().expect("it is in a recipe's directory");
        if let Some(cache) = dir.ancestors().nth(3) {
            disk::tag_cache(cache);
        }
        sweep(dir);
        Writer::create(&self.path, self.table.clone())
    }
}

/// Removes what processes that ended early left in `dir`. What cannot be removed is in nobody's way.
fn sweep(dir: &Path) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        if disk::is_abandoned(&entry.path()) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

impl Derived {
    /// The blob `name` as the store had it when this was opened, shared with the file's mapping: it begins at a multiple
    /// of 4096 bytes in memory.
    pub fn get(&self, name: &str) -> Option<Bytes> {
        let (bytes, table) = self.found.as_ref()?;
        Some(bytes.slice(table.range(name)?))
    }

    /// Writes the blob `name`, in place of the one that the store has; of several of one name, the first counts. It is
    /// there for others, and for the next start, once this is finished. Threads may add at once.
    pub fn add(&self, name: &str, bytes: &[u8]) {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        if let Written::Nothing = *written {
            *written = self.begin();
        }
        let Written::Blobs(writer) = &mut *written else {
            return;
        };
        if !writer.has(name)
            && let Err(error) = writer.add(name, bytes)
        {
            *written = Written::Failed(reason(&error)); // and the file on its way is gone
        }
    }

    fn begin(&self) -> Written {
        match (&self.target, &self.store.place) {
            (Some(target), _) => match target.create() {
                Ok(writer) => Written::Blobs(writer),
                Err(error) => Written::Failed(reason(&error)),
            },
            (None, Place::Nowhere) => Written::Failed("there is no directory for a cache".into()),
            (None, _) => Written::Nothing,
        }
    }

    /// Ends the file of what was added, together with the blobs that the store had already, and waits until it is on the
    /// disk; where nothing was added there is nothing to do. What keeps the data from being kept is said on `observer`.
    /// Dropped instead, nothing of it is kept.
    pub fn finish(self, observer: &dyn Observer) {
        let written = self.written.into_inner();
        let ended = match written.unwrap_or_else(PoisonError::into_inner) {
            Written::Nothing => return,
            Written::Failed(reason) => Err(reason),
            Written::Blobs(writer) => {
                end(writer, self.found.as_ref()).map_err(|error| reason(&error))
            }
        };
        if let Err(reason) = ended {
            self.store.warn(observer, &reason);
        }
    }
}

/// Ends the file of `writer`, with those blobs of the file that was found that it does not have.
fn end(mut writer: Writer, found: Option<&(Bytes, Table)>) -> Result<(), Error> {
    if let Some((bytes, table)) = found {
        for name in table.names() {
            let range = table.range(name).expect("it is a name of the table");
            if !writer.has(name) {
                writer.add(name, &bytes[range])?;
            }
        }
    }
    writer.finish()
}

/// `error` with what the system says.
fn reason(error: &Error) -> String {
    let source = std::error::Error::source(error);
    source.map_or_else(|| error.to_string(), |source| format!("{error}: {source}"))
}

#[cfg(test)]
mod tests;
