//! Transcripts as text, subtitles and JSON.
//!
//! Text and subtitles are byte for byte what openai/whisper 20250625 writes (`whisper/utils.py`) for equal segments;
//! JSON holds all of its fields and more. Everything here is a pure function from a transcript to text.

mod json;
mod srt;
mod timestamp;
mod txt;
mod vtt;

use std::borrow::Cow;

use clap::ValueEnum;

pub(crate) use json::{Failed, FileEntry, Model, run_document};

use crate::kits::whisper::{Segment, Transcript};

/// A way to write a transcript.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// One segment a line, no times
    Txt,
    /// SubRip subtitles
    Srt,
    /// WebVTT subtitles
    Vtt,
    /// Segments with times, tokens and scores
    Json,
}

impl Format {
    /// Ending of a file in this format, which is also its name on the command line.
    pub(crate) fn extension(self) -> &'static str {
        match self {
            Self::Txt => "txt",
            Self::Srt => "srt",
            Self::Vtt => "vtt",
            Self::Json => "json",
        }
    }

    /// What stands before the first segment.
    pub(crate) fn opening(self) -> &'static str {
        match self {
            Self::Vtt => vtt::OPENING,
            Self::Txt | Self::Srt | Self::Json => "",
        }
    }

    /// `segment` as it can be written the moment it is decoded, `number` counted from 1; `None` for JSON, which is one
    /// document at the end.
    pub(crate) fn piece(self, number: usize, segment: &Segment) -> Option<String> {
        match self {
            Self::Txt => Some(txt::line(segment)),
            Self::Srt => Some(srt::cue(number, segment)),
            Self::Vtt => Some(vtt::cue(segment)),
            Self::Json => None,
        }
    }

    /// A whole file: the transcript of the input called `file`.
    pub(crate) fn document(self, file: &str, transcript: &Transcript) -> String {
        if self == Self::Json {
            return json::file_document(file, transcript);
        }
        let pieces = (1..)
            .zip(&transcript.segments)
            .filter_map(|(number, segment)| self.piece(number, segment));
        std::iter::once(self.opening().to_owned())
            .chain(pieces)
            .collect()
    }
}

/// `text` without the blanks around it, by the reference's (Python's) idea of a blank: Unicode's white space and the
/// four ASCII separators from U+001C on.
fn strip(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c))
}

/// A segment's text as a cue may hold it: stripped, and without the arrow that separates a cue's times.
fn cue_text(segment: &Segment) -> Cow<'_, str> {
    let text = strip(&segment.text);
    if text.contains("-->") {
        Cow::Owned(text.replace("-->", "->"))
    } else {
        Cow::Borrowed(text)
    }
}

#[cfg(test)]
pub(crate) mod tests;
