use std::{
    ffi::{OsStr, OsString},
    fs::{self, File, OpenOptions},
    io::{self, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

use crate::data::{
    Error, GitBlob, Sha256, digest::Hashing, digest::read_blocks, disk, error::unwritable,
};

/// A file on its way, under a name that no other process uses, with the digests of what is in it.
///
/// ```text
/// <file>.<random>.<ending>
/// ```
///
/// What a process leaves when it ends early is taken over by the next one: renaming it to a name of its own is the
/// claim, which only one of several can make. A live process must not lose its file so, which is why only the holder of
/// a lock takes over.
pub(super) struct Partial {
    path: PathBuf,
    file: File,
    hashing: Hashing,
    git_blob_of: Option<u64>,
    len: u64,
    sound: u64,
}

/// What becomes of what earlier processes left on the way to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Left {
    /// The longest is gone on with, the others are removed.
    TakenOver,
    /// All are removed: nobody could tell if the parts of two files were joined.
    Removed,
    /// They may belong to processes that live.
    Alone,
}

impl Partial {
    /// The file that is to become `target`. `left` says what becomes of what earlier processes left of it;
    /// `git_blob_of` is its length, when git's name for it is wanted.
    pub(super) fn open(
        target: &Path,
        ending: &str,
        left: Left,
        git_blob_of: Option<u64>,
    ) -> Result<Self, Error> {
        let dir = target.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(dir).map_err(|source| unwritable(dir, source))?;
        let path = own_name(target, ending);
        let mut leftovers = match left {
            Left::Alone => Vec::new(),
            Left::TakenOver | Left::Removed => leftovers(target, ending),
        };
        let longest = match left {
            Left::TakenOver => leftovers.pop(),
            Left::Removed | Left::Alone => None,
        };
        for (_, leftover) in leftovers {
            let _ = fs::remove_file(leftover);
        }
        if let Some((_, longest)) = longest
            && fs::rename(longest, &path).is_ok()
        {
            return Self::resume(path, git_blob_of);
        }
        let write = |source| unwritable(&path, source);
        let mut options = OpenOptions::new();
        let file = options
            .read(true)
            .write(true)
            .create_new(true)
            .open(&path)
            .map_err(write)?;
        Ok(Self {
            path,
            file,
            hashing: Hashing::new(git_blob_of),
            git_blob_of,
            len: 0,
            sound: 0,
        })
    }

    fn resume(path: PathBuf, git_blob_of: Option<u64>) -> Result<Self, Error> {
        let mut hashing = Hashing::new(git_blob_of);
        let mut len = 0;
        let mut read = || -> io::Result<File> {
            let mut file = OpenOptions::new().read(true).write(true).open(&path)?;
            read_blocks(&mut file, |block| {
                hashing.update(block);
                len += block.len() as u64;
            })?;
            Ok(file)
        };
        let file = read().map_err(|source| unwritable(&path, source))?;
        Ok(Self {
            path,
            file,
            hashing,
            git_blob_of,
            len,
            sound: len,
        })
    }

    /// Bytes there are.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Forgets what there is.
    pub(super) fn restart(&mut self) -> Result<(), Error> {
        let mut restart = || -> io::Result<()> {
            self.file.set_len(0)?;
            self.file.seek(SeekFrom::Start(0))?;
            Ok(())
        };
        restart().map_err(|source| unwritable(&self.path, source))?;
        self.hashing = Hashing::new(self.git_blob_of);
        (self.len, self.sound) = (0, 0);
        Ok(())
    }

    /// Remembers that nothing is known to be wrong with what there is.
    pub(super) fn mark_sound(&mut self) {
        self.sound = self.len;
    }

    /// Ends early. The bytes stay for another attempt: those from before the last answer when that was `wrong`, else all.
    pub(super) fn break_off(self, wrong: bool) {
        let kept = if wrong { self.sound } else { self.len };
        // What cannot be cut or removed is never trusted either.
        let _ = match kept {
            0 => fs::remove_file(&self.path),
            kept => self.file.set_len(kept),
        };
    }

    /// Where bytes are written, and where they are hashed: two things that may be done at the same time.
    pub(super) fn split(&mut self) -> (Writer<'_>, &mut Hashing) {
        let writer = Writer {
            path: &self.path,
            file: &mut self.file,
            len: &mut self.len,
        };
        (writer, &mut self.hashing)
    }

    /// Ends with the digests of all bytes, which are on the disk then. The file is still under its own name.
    pub(super) fn finish(self) -> Result<Whole, Error> {
        self.file
            .sync_all()
            .map_err(|source| unwritable(&self.path, source))?;
        let (sha256, git_blob) = self.hashing.finish();
        Ok(Whole {
            path: self.path,
            sha256,
            git_blob,
        })
    }
}

/// Puts bytes at the end of a [`Partial`].
pub(super) struct Writer<'a> {
    path: &'a Path,
    file: &'a mut File,
    len: &'a mut u64,
}

