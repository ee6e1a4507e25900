use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Read, Seek, SeekFrom, Write},
    path::Path,
    thread,
    time::{Duration, Instant},
};

use super::{Error, error::unwritable};

/// Time between two looks at a lock that another process holds.
const POLL: Duration = Duration::from_millis(50);

/// An exclusive lock among processes, held until it is dropped.
///
/// A file system without locks grants every lock: what is written under one must come out right all the same, through
/// names that no other process uses.
#[derive(Debug)]
pub(super) struct Lock {
    _file: File,
    #[cfg_attr(not(feature = "net"), allow(dead_code, reason = "only a fetch asks"))]
    excludes: bool,
}

impl Lock {
    /// Takes the lock at `path`, whose directory is made. While another process holds it, `waiting` is told of that
    /// process once.
    ///
    /// # Errors
    /// [`Error::Locked`] after `timeout`, [`Error::Write`] when the file cannot be made.
    pub(super) fn take(
        path: &Path,
        timeout: Duration,
        waiting: impl FnOnce(Option<u32>),
    ) -> Result<Self, Error> {
        let write = |source| unwritable(path, source);
        if let Some(dir) = path.parent() {
            fs::create_dir_all(dir).map_err(write)?;
        }
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let mut file = options.open(path).map_err(write)?;
        let since = Instant::now();
        let mut waiting = Some(waiting);
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) => {}
                // No locks on this file system.
                Err(TryLockError::Error(_)) => {
                    return Ok(Self {
                        _file: file,
                        excludes: false,
                    });
                }
            }
            if let Some(waiting) = waiting.take() {
                waiting(holder(&mut file));
            }
            if since.elapsed() >= timeout {
                return Err(Error::Locked {
                    path: path.to_owned(),
                    holder: holder(&mut file),
                });
            }
            thread::sleep(POLL);
        }
        // Some file systems grant the same lock twice.
        let second = options.open(path).map_err(write)?.try_lock();
        // Only for whoever waits; a lock works without it.
        let _ = sign(&mut file);
        Ok(Self {
            _file: file,
            excludes: second.is_err(),
        })
    }

    /// Whether it really keeps others out.
    #[cfg(feature = "net")]
    pub(super) fn excludes(&self) -> bool {
        self.excludes
    }
}

fn sign(file: &mut File) -> io::Result<()> {
    file.set_len(0)?;
    file.seek(SeekFrom::Start(0))?;
    write!(file, "{}", std::process::id())
}

fn holder(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.seek(SeekFrom::Start(0)).ok()?;
    file.take(16).read_to_string(&mut text).ok()?;
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn second_taker_waits_and_learns_of_the_first() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("locks/x.lock");
        let first = Lock::take(&path, Duration::ZERO, |_| unreachable!()).unwrap();
        assert!(first.excludes);
        let mut told = None;
        let error = Lock::take(&path, Duration::ZERO, |pid| told = pid).unwrap_err();
        assert!(matches!(error, Error::Locked { .. }), "{error}");
        assert_eq!(told, Some(std::process::id()));
        drop(first);
        Lock::take(&path, Duration::ZERO, |_| unreachable!()).unwrap();
    }
}
