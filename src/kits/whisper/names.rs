//! The tensors of a model: their names in both spellings, and their shapes.

use super::Dims;
use crate::checkpoint::{Checkpoint, Renamed};
use crate::nn::{self, UnknownTensors};

/// The layers of a block, first as `transformers` calls them.
const LAYERS: [(&str, &str); 13] = [
    ("self_attn_layer_norm", "attn_ln"),
    ("self_attn.q_proj", "attn.query"),
    ("self_attn.k_proj", "attn.key"),
    ("self_attn.v_proj", "attn.value"),
    ("self_attn.out_proj", "attn.out"),
    ("encoder_attn_layer_norm", "cross_attn_ln"),
    ("encoder_attn.q_proj", "cross_attn.query"),
    ("encoder_attn.k_proj", "cross_attn.key"),
    ("encoder_attn.v_proj", "cross_attn.value"),
    ("encoder_attn.out_proj", "cross_attn.out"),
    ("final_layer_norm", "mlp_ln"),
    ("fc1", "mlp.0"),
    ("fc2", "mlp.2"),
];

/// OpenAI's name of a tensor that `transformers` calls `name`, with or without `model.` in front; `None` for any other
/// name, the tied `proj_out.weight` among them.
pub fn openai_name(name: &str) -> Option<String> {
    let (stack, rest) = name
        .strip_prefix("model.")
        .unwrap_or(name)
        .split_once('.')?;
    match (stack, rest) {
        ("encoder" | "decoder", "embed_positions.weight") => {
            return Some(format!("{stack}.positional_embedding"));
        }
        ("decoder", "embed_tokens.weight") => {
            return Some("decoder.token_embedding.weight".to_owned());
        }
        _ => {}
    }
    let (layer, kind) = rest.rsplit_once('.')?;
    let layer = match (stack, layer) {
        ("encoder", "layer_norm") => "ln_post".to_owned(),
        ("decoder", "layer_norm") => "ln".to_owned(),
        ("encoder", "conv1" | "conv2") => layer.to_owned(),
        ("encoder" | "decoder", _) => {
            let (block, layer) = layer.strip_prefix("layers.")?.split_once('.')?;
            let (_, layer) = LAYERS.iter().find(|(name, _)| *name == layer)?;
            format!("blocks.{block}.{layer}")
        }
        _ => return None,
    };
    Some(format!("{stack}.{layer}.{kind}"))
}

/// `checkpoint` with each tensor that `transformers` named under OpenAI's name; the others keep theirs.
pub fn with_openai_names(checkpoint: &dyn Checkpoint) -> Renamed<'_> {
    Renamed::new(checkpoint, openai_name)
}

/// Whether a tensor belongs to a model without being one of its [`tensors`]: the tied output head that some files
/// repeat, and the scales of int8 weights.
pub fn is_companion(name: &str) -> bool {
    name == "proj_out.weight" || name.ends_with(".weight.scale")
}

/// Whether `checkpoint`, under OpenAI's names, has the tensors of a model of these dimensions.
pub(super) fn check(
    checkpoint: &dyn Checkpoint,
    dims: &Dims,
    unknown: UnknownTensors,
) -> Result<(), nn::Error> {
    let expected = tensors(dims).into_iter().map(|(name, _)| name);
    nn::check_names(checkpoint, expected, is_companion, unknown)
}

/// Every tensor of a model, under OpenAI's name, with its shape.
pub fn tensors(dims: &Dims) -> Vec<(String, Vec<usize>)> {
    let mut all = Vec::new();
    let mut add = |name: String, shape: &[usize]| all.push((name, shape.to_vec()));
    let (audio, text) = (dims.n_audio_state, dims.n_text_state);

    for (conv, channels) in [("conv1", dims.n_mels), ("conv2", audio)] {
        add(format!("encoder.{conv}.weight"), &[audio, channels, 3]);
        add(format!("encoder.{conv}.bias"), &[audio]);
    }
    add(
        "encoder.positional_embedding".to_owned(),
        &[dims.n_audio_ctx, audio],
    );
    for i in 0..dims.n_audio_layer {
        block(
            &format!("encoder.blocks.{i}"),
            &["attn"],
            audio,
            dims.n_audio_mlp,
            &mut add,
        );
    }
    norm("encoder.ln_post", audio, &mut add);

    add(
        "decoder.token_embedding.weight".to_owned(),
        &[dims.n_vocab, text],
    );
    add(
        "decoder.positional_embedding".to_owned(),
        &[dims.n_text_ctx, text],
    );
    for i in 0..dims.n_text_layer {
        block(
            &format!("decoder.blocks.{i}"),
            &["attn", "cross_attn"],
            text,
            dims.n_text_mlp,
            &mut add,
        );
    }
    norm("decoder.ln", text, &mut add);
    all
}

fn block(
    name: &str,
    attentions: &[&str],
    n_state: usize,
    n_mlp: usize,
    add: &mut impl FnMut(String, &[usize]),
) {
    for attention in attentions {
        for part in ["query", "key", "value", "out"] {
            add(
                format!("{name}.{attention}.{part}.weight"),
                &[n_state, n_state],
            );
            if part != "key" {
                add(format!("{name}.{attention}.{part}.bias"), &[n_state]);
            }
        }
        norm(&format!("{name}.{attention}_ln"), n_state, add);
    }
    for (part, rows, cols) in [("mlp.0", n_mlp, n_state), ("mlp.2", n_state, n_mlp)] {
        add(format!("{name}.{part}.weight"), &[rows, cols]);
        add(format!("{name}.{part}.bias"), &[rows]);
    }
    norm(&format!("{name}.mlp_ln"), n_state, add);
}

fn norm(name: &str, width: usize, add: &mut impl FnMut(String, &[usize])) {
    add(format!("{name}.weight"), &[width]);
    add(format!("{name}.bias"), &[width]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_transformers_are_put_into_openais_words() {
        let cases = [
            ("model.encoder.conv1.weight", "encoder.conv1.weight"),
            (
                "model.encoder.embed_positions.weight",
                "encoder.positional_embedding",
            ),
            (
                "encoder.layers.11.self_attn.k_proj.weight",
                "encoder.blocks.11.attn.key.weight",
            ),
            ("model.encoder.layer_norm.bias", "encoder.ln_post.bias"),
            (
                "model.decoder.embed_tokens.weight",
                "decoder.token_embedding.weight",
            ),
            (
                "model.decoder.layers.0.encoder_attn_layer_norm.bias",
                "decoder.blocks.0.cross_attn_ln.bias",
            ),
            (
                "model.decoder.layers.3.fc2.weight",
                "decoder.blocks.3.mlp.2.weight",
            ),
            ("model.decoder.layer_norm.weight", "decoder.ln.weight"),
        ];
        for (transformers, openai) in cases {
            assert_eq!(openai_name(transformers).as_deref(), Some(openai));
        }
        for other in [
            "proj_out.weight",
            "model.decoder.layers.x",
            "bert.embeddings.weight",
            "",
            "model.",
        ] {
            assert_eq!(openai_name(other), None, "{other}");
        }
    }
}
