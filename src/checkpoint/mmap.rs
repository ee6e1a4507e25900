//! Files mapped into memory: the only `unsafe` of this room.

use std::fs::{self, File};
use std::path::Path;

use bytes::Bytes;
use memmap2::Mmap;

use super::Error;
use crate::data::Signature;

/// The bytes of the regular file at `path`, mapped read-only and unmapped when the last slice of them is dropped.
///
/// # Errors
/// The file cannot be opened or mapped, is not a regular file (a pipe would block, a directory has no bytes), or is
/// empty (nothing can be mapped of it, and no model is empty).
#[allow(unsafe_code)]
pub(super) fn map(path: &Path) -> Result<Bytes, Error> {
    let io = |source| Error::Io {
        path: path.to_path_buf(),
        source,
    };
    // Asked before opening: opening a named pipe waits for a writer.
    let metadata = fs::metadata(path).map_err(io)?;
    if !metadata.is_file() {
        return Err(Error::NotAFile {
            path: path.to_path_buf(),
        });
    }
    if metadata.len() == 0 {
        return Err(Error::NotWeights {
            path: path.to_path_buf(),
            found: Signature::Empty,
        });
    }
    let file = File::open(path).map_err(io)?;
    // SAFETY: the mapping is read-only and private to this process's view, and nobody changes the file under it. Files
    // in the caches are written under another name, then renamed to their digest and never written again; this crate's
    // own writer replaces files by renaming too. A model file of the user's own is theirs to leave alone while it is
    // in use: `open` says so.
    let mapping = unsafe { Mmap::map(&file) }.map_err(io)?;
    Ok(Bytes::from_owner(mapping))
}
