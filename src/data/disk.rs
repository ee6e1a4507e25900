//! Files that appear whole or not at all.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::Path,
};

use super::{Error, error::unwritable};

/// The text of a `CACHEDIR.TAG`, by which backup programs know a cache (bford.info/cachedir).
const CACHEDIR_TAG: &str = "Signature: 8a477f597d28d172789f06886806bc55\n\
# This directory is a cache of pretrained models. Whatever is in it can be fetched again.\n";

/// Writes `bytes` to `path` under another name first, so that nobody ever reads half of it; the directory is made.
///
/// # Errors
/// [`Error::Write`].
pub(super) fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let write = |source| unwritable(path, source);
    let dir = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(dir).map_err(write)?;
    let mut file = temporary(dir).map_err(write)?;
    file.write_all(bytes).map_err(write)?;
    file.as_file().sync_all().map_err(write)?;
    file.persist(path).map_err(|error| write(error.error))?;
    sync_dir(dir);
    Ok(())
}

/// A file in `dir` under a name that no other process uses, with the permissions that any new file has there.
pub(super) fn temporary(dir: &Path) -> io::Result<tempfile::NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".").suffix(".tmp");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        builder.permissions(fs::Permissions::from_mode(0o666)); // less the umask
    }
    builder.tempfile_in(dir)
}

/// Copies the file at `from` to `to`, which nobody ever sees half of; its directory is made.
///
/// # Errors
/// [`Error::Write`].
pub(super) fn copy_whole(from: &Path, to: &Path) -> Result<(), Error> {
    let write = |source| unwritable(to, source);
    let dir = to.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(dir).map_err(write)?;
    let mut file = temporary(dir).map_err(write)?;
    let mut source = File::open(from).map_err(write)?;
    io::copy(&mut source, &mut file).map_err(write)?;
    file.as_file().sync_all().map_err(write)?;
    file.persist(to).map_err(|error| write(error.error))?;
    sync_dir(dir);
    Ok(())
}

/// Moves the file at `from`, whose bytes are on the disk, to `to` in the same file system; its directory is made.
///
/// # Errors
/// [`Error::Write`].
pub(super) fn move_whole(from: &Path, to: &Path) -> Result<(), Error> {
    if let Some(dir) = to.parent() {
        fs::create_dir_all(dir).map_err(|source| unwritable(dir, source))?;
    }
    fs::rename(from, to).map_err(|source| unwritable(to, source))?;
    if let Some(dir) = to.parent() {
        sync_dir(dir);
    }
    Ok(())
}

/// Marks the directory `dir` as a cache, if it is not yet. Failing to is no failure.
pub(super) fn tag_cache(dir: &Path) {
    let tag = dir.join("CACHEDIR.TAG");
    if !tag.exists() {
        let _ = write_whole(&tag, CACHEDIR_TAG.as_bytes());
    }
}

/// Makes a renaming durable; not every system can, and without it the file is there or not there, but never half.
fn sync_dir(dir: &Path) {
    if cfg!(unix) {
        let _ = File::open(dir).and_then(|dir| dir.sync_all());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writing_replaces_the_file_and_leaves_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/b.json");
        write_whole(&path, b"1").unwrap();
        write_whole(&path, b"2").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"2");
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn cache_is_tagged_once() {
        let dir = tempfile::tempdir().unwrap();
        tag_cache(dir.path());
        let tag = fs::read_to_string(dir.path().join("CACHEDIR.TAG")).unwrap();
        assert!(tag.starts_with("Signature: 8a477f597d28d172789f06886806bc55"));
    }
}
