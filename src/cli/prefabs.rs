//! `pretrained prefabs`: the geometries that are known by name.

use clap::builder::{PossibleValue, PossibleValuesParser};
use serde::Serialize;

use super::Globals;
use super::error::Error;
use super::exit::Exit;
use super::json::line;
use super::out::Out;
use super::table::{grouped, size, table};
use crate::kits::{KITS, Kit, Outline};

/// List the model geometries that are known by name
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only those of one family
    #[arg(value_parser = kits(), value_name = "KIT")]
    kit: Option<String>,
}

fn kits() -> PossibleValuesParser {
    PossibleValuesParser::new(
        KITS.iter()
            .map(|kit| PossibleValue::new(kit.name).help(kit.about)),
    )
}

/// One geometry; what its family does not have, or its table does not say, is `null`.
#[derive(Clone, Debug, Serialize)]
struct Prefab {
    /// Family.
    kit: String,
    /// Name within the family.
    name: String,
    /// Elements of all its tensors, a tied one once.
    parameters: Option<u64>,
    /// Layers of the encoder.
    encoder_layers: Option<usize>,
    /// Layers of the decoder.
    decoder_layers: Option<usize>,
    /// Width of the residual stream.
    width: Option<usize>,
    /// Attention heads a layer.
    heads: Option<usize>,
    /// Token ids.
    vocab: Option<usize>,
    /// Size of the weights as 32-bit numbers.
    f32_bytes: Option<u64>,
    /// Size of the weights as 16-bit numbers.
    f16_bytes: Option<u64>,
    /// Size of the weights as 8-bit numbers; a scale a row adds less than 1 %.
    q8_bytes: Option<u64>,
    /// Size of the weights as 4-bit numbers, with a 16-bit scale and minimum a group of 32.
    q4_bytes: Option<u64>,
    /// Bytes of the keys and values that the decoder keeps of a token, as 16-bit numbers.
    kv_bytes_per_token: Option<u64>,
}

impl Prefab {
    fn new(kit: &str, name: &str, outline: &Outline) -> Self {
        // Of the eighths of a byte that an element takes, rounded up.
        let bytes = |bits: u64| {
            outline
                .parameters
                .map(|count| count.saturating_mul(bits).div_ceil(8))
        };
        Self {
            kit: kit.to_owned(),
            name: name.to_owned(),
            parameters: outline.parameters,
            encoder_layers: outline.encoder_layers,
            decoder_layers: outline.decoder_layers,
            width: outline.width,
            heads: outline.heads,
            vocab: outline.vocab,
            f32_bytes: bytes(32),
            f16_bytes: bytes(16),
            q8_bytes: bytes(8),
            q4_bytes: bytes(5),
            kv_bytes_per_token: outline.kv_bytes_per_token,
        }
    }
}

/// Runs the command.
pub(crate) fn run(args: &Args, globals: &Globals, out: &mut Out) -> Result<Exit, Error> {
    let asked = |kit: &&Kit| args.kit.as_deref().is_none_or(|asked| asked == kit.name);
    let mut prefabs = Vec::new();
    for kit in KITS.iter().filter(asked) {
        for prefab in kit.catalog()?.prefabs() {
            prefabs.push(Prefab::new(kit.name, &prefab.name, &kit.outline(prefab)?));
        }
    }
    out.data(&if globals.json {
        json(&prefabs)
    } else {
        text(&prefabs)
    })?;
    Ok(Exit::Done)
}

fn json(prefabs: &[Prefab]) -> String {
    #[derive(Serialize)]
    struct Document<'a> {
        schema: &'static str,
        prefabs: &'a [Prefab],
    }
    line(&Document {
        schema: "pretrained.prefabs/1",
        prefabs,
    })
}

fn text(prefabs: &[Prefab]) -> String {
    let rows: Vec<_> = prefabs.iter().map(row).collect();
    let header = [
        "name",
        "kit",
        "params",
        "layers",
        "width",
        "heads",
        "vocab",
        "f16",
        "kv-bytes/token",
    ];
    table(&header, &rows)
}

fn row(prefab: &Prefab) -> Vec<String> {
    let layers = [prefab.encoder_layers, prefab.decoder_layers];
    let layers: Vec<_> = layers.iter().flatten().map(usize::to_string).collect();
    let count = |extent: Option<usize>| extent.map(|extent| extent.to_string());
    [
        Some(prefab.name.clone()),
        Some(prefab.kit.clone()),
        prefab.parameters.map(grouped),
        Some(layers.join("+")).filter(|layers| !layers.is_empty()),
        count(prefab.width),
        count(prefab.heads),
        count(prefab.vocab),
        prefab.f16_bytes.map(size),
        prefab.kv_bytes_per_token.map(grouped),
    ]
    .map(|cell| cell.unwrap_or_else(|| "-".to_owned()))
    .to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefabs() -> [Prefab; 2] {
        let tiny = Outline {
            parameters: Some(37_184_640),
            encoder_layers: Some(4),
            decoder_layers: Some(4),
            width: Some(384),
            heads: Some(6),
            vocab: Some(51865),
            kv_bytes_per_token: Some(6_144),
        };
        let odd = Outline {
            parameters: Some(309_633),
            ..Outline::default()
        };
        [
            Prefab::new("whisper", "tiny", &tiny),
            Prefab::new("silero", "odd", &odd),
        ]
    }

    #[test]
    fn a_geometry_is_a_row_and_an_object() {
        let expected = "\
name  kit          params  layers  width  heads  vocab       f16  kv-bytes/token
tiny  whisper  37,184,640     4+4    384      6  51865   74.4 MB           6,144
odd   silero      309,633       -      -      -      -  619.3 kB               -
";
        assert_eq!(text(&prefabs()), expected);
        let value: serde_json::Value = serde_json::from_str(&json(&prefabs())).unwrap();
        assert_eq!(value["schema"], "pretrained.prefabs/1");
        let [tiny, odd] = [&value["prefabs"][0], &value["prefabs"][1]];
        assert_eq!(tiny["encoder_layers"], 4);
        assert_eq!(tiny["f32_bytes"], 4 * 37_184_640);
        assert_eq!(tiny["q8_bytes"], 37_184_640);
        // 20 bytes a group of 32.
        assert_eq!(tiny["q4_bytes"], 37_184_640 / 32 * 20);
        assert_eq!(odd["q4_bytes"], 193_521);
        assert!(odd["width"].is_null() && odd["kv_bytes_per_token"].is_null());
    }
}
