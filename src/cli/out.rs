//! The only printer: results on stdout, talk on stderr.

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use super::error::Error;
use super::progress::{Display, Progress};
use super::transfers::Transfers;

/// Both streams of the process, and what may be said on them.
pub(crate) struct Out {
    data: Box<dyn Write + Send>,
    talk: Talk,
    voice: Voice,
    progress: ShowProgress,
    data_is_terminal: bool,
    talk_is_terminal: bool,
}

/// How downloads say how far they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ShowProgress {
    /// A bar on a terminal, a line now and then elsewhere
    #[default]
    Auto,
    /// A bar
    Bar,
    /// Lines of JSON on stderr
    Json,
    /// Nothing
    None,
}

/// stderr, for whoever has something to say while another works.
#[derive(Clone)]
pub(crate) struct Talk(Arc<Mutex<Box<dyn Write + Send>>>);

impl Talk {
    fn new(stream: impl Write + Send + 'static) -> Self {
        Self(Arc::new(Mutex::new(Box::new(stream))))
    }

    /// Says one line.
    pub(crate) fn say(&self, text: &str) {
        self.raw(&(printable(text) + "\n"));
    }

    fn raw(&self, text: &str) {
        let mut stream = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Nobody is left to be told that stderr cannot be written.
        let _ = stream
            .write_all(text.as_bytes())
            .and_then(|()| stream.flush());
    }
}

/// How much is said on stderr.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Voice {
    /// Notes, progress and errors.
    Normal,
    /// Errors only.
    Quiet,
    /// One JSON object when the command fails, nothing else, so that a program can read it.
    Json,
}

impl Out {
    /// The process's own streams.
    pub(crate) fn new(voice: Voice) -> Self {
        Self {
            data: Box::new(io::stdout()),
            talk: Talk::new(io::stderr()),
            voice,
            progress: ShowProgress::Auto,
            data_is_terminal: io::stdout().is_terminal(),
            talk_is_terminal: io::stderr().is_terminal(),
        }
    }

    /// Shows downloads as `progress` says.
    pub(crate) fn with_progress(self, progress: ShowProgress) -> Self {
        Self { progress, ..self }
    }

    /// Writes a piece of the result, and sees to it that a reader has it at once.
    ///
    /// # Errors
    /// [`Error::Closed`] when the reader is gone, [`Error::Write`] for anything else.
    pub(crate) fn data(&mut self, text: &str) -> Result<(), Error> {
        let written = self
            .data
            .write_all(text.as_bytes())
            .and_then(|()| self.data.flush());
        written.map_err(|source| match source.kind() {
            io::ErrorKind::BrokenPipe => Error::Closed,
            _ => Error::Write {
                path: PathBuf::from("stdout"),
                source,
            },
        })
    }

    /// Says something worth knowing.
    pub(crate) fn note(&mut self, text: &str) {
        if self.voice == Voice::Normal {
            self.say(text);
        }
    }

    /// Reports a failure: a line and perhaps a hint, or one JSON object.
    pub(crate) fn error(&mut self, error: &Error) {
        match self.voice {
            _ if matches!(error, Error::Closed) => {}
            Voice::Json => self.raw(&error.json()),
            Voice::Normal | Voice::Quiet => {
                self.say(&error.text());
                if let Some(hint) = error.hint() {
                    self.say(&format!("hint: {hint}"));
                }
            }
        }
    }

    /// Reports the failure of one input among several. In JSON the run's document lists it instead.
    pub(crate) fn input_error(&mut self, error: &Error) {
        if self.voice != Voice::Json {
            self.error(error);
        }
    }

    /// Writes a line that was asked for by name, such as statistics, whatever the voice.
    pub(crate) fn requested(&mut self, line: &str) {
        self.raw(line);
    }

    /// Progress through the input called `label`. A terminal on which the result itself appears, piece by piece, gets
    /// no bar between the pieces.
    pub(crate) fn progress(&self, label: &str, total_secs: f64, streams: bool) -> Progress {
        let display = match (self.voice, self.talk_is_terminal) {
            (Voice::Quiet | Voice::Json, _) => Display::Hidden,
            (Voice::Normal, false) => Display::Lines,
            (Voice::Normal, true) if streams && self.data_is_terminal => Display::Hidden,
            (Voice::Normal, true) => Display::Bar,
        };
        Progress::new(display, &printable(label), total_secs)
    }

