use std::{
    ffi::OsStr,
    fmt,
    path::{Component, Path, PathBuf, is_separator},
};

use super::{Error, Roots};

/// A model as the user types it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Spec {
    /// A file or directory that exists.
    Path(PathBuf),
    /// `provider:reference`: asked of that provider and of no other.
    Provider {
        /// What stands before the first colon.
        provider: String,
        /// What stands after it, in the provider's own grammar: `tiny.en`, `org/repo@revision`.
        reference: String,
    },
    /// A name for each provider that answers bare names, in order.
    Bare(String),
}

impl Spec {
    /// Reads what the user typed; `roots.home` expands a leading `~/`.
    ///
    /// An existing path wins over any name. What begins with `/`, `./`, `../` or `~/`, or ends with `/`, is always a
    /// path, and no provider is asked for it; so is what follows `dir:`.
    ///
    /// # Errors
    /// [`Error::NoSuchPath`] when it can only be a path and there is none; [`Error::InvalidSpec`] when it is neither a
    /// path nor a well-formed name.
    pub fn parse(text: impl AsRef<OsStr>, roots: &Roots) -> Result<Self, Error> {
        let text = text.as_ref();
        let invalid = |reason| Error::InvalidSpec {
            spec: text.to_string_lossy().into_owned(),
            reason,
        };
        if text.is_empty() {
            return Err(invalid("it is empty"));
        }
        let forced = text.to_str().and_then(|text| text.strip_prefix("dir:"));
        let is_path = forced.is_some() || is_always_a_path(text);
        let text = forced.map_or(text, OsStr::new);
        let path = match Path::new(text).strip_prefix("~") {
            Ok(rest) => roots
                .home
                .as_ref()
                .ok_or_else(|| invalid("no home directory is known for `~`"))?
                .join(rest),
            Err(_) => PathBuf::from(text),
        };
        // What cannot be looked at may well exist; whoever opens it will say why not.
        if path.try_exists().unwrap_or(is_path) {
            return Ok(Self::Path(path));
        }
        if is_path {
            return Err(Error::NoSuchPath { path });
        }
        let name = text
            .to_str()
            .ok_or_else(|| invalid("a model's name is UTF-8"))?;
        if name.chars().any(char::is_control) {
            return Err(invalid("a model's name has no control characters"));
        }
        match name.split_once(':') {
            None => Ok(Self::Bare(name.to_owned())),
            Some(("", _)) => Err(invalid("a provider's name is missing before `:`")),
            Some((_, "")) => Err(invalid("a model's name is missing after `:`")),
            Some((provider, reference)) => Ok(Self::Provider {
                provider: provider.to_owned(),
                reference: reference.to_owned(),
            }),
        }
    }
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => path.display().fmt(f),
            Self::Provider {
                provider,
                reference,
            } => write!(f, "{provider}:{reference}"),
            Self::Bare(name) => f.write_str(name),
        }
    }
}

/// Whether `text` can be nothing but a path.
fn is_always_a_path(text: &OsStr) -> bool {
    let first = match Path::new(text).components().next() {
        Some(Component::Normal(name)) => name == "~",
        Some(_) => true,
        None => false,
    };
    first
        || text
            .as_encoded_bytes()
            .last()
            .is_some_and(|&byte| is_separator(char::from(byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_prefixes_are_told_apart() {
        let provider = |provider: &str, reference: &str| Spec::Provider {
            provider: provider.to_owned(),
            reference: reference.to_owned(),
        };
        let cases = [
            ("tiny.en", Spec::Bare("tiny.en".to_owned())),
            ("openai/tiny.en", Spec::Bare("openai/tiny.en".to_owned())),
            ("well-known:tiny", provider("well-known", "tiny")),
            ("bundled:tiny.en", provider("bundled", "tiny.en")),
            ("hf:org/repo", provider("hf", "org/repo")),
            ("hf:org/repo@v1.0", provider("hf", "org/repo@v1.0")),
            ("hf:org/repo:x", provider("hf", "org/repo:x")),
        ];
        for (text, expected) in cases {
            let spec = Spec::parse(text, &Roots::default()).unwrap();
            assert_eq!(spec, expected);
            assert_eq!(spec.to_string(), text);
        }
    }

    #[test]
    fn existing_path_wins_over_a_name() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("well-known:tiny");
        std::fs::write(&file, "").unwrap();
        assert_eq!(
            Spec::parse(&file, &Roots::default()).unwrap(),
            Spec::Path(file)
        );
        // Tests run in the crate's root, where there is a directory of this name.
        assert_eq!(
            Spec::parse("assets", &Roots::default()).unwrap(),
            Spec::Path("assets".into())
        );
    }

    #[test]
    fn dir_forces_a_path() {
        let spec = Spec::parse("dir:assets", &Roots::default()).unwrap();
        assert_eq!(spec, Spec::Path("assets".into()));
    }

    #[test]
    fn paths_that_do_not_exist_are_never_names() {
        for text in [
            "/no/such/model.pt",
            "./tiny",
            "../no-such-model",
            ".///x",
            "no-such-dir/",
            "/no/where:tiny",
            "dir:tiny",
            "dir:",
        ] {
            let error = Spec::parse(text, &Roots::default()).unwrap_err();
            assert!(matches!(error, Error::NoSuchPath { .. }), "{text}: {error}");
        }
    }

    #[test]
    fn tilde_is_the_home_directory() {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join("tiny.pt"), "").unwrap();
        let roots = Roots {
            home: Some(home.path().to_owned()),
            ..Roots::default()
        };
        assert_eq!(
            Spec::parse("~/tiny.pt", &roots).unwrap(),
            Spec::Path(home.path().join("tiny.pt"))
        );
        let error = Spec::parse("~/other.pt", &roots).unwrap_err();
        assert!(
            matches!(error, Error::NoSuchPath { path } if path == home.path().join("other.pt"))
        );
        assert!(matches!(
            Spec::parse("~/tiny.pt", &Roots::default()),
            Err(Error::InvalidSpec { .. })
        ));
    }

    #[test]
    fn malformed_specs_are_refused() {
        for text in ["", ":tiny", "well-known:", "ti\0ny", "ti\nny"] {
            let error = Spec::parse(text, &Roots::default()).unwrap_err();
            assert!(
                matches!(error, Error::InvalidSpec { .. }),
                "{text:?}: {error}"
            );
        }
    }

    #[cfg(unix)]
    #[test]
    fn name_that_is_not_utf_8_is_refused() {
        use std::os::unix::ffi::OsStrExt;

        let text = OsStr::from_bytes(b"ti\xffny");
        assert!(matches!(
            Spec::parse(text, &Roots::default()),
            Err(Error::InvalidSpec { .. })
        ));
    }
}
