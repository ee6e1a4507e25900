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
        Self::parse(bytes, None).map_err(|fault| Error::Torch {
            path: label.into(),
            fault,
        })
    }

    /// Reads an archive as [`Torch::from_bytes`] does, its tensors those of the dictionary under `key`: a path of keys
    /// joined by dots.
    ///
    /// # Errors
    /// As for [`Torch::from_bytes`], or there is no dictionary of tensors under `key`.
    pub fn with_state_dict(
        bytes: Bytes,
        label: impl Into<PathBuf>,
        key: &str,
    ) -> Result<Self, Error> {
        Self::parse(bytes, Some(key)).map_err(|fault| Error::Torch {
            path: label.into(),
            fault,
        })
    }

    fn parse(bytes: Bytes, key: Option<&str>) -> Result<Self, TorchFault> {
        let archive_bytes = bytes.len();
        let archive = Archive::open(bytes)?;
        let pickle = Pickle::parse(archive.pickle())?;
        let saved = state_dict::collect(&pickle, key)?;

        let mut tensors = BTreeMap::new();
        for (name, rebuilt) in saved.tensors {
            let storage = archive.storage(rebuilt.storage.key)?;
            let view = View::new(&rebuilt, storage, archive.byte_order(), archive_bytes);
            let view = view.map_err(|fault| TorchFault::Tensor {
                tensor: printable(&name),
                fault,
            })?;
            tensors.insert(name, view);
        }
        Ok(Self {
            tensors,
            metadata: saved.scalars,
        })
    }
}

/// What is wrong with a torch archive.
#[derive(Debug, thiserror::Error)]
pub enum TorchFault {
    /// Its zip structure cannot be used.
    #[error(transparent)]
    Archive(#[from] ArchiveFault),
    /// Its pickle is refused.
    #[error(transparent)]
    Pickle(#[from] PickleFault),
    /// A tensor does not fit its storage.
    #[error("tensor `{tensor}`: {fault}")]
    Tensor {
        /// The tensor.
        tensor: String,
        /// What is wrong.
        fault: TensorFault,
    },
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
