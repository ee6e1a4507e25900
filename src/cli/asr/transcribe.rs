//! Inputs to results: the loop over recordings that every family shares.
//!
//! An input that fails is reported and the others go on. Nothing of one input reaches the next.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Duration;

use super::input::{as_path, name};
use crate::audio::Input;
use crate::cli::error::Error;
use crate::cli::files::OutputDir;
use crate::cli::out::Out;
use crate::cli::output::{Failed, Format};
use crate::kits::whisper::{Segment, Transcript};

/// A loaded model, as the loop over inputs sees it.
pub(crate) trait Transcriber {
    /// Transcribes `input` from its beginning to its end, or until `listener` breaks off.
    ///
    /// # Errors
    /// The input cannot be read, is not audio, or the model fails on it. The message does not name the input.
    fn transcribe(&mut self, input: &Input, listener: Listener<'_>) -> Result<Heard, Error>;
}

/// Told of each event as it happens.
pub(crate) type Listener<'a> = &'a mut (dyn FnMut(Event<'_>) -> ControlFlow<()> + Send);

/// What a transcriber tells while it works.
#[derive(Debug)]
pub(crate) enum Event<'a> {
    /// The recording has been read and lasts so many seconds.
    Length(f64),
    /// The recording is damaged in parts, and this is what became of it.
    Warning(&'a str),
    /// A segment is final.
    Segment(&'a Segment),
}

/// One recording, transcribed, and where the time went.
#[derive(Debug)]
pub(crate) struct Heard {
    /// The result.
    pub(crate) transcript: Transcript,
    /// Reading the audio and computing its features.
    pub(crate) read: Duration,
    /// Running the encoder.
    pub(crate) encode: Duration,
    /// Running the decoder.
    pub(crate) decode: Duration,
}

/// Where results go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// One format, on stdout.
    Stdout(Format),
    /// One file an input and format.
    Directory(PathBuf, Vec<Format>),
}

/// All inputs of a run, done or failed, each in the order given.
#[derive(Debug, Default)]
pub(crate) struct Run {
    /// Transcripts by the names of their inputs.
    pub(crate) heard: Vec<(String, Heard)>,
    /// Failures by the names of their inputs.
    pub(crate) failures: Vec<(String, Error)>,
}

/// Transcribes each of `inputs` to `target`. JSON for stdout is left to the caller, whose document holds the whole run.
///
/// # Errors
/// Results cannot be written: stdout is closed or broken, or the directory cannot be made. What befalls one input is
/// in the [`Run`].
pub(crate) fn transcribe(
    inputs: &[Input],
    target: &Target,
    model: &mut dyn Transcriber,
    out: &mut Out,
) -> Result<Run, Error> {
    let mut sink = Sink::new(inputs, target)?;
    let mut run = Run::default();
    for input in inputs {
        match transcribe_one(input, &mut sink, model, out) {
            Ok(heard) => run.heard.push((name(input).into_owned(), heard)),
            Err(Stop::Run(error)) => return Err(error),
            Err(Stop::Input(error)) => {
                let error = error.of_input(&input.to_string());
                if inputs.len() > 1 {
                    out.input_error(&error);
                }
                run.failures.push((name(input).into_owned(), error));
            }
        }
    }
    Ok(run)
}

impl Run {
    /// The failures as a document lists them.
    pub(crate) fn failed(&self) -> Vec<Failed> {
        let entry = |(file, error): &(String, Error)| Failed {
            file: file.clone(),
            code: error.exit().code(),
            message: error.message(),
        };
        self.failures.iter().map(entry).collect()
    }

    /// Nothing when all went well, the failure itself when it is of the only input, else how many failed.
    pub(crate) fn verdict(mut self) -> Result<(), Error> {
        let (failed, total) = (self.failures.len(), self.failures.len() + self.heard.len());
        match self.failures.pop() {
            None => Ok(()),
            Some((_, error)) if total == 1 => Err(error),
            Some(_) => Err(Error::Partial { failed, total }),
        }
    }
}

/// Whether a failure ends one input or all of them.
enum Stop {
    Input(Error),
    Run(Error),
}

fn transcribe_one(
    input: &Input,
    sink: &mut Sink,
    model: &mut dyn Transcriber,
    out: &mut Out,
) -> Result<Heard, Stop> {
    sink.begin(input);
    let mut progress = None;
    let mut broken = None;
    let streams = sink.streams();
    let label = input.to_string();
    let heard = model.transcribe(input, &mut |event| {
        match event {
            Event::Length(secs) => progress = Some(out.progress(&label, secs, streams)),
            Event::Warning(text) => {
                let mut say = || out.note(&format!("{label}: {text}"));
                match &progress {
                    Some(progress) => progress.aside(say),
                    None => say(),
                }
            }
            Event::Segment(segment) => {
                if let Err(error) = sink.segment(segment, out) {
                    broken = Some(error);
                    return ControlFlow::Break(());
                }
                if let Some(line) = progress
                    .as_mut()
                    .and_then(|progress| progress.advance(segment.end))
                {
                    out.note(&line);
                }
            }
        }
        ControlFlow::Continue(())
    });
    if let Some(progress) = progress {
        out.end_progress(progress, heard.is_ok());
    }
    if let Some(error) = broken {
        return Err(Stop::Run(error));
    }
    let heard = heard.map_err(Stop::Input)?;
    sink.end(input, &heard.transcript, out)?;
    Ok(heard)
}

/// Where the pieces of the current input go.
struct Sink {
    place: Place,
    /// Whether an earlier input has written to stdout.
    earlier: bool,
    /// Segments of the current input that have been written.
    written: usize,
}

enum Place {
    Stdout(Format),
    /// The stem is that of the current input.
    Directory {
        dir: OutputDir,
        formats: Vec<Format>,
        stem: String,
    },
}

impl Sink {
    fn new(inputs: &[Input], target: &Target) -> Result<Self, Error> {
        let place = match target {
            Target::Stdout(format) => Place::Stdout(*format),
            Target::Directory(dir, formats) => Place::Directory {
                dir: OutputDir::create(dir, inputs.iter().map(as_path))?,
                formats: formats.clone(),
                stem: String::new(),
            },
        };
        Ok(Self {
            place,
            earlier: false,
            written: 0,
        })
    }

    fn streams(&self) -> bool {
        matches!(self.place, Place::Stdout(format) if format != Format::Json)
    }

    /// Turns to `input`. It gets its file names now, so that they do not depend on how the others fare.
    fn begin(&mut self, input: &Input) {
        self.earlier |= self.written > 0;
        self.written = 0;
        if let Place::Directory { dir, formats, stem } = &mut self.place {
            *stem = dir.stem(as_path(input), formats);
        }
    }

    /// Writes what can be written of `segment` at once.
    fn segment(&mut self, segment: &Segment, out: &mut Out) -> Result<(), Error> {
        let Place::Stdout(format) = self.place else {
            return Ok(());
        };
        let Some(piece) = format.piece(self.written + 1, segment) else {
            return Ok(());
        };
        if self.written == 0 {
            out.data(if self.earlier { "\n" } else { format.opening() })?;
        }
        self.written += 1;
        out.data(&piece)
    }

    /// Writes what the whole transcript is needed for.
    fn end(&mut self, input: &Input, transcript: &Transcript, out: &mut Out) -> Result<(), Stop> {
        match &self.place {
            Place::Stdout(format) if self.written == 0 => {
                out.data(format.opening()).map_err(Stop::Run)
            }
            Place::Stdout(_) => Ok(()),
            Place::Directory { dir, formats, stem } => {
                for format in formats {
                    let text = format.document(&name(input), transcript);
                    let path = dir.write(stem, *format, &text).map_err(Stop::Input)?;
                    out.note(&format!("wrote {}", path.display()));
                }
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests;
