//! Whether a checkpoint has the tensors of a model, before any of them is read.

use std::collections::HashSet;

use super::Error;
use crate::checkpoint::Checkpoint;

/// What is done about tensors that a model has no place for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnknownTensors {
    /// The checkpoint is refused: its geometry is probably another one.
    #[default]
    Refuse,
    /// They are passed over.
    Ignore,
}

/// Whether `checkpoint` has all tensors that are `expected` and, unless that is ignored, no others but those whose name
/// `is_companion`.
///
/// # Errors
/// [`Error::Names`] with every name that is missing and every one too many.
pub fn check_names(
    checkpoint: &dyn Checkpoint,
    expected: impl IntoIterator<Item = String>,
    is_companion: impl Fn(&str) -> bool,
    unknown: UnknownTensors,
) -> Result<(), Error> {
    let mut known = HashSet::new();
    let mut missing = Vec::new();
    for name in expected {
        if checkpoint.info(&name).is_none() {
            missing.push(name.clone());
        }
        known.insert(name);
    }
    let unknown = match unknown {
        UnknownTensors::Ignore => Vec::new(),
        UnknownTensors::Refuse => checkpoint
            .names()
            .into_iter()
            .filter(|&name| !known.contains(name) && !is_companion(name))
            .map(str::to_owned)
            .collect(),
    };
    if missing.is_empty() && unknown.is_empty() {
        return Ok(());
    }
    Err(Error::Names { missing, unknown })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::checkpoint::{self, Tensor, TensorInfo};

    /// A checkpoint that has names and nothing else.
    struct Names(&'static [&'static str]);

    impl Checkpoint for Names {
        fn format(&self) -> &'static str {
            "names"
        }

        fn names(&self) -> Vec<&str> {
            self.0.to_vec()
        }

        fn info(&self, name: &str) -> Option<TensorInfo> {
            let info = TensorInfo {
                dtype: checkpoint::Dtype::F32,
                shape: Vec::new(),
            };
            self.0.contains(&name).then_some(info)
        }

        fn tensor(&self, name: &str) -> Result<Tensor, checkpoint::Error> {
            Err(checkpoint::Error::MissingTensor { name: name.into() })
        }

        fn metadata(&self) -> &BTreeMap<String, String> {
            const { &BTreeMap::new() }
        }
    }

    fn check(names: &'static [&'static str], unknown: UnknownTensors) -> Result<(), String> {
        let expected = ["a", "b", "c"].map(str::to_owned);
        let is_companion = |name: &str| name == "head";
        check_names(&Names(names), expected, is_companion, unknown).map_err(|e| e.to_string())
    }

    #[test]
    fn all_names_that_are_missing_or_unknown_are_listed() {
        use UnknownTensors::{Ignore, Refuse};
        let missing_one = "the weights lack 1 tensor: `c`";
        let missing = "the weights lack 2 tensors: `b`, `c`";
        let unknown = "the weights have 2 tensors that have no place in the model: `x`, `y`";
        let cases: [(&[&str], UnknownTensors, Result<(), String>); 7] = [
            (&["a", "b", "c"], Refuse, Ok(())),
            (&["a", "b", "c", "head"], Refuse, Ok(())),
            (&["a", "b"], Refuse, Err(missing_one.to_owned())),
            (&["a"], Ignore, Err(missing.to_owned())),
            (&["a", "b", "c", "x", "y"], Refuse, Err(unknown.to_owned())),
            (&["a", "b", "c", "x", "y"], Ignore, Ok(())),
            (
                &["a", "x", "y"],
                Refuse,
                Err(format!(
                    "{missing}; {}",
                    unknown.replace("the weights have", "and have")
                )),
            ),
        ];
        for (names, unknown, expected) in cases {
            assert_eq!(check(names, unknown), expected, "{names:?} {unknown:?}");
        }
    }

    #[test]
    fn long_lists_are_cut() {
        let expected = (0..20).map(|i| i.to_string());
        let error = check_names(&Names(&[]), expected, |_| false, UnknownTensors::Refuse);
        assert_eq!(
            error.unwrap_err().to_string(),
            "the weights lack 20 tensors: `0`, `1`, `2`, `3`, `4`, `5`, `6`, `7`, 12 more"
        );
    }
}
