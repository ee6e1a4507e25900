use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
};

/// A directory, and what made it the one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root {
    /// The directory; it need not exist.
    pub path: PathBuf,
    /// The variable or flag that decided, or `default`.
    pub decided_by: &'static str,
}

/// Where files are looked for: read from the environment once, and passed in from there on.
///
/// Every field may be absent: a machine without a home directory can still use given paths and linked bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Roots {
    /// The user's home directory, for `~/`.
    pub home: Option<PathBuf>,
    /// The cache root; everything of ours is in its `pretrained/` directory.
    pub cache: Option<Root>,
    /// The hub's cache, which the Python libraries and the `hf` tool use too.
    pub hub: Option<Root>,
    /// Directories that a resource may name as a `local` source, by that name.
    pub places: BTreeMap<String, Root>,
}

impl Roots {
    /// The place where the `openai-whisper` package keeps its downloads.
    pub const OPENAI_WHISPER: &str = "openai-whisper";

    /// Reads the environment through `var`; an empty value counts as unset.
    ///
    /// - `cache`: `PRETRAINED_CACHE_DIR`, else `BUNSEN_CACHE_DIR` (the same layout), else the platform's own:
    ///   `XDG_CACHE_HOME` or `~/.cache`, on macOS `~/Library/Caches`, on Windows `LOCALAPPDATA`.
    /// - `hub`: `HF_HUB_CACHE`, `HUGGINGFACE_HUB_CACHE`, `$HF_HOME/hub`, `$XDG_CACHE_HOME/huggingface/hub`,
    ///   `~/.cache/huggingface/hub`, with `~`, `$NAME` and `${NAME}` expanded (huggingface_hub `constants.py`).
    /// - `openai-whisper`: `$XDG_CACHE_HOME/whisper`, else `~/.cache/whisper`, on every platform
    ///   (openai/whisper `whisper/__init__.py`, `load_model`).
    pub fn from_vars(var: impl Fn(&str) -> Option<OsString>) -> Self {
        let set = |name: &str| var(name).filter(|value| !value.is_empty());
        let home = set("HOME")
            .or_else(|| set("USERPROFILE"))
            .map(PathBuf::from);
        let by = |name: &'static str, path: Option<PathBuf>| {
            path.map(|path| Root {
                path,
                decided_by: name,
            })
        };
        let under_home =
            |relative: &str| by(DEFAULT, home.as_ref().map(|home| home.join(relative)));
        // The XDG base directory specification has relative values ignored.
        let xdg = |relative: &str| {
            let dir = set(XDG).map(PathBuf::from).filter(|dir| dir.is_absolute());
            by(XDG, dir.map(|dir| join(&dir, relative)))
        };
        let plain = |name: &'static str| by(name, set(name).map(PathBuf::from));
        let expanded = |name: &'static str, relative: &str| {
            let path = set(name).map(|value| expand(&value, home.as_deref(), &set));
            by(name, path.map(|path| join(&path, relative)))
        };

        let platform = if cfg!(target_os = "macos") {
            under_home("Library/Caches")
        } else if cfg!(windows) {
            plain("LOCALAPPDATA")
        } else {
            xdg("").or_else(|| under_home(".cache"))
        };
        let cache = plain("PRETRAINED_CACHE_DIR")
            .or_else(|| plain("BUNSEN_CACHE_DIR"))
            .or(platform);
        let hub = expanded("HF_HUB_CACHE", "")
            .or_else(|| expanded("HUGGINGFACE_HUB_CACHE", ""))
            .or_else(|| expanded("HF_HOME", "hub"))
            .or_else(|| expanded(XDG, "huggingface/hub"))
            .or_else(|| under_home(".cache/huggingface/hub"));
        let openai_whisper = xdg("whisper").or_else(|| under_home(".cache/whisper"));
        let places = openai_whisper
            .map(|root| (Self::OPENAI_WHISPER.to_owned(), root))
            .into_iter()
            .collect();
        Self {
            home,
            cache,
            hub,
            places,
        }
    }

    /// Keeps to `dir`, whatever the environment says: both caches are in it, and no place outside is looked at. What is
    /// fetched so can be carried to another machine whole.
    pub fn confined_to(mut self, dir: impl Into<PathBuf>) -> Self {
        let dir = dir.into();
        self = self.with_hub(dir.join("huggingface").join("hub"), "--cache-dir");
        self.places.clear();
        self.with_cache(dir, "--cache-dir")
    }

    /// Uses `dir` as the cache root, whatever the environment says.
    pub fn with_cache(mut self, dir: impl Into<PathBuf>, decided_by: &'static str) -> Self {
        let path = dir.into();
        self.cache = Some(Root { path, decided_by });
        self
    }

    /// Uses `dir` as the hub's cache, whatever the environment says.
    pub fn with_hub(mut self, dir: impl Into<PathBuf>, decided_by: &'static str) -> Self {
        let path = dir.into();
        self.hub = Some(Root { path, decided_by });
        self
    }

    /// Uses `dir` for the local source `name`, whatever the environment says.
    pub fn with_place(
        mut self,
        name: &str,
        dir: impl Into<PathBuf>,
        decided_by: &'static str,
    ) -> Self {
        let path = dir.into();
        self.places
            .insert(name.to_owned(), Root { path, decided_by });
        self
    }
}

const DEFAULT: &str = "default";
const XDG: &str = "XDG_CACHE_HOME";

