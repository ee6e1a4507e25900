//! Two tiny models with random weights against `transformers`, stage by stage, on every backend.

use std::fs;
use std::path::PathBuf;

use safetensors::SafeTensors;

use super::*;
use crate::checkpoint::open;
use crate::compute::cpu::{Cpu, Isa};
use crate::compute::reference::Reference;
use crate::nn::Precision;

/// Relative to the largest value of a stage.
const BOUND: f32 = 2e-5;
/// Every so many positions of the encoder are in the goldens.
const STEP: usize = 50;
/// Of the decoder's ids, those that a greedy text begins with.
const PROMPT: usize = 4;

/// A model and what `transformers` computes with it.
struct Golden {
    dims: Dims,
    checkpoint: Box<dyn Checkpoint>,
    bytes: Vec<u8>,
}

impl Golden {
    fn read(name: &str) -> Self {
        let dir = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
            .join("tests/golden/random_whisper")
            .join(name);
        let config = dir.join("config.json");
        Self {
            dims: Dims::from_config_json(&config, &fs::read(&config).unwrap()).unwrap(),
            checkpoint: open(&dir.join("model.safetensors")).unwrap(),
            bytes: fs::read(dir.join("golden.safetensors")).unwrap(),
        }
    }

    fn values(&self, name: &str) -> Vec<f32> {
        let tensors = SafeTensors::deserialize(&self.bytes).unwrap();
        tensors
            .tensor(name)
            .unwrap()
            .data()
            .as_chunks()
            .0
            .iter()
            .map(|&x| f32::from_le_bytes(x))
            .collect()
    }

    fn ids(&self, name: &str) -> Vec<u32> {
        let tensors = SafeTensors::deserialize(&self.bytes).unwrap();
        tensors
            .tensor(name)
            .unwrap()
            .data()
            .as_chunks()
            .0
            .iter()
            .map(|&x| u32::from_le_bytes(x))
            .collect()
    }

    /// Features that any language can make, `[frames, n_mels]`.
    fn features(&self) -> Vec<f32> {
        let bin =
            |t: f64, m: f64| 0.6 * (0.37 * m + 0.011 * t).sin() + 0.4 * (0.05 * m - 0.07 * t).cos();
        let frames = 2 * self.dims.n_audio_ctx;
        (0..frames)
            .flat_map(|t| (0..self.dims.n_mels).map(move |m| bin(t as f64, m as f64) as f32))
            .collect()
    }

    fn assert_close<B: Backend>(&self, b: &B, backend: &str, stage: &str, x: &B::Tensor) {
        let (mut ours, golden) = (b.download(x).unwrap(), self.values(stage));
        if stage.starts_with("encoder.") {
            ours = ours
                .chunks_exact(self.dims.n_audio_state)
                .step_by(STEP)
                .flatten()
                .copied()
                .collect();
        }
        assert_eq!(ours.len(), golden.len(), "{backend}: {stage}: size");
        let largest = golden
            .iter()
            .fold(0f32, |largest, value| largest.max(value.abs()));
        for (i, (ours, golden)) in ours.iter().zip(&golden).enumerate() {
            let off = (ours - golden).abs();
            assert!(
                off <= BOUND * largest,
                "{backend}: {stage}: value {i} is {ours}, not {golden}"
            );
        }
    }

    fn assert_stages_agree<B: Backend>(&self, b: &B, backend: &str) {
        let model = Whisper::load(
            b,
            &*self.checkpoint,
            self.dims.clone(),
            UnknownTensors::Refuse,
            Preparation::anew(Precision::F32),
        )
        .unwrap();
        let shape = [1, 2 * self.dims.n_audio_ctx, self.dims.n_mels];
        let mel = b.upload(&shape, &self.features()).unwrap();

        let mut x = model.encoder.embed(b, &mel).unwrap();
        self.assert_close(b, backend, "encoder.embedded", &x);
        for (i, block) in model.encoder.blocks.iter().enumerate() {
            let shape = block.attn.kv_shape(1, self.dims.n_audio_ctx, KvFormat::F32);
            let mut kv = b.kv_cache(shape).unwrap();
            x = block.forward(b, &x, &mut kv).unwrap();
            self.assert_close(b, backend, &format!("encoder.blocks.{i}"), &x);
        }
        let xa = model.encode(b, &mel).unwrap();
        self.assert_close(b, backend, "encoder.ln_post", &xa);

        let ids = self.ids("decoder_input_ids");
        let cross_kv = model.cross_kv(b, &xa).unwrap();
        let mut state = model.text_state(b, 1).unwrap();
        let mut x = model.decoder.embed(b, &ids, &state).unwrap();
        self.assert_close(b, backend, "decoder.embedded", &x);
        for (i, block) in model.decoder.blocks.iter().enumerate() {
            x = block
                .forward(b, &x, &mut state.kv[i], &cross_kv[i])
                .unwrap();
            self.assert_close(b, backend, &format!("decoder.blocks.{i}"), &x);
        }
        self.assert_close(
            b,
            backend,
            "decoder.ln",
            &model.decoder.ln.forward(b, &x).unwrap(),
        );

        let mut state = model.text_state(b, 1).unwrap();
        let logits = model.decode(b, &ids, &cross_kv, &mut state, 0).unwrap();
        self.assert_close(b, backend, "logits", &logits);

        assert_eq!(
            self.greedy(b, &model, &cross_kv, 1),
            self.ids("greedy_ids"),
            "{backend}"
        );
        assert_eq!(
            self.greedy(b, &model, &cross_kv, 3),
            self.ids("greedy_ids"),
            "{backend}: three at once"
        );
    }

