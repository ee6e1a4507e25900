//! `pretrained prefabs`: the geometries that are known by name.

use clap::ValueEnum;
use serde::Serialize;

use super::Globals;
use super::error::Error;
use super::exit::Exit;
use super::json::line;
use super::out::Out;
use super::table::{grouped, size, table};
use crate::data;
use crate::kits::whisper::{self, Dims};

/// List the model geometries that are known by name
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only those of one family
    #[arg(value_enum, value_name = "KIT")]
    kit: Option<Kit>,
}

/// A family of models.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Kit {
    /// OpenAI's Whisper
    Whisper,
}

/// One geometry.
#[derive(Clone, Debug, Serialize)]
struct Prefab {
    /// Family.
    kit: String,
    /// Name within the family.
    name: String,
    /// Elements of all its tensors, a tied one once.
    parameters: u64,
    /// Layers of the encoder.
    encoder_layers: usize,
    /// Layers of the decoder.
    decoder_layers: usize,
    /// Width of the residual stream.
    width: usize,
    /// Attention heads a layer.
    heads: usize,
    /// Token ids.
    vocab: usize,
    /// Size of the weights as 16-bit numbers.
    f16_bytes: u64,
}

/// Runs the command.
pub(crate) fn run(args: &Args, globals: &Globals, out: &mut Out) -> Result<Exit, Error> {
    let prefabs = prefabs(args.kit)?;
    out.data(&if globals.json {
        json(&prefabs)
    } else {
        text(&prefabs)
    })?;
    Ok(Exit::Done)
}

/// The geometries of `kit`, or of all, in the order of their tables.
///
/// # Errors
/// A compiled-in table cannot be read.
fn prefabs(kit: Option<Kit>) -> Result<Vec<Prefab>, Error> {
    let (Some(Kit::Whisper) | None) = kit;
    let catalog = whisper::catalog()?;
    let describe = |prefab: &data::Prefab| {
        let dims = Dims::from_prefab(prefab)?;
        let elements = |(_, shape): &(String, Vec<usize>)| shape.iter().product::<usize>() as u64;
        let parameters = whisper::tensors(&dims).iter().map(elements).sum();
        Ok(Prefab {
            kit: catalog.kit().to_owned(),
            name: prefab.name.clone(),
            parameters,
            encoder_layers: dims.n_audio_layer,
            decoder_layers: dims.n_text_layer,
            width: dims.n_text_state,
            heads: dims.n_text_head,
            vocab: dims.n_vocab,
            f16_bytes: 2 * parameters,
        })
    };
    catalog.prefabs().map(describe).collect()
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
