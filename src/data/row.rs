use serde::{Deserialize, Serialize};

use super::{Defect, ResourceMap};

/// A name in a provider: which geometry it has, and which files it is made of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// Unique in its provider: `openai/tiny.en`.
    pub name: String,
    /// Other names it answers to, the one to show first.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// The name of its [`Prefab`](super::Prefab).
    pub prefab: String,
    /// SPDX expression of the weights' licence.
    pub license: String,
    /// Where the weights come from, for people: a repository or a page.
    pub origin: String,
    /// Its files, by key.
    #[serde(rename = "resource")]
    pub resources: ResourceMap,
}

impl Row {
    /// Every name it answers to.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&self.name)
            .chain(&self.aliases)
            .map(String::as_str)
    }

    /// The name to show: the first alias, which is the short one, else the name.
    pub fn short_name(&self) -> &str {
        self.aliases.first().unwrap_or(&self.name)
    }

    /// Checks what the types cannot: names that can be typed, and sound resources.
    ///
    /// # Errors
    /// The first [`Defect`] found.
    pub fn validate(&self) -> Result<(), Defect> {
        for name in self.names() {
            // A colon would read as a provider's prefix.
            if name.is_empty()
                || name.contains(|c: char| c == ':' || c.is_whitespace() || c.is_control())
            {
                return Err(Defect::Name {
                    name: name.to_owned(),
                });
            }
        }
        if self.resources.is_empty() {
            return Err(Defect::NoResources {
                row: self.name.clone(),
            });
        }
        self.resources
            .iter()
            .try_for_each(super::Resource::validate)
    }
}
