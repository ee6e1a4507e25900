//! Model families, a folder each.

pub mod embed;
pub mod lm;
pub mod moonshine;
pub mod qwen3_asr;
pub mod resnet;
pub mod silero;
pub mod whisper;

mod outline;

pub use outline::Outline;

use crate::data::{Catalog, Error, Prefab};

/// A family, as far as all families are alike.
pub struct Kit {
    /// Its name in tables, in the cache, and on the command line.
    pub name: &'static str,
    /// What it is, in a few words.
    pub about: &'static str,
    catalog: fn() -> Result<Catalog, Error>,
    outline: fn(&Prefab) -> Result<Outline, Error>,
}

/// Every family, in the order in which they are asked for a name.
pub const KITS: [Kit; 7] = [
    Kit {
        name: "whisper",
        about: "Speech to text: OpenAI's Whisper",
        catalog: whisper::catalog,
        outline: whisper::outline,
    },
    Kit {
        name: "moonshine",
        about: "Speech to text: Moonshine",
        catalog: moonshine::catalog,
        outline: moonshine::outline,
    },
    Kit {
        name: "qwen3-asr",
        about: "Speech to text: Qwen3-ASR",
        catalog: qwen3_asr::catalog,
        outline: qwen3_asr::outline,
    },
    Kit {
        name: "embed",
        about: "Text to vectors",
        catalog: embed::catalog,
        outline: embed::outline,
    },
    Kit {
        name: "lm",
        about: "Language models",
        catalog: lm::catalog,
        outline: lm::outline,
    },
    Kit {
        name: "silero",
        about: "Voice activity: Silero",
        catalog: silero::catalog,
        outline: silero::outline,
    },
    Kit {
        name: "resnet",
        about: "Images to classes: ResNet",
        catalog: resnet::catalog,
        outline: resnet::outline,
    },
];

impl Kit {
    /// The models of the family that this program knows by name.
    ///
    /// # Errors
    /// A compiled-in table is malformed.
    pub fn catalog(&self) -> Result<Catalog, Error> {
        (self.catalog)()
    }

    /// The extents of a geometry of the family.
    ///
    /// # Errors
    /// [`Error::Geometry`] when `prefab` is none.
    pub fn outline(&self, prefab: &Prefab) -> Result<Outline, Error> {
        (self.outline)(prefab)
    }
}

/// The models of every family that this program knows by name.
///
/// # Errors
/// A compiled-in table is malformed.
pub fn catalogs() -> Result<Vec<Catalog>, Error> {
    KITS.iter().map(Kit::catalog).collect()
}

#[cfg(test)]
mod tests;
