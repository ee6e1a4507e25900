use std::{
    collections::BTreeSet,
    fs::File,
    io::{self, Write},
    path::Path,
};

use crate::data::{
    Content, Error, Found, Layout, LocalFile, PinnedCache, Provenance, Resource, Store,
    error::unreadable, hub::HubRef,
};

/// Writes models to a tar archive that unpacks to a cache directory: `--cache-dir` of another machine, or
/// `cache import` there.
pub struct Export<'a, W: Write> {
    store: &'a Store,
    archive: tar::Builder<W>,
    written: BTreeSet<String>,
}

impl<'a, W: Write> Export<'a, W> {
    /// Models that `store` has, to `writer`.
    pub fn new(store: &'a Store, writer: W) -> Self {
        Self {
            store,
            archive: tar::Builder::new(writer),
            written: BTreeSet::new(),
        }
    }

    /// Writes the files of `found`, which were brought local as `files`. Linked bytes are left out: they are in every
    /// binary.
    ///
    /// # Errors
    /// [`Error::Io`] when a file cannot be read, [`Error::Write`] when the archive cannot be written.
    pub fn add(&mut self, found: &Found, files: &[(Resource, LocalFile)]) -> Result<(), Error> {
        let requested = found.row.as_ref().and_then(|row| row.hub.as_ref());
        for (resource, file) in files {
            if file.provenance == Provenance::Bundled {
                continue;
            }
            match (found.layout, requested) {
                (Layout::Hub, Some(requested)) => self.add_hub(requested, resource, file)?,
                _ => self.add_pinned(&found.kit, resource, file)?,
            }
        }
        Ok(())
    }

    /// Ends the archive.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub fn finish(self) -> Result<(), Error> {
        let mut writer = self.archive.into_inner().map_err(unwritten)?;
        writer.flush().map_err(unwritten)
    }

    fn add_pinned(
        &mut self,
        kit: &str,
        resource: &Resource,
        file: &LocalFile,
    ) -> Result<(), Error> {
        let resource = Resource {
            sha256: Some(match file.digest {
                Some(digest) => digest,
                None => file.compute_digest()?,
            }),
            ..resource.clone()
        };
        let path = PinnedCache::relative_path(kit, &resource).expect("it has a digest");
        self.add_file(&format!("pretrained/{path}"), file)?;
        let pinned = self.store.pinned();
        let Some((name, json)) = pinned.and_then(|cache| cache.pin_file(kit, &resource)) else {
            return Ok(());
        };
        self.add_bytes(&format!("pretrained/{name}"), &json)
    }

    fn add_hub(
        &mut self,
        requested: &HubRef,
        resource: &Resource,
        file: &LocalFile,
    ) -> Result<(), Error> {
        let (Some(cache), Some(hub)) = (self.store.hub().cache(), resource.hub()) else {
            return Ok(());
        };
        let Some(commit) = hub.revision.commit() else {
            return Ok(());
        };
        let listing = self.store.hub().listing(&hub.repo, &commit)?;
        let Some(entry) = listing.files.get(&resource.file) else {
            return Ok(());
        };
        let repo = format!("huggingface/hub/{}", hub.repo.folder());
        let record = format!("{repo}/.pretrained/{commit}.json");
        self.add_bytes(&record, listing.to_json().as_bytes())?;
        self.add_file(&format!("{repo}/blobs/{}", entry.id()), file)?;
        let up = "../".repeat(2 + resource.file.matches('/').count());
        let link = format!("{repo}/snapshots/{commit}/{}", resource.file);
        self.add_link(&link, &format!("{up}blobs/{}", entry.id()))?;
        if requested.revision.commit().is_none() && cache.commit(requested) == Some(commit.clone())
        {
            let path = format!("{repo}/refs/{}", requested.revision);
            self.add_bytes(&path, commit.as_str().as_bytes())?;
        }
        Ok(())
    }

    fn add_file(&mut self, name: &str, file: &LocalFile) -> Result<(), Error> {
        let path = match &file.content {
            Content::Path(path) => path,
            Content::Bytes(bytes) => return self.add_bytes(name, bytes),
        };
        let read = |source| unreadable(path, source);
        let mut content = File::open(path).map_err(read)?;
        let size = content.metadata().map_err(read)?.len();
        self.append(name, size, &mut content)
    }

    fn add_bytes(&mut self, name: &str, mut bytes: &[u8]) -> Result<(), Error> {
        self.append(name, bytes.len() as u64, &mut bytes)
    }

    fn append(&mut self, name: &str, size: u64, content: &mut dyn io::Read) -> Result<(), Error> {
        if !self.written.insert(name.to_owned()) {
            return Ok(());
        }
        let mut header = header(tar::EntryType::Regular, size);
        self.archive
            .append_data(&mut header, name, content)
            .map_err(unwritten)
    }

    fn add_link(&mut self, name: &str, target: &str) -> Result<(), Error> {
        if !self.written.insert(name.to_owned()) {
            return Ok(());
        }
        let mut header = header(tar::EntryType::Symlink, 0);
        self.archive
            .append_link(&mut header, name, target)
            .map_err(unwritten)
    }
}

/// The header of a member; no time and no owner, so that the same models make the same archive.
fn header(kind: tar::EntryType, size: u64) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(kind);
    header.set_size(size);
    header.set_mode(0o644);
    header
}

fn unwritten(source: io::Error) -> Error {
    Error::Write {
        path: Path::new("the archive").to_owned(),
        source,
    }
}
