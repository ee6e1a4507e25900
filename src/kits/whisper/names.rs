//! The two spellings of Whisper's tensor names: OpenAI's, which the rest of this kit uses, and that of Hugging Face
//! transformers.

use std::collections::BTreeMap;

use crate::checkpoint::{Checkpoint, Error, Tensor, TensorInfo};

/// What transformers puts before every name of a model that has a head.
const HF_PREFIX: &str = "model.";
/// The head, which both take from the token table.
const HF_TIED_HEAD: &str = "proj_out.weight";

/// Names outside the blocks: transformers' and OpenAI's.
const OUTER: [(&str, &str); 9] = [
    ("encoder.conv1.", "encoder.conv1."),
    ("encoder.conv2.", "encoder.conv2."),
    (
        "encoder.embed_positions.weight",
        "encoder.positional_embedding",
    ),
    ("encoder.layers.", "encoder.blocks."),
    ("encoder.layer_norm.", "encoder.ln_post."),
    ("decoder.embed_tokens.", "decoder.token_embedding."),
    (
        "decoder.embed_positions.weight",
        "decoder.positional_embedding",
    ),
    ("decoder.layers.", "decoder.blocks."),
    ("decoder.layer_norm.", "decoder.ln."),
];

/// Names inside a block. The MLP has no name of its own in transformers, and its norm is the block's "final" one.
const INNER: [(&str, &str); 13] = [
    ("self_attn.q_proj.", "attn.query."),
    ("self_attn.k_proj.", "attn.key."),
    ("self_attn.v_proj.", "attn.value."),
    ("self_attn.out_proj.", "attn.out."),
    ("self_attn_layer_norm.", "attn_ln."),
    ("encoder_attn.q_proj.", "cross_attn.query."),
    ("encoder_attn.k_proj.", "cross_attn.key."),
    ("encoder_attn.v_proj.", "cross_attn.value."),
    ("encoder_attn.out_proj.", "cross_attn.out."),
    ("encoder_attn_layer_norm.", "cross_attn_ln."),
    ("fc1.", "mlp.0."),
    ("fc2.", "mlp.2."),
    ("final_layer_norm.", "mlp_ln."),
];

/// OpenAI's name for the tensor that transformers calls `hf`, with or without its `model.` in front; `None` for a name
/// that is not transformers'.
pub fn openai_name(hf: &str) -> Option<String> {
    let hf = hf.strip_prefix(HF_PREFIX).unwrap_or(hf);
    renamed(hf, |&(hf, openai)| (hf, openai))
}

/// Transformers' name for the tensor that OpenAI calls `openai`; `None` for a name that is not OpenAI's.
pub fn hf_name(openai: &str) -> Option<String> {
    let name = renamed(openai, |&(hf, openai)| (openai, hf))?;
    Some(format!("{HF_PREFIX}{name}"))
}

/// `name` in the other spelling, `direction` turning the tables' rows.
fn renamed<'t>(
    name: &str,
    direction: impl Fn(&'t (&'t str, &'t str)) -> (&'t str, &'t str),
) -> Option<String> {
    let replace = |name: &str, table: &'t [(&'t str, &'t str)]| {
        table.iter().map(&direction).find_map(|(from, to)| {
            let rest = name.strip_prefix(from)?;
            // A whole name has nothing after it, the beginning of one has something.
            (from.ends_with('.') != rest.is_empty()).then(|| (to, rest.to_owned()))
        })
    };
    let (outer, rest) = replace(name, &OUTER)?;
    if !(outer.ends_with("layers.") || outer.ends_with("blocks.")) {
        return Some(format!("{outer}{rest}"));
    }
    let (layer, inner) = rest.split_once('.')?;
    layer.parse::<u32>().ok()?;
    let (inner, rest) = replace(inner, &INNER)?;
    Some(format!("{outer}{layer}.{inner}{rest}"))
}

/// `checkpoint` under OpenAI's names, whichever of the two it was saved with.
///
/// Names that are neither's stay as they are. A head of transformers' is left out: it repeats the token table.
pub fn with_openai_names(checkpoint: &dyn Checkpoint) -> Renamed<'_> {
    let stored = checkpoint
        .names()
        .into_iter()
        .filter(|&name| name != HF_TIED_HEAD)
        .map(|name| {
            (
                openai_name(name).unwrap_or_else(|| name.to_owned()),
                name.to_owned(),
            )
        })
        .collect();
    Renamed { checkpoint, stored }
}

/// A checkpoint whose tensors answer to other names than they are stored under.
pub struct Renamed<'c> {
    checkpoint: &'c dyn Checkpoint,
    /// The name stored, by the name answered to.
    stored: BTreeMap<String, String>,
}

