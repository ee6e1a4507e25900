use std::{
    ffi::OsString,
    fmt, fs,
    path::{Path, PathBuf},
    time::Duration,
};

use super::Proxies;
use crate::data::roots::expand;

/// The hub, where nothing else is said.
const HUB: &str = "https://huggingface.co";

/// How the network is used: read from the environment once, and passed in from there on.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The hub's address, without a slash at the end.
    pub endpoint: String,
    /// What proves to the hub who we are.
    pub token: Option<Token>,
    /// Where pinned files are looked for before the places that their tables name: addresses of directories that have
    /// the pinned cache's own layout.
    pub mirrors: Vec<String>,
    /// Who stands between here and the network.
    pub proxies: Proxies,
    /// Why nothing may be asked of the network; `None` when it may.
    pub offline: Option<&'static str>,
    /// Files downloaded at once.
    pub jobs: usize,
    /// Further attempts after one that failed for a reason that may pass.
    pub retries: u32,
    /// The longest wait for a connection.
    pub connect_timeout: Duration,
    /// The longest wait for the next bytes.
    pub read_timeout: Duration,
    /// The longest wait for another process that fetches the same.
    pub lock_timeout: Duration,
}

impl Settings {
    /// Reads the environment through `var`; an empty value counts as unset. `home` is the user's home directory.
    ///
    /// The variables are those of the Python libraries (huggingface_hub `constants.py`): `HF_ENDPOINT`; `HF_TOKEN`, the
    /// file that `HF_TOKEN_PATH` names, or `$HF_HOME/token`, unless `HF_HUB_DISABLE_IMPLICIT_TOKEN` is true;
    /// `HF_HUB_OFFLINE` and `TRANSFORMERS_OFFLINE`, and our own `PRETRAINED_OFFLINE`; `HF_HUB_ETAG_TIMEOUT` and
    /// `HF_HUB_DOWNLOAD_TIMEOUT` in seconds; and those of [`Proxies::from_vars`]. `PRETRAINED_MIRROR` names mirrors,
    /// separated by commas.
    pub fn from_vars(var: impl Fn(&str) -> Option<OsString>, home: Option<&Path>) -> Self {
        let set = |name: &str| var(name).filter(|value| !value.is_empty());
        let text = |name: &str| set(name)?.into_string().ok();
        let is_true = |name: &str| is_on(var(name));
        let seconds = |name: &str| {
            let seconds = text(name)?.parse().ok().filter(|seconds| *seconds >= 1)?;
            Some(Duration::from_secs(seconds))
        };
        let offline = [
            ("PRETRAINED_OFFLINE", "PRETRAINED_OFFLINE is set"),
            ("HF_HUB_OFFLINE", "HF_HUB_OFFLINE is set"),
            ("TRANSFORMERS_OFFLINE", "TRANSFORMERS_OFFLINE is set"),
        ];
        let token = if is_true("HF_HUB_DISABLE_IMPLICIT_TOKEN") {
            None
        } else {
            let from_file = || Token::read(&token_file(&set, home)?).ok()?;
            text("HF_TOKEN")
                .and_then(|token| Token::new(&token))
                .or_else(from_file)
        };
        let mirrors = text("PRETRAINED_MIRROR").unwrap_or_default();
        Self {
            endpoint: address(&text("HF_ENDPOINT").unwrap_or_else(|| HUB.to_owned())),
            token,
            mirrors: mirrors
                .split(',')
                .filter(|it| !it.is_empty())
                .map(address)
                .collect(),
            proxies: Proxies::from_vars(text),
            offline: offline
                .iter()
                .find(|(name, _)| is_true(name))
                .map(|(_, why)| *why),
            jobs: 8,
            retries: 3,
            connect_timeout: seconds("HF_HUB_ETAG_TIMEOUT").unwrap_or(Duration::from_secs(10)),
            read_timeout: seconds("HF_HUB_DOWNLOAD_TIMEOUT").unwrap_or(Duration::from_secs(30)),
            lock_timeout: Duration::from_secs(24 * 60 * 60),
        }
    }

    /// Where `file` of `repo` at `revision` is had from.
    pub fn resolve_url(&self, repo: &str, revision: &str, file: &str) -> String {
        let (revision, file) = (escaped(revision, ""), escaped(file, "/"));
        format!("{}/{repo}/resolve/{revision}/{file}", self.endpoint)
    }
}

/// Whether a variable of that value switches something on, as in the Python libraries: 1, on, yes or true.
pub fn is_on(value: Option<OsString>) -> bool {
    let value = value.unwrap_or_default().to_ascii_uppercase();
    ["1", "ON", "YES", "TRUE"].iter().any(|on| value == *on)
}

/// An address without the slash that may end it.
pub fn address(text: &str) -> String {
    text.trim().trim_end_matches('/').to_owned()
}

/// `url` without its query, which may be signed, and without a name and password before the host.
pub fn without_query(url: &str) -> String {
    let url = url.split(['?', '#']).next().unwrap_or(url);
    let Some((scheme, rest)) = url.split_once("://") else {
        return url.to_owned();
    };
    let (authority, path) = match rest.find('/') {
        Some(at) => rest.split_at(at),
        None => (rest, ""),
    };
    let host = authority.rsplit('@').next().unwrap_or(authority);
    format!("{scheme}://{host}{path}")
}

