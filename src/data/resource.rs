use std::{fmt, path::PathBuf};

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::{Defect, Sha256, hub::HubRef};

/// The key of a model's weights, in every table and for every kit.
pub(super) const WEIGHTS: &str = "weights";

/// What a file holds; a kit's constructor is chosen by the kinds that a model is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Kind {
    /// A torch archive of OpenAI's form: dimensions and a state dictionary in one file.
    OpenaiPt,
    /// A torch archive that is a state dictionary; its geometry is in a file beside it.
    Pytorch,
    /// Tensors in safetensors form.
    Safetensors,
    /// The index that names the shards beside it, each in safetensors form.
    SafetensorsIndex,
    /// A GGUF file.
    Gguf,
    /// The file form of whisper.cpp before GGUF.
    Ggml,
    /// A JSON document whose meaning its key tells.
    Json,
    /// A vocabulary in tiktoken form: base64 of the token, a space, its rank.
    Tiktoken,
    /// The `tokenizer.json` of the tokenizers library.
    TokenizerJson,
    /// Plain text whose meaning its key tells: merges, a list of words.
    Text,
    /// A SentencePiece model.
    Sentencepiece,
    /// A chat template.
    Jinja,
    /// An ONNX graph; kept for comparison, never run.
    Onnx,
    /// A TorchScript archive; kept for comparison, never run.
    Torchscript,
}

impl Kind {
    /// The name used in tables and messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::OpenaiPt => "openai-pt",
            Self::Pytorch => "pytorch",
            Self::Safetensors => "safetensors",
            Self::SafetensorsIndex => "safetensors-index",
            Self::Gguf => "gguf",
            Self::Ggml => "ggml",
            Self::Json => "json",
            Self::Tiktoken => "tiktoken",
            Self::TokenizerJson => "tokenizer-json",
            Self::Text => "text",
            Self::Sentencepiece => "sentencepiece",
            Self::Jinja => "jinja",
            Self::Onnx => "onnx",
            Self::Torchscript => "torchscript",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Bytes linked into the binary; printed as their length.
#[derive(Clone, PartialEq, Eq)]
pub struct Linked(pub Bytes);

impl fmt::Debug for Linked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

/// A place a file can be had from, besides its pinned path in the cache.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// A directory of [`Roots::places`](super::Roots::places), by its name there: the file in it is used in place.
    Local(String),
    /// Where the file is published.
    Url(String),
    /// A repository of the hub that has it under the resource's `file`: in the hub's cache it is used in place, and
    /// from the hub it can be had.
    Hub(HubRef),
    /// Bytes linked into the binary; a manifest cannot carry them.
    #[serde(skip)]
    Linked(Linked),
    /// A path the user gave, used as it is; a manifest cannot carry it.
    #[serde(skip)]
    Given(PathBuf),
}

/// One file of a model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resource {
    /// What the file is to its model: `weights`, `config`, `vocab`.
    pub key: String,
    /// Its name, in the cache and in local places; `/` separates directories.
    pub file: String,
    /// What it holds.
    pub kind: Kind,
    /// The cache directory that it shares with the files of the same origin: `openai`. If nothing is said,
    /// the owner of its row's hub repository, or what stands before the slash of the row's name.
    #[serde(default)]
    pub namespace: String,
    /// The pin. Without one, the first fetch pins what it finds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<Sha256>,
    /// Length in bytes, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// Where it can be had from, in order. Where its row has a hub repository, from there if nothing is said.
    #[serde(default)]
    pub sources: Vec<Source>,
}

