//! The file form of whisper.cpp (`ggml-tiny.en.bin`): one Whisper model, little-endian.
//!
//! ```text
//! u32 0x67676d6c, on disk `lmgg`
//! i32 n_vocab n_audio_ctx n_audio_state n_audio_head n_audio_layer
//!     n_text_ctx n_text_state n_text_head n_text_layer n_mels ftype
//! i32 rows, i32 columns, f32 …       mel filters
//! i32 tokens, each i32 length, bytes  vocabulary
//! until the end of the file:          tensors
//!   i32 dimensions, i32 length of the name, i32 type, i32 extents (innermost first), name, data
//! ```
//!
//! Nothing is aligned. Names are OpenAI's. The form is that of ggml-org/whisper.cpp, models/convert-pt-to-ggml.py and
//! `whisper_model_load` in src/whisper.cpp.
//!
//! Trap: the biases of the convolutions are stored as `[n, 1]`, for a broadcast of ggml's, and answer as `[n]` here.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use bytes::Bytes;

use super::cursor::Cursor;
use super::error::printable;
use super::slices::{Slices, Slot};
use super::{Checkpoint, CutShort, Dtype, Error, Tensor, TensorInfo, mmap};

/// The file's first four bytes.
const MAGIC: &[u8; 4] = b"lmgg";
/// The numbers after them, by OpenAI's names, in the file's order.
const DIMS: [&str; 10] = [
    "n_vocab",
    "n_audio_ctx",
    "n_audio_state",
    "n_audio_head",
    "n_audio_layer",
    "n_text_ctx",
    "n_text_state",
    "n_text_head",
    "n_text_layer",
    "n_mels",
];
/// More than any of them in a real model. llama.cpp's files before GGUF and the voice detector's of whisper.cpp have
/// the same first bytes, and something else here.
const MAX_DIM: u32 = 1 << 20;
/// Dimensions of a tensor in ggml.
const MAX_DIMENSIONS: u32 = 4;

/// A model file of whisper.cpp; tensors are slices of its bytes.
///
/// Metadata are the dimensions, as `dims.n_mels`, and `ftype`, ggml's number for the precision of the larger tensors.
/// The mel filters and the vocabulary, which every Whisper has alike, are passed over.
#[derive(Debug)]
pub struct Ggml {
    slices: Slices,
    metadata: BTreeMap<String, String>,
}

/// What is wrong with a file of whisper.cpp's form.
#[derive(Debug, thiserror::Error)]
pub enum GgmlFault {
    /// It ends too early, or a length in it is wrong.
    #[error(transparent)]
    CutShort(#[from] CutShort),
    /// Its first bytes are others.
    #[error("it does not begin with `lmgg`")]
    Magic,
    /// A dimension that no Whisper model has.
    #[error("{name} is {found}, expected 1 to {MAX_DIM}: it is not a whisper model of whisper.cpp")]
    Dim {
        /// The dimension's name.
        name: &'static str,
        /// What it is.
        found: u32,
    },
    /// Mel filters for another number of bins.
    #[error(
        "its mel filters have {found} rows for {n_mels} bins: it is not a whisper model of whisper.cpp"
    )]
    Filters {
        /// Rows of the filters.
        found: u32,
        /// What there should be.
        n_mels: u32,
    },
    /// A name that is no text.
    #[error("a tensor's name at byte {at} is not UTF-8")]
    NotUtf8 {
        /// Where it ends.
        at: usize,
    },
    /// Two tensors of the same name.
    #[error("tensor `{tensor}` is there twice")]
    RepeatedTensor {
        /// The name.
        tensor: String,
    },
    /// More dimensions than ggml has.
    #[error("a tensor at byte {at} has {found} dimensions, at most {MAX_DIMENSIONS} are possible")]
    Dimensions {
        /// Where it says so.
        at: usize,
        /// How many it has.
        found: u32,
    },
    /// An element type that is not known.
    #[error("tensor `{tensor}` is of type {found}, which is not known")]
    Type {
        /// The tensor.
        tensor: String,
        /// ggml's number of the type.
        found: u32,
    },
    /// Extents that overflow, or do not make whole blocks.
    #[error("tensor `{tensor}` cannot have shape {shape:?} with elements of {dtype}")]
    Extent {
        /// The tensor.
        tensor: String,
        /// Its shape, outermost first.
        shape: Vec<u32>,
        /// Its element type.
        dtype: Dtype,
    },
}

impl Ggml {
    /// Maps the file at `path` and finds its tensors.
    ///
    /// # Errors
    /// The file cannot be mapped, or is no Whisper model of this form, or is damaged.
    pub fn open(path: &Path) -> Result<Self, Error> {
        Self::from_bytes(mmap::map(path)?, path)
    }

