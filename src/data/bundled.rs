use bytes::Bytes;

use super::{Defect, Error, Linked, Manifest, Source};

/// The prefix that chooses models whose bytes are linked into the binary.
const NAME: &str = "bundled";

impl Manifest {
    /// The provider of models whose bytes are linked into the binary, `bundled`: a table of rows joined with the `linked`
    /// bytes, each under the `file` of the resource that it is.
    ///
    /// The bytes are used in place and never written to disk; the pinned cache checks them against their digest when it
    /// brings them local.
    ///
    /// ```
    /// # use pretrained::data::{Manifest, Provider};
    /// let table = r#"
    ///     schema = 1
    ///     kit = "whisper"
    ///     [[row]]
    ///     name = "tiny.en"
    ///     prefab = "whisper-tiny.en"
    ///     license = "MIT"
    ///     origin = "https://github.com/openai/whisper"
    ///     [[row.resource]]
    ///     key = "weights"
    ///     file = "tiny.en-q8.safetensors"
    ///     kind = "safetensors"
    ///     namespace = "bundled"
    ///     sha256 = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    /// "#;
    /// let bundled = Manifest::bundled(table, &[("tiny.en-q8.safetensors", b"abc")])?;
    /// assert!(bundled.get("tiny.en")?.is_some());
    /// # Ok::<(), pretrained::data::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Manifest`] as [`Manifest::parse`], or when a resource has no bytes or bytes have no resource.
    pub fn bundled(table: &str, linked: &[(&str, &'static [u8])]) -> Result<Self, Error> {
        let mut manifest = Manifest::parse(NAME, table)?;
        let defective = |defect| Error::Manifest {
            table: NAME.to_owned(),
            line: 1,
            defect,
        };
        let mut used = vec![false; linked.len()];
        for resource in manifest
            .rows
            .iter_mut()
            .flat_map(|row| row.resources.iter_mut())
        {
            let i = linked
                .iter()
                .position(|(file, _)| *file == resource.file)
                .ok_or_else(|| {
                    defective(Defect::NotLinked {
                        file: resource.file.clone(),
                    })
                })?;
            used[i] = true;
            resource.size = Some(linked[i].1.len() as u64);
            resource.sources = vec![Source::Linked(Linked(Bytes::from_static(linked[i].1)))];
        }
        match linked.iter().zip(used).find(|(_, used)| !used) {
            Some(((file, _), _)) => Err(defective(Defect::UnusedBytes {
                file: (*file).to_owned(),
            })),
            None => Ok(manifest),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Provider as _;

    const TABLE: &str = r#"schema = 1
kit = "whisper"
[[row]]
name = "tiny.en"
prefab = "p"
license = "MIT"
origin = "here"
[[row.resource]]
key = "weights"
file = "a.safetensors"
kind = "safetensors"
namespace = "bundled"
sha256 = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
"#;

    #[test]
    fn bytes_are_shared_not_copied() {
        static BYTES: &[u8] = b"abc";
        let bundled = Manifest::bundled(TABLE, &[("a.safetensors", BYTES)]).unwrap();
        let row = bundled.get("tiny.en").unwrap().unwrap();
        let weights = row.resources.get("weights").unwrap();
        let [Source::Linked(Linked(bytes))] = weights.sources.as_slice() else {
            panic!("{weights:?}")
        };
        assert_eq!(bytes.as_ptr(), BYTES.as_ptr());
        assert_eq!(weights.size, Some(3));
    }

    #[test]
    fn rows_and_bytes_must_match() {
        let defect = |linked: &[(&str, &'static [u8])]| match Manifest::bundled(TABLE, linked) {
            Err(Error::Manifest { defect, .. }) => defect,
            other => panic!("{other:?}"),
        };
        assert!(matches!(
            defect(&[("b.safetensors", b"")]),
            Defect::NotLinked { .. }
        ));
        assert!(matches!(
            defect(&[("a.safetensors", b""), ("b", b"")]),
            Defect::UnusedBytes { .. }
        ));
    }
}