/// `dir` itself when `relative` is empty: joining that would append a separator.
fn join(dir: &Path, relative: &str) -> PathBuf {
    if relative.is_empty() {
        dir.to_owned()
    } else {
        dir.join(relative)
    }
}

/// `value` with a leading `~` and every `$NAME` and `${NAME}` that is set replaced; what is not set stays as it is, as
/// Python's `expandvars` leaves it. A value that is not UTF-8 is taken as written.
pub(super) fn expand(
    value: &OsStr,
    home: Option<&Path>,
    var: &impl Fn(&str) -> Option<OsString>,
) -> PathBuf {
    let Some(text) = value.to_str() else {
        return PathBuf::from(value);
    };
    let mut expanded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        let (before, from) = rest.split_at(at);
        expanded.push_str(before);
        let (name, after) = variable(from);
        match name
            .and_then(var)
            .and_then(|value| value.into_string().ok())
        {
            Some(value) => expanded.push_str(&value),
            None => expanded.push_str(&from[..from.len() - after.len()]),
        }
        rest = after;
    }
    expanded.push_str(rest);
    match (home, Path::new(&expanded).strip_prefix("~")) {
        (Some(home), Ok(rest)) => home.join(rest),
        _ => PathBuf::from(expanded),
    }
}

/// The name of the variable that `text`, which begins with `$`, refers to, and what follows the reference.
fn variable(text: &str) -> (Option<&str>, &str) {
    let body = &text[1..];
    if let Some((name, after)) = body.strip_prefix('{').and_then(|body| body.split_once('}')) {
        return (Some(name), after);
    }
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let end = body.find(|c| !is_name(c)).unwrap_or(body.len());
    let (name, after) = body.split_at(end);
    (Some(name).filter(|name| !name.is_empty()), after)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn first_variable_that_is_set_decides() {
        struct Case {
            vars: &'static [(&'static str, &'static str)],
            cache: Option<&'static str>,
            hub: Option<&'static str>,
            whisper: Option<&'static str>,
        }
        let cases = [
            Case {
                vars: &[],
                cache: None,
                hub: None,
                whisper: None,
            },
            Case {
                vars: &[("HOME", "/h")],
                cache: Some("/h/.cache"),
                hub: Some("/h/.cache/huggingface/hub"),
                whisper: Some("/h/.cache/whisper"),
            },
            Case {
                vars: &[("HOME", "/h"), ("XDG_CACHE_HOME", "/x")],
                cache: Some("/x"),
                hub: Some("/x/huggingface/hub"),
                whisper: Some("/x/whisper"),
            },
            Case {
                vars: &[("HOME", "/h"), ("XDG_CACHE_HOME", "relative")],
                cache: Some("/h/.cache"),
                hub: Some("relative/huggingface/hub"),
                whisper: Some("/h/.cache/whisper"),
            },
            Case {
                vars: &[
                    ("HOME", "/h"),
                    ("PRETRAINED_CACHE_DIR", "/p"),
                    ("BUNSEN_CACHE_DIR", "/b"),
                ],
                cache: Some("/p"),
                hub: Some("/h/.cache/huggingface/hub"),
                whisper: Some("/h/.cache/whisper"),
            },
            Case {
                vars: &[("PRETRAINED_CACHE_DIR", ""), ("BUNSEN_CACHE_DIR", "/b")],
                cache: Some("/b"),
                hub: None,
                whisper: None,
            },
            Case {
                vars: &[("HOME", "/h"), ("HF_HOME", "/f"), ("XDG_CACHE_HOME", "/x")],
                cache: Some("/x"),
                hub: Some("/f/hub"),
                whisper: Some("/x/whisper"),
            },
            Case {
                vars: &[
                    ("HOME", "/h"),
                    ("HF_HOME", "/f"),
                    ("HUGGINGFACE_HUB_CACHE", "~/hub"),
                ],
                cache: Some("/h/.cache"),
                hub: Some("/h/hub"),
                whisper: Some("/h/.cache/whisper"),
            },
            Case {
                vars: &[
                    ("HF_HUB_CACHE", "$DISK/${SUB}/hub$NONE"),
                    ("DISK", "/d"),
                    ("SUB", "s"),
                    ("HUGGINGFACE_HUB_CACHE", "/u"),
                ],
                cache: None,
                hub: Some("/d/s/hub$NONE"),
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
            let whisper = roots.places.get(Roots::OPENAI_WHISPER).cloned();
            for (root, expected) in [
                (roots.cache, case.cache),
                (roots.hub, case.hub),
                (whisper, case.whisper),
            ] {
                let path = root.map(|root| root.path);
                assert_eq!(path, expected.map(PathBuf::from), "{:?}", case.vars);
            }
        }
    }

    #[test]
    fn root_says_what_decided_it() {
        let vars = [("HOME", "/h"), ("HF_HOME", "/f")];
        let find = |name: &str| vars.iter().find(|(known, _)| *known == name);
        let roots = Roots::from_vars(|name| find(name).map(|(_, value)| value.into()));
        assert_eq!(roots.cache.unwrap().decided_by, "default");
        assert_eq!(roots.hub.unwrap().decided_by, "HF_HOME");
    }

    #[test]
    fn odd_references_are_left_as_they_are() {
        for text in ["$", "a$", "${", "${A", "$$", "$-", "${}", "~other/x"] {
            let expanded = expand(text.as_ref(), Some(Path::new("/h")), &|_: &str| None);
            assert_eq!(expanded, PathBuf::from(text));
        }
    }
}
