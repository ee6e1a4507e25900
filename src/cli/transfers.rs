//! How far files that are fetched have got: a bar a file and one for all on a terminal, a line now and then elsewhere.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;

use super::json::line;
use super::out::{Talk, printable};
use super::progress::Display;
use super::table::size;
use crate::data::Observer;

/// Time between two lines where there is no terminal to draw on.
const LINE_INTERVAL: Duration = Duration::from_secs(10);

/// Time between two events of JSON.
const EVENT_INTERVAL: Duration = Duration::from_millis(200);

/// What is shown of each file, and of all together; no colour, so `NO_COLOR` has nothing to switch off.
const TEMPLATE: &str = "{prefix:24!}  {wide_bar} {binary_bytes:>10} of {binary_total_bytes:>10}  {binary_bytes_per_sec:>12}";

/// The transfers of one model's files.
pub(crate) struct Transfers {
    display: Display,
    model: String,
    talk: Talk,
    bars: MultiProgress,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    files: HashMap<usize, ProgressBar>,
    all: Option<ProgressBar>,
    /// Bytes that are here, and those that are to come altogether.
    arrived: i64,
    expected: u64,
    last_line: Option<Instant>,
}

impl Transfers {
    pub(crate) fn new(display: Display, model: &str, talk: Talk) -> Self {
        let target = match display {
            Display::Bar => ProgressDrawTarget::stderr(),
            Display::Hidden | Display::Lines | Display::Json => ProgressDrawTarget::hidden(),
        };
        Self {
            display,
            model: model.to_owned(),
            talk,
            bars: MultiProgress::with_draw_target(target),
            state: Mutex::default(),
        }
    }

    fn bar(&self, name: &str, bytes: Option<u64>) -> ProgressBar {
        let style = ProgressStyle::with_template(TEMPLATE).expect("a constant");
        let bar = ProgressBar::hidden().with_style(style);
        bar.set_prefix(printable(name));
        bytes.inspect(|&bytes| bar.set_length(bytes));
        self.bars.add(bar)
    }

    fn say(&self, text: &str) {
        match self.display {
            Display::Hidden => {}
            Display::Json => self.event(&Event::Note { text }),
            Display::Bar | Display::Lines => self.bars.suspend(|| self.talk.say(text)),
        }
    }

    /// One line of the `pretrained.progress/1` schema.
    fn event(&self, event: &Event<'_>) {
        #[derive(Serialize)]
        struct Line<'a> {
            schema: &'static str,
            model: &'a str,
            #[serde(flatten)]
            event: &'a Event<'a>,
        }
        let text = line(&Line {
            schema: "pretrained.progress/1",
            model: &self.model,
            event,
        });
        self.talk.say(text.trim_end());
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What happened to the transfers.
#[derive(Serialize)]
#[serde(tag = "event", rename_all = "lowercase")]
enum Event<'a> {
    Begin {
        files: usize,
        bytes: u64,
        from: &'a str,
    },
    Progress {
        arrived_bytes: u64,
        bytes: u64,
    },
    Note {
        text: &'a str,
    },
}

impl Observer for Transfers {
    fn begin(&self, files: usize, bytes: u64, from: &str) {
        if self.display == Display::Json {
            self.event(&Event::Begin { files, bytes, from });
            let mut state = self.state();
            state.expected = bytes;
            state.last_line = Some(Instant::now());
            return;
        }
        let files_of = if files == 1 {
            "1 file".to_owned()
        } else {
            format!("{files} files")
        };
        let bytes_of = if bytes == 0 {
            "size unknown".to_owned()
        } else {
            size(bytes)
        };
        let model = &self.model;
        self.say(&format!(
            "fetching {model}: {files_of}, {bytes_of}, from {from}"
        ));
        let all = (files > 1).then(|| self.bar("all", Some(bytes)));
        *self.state() = State {
            expected: bytes,
            all,
            last_line: Some(Instant::now()),
            ..State::default()
        };
    }

    fn open(&self, id: usize, name: &str, size: Option<u64>) {
        let bar = self.bar(name, size);
        self.state().files.insert(id, bar);
    }

    fn advance(&self, id: usize, bytes: i64) {
        let mut state = self.state();
        state.arrived += bytes;
        for bar in state.files.get(&id).iter().copied().chain(&state.all) {
            bar.set_position(bar.position().saturating_add_signed(bytes));
        }
        let arrived = u64::try_from(state.arrived).unwrap_or(0);
        let since = state.last_line.map(|last| last.elapsed());
        let is_due = |interval| since.is_some_and(|since| since >= interval);
        let is_last = arrived == state.expected;
        match self.display {
            Display::Lines if is_due(LINE_INTERVAL) => {
                state.last_line = Some(Instant::now());
                let (arrived, expected) = (size(arrived), size(state.expected));
                self.talk
                    .say(&format!("{}: {arrived} of {expected}", self.model));
            }
            Display::Json if is_due(EVENT_INTERVAL) || is_last => {
                state.last_line = Some(Instant::now());
                self.event(&Event::Progress {
                    arrived_bytes: arrived,
                    bytes: state.expected,
                });
            }
            _ => {}
        }
    }

    fn close(&self, id: usize) {
        if let Some(bar) = self.state().files.remove(&id) {
            bar.finish_and_clear();
            self.bars.remove(&bar);
        }
    }

    fn note(&self, text: &str) {
        self.say(text);
    }
}

impl Drop for Transfers {
    fn drop(&mut self) {
        if let Some(all) = self.state().all.take() {
            all.finish_and_clear();
        }
    }
}