    /// Progress of the files of `model` that are fetched.
    pub(crate) fn transfers(&self, model: &str) -> Transfers {
        let no_bars = std::env::var_os("HF_HUB_DISABLE_PROGRESS_BARS");
        let no_bars = no_bars.is_some_and(|value| !value.is_empty() && value != "0");
        let display = match (self.progress, self.voice, self.talk_is_terminal) {
            (ShowProgress::Json, _, _) => Display::Json,
            (ShowProgress::None, _, _) | (_, Voice::Quiet | Voice::Json, _) => Display::Hidden,
            (ShowProgress::Auto, _, false) => Display::Lines,
            (ShowProgress::Auto, _, true) if no_bars => Display::Lines,
            (ShowProgress::Auto | ShowProgress::Bar, _, _) => Display::Bar,
        };
        Transfers::new(display, &printable(model), self.talk.clone())
    }

    /// Ends `progress`, at 100 % when its input is `done`.
    pub(crate) fn end_progress(&mut self, progress: Progress, done: bool) {
        self.raw(progress.end(done));
    }

    fn say(&mut self, text: &str) {
        self.talk.say(text);
    }

    fn raw(&mut self, text: &str) {
        self.talk.raw(text);
    }
}

/// `text` as one line. A name from outside may hold line breaks or escape sequences: they are shown, not obeyed.
pub(crate) fn printable(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() {
            line.extend(c.escape_default());
        } else {
            line.push(c);
        }
    }
    line
}

#[cfg(test)]
pub(crate) mod capture {
    //! An [`Out`] whose streams can be looked at.

    use std::io::{self, Write};
    use std::sync::{Arc, Mutex};

    use super::{Out, Voice};

    /// What was written to one stream.
    #[derive(Clone, Default)]
    pub(crate) struct Captured {
        bytes: Arc<Mutex<Vec<u8>>>,
        /// Fails with this kind once so many bytes have been written.
        fails_after: Option<(usize, io::ErrorKind)>,
    }

    impl Captured {
        pub(crate) fn failing(after_bytes: usize, kind: io::ErrorKind) -> Self {
            Self {
                fails_after: Some((after_bytes, kind)),
                ..Self::default()
            }
        }

        pub(crate) fn text(&self) -> String {
            String::from_utf8(self.bytes.lock().unwrap().clone()).unwrap()
        }
    }

    impl Write for Captured {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let mut written = self.bytes.lock().unwrap();
            match self.fails_after {
                Some((limit, kind)) if written.len() >= limit => Err(kind.into()),
                _ => written.write(bytes),
            }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// An [`Out`] into `data` and `talk`, neither of which is a terminal.
    pub(crate) fn out(voice: Voice, data: &Captured, talk: &Captured) -> Out {
        Out {
            data: Box::new(data.clone()),
            talk: super::Talk::new(talk.clone()),
            voice,
            progress: super::ShowProgress::Auto,
            data_is_terminal: false,
            talk_is_terminal: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::capture::{Captured, out};
    use super::*;

    #[test]
    fn a_reader_that_has_gone_is_told_apart_from_a_full_disk() {
        let talk = Captured::default();
        let mut broken = out(
            Voice::Normal,
            &Captured::failing(0, io::ErrorKind::BrokenPipe),
            &talk,
        );
        let closed = broken.data("x").unwrap_err();
        assert!(matches!(closed, Error::Closed));
        broken.error(&closed);
        assert_eq!(talk.text(), "");

        let mut full = out(
            Voice::Normal,
            &Captured::failing(0, io::ErrorKind::StorageFull),
            &talk,
        );
        assert!(matches!(full.data("x").unwrap_err(), Error::Write { .. }));
    }

    #[test]
    fn quiet_leaves_errors_and_json_leaves_one_object() {
        let error = Error::usage("bad", "better");
        let cases = [
            (
                Voice::Normal,
                "a note\npretrained: bad\nhint: better\npretrained: bad\nhint: better\n",
            ),
            (
                Voice::Quiet,
                "pretrained: bad\nhint: better\npretrained: bad\nhint: better\n",
            ),
            (
                Voice::Json,
                "{\"schema\":\"pretrained.error/1\",\"code\":2,\"kind\":\"usage\",\"message\":\"bad\",\"remedy\":\"better\"}\n",
            ),
        ];
        for (voice, expected) in cases {
            let talk = Captured::default();
            let mut out = out(voice, &Captured::default(), &talk);
            out.note("a note");
            out.input_error(&error);
            out.error(&error);
            assert_eq!(talk.text(), expected, "{voice:?}");
        }
    }

    #[test]
    fn a_name_cannot_break_the_line_or_drive_the_terminal() {
        let talk = Captured::default();
        let name = "a\nb\u{1b}[31m.wav";
        out(Voice::Normal, &Captured::default(), &talk)
            .error(&Error::usage("bad", "x").of_input(name));
        assert_eq!(talk.text(), "a\\nb\\u{1b}[31m.wav: bad\nhint: x\n");
    }
}
