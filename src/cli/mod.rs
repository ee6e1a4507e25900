//! The command line: flags in, rooms called, results on stdout, talk on stderr, one exit code.

mod asr;
mod cache;
mod doctor;
mod error;
mod exit;
mod fetch;
mod files;
mod inspect;
mod isa;
mod json;
mod model;
mod out;
mod output;
mod plan;
mod prefabs;
mod progress;
mod roots;
mod spellings;
mod stats;
mod table;
mod threads;
mod transfers;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand};

pub use exit::Exit;

use error::Error;
use out::{Out, Voice};

/// Run pretrained models on your own machine
#[derive(Debug, Parser)]
#[command(
    name = "pretrained",
    version,
    max_term_width = 100,
    arg_required_else_help = true
)]
#[command(disable_help_subcommand = true)]
#[command(after_long_help = EXIT_CODES)]
struct Cli {
    #[command(flatten)]
    globals: Globals,
    #[command(subcommand)]
    command: Command,
}

/// Flags of every command.
#[derive(Debug, clap::Args)]
struct Globals {
    /// Write one JSON document, and errors as JSON too
    #[arg(long, global = true, help_heading = "Global options")]
    json: bool,

    /// Keep stderr for errors
    #[arg(short, long, global = true, help_heading = "Global options")]
    quiet: bool,

    /// How downloads say how far they are: a bar on a terminal and a line now and then elsewhere, a bar, lines of
    /// JSON on stderr, or not at all [env: HF_HUB_DISABLE_PROGRESS_BARS]
    #[arg(
        long,
        global = true,
        value_enum,
        value_name = "HOW",
        default_value_t = out::ShowProgress::Auto,
        help_heading = "Global options"
    )]
    progress: out::ShowProgress,

    #[command(flatten)]
    sources: model::Sources,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Turn speech into text
    #[command(subcommand, arg_required_else_help = true)]
    Asr(asr::Asr),
    Fetch(fetch::Args),
    #[command(subcommand, arg_required_else_help = true)]
    Cache(cache::Cache),
    Prefabs(prefabs::Args),
    Inspect(inspect::Args),
    Doctor(doctor::Args),
}

const EXIT_CODES: &str = "\
Exit codes:
   0  done
   1  a failure of the system, such as a full disk
   2  a flag, a value or a combination that cannot be
   3  no such model, file or directory
   4  a known model whose files are not on this machine, and may not be fetched
   5  the network or a hub failed
   6  a hub does not let us in
   7  a device is missing or out of memory
   8  a digest or a shape is not what it should be
   9  of several inputs some or all failed, the rest are done
  11  the only input cannot be read
  12  a model lacks a part, or is of a kind that is not supported
  13  another process held a lock for too long";

/// The grammar, for completions and manual pages.
pub fn command() -> clap::Command {
    Cli::command()
}

/// Runs the process's command line and gives its exit code.
pub fn main() -> ExitCode {
    let args = spellings::ours(std::env::args_os());
    let cli = match Cli::try_parse_from(&args) {
        Ok(cli) => cli,
        Err(error) => return unparsed(&error, &args).into(),
    };
    let mut out = Out::new(cli.globals.voice()).with_progress(cli.globals.progress);
    let ended = match &cli.command {
        Command::Asr(command) => asr::run(command, &cli.globals, &mut out),
        Command::Fetch(args) => fetch::run(args, &cli.globals, &mut out),
        Command::Cache(command) => cache::run(command, &cli.globals, &mut out),
        Command::Prefabs(args) => prefabs::run(args, &cli.globals, &mut out),
        Command::Inspect(args) => inspect::run(args, &cli.globals, &mut out),
        Command::Doctor(args) => doctor::run(args, &cli.globals, &mut out),
    };
    ended
        .unwrap_or_else(|error| failed(&error, &mut out))
        .into()
}

impl Globals {
    fn voice(&self) -> Voice {
        match (self.json, self.quiet) {
            (true, _) => Voice::Json,
            (false, true) => Voice::Quiet,
            (false, false) => Voice::Normal,
        }
    }
}

fn failed(error: &Error, out: &mut Out) -> Exit {
    out.error(error);
    error.exit()
}

