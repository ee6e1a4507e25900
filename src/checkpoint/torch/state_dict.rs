//! From the saved object to named tensors and plain values.

use std::collections::{BTreeMap, HashSet};

use super::pickle::{Id, Pickle, PickleFault, Rebuilt, Value};
use crate::checkpoint::error::printable;

/// Keys under which training programs save a state dict among others, the likeliest first.
const STATE_DICT_KEYS: [&str; 3] = ["model_state_dict", "state_dict", "model"];
/// Dictionaries and lists inside one another; real files have up to five.
const MAX_DEPTH: usize = 32;
/// All names and values together, in bytes. Values may be shared, so a small pickle can unfold into a huge tree.
const MAX_BYTES: usize = 128 << 20;
/// Keys that a message names at most.
const MAX_SHOWN: usize = 8;
/// What a value counts for beside its name.
const VALUE_BYTES: usize = 64;

/// What was saved.
#[derive(Debug)]
pub(super) struct Saved<'a> {
    /// Tensors by name, in the order saved.
    pub(super) tensors: Vec<(String, Rebuilt<'a>)>,
    /// Plain values by path.
    pub(super) scalars: BTreeMap<String, String>,
}

/// Where in the saved object the state dict is, and the path of keys that leads there.
type Place = (Id, String);

/// Finds the state dict, under `key` if that is given, and names what is in it; the rules are in the documentation of
/// [`super::Torch`].
pub(super) fn collect<'a>(
    pickle: &Pickle<'a>,
    key: Option<&str>,
) -> Result<Saved<'a>, PickleFault> {
    let root = pickle.root();
    if matches!(pickle.value(root), Value::Tensor { .. }) {
        return Err(PickleFault::LoneTensor);
    }
    let state_dict = match key {
        Some(key) => Some(state_dict_under(pickle, key)?),
        None => nested_state_dict(pickle),
    };
    let mut walk = Walk {
        pickle,
        state_dict,
        saved: Saved {
            tensors: Vec::new(),
            scalars: BTreeMap::new(),
        },
        names: HashSet::new(),
        path: String::new(),
        bytes: 0,
    };
    walk.visit(root, walk.state_dict.is_none().then_some(0), 0)?;
    Ok(walk.saved)
}

/// The dictionary with tensors that `key` leads to.
fn state_dict_under(pickle: &Pickle<'_>, key: &str) -> Result<Place, PickleFault> {
    find(pickle, pickle.root(), key)
        .filter(|&id| has_tensor(pickle, id))
        .map(|id| (id, key.to_owned()))
        .ok_or_else(|| PickleFault::StateDict {
            key: printable(key),
            found: candidates(pickle)
                .take(MAX_SHOWN)
                .map(|(_, key)| printable(&key))
                .collect(),
        })
}

/// What `path`, keys joined by dots, leads to from the dictionary `id`; a key may have dots itself.
fn find(pickle: &Pickle<'_>, id: Id, path: &str) -> Option<Id> {
    let Value::Dict(items) = pickle.value(id) else {
        return None;
    };
    items.iter().find_map(|&(key, value)| {
        let rest = path.strip_prefix(&key_text(pickle, key)?)?;
        match rest.strip_prefix('.') {
            Some(rest) => find(pickle, value, rest),
            None => rest.is_empty().then_some(value),
        }
    })
}

/// The value of the root's that is the state dict, unless that is the root itself.
fn nested_state_dict(pickle: &Pickle<'_>) -> Option<Place> {
    if has_tensor(pickle, pickle.root()) {
        return None;
    }
    let candidates: Vec<Place> = candidates(pickle).collect();
    if let [only] = &candidates[..] {
        return Some(only.clone());
    }
    let known = |known: &&str| candidates.iter().find(|(_, key)| key == known).cloned();
    STATE_DICT_KEYS.iter().find_map(known)
}

/// The values of the root's that are dictionaries with tensors.
fn candidates(pickle: &Pickle<'_>) -> impl Iterator<Item = Place> {
    let items = match pickle.value(pickle.root()) {
        Value::Dict(items) => &items[..],
        _ => &[],
    };
    items
        .iter()
        .filter(|&&(_, value)| has_tensor(pickle, value))
        .filter_map(|&(key, value)| Some((value, key_text(pickle, key)?)))
}

