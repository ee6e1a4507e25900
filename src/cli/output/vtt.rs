//! WebVTT subtitles: a header, hours only when needed, a dot before the milliseconds.

use super::cue_text;
use super::timestamp::{Hours, timestamp};
use crate::kits::whisper::Segment;

/// What a WebVTT file begins with.
pub(super) const OPENING: &str = "WEBVTT\n\n";

/// The cue of `segment`.
pub(super) fn cue(segment: &Segment) -> String {
    let start = timestamp(segment.start, Hours::WhenNeeded, '.');
    let end = timestamp(segment.end, Hours::WhenNeeded, '.');
    format!("{start} --> {end}\n{}\n\n", cue_text(segment))
}