/// `text` as part of a path: percent-encoded but for what RFC 3986 leaves as it is, and for `keep`.
pub(in crate::data) fn escaped(text: &str, keep: &str) -> String {
    use std::fmt::Write as _;

    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        let c = char::from(byte);
        if c.is_ascii_alphanumeric() || "-._~".contains(c) || keep.contains(c) {
            escaped.push(c);
        } else {
            // Writing to a string cannot fail.
            let _ = write!(escaped, "%{byte:02X}");
        }
    }
    escaped
}

fn token_file(set: &impl Fn(&str) -> Option<OsString>, home: Option<&Path>) -> Option<PathBuf> {
    if let Some(path) = set("HF_TOKEN_PATH") {
        return Some(expand(&path, home, set));
    }
    if let Some(dir) = set("HF_HOME") {
        return Some(expand(&dir, home, set).join("token"));
    }
    let cache = set("XDG_CACHE_HOME").map(|dir| expand(&dir, home, set));
    let cache = cache.or_else(|| home.map(|home| home.join(".cache")))?;
    Some(cache.join("huggingface").join("token"))
}

/// A secret that proves to the hub who we are; it is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// The token in `text`, white space around it removed; `None` when there is none that could be sent.
    pub fn new(text: &str) -> Option<Self> {
        let token = text.trim();
        let can_be_sent = !token.is_empty() && token.chars().all(|c| c.is_ascii_graphic());
        can_be_sent.then(|| Self(token.to_owned()))
    }

    /// The token in the file at `path`.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn read(path: &Path) -> std::io::Result<Option<Self>> {
        Ok(Self::new(&fs::read_to_string(path)?))
    }

    /// The secret itself, for the one header that carries it.
    #[cfg(feature = "net")]
    pub(super) fn secret(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(vars: &[(&str, &str)], home: Option<&Path>) -> Settings {
        let find = |name: &str| vars.iter().find(|(known, _)| *known == name);
        Settings::from_vars(|name| find(name).map(|(_, value)| value.into()), home)
    }

    #[test]
    fn endpoint_keeps_its_path_and_loses_its_slash() {
        let cases = [
            ("", "https://huggingface.co"),
            ("http://127.0.0.1:8080/", "http://127.0.0.1:8080"),
            ("https://mirror.example/hf/", "https://mirror.example/hf"),
        ];
        for (value, expected) in cases {
            let settings = settings(&[("HF_ENDPOINT", value)], None);
            assert_eq!(settings.endpoint, expected);
            let url = settings.resolve_url("org/repo", "refs/pr/1", "a b/c.json");
            assert_eq!(
                url,
                format!("{expected}/org/repo/resolve/refs%2Fpr%2F1/a%20b/c.json")
            );
        }
    }

    #[test]
    fn token_comes_from_the_first_place_that_has_one() {
        let home = tempfile::tempdir().unwrap();
        let file = |path: &str, token: &str| {
            let path = home.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, token).unwrap();
            path.to_str().unwrap().to_owned()
        };
        file(".cache/huggingface/token", "hf_default\n");
        let own = file("own", " hf_own ");
        let hf_home = file("hf/token", "hf_home");
        let hf_home = hf_home.strip_suffix("/token").unwrap();
        type Vars<'a> = &'a [(&'a str, &'a str)];
        let cases: [(Vars<'_>, Option<&str>); 7] = [
            (&[], Some("hf_default")),
            (
                &[("HF_TOKEN", "hf_env\n"), ("HF_TOKEN_PATH", &own)],
                Some("hf_env"),
            ),
            (
                &[("HF_TOKEN_PATH", &own), ("HF_HOME", hf_home)],
                Some("hf_own"),
            ),
            (&[("HF_TOKEN_PATH", "~/own")], Some("hf_own")),
            (&[("HF_HOME", hf_home)], Some("hf_home")),
            (&[("HF_HOME", "/none")], None),
            (
                &[("HF_TOKEN", "x"), ("HF_HUB_DISABLE_IMPLICIT_TOKEN", "1")],
                None,
            ),
        ];
        for (vars, expected) in cases {
            let token = settings(vars, Some(home.path())).token;
            assert_eq!(token, expected.and_then(Token::new), "{vars:?}");
        }
    }

    #[test]
    fn token_is_never_printed() {
        let token = Token::new("hf_secret").unwrap();
        assert!(!format!("{token:?}").contains("secret"));
        assert_eq!(Token::new("two words"), None);
        assert_eq!(Token::new("a\r\nX: y"), None);
    }

    #[test]
    fn each_offline_switch_switches() {
        for name in [
            "PRETRAINED_OFFLINE",
            "HF_HUB_OFFLINE",
            "TRANSFORMERS_OFFLINE",
        ] {
            for (value, is_offline) in [
                ("1", true),
                ("on", true),
                ("Yes", true),
                ("TRUE", true),
                ("0", false),
            ] {
                assert_eq!(
                    settings(&[(name, value)], None).offline.is_some(),
                    is_offline
                );
            }
        }
    }

    #[test]
    fn secrets_of_an_address_are_not_shown() {
        let cases = [
            ("https://h/a?X-Sig=1#f", "https://h/a"),
            ("https://user:pass@h:8/a", "https://h:8/a"),
            ("http://h", "http://h"),
            ("odd", "odd"),
        ];
        for (url, expected) in cases {
            assert_eq!(without_query(url), expected);
        }
    }
}
