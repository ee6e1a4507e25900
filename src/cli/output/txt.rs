//! Plain text: one segment a line.

use super::strip;
use crate::kits::whisper::Segment;

/// The line of `segment`.
pub(super) fn line(segment: &Segment) -> String {
    format!("{}\n", strip(&segment.text))
}
