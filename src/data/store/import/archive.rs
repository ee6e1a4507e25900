//! The members of a directory or an archive, one after another.

use std::{
    fs::{self, File},
    io::{self, BufReader, Read, Seek, SeekFrom},
    path::Path,
};

use flate2::read::MultiGzDecoder;

use crate::data::{Error, error::unreadable};

/// What a member is.
pub(super) enum Content<'a> {
    /// A file.
    Bytes(&'a mut dyn Read),
    /// A link, and where it points.
    Link(&'a Path),
}

/// Takes a member with its path, whose parts slashes separate, and says whether it was of use.
pub(super) type Take<'t> = dyn FnMut(&str, Content<'_>) -> Result<bool, Error> + 't;

/// Hands every file and link at `path` to `take`. A file is its own only member, unless it was of no use and is an
/// archive.
///
/// # Errors
/// [`Error::Io`] when something cannot be read, and what `take` fails with.
pub(super) fn each_member(path: &Path, take: &mut Take<'_>) -> Result<(), Error> {
    let metadata = fs::metadata(path).map_err(|source| unreadable(path, source))?;
    if metadata.is_dir() {
        return each_in_dir(path, path, take);
    }
    if !metadata.is_file() {
        let kind = io::Error::other("it is no file, directory or archive");
        return Err(unreadable(path, kind));
    }
    let read = |source| unreadable(path, source);
    let mut file = File::open(path).map_err(read)?;
    let name = file_name(path);
    if take(&name, Content::Bytes(&mut file))? {
        return Ok(());
    }
    file.seek(SeekFrom::Start(0)).map_err(read)?;
    match Format::of(&mut file).map_err(read)? {
        Format::Zip => each_in_zip(path, file, take),
        Format::Tar => each_in_tar(path, BufReader::new(file), take),
        Format::TarGz => each_in_tar(path, MultiGzDecoder::new(BufReader::new(file)), take),
        Format::Other => Ok(()),
    }
}

enum Format {
    Zip,
    Tar,
    TarGz,
    Other,
}

impl Format {
    /// By the first bytes; the file is at its start again afterwards.
    fn of(file: &mut File) -> io::Result<Self> {
        let mut head = Vec::with_capacity(512);
        file.by_ref().take(512).read_to_end(&mut head)?;
        file.seek(SeekFrom::Start(0))?;
        Ok(if head.starts_with(b"PK\x03\x04") {
            Self::Zip
        } else if head.starts_with(&[0x1f, 0x8b]) {
            Self::TarGz
        } else if head.get(257..262) == Some(b"ustar") {
            Self::Tar
        } else {
            Self::Other
        })
    }
}

fn each_in_dir(root: &Path, dir: &Path, take: &mut Take<'_>) -> Result<(), Error> {
    let read = |source| unreadable(dir, source);
    let entries = fs::read_dir(dir).map_err(read)?;
    let mut paths = Vec::new();
    for entry in entries {
        paths.push(entry.map_err(read)?.path());
    }
    paths.sort();
    for path in paths {
        let metadata = path
            .symlink_metadata()
            .map_err(|source| unreadable(&path, source))?;
        // A directory may be in a cache itself: what stands above it belongs to the path.
        let base = root.file_name().map_or(Path::new(""), Path::new);
        let name = base.join(path.strip_prefix(root).unwrap_or(&path));
        let name = name
            .to_string_lossy()
            .replace(std::path::MAIN_SEPARATOR, "/");
        if metadata.is_dir() {
            each_in_dir(root, &path, take)?;
        } else if metadata.is_symlink() {
            let target = fs::read_link(&path).map_err(|source| unreadable(&path, source))?;
            take(&name, Content::Link(&target))?;
            // What it leads to inside comes by itself.
            let real = path.canonicalize().ok().filter(|real| real.is_file());
            let inside = |real: &std::path::PathBuf| {
                root.canonicalize().is_ok_and(|root| real.starts_with(root))
            };
            if let Some(real) = real.filter(|real| !inside(real)) {
                let mut file = File::open(&real).map_err(|source| unreadable(&real, source))?;
                take(&name, Content::Bytes(&mut file))?;
            }
        } else if metadata.is_file() {
            let mut file = File::open(&path).map_err(|source| unreadable(&path, source))?;
            take(&name, Content::Bytes(&mut file))?;
        }
    }
    Ok(())
}

fn each_in_zip(path: &Path, file: File, take: &mut Take<'_>) -> Result<(), Error> {
    let invalid = |error: zip::result::ZipError| unreadable(path, io::Error::other(error));
    let mut archive = zip::ZipArchive::new(BufReader::new(file)).map_err(invalid)?;
    for i in 0..archive.len() {
        let mut member = archive.by_index(i).map_err(invalid)?;
        if member.is_file() {
            let name = member.name().map_err(invalid)?.into_owned();
            take(&name, Content::Bytes(&mut member))?;
        }
    }
    Ok(())
}

fn each_in_tar(path: &Path, reader: impl Read, take: &mut Take<'_>) -> Result<(), Error> {
    let read = |source| unreadable(path, source);
    let mut archive = tar::Archive::new(reader);
    for entry in archive.entries().map_err(read)? {
        let mut entry = entry.map_err(read)?;
        let name = entry
            .path()
            .map_err(read)?
            .to_string_lossy()
            .replace('\\', "/");
        let name = name.trim_start_matches("./").to_owned();
        match entry.header().entry_type() {
            tar::EntryType::Regular | tar::EntryType::Continuous => {
                take(&name, Content::Bytes(&mut entry))?;
            }
            tar::EntryType::Symlink => {
                if let Some(target) = entry.link_name().map_err(read)? {
                    take(&name, Content::Link(&target))?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn file_name(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}