impl Checkpoint for Renamed<'_> {
    fn format(&self) -> &'static str {
        self.checkpoint.format()
    }

    fn names(&self) -> Vec<&str> {
        self.stored.keys().map(String::as_str).collect()
    }

    fn info(&self, name: &str) -> Option<TensorInfo> {
        self.checkpoint.info(self.stored.get(name)?)
    }

    fn tensor(&self, name: &str) -> Result<Tensor, Error> {
        match self.stored.get(name) {
            Some(stored) => self.checkpoint.tensor(stored),
            None => Err(Error::MissingTensor { name: name.into() }),
        }
    }

    fn metadata(&self) -> &BTreeMap<String, String> {
        self.checkpoint.metadata()
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use bytes::Bytes;

    use super::*;
    use crate::checkpoint::{Safetensors, open};

    #[test]
    fn every_name_has_its_counterpart() {
        let cases = [
            ("model.encoder.conv1.weight", "encoder.conv1.weight"),
            ("model.encoder.conv2.bias", "encoder.conv2.bias"),
            (
                "model.encoder.embed_positions.weight",
                "encoder.positional_embedding",
            ),
            ("model.encoder.layer_norm.weight", "encoder.ln_post.weight"),
            (
                "model.encoder.layers.3.self_attn.k_proj.weight",
                "encoder.blocks.3.attn.key.weight",
            ),
            (
                "model.encoder.layers.0.self_attn.out_proj.bias",
                "encoder.blocks.0.attn.out.bias",
            ),
            (
                "model.encoder.layers.0.self_attn_layer_norm.bias",
                "encoder.blocks.0.attn_ln.bias",
            ),
            (
                "model.encoder.layers.31.fc1.weight",
                "encoder.blocks.31.mlp.0.weight",
            ),
            (
                "model.encoder.layers.0.fc2.bias",
                "encoder.blocks.0.mlp.2.bias",
            ),
            (
                "model.encoder.layers.0.final_layer_norm.weight",
                "encoder.blocks.0.mlp_ln.weight",
            ),
            (
                "model.decoder.embed_tokens.weight",
                "decoder.token_embedding.weight",
            ),
            (
                "model.decoder.embed_positions.weight",
                "decoder.positional_embedding",
            ),
            (
                "model.decoder.layers.2.encoder_attn.q_proj.weight",
                "decoder.blocks.2.cross_attn.query.weight",
            ),
            (
                "model.decoder.layers.2.encoder_attn.v_proj.bias",
                "decoder.blocks.2.cross_attn.value.bias",
            ),
            (
                "model.decoder.layers.2.encoder_attn_layer_norm.weight",
                "decoder.blocks.2.cross_attn_ln.weight",
            ),
            ("model.decoder.layer_norm.bias", "decoder.ln.bias"),
        ];
        for (hf, openai) in cases {
            assert_eq!(openai_name(hf).as_deref(), Some(openai), "{hf}");
            assert_eq!(hf_name(openai).as_deref(), Some(hf), "{openai}");
            let bare = hf.strip_prefix("model.").unwrap();
            assert_eq!(openai_name(bare).as_deref(), Some(openai), "{bare}");
        }
    }

    #[test]
    fn other_names_have_none() {
        for name in [
            "",
            "proj_out.weight",
            "model.encoder.layers.x.fc1.weight",
            "model.encoder.layers.0.fc3.weight",
            "model.encoder.layers.0",
            "model.encoder.embed_positions.weight.scale",
            "model.encoder.layer_norm.",
            "encoder.blocks.0.mlp.0.weight",
        ] {
            assert_eq!(openai_name(name), None, "{name}");
        }
        assert_eq!(hf_name("encoder.layers.0.fc1.weight"), None);
    }

    #[test]
    fn a_checkpoint_answers_to_openai_names_only() {
        let header = r#"{"model.decoder.layer_norm.bias":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},
            "extra":{"dtype":"U8","shape":[1],"data_offsets":[1,2]},
            "proj_out.weight":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}}"#;
        let file = [
            &(header.len() as u64).to_le_bytes()[..],
            header.as_bytes(),
            &[7, 8, 9],
        ]
        .concat();
        let stored = Safetensors::from_bytes(Bytes::from(file), "m").unwrap();
        let checkpoint = with_openai_names(&stored);
        assert_eq!(checkpoint.names(), ["decoder.ln.bias", "extra"]);
        assert_eq!(checkpoint.tensor("decoder.ln.bias").unwrap().data, [7][..]);
        assert_eq!(checkpoint.info("extra").unwrap().shape, [1]);
        assert!(checkpoint.tensor("model.decoder.layer_norm.bias").is_err());
        assert!(checkpoint.info("proj_out.weight").is_none());
    }

    #[test]
    #[ignore = "needs whisper tiny.en in $PRETRAINED_FIXTURES"]
    fn both_files_of_one_model_hold_the_same_tensors() {
        let fixtures = PathBuf::from(std::env::var_os("PRETRAINED_FIXTURES").expect("fixtures"));
        let hf = open(&fixtures.join("whisper-tiny.en")).unwrap();
        let hf = with_openai_names(&*hf);
        let torch = open(&fixtures.join("whisper-tiny.en.pt")).unwrap();
        let torch = with_openai_names(&*torch);
        assert_eq!((hf.format(), torch.format()), ("safetensors", "torch"));
        assert_eq!(
            torch.metadata().get("dims.n_audio_ctx").map(String::as_str),
            Some("1500")
        );
        assert_eq!(hf.names(), torch.names());
        assert_eq!(hf.names().len(), 167);
        for name in hf.names() {
            let (ours, theirs) = (torch.tensor(name).unwrap(), hf.tensor(name).unwrap());
            assert_eq!(
                (ours.dtype, &ours.shape),
                (theirs.dtype, &theirs.shape),
                "{name}"
            );
            assert!(ours.data == theirs.data, "{name}");
        }
    }
}