impl Writer<'_> {
    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.file
            .write_all(bytes)
            .map_err(|source| unwritable(self.path, source))?;
        *self.len += bytes.len() as u64;
        Ok(())
    }
}

/// All bytes that came, not yet held against what was promised.
pub(super) struct Whole {
    path: PathBuf,
    pub(super) sha256: Sha256,
    pub(super) git_blob: Option<GitBlob>,
}

impl Whole {
    /// Where the bytes are.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Puts it under its final name.
    pub(super) fn keep(self, target: &Path) -> Result<(), Error> {
        disk::move_whole(&self.path, target)
    }

    /// Removes it.
    pub(super) fn discard(self) {
        // What cannot be removed is never trusted either.
        let _ = fs::remove_file(&self.path);
    }
}

fn own_name(target: &Path, ending: &str) -> PathBuf {
    let random = std::iter::repeat_with(fastrand::alphanumeric).take(8);
    let mut name = file_name(target);
    name.push(format!(".{}.{ending}", random.collect::<String>()));
    target.with_file_name(name)
}

/// Bytes of the longest file that a process left on the way to `target`.
pub(in crate::data) fn bytes_left(target: &Path, ending: &str) -> u64 {
    leftovers(target, ending).pop().map_or(0, |(len, _)| len)
}

/// The files that processes left on the way to `target`, the longest last.
fn leftovers(target: &Path, ending: &str) -> Vec<(u64, PathBuf)> {
    let prefix = file_name(target);
    let is_left = |name: &OsStr| {
        let rest = name
            .as_encoded_bytes()
            .strip_prefix(prefix.as_encoded_bytes());
        let random = rest
            .and_then(|rest| rest.strip_prefix(b"."))
            .and_then(|rest| rest.strip_suffix(ending.as_bytes()))
            .and_then(|rest| rest.strip_suffix(b"."));
        random.is_some_and(|random| random.len() == 8 && !random.contains(&b'.'))
    };
    let entries = target.parent().map(fs::read_dir);
    let mut left: Vec<_> = entries
        .into_iter()
        .flatten()
        .flatten()
        .flatten()
        .filter(|entry| is_left(&entry.file_name()))
        .map(|entry| (entry.metadata().map_or(0, |it| it.len()), entry.path()))
        .collect();
    left.sort();
    left
}

fn file_name(target: &Path) -> OsString {
    target.file_name().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(partial: &mut Partial, bytes: &[u8]) {
        let (mut writer, hashing) = partial.split();
        writer.write(bytes).unwrap();
        hashing.update(bytes);
    }

    #[test]
    fn what_an_earlier_process_left_is_taken_over_with_its_digest() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("a/m.bin");
        let open = |left| Partial::open(&target, "partial", left, Some(6)).unwrap();
        let mut first = open(Left::TakenOver);
        write(&mut first, b"abc");
        drop(first);
        std::fs::write(dir.path().join("a/m.bin.00000000.partial"), b"a").unwrap();
        std::fs::write(dir.path().join("a/m.bin.other"), b"abcdef").unwrap();

        assert_eq!(bytes_left(&target, "partial"), 3);
        let other = open(Left::Alone);
        assert_eq!(other.len(), 0);
        other.break_off(false);
        let mut second = open(Left::TakenOver);
        assert_eq!(second.len(), 3);
        write(&mut second, b"def");
        let whole = second.finish().unwrap();
        assert_eq!(whole.sha256, Sha256::of(b"abcdef"));
        assert_eq!(whole.git_blob, Some(GitBlob::of(b"abcdef")));
        assert!(!target.exists());
        whole.keep(&target).unwrap();
        assert_eq!(std::fs::read(&target).unwrap(), b"abcdef");
        let left: Vec<_> = fs::read_dir(target.parent().unwrap()).unwrap().collect();
        assert_eq!(left.len(), 2, "the target and the stranger: {left:?}");
    }

    #[test]
    fn only_sound_bytes_are_left() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("m");
        let mut left = Left::TakenOver;
        for (wrong, kept) in [(false, 6), (true, 6), (true, 6)] {
            let mut partial = Partial::open(&target, "partial", left, None).unwrap();
            partial.mark_sound();
            write(&mut partial, b"abcdef");
            partial.break_off(wrong);
            assert_eq!(bytes_left(&target, "partial"), kept);
        }
        left = Left::Removed;
        let mut partial = Partial::open(&target, "partial", left, None).unwrap();
        assert_eq!(partial.len(), 0);
        write(&mut partial, b"wrong");
        partial.break_off(true);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn restart_forgets_bytes_and_digest() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("m");
        let mut partial = Partial::open(&target, "partial", Left::TakenOver, None).unwrap();
        write(&mut partial, b"wrong");
        partial.restart().unwrap();
        write(&mut partial, b"abc");
        let whole = partial.finish().unwrap();
        assert_eq!(whole.sha256, Sha256::of(b"abc"));
        assert_eq!(std::fs::read(whole.path()).unwrap(), b"abc");
        whole.discard();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
