//! How far a long input has got: a bar on a terminal, a line now and then elsewhere.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Time between two lines where there is no terminal to draw on.
const LINE_INTERVAL: Duration = Duration::from_secs(10);

/// Where progress is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Display {
    /// Nowhere.
    Hidden,
    /// On one line of the terminal, redrawn.
    Bar,
    /// A line of its own every ten seconds.
    Lines,
    /// Lines of JSON, for a program that shows them its own way.
    Json,
}

/// Progress through one input, measured in seconds of audio.
#[derive(Debug)]
pub(crate) struct Progress {
    label: String,
    total_secs: f64,
    bar: ProgressBar,
    /// When the last line was written; `None` when no lines are.
    last_line: Option<Instant>,
}

impl Progress {
    /// Progress through the input called `label`, which lasts `total_secs`.
    pub(crate) fn new(display: Display, label: &str, total_secs: f64) -> Self {
        let target = match display {
            Display::Bar => ProgressDrawTarget::stderr(),
            Display::Hidden | Display::Lines | Display::Json => ProgressDrawTarget::hidden(),
        };
        let bar = ProgressBar::with_draw_target(Some(total_secs.max(0.0) as u64), target);
        // No colour, so `NO_COLOR` has nothing to switch off.
        let style = ProgressStyle::with_template("{prefix}  {wide_bar} {percent:>3} %  {elapsed}")
            .expect("a constant");
        bar.set_style(style);
        bar.set_prefix(label.to_owned());
        let last_line = (display == Display::Lines).then(Instant::now);
        Self {
            label: label.to_owned(),
            total_secs,
            bar,
            last_line,
        }
    }

    /// Says that the audio up to `secs` is done. Gives a line to print when one is due.
    pub(crate) fn advance(&mut self, secs: f64) -> Option<String> {
        self.bar
            .set_position(secs.clamp(0.0, self.total_secs.max(0.0)) as u64);
        let last = self.last_line.as_mut()?;
        if last.elapsed() < LINE_INTERVAL {
            return None;
        }
        *last = Instant::now();
        Some(format!(
            "{}: {secs:.0} s of {:.0} s",
            self.label, self.total_secs
        ))
    }

    /// Says something beside the bar, which steps aside for it.
    pub(crate) fn aside(&self, say: impl FnOnce()) {
        self.bar.suspend(say);
    }

    /// Ends at 100 % when the input is `done`, else where it is, and leaves the bar standing. Gives what has to follow
    /// it, so that the next line does not begin behind the bar.
    pub(crate) fn end(self, done: bool) -> &'static str {
        if self.bar.is_hidden() {
            return "";
        }
        if done {
            self.bar.finish();
        } else {
            self.bar.abandon();
        }
        "\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn off_a_terminal_a_line_is_due_every_ten_seconds_at_most() {
        let mut progress = Progress::new(Display::Lines, "talk.wav", 3600.0);
        assert_eq!(progress.advance(30.0), None);
        progress.last_line = Instant::now().checked_sub(LINE_INTERVAL);
        assert_eq!(
            progress.advance(120.0).as_deref(),
            Some("talk.wav: 120 s of 3600 s")
        );
        assert_eq!(progress.advance(150.0), None);
    }

    #[test]
    fn odd_lengths_do_not_panic() {
        for secs in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let mut progress = Progress::new(Display::Hidden, "x", secs);
            assert_eq!(progress.advance(1.0), None);
            assert_eq!(progress.end(true), "");
        }
    }
}
