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

/// Finds the state dict and names what is in it; the rules are in the documentation of [`super::Torch`].
pub(super) fn collect<'a>(pickle: &Pickle<'a>) -> Result<Saved<'a>, PickleFault> {
    let root = pickle.root();
    if matches!(pickle.value(root), Value::Tensor { .. }) {
        return Err(PickleFault::LoneTensor);
    }
    let mut walk = Walk {
        pickle,
        state_dict: nested_state_dict(pickle, root),
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

/// The value of the root's that is the state dict, unless that is the root itself.
fn nested_state_dict(pickle: &Pickle<'_>, root: Id) -> Option<Id> {
    let Value::Dict(items) = pickle.value(root) else {
        return None;
    };
    if has_tensor(pickle, root) {
        return None;
    }
    let candidates: Vec<(Id, Id)> = items
        .iter()
        .copied()
        .filter(|&(_, value)| has_tensor(pickle, value))
        .collect();
    if let [(_, only)] = candidates[..] {
        return Some(only);
    }
    STATE_DICT_KEYS.iter().find_map(|known| {
        candidates
            .iter()
            .find(|&&(key, _)| matches!(pickle.value(key), Value::Str(key) if key == known))
            .map(|&(_, value)| value)
    })
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
    /// The value that tensors are taken from; the whole object if `None`.
    state_dict: Option<Id>,
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
                let name_start = match self.state_dict {
                    Some(state_dict) if state_dict == id && depth == 1 => Some(self.path.len() + 1),
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
        let key = match self.pickle.value(key) {
            Value::Str(key) => (*key).to_owned(),
            Value::Int(key) => key.to_string(),
            Value::Bool(key) => key.to_string(),
            _ => return Err(PickleFault::Key),
        };
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
