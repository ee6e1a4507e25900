//! Files of weights made by hand: a whisper of one layer and width 64, and a pickle that is up to no good.

#![allow(dead_code, reason = "each test file uses a part of this")]
#![allow(
    clippy::unwrap_used,
    reason = "this is test code, though no function here is a test"
)]

use std::collections::BTreeMap;
use std::io::{Cursor, Write};

const WIDTH: usize = 64;
const VOCAB: usize = 51864;

/// `config.json` of the small model, as Hugging Face spells it.
pub(crate) fn config() -> String {
    serde_json::json!({
        "model_type": "whisper", "architectures": ["WhisperForConditionalGeneration"],
        "d_model": WIDTH, "vocab_size": VOCAB, "num_mel_bins": 80,
        "encoder_layers": 1, "encoder_attention_heads": 1, "encoder_ffn_dim": 4 * WIDTH,
        "decoder_layers": 1, "decoder_attention_heads": 1, "decoder_ffn_dim": 4 * WIDTH,
        "max_source_positions": 1500, "max_target_positions": 448,
        "activation_function": "gelu", "scale_embedding": false, "tie_word_embeddings": true,
    })
    .to_string()
}

/// Shapes by name; all values are zero.
pub(crate) struct Weights(BTreeMap<String, Vec<usize>>);

impl Weights {
    /// All tensors of the small model.
    pub(crate) fn small() -> Self {
        let d = WIDTH;
        let mut weights = Self(BTreeMap::new());
        weights.add("model.encoder.conv1.weight", &[d, 80, 3]);
        weights.add("model.encoder.conv1.bias", &[d]);
        weights.add("model.encoder.conv2.weight", &[d, d, 3]);
        weights.add("model.encoder.conv2.bias", &[d]);
        weights.add("model.encoder.embed_positions.weight", &[1500, d]);
        weights.add("model.decoder.embed_positions.weight", &[448, d]);
        weights.add("model.decoder.embed_tokens.weight", &[VOCAB, d]);
        for side in ["encoder", "decoder"] {
            weights.norm(&format!("model.{side}.layer_norm"));
            let layer = format!("model.{side}.layers.0");
            weights.attention(&format!("{layer}.self_attn"));
            if side == "decoder" {
                weights.attention(&format!("{layer}.encoder_attn"));
            }
            weights.norm(&format!("{layer}.final_layer_norm"));
            weights.add(&format!("{layer}.fc1.weight"), &[4 * d, d]);
            weights.add(&format!("{layer}.fc1.bias"), &[4 * d]);
            weights.add(&format!("{layer}.fc2.weight"), &[d, 4 * d]);
            weights.add(&format!("{layer}.fc2.bias"), &[d]);
        }
        weights
    }

    pub(crate) fn remove(&mut self, name: &str) {
        self.0.remove(name).unwrap();
    }

    pub(crate) fn reshape(&mut self, name: &str, shape: &[usize]) {
        *self.0.get_mut(name).unwrap() = shape.to_vec();
    }

    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn elements(&self) -> usize {
        self.0
            .values()
            .map(|shape| shape.iter().product::<usize>())
            .sum()
    }

    fn add(&mut self, name: &str, shape: &[usize]) {
        self.0.insert(name.to_owned(), shape.to_vec());
    }

    fn norm(&mut self, name: &str) {
        self.add(&format!("{name}.weight"), &[WIDTH]);
        self.add(&format!("{name}.bias"), &[WIDTH]);
    }

    /// Projections and the norm before them; keys have no bias.
    fn attention(&mut self, name: &str) {
        for role in ["q_proj", "k_proj", "v_proj", "out_proj"] {
            self.add(&format!("{name}.{role}.weight"), &[WIDTH, WIDTH]);
            if role != "k_proj" {
                self.add(&format!("{name}.{role}.bias"), &[WIDTH]);
            }
        }
        self.norm(&format!("{name}_layer_norm"));
    }
}

/// `weights` as a safetensors file of 16-bit zeros.
pub(crate) fn safetensors(weights: &Weights) -> Vec<u8> {
    let mut header = serde_json::Map::new();
    let mut end = 0;
    for (name, shape) in &weights.0 {
        let begin = end;
        end += 2 * shape.iter().product::<usize>();
        let entry =
            serde_json::json!({"dtype": "F16", "shape": shape, "data_offsets": [begin, end]});
        header.insert(name.clone(), entry);
    }
    let mut header = serde_json::Value::Object(header).to_string();
    while !header.len().is_multiple_of(8) {
        header.push(' ');
    }
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header.as_bytes());
    file.resize(file.len() + end, 0);
    file
}

/// A torch archive whose pickle of protocol 2 calls `module.name("true")`.
pub(crate) fn pickle_archive(module: &str, name: &str) -> Vec<u8> {
    // PROTO 2, GLOBAL, BINUNICODE of 4 bytes, TUPLE1, REDUCE, STOP.
    let call = [
        b"\x80\x02c",
        format!("{module}\n{name}\n").as_bytes(),
        b"X\x04\0\0\0true\x85R.",
    ]
    .concat();
    let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let stored =
        zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    for (member, bytes) in [("archive/data.pkl", &call[..]), ("archive/version", b"3\n")] {
        archive.start_file(member, stored).unwrap();
        archive.write_all(bytes).unwrap();
    }
    archive.finish().unwrap().into_inner()
}
