//! Bytes of an input: opened, made seekable, shared between readers.

use std::fmt;
use std::fs::File;
use std::io::{self, Cursor, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use symphonia::core::io::MediaSource;
use tempfile::SpooledTempFile;

use super::Error;

/// Bytes of a stream that are kept in memory before it moves to a temporary file.
const SPOOL_BYTES: usize = 8 << 20;

/// Bytes of a stream that must look like audio before the rest is read.
const JUDGED_BYTES: u64 = 1 << 20;

/// Where audio comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// A file, or a pipe that has a path.
    Path(PathBuf),
    /// The standard input.
    Stdin,
}

impl Input {
    /// The input an argument names: `-` is the standard input, all else a path.
    pub fn from_arg(arg: impl Into<PathBuf>) -> Self {
        let path = arg.into();
        if path.as_os_str() == "-" {
            Self::Stdin
        } else {
            Self::Path(path)
        }
    }
}

/// The path as given, or `stdin`.
impl fmt::Display for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => path.display().fmt(f),
            Self::Stdin => f.write_str("stdin"),
        }
    }
}

trait ReadSeek: Read + Seek + Send {}
impl<T: Read + Seek + Send> ReadSeek for T {}

/// Seekable bytes of known length. Clones read the same bytes, each from its own position.
#[derive(Clone)]
pub(super) struct Source {
    inner: Arc<Mutex<dyn ReadSeek>>,
    len: u64,
}

impl Source {
    /// Opens `input`. What cannot seek is read to its end into a spool first, since several containers keep their
    /// index behind the samples; but only if `judge` lets its beginning pass.
    pub(super) fn open(
        input: &Input,
        judge: impl FnOnce(Self) -> Result<(), Error>,
    ) -> Result<Self, Error> {
        let read = |source| Error::Read { source };
        let source = match input {
            Input::Stdin => Self::spool(io::stdin().lock(), judge)?,
            Input::Path(path) => {
                let meta = match path.metadata() {
                    Ok(meta) => meta,
                    Err(e) if e.kind() == io::ErrorKind::NotFound => {
                        return Err(Error::NotFound);
                    }
                    Err(e) => return Err(read(e)),
                };
                if meta.is_dir() {
                    return Err(Error::Directory);
                }
                let file = File::open(path).map_err(read)?;
                if meta.is_file() {
                    Self::new(file).map_err(read)?
                } else {
                    Self::spool(file, judge)?
                }
            }
        };
        if source.len == 0 {
            Err(Error::Empty)
        } else {
            Ok(source)
        }
    }

    /// Shares seekable bytes.
    pub(super) fn new(mut bytes: impl Read + Seek + Send + 'static) -> io::Result<Self> {
        let len = bytes.seek(SeekFrom::End(0))?;
        Ok(Self {
            inner: Arc::new(Mutex::new(bytes)),
            len,
        })
    }

    fn spool(
        mut stream: impl Read,
        judge: impl FnOnce(Self) -> Result<(), Error>,
    ) -> Result<Self, Error> {
        let read = |source| Error::Read { source };
        let spooling = |source| Error::Spool { source };
        let mut block = Vec::new();
        let mut next_block = |block: &mut Vec<u8>| {
            block.clear();
            stream.by_ref().take(JUDGED_BYTES).read_to_end(block)
        };
        let mut spool = SpooledTempFile::new(SPOOL_BYTES);
        next_block(&mut block).map_err(read)?;
        if block.len() as u64 == JUDGED_BYTES {
            judge(Self::new(Cursor::new(block.clone())).map_err(read)?)?;
        }
        while !block.is_empty() {
            spool.write_all(&block).map_err(spooling)?;
            next_block(&mut block).map_err(read)?;
        }
        Self::new(spool).map_err(spooling)
    }

    /// Length in bytes.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Fills as much of `buf` as there are bytes from `pos` on, and returns how many.
    pub(super) fn read_at(&self, pos: u64, buf: &mut [u8]) -> io::Result<usize> {
        // A reader that panicked leaves nothing half-changed: the position is set before each read.
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.seek(SeekFrom::Start(pos))?;
        let mut filled = 0;
        while filled < buf.len() {
            match inner.read(&mut buf[filled..]) {
                Ok(0) => break,
                Ok(n) => filled += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(filled)
    }
}

/// A stretch of a [`Source`] behind bytes of our own: what a demuxer is given to read.
pub(super) struct View {
    source: Source,
    prefix: Vec<u8>,
    range: Range<u64>,
    pos: u64,
    seekable: bool,
}

impl View {
    /// `prefix`, then the bytes `range` of `source`.
    pub(super) fn new(source: Source, prefix: Vec<u8>, range: Range<u64>) -> Self {
        let range = range.start.min(source.len)..range.end.min(source.len);
        Self {
            source,
            prefix,
            range,
            pos: 0,
            seekable: true,
        }
    }

    /// The same bytes, from which a demuxer reads on and on.
    pub(super) fn unseekable(self) -> Self {
        Self {
            seekable: false,
            ..self
        }
    }

    fn len(&self) -> u64 {
        self.prefix.len() as u64 + (self.range.end.saturating_sub(self.range.start))
    }
}

impl Read for View {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let left = self.len().saturating_sub(self.pos);
        let want = buf.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let n = match usize::try_from(self.pos)
            .ok()
            .and_then(|pos| self.prefix.get(pos..))
        {
            Some(rest) if !rest.is_empty() => {
                let n = rest.len().min(want);
                buf[..n].copy_from_slice(&rest[..n]);
                n
            }
            _ => {
                let at = self.range.start + (self.pos - self.prefix.len() as u64);
                self.source.read_at(at, &mut buf[..want])?
            }
        };
        self.pos += n as u64;
        Ok(n)
    }
}

impl Seek for View {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let pos = match to {
            SeekFrom::Start(pos) => Some(pos),
            SeekFrom::End(by) => self.len().checked_add_signed(by),
            SeekFrom::Current(by) => self.pos.checked_add_signed(by),
        };
        self.pos = pos.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.pos)
    }
}

impl MediaSource for View {
    fn is_seekable(&self) -> bool {
        self.seekable
    }

    fn byte_len(&self) -> Option<u64> {
        Some(self.len())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    #[test]
    fn view_reads_its_prefix_then_its_range() {
        let source = Source::new(Cursor::new(b"0123456789".to_vec())).unwrap();
        let mut view = View::new(source, b"ab".to_vec(), 3..6);
        let mut all = String::new();
        view.read_to_string(&mut all).unwrap();
        assert_eq!(all, "ab345");
        view.seek(SeekFrom::End(-2)).unwrap();
        all.clear();
        view.read_to_string(&mut all).unwrap();
        assert_eq!(all, "45");
        assert_eq!(view.seek(SeekFrom::Start(100)).unwrap(), 100);
        assert_eq!(view.read(&mut [0; 4]).unwrap(), 0);
        assert!(view.seek(SeekFrom::Current(-101)).is_err());
    }

    #[test]
    fn what_cannot_be_opened_is_told_apart() {
        let dir = tempfile::tempdir().unwrap();
        let open = |path: PathBuf| {
            Source::open(&Input::from_arg(path), |_| Ok(()))
                .err()
                .unwrap()
        };
        assert!(matches!(
            open(dir.path().join("absent.wav")),
            Error::NotFound
        ));
        assert!(matches!(open(dir.path().to_path_buf()), Error::Directory));
        let empty = dir.path().join("empty.wav");
        File::create(&empty).unwrap();
        assert!(matches!(open(empty), Error::Empty));
        assert_eq!(Input::from_arg("-"), Input::Stdin);
    }
}
