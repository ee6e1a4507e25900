//! Seconds as subtitle times.

/// Whether the hour is written when it is zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hours {
    /// `00:00:01,500`
    Always,
    /// `00:01.500`, and `01:00:01.500` from the first hour on.
    WhenNeeded,
}

/// `secs` as `[HH:]MM:SS` and milliseconds after `decimal`.
///
/// Rounds halves to even, as the reference writer does. Times that are negative or not a number, which no decoding
/// yields, read as zero.
pub(crate) fn timestamp(secs: f64, hours: Hours, decimal: char) -> String {
    // A float-to-integer cast saturates, so no value of `secs` can panic.
    let total_ms = (secs.max(0.0) * 1000.0).round_ties_even() as u64;
    let (h, m) = (total_ms / 3_600_000, total_ms / 60_000 % 60);
    let (s, ms) = (total_ms / 1000 % 60, total_ms % 1000);
    if hours == Hours::Always || h > 0 {
        format!("{h:02}:{m:02}:{s:02}{decimal}{ms:03}")
    } else {
        format!("{m:02}:{s:02}{decimal}{ms:03}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_read_as_the_reference_writes_them() {
        struct Case(f64, &'static str, &'static str);
        let cases = [
            Case(0.0, "00:00:00,000", "00:00.000"),
            Case(5.180_000_000_000_001, "00:00:05,180", "00:05.180"),
            Case(59.9995, "00:01:00,000", "01:00.000"),
            Case(0.0005, "00:00:00,000", "00:00.000"),
            Case(0.0015, "00:00:00,002", "00:00.002"),
            Case(3661.5, "01:01:01,500", "01:01:01.500"),
            Case(360_000.0, "100:00:00,000", "100:00:00.000"),
            Case(-1.0, "00:00:00,000", "00:00.000"),
            Case(f64::NAN, "00:00:00,000", "00:00.000"),
        ];
        for Case(secs, srt, vtt) in cases {
            assert_eq!(timestamp(secs, Hours::Always, ','), srt, "{secs}");
            assert_eq!(timestamp(secs, Hours::WhenNeeded, '.'), vtt, "{secs}");
        }
    }

    #[test]
    fn no_number_of_seconds_panics() {
        for secs in [
            f64::INFINITY,
            f64::NEG_INFINITY,
            f64::MAX,
            f64::MIN_POSITIVE,
            -0.0,
        ] {
            assert!(timestamp(secs, Hours::WhenNeeded, '.').contains(':'));
        }
    }
}
