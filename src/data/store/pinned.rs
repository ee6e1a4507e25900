use std::{
    fs,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use crate::data::{Error, Resource, Sha256, Source, disk};

/// The pinned cache.
///
/// ```text
/// <root>/pretrained/CACHEDIR.TAG
/// <root>/pretrained/<kit>/<namespace>/<sha256>/<file>
/// <root>/pretrained/<kit>/<namespace>/<sha256>/<file>.<random>.partial    on its way
/// <root>/pretrained/<kit>/<namespace>/pins/<sha256 of the source>.json   the digest that a first fetch found
/// <root>/pretrained/<kit>/<namespace>/pins/.<…>.json.<random>.tmp        on its way
/// <root>/pretrained/locks/<sha256>.lock                                  one fetch of a file at a time
/// ```
///
/// The digest in the path is the pin: whoever wrote the file there vouched for it, and it is not hashed again. Nothing
/// is ever linked or copied into it but what was downloaded or imported, and hashed on the way; looking needs no write
/// access.
#[derive(Clone, Debug)]
pub struct PinnedCache {
    root: PathBuf,
}

/// What the first fetch of a file that its table does not pin has found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pin {
    /// Where it came from: an address, or `hf:org/repo@revision/file`.
    pub source: String,
    /// Its digest.
    pub sha256: Sha256,
    /// Its length in bytes.
    pub size: u64,
}

impl PinnedCache {
    /// The cache whose `pretrained/` directory is in `root`, which need not exist.
    pub fn new(root: &Path) -> Self {
        Self {
            root: root.join("pretrained"),
        }
    }

    /// Its directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The path that pins `resource` of `kit`, or `None` when it has no pin.
    pub fn path(&self, kit: &str, resource: &Resource) -> Option<PathBuf> {
        let digest = resource.sha256?.to_string();
        let dir = self.namespace(kit, resource).join(digest);
        Some(
            resource
                .file
                .split('/')
                .fold(dir, |path, part| path.join(part)),
        )
    }

    /// The digest that an earlier fetch of `resource`, which its table does not pin, has found.
    pub fn pin(&self, kit: &str, resource: &Resource) -> Option<Pin> {
        let source = source_of(resource)?;
        let json = fs::read(self.pin_path(kit, resource, &source)).ok()?;
        let pin: Pin = serde_json::from_slice(&json).ok()?;
        (pin.source == source).then_some(pin)
    }

    /// Writes down what a first fetch has found; the file itself comes before.
    ///
    /// # Errors
    /// [`Error::Write`].
    #[cfg(feature = "net")]
    pub(in crate::data) fn write_pin(
        &self,
        kit: &str,
        resource: &Resource,
        sha256: Sha256,
        size: u64,
    ) -> Result<(), Error> {
        let Some(source) = source_of(resource) else {
            return Ok(());
        };
        let path = self.pin_path(kit, resource, &source);
        let pin = Pin {
            source,
            sha256,
            size,
        };
        let json = serde_json::to_string(&pin).expect("plain data is JSON");
        let pins = path.parent().expect("it is in `pins`");
        disk::write_whole(&path, pins, json.as_bytes())
    }

    /// Clears away what processes that ended early left of the pin of `resource`; nobody else may be at work on it.
    #[cfg(feature = "net")]
    pub(in crate::data) fn sweep_pin(&self, kit: &str, resource: &Resource) {
        if let Some(source) = source_of(resource) {
            let path = self.pin_path(kit, resource, &source);
            let pins = path.parent().expect("it is in `pins`");
            disk::sweep(pins, path.file_name());
        }
    }

    /// The record of what a first fetch pinned `resource` by: its path in this layout, and its bytes.
    pub(in crate::data) fn pin_file(
        &self,
        kit: &str,
        resource: &Resource,
    ) -> Option<(String, Vec<u8>)> {
        let source = source_of(resource)?;
        let json = fs::read(self.pin_path(kit, resource, &source)).ok()?;
        let digest = Sha256::of(source.as_bytes());
        Some((
            format!("{kit}/{}/pins/{digest}.json", resource.namespace),
            json,
        ))
    }

    /// Takes over what another cache has pinned, unless something is pinned here already, and says whether it did.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub(in crate::data) fn adopt_pin(
        &self,
        kit: &str,
        namespace: &str,
        pin: &Pin,
    ) -> Result<bool, Error> {
        let path = self.pin_record(kit, namespace, &pin.source);
        if path.exists() {
            return Ok(false);
        }
        let json = serde_json::to_string(pin).expect("plain data is JSON");
        let pins = path.parent().expect("it is in `pins`");
        disk::write_whole(&path, pins, json.as_bytes())?;
        Ok(true)
    }

    /// `resource` with what its table or an earlier fetch pins it by.
    pub(in crate::data) fn pinned(&self, kit: &str, resource: &Resource) -> Resource {
        let mut resource = resource.clone();
        if resource.sha256.is_none()
            && let Some(pin) = self.pin(kit, &resource)
        {
            resource.sha256 = Some(pin.sha256);
            resource.size = Some(pin.size);
        }
        resource
    }

    /// The lock of what is fetched under `name`: its digest, or its source while that is not known.
    pub(in crate::data) fn lock_path(&self, name: &str) -> PathBuf {
        self.lock_of_source(&Sha256::of(name.as_bytes()).to_string())
    }

    /// The lock of whoever imports.
    pub(in crate::data) fn import_lock(&self) -> PathBuf {
        self.root.join("locks").join("import.lock")
    }

    /// The same, of the source that hashes to `digest`.
    pub(in crate::data) fn lock_of_source(&self, digest: &str) -> PathBuf {
        self.root.join("locks").join(format!("{digest}.lock"))
    }

    /// Where a file is on its way while its digest is not known yet.
    #[cfg(feature = "net")]
    pub(in crate::data) fn staging_path(
        &self,
        kit: &str,
        resource: &Resource,
        source: &str,
    ) -> PathBuf {
        self.pin_path(kit, resource, source).with_extension("file")
    }

    /// `<kit>/<namespace>/<sha256>/<file>`: where it is in a directory of this layout, a mirror among them.
    pub fn relative_path(kit: &str, resource: &Resource) -> Option<String> {
        let digest = resource.sha256?;
        Some(format!(
            "{kit}/{}/{digest}/{}",
            resource.namespace, resource.file
        ))
    }

    fn namespace(&self, kit: &str, resource: &Resource) -> PathBuf {
        self.root.join(kit).join(&resource.namespace)
    }

    fn pin_path(&self, kit: &str, resource: &Resource, source: &str) -> PathBuf {
        self.pin_record(kit, &resource.namespace, source)
    }

    fn pin_record(&self, kit: &str, namespace: &str, source: &str) -> PathBuf {
        let name = format!("{}.json", Sha256::of(source.as_bytes()));
        self.root.join(kit).join(namespace).join("pins").join(name)
    }
}

/// The first place that `resource` is published at.
pub(in crate::data) fn source_of(resource: &Resource) -> Option<String> {
    resource.sources.iter().find_map(|source| match source {
        Source::Url(url) => Some(url.clone()),
        Source::Hub(hub) => Some(format!(
            "hf:{}@{}/{}",
            hub.repo, hub.revision, resource.file
        )),
        Source::Local(_) | Source::Linked(_) | Source::Given(_) => None,
    })
}
