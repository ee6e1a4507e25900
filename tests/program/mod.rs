//! The real binary, run in a directory and a home of its own.

#![allow(dead_code, reason = "each test file uses a part of this")]
#![allow(
    clippy::unwrap_used,
    reason = "this is test code, though no function here is a test"
)]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// What a run wrote and how it ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// A fresh directory to run in, which is the home as well.
pub(crate) struct Place {
    dir: TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self {
            dir: TempDir::new().unwrap(),
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Writes a file and gives its name.
    pub(crate) fn file<'a>(&self, name: &'a str, bytes: &[u8]) -> &'a str {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
        name
    }

    /// A 16 kHz mono wav of `samples`.
    pub(crate) fn wav<'a>(&self, name: &'a str, samples: &[i16]) -> &'a str {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let sample_format = hound::SampleFormat::Int;
        let spec = hound::WavSpec {
            channels: 1,
            sample_rate: 16_000,
            bits_per_sample: 16,
            sample_format,
        };
        let mut writer = hound::WavWriter::create(path, spec).unwrap();
        for sample in samples {
            writer.write_sample(*sample).unwrap();
        }
        writer.finalize().unwrap();
        name
    }

    /// The sample clip under another name.
    pub(crate) fn sample<'a>(&self, name: &'a str) -> &'a str {
        self.file(name, &std::fs::read(sample()).unwrap())
    }

    /// Contents of a file that a run wrote.
    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    /// Names in a directory, sorted.
    pub(crate) fn names(&self, dir: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.path(dir)).unwrap();
        let mut names: Vec<_> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    /// The binary with nothing of this machine's environment, no network, and an empty stdin.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pretrained"));
        command
            .args(args)
            .current_dir(self.dir.path())
            .env_clear()
            .env("HOME", self.dir.path())
            .env("PRETRAINED_OFFLINE", "1");
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Ended {
        self.run_with_stdin(args, b"")
    }

    /// Runs `command` to its end.
    pub(crate) fn end(&self, command: &mut Command) -> Ended {
        let output = command.output().unwrap();
        Ended {
            code: output.status.code().expect("ended by itself"),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    pub(crate) fn run_with_stdin(&self, args: &[&str], stdin: &[u8]) -> Ended {
        let mut child = self.command(args).stdin(Stdio::piped()).spawn().unwrap();
        let mut pipe = child.stdin.take().unwrap();
        let bytes = stdin.to_vec();
        let writer = std::thread::spawn(move || {
            // The program may leave before it has read everything.
            let _ = pipe.write_all(&bytes);
        });
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap();
        Ended {
            code: output.status.code().expect("ended by itself"),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl Ended {
    /// Asserts the exit code, and shows everything when it is another.
    #[track_caller]
    pub(crate) fn expect(self, code: i32) -> Self {
        assert_eq!(
            self.code, code,
            "stdout: {}\nstderr: {}",
            self.stdout, self.stderr
        );
        self
    }

    /// Asserts that stderr is one line, apart from hints and the note about the built-in model, and gives it.
    #[track_caller]
    pub(crate) fn error_line(&self) -> &str {
        let talk = |line: &&str| {
            !line.starts_with("hint: ") && !line.starts_with("using the built-in model")
        };
        let lines: Vec<_> = self.stderr.lines().filter(talk).collect();
        assert_eq!(lines.len(), 1, "one line: {}", self.stderr);
        lines[0]
    }

    /// stdout as JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}", self.stdout))
    }

    /// The only object on stderr.
    #[track_caller]
    pub(crate) fn error_object(&self) -> serde_json::Value {
        serde_json::from_str(&self.stderr)
            .unwrap_or_else(|error| panic!("one object, {error}: {}", self.stderr))
    }
}

/// The clip that comes with the project.
pub(crate) fn sample() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/samples/jfk.wav")
}

/// Lower-case words without punctuation.
pub(crate) fn words(text: &str) -> Vec<String> {
    let letters = |word: &str| {
        word.chars()
            .filter(|c| c.is_alphanumeric())
            .collect::<String>()
            .to_lowercase()
    };
    text.split_whitespace()
        .map(letters)
        .filter(|word| !word.is_empty())
        .collect()
}
