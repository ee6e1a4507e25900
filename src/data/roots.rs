use std::{collections::BTreeMap, ffi::OsString, path::PathBuf};

/// Where files are looked for: read from the environment once, and passed in from there on.
///
/// Every field may be absent: a machine without a home directory can still use given paths and linked bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Roots {
    /// The user's home directory, for `~/`.
    pub home: Option<PathBuf>,
    /// The cache root; everything of ours is in its `pretrained/` directory.
    pub cache: Option<PathBuf>,
    /// Directories that a resource may name as a `local` source, by that name.
    pub places: BTreeMap<String, PathBuf>,
}

impl Roots {
    /// The place where the `openai-whisper` package keeps its downloads.
    pub const OPENAI_WHISPER: &str = "openai-whisper";

    /// Reads the environment through `var`; an empty value counts as unset.
    ///
    /// - `cache`: `PRETRAINED_CACHE_DIR`, else `BUNSEN_CACHE_DIR` (the same layout), else the platform's own:
    ///   `XDG_CACHE_HOME` or `~/.cache`, on macOS `~/Library/Caches`, on Windows `LOCALAPPDATA`.
    /// - `openai-whisper`: `$XDG_CACHE_HOME/whisper`, else `~/.cache/whisper`, on every platform
    ///   (openai/whisper `whisper/__init__.py`, `load_model`).
    pub fn from_vars(var: impl Fn(&str) -> Option<OsString>) -> Self {
        let path = |name: &str| {
            var(name)
                .filter(|value| !value.is_empty())
                .map(PathBuf::from)
        };
        let home = path("HOME").or_else(|| path("USERPROFILE"));
        let under_home = |relative: &str| home.as_ref().map(|home| home.join(relative));
        // The XDG base directory specification has relative values ignored.
        let xdg = path("XDG_CACHE_HOME").filter(|path| path.is_absolute());
        let platform = if cfg!(target_os = "macos") {
            under_home("Library/Caches")
        } else if cfg!(windows) {
            path("LOCALAPPDATA")
        } else {
            xdg.clone().or_else(|| under_home(".cache"))
        };
        let cache = path("PRETRAINED_CACHE_DIR")
            .or_else(|| path("BUNSEN_CACHE_DIR"))
            .or(platform);
        let openai_whisper = xdg
            .or_else(|| under_home(".cache"))
            .map(|dir| dir.join("whisper"));
        let places = openai_whisper
            .map(|dir| (Self::OPENAI_WHISPER.to_owned(), dir))
            .into_iter()
            .collect();
        Self {
            home,
            cache,
            places,
        }
    }

    /// Uses `dir` as the cache root, whatever the environment says.
    pub fn with_cache(mut self, dir: impl Into<PathBuf>) -> Self {
        self.cache = Some(dir.into());
        self
    }

    /// Uses `dir` for the local source `name`, whatever the environment says.
    pub fn with_place(mut self, name: &str, dir: impl Into<PathBuf>) -> Self {
        self.places.insert(name.to_owned(), dir.into());
        self
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn first_variable_that_is_set_decides() {
        struct Case {
            vars: &'static [(&'static str, &'static str)],
            cache: Option<&'static str>,
            whisper: Option<&'static str>,
        }
        let cases = [
            Case {
                vars: &[],
                cache: None,
                whisper: None,
            },
            Case {
                vars: &[("HOME", "/h")],
                cache: Some("/h/.cache"),
                whisper: Some("/h/.cache/whisper"),
            },
            Case {
                vars: &[("HOME", "/h"), ("XDG_CACHE_HOME", "/x")],
                cache: Some("/x"),
                whisper: Some("/x/whisper"),
            },
            Case {
                vars: &[("HOME", "/h"), ("XDG_CACHE_HOME", "relative")],
                cache: Some("/h/.cache"),
                whisper: Some("/h/.cache/whisper"),
            },
            Case {
                vars: &[
                    ("HOME", "/h"),
                    ("PRETRAINED_CACHE_DIR", "/p"),
                    ("BUNSEN_CACHE_DIR", "/b"),
                ],
                cache: Some("/p"),
                whisper: Some("/h/.cache/whisper"),
            },
            Case {
                vars: &[("PRETRAINED_CACHE_DIR", ""), ("BUNSEN_CACHE_DIR", "/b")],
                cache: Some("/b"),
                whisper: None,
            },
        ];
        for case in cases {
            let roots = Roots::from_vars(|name| {
                case.vars
                    .iter()
                    .find(|(known, _)| *known == name)
                    .map(|(_, value)| value.into())
            });
            assert_eq!(
                roots.cache,
                case.cache.map(PathBuf::from),
                "{:?}",
                case.vars
            );
            assert_eq!(
                roots.places.get(Roots::OPENAI_WHISPER),
                case.whisper.map(PathBuf::from).as_ref()
            );
        }
    }
}
