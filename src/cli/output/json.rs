//! Transcripts as JSON.
//!
//! A file's entry holds every field of openai/whisper's JSON under the same name, and adds `file`, `duration` and
//! `language_probability`. Times are seconds rounded to milliseconds; a number that is not finite is `null`.

use serde::Serialize;

use crate::cli::json::{line, round_ms};
use crate::cli::plan::File;
use crate::cli::stats::Stats;
use crate::kits::whisper::{Segment, Transcript};

/// The model that a run used.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Model {
    /// What was asked for, or the default.
    pub(crate) spec: String,
    /// Namespace that answered; `None` for a path.
    pub(crate) provider: Option<String>,
    /// Commit of the hub's repository that it is of; `None` for files from elsewhere.
    pub(crate) revision: Option<String>,
    /// Name of the geometry; `None` when it is none of the published ones.
    pub(crate) prefab: Option<String>,
    /// SHA-256 of the weights in hex; `None` when it is not known without reading the whole file.
    pub(crate) digest: Option<String>,
    /// Number format of the weights in use.
    pub(crate) precision: String,
    /// Where it ran.
    pub(crate) device: String,
    /// Its files, and where each one was found.
    pub(crate) files: Vec<File>,
}

/// One transcribed input.
#[derive(Debug, Serialize)]
pub(crate) struct FileEntry<'a> {
    file: &'a str,
    duration: Option<f64>,
    language: Option<&'a str>,
    language_probability: Option<f64>,
    text: String,
    segments: Vec<SegmentEntry<'a>>,
}

#[derive(Debug, Serialize)]
struct SegmentEntry<'a> {
    id: usize,
    seek: usize,
    start: Option<f64>,
    end: Option<f64>,
    text: &'a str,
    tokens: &'a [u32],
    temperature: f32,
    avg_logprob: f64,
    compression_ratio: f64,
    no_speech_prob: f64,
}

/// One input that could not be transcribed.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Failed {
    /// The input as given.
    pub(crate) file: String,
    /// Exit code that it would have had alone.
    pub(crate) code: u8,
    /// Why, in one line.
    pub(crate) message: String,
}

impl<'a> FileEntry<'a> {
    /// The entry of the input called `file`.
    pub(crate) fn new(file: &'a str, transcript: &'a Transcript) -> Self {
        Self {
            file,
            duration: round_ms(transcript.duration_secs),
            language: transcript.language.as_deref(),
            language_probability: transcript.language_probability,
            text: transcript.text(),
            segments: transcript.segments.iter().map(SegmentEntry::new).collect(),
        }
    }
}

impl<'a> SegmentEntry<'a> {
    fn new(segment: &'a Segment) -> Self {
        Self {
            id: segment.id,
            seek: segment.seek,
            start: round_ms(segment.start),
            end: round_ms(segment.end),
            text: &segment.text,
            tokens: &segment.tokens,
            temperature: segment.temperature,
            avg_logprob: segment.avg_logprob,
            compression_ratio: segment.compression_ratio,
            no_speech_prob: segment.no_speech_prob,
        }
    }
}

/// A file of its own for one input.
pub(super) fn file_document(file: &str, transcript: &Transcript) -> String {
    line(&FileEntry::new(file, transcript))
}

/// One document for a whole run, the `pretrained.asr/1` schema.
pub(crate) fn run_document(
    model: &Model,
    files: &[FileEntry<'_>],
    failed: &[Failed],
    stats: &Stats,
) -> String {
    #[derive(Serialize)]
    struct Run<'a> {
        schema: &'static str,
        command: &'static str,
        model: &'a Model,
        files: &'a [FileEntry<'a>],
        failed: &'a [Failed],
        stats: &'a Stats,
    }
    line(&Run {
        schema: "pretrained.asr/1",
        command: "asr whisper",
        model,
        files,
        failed,
        stats,
    })
}
