use std::path::PathBuf;

use super::error::either;

/// A file that is in none of its places, and what would help.
#[derive(Debug, thiserror::Error)]
#[error(
    "`{model}` is not on this machine: {file} is neither in the cache nor in a local place{}{}",
    notes(passed_over),
    offline.map(|why| format!("; not fetched, {why}")).unwrap_or_default()
)]
pub struct NotCached {
    /// The spec.
    pub model: String,
    /// The name of the file.
    pub file: String,
    /// Length in bytes, where it is known.
    pub size: Option<u64>,
    /// Where the file may be put, in the order in which it is looked for.
    pub places: Vec<PathBuf>,
    /// What was there but could not be used.
    pub passed_over: Vec<PassedOver>,
    /// Where the file is published.
    pub url: Option<String>,
    /// Specs of the same model that need no file.
    pub instead: Vec<String>,
    /// Why it was not fetched; `None` when nobody publishes it.
    pub offline: Option<&'static str>,
}

impl NotCached {
    /// What the user can do about it, in one line.
    pub(super) fn hint(&self) -> String {
        let instead = match self.instead.as_slice() {
            [] => String::new(),
            specs => format!("use {}, which is in this binary, or ", either(specs)),
        };
        if self.offline.is_some() {
            return format!(
                "{instead}run `pretrained fetch {}` where there is a network; with `--cache-dir DIR`, DIR can be brought here",
                self.model
            );
        }
        if self.places.is_empty() {
            return instead + "name a cache directory by PRETRAINED_CACHE_DIR, or give a path";
        }
        let places: Vec<_> = self
            .places
            .iter()
            .map(|place| place.display().to_string())
            .collect();
        let from = self
            .url
            .as_ref()
            .map(|url| format!(" (published at {url})"));
        format!(
            "{instead}put the file{} at {}",
            from.unwrap_or_default(),
            either(&places)
        )
    }
}

/// A file that was found where one was looked for, and not used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PassedOver {
    /// Where.
    pub path: PathBuf,
    /// Why not.
    pub reason: String,
}

/// What was passed over, as the end of a message.
fn notes(passed_over: &[PassedOver]) -> String {
    passed_over
        .iter()
        .map(|it| format!("; `{}` {}", it.path.display(), it.reason))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_file_says_where_to_put_it_and_what_else_would_do() {
        let error = NotCached {
            model: "tiny.en".to_owned(),
            file: "tiny.en.pt".to_owned(),
            size: Some(3),
            places: vec!["/c/tiny.en.pt".into(), "/w/tiny.en.pt".into()],
            passed_over: vec![PassedOver {
                path: "/w/tiny.en.pt".into(),
                reason: "is a directory".to_owned(),
            }],
            url: Some("https://example.org/tiny.en.pt".to_owned()),
            instead: vec!["bundled:tiny.en".to_owned()],
            offline: None,
        };
        assert_eq!(
            error.to_string(),
            "`tiny.en` is not on this machine: tiny.en.pt is neither in the cache nor in a local place; \
             `/w/tiny.en.pt` is a directory"
        );
        assert_eq!(
            error.hint(),
            "use `bundled:tiny.en`, which is in this binary, or put the file \
             (published at https://example.org/tiny.en.pt) at `/c/tiny.en.pt` or `/w/tiny.en.pt`"
        );
    }
}
