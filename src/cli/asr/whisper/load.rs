//! From what was typed to a loaded model.

use std::ffi::OsStr;
use std::num::NonZeroUsize;
use std::time::Instant;

use super::Task;
use crate::audio::{self, Input, LogMel, SAMPLE_RATE};
use crate::cli::asr::transcribe::{Event, Heard, Listener, Transcriber};
use crate::cli::error::Error;
use crate::cli::isa;
use crate::cli::model::{Models, Overlays, Sources, prefab_name};
use crate::cli::out::Out;
use crate::cli::output::Model;
use crate::cli::plan::File;
use crate::compute::Backend as _;
use crate::compute::cpu::Cpu;
use crate::kits::whisper::{self, Dims, language};
use crate::nn::{Precision, Preparation};

/// The model of `asr whisper` when none is named.
const DEFAULT_MODEL: &str = if cfg!(feature = "bundled-whisper") {
    "bundled:tiny.en"
} else {
    "base"
};

/// What `asr whisper` asks of a model.
pub(super) struct Options<'a> {
    /// The model as typed; `None` takes the default.
    pub(super) spec: Option<&'a OsStr>,
    /// Where models are looked for and had from.
    pub(super) sources: &'a Sources,
    /// Files in place of the model's own.
    pub(super) overlays: &'a Overlays,
    /// Language as typed; `None` detects it.
    pub(super) language: Option<&'a str>,
    /// What becomes of the language.
    pub(super) task: Task,
    /// Threads to compute with.
    pub(super) threads: NonZeroUsize,
    /// What to compute in.
    pub(super) precision: Precision,
}

/// A model ready to transcribe.
pub(super) struct Loaded {
    /// The model at work.
    pub(super) transcriber: Box<dyn Transcriber>,
    /// What it is.
    pub(super) model: Model,
    /// Instruction set of the kernels in use.
    pub(super) isa: String,
}

/// Finds and loads the model that `options` ask for. Says so on `out` when it is the default.
///
/// # Errors
/// The model is not known or not here, its files are damaged, or it cannot do the language or the task.
pub(super) fn load(options: &Options<'_>, out: &mut Out) -> Result<Loaded, Error> {
    let language = options.language.map(parse_language).transpose()?;
    let isa = isa::from_environment()?;
    if options.spec.is_none() && cfg!(feature = "bundled-whisper") {
        out.note("using the built-in model tiny.en, English only; `-m base` is better and knows 99 languages");
    }
    let spec = options.spec.unwrap_or(DEFAULT_MODEL.as_ref());
    let name = spec.to_string_lossy();
    let models = Models::new(options.sources)?;
    let factory = models.whisper(options.overlays)?;
    let parsed = models.spec(spec)?;
    let model = factory
        .resolve(&parsed)
        .map_err(|error| models.or_of_another_kit(error, &parsed, factory.kit()))?;
    let plan = options.overlays.apply(model)?.plan()?;
    let files = models.bring_local(&plan.found, out)?;
    let of_model = |error: whisper::Error| Error::from(error).of_model(&name);
    let package = plan.construct(&files).map_err(of_model)?;
    check_task(&package.dims, language, options.task)?;

    let cpu = Cpu::new(isa, options.threads.get())?;
    let model = Model {
        spec: name.to_string(),
        provider: plan.found.provider.clone(),
        revision: plan.found.commit().map(|commit| commit.to_string()),
        prefab: prefab_name(&factory, &plan, &package.dims)?,
        digest: files
            .get("weights")
            .and_then(|file| file.digest)
            .map(|digest| digest.to_string()),
        precision: options.precision.name().to_owned(),
        device: cpu.device().to_owned(),
        files: files.iter().map(File::here).collect(),
    };
    let precision = options.precision;
    let derived = cpu.layout().map(|layout| {
        let recipe = whisper::recipe(precision, &layout, &options.overlays.loading().open);
        let weights = files.weights_identity();
        models.derived.open(weights.as_ref(), &recipe)
    });
    let options = whisper::Options {
        language: language.map(str::to_owned),
        task: match options.task {
            Task::Transcribe => whisper::Task::Transcribe,
            Task::Translate => whisper::Task::Translate,
        },
        ..whisper::Options::default()
    };
    let transcriber = whisper::Transcriber::load(
        cpu,
        package,
        Preparation {
            precision,
            derived: derived.as_ref(),
        },
    );
    let transcriber = transcriber.map_err(of_model)?;
    if let Some(derived) = derived {
        derived.finish(&out.transfers(&name));
    }
    if let Some(language) = language {
        let start = transcriber
            .tokenizer()
            .sot_sequence(language, whisper::Task::Transcribe);
        start.map_err(of_model)?; // before any recording is read
    }
    Ok(Loaded {
        transcriber: Box::new(OnCpu {
            transcriber,
            options,
        }),
        model,
        isa: isa.name().to_owned(),
    })
}

