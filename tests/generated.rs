//! The committed completions and manual pages are those of the grammar.
//!
//! After a change of the flags, write them again: `PRETRAINED_REGENERATE=1 cargo test --test generated`.
#![allow(
    clippy::unwrap_used,
    reason = "this is test code, though not every function is a test"
)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap_complete::Shell;
use clap_mangen::Man;

/// Every generated file by its path in the repository.
fn generated() -> BTreeMap<PathBuf, String> {
    let mut files = BTreeMap::new();
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish, Shell::PowerShell] {
        let mut text = Vec::new();
        let mut grammar = pretrained::cli::command();
        clap_complete::generate(shell, &mut grammar, "pretrained", &mut text);
        let name = clap_complete::Generator::file_name(&shell, "pretrained");
        files.insert(
            Path::new("completions").join(name),
            String::from_utf8(text).unwrap(),
        );
    }
    let mut grammar = pretrained::cli::command();
    grammar.build();
    pages(&grammar, &mut files);
    files
}

/// The page of `command` and those of the commands below it.
fn pages(command: &clap::Command, files: &mut BTreeMap<PathBuf, String>) {
    let name = command
        .get_display_name()
        .unwrap_or_else(|| command.get_name())
        .to_owned();
    let mut text = Vec::new();
    Man::new(command.clone())
        .title(&name)
        .source(concat!("pretrained ", env!("CARGO_PKG_VERSION")))
        .render(&mut text)
        .unwrap();
    // What follows the flags in `--help` has no heading of its own there.
    let after_help = if name == "pretrained" {
        ".SH \"EXIT STATUS\""
    } else {
        ".SH EXAMPLES"
    };
    let text = String::from_utf8(text)
        .unwrap()
        .replace(".SH EXTRA", after_help);
    files.insert(Path::new("man").join(format!("{name}.1")), text);
    for below in command
        .get_subcommands()
        .filter(|below| !below.is_hide_set())
    {
        pages(below, files);
    }
}

#[test]
fn committed_completions_and_pages_are_those_of_the_grammar() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let files = generated();
    if std::env::var_os("PRETRAINED_REGENERATE").is_some() {
        for (path, text) in &files {
            std::fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            std::fs::write(root.join(path), text).unwrap();
        }
    }
    let mut stale = Vec::new();
    for (path, text) in &files {
        if std::fs::read_to_string(root.join(path)).ok().as_ref() != Some(text) {
            stale.push(path.clone());
        }
    }
    for dir in ["completions", "man"] {
        let entries = std::fs::read_dir(root.join(dir)).into_iter().flatten();
        let paths = entries.map(|entry| Path::new(dir).join(entry.unwrap().file_name()));
        stale.extend(paths.filter(|path| !files.contains_key(path)));
    }
    assert!(
        stale.is_empty(),
        "not those of the grammar: {stale:?}; write them with PRETRAINED_REGENERATE=1"
    );
}
