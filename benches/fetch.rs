//! What a download costs over the network's own time, and what finding a model costs when it is here.
//!
//! `cargo bench --bench fetch` serves 500 MB from this machine, and takes them by turns with `curl` and with `fetch`; both
//! write to memory where there is such a directory, so that no disk has a say. It needs `curl`.
#![allow(
    clippy::unwrap_used,
    reason = "a benchmark that cannot run has nothing to say"
)]
#![allow(clippy::print_stdout, reason = "the table is the result")]

#[path = "../tests/hub/mod.rs"]
mod hub;

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use hub::{Hub, Repo, Server};

const BYTES: usize = 500_000_000;
const RUNS: usize = 7;

fn main() {
    let memory = Path::new("/dev/shm");
    let parent = if memory.is_dir() {
        memory.to_owned()
    } else {
        std::env::temp_dir()
    };
    let dir = tempfile::tempdir_in(parent).unwrap();
    let mut random = fastrand::Rng::with_seed(1);
    let weights: Vec<u8> = std::iter::repeat_with(|| random.u8(..))
        .take(BYTES)
        .collect();
    let repo = Repo::new("org/big")
        .file("config.json", "{}")
        .lfs("model.safetensors", weights);
    let hub = Hub::new().repo(repo.branch("main")).serve();

    let mut curl = Vec::new();
    let mut ours = Vec::new();
    for _ in 0..RUNS {
        curl.push(with_curl(&hub, dir.path()));
        ours.push(with_fetch(&hub, &dir.path().join("cache")));
    }
    let (curl, ours) = (median(curl), median(ours));
    let rate = |time: Duration| format!("{:.0} MB/s", BYTES as f64 / time.as_secs_f64() / 1e6);
    row("500 MB with curl", &rate(curl), "");
    row("500 MB with fetch, hashed", &rate(ours), "");
    let ratio = curl.as_secs_f64() / ours.as_secs_f64();
    row("fetch over curl", &format!("{ratio:.2}"), "> 0.80");

    with_fetch(&hub, &dir.path().join("cache"));
    let start = median(
        (0..21)
            .map(|_| timed(&mut pretrained(&hub, &["--version"])))
            .collect(),
    );
    row("start of the process", &millis(start), "");
    let cache = dir.path().join("cache");
    let cache = cache.to_str().unwrap();
    let args = [
        "asr",
        "whisper",
        "-m",
        "hf:org/big",
        "--dry-run",
        "--cache-dir",
        cache,
        "--offline",
    ];
    let warm = median(
        (0..21)
            .map(|_| timed(&mut pretrained(&hub, &args)))
            .collect(),
    );
    let resolution = warm.saturating_sub(start);
    row(
        "finding a model that is here",
        &millis(resolution),
        "< 5 ms",
    );
}

fn row(what: &str, measured: &str, wanted: &str) {
    println!("{what:<34} {measured:>10} {wanted:>10}");
}

fn with_curl(hub: &Server, dir: &Path) -> Duration {
    let url = format!("{}/org/big/resolve/main/model.safetensors", hub.url());
    let mut curl = Command::new("curl");
    curl.args(["-sSfL", "-o"]).arg(dir.join("curl")).arg(url);
    let time = timed(&mut curl);
    std::fs::remove_file(dir.join("curl")).unwrap();
    time
}

fn with_fetch(hub: &Server, cache: &Path) -> Duration {
    let _ = std::fs::remove_dir_all(cache);
    let cache = cache.to_str().unwrap();
    timed(&mut pretrained(
        hub,
        &["fetch", "hf:org/big", "--cache-dir", cache],
    ))
}

fn pretrained(hub: &Server, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pretrained"));
    command.args(args).env_clear().env("HF_ENDPOINT", hub.url());
    command
}

fn timed(command: &mut Command) -> Duration {
    let begun = Instant::now();
    let output = command.output().unwrap();
    let time = begun.elapsed();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {stderr}");
    time
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn millis(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}
