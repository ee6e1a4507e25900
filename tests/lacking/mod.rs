//! File systems that lack something: mounts of a namespace of the test's own, and a library in front of the system's.

#![allow(
    clippy::unwrap_used,
    reason = "this is test code, though no function here is a test"
)]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use tempfile::TempDir;

/// Mounts that only commands started through this see.
pub(crate) struct Mounts {
    holder: Child,
}

impl Mounts {
    /// Mounts as the shell's `script` says; `None` where that cannot be done.
    pub(crate) fn make(script: &str) -> Option<Self> {
        let script = format!("{script} && echo ready && exec cat");
        let mut holder = Command::new("unshare")
            .args(["--mount", "--propagation", "private", "sh", "-c", &script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let mut line = String::new();
        let stdout = holder.stdout.as_mut().unwrap();
        BufReader::new(stdout).read_line(&mut line).unwrap();
        // Dropped where it is not ready.
        let mounts = Self { holder };
        (line == "ready\n").then_some(mounts)
    }

    /// `command` where the mounts are, with its environment.
    pub(crate) fn enter(&self, command: &mut Command) -> Command {
        let mut entered = Command::new("nsenter");
        let pid = self.holder.id().to_string();
        entered
            .args(["--target", &pid, "--mount", "--"])
            .arg(command.get_program())
            .args(command.get_args())
            .env_clear()
            .stdin(Stdio::null());
        for (name, value) in command.get_envs() {
            if let Some(value) = value {
                entered.env(name, value);
            }
        }
        entered
    }

    /// What the shell's `script` prints there.
    pub(crate) fn run(&self, script: &str) -> String {
        String::from_utf8(self.output(&["sh", "-c", script])).unwrap()
    }

    /// The bytes of a file there.
    pub(crate) fn read(&self, path: &Path) -> Vec<u8> {
        self.output(&["cat", path.to_str().unwrap()])
    }

    fn output(&self, command: &[&str]) -> Vec<u8> {
        let mut inner = Command::new(command[0]);
        let output = self.enter(inner.args(&command[1..])).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{command:?}: {stderr}");
        output.stdout
    }
}

impl Drop for Mounts {
    fn drop(&mut self) {
        // The mounts end with the last process that sees them.
        drop(self.holder.stdin.take());
        let _ = self.holder.wait();
    }
}

/// Says that a test, or a part of it, did not run; fails where that must not be.
#[expect(clippy::print_stderr, reason = "a skip must be seen")]
pub(crate) fn skip(needs: &str) {
    assert!(
        std::env::var_os("PRETRAINED_NO_SKIP").is_none(),
        "needs {needs}"
    );
    eprintln!("skipped: needs {needs}");
}

/// What a file system may lack.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Lack {
    /// Links are refused, as on FAT.
    Links,
    /// Locks are refused.
    Locks,
    /// Locks are granted to everybody.
    Exclusion,
    /// Both are refused.
    LinksAndLocks,
}

/// Stands before the C library's functions of the same names.
const SOURCE: &str = "
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
int symlinkat(const char *, int, const char *);
int symlink(const char *target, const char *path) {
    if (!getenv(\"NO_LINKS\")) return symlinkat(target, AT_FDCWD, path);
    errno = EPERM;
    return -1;
}
int flock(int fd, int operation) {
    const char *locks = getenv(\"LOCKS\");
    if (!locks) return syscall(SYS_flock, fd, operation);
    if (*locks == 'g') return 0;
    errno = ENOLCK;
    return -1;
}
";

/// `command` on file systems that lack `lack`.
pub(crate) fn shim(mut command: Command, lack: Lack) -> Command {
    static LIBRARY: OnceLock<TempDir> = OnceLock::new();
    let dir = LIBRARY.get_or_init(|| {
        let dir = TempDir::new().unwrap();
        let source = dir.path().join("lacking.c");
        std::fs::write(&source, SOURCE).unwrap();
        // Whoever links Rust for this system has a C compiler.
        let compiled = Command::new("cc")
            .args(["-shared", "-fPIC", "-o"])
            .arg(dir.path().join("lacking.so"))
            .arg(&source)
            .status();
        assert!(compiled.unwrap().success());
        dir
    });
    command.env("LD_PRELOAD", dir.path().join("lacking.so"));
    if matches!(lack, Lack::Links | Lack::LinksAndLocks) {
        command.env("NO_LINKS", "1");
    }
    match lack {
        Lack::Links => {}
        Lack::Locks | Lack::LinksAndLocks => drop(command.env("LOCKS", "refused")),
        Lack::Exclusion => drop(command.env("LOCKS", "granted")),
    }
    command
}