/// What the model is made of, and what would be fetched.
///
/// # Errors
/// The model is not known, or lacks what it takes to run it.
pub(super) fn dry_run(
    spec: Option<&OsStr>,
    sources: &Sources,
    overlays: &Overlays,
    json: bool,
) -> Result<String, Error> {
    let models = Models::new(sources)?;
    let factory = models.whisper(overlays)?;
    let model = factory.resolve(&models.spec(spec.unwrap_or(DEFAULT_MODEL.as_ref()))?)?;
    let plan = overlays.apply(model)?.plan()?;
    crate::cli::plan::dry_run(&models.store, &plan.found, json)
}

fn parse_language(text: &str) -> Result<&'static str, Error> {
    language::parse(text).ok_or_else(|| {
        Error::usage(
            format!("no language `{text}`"),
            "give a code such as `de`, an English name, or `auto`",
        )
    })
}

/// Refuses what an English-only model cannot do.
fn check_task(dims: &Dims, language: Option<&str>, task: Task) -> Result<(), Error> {
    if dims.is_multilingual() {
        return Ok(());
    }
    let cannot = match (language, task) {
        (Some(code), _) if code != language::ENGLISH => {
            format!("this model knows only English, not `{code}`")
        }
        (_, Task::Translate) => "this model knows only English and cannot translate".to_owned(),
        _ => return Ok(()),
    };
    Err(Error::usage(cannot, "`-m base` knows 99 languages"))
}

/// Whisper on the CPU, as the loop over inputs sees it.
struct OnCpu {
    transcriber: whisper::Transcriber<Cpu>,
    options: whisper::Options,
}

impl Transcriber for OnCpu {
    fn transcribe(&mut self, input: &Input, listener: Listener<'_>) -> Result<Heard, Error> {
        let started = Instant::now();
        let mut samples = audio::open(input)?;
        let mut mel = LogMel::new(self.transcriber.dims().n_mels);
        let mut heard = 0;
        while let Some(block) = samples.next_block()? {
            heard += block.len();
            mel.push(block).map_err(whisper::Error::Features)?;
        }
        let features = mel.finish().map_err(whisper::Error::Features)?;
        let duration_secs = heard as f64 / f64::from(SAMPLE_RATE);
        let read = started.elapsed();

        let damage = samples.damage();
        if !damage.is_none() {
            let _ = listener(Event::Warning(&damage.to_string())); // a warning cannot break off
        }
        let _ = listener(Event::Length(duration_secs));
        let on_segment: whisper::OnSegment<'_> = &mut |segment| listener(Event::Segment(segment));
        let (mut transcript, effort) =
            self.transcriber
                .transcribe(&features, &self.options, on_segment)?;
        transcript.duration_secs = duration_secs;
        Ok(Heard {
            transcript,
            read,
            encode: effort.encode,
            decode: effort.decode,
        })
    }
}
