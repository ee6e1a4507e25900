use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::Error;

/// A model's geometry by name, with no weights.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prefab {
    /// Unique in its kit: `whisper-tiny.en`.
    pub name: String,
    /// The kit that knows the geometry; in a manifest it is the file's.
    #[serde(skip)]
    pub kit: String,
    /// Extents and what else fixes the computation, in the kit's own words.
    pub geometry: toml::Table,
}

impl Prefab {
    /// The geometry as the kit's own type.
    ///
    /// # Errors
    /// [`Error::Geometry`] when the table does not have that type's fields.
    pub fn geometry<G: DeserializeOwned>(&self) -> Result<G, Error> {
        self.geometry
            .clone()
            .try_into()
            .map_err(|error: toml::de::Error| Error::Geometry {
                prefab: self.name.clone(),
                message: error.message().to_owned(),
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn geometry_is_read_as_the_kits_type() {
        #[derive(Debug, Deserialize, PartialEq)]
        #[serde(deny_unknown_fields)]
        struct Dims {
            n_mels: usize,
            alignment_heads: Vec<(usize, usize)>,
        }
        let read = |geometry: &str| {
            let geometry = toml::from_str(geometry).unwrap();
            Prefab {
                name: "p".to_owned(),
                kit: "k".to_owned(),
                geometry,
            }
            .geometry::<Dims>()
        };
        let dims = read("n_mels = 80\nalignment_heads = [[1, 0]]").unwrap();
        assert_eq!(
            dims,
            Dims {
                n_mels: 80,
                alignment_heads: vec![(1, 0)]
            }
        );
        for wrong in [
            "n_mels = 80",
            "n_mels = -1\nalignment_heads = []",
            "n_mels = 80\nalignment_heads = []\nx = 1",
        ] {
            assert!(
                matches!(read(wrong), Err(Error::Geometry { .. })),
                "{wrong}"
            );
        }
    }
}
