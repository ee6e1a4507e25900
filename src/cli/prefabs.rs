//! `pretrained prefabs`: the geometries that are known by name.

use clap::ValueEnum;
use serde::Serialize;

use super::Globals;
use super::error::Error;
use super::exit::Exit;
use super::json::line;
use super::model;
use super::out::Out;
use super::table::{grouped, size, table};

/// List the model geometries that are known by name
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only those of one family
    #[arg(value_enum, value_name = "KIT")]
    kit: Option<Kit>,
}

/// A family of models.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kit {
    /// OpenAI's Whisper
    Whisper,
}

/// One geometry.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Prefab {
    /// Family.
    pub(crate) kit: String,
    /// Name within the family.
    pub(crate) name: String,
    /// Elements of all its tensors, a tied one once.
    pub(crate) parameters: u64,
    /// Layers of the encoder.
    pub(crate) encoder_layers: usize,
    /// Layers of the decoder.
    pub(crate) decoder_layers: usize,
    /// Width of the residual stream.
    pub(crate) width: usize,
    /// Attention heads a layer.
    pub(crate) heads: usize,
    /// Token ids.
    pub(crate) vocab: usize,
    /// Size of the weights as 16-bit numbers.
    pub(crate) f16_bytes: u64,
}

/// Runs the command.
pub(crate) fn run(args: &Args, globals: &Globals, out: &mut Out) -> Result<Exit, Error> {
    let prefabs = model::prefabs(args.kit)?;
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
    table(
        &[
            "name", "kit", "params", "layers", "width", "heads", "vocab", "f16",
        ],
        &rows,
    )
}

fn row(prefab: &Prefab) -> Vec<String> {
    vec![
        prefab.name.clone(),
        prefab.kit.clone(),
        grouped(prefab.parameters),
        format!("{}+{}", prefab.encoder_layers, prefab.decoder_layers),
        prefab.width.to_string(),
        prefab.heads.to_string(),
        prefab.vocab.to_string(),
        size(prefab.f16_bytes),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tiny() -> Prefab {
        Prefab {
            kit: "whisper".into(),
            name: "tiny".into(),
            parameters: 37_184_640,
            encoder_layers: 4,
            decoder_layers: 4,
            width: 384,
            heads: 6,
            vocab: 51865,
            f16_bytes: 74_369_280,
        }
    }

    #[test]
    fn a_geometry_is_a_row_and_an_object() {
        let expected = "\
name  kit          params  layers  width  heads  vocab      f16
tiny  whisper  37,184,640     4+4    384      6  51865  74.4 MB
";
        assert_eq!(text(&[tiny()]), expected);
        let value: serde_json::Value = serde_json::from_str(&json(&[tiny()])).unwrap();
        assert_eq!(value["schema"], "pretrained.prefabs/1");
        assert_eq!(value["prefabs"][0]["encoder_layers"], 4);
    }
}
