//! Which file of a model is what, by its name: the conventions of the hub's repositories, which directories on disk
//! follow too.

use std::{
    collections::{BTreeSet, HashMap},
    fs,
    path::Path,
};

use serde::Deserialize;

use super::{
    Kind,
    resource::{WEIGHTS, is_safe_path},
};

/// Names of weight files, the preferred one first: safetensors before pickles.
pub(super) const WEIGHT_FILES: [&str; 3] = [SAFETENSORS, SAFETENSORS_INDEX, "pytorch_model.bin"];

const SAFETENSORS: &str = "model.safetensors";
const SAFETENSORS_INDEX: &str = "model.safetensors.index.json";

/// Endings of weight files that may have any name, if there is only one of the kind.
pub(super) const WEIGHT_ENDINGS: [&str; 2] = [".safetensors", ".pt"];

/// What may stand beside the weights: key, name, and what it holds.
pub(super) const COMPANIONS: [(&str, &str, Kind); 16] = [
    ("config", "config.json", Kind::Json),
    ("generation_config", "generation_config.json", Kind::Json),
    (
        "preprocessor_config",
        "preprocessor_config.json",
        Kind::Json,
    ),
    ("processor_config", "processor_config.json", Kind::Json),
    ("tokenizer", "tokenizer.json", Kind::TokenizerJson),
    ("tokenizer_config", "tokenizer_config.json", Kind::Json),
    ("special_tokens_map", "special_tokens_map.json", Kind::Json),
    ("vocab", "vocab.json", Kind::Json),
    ("vocab_text", "vocab.txt", Kind::Text),
    ("merges", "merges.txt", Kind::Text),
    ("sentencepiece", "tokenizer.model", Kind::Sentencepiece),
    ("chat_template", "chat_template.jinja", Kind::Jinja),
    ("modules", "modules.json", Kind::Json),
    ("pooling_config", "1_Pooling/config.json", Kind::Json),
    (
        "sentence_transformers_config",
        "config_sentence_transformers.json",
        Kind::Json,
    ),
    (
        "sentence_bert_config",
        "sentence_bert_config.json",
        Kind::Json,
    ),
];

/// What the weights of a model with files of these names are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Weights<'a> {
    /// This file, or what this index names.
    File(&'a str),
    /// One of several, and no rule says which.
    Ambiguous(Vec<&'a str>),
    /// Nowhere.
    Missing,
}

impl<'a> Weights<'a> {
    /// Chooses among the names at the top of a directory.
    pub(super) fn among(names: &[&'a str]) -> Self {
        let mut top: Vec<_> = names
            .iter()
            .copied()
            .filter(|it| !it.contains('/'))
            .collect();
        top.sort_unstable();
        if let Some(name) = WEIGHT_FILES
            .iter()
            .find_map(|known| top.iter().find(|name| *name == known))
        {
            return Self::File(name);
        }
        for ending in WEIGHT_ENDINGS {
            let files: Vec<_> = top
                .iter()
                .copied()
                .filter(|it| it.ends_with(ending))
                .collect();
            match files.as_slice() {
                [] => {}
                [file] => return Self::File(file),
                _ => return Self::Ambiguous(files),
            }
        }
        Self::Missing
    }
}

/// What was looked for when there are no weights.
pub(super) fn looked_for() -> Vec<String> {
    let names = WEIGHT_FILES.iter().map(|&name| name.to_owned());
    names
        .chain(WEIGHT_ENDINGS.iter().map(|ending| format!("*{ending}")))
        .collect()
}

/// The files that the index at `path` names; `None` when it is none.
pub(super) fn shards_of(path: &Path) -> Option<BTreeSet<String>> {
    #[derive(Deserialize)]
    struct Index {
        weight_map: HashMap<String, String>,
    }
    let index: Index = serde_json::from_slice(&fs::read(path).ok()?).ok()?;
    let shards = index.weight_map.into_values();
    Some(shards.filter(|shard| is_safe_path(shard)).collect())
}

/// The key and kind of the file `path` of a model whose weights are in `weights`. A file that no convention knows, a
/// shard among them, goes by its path.
pub(super) fn role<'a>(path: &'a str, weights: Option<&str>) -> (&'a str, Kind) {
    if Some(path) == weights {
        return (WEIGHTS, kind_by_name(path).unwrap_or(Kind::Pytorch));
    }
    match COMPANIONS.iter().find(|(_, name, _)| *name == path) {
        Some((key, _, kind)) => (key, *kind),
        None => (path, kind_by_name(path).unwrap_or(Kind::Text)),
    }
}

/// What a file holds, by its ending.
pub(super) fn kind_by_name(name: &str) -> Option<Kind> {
    const ENDINGS: [(&str, Kind); 13] = [
        (".safetensors.index.json", Kind::SafetensorsIndex),
        (".safetensors", Kind::Safetensors),
        (".json", Kind::Json),
        (".pt", Kind::OpenaiPt),
        (".bin", Kind::Pytorch),
        (".pth", Kind::Pytorch),
        (".gguf", Kind::Gguf),
        (".txt", Kind::Text),
        (".model", Kind::Sentencepiece),
        (".jinja", Kind::Jinja),
        (".tiktoken", Kind::Tiktoken),
        (".onnx", Kind::Onnx),
        (".jit", Kind::Torchscript),
    ];
    ENDINGS
        .iter()
        .find(|(ending, _)| name.ends_with(ending))
        .map(|(_, kind)| *kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_chosen_by_convention() {
        let cases: [(&[&str], Weights<'_>); 7] = [
            (
                &[
                    "model.safetensors",
                    "pytorch_model.bin",
                    "model.safetensors.index.json",
                ],
                Weights::File("model.safetensors"),
            ),
            (
                &[
                    "model-00001-of-00002.safetensors",
                    "model.safetensors.index.json",
                ],
                Weights::File("model.safetensors.index.json"),
            ),
            (
                &["pytorch_model.bin", "other.pt"],
                Weights::File("pytorch_model.bin"),
            ),
            (&["tiny.pt", "config.json"], Weights::File("tiny.pt")),
            (
                &["b.safetensors", "a.safetensors"],
                Weights::Ambiguous(vec!["a.safetensors", "b.safetensors"]),
            ),
            (&["2_Dense/model.safetensors"], Weights::Missing),
            (&[], Weights::Missing),
        ];
        for (names, expected) in cases {
            assert_eq!(Weights::among(names), expected, "{names:?}");
        }
    }

    #[test]
    fn files_have_the_keys_that_tables_use() {
        let weights = Some("model.safetensors.index.json");
        let cases = [
            (
                "model.safetensors.index.json",
                "weights",
                Kind::SafetensorsIndex,
            ),
            (
                "model-1.safetensors",
                "model-1.safetensors",
                Kind::Safetensors,
            ),
            ("1_Pooling/config.json", "pooling_config", Kind::Json),
            ("2_Dense/config.json", "2_Dense/config.json", Kind::Json),
            ("tokenizer.json", "tokenizer", Kind::TokenizerJson),
        ];
        for (path, key, kind) in cases {
            assert_eq!(role(path, weights), (key, kind));
        }
    }
}
