//! torch archives: what `torch.save` writes, read without Python and without executing anything.
//!
//! ```text
//! NAME.pt = zip, members stored uncompressed
//!   ROOT/data.pkl     a pickle of the saved object; each tensor in it is a call of a rebuilding function on a storage
//!   ROOT/data/KEY     the bytes of storage KEY
//!   ROOT/byteorder    `little` or `big`; absent in older files, which are little-endian
//! ```
//!
//! [`archive`] finds the members, [`pickle`] reads the object as data, [`state_dict`] names the tensors in it, and
//! [`view`] cuts them out of their storages by offset and stride.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use bytes::Bytes;

use super::error::printable;
use super::{Checkpoint, Error, Tensor, TensorInfo, mmap};
use archive::Archive;
use pickle::Pickle;
use view::View;

mod archive;
mod pickle;
mod state_dict;
mod view;

pub use archive::ArchiveFault;
pub use pickle::PickleFault;
pub use view::TensorFault;

/// A torch archive; tensors are slices of its bytes where they are stored contiguously.
///
/// Which tensors it has, and their names, depend on what was saved:
/// - a dictionary with tensors in it is the state dict, and its keys are the names;
/// - otherwise, when just one value of the saved dictionary is itself a dictionary with tensors in it, that is the
///   state dict, and so is `model_state_dict`, `state_dict` or `model` (in this order) among several. Names do not
///   repeat its key, and tensors elsewhere, such as an optimizer's, are left out;
/// - otherwise every tensor is named by its path of keys and positions, joined by dots.
///
/// Plain values are metadata under their path (`dims.n_mels`), whole numbers in decimal.
#[derive(Debug)]
pub struct Torch {
    tensors: BTreeMap<String, View>,
    metadata: BTreeMap<String, String>,
}

impl Torch {
    /// Maps the archive at `path` and reads its pickle.
    ///
    /// # Errors
    /// As for [`Torch::from_bytes`], or the file cannot be mapped.
    pub fn open(path: &Path) -> Result<Self, Error> {
        Self::from_bytes(mmap::map(path)?, path)
    }

    /// Reads an archive that is already in memory; `label` stands for its path in messages.
    ///
    /// # Errors
    /// The archive is damaged or compressed; the pickle names a global that does not rebuild tensors, uses an opcode
    /// that torch does not write, or exceeds a limit; a tensor reaches outside its storage.
    pub fn from_bytes(bytes: Bytes, label: impl Into<PathBuf>) -> Result<Self, Error> {
        let path = label.into();
        let in_archive = |fault| Error::Archive {
            path: path.clone(),
            fault,
        };
        let in_pickle = |fault| Error::Pickle {
            path: path.clone(),
            fault,
        };

        let archive_bytes = bytes.len();
        let archive = Archive::open(bytes).map_err(in_archive)?;
        let pickle = Pickle::parse(archive.pickle()).map_err(in_pickle)?;
        let saved = state_dict::collect(&pickle).map_err(in_pickle)?;

        let mut tensors = BTreeMap::new();
        for (name, rebuilt) in saved.tensors {
            let in_tensor = |fault| Error::Tensor {
                path: path.clone(),
                tensor: printable(&name),
                fault,
            };
            let storage = archive.storage(rebuilt.storage.key).map_err(in_archive)?;
            let view = View::new(&rebuilt, storage, archive.byte_order(), archive_bytes)
                .map_err(in_tensor)?;
            tensors.insert(name, view);
        }
        Ok(Self {
            tensors,
            metadata: saved.scalars,
        })
    }
}

impl Checkpoint for Torch {
    fn format(&self) -> &'static str {
        "torch"
    }

    fn names(&self) -> Vec<&str> {
        self.tensors.keys().map(String::as_str).collect()
    }

    fn info(&self, name: &str) -> Option<TensorInfo> {
        self.tensors.get(name).map(View::info)
    }

    fn tensor(&self, name: &str) -> Result<Tensor, Error> {
        self.tensors
            .get(name)
            .map(View::read)
            .ok_or_else(|| Error::MissingTensor { name: name.into() })
    }

    fn metadata(&self) -> &BTreeMap<String, String> {
        &self.metadata
    }
}

#[cfg(test)]
mod tests;