impl Resource {
    /// Checks what the types cannot: path parts that stay inside the cache, and a pin for whatever cannot be pinned by
    /// its first fetch.
    ///
    /// # Errors
    /// The first [`Defect`] found.
    pub fn validate(&self) -> Result<(), Defect> {
        if self.key.is_empty()
            || self
                .key
                .contains(|c: char| c.is_whitespace() || c.is_control())
        {
            return Err(Defect::Key {
                key: self.key.clone(),
            });
        }
        if matches!(self.sources.as_slice(), [Source::Given(_)]) {
            return Ok(());
        }
        if !is_safe_name(&self.namespace) {
            return Err(Defect::Namespace {
                key: self.key.clone(),
                namespace: self.namespace.clone(),
            });
        }
        if !is_safe_path(&self.file) {
            return Err(Defect::File {
                key: self.key.clone(),
                file: self.file.clone(),
            });
        }
        if let Some(url) = self.url().filter(|url| !is_web(url)) {
            return Err(Defect::Url {
                key: self.key.clone(),
                url: url.to_owned(),
            });
        }
        let is_remote = |source: &Source| matches!(source, Source::Url(_) | Source::Hub(_));
        if self.sha256.is_none() && !self.sources.iter().any(is_remote) {
            return Err(Defect::Unpinned {
                key: self.key.clone(),
            });
        }
        Ok(())
    }

    /// Where the file is published, if its table says.
    pub fn url(&self) -> Option<&str> {
        self.sources.iter().find_map(|source| match source {
            Source::Url(url) => Some(url.as_str()),
            _ => None,
        })
    }

    /// The hub repository that has it, if its table says.
    pub fn hub(&self) -> Option<&HubRef> {
        self.sources.iter().find_map(|source| match source {
            Source::Hub(hub) => Some(hub),
            _ => None,
        })
    }

    /// Whether its bytes are in the binary.
    pub fn is_linked(&self) -> bool {
        self.sources
            .iter()
            .any(|source| matches!(source, Source::Linked(_)))
    }
}

/// Whether `url` is an address of http or https.
fn is_web(url: &str) -> bool {
    let rest = url
        .strip_prefix("https://")
        .or_else(|| url.strip_prefix("http://"));
    rest.is_some_and(|rest| !rest.is_empty() && !rest.contains(char::is_whitespace))
}

/// Whether `path` is a relative path that stays where it is put, on every platform.
pub(super) fn is_safe_path(path: &str) -> bool {
    path.split('/').all(is_safe_name)
}

/// Whether `name` is one path component that means the same on every platform.
fn is_safe_name(name: &str) -> bool {
    !name.is_empty()
        && !name.ends_with(['.', ' '])
        && !name.contains(|c: char| c.is_control() || r#"/\:*?"<>|"#.contains(c))
        && !is_device(name)
}

/// Whether Windows reads `name` as a device, whatever its extension.
fn is_device(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or(name).to_ascii_lowercase();
    let numbered = |prefix| {
        stem.strip_prefix(prefix)
            .is_some_and(|rest| matches!(rest.as_bytes(), [b'1'..=b'9']))
    };
    matches!(stem.as_str(), "con" | "prn" | "aux" | "nul") || numbered("com") || numbered("lpt")
}

/// A model's files in the order of its table, each key once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<Resource>", into = "Vec<Resource>")]
pub struct ResourceMap(Vec<Resource>);

impl ResourceMap {
    /// The resource of `key`.
    pub fn get(&self, key: &str) -> Option<&Resource> {
        self.0.iter().find(|resource| resource.key == key)
    }

    /// Adds `resource`, or puts it in the place of the one with its key.
    pub fn overlay(&mut self, resource: Resource) {
        match self.0.iter_mut().find(|known| known.key == resource.key) {
            Some(known) => *known = resource,
            None => self.0.push(resource),
        }
    }

    /// Keeps the resources for which `keep` holds.
    pub fn retain(&mut self, keep: impl FnMut(&Resource) -> bool) {
        self.0.retain(keep);
    }

    /// The resources in order.
    pub fn iter(&self) -> std::slice::Iter<'_, Resource> {
        self.0.iter()
    }

    /// The resources in order, to be changed; keys are the caller's to keep unique.
    pub(super) fn iter_mut(&mut self) -> std::slice::IterMut<'_, Resource> {
        self.0.iter_mut()
    }

    /// Whether there is no resource.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<'a> IntoIterator for &'a ResourceMap {
    type Item = &'a Resource;
    type IntoIter = std::slice::Iter<'a, Resource>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl TryFrom<Vec<Resource>> for ResourceMap {
    type Error = Defect;

    fn try_from(resources: Vec<Resource>) -> Result<Self, Defect> {
        for (i, resource) in resources.iter().enumerate() {
            if resources[..i]
                .iter()
                .any(|earlier| earlier.key == resource.key)
            {
                return Err(Defect::DuplicateKey {
                    key: resource.key.clone(),
                });
            }
        }
        Ok(Self(resources))
    }
}

