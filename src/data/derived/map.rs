use std::{
    fs::{self, File},
    path::Path,
};

use bytes::Bytes;
use memmap2::Mmap;

/// The bytes of the regular file at `path`, mapped read-only and unmapped when the last slice of them is dropped; `None`
/// when there is no such file, or it cannot be mapped.
#[allow(unsafe_code)]
pub(super) fn map(path: &Path) -> Option<Bytes> {
    // Asked before opening: opening a named pipe waits for a writer.
    let is_file = fs::metadata(path).is_ok_and(|metadata| metadata.is_file());
    let file = is_file.then(|| File::open(path).ok())??;
    // SAFETY: the mapping is read-only, and nobody changes the file under it: files of this store are written under
    // another name, get this one when they are whole, and are only ever replaced or removed after that, never written.
    let mapping = unsafe { Mmap::map(&file) }.ok()?;
    Some(Bytes::from_owner(mapping))
}