    /// The greedy text after the first ids, a token at a time, the last of `batch` equal ones.
    fn greedy<B: Backend>(
        &self,
        b: &B,
        model: &Whisper<B>,
        cross_kv: &[B::KvCache],
        batch: usize,
    ) -> Vec<u32> {
        let mut state = model.text_state(b, batch).unwrap();
        let mut tokens = self.ids("decoder_input_ids")[..PROMPT].to_vec();
        let mut text = Vec::new();
        while text.len() < self.ids("greedy_ids").len() {
            let last = tokens.len() - 1;
            let logits = model
                .decode(b, &tokens.repeat(batch), cross_kv, &mut state, last)
                .unwrap();
            let logits = b.download(&logits).unwrap();
            let logits = &logits[logits.len() - self.dims.n_vocab..];
            let best = (0..logits.len())
                .max_by(|&i, &j| logits[i].total_cmp(&logits[j]))
                .unwrap();
            tokens = vec![best as u32];
            text.push(best as u32);
        }
        text
    }
}

#[test]
fn every_stage_agrees_with_transformers() {
    for name in ["wide", "narrow"] {
        let golden = Golden::read(name);
        golden.assert_stages_agree(&Reference, &format!("{name}, reference"));
        for isa in Isa::available() {
            let cpu = Cpu::new(isa, 2).unwrap();
            golden.assert_stages_agree(&cpu, &format!("{name}, {}", isa.name()));
        }
    }
}

#[test]
fn a_tensor_that_does_not_fit_the_geometry_is_named_with_both_shapes() {
    let golden = Golden::read("narrow");
    let dims = Dims {
        n_audio_layer: 2,
        ..golden.dims.clone()
    };
    let error = Whisper::load(
        &Reference,
        &*golden.checkpoint,
        dims,
        UnknownTensors::Refuse,
        Preparation::anew(Precision::F32),
    )
    .err()
    .unwrap()
    .to_string();
    assert!(error.contains("encoder.blocks.1.attn_ln.weight"), "{error}");
    let dims = Dims {
        n_vocab: 301,
        ..golden.dims.clone()
    };
    let error = Whisper::load(
        &Reference,
        &*golden.checkpoint,
        dims,
        UnknownTensors::Refuse,
        Preparation::anew(Precision::F32),
    )
    .err()
    .unwrap()
    .to_string();
    assert!(
        error.contains("[300, 30]") && error.contains("[301, 30]"),
        "{error}"
    );
}

#[test]
fn tensors_without_a_place_are_refused_by_name_or_passed_over() {
    let golden = Golden::read("narrow");
    let load = |unknown| {
        let dims = Dims {
            n_text_layer: 2,
            ..golden.dims.clone()
        };
        Whisper::load(
            &Reference,
            &*golden.checkpoint,
            dims,
            unknown,
            Preparation::anew(Precision::F32),
        )
    };
    let error = load(UnknownTensors::Refuse).err().unwrap().to_string();
    assert!(
        error.contains("have 24 tensors that have no place")
            && error.contains("`decoder.blocks.2.attn.key.weight`"),
        "{error}"
    );
    assert!(load(UnknownTensors::Ignore).is_ok());
}

#[test]
fn a_model_in_whisper_cpp_s_form_writes_what_its_source_does() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/ggml/narrow.bin");
    let golden = Golden {
        checkpoint: open(&path).unwrap(),
        ..Golden::read("narrow")
    };
    let dims = Dims::from_metadata(golden.checkpoint.metadata()).unwrap();
    assert_eq!(dims, golden.dims);

    let b = Cpu::new(Isa::available()[0], 2).unwrap();
    let shape = [1, 2 * dims.n_audio_ctx, dims.n_mels];
    let model = Whisper::load(
        &b,
        &*golden.checkpoint,
        dims,
        UnknownTensors::Refuse,
        Preparation::anew(Precision::F32),
    )
    .unwrap();
    let mel = b.upload(&shape, &golden.features()).unwrap();
    let xa = model.encode(&b, &mel).unwrap();
    let cross_kv = model.cross_kv(&b, &xa).unwrap();
    assert_eq!(
        golden.greedy(&b, &model, &cross_kv, 1),
        golden.ids("greedy_ids")
    );
}