    /// Reads a file that is already in memory; `label` stands for its path in messages.
    ///
    /// # Errors
    /// It is no Whisper model of this form, or is damaged.
    pub fn from_bytes(bytes: Bytes, label: impl Into<PathBuf>) -> Result<Self, Error> {
        let path = label.into();
        match parse(&bytes) {
            Ok((slots, metadata)) => Ok(Self {
                slices: Slices { path, bytes, slots },
                metadata,
            }),
            Err(fault) => Err(Error::Ggml { path, fault }),
        }
    }
}

impl Checkpoint for Ggml {
    fn format(&self) -> &'static str {
        "ggml"
    }

    fn names(&self) -> Vec<&str> {
        self.slices.names()
    }

    fn info(&self, name: &str) -> Option<TensorInfo> {
        self.slices.info(name)
    }

    fn tensor(&self, name: &str) -> Result<Tensor, Error> {
        self.slices.tensor(name)
    }

    fn metadata(&self) -> &BTreeMap<String, String> {
        &self.metadata
    }
}

type Parsed = (BTreeMap<String, Slot>, BTreeMap<String, String>);

fn parse(bytes: &[u8]) -> Result<Parsed, GgmlFault> {
    let mut cursor = Cursor::new(bytes);
    if cursor.array("magic")? != *MAGIC {
        return Err(GgmlFault::Magic);
    }
    let metadata = header(&mut cursor)?;
    let mut tensors = BTreeMap::new();
    while !cursor.is_at_end() {
        let (name, slot) = tensor(&mut cursor)?;
        if tensors.contains_key(&name) {
            let tensor = printable(&name);
            return Err(GgmlFault::RepeatedTensor { tensor });
        }
        tensors.insert(name, slot);
    }
    Ok((tensors, metadata))
}

/// The dimensions and the precision; then what every Whisper has alike is passed over.
fn header(cursor: &mut Cursor<'_>) -> Result<BTreeMap<String, String>, GgmlFault> {
    let mut metadata = BTreeMap::new();
    let mut dims = [0; DIMS.len()];
    for (name, dim) in DIMS.into_iter().zip(&mut dims) {
        *dim = cursor.u32("the dimensions")?;
        if !(1..=MAX_DIM).contains(dim) {
            return Err(GgmlFault::Dim { name, found: *dim });
        }
        metadata.insert(format!("dims.{name}"), dim.to_string());
    }
    let [.., n_mels] = dims;
    let ftype = cursor.u32("the precision")?;
    metadata.insert("ftype".to_owned(), ftype.to_string());

    let rows = cursor.u32("the mel filters' shape")?;
    let columns = cursor.u32("the mel filters' shape")?;
    if rows != n_mels {
        return Err(GgmlFault::Filters {
            found: rows,
            n_mels,
        });
    }
    let elements = u64::from(rows) * u64::from(columns);
    cursor.take(elements.saturating_mul(4), "the mel filters")?;
    for _ in 0..cursor.u32("the vocabulary's length")? {
        let length = cursor.u32("a token's length")?;
        cursor.take(length.into(), "a token")?;
    }
    Ok(metadata)
}

/// The tensor that begins here.
fn tensor(cursor: &mut Cursor<'_>) -> Result<(String, Slot), GgmlFault> {
    let at = cursor.position();
    let dimensions = cursor.u32("a tensor's dimensions")?;
    let name_bytes = cursor.u32("the length of a tensor's name")?;
    let code = cursor.u32("a tensor's type")?;
    if dimensions > MAX_DIMENSIONS {
        return Err(GgmlFault::Dimensions {
            at,
            found: dimensions,
        });
    }
    let mut extents = (0..dimensions)
        .map(|_| cursor.u32("a tensor's extents"))
        .collect::<Result<Vec<_>, _>>()?;
    extents.reverse();
    let name = std::str::from_utf8(cursor.take(name_bytes.into(), "a tensor's name")?)
        .map_err(|_| GgmlFault::NotUtf8 {
            at: cursor.position(),
        })?
        .to_owned();
    let Some(dtype) = Dtype::from_ggml(code) else {
        return Err(GgmlFault::Type {
            tensor: printable(&name),
            found: code,
        });
    };
    let mut shape: Vec<usize> = extents.iter().map(|&extent| extent as usize).collect();
    let Some(bytes) = dtype.byte_len(&shape) else {
        return Err(GgmlFault::Extent {
            tensor: printable(&name),
            shape: extents,
            dtype,
        });
    };
    let start = cursor.position();
    cursor.take(bytes as u64, "a tensor")?;
    if name.ends_with(".bias") && matches!(shape[..], [_, 1]) {
        shape.pop();
    }
    let slot = Slot {
        dtype,
        shape,
        range: start..start + bytes,
    };
    Ok((name, slot))
}

#[cfg(test)]
mod tests;