/// Help that was asked for goes to stdout; help in place of a command, to stderr; any other failure to parse becomes
/// one of our errors.
fn unparsed(error: &clap::Error, args: &[OsString]) -> Exit {
    let json = args
        .iter()
        .take_while(|arg| *arg != "--")
        .any(|arg| arg == "--json");
    let mut out = Out::new(if json { Voice::Json } else { Voice::Normal });
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => match out.data(&error.to_string()) {
            Ok(()) => Exit::Done,
            Err(error) => failed(&error, &mut out),
        },
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand if !json => {
            out.requested(&error.to_string());
            Exit::Usage
        }
        _ => failed(&usage_error(error), &mut out),
    }
}

/// clap's page of several paragraphs as one line and a hint.
fn usage_error(error: &clap::Error) -> Error {
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return Error::usage("no command", "`pretrained --help` lists them");
    }
    let page = error.to_string();
    let (first, rest) = page.split_once("\n\n").unwrap_or((&page, ""));
    let first: Vec<_> = first.lines().map(str::trim).collect();
    let message = first.join(" ");
    // A near spelling helps; how to pass the flag as a value does not.
    let mut tips = rest
        .lines()
        .filter_map(|line| line.trim().strip_prefix("tip: "));
    let tip = tips.find(|tip| tip.contains("similar"));
    let usage = rest.lines().find_map(|line| line.strip_prefix("Usage: "));
    let hint = match (tip, usage) {
        (Some(tip), _) => tip.to_owned(),
        (None, Some(usage)) => format!("usage is {usage}; `--help` says more"),
        (None, None) => "`--help` says more".to_owned(),
    };
    Error::usage(message.strip_prefix("error: ").unwrap_or(&message), hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Cli, clap::Error> {
        Cli::try_parse_from(spellings::ours(line.split(' ').map(OsString::from)))
    }

    #[test]
    fn the_grammar_is_consistent() {
        command().debug_assert();
    }

    #[test]
    fn spellings_of_other_programs_are_understood() {
        let cases = [
            "pretrained asr whisper --output_dir out --output_format srt --model tiny --language en a.wav",
            "pretrained --json asr whisper a.wav --threads 2 --task translate",
            "pretrained asr whisper -osrt -tr a.wav",
            "pretrained asr whisper --stats a.wav",
            "pretrained asr whisper --stats=json a.wav",
            "pretrained asr whisper --cache_dir d a.wav --device cpu",
            "pretrained asr whisper -f srt,json -f txt -o d",
        ];
        for line in cases {
            assert!(parse(line).is_ok(), "{line}: {}", parse(line).unwrap_err());
        }
    }

    #[test]
    fn a_line_that_does_not_parse_is_one_line_and_a_hint() {
        struct Case(&'static str, &'static str, &'static str);
        let cases = [
            Case(
                "pretrained asr whisper --patience 1",
                "unexpected argument '--patience' found",
                "usage is",
            ),
            Case(
                "pretrained asr whisper --beam-size 5",
                "invalid value '5' for '--beam-size <N>': one text is followed at a time: only 1 is to be had",
                "`--help`",
            ),
            Case(
                "pretrained asr whisper --languag en",
                "unexpected argument '--languag' found",
                "'--language'",
            ),
            Case(
                "pretrained asr whisper -f sr",
                "invalid value 'sr' for '--format <FORMAT>' [possible values: txt, srt, vtt, json]",
                "'srt'",
            ),
            Case(
                "pretrained asr whisper -t 0",
                "invalid value '0' for '--threads <N>': 0 is not in 1..=1024",
                "`--help`",
            ),
            Case(
                "pretrained fetch",
                "the following required arguments were not provided: <SPEC>...",
                "usage is",
            ),
        ];
        for Case(line, message, hint) in cases {
            let error = usage_error(&parse(line).unwrap_err());
            assert_eq!(error.message(), message, "{line}");
            assert!(
                error.hint().unwrap().contains(hint),
                "{line}: {:?}",
                error.hint()
            );
            assert_eq!(error.exit(), Exit::Usage);
        }
    }
}
