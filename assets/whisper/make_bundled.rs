//! Makes the bundled Whisper model: one safetensors file with OpenAI's tensor names and int8 matrices.
//!
//! ```text
//! cargo run --release --example make-bundled-whisper -- SOURCE OUT.safetensors
//! ```
//!
//! `SOURCE` is a directory as Hugging Face transformers writes it, or a `.pt` of OpenAI's. Equal weights give an equal
//! file, byte for byte, whichever of the two they come from.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a tool that reports what it did"
)]

use std::collections::BTreeMap;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use half::{bf16, f16};
use pretrained::checkpoint::{self, Checkpoint, Dtype, Tensor};
use pretrained::compute::quant::q8_row;
use pretrained::kits::whisper::with_openai_names;
use sha2::{Digest, Sha256};

/// Width of an attention head in every Whisper model; the weights do not show it.
const HEAD_WIDTH: usize = 64;

const ORIGIN: &str = "openai/whisper (https://github.com/openai/whisper)";
const LICENSE: &str = "MIT, Copyright (c) 2022 OpenAI";
const RECIPE: &str = "matrices: int8 codes, and NAME.scale f32 for each row, weight = code * scale, fitted by least \
                      squares (make-bundled-whisper); all else: as in the source";

fn main() -> ExitCode {
    match make() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("make-bundled-whisper: {error}");
            ExitCode::FAILURE
        }
    }
}

fn make() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    let [source, out] = arguments.as_slice() else {
        return Err("usage: make-bundled-whisper SOURCE OUT.safetensors".into());
    };
    let out = Path::new(out);
    let mut source = PathBuf::from(source);
    if source.is_dir() {
        source.push("model.safetensors");
    }
    let source = checkpoint::open(&source)?;
    let source = with_openai_names(&*source);

    let metadata = metadata(&source)?;
    let tensors = quantized(&source)?;
    checkpoint::write_safetensors(out, &tensors, &metadata)?;

    let file = std::fs::read(out)?;
    let digest: String = Sha256::digest(&file)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    println!("{digest}  {} ({} bytes)", out.display(), file.len());
    Ok(())
}

/// The geometry in OpenAI's ten numbers, read off the shapes, and where the file comes from.
fn metadata(source: &dyn Checkpoint) -> Result<BTreeMap<String, String>, Box<dyn Error>> {
    let shape = |name: &str| match source.info(name) {
        Some(info) => Ok(info.shape),
        None => Err(format!("the source has no `{name}`: not a Whisper model")),
    };
    let blocks = |stack: &str| {
        (0..)
            .take_while(|layer| {
                source
                    .info(&format!("{stack}.blocks.{layer}.attn_ln.weight"))
                    .is_some()
            })
            .count()
    };
    let [_, n_mels, _] = shape("encoder.conv1.weight")?[..] else {
        return Err("the first convolution has another rank".into());
    };
    let [n_audio_ctx, n_audio_state] = shape("encoder.positional_embedding")?[..] else {
        return Err("the encoder's positions have another rank".into());
    };
    let [n_text_ctx, n_text_state] = shape("decoder.positional_embedding")?[..] else {
        return Err("the decoder's positions have another rank".into());
    };
    let dims = [
        ("n_mels", n_mels),
        ("n_vocab", shape("decoder.token_embedding.weight")?[0]),
        ("n_audio_ctx", n_audio_ctx),
        ("n_audio_state", n_audio_state),
        ("n_audio_head", n_audio_state / HEAD_WIDTH),
        ("n_audio_layer", blocks("encoder")),
        ("n_text_ctx", n_text_ctx),
        ("n_text_state", n_text_state),
        ("n_text_head", n_text_state / HEAD_WIDTH),
        ("n_text_layer", blocks("decoder")),
    ];

    let mut metadata = BTreeMap::new();
    for (name, value) in dims {
        let (key, value) = (format!("dims.{name}"), value.to_string());
        if source
            .metadata()
            .get(&key)
            .is_some_and(|stated| *stated != value)
        {
            return Err(format!("the source states another {key} than {value}").into());
        }
        metadata.insert(key, value);
    }
    for (key, value) in [("origin", ORIGIN), ("license", LICENSE), ("recipe", RECIPE)] {
        metadata.insert(key.to_owned(), value.to_owned());
    }
    Ok(metadata)
}

/// The tensors of `source`, its matrices as codes and scales. Tables of positions are no matrices to multiply by.
fn quantized(source: &dyn Checkpoint) -> Result<BTreeMap<String, Tensor>, Box<dyn Error>> {
    let mut tensors = BTreeMap::new();
    for name in source.names() {
        // A head beside the two stacks is tied: it repeats the token table.
        if !name.starts_with("encoder.") && !name.starts_with("decoder.") {
            continue;
        }
        let tensor = source.tensor(name)?;
        let &[rows, cols] = tensor.shape.as_slice() else {
            tensors.insert(name.to_owned(), tensor);
            continue;
        };
        if !name.ends_with(".weight") {
            tensors.insert(name.to_owned(), tensor);
            continue;
        }
        let values = values(name, &tensor)?;
        let mut codes = vec![0; values.len()];
        let scales: Vec<f32> = values
            .chunks_exact(cols)
            .zip(codes.chunks_exact_mut(cols))
            .map(|(row, codes)| q8_row(row, codes))
            .collect();
        let codes = Tensor {
            dtype: Dtype::I8,
            shape: vec![rows, cols],
            data: codes.iter().flat_map(|code| code.to_le_bytes()).collect(),
        };
        let scales = Tensor {
            dtype: Dtype::F32,
            shape: vec![rows],
            data: scales
                .iter()
                .flat_map(|scale| scale.to_le_bytes())
                .collect(),
        };
        tensors.insert(name.to_owned(), codes);
        tensors.insert(format!("{name}.scale"), scales);
    }
    Ok(tensors)
}

/// A tensor's elements as singles.
fn values(name: &str, tensor: &Tensor) -> Result<Vec<f32>, String> {
    let halves = || tensor.data.as_chunks::<2>().0.iter();
    Ok(match tensor.dtype {
        Dtype::F16 => halves()
            .map(|&bytes| f16::from_le_bytes(bytes).to_f32())
            .collect(),
        Dtype::Bf16 => halves()
            .map(|&bytes| bf16::from_le_bytes(bytes).to_f32())
            .collect(),
        Dtype::F32 => tensor
            .data
            .as_chunks::<4>()
            .0
            .iter()
            .map(|&bytes| f32::from_le_bytes(bytes))
            .collect(),
        other => return Err(format!("`{name}` is {other}: already quantised?")),
    })
}
