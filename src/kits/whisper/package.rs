//! From local files to a model's parts, and the factory that finds those files.

use std::path::Path;

use super::{Dims, Error};
use crate::checkpoint::{self, Checkpoint, Safetensors};
use crate::data::{self, Catalog, Content, Factory, Kind, LocalFile, LocalFiles, Manifest, Need};
use crate::nn::{Precision, UnknownTensors};
use crate::text::Vocabulary;

/// OpenAI's vocabularies: of the English models, and of the others.
const ENGLISH_RANKS: &str = include_str!("../../../assets/whisper/gpt2.tiktoken");
const MULTILINGUAL_RANKS: &str = include_str!("../../../assets/whisper/multilingual.tiktoken");

/// All that a model is made of, on no backend yet.
pub struct Package {
    /// The geometry.
    pub dims: Dims,
    /// The weights, under OpenAI's or `transformers`' tensor names.
    pub checkpoint: Box<dyn Checkpoint>,
    /// The text tokens.
    pub vocabulary: Vocabulary,
    /// What is done about tensors that have no place in the geometry.
    pub unknown_tensors: UnknownTensors,
}

/// How weights are loaded where files leave a choice.
#[derive(Clone, Debug, Default)]
pub struct Loading {
    /// How files of weights are opened.
    pub open: checkpoint::Options,
    /// What is done about tensors that have no place in the geometry.
    pub unknown_tensors: UnknownTensors,
}

/// What names the weights that a backend of `layout` has prepared for `precision`, out of a file opened as `open` says.
pub fn recipe(precision: Precision, layout: &str, open: &checkpoint::Options) -> String {
    let (encoder, decoder) = (precision.encoder().name(), precision.decoder().name());
    let mut recipe = format!("whisper-{encoder}-{decoder}-{layout}");
    if let Some(key) = &open.state_dict_key {
        let digest = data::Sha256::of(key.as_bytes()).to_string();
        recipe.push_str(&format!("-{}", &digest[..16]));
    }
    recipe
}

/// The models that this program knows by name.
///
/// # Errors
/// A compiled-in table is malformed.
pub fn catalog() -> Result<Catalog, data::Error> {
    let published = include_str!("../../../assets/whisper/well-known.toml");
    Catalog::new("whisper")
        .provider(Manifest::well_known(published)?)?
        .provider(bundled()?)
}

/// How a model of `catalog` is put together from files.
pub fn factory(catalog: Catalog, loading: &Loading) -> Factory<Package, Error> {
    const VOCABULARY: Need = Need::optional("vocabulary", Kind::Tiktoken);
    let weights = |kind| Need::required("weights", kind);
    let config = Need::required("config", Kind::Json);
    let mut factory = Factory::new(catalog);
    for kind in [Kind::Safetensors, Kind::SafetensorsIndex, Kind::Pytorch] {
        let loading = loading.clone();
        factory = factory.construct(&[weights(kind), config, VOCABULARY], move |files| {
            with_config(files, &loading)
        });
    }
    for kind in [Kind::OpenaiPt, Kind::Safetensors, Kind::Ggml] {
        let loading = loading.clone();
        factory = factory.construct(&[weights(kind), VOCABULARY], move |files| {
            self_contained(files, &loading)
        });
    }
    factory
}

#[cfg(feature = "bundled-whisper")]
fn bundled() -> Result<Manifest, data::Error> {
    /// The weights' bytes, aligned so that tensors can be read where they lie.
    #[repr(C, align(64))]
    struct Aligned<T: ?Sized>(T);
    static TINY_EN: &Aligned<[u8]> = &Aligned(*include_bytes!(
        "../../../assets/whisper/tiny.en-q8.safetensors"
    ));

    let table = include_str!("../../../assets/whisper/bundled.toml");
    Manifest::bundled(table, &[("tiny.en-q8.safetensors", &TINY_EN.0)])
}

#[cfg(not(feature = "bundled-whisper"))]
fn bundled() -> Result<Manifest, data::Error> {
    Manifest::bundled("schema = 1\nkit = \"whisper\"\n", &[])
}

/// A model whose geometry stands in a `config.json`.
fn with_config(files: &LocalFiles, loading: &Loading) -> Result<Package, Error> {
    let config = required(files, "config")?;
    let path = config.path().unwrap_or(Path::new(&config.file));
    let dims = Dims::from_config_json(path, &read(config)?)?;
    Ok(Package {
        vocabulary: vocabulary(files, &dims)?,
        checkpoint: open(required(files, "weights")?, loading)?,
        dims,
        unknown_tensors: loading.unknown_tensors,
    })
}

/// A model whose weights carry their geometry.
fn self_contained(files: &LocalFiles, loading: &Loading) -> Result<Package, Error> {
    let weights = required(files, "weights")?;
    let checkpoint = open(weights, loading)?;
    if !checkpoint
        .metadata()
        .keys()
        .any(|key| key.starts_with("dims."))
    {
        return Err(Error::NoGeometry {
            file: weights.file.clone(),
        });
    }
    let dims = Dims::from_metadata(checkpoint.metadata())?;
    Ok(Package {
        vocabulary: vocabulary(files, &dims)?,
        checkpoint,
        dims,
        unknown_tensors: loading.unknown_tensors,
    })
}

fn required<'a>(files: &'a LocalFiles, key: &str) -> Result<&'a LocalFile, Error> {
    files
        .get(key)
        .ok_or_else(|| Error::config(key, "is missing"))
}

fn open(file: &LocalFile, loading: &Loading) -> Result<Box<dyn Checkpoint>, Error> {
    Ok(match &file.content {
        Content::Path(path) => checkpoint::open_with(path, &loading.open)?,
        Content::Bytes(bytes) => Box::new(Safetensors::from_bytes(bytes.clone(), &file.file)?),
    })
}

fn vocabulary(files: &LocalFiles, dims: &Dims) -> Result<Vocabulary, Error> {
    if let Some(file) = files.get("vocabulary") {
        let text = String::from_utf8_lossy(&read(file)?).into_owned();
        return Ok(Vocabulary::from_rank_file(&text)?);
    }
    let ranks = if dims.is_multilingual() {
        MULTILINGUAL_RANKS
    } else {
        ENGLISH_RANKS
    };
    Ok(Vocabulary::from_rank_file(ranks)?)
}

fn read(file: &LocalFile) -> Result<Vec<u8>, Error> {
    match &file.content {
        Content::Path(path) => std::fs::read(path).map_err(|source| unreadable(path, source)),
        Content::Bytes(bytes) => Ok(bytes.to_vec()),
    }
}

fn unreadable(path: &Path, source: std::io::Error) -> Error {
    Error::File {
        path: path.to_owned(),
        source,
    }
}

#[cfg(all(test, feature = "bundled-whisper"))]
mod tests {
    use super::*;
    use crate::data::{Linked, Provider as _, Sha256, Source};

    /// A start relies on this, and hashes nothing.
    #[test]
    fn linked_weights_are_those_of_their_pin() {
        let row = bundled().unwrap().get("tiny.en").unwrap().unwrap();
        let weights = row.resources.get("weights").unwrap();
        let [Source::Linked(Linked(bytes))] = weights.sources.as_slice() else {
            panic!("{weights:?}")
        };
        assert_eq!(weights.sha256, Some(Sha256::of(&bytes[..])));
    }
}
