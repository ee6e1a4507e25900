//! The bytes of a file, in memory or on disk, and the names that git and Git LFS give them.

use std::io::{self, Read, Seek, SeekFrom, Write};
use std::net::TcpStream;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha1::Sha1;
use sha2::{Digest, Sha256};

/// What a file or a response holds.
#[derive(Clone)]
pub(crate) enum Content {
    Memory(Arc<Vec<u8>>),
    /// A file that keeps its length while it is served.
    Disk {
        path: PathBuf,
        len: u64,
    },
}

impl Content {
    pub(crate) fn on_disk(path: &Path) -> Self {
        Self::Disk {
            path: path.into(),
            len: path.metadata().unwrap().len(),
        }
    }

    pub(super) fn len(&self) -> u64 {
        match self {
            Self::Memory(bytes) => bytes.len() as u64,
            Self::Disk { len, .. } => *len,
        }
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Memory(bytes) => bytes.to_vec(),
            Self::Disk { path, .. } => std::fs::read(path).unwrap(),
        }
    }

    /// Writes the bytes of `span`, which lies inside; the kernel copies what is on disk where it can.
    pub(super) fn write(&self, span: Range<u64>, out: &mut TcpStream) -> io::Result<()> {
        match self {
            Self::Memory(bytes) => out.write_all(&bytes[span.start as usize..span.end as usize]),
            Self::Disk { path, .. } => {
                let mut file = std::fs::File::open(path)?;
                file.seek(SeekFrom::Start(span.start))?;
                io::copy(&mut file.take(span.end - span.start), out).map(drop)
            }
        }
    }

    fn digest<D: Digest>(&self, mut hasher: D) -> String {
        match self {
            Self::Memory(bytes) => hasher.update(bytes.as_slice()),
            Self::Disk { path, .. } => {
                let mut file = std::fs::File::open(path).unwrap();
                let mut block = vec![0; 1 << 20];
                loop {
                    match file.read(&mut block).unwrap() {
                        0 => break,
                        n => hasher.update(&block[..n]),
                    }
                }
            }
        }
        hex(&hasher.finalize())
    }
}

impl From<Vec<u8>> for Content {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Memory(Arc::new(bytes))
    }
}

impl From<&[u8]> for Content {
    fn from(bytes: &[u8]) -> Self {
        bytes.to_vec().into()
    }
}

impl<const N: usize> From<&[u8; N]> for Content {
    fn from(bytes: &[u8; N]) -> Self {
        bytes.to_vec().into()
    }
}

impl From<&str> for Content {
    fn from(text: &str) -> Self {
        text.as_bytes().into()
    }
}

impl From<String> for Content {
    fn from(text: String) -> Self {
        text.into_bytes().into()
    }
}

/// A file of a commit, or a static one.
#[derive(Clone)]
pub(super) struct File {
    pub(super) content: Content,
    /// SHA-1 of the git blob: of the content, or of the pointer in its place.
    pub(super) oid: String,
    pub(super) lfs: Option<Lfs>,
}

/// What git has in place of a large file.
#[derive(Clone)]
pub(super) struct Lfs {
    pub(super) sha256: String,
    pub(super) pointer_size: u64,
}

impl File {
    /// A file that git holds itself.
    pub(super) fn new(content: Content) -> Self {
        Self {
            oid: blob_oid(&content),
            content,
            lfs: None,
        }
    }

    /// A file that git holds a pointer to.
    pub(super) fn large(content: Content) -> Self {
        let sha256 = content.digest(Sha256::new());
        let pointer = Content::from(format!(
            "version https://git-lfs.github.com/spec/v1\noid sha256:{sha256}\nsize {}\n",
            content.len()
        ));
        Self {
            content,
            oid: blob_oid(&pointer),
            lfs: Some(Lfs {
                sha256,
                pointer_size: pointer.len(),
            }),
        }
    }

    /// The quoted SHA-256 of a large file, the quoted blob id of another.
    pub(super) fn etag(&self) -> String {
        let name = self.lfs.as_ref().map_or(&self.oid, |lfs| &lfs.sha256);
        format!("\"{name}\"")
    }
}

fn blob_oid(content: &Content) -> String {
    let header = format!("blob {}\0", content.len());
    content.digest(Sha1::new_with_prefix(header))
}

/// Lower-case hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    let mut text = String::new();
    for byte in bytes {
        write!(text, "{byte:02x}").unwrap();
    }
    text
}
