//! What a command reads: files and standard input.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use crate::audio::Input;
use crate::cli::error::Error;

/// An input's name as it was given, for results.
pub(crate) fn name(input: &Input) -> Cow<'_, str> {
    match input {
        Input::Stdin => Cow::Borrowed("-"),
        Input::Path(path) => path.to_string_lossy(),
    }
}

/// The path that an input's files of results are named by.
pub(crate) fn as_path(input: &Input) -> &Path {
    match input {
        Input::Stdin => Path::new("stdin"),
        Input::Path(path) => path,
    }
}

/// The inputs that were `typed`: standard input when there are none and it is not a terminal.
///
/// # Errors
/// [`Error::Usage`] when there is nothing to read, or standard input is to be read twice.
pub(crate) fn inputs(typed: &[PathBuf], stdin_is_terminal: bool) -> Result<Vec<Input>, Error> {
    if typed.is_empty() {
        return match stdin_is_terminal {
            true => Err(Error::usage(
                "no input",
                "pretrained asr whisper [OPTIONS] [FILE]...; `--help` says more",
            )),
            false => Ok(vec![Input::Stdin]),
        };
    }
    if typed.iter().filter(|path| path.as_os_str() == "-").count() > 1 {
        return Err(Error::usage(
            "`-` is given twice",
            "standard input can be read once; a file named `-` is `./-`",
        ));
    }
    Ok(typed.iter().map(Input::from_arg).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_typed_is_stdin_unless_that_is_a_terminal() {
        assert_eq!(inputs(&[], false).unwrap(), [Input::Stdin]);
        assert!(matches!(inputs(&[], true), Err(Error::Usage { .. })));
    }

    #[test]
    fn a_dash_is_stdin_and_can_be_read_once() {
        let typed = ["a.wav", "-"].map(PathBuf::from);
        assert_eq!(
            inputs(&typed, true).unwrap(),
            [Input::Path("a.wav".into()), Input::Stdin]
        );
        assert!(matches!(
            inputs(&["-", "-"].map(PathBuf::from), true),
            Err(Error::Usage { .. })
        ));
        assert_eq!(
            inputs(&[PathBuf::from("./-")], true).unwrap(),
            [Input::Path("./-".into())]
        );
    }
}
