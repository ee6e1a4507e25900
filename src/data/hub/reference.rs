use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::data::resource::is_safe_path;

/// The branch that is meant when none is named.
const MAIN: &str = "main";

/// The longest identifier that the hub gives a repository, in bytes (huggingface_hub `utils/_validators.py`).
const REPO_ID_BYTES: usize = 96;

/// A model repository of the hub: `org/repo`, or `repo` for the oldest ones.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RepoId(String);

impl RepoId {
    /// The directory that both this program and the Python libraries keep it in: `models--org--repo`.
    pub fn folder(&self) -> String {
        format!("models--{}", self.0.replace('/', "--"))
    }

    /// The repository of a directory in the hub's cache.
    pub fn from_folder(folder: &str) -> Option<Self> {
        folder
            .strip_prefix("models--")?
            .replacen("--", "/", 1)
            .parse()
            .ok()
    }

    /// What stands before the slash, or the name where there is none.
    pub fn owner(&self) -> &str {
        self.0.split('/').next().unwrap_or(&self.0)
    }

    /// As written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RepoId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for RepoId {
    type Err = &'static str;

    /// Accepts what the hub accepts (huggingface_hub `utils/_validators.py`, `validate_repo_id`).
    fn from_str(text: &str) -> Result<Self, &'static str> {
        let parts: Vec<_> = text.split('/').collect();
        let is_name = |name: &&str| {
            !name.is_empty()
                && !name.starts_with(['-', '.'])
                && !name.ends_with(['-', '.'])
                && name
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
        };
        if parts.len() > 2 || !parts.iter().all(is_name) {
            return Err("a repository is `org/name`, of letters, digits, `-`, `_` and `.`");
        }
        if text.contains("--") || text.contains("..") {
            return Err("a repository's name has neither `--` nor `..`");
        }
        if text.len() > REPO_ID_BYTES {
            return Err("a repository's name has at most 96 characters");
        }
        if text.ends_with(".git") {
            return Err("a repository's name does not end in `.git`");
        }
        Ok(Self(text.to_owned()))
    }
}

/// A commit: 40 lower-case hexadecimal digits.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Commit(String);

impl Commit {
    /// As written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Commit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Commit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Commit {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if text.len() == 40 && text.bytes().all(is_digit) {
            Ok(Self(text.to_owned()))
        } else {
            Err("a commit is 40 lower-case hexadecimal digits")
        }
    }
}

/// A branch, a tag, a pull request (`refs/pr/1`), or a commit.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Revision(String);

impl Revision {
    /// The commit that it is, when it is one.
    pub fn commit(&self) -> Option<Commit> {
        self.0.parse().ok()
    }

    /// As written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for Revision {
    fn default() -> Self {
        Self(MAIN.to_owned())
    }
}

impl From<Commit> for Revision {
    fn from(commit: Commit) -> Self {
        Self(commit.0)
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Revision {
    type Err = &'static str;

    /// Accepts what is a path under `refs/` in the cache, and stays there.
    fn from_str(text: &str) -> Result<Self, &'static str> {
        let is_plain = |c: char| !c.is_whitespace() && !matches!(c, '%' | '#' | '~' | '^' | '@');
        if is_safe_path(text) && text.chars().all(is_plain) {
            Ok(Self(text.to_owned()))
        } else {
            Err("a revision is a branch, a tag or a commit")
        }
    }
}

/// A repository at a revision: `org/repo@revision`, or `org/repo` for its main branch.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HubRef {
    /// The repository.
    pub repo: RepoId,
    /// The revision.
    pub revision: Revision,
}

impl fmt::Display for HubRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.revision == Revision::default() {
            self.repo.fmt(f)
        } else {
            write!(f, "{}@{}", self.repo, self.revision)
        }
    }
}

impl FromStr for HubRef {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        let (repo, revision) = match text.split_once('@') {
            Some((repo, revision)) => (repo, revision.parse()?),
            None => (text, Revision::default()),
        };
        Ok(Self {
            repo: repo.parse()?,
            revision,
        })
    }
}

impl Serialize for HubRef {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for HubRef {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse()
            .map_err(|why| de::Error::custom(format!("`{text}`: {why}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

    #[test]
    fn repositories_and_revisions_are_told_apart() {
        let cases = [
            ("gpt2", "gpt2", "main", "models--gpt2"),
            (
                "openai/whisper-tiny",
                "openai/whisper-tiny",
                "main",
                "models--openai--whisper-tiny",
            ),
            ("org/repo@v1.0", "org/repo", "v1.0", "models--org--repo"),
            (
                "org/repo@refs/pr/1",
                "org/repo",
                "refs/pr/1",
                "models--org--repo",
            ),
        ];
        for (text, repo, revision, folder) in cases {
            let hub: HubRef = text.parse().unwrap();
            assert_eq!((hub.repo.as_str(), hub.revision.as_str()), (repo, revision));
            assert_eq!(hub.repo.folder(), folder);
            assert_eq!(RepoId::from_folder(folder), Some(hub.repo.clone()));
            assert_eq!(hub.to_string(), text);
        }
        let pinned: HubRef = format!("org/repo@{COMMIT}").parse().unwrap();
        assert_eq!(pinned.revision.commit().unwrap().as_str(), COMMIT);
        assert_eq!(Revision::default().commit(), None);
    }

    #[test]
    fn what_could_leave_its_place_is_refused() {
        let long = "a".repeat(97);
        for repo in [
            "", "/", "a/", "/a", "a/b/c", "..", "a/..", "./a", "a--b", "a b", "a/b.git", "a\\b",
            "ä", "-a/b", "a/b.", "a..b", &long,
        ] {
            assert!(repo.parse::<RepoId>().is_err(), "{repo:?}");
        }
        for revision in [
            "", "..", "a/../b", "/etc", "a b", "a%2f", "C:x", "a@b", "nul",
        ] {
            assert!(revision.parse::<Revision>().is_err(), "{revision:?}");
        }
        for commit in [&COMMIT[1..], &COMMIT.to_uppercase(), "main", ""] {
            assert!(commit.parse::<Commit>().is_err(), "{commit:?}");
        }
        assert_eq!(RepoId::from_folder("datasets--org--repo"), None);
    }
}
