//! `pretrained doctor`: what there is to run models on, and where they are looked for.

mod machine;

use serde::Serialize;

use self::machine::{Processor, System};
use super::Globals;
use super::error::Error;
use super::exit::Exit;
use super::isa;
use super::json::line;
use super::model::Models;
use super::out::{Out, printable};
use super::roots::{self, RootEntry};
use super::threads::{self, DecidedBy, Threads, ThreadsFlag};
use crate::compute::cpu::{Cpu, Isa, Peaks};
use crate::data::net::without_query;

/// Say what this machine and this build have, what a run would use, and where models are looked for
///
/// No model is loaded, and nothing is asked over a network. It takes about half a second, to measure what the processor can
/// do.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    threads: ThreadsFlag,
}

/// All that is said, the `pretrained.doctor/1` schema.
#[derive(Debug, Serialize)]
struct Report {
    schema: &'static str,
    version: &'static str,
    /// Features that this build was compiled with.
    features: Vec<&'static str>,
    system: System,
    processor: Processor,
    kernels: Kernels,
    threads: ThreadsEntry,
    peaks: PeaksEntry,
    roots: Vec<RootEntry>,
    /// Whether data derived from weights is kept in the cache.
    keeps_derived: bool,
    endpoint: String,
    /// Why nothing is asked over the network; `None` when it may be.
    offline: Option<&'static str>,
    has_token: bool,
}

/// The instruction sets that there are kernels for.
#[derive(Debug, Serialize)]
struct Kernels {
    /// Those of this processor, the fastest first.
    available: Vec<&'static str>,
    /// The one that a run uses.
    chosen: &'static str,
    /// The variable that chose it; `None` when it is the fastest.
    chosen_by: Option<&'static str>,
}

/// How many threads a run computes with.
#[derive(Debug, Serialize)]
struct ThreadsEntry {
    count: usize,
    /// `flag`, `variable`, `cores`, `quota`, or `parallelism` when nothing better is known.
    decided_by: &'static str,
    /// Processors whose time may be used, where that is limited.
    quota: Option<f64>,
    /// What the system says runs at once.
    at_once: Option<usize>,
}

/// What so many threads can do at best with the chosen instruction set.
#[derive(Debug, Serialize)]
struct PeaksEntry {
    /// Multiplications and additions a second, a pair counted once.
    int8_per_s: f64,
    bf16_per_s: f64,
    f32_per_s: f64,
    /// Bytes a second from memory.
    read_bytes_per_s: f64,
}

/// Runs the command.
pub(crate) fn run(args: &Args, globals: &Globals, out: &mut Out) -> Result<Exit, Error> {
    let threads = args.threads.resolve(std::env::var_os(threads::VARIABLE))?;
    let models = Models::new(&globals.sources)?;
    let isa = isa::from_environment()?;
    let peaks = Cpu::new(isa, threads.count.get())?.peaks();
    let report = Report::new(&models, threads, isa, peaks);
    out.data(&if globals.json {
        line(&report)
    } else {
        report.text(&threads)
    })?;
    Ok(Exit::Done)
}

impl Report {
    fn new(models: &Models, threads: Threads, isa: Isa, peaks: Peaks) -> Self {
        let network = models.store.network();
        Self {
            schema: "pretrained.doctor/1",
            version: env!("CARGO_PKG_VERSION"),
            features: features(),
            system: System::new(),
            processor: Processor::new(),
            kernels: Kernels::new(isa),
            threads: ThreadsEntry::new(&threads),
            peaks: PeaksEntry::new(peaks),
            roots: roots::entries(&models.roots),
            keeps_derived: models.derived.root().is_some(),
            endpoint: without_query(&network.settings().endpoint),
            offline: network.offline(),
            has_token: network.settings().token.is_some(),
        }
    }

    fn text(&self, threads: &Threads) -> String {
        let yes = |is: bool| if is { "yes" } else { "no" }.to_owned();
        let built_with = if self.features.is_empty() {
            String::new()
        } else {
            format!(", built with {}", self.features.join(", "))
        };
        let facts = [
            ("version", format!("{}{built_with}", self.version)),
            ("system", self.system.text()),
            ("processor", self.processor.model_text()),
            ("features", self.processor.features_text()),
            ("kernels", self.kernels.text()),
            (
                "threads",
                format!("{}: {}", threads.count, threads.decided_by),
            ),
            ("peaks", self.peaks.text()),
            ("hub", self.endpoint.clone()),
            ("network", self.offline.unwrap_or("may be used").to_owned()),
            ("token", yes(self.has_token)),
            (
                "derived",
                if self.keeps_derived {
                    "kept"
                } else {
                    "not kept"
                }
                .to_owned(),
            ),
        ];
        let mut text = String::new();
        for (name, value) in facts.iter().filter(|(_, value)| !value.is_empty()) {
            text.push_str(&format!("{name:<11}{}\n", printable(value)));
        }
        text + "\n" + &roots::text(&self.roots)
    }
}

/// The features of `Cargo.toml` that this build has.
fn features() -> Vec<&'static str> {
    let all = [
        ("bundled-whisper", cfg!(feature = "bundled-whisper")),
        ("net", cfg!(feature = "net")),
        ("pickle", cfg!(feature = "pickle")),
    ];
    let built = all.into_iter().filter(|(_, built)| *built);
    built.map(|(name, _)| name).collect()
}

impl Kernels {
    fn new(isa: Isa) -> Self {
        let is_set = std::env::var_os(isa::VARIABLE).is_some_and(|name| !name.is_empty());
        Self {
            available: Isa::available().iter().map(|isa| isa.name()).collect(),
            chosen: isa.name(),
            chosen_by: is_set.then_some(isa::VARIABLE),
        }
    }

    fn text(&self) -> String {
        let why = self.chosen_by.unwrap_or("the fastest");
        format!("{}: {why} of {}", self.chosen, self.available.join(", "))
    }
}

impl PeaksEntry {
    fn new(peaks: Peaks) -> Self {
        Self {
            int8_per_s: peaks.int8.round(),
            bf16_per_s: peaks.bf16.round(),
            f32_per_s: peaks.f32.round(),
            read_bytes_per_s: peaks.read.round(),
        }
    }

    fn text(&self) -> String {
        let billions = |rate: f64| (rate / 1e9).round();
        format!(
            "billions a second: {} int8, {} bf16, {} f32 multiply-adds, {} bytes read",
            billions(self.int8_per_s),
            billions(self.bf16_per_s),
            billions(self.f32_per_s),
            billions(self.read_bytes_per_s)
        )
    }
}

impl ThreadsEntry {
    fn new(threads: &Threads) -> Self {
        let at_once = std::thread::available_parallelism();
        Self {
            count: threads.count.get(),
            decided_by: threads.decided_by.name(),
            quota: match threads.decided_by {
                DecidedBy::Quota(processors) => Some(processors),
                _ => None,
            },
            at_once: at_once.ok().map(usize::from),
        }
    }
}