/// A dictionary's key as a part of a path, if it can be one.
fn key_text(pickle: &Pickle<'_>, key: Id) -> Option<String> {
    match pickle.value(key) {
        Value::Str(key) => Some((*key).to_owned()),
        Value::Int(key) => Some(key.to_string()),
        Value::Bool(key) => Some(key.to_string()),
        _ => None,
    }
}

/// Whether `id` is a dictionary with a tensor among its own values.
fn has_tensor(pickle: &Pickle<'_>, id: Id) -> bool {
    match pickle.value(id) {
        Value::Dict(items) => items
            .iter()
            .any(|&(_, value)| matches!(pickle.value(value), Value::Tensor { .. })),
        _ => false,
    }
}

/// A walk over the saved object, keys and positions joined into `path`.
struct Walk<'p, 'a> {
    pickle: &'p Pickle<'a>,
    /// What tensors are taken from; the whole object if `None`.
    state_dict: Option<Place>,
    saved: Saved<'a>,
    names: HashSet<String>,
    path: String,
    /// Bytes that the names and values met so far count for.
    bytes: usize,
}

impl<'a> Walk<'_, 'a> {
    /// Visits `id` and all below it. `name_start` is where in the path tensors' names begin, `None` outside the state
    /// dict.
    fn visit(
        &mut self,
        id: Id,
        name_start: Option<usize>,
        depth: usize,
    ) -> Result<(), PickleFault> {
        if depth > MAX_DEPTH {
            return Err(PickleFault::TooDeep { limit: MAX_DEPTH });
        }
        self.count(VALUE_BYTES + self.path.len())?;
        let pickle = self.pickle;
        match pickle.value(id) {
            Value::Dict(items) => {
                let name_start = match &self.state_dict {
                    Some((state_dict, path)) if *state_dict == id && *path == self.path => {
                        Some(self.path.len() + 1)
                    }
                    _ => name_start,
                };
                for &(key, value) in items {
                    let key = self.key(key)?;
                    self.visit_below(&key, value, name_start, depth)?;
                }
            }
            Value::List(items) | Value::Tuple(items) => {
                for (position, &value) in items.iter().enumerate() {
                    self.visit_below(&position.to_string(), value, name_start, depth)?;
                }
            }
            Value::Tensor { .. } => {
                if let Some(start) = name_start {
                    self.add_tensor(id, start)?;
                }
            }
            Value::Bool(value) => self.add_scalar(value.to_string())?,
            Value::Int(value) => self.add_scalar(value.to_string())?,
            Value::Float(value) => self.add_scalar(value.to_string())?,
            Value::Str(value) => self.add_scalar((*value).to_owned())?,
            Value::None | Value::Bytes | Value::Global(_) | Value::Storage(_) => {}
        }
        Ok(())
    }

    fn visit_below(
        &mut self,
        key: &str,
        value: Id,
        name_start: Option<usize>,
        depth: usize,
    ) -> Result<(), PickleFault> {
        let parent = self.path.len();
        if depth > 0 {
            self.path.push('.');
        }
        self.path.push_str(key);
        self.visit(value, name_start, depth + 1)?;
        self.path.truncate(parent);
        Ok(())
    }

    /// A dictionary's key as a part of a path.
    fn key(&mut self, key: Id) -> Result<String, PickleFault> {
        let key = key_text(self.pickle, key).ok_or(PickleFault::Key)?;
        self.count(key.len())?;
        Ok(key)
    }

    fn add_tensor(&mut self, id: Id, name_start: usize) -> Result<(), PickleFault> {
        let name = self.path.get(name_start..).unwrap_or_default().to_owned();
        self.count(name.len())?;
        if !self.names.insert(name.clone()) {
            return Err(PickleFault::RepeatedName {
                name: printable(&name),
            });
        }
        let rebuilt = self.pickle.rebuilt(id)?;
        self.saved.tensors.push((name, rebuilt));
        Ok(())
    }

    fn add_scalar(&mut self, value: String) -> Result<(), PickleFault> {
        self.count(value.len())?;
        self.saved.scalars.insert(self.path.clone(), value);
        Ok(())
    }

    fn count(&mut self, bytes: usize) -> Result<(), PickleFault> {
        self.bytes += bytes;
        if self.bytes > MAX_BYTES {
            return Err(PickleFault::TooLarge {
                what: "names and values",
                limit: MAX_BYTES,
            });
        }
        Ok(())
    }
}
