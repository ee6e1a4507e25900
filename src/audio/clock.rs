//! Finds holes in a stream by the times of its packets.

/// Where the samples handed on so far end, against the times in the packets. In samples of the track.
#[derive(Default)]
pub(super) struct Clock {
    /// Time of the first sample. FLAC always counts from 0; elsewhere a stream may have been joined midway, and its
    /// first packet begins it.
    pub(super) base: Option<i64>,
    pub(super) emitted: u64,
}

impl Clock {
    /// How much is missing before a packet whose first sample belongs at `at`; jumps beyond `limit` and jumps back are
    /// not believed, and time is counted anew from there.
    pub(super) fn gap(&mut self, at: i64, jitter: u64, limit: u64) -> u64 {
        let base = *self
            .base
            .get_or_insert(at.saturating_sub_unsigned(self.emitted));
        let ahead = i128::from(at) - i128::from(base) - i128::from(self.emitted);
        match u64::try_from(ahead) {
            Ok(ahead) if ahead <= jitter => 0,
            Ok(ahead) if ahead <= limit => ahead,
            Err(_) if ahead.unsigned_abs() <= u128::from(jitter) => 0,
            _ => {
                self.base = Some(at.saturating_sub_unsigned(self.emitted));
                0
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_believable_holes_are_filled() {
        let mut clock = Clock::default();
        assert_eq!(
            clock.gap(1_000_000, 50, 10_000),
            0,
            "a stream may be joined midway"
        );
        clock.emitted = 100;
        assert_eq!(clock.gap(1_000_140, 50, 10_000), 0, "jitter");
        assert_eq!(clock.gap(1_000_300, 50, 10_000), 200);
        clock.emitted += 200 + 100;
        assert_eq!(clock.gap(i64::MAX, 50, 10_000), 0, "a jump nobody believes");
        assert_eq!(clock.gap(i64::MIN, 50, 10_000), 0, "a jump back");
        assert_eq!(clock.gap(7, 50, 10_000), 0, "and another one");
        assert_eq!(clock.gap(67, 50, 10_000), 60, "time goes on from there");
    }
}
