//! Files that appear whole or not at all.

use std::{
    ffi::{OsStr, OsString},
    fs::{self, File, TryLockError},
    io::{self, Write},
    path::{Path, PathBuf},
};

use super::{Error, error::unwritable};

/// The text of a `CACHEDIR.TAG`, by which backup programs know a cache (bford.info/cachedir).
const CACHEDIR_TAG: &str = "Signature: 8a477f597d28d172789f06886806bc55\n\
# This directory is a cache of pretrained models. Whatever is in it can be fetched again.\n";

/// Writes `bytes` to `path`, by way of a file in the directory `aside`, so that nobody ever reads half of it; both
/// directories are made, and are in one file system.
///
/// # Errors
/// [`Error::Write`].
pub(super) fn write_whole(path: &Path, aside: &Path, bytes: &[u8]) -> Result<(), Error> {
    replace(path, aside, |file| file.write_all(bytes))
}

/// Copies the file at `from` to `to`, by way of a file in the directory `aside`.
///
/// # Errors
/// [`Error::Write`].
pub(super) fn copy_whole(from: &Path, to: &Path, aside: &Path) -> Result<(), Error> {
    replace(to, aside, |file| {
        io::copy(&mut File::open(from)?, file).map(drop)
    })
}

fn replace(
    path: &Path,
    aside: &Path,
    write_to: impl FnOnce(&mut tempfile::NamedTempFile) -> io::Result<()>,
) -> Result<(), Error> {
    let write = |source| unwritable(path, source);
    let dir = path.parent().unwrap_or(Path::new("."));
    for dir in [dir, aside] {
        fs::create_dir_all(dir).map_err(write)?;
    }
    let name = path.file_name().unwrap_or_default();
    let mut file = temporary(aside, name).map_err(write)?;
    write_to(&mut file).map_err(write)?;
    keep_whole(file, path)
}

/// Gives `file` its name `path`, in the same file system, once its bytes are on the disk.
///
/// # Errors
/// [`Error::Write`].
pub(super) fn keep_whole(file: tempfile::NamedTempFile, path: &Path) -> Result<(), Error> {
    let write = |source| unwritable(path, source);
    file.as_file().sync_all().map_err(write)?;
    file.persist(path).map_err(|error| write(error.error))?;
    if let Some(dir) = path.parent() {
        sync_dir(dir);
    }
    Ok(())
}

/// Removes what processes that ended early left in `aside` of files called `name`, or of all. Nobody else may be at work
/// on those.
#[cfg(feature = "net")]
pub(super) fn sweep(aside: &Path, name: Option<&OsStr>) {
    let begins = name.map_or_else(|| b".".to_vec(), |name| prefix(name).into_encoded_bytes());
    for entry in fs::read_dir(aside).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.as_encoded_bytes();
        if name.starts_with(&begins) && name.ends_with(SUFFIX.as_bytes()) {
            // What cannot be removed is never trusted either.
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// What ends the name of a file that is not whole yet.
const SUFFIX: &str = ".tmp";

/// A name in `dir` that no other process uses, for something on its way.
pub(super) fn temporary_path(dir: &Path) -> PathBuf {
    let random: String = std::iter::repeat_with(fastrand::alphanumeric)
        .take(8)
        .collect();
    dir.join(format!(".{random}{SUFFIX}"))
}

/// What begins the name of a file that is to be called `name`.
fn prefix(name: &OsStr) -> OsString {
    let mut prefix = OsString::from(".");
    prefix.push(name);
    prefix.push(".");
    prefix
}

/// A file in `dir` that is to be called `name`, under a name that no other process uses, with the permissions that any
/// new file has there.
pub(super) fn temporary(dir: &Path, name: &OsStr) -> io::Result<tempfile::NamedTempFile> {
    let prefix = prefix(name);
    let mut builder = tempfile::Builder::new();
    builder.prefix(&prefix).suffix(SUFFIX);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        builder.permissions(fs::Permissions::from_mode(0o666)); // less the umask
    }
    builder.tempfile_in(dir)
}

/// A file that is to be called `path`, beside it under a name that no other process uses; the directory is made. Until it
/// is kept or dropped it is locked, by which [`is_abandoned`] knows that somebody is at work on it.
pub(super) fn claimed_temporary(path: &Path) -> io::Result<tempfile::NamedTempFile> {
    let dir = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(dir)?;
    let name = path.file_name().unwrap_or_default();
    loop {
        let file = temporary(dir, name)?;
        match file.as_file().try_lock() {
            // Whoever looked for abandoned files may have taken it for one before it was locked.
            Ok(()) if file.path().exists() => return Ok(file),
            Ok(()) | Err(TryLockError::WouldBlock) => {}
            // No locks on this file system: nobody will take it for abandoned.
            Err(TryLockError::Error(_)) => return Ok(file),
        }
    }
}

/// Whether `path` is a claimed temporary whose process has ended.
pub(super) fn is_abandoned(path: &Path) -> bool {
    let is_temporary = path.file_name().is_some_and(|name| {
        let name = name.as_encoded_bytes();
        name.starts_with(b".") && name.ends_with(SUFFIX.as_bytes())
    });
    is_temporary && File::open(path).is_ok_and(|file| file.try_lock().is_ok())
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

/// Marks the directory `dir` as a cache, if it is not yet. Failing to is no failure. Everybody writes the same here, so it
/// needs no other name first.
pub(super) fn tag_cache(dir: &Path) {
    let tag = dir.join("CACHEDIR.TAG");
    let is_whole = tag
        .metadata()
        .is_ok_and(|it| it.len() >= CACHEDIR_TAG.len() as u64);
    if !is_whole && fs::create_dir_all(dir).is_ok() {
        let _ = fs::write(&tag, CACHEDIR_TAG);
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
        let aside = dir.path().join("aside");
        write_whole(&path, &aside, b"1").unwrap();
        write_whole(&path, &aside, b"2").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"2");
        for dir in [path.parent().unwrap(), &aside] {
            let left = usize::from(dir != aside);
            assert_eq!(fs::read_dir(dir).unwrap().count(), left);
        }
    }

    #[cfg(feature = "net")]
    #[test]
    fn what_was_left_is_swept_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let names = [".a.json.x1.tmp", ".b.json.x1.tmp", "a.json", "x1.tmp"];
        for name in names {
            fs::write(dir.path().join(name), b"").unwrap();
        }
        let left = || names.map(|name| dir.path().join(name).exists());
        sweep(dir.path(), Some(OsStr::new("a.json")));
        assert_eq!(left(), [false, true, true, true]);
        sweep(dir.path(), None);
        assert_eq!(left(), [false, false, true, true]);
    }

    #[test]
    fn a_temporary_is_abandoned_when_nobody_holds_it() {
        let dir = tempfile::tempdir().unwrap();
        let file = claimed_temporary(&dir.path().join("a/b")).unwrap();
        let path = file.path().to_owned();
        assert!(!is_abandoned(&path));
        let left = dir.path().join("a/.b.x1.tmp");
        fs::write(&left, b"").unwrap();
        assert!(is_abandoned(&left));
        let kept = dir.path().join("a/b");
        keep_whole(file, &kept).unwrap();
        assert!(!is_abandoned(&kept));
    }

    #[test]
    fn cache_is_tagged_once() {
        let dir = tempfile::tempdir().unwrap();
        tag_cache(dir.path());
        let tag = fs::read_to_string(dir.path().join("CACHEDIR.TAG")).unwrap();
        assert!(tag.starts_with("Signature: 8a477f597d28d172789f06886806bc55"));
    }
}
