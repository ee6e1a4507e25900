//! `pretrained asr`: speech to text, one file a model family.

mod input;
mod transcribe;
mod whisper;

use clap::Subcommand;

use super::Globals;
use super::error::Error;
use super::exit::Exit;
use super::out::Out;

/// Families that transcribe.
#[derive(Debug, Subcommand)]
pub(crate) enum Asr {
    Whisper(whisper::Args),
}

/// Runs the family's command.
pub(crate) fn run(command: &Asr, globals: &Globals, out: &mut Out) -> Result<Exit, Error> {
    match command {
        Asr::Whisper(args) => whisper::run(args, globals, out),
    }
}
