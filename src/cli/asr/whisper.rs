//! `pretrained asr whisper`: recordings to text, subtitles or JSON.

mod load;

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::{ValueEnum, ValueHint};

use super::input::inputs;
use super::transcribe::{Run, Target, transcribe};
use crate::audio::Input;
use crate::cli::Globals;
use crate::cli::error::Error;
use crate::cli::exit::Exit;
use crate::cli::model::Overlays;
use crate::cli::out::Out;
use crate::cli::output::{FileEntry, Format, Model, run_document};
use crate::cli::stats::{self, Stats};
use crate::cli::threads::{self, ThreadsFlag};
use crate::nn;

/// Transcribe speech with OpenAI's Whisper
///
/// Text goes to stdout as it is decoded, one segment a line. Audio may be wav, mp3, flac, ogg, opus, m4a,
/// webm or a video of those kinds, at any rate, of any length.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pretrained asr whisper talk.wav
  pretrained asr whisper -f srt -o subtitles *.mp3
  pretrained asr whisper -m base -l fr --json - < talk.ogg | jq -r .files[0].text")]
pub(crate) struct Args {
    /// Recordings; `-`, or none at all, reads standard input
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    files: Vec<PathBuf>,

    /// Model: a name, a `.pt` or safetensors file, or a directory [default: bundled:tiny.en, which is built
    /// in; base in a build without it]
    #[arg(short, long, value_name = "SPEC")]
    model: Option<OsString>,

    /// Language that is spoken, as a code or an English name; `auto` detects it
    #[arg(short, long, value_name = "LANG", default_value = "auto")]
    language: String,

    /// Keep the language, or put it into English
    #[arg(long, value_enum, default_value_t = Task::Transcribe)]
    task: Task,

    /// Output formats, as `srt,json`; more than one needs --output-dir [default: txt]
    #[arg(
        short,
        long,
        value_enum,
        value_name = "FORMAT",
        value_delimiter = ',',
        alias = "output-format"
    )]
    format: Vec<Format>,

    /// Write one file an input and format there, named after the input, not to stdout
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    output_dir: Option<PathBuf>,

    /// Where to compute
    #[arg(long, value_enum, default_value_t = Device::Cpu)]
    device: Device,

    /// What to compute in; `auto` is q8
    #[arg(long, value_enum, default_value_t = Precision::Auto)]
    precision: Precision,

    /// Texts followed at a time when decoding; wider beams than 1, the likeliest token at each step, are not to be had
    #[arg(long, value_name = "N", default_value = "1", value_parser = only_one_beam)]
    beam_size: u8,

    #[command(flatten)]
    threads: ThreadsFlag,

    #[command(flatten)]
    overlays: Overlays,

    /// Say at the end, on stderr, where time and memory went
    #[arg(long, value_enum, value_name = "FORMAT", num_args = 0..=1, require_equals = true,
          default_missing_value = "text")]
    stats: Option<StatsFormat>,
}

/// What becomes of the language.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Task {
    /// Text in the language that is spoken
    Transcribe,
    /// Text in English
    Translate,
}

/// Where to compute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Device {
    /// The processor
    Cpu,
}

/// What to compute in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Precision {
    /// What is fastest without costing words
    Auto,
    /// As exactly as the weights are
    F32,
    /// Products of bfloat16 numbers
    Bf16,
    /// Products of 8-bit integers
    Q8,
    /// Weights in 4 bits
    Q4,
}

impl Precision {
    fn of_model(self) -> nn::Precision {
        match self {
            Self::F32 => nn::Precision::F32,
            Self::Bf16 => nn::Precision::Bf16,
            Self::Auto | Self::Q8 => nn::Precision::Q8,
            Self::Q4 => nn::Precision::Q4,
        }
    }
}

fn only_one_beam(text: &str) -> Result<u8, String> {
    match text.parse() {
        Ok(1) => Ok(1),
        Ok(_) => Err("one text is followed at a time: only 1 is to be had".to_owned()),
        Err(_) => Err("expected a number".to_owned()),
    }
}

/// How statistics are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum StatsFormat {
    /// One line for people
    Text,
    /// One line of JSON
    Json,
}

/// What was typed, made whole and checked.
#[derive(Debug, PartialEq, Eq)]
struct Plan {
    inputs: Vec<Input>,
    target: Target,
    threads: NonZeroUsize,
}

/// Runs the command.
pub(crate) fn run(args: &Args, globals: &Globals, out: &mut Out) -> Result<Exit, Error> {
    let started = Instant::now();
    if args.overlays.dry_run {
        let spec = args.model.as_deref();
        out.data(&load::dry_run(
            spec,
            &globals.sources,
            &args.overlays,
            globals.json,
        )?)?;
        return Ok(Exit::Done);
    }
    let plan = Plan::new(args, globals, io::stdin().is_terminal())?;
    let options = load::Options {
        spec: args.model.as_deref(),
        sources: &globals.sources,
        overlays: &args.overlays,
        language: Some(args.language.as_str()).filter(|language| *language != "auto"),
        task: args.task,
        threads: plan.threads,
        precision: args.precision.of_model(),
    };
    let mut loaded = load::load(&options, out)?;
    let load = started.elapsed();
    let run = transcribe(&plan.inputs, &plan.target, loaded.transcriber.as_mut(), out)?;

    let mut stats = statistics(&run, load);
    stats.threads = plan.threads.get();
    stats.isa = loaded.isa;
    stats.device = loaded.model.device.clone();
    stats.wall_s = stats::secs(started.elapsed());
    if globals.json || plan.target == Target::Stdout(Format::Json) {
        out.data(&document(&run, &loaded.model, &stats))?;
    }
    match args.stats {
        Some(StatsFormat::Json) => out.requested(&stats.json()),
        Some(StatsFormat::Text) => out.requested(&format!("{}\n", stats.text())),
        None => {}
    }
    run.verdict()?;
    Ok(Exit::Done)
}