impl From<ResourceMap> for Vec<Resource> {
    fn from(map: ResourceMap) -> Self {
        map.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource(key: &str) -> Resource {
        Resource {
            key: key.to_owned(),
            file: "tiny.pt".to_owned(),
            kind: Kind::OpenaiPt,
            namespace: "openai".to_owned(),
            sha256: Some(Sha256::of(b"")),
            size: None,
            sources: Vec::new(),
        }
    }

    #[test]
    fn path_parts_cannot_leave_the_cache() {
        assert!(resource("weights").validate().is_ok());
        assert!(
            Resource {
                file: "1_Pooling/config.json".to_owned(),
                ..resource("pooling")
            }
            .validate()
            .is_ok()
        );
        let long = "a/".repeat(3);
        for file in [
            "",
            "..",
            ".",
            "/etc/passwd",
            "a/../../b",
            "a//b",
            &long,
            r"a\b",
            "C:x",
            "a\0",
            "x ",
            "a?b",
            "con",
            "a/NUL.json",
            "lpt1.txt",
        ] {
            let file = Resource {
                file: file.to_owned(),
                ..resource("weights")
            };
            assert!(
                matches!(file.validate(), Err(Defect::File { .. })),
                "{:?}",
                file.file
            );
            let namespace = Resource {
                namespace: file.file,
                ..resource("weights")
            };
            assert!(
                matches!(namespace.validate(), Err(Defect::Namespace { .. })),
                "{:?}",
                namespace.namespace
            );
        }
        let nested = Resource {
            namespace: "a/b".to_owned(),
            ..resource("weights")
        };
        assert!(matches!(nested.validate(), Err(Defect::Namespace { .. })));
    }

    #[test]
    fn only_what_can_be_fetched_or_is_given_needs_no_pin() {
        let unpinned = Resource {
            sha256: None,
            ..resource("weights")
        };
        let with = |sources| Resource {
            sources,
            ..unpinned.clone()
        };
        let linked = Source::Linked(Linked(Bytes::from_static(b"x")));
        for sources in [vec![], vec![linked], vec![Source::Local("here".to_owned())]] {
            assert!(matches!(
                with(sources).validate(),
                Err(Defect::Unpinned { .. })
            ));
        }
        let hub = Source::Hub("org/repo@main".parse().unwrap());
        let url = Source::Url("https://example.org/x".to_owned());
        for source in [Source::Given("/x/y".into()), hub, url] {
            assert!(with(vec![source]).validate().is_ok());
        }
    }

    #[test]
    fn keys_are_unique_and_an_overlay_replaces_by_key() {
        let twice = vec![resource("weights"), resource("weights")];
        assert!(matches!(
            ResourceMap::try_from(twice),
            Err(Defect::DuplicateKey { .. })
        ));

        let mut map = ResourceMap::try_from(vec![resource("weights"), resource("config")]).unwrap();
        map.overlay(Resource {
            file: "mine.pt".to_owned(),
            ..resource("weights")
        });
        map.overlay(resource("vocab"));
        let files: Vec<_> = map
            .iter()
            .map(|r| (r.key.as_str(), r.file.as_str()))
            .collect();
        assert_eq!(
            files,
            [
                ("weights", "mine.pt"),
                ("config", "tiny.pt"),
                ("vocab", "tiny.pt")
            ]
        );
    }

    #[test]
    fn kinds_are_written_as_they_are_read() {
        for kind in [
            Kind::OpenaiPt,
            Kind::SafetensorsIndex,
            Kind::TokenizerJson,
            Kind::Ggml,
        ] {
            let json = serde_json::to_string(&kind).unwrap();
            assert_eq!(json, format!("\"{kind}\""));
            assert_eq!(serde_json::from_str::<Kind>(&json).unwrap(), kind);
        }
    }

    #[test]
    fn linked_bytes_are_printed_as_their_length() {
        assert_eq!(
            format!("{:?}", Linked(Bytes::from_static(b"abc"))),
            "3 bytes"
        );
    }
}
