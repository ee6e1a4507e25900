//! What was broken in an input that was decoded all the same.

use std::fmt;

/// What could not be read of an input that was decoded all the same.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Damage {
    /// Packets that could not be decoded, and places where the container was unreadable.
    pub packets: u64,
    /// Seconds of silence that stand for what was lost, so that later times stay right.
    pub silence_secs: f64,
    /// Seconds that the header promises and the end of the file lacks.
    pub missing_secs: f64,
}

impl Damage {
    /// Whether all was well.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// One line for a warning, such as `3 damaged packets skipped, 0.25 s replaced by silence`.
impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        match self.packets {
            0 => {}
            1 => parts.push("1 damaged packet skipped".to_owned()),
            n => parts.push(format!("{n} damaged packets skipped")),
        }
        if self.silence_secs > 0.0 {
            parts.push(format!("{:.2} s replaced by silence", self.silence_secs));
        }
        if self.missing_secs > 0.0 {
            parts.push(format!("{:.2} s missing at the end", self.missing_secs));
        }
        f.write_str(if parts.is_empty() { "no damage" } else { "" })?;
        f.write_str(&parts.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damage_is_told_in_one_line() {
        let damage = Damage {
            packets: 3,
            silence_secs: 0.254,
            missing_secs: 4.0,
        };
        assert_eq!(
            damage.to_string(),
            "3 damaged packets skipped, 0.25 s replaced by silence, 4.00 s missing at the end"
        );
        assert_eq!(
            Damage {
                packets: 1,
                ..Damage::default()
            }
            .to_string(),
            "1 damaged packet skipped"
        );
        assert_eq!(Damage::default().to_string(), "no damage");
    }
}
