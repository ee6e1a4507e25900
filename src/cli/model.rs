//! From what was typed to a loaded model: the calls into the rooms below.

use std::num::NonZeroUsize;
use std::path::Path;
use std::time::Instant;

use super::asr::{Event, Heard, Listener, Task, Transcriber};
use super::error::Error;
use super::inspect::{Contents, File, Report};
use super::out::Out;
use super::output::Model;
use super::prefabs::{Kit, Prefab};
use crate::audio::{self, Input, LogMel, SAMPLE_RATE};
use crate::checkpoint;
use crate::compute::Backend as _;
use crate::compute::cpu::{Cpu, Isa};
use crate::data::{self, LocalFiles, PinnedCache, Plan, Roots, Spec};
use crate::kits::whisper::{self, Dims, Package, language};

/// The model of `asr whisper` when none is named.
const DEFAULT_MODEL: &str = if cfg!(feature = "bundled-whisper") {
    "bundled:tiny.en"
} else {
    "base"
};

/// What `asr whisper` asks of a model.
pub(crate) struct Options<'a> {
    /// The model as typed; `None` takes the default.
    pub(crate) spec: Option<&'a str>,
    /// Where models are looked for, when it is not the user's cache directory.
    pub(crate) cache_dir: Option<&'a Path>,
    /// Language as typed; `None` detects it.
    pub(crate) language: Option<&'a str>,
    /// What becomes of the language.
    pub(crate) task: Task,
    /// Threads to compute with.
    pub(crate) threads: NonZeroUsize,
}

/// A model ready to transcribe.
pub(crate) struct Loaded {
    /// The model at work.
    pub(crate) transcriber: Box<dyn Transcriber>,
    /// What it is.
    pub(crate) model: Model,
    /// Instruction set of the kernels in use.
    pub(crate) isa: String,
}

/// Finds and loads the model that `options` ask for. Says so on `out` when it is the default.
///
/// # Errors
/// The model is not known or not here, its files are damaged, or it cannot do the language or the task.
pub(crate) fn whisper(options: &Options<'_>, out: &mut Out) -> Result<Loaded, Error> {
    let language = options.language.map(parse_language).transpose()?;
    let isa = Isa::choose(std::env::var("PRETRAINED_ISA").ok().as_deref())?;
    if options.spec.is_none() && cfg!(feature = "bundled-whisper") {
        out.note("using the built-in model tiny.en, English only; `-m base` is better and knows 99 languages");
    }
    let spec = options.spec.unwrap_or(DEFAULT_MODEL);
    let factory = whisper::factory()?;
    let roots = roots(options.cache_dir);
    let plan = factory.resolve(&Spec::parse(spec, &roots)?)?.plan()?;
    let files = PinnedCache::new(&roots).bring_local(&plan)?;
    let package = plan.construct(&files)?;
    check_task(&package.dims, language, options.task)?;
    let precision = precision(&package);

    let cpu = Cpu::new(isa, options.threads.get())?;
    let model = Model {
        spec: spec.to_owned(),
        provider: plan.provider.clone(),
        prefab: prefab_name(&plan, &package.dims)?,
        digest: files
            .get("weights")
            .and_then(|file| file.digest)
            .map(|digest| digest.to_string()),
        precision,
        device: cpu.device().to_owned(),
    };
    let options = whisper::Options {
        language: language.map(str::to_owned),
        task: match options.task {
            Task::Transcribe => whisper::Task::Transcribe,
            Task::Translate => whisper::Task::Translate,
        },
        ..whisper::Options::default()
    };
    let transcriber = whisper::Transcriber::load(cpu, package)?;
    Ok(Loaded {
        transcriber: Box::new(OnCpu {
            transcriber,
            options,
        }),
        model,
        isa: isa.name().to_owned(),
    })
}

fn roots(cache_dir: Option<&Path>) -> Roots {
    let roots = Roots::from_vars(|name| std::env::var_os(name));
    match cache_dir {
        Some(dir) => roots.with_cache(dir),
        None => roots,
    }
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
            format!(
                "this model knows only English, not {}",
                language::name(code).unwrap_or(code)
            )
        }
        (_, Task::Translate) => "this model knows only English and cannot translate".to_owned(),
        _ => return Ok(()),
    };
    Err(Error::usage(cannot, "`-m base` knows 99 languages"))
}

/// The number format of most weights.
fn precision(package: &Package) -> String {
    Contents::of(&*package.checkpoint)
        .main_dtype()
        .map_or_else(|| "none".to_owned(), str::to_lowercase)
}

