//! SubRip subtitles: numbered cues, hours always, a comma before the milliseconds.

use super::cue_text;
use super::timestamp::{Hours, timestamp};
use crate::kits::whisper::Segment;

/// The cue of `segment`, the `number`th, counted from 1.
pub(super) fn cue(number: usize, segment: &Segment) -> String {
    let start = timestamp(segment.start, Hours::Always, ',');
    let end = timestamp(segment.end, Hours::Always, ',');
    format!("{number}\n{start} --> {end}\n{}\n\n", cue_text(segment))
}
