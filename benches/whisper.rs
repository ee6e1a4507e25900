//! What a user waits for and pays in memory: whole runs of the release binary, from exec to exit.
//!
//! `cargo bench --bench whisper` prints a table; `-- 20` makes 20 runs of each short command in place of 5. The clip
//! is the sample that comes with the project, once a minute in the long recordings, with silence between: without it the
//! model would take the repetition for its own and try each window at every temperature.
#![allow(
    clippy::unwrap_used,
    reason = "a benchmark that cannot run has nothing to say"
)]
#![allow(clippy::print_stdout, reason = "the table is the result")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

const BINARY: &str = env!("CARGO_BIN_EXE_pretrained");
const DEFAULT_RUNS: usize = 5;

/// One whole run.
struct Run {
    wall: Duration,
    output: Output,
}

fn main() {
    let runs = std::env::args()
        .find_map(|arg| arg.parse().ok())
        .unwrap_or(DEFAULT_RUNS)
        .max(1);
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/samples/jfk.wav");
    println!(
        "{:<34} {:>10} {:>10}",
        "whole process, warm files", "measured", "wanted"
    );

    run(&["--help"]);
    let help = median((0..runs).map(|_| run(&["--help"]).wall).collect());
    row("--help", &millis(help), "< 10 ms");

    transcribe(&sample);
    let sample_runs: Vec<_> = (0..runs).map(|_| transcribe(&sample)).collect();
    let wall = median(sample_runs.iter().map(|(wall, _)| *wall).collect());
    let peak = sample_runs.iter().map(|(_, peak)| *peak).max().unwrap();
    row("sample, 11 s of audio", &millis(wall), "< 600 ms");
    row("sample, peak memory", &megabytes(peak), "< 250 MB");

    let dir = tempfile::tempdir().unwrap();
    let (wall, minute) = transcribe(&spaced(&sample, 60, dir.path()));
    row("1 minute of audio", &millis(wall), "");
    let (wall, hour) = transcribe(&spaced(&sample, 3600, dir.path()));
    row("1 hour of audio", &millis(wall), "");
    row(
        "peak memory, 1 hour over 1 minute",
        &megabytes(hour.saturating_sub(minute)),
        "< 100 MB",
    );
}

fn row(what: &str, measured: &str, wanted: &str) {
    println!("{what:<34} {measured:>10} {wanted:>10}");
}

fn run(args: &[&str]) -> Run {
    let begun = Instant::now();
    let output = Command::new(BINARY).args(args).output().unwrap();
    let wall = begun.elapsed();
    assert!(
        output.status.success(),
        "{args:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    Run { wall, output }
}

/// Wall time and peak resident bytes of `asr whisper` on `audio`.
fn transcribe(audio: &Path) -> (Duration, u64) {
    let Run { wall, output } = run(&[
        "asr",
        "whisper",
        "-q",
        "--stats=json",
        audio.to_str().unwrap(),
    ]);
    assert!(!output.stdout.is_empty(), "{} has words", audio.display());
    let stats: serde_json::Value = serde_json::from_slice(&output.stderr).unwrap();
    (wall, stats["peak_rss_bytes"].as_u64().unwrap_or(0))
}

/// The recording at `audio` once a minute, and silence between, for `secs`.
fn spaced(audio: &Path, secs: usize, dir: &Path) -> PathBuf {
    let mut reader = hound::WavReader::open(audio).unwrap();
    let spec = reader.spec();
    let samples: Vec<i16> = reader.samples().map(Result::unwrap).collect();
    let path = dir.join(format!("{secs}.wav"));
    let mut writer = hound::WavWriter::create(&path, spec).unwrap();
    let minute = 60 * spec.sample_rate as usize * usize::from(spec.channels);
    for _ in 0..secs / 60 {
        for sample in samples
            .iter()
            .copied()
            .chain(std::iter::repeat(0))
            .take(minute)
        {
            writer.write_sample(sample).unwrap();
        }
    }
    writer.finalize().unwrap();
    path
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn millis(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}

fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}