/// The name of the geometry: what the row promises, or the published one that a path's model has.
fn prefab_name(
    plan: &Plan<'_, Package, whisper::Error>,
    dims: &Dims,
) -> Result<Option<String>, Error> {
    if let Some(prefab) = &plan.prefab {
        return Ok(Some(prefab.name.clone()));
    }
    for prefab in whisper::factory()?.prefabs() {
        if Dims::from_prefab(prefab)? == *dims {
            return Ok(Some(prefab.name.clone()));
        }
    }
    Ok(None)
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
        let cpu = self.transcriber.backend();
        let (mut transcript, effort) = cpu.enter(|| {
            self.transcriber
                .transcribe(&features, &self.options, on_segment)
        })?;
        transcript.duration_secs = duration_secs;
        Ok(Heard {
            transcript,
            read,
            encode: effort.encode,
            decode: effort.decode,
        })
    }
}

/// What is known of the model `spec`.
///
/// # Errors
/// The model is not known or not here, or its files are damaged.
pub(crate) fn inspect(spec: &str, cache_dir: Option<&Path>) -> Result<Report, Error> {
    let roots = roots(cache_dir);
    let parsed = Spec::parse(spec, &roots)?;
    let factory = whisper::factory()?;
    let found = factory.resolve(&parsed).and_then(data::DeferredModel::plan);
    let plan = match (found, &parsed) {
        // Weights of another family, or without what belongs to them, are still tensors.
        (
            Err(data::Error::Unsupported { .. } | data::Error::Incomplete { .. }),
            Spec::Path(path),
        ) => {
            return inspect_file(spec, path);
        }
        (found, _) => found?,
    };
    let files = PinnedCache::new(&roots).bring_local(&plan)?;
    let package = match (plan.construct(&files), &parsed) {
        (Err(whisper::Error::Config { .. }), Spec::Path(path)) if path.is_file() => {
            return inspect_file(spec, path);
        }
        (package, _) => package?,
    };
    files.verify()?;
    let expected = whisper::tensors(&package.dims);
    let mut differences =
        Contents::of(&whisper::with_openai_names(&*package.checkpoint)).differences(&expected);
    differences.retain(|difference| !difference.is_extra(whisper::is_companion));
    Ok(Report {
        spec: spec.to_owned(),
        row: plan
            .row
            .as_ref()
            .zip(plan.provider.as_ref())
            .map(|(row, provider)| format!("{provider}:{}", row.short_name())),
        licence: plan.row.as_ref().map(|row| row.license.clone()),
        kit: Some(factory.kit().to_owned()),
        prefab: prefab_name(&plan, &package.dims)?,
        geometry: geometry(&package.dims),
        files: described(&files)?,
        contents: Contents::of(&*package.checkpoint),
        differences: Some(differences),
    })
}

/// What is known of a file of weights of no known family.
fn inspect_file(spec: &str, path: &Path) -> Result<Report, Error> {
    let checkpoint = checkpoint::open(path)?;
    let bytes = std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    let sha256 = data::Sha256::of_file(path)
        .map_err(|source| data::Error::Io {
            path: path.to_owned(),
            source,
        })?
        .to_string();
    Ok(Report {
        spec: spec.to_owned(),
        files: vec![File {
            path: path.display().to_string(),
            bytes,
            sha256,
        }],
        contents: Contents::of(&*checkpoint),
        ..Report::default()
    })
}

fn described(files: &LocalFiles) -> Result<Vec<File>, Error> {
    let describe = |file: &data::LocalFile| {
        let (path, bytes) = match &file.content {
            data::Content::Path(path) => (
                path.display().to_string(),
                std::fs::metadata(path).map_or(0, |metadata| metadata.len()),
            ),
            data::Content::Bytes(bytes) => (
                format!("{} (in this binary)", file.file),
                bytes.len() as u64,
            ),
        };
        Ok(File {
            path,
            bytes,
            sha256: file.compute_digest()?.to_string(),
        })
    };
    files.iter().map(describe).collect()
}

fn geometry(dims: &Dims) -> serde_json::Map<String, serde_json::Value> {
    match serde_json::to_value(dims) {
        Ok(serde_json::Value::Object(map)) => map,
        _ => serde_json::Map::new(),
    }
}

/// The geometries of `kit`, or of all, in the order of their tables.
///
/// # Errors
/// A compiled-in table cannot be read.
pub(crate) fn prefabs(kit: Option<Kit>) -> Result<Vec<Prefab>, Error> {
    let (Some(Kit::Whisper) | None) = kit;
    let factory = whisper::factory()?;
    let describe = |prefab: &data::Prefab| {
        let dims = Dims::from_prefab(prefab)?;
        let elements = |(_, shape): &(String, Vec<usize>)| shape.iter().product::<usize>() as u64;
        let parameters = whisper::tensors(&dims).iter().map(elements).sum();
        Ok(Prefab {
            kit: factory.kit().to_owned(),
            name: prefab.name.clone(),
            parameters,
            encoder_layers: dims.n_audio_layer,
            decoder_layers: dims.n_text_layer,
            width: dims.n_text_state,
            heads: dims.n_text_head,
            vocab: dims.n_vocab,
            f16_bytes: 2 * parameters,
        })
    };
    factory.prefabs().map(describe).collect()
}
