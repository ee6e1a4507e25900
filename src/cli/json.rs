//! What all JSON of the command line has in common: one line a document, times in seconds rounded to milliseconds,
//! `null` for a number that is not finite.

use serde::Serialize;

/// `value` as one line. serde_json writes a float that is not finite as `null`.
pub(crate) fn line<T: Serialize>(value: &T) -> String {
    let mut text = serde_json::to_string(value)
        .expect("our records have string keys and cannot fail to serialise");
    text.push('\n');
    text
}

/// `secs` rounded to whole milliseconds; `None` when it is not finite.
pub(crate) fn round_ms(secs: f64) -> Option<f64> {
    secs.is_finite().then(|| (secs * 1000.0).round() / 1000.0)
}