impl Plan {
    fn new(args: &Args, globals: &Globals, stdin_is_terminal: bool) -> Result<Self, Error> {
        let inputs = inputs(&args.files, stdin_is_terminal)?;
        let mut formats = Vec::new();
        for format in args
            .format
            .iter()
            .copied()
            .chain(globals.json.then_some(Format::Json))
        {
            if !formats.contains(&format) {
                formats.push(format);
            }
        }
        if formats.is_empty() {
            formats.push(Format::Txt);
        }
        let target = match &args.output_dir {
            Some(dir) if dir.as_os_str() != "-" => Target::Directory(dir.clone(), formats),
            _ => Target::Stdout(stdout_format(&formats, inputs.len())?),
        };
        let variable = std::env::var_os(threads::VARIABLE);
        let threads = args.threads.resolve(variable)?.count;
        Ok(Self {
            inputs,
            target,
            threads,
        })
    }
}

/// The one format that stdout can hold.
fn stdout_format(formats: &[Format], inputs: usize) -> Result<Format, Error> {
    match *formats {
        [format @ (Format::Srt | Format::Vtt)] if inputs > 1 => Err(Error::usage(
            format!(
                "{} subtitles of several inputs cannot share stdout",
                format.extension()
            ),
            "`-o DIR` writes one file an input",
        )),
        [format] => Ok(format),
        _ => Err(Error::usage(
            "stdout holds one format",
            "`-o DIR` writes one file an input and format",
        )),
    }
}

/// The figures that the inputs add up to.
fn statistics(run: &Run, load: Duration) -> Stats {
    let heard = || run.heard.iter().map(|(_, heard)| heard);
    Stats {
        audio_s: crate::cli::json::round_ms(
            heard()
                .map(|heard| heard.transcript.duration_secs)
                .fold(0.0, |sum, secs| sum + secs), // an empty `sum` is −0
        ),
        load_s: stats::secs(load),
        read_s: stats::secs(heard().map(|heard| heard.read).sum()),
        encode_s: stats::secs(heard().map(|heard| heard.encode).sum()),
        decode_s: stats::secs(heard().map(|heard| heard.decode).sum()),
        tokens: heard()
            .flat_map(|heard| &heard.transcript.segments)
            .map(|segment| segment.tokens.len())
            .sum(),
        peak_rss_bytes: stats::peak_rss_bytes(),
        ..Stats::default()
    }
}

fn document(run: &Run, model: &Model, stats: &Stats) -> String {
    let files: Vec<_> = run
        .heard
        .iter()
        .map(|(name, heard)| FileEntry::new(name, &heard.transcript))
        .collect();
    run_document(model, &files, &run.failed(), stats)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        globals: Globals,
        #[command(flatten)]
        args: Args,
    }

    fn plan(line: &str) -> Result<Plan, Error> {
        let line = Line::parse_from(["whisper"].into_iter().chain(line.split(' ')));
        Plan::new(&line.args, &line.globals, true)
    }

    #[test]
    fn results_go_to_stdout_in_one_format_or_to_a_directory_in_any() {
        let dir = |formats: &[Format]| Target::Directory("out".into(), formats.to_vec());
        let cases = [
            ("a.wav", Target::Stdout(Format::Txt)),
            ("a.wav b.wav", Target::Stdout(Format::Txt)),
            ("a.wav -f srt", Target::Stdout(Format::Srt)),
            ("a.wav -f srt -f srt", Target::Stdout(Format::Srt)),
            ("a.wav -f srt -o -", Target::Stdout(Format::Srt)),
            ("a.wav b.wav --json", Target::Stdout(Format::Json)),
            ("a.wav -f json --json", Target::Stdout(Format::Json)),
            ("a.wav b.wav -o out", dir(&[Format::Txt])),
            (
                "a.wav -f vtt,json -f txt -o out",
                dir(&[Format::Vtt, Format::Json, Format::Txt]),
            ),
            (
                "a.wav -f srt --json -o out",
                dir(&[Format::Srt, Format::Json]),
            ),
        ];
        for (line, target) in cases {
            assert_eq!(plan(line).unwrap().target, target, "{line}");
        }
    }

    #[test]
    fn what_one_stream_cannot_hold_is_refused() {
        for line in [
            "a.wav b.wav -f srt",
            "a.wav b.wav -f vtt -o -",
            "a.wav -f srt,txt",
            "a.wav -f srt --json",
        ] {
            let error = plan(line).unwrap_err();
            assert_eq!(error.exit(), Exit::Usage, "{line}");
            assert!(error.hint().unwrap().contains("-o DIR"), "{line}");
        }
    }

    #[test]
    fn threads_are_those_asked_for_and_no_more_than_run_at_once() {
        let all = std::thread::available_parallelism().unwrap();
        assert_eq!(plan("a.wav -t 1").unwrap().threads.get(), 1);
        assert_eq!(plan("a.wav -t 1000").unwrap().threads, all);
        assert!(plan("a.wav").unwrap().threads <= all);
    }
}
