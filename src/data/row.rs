use serde::{Deserialize, Serialize};

use super::{Defect, ResourceMap, Source, hub::HubRef};

/// A name in a provider: which geometry it has, and which files it is made of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// Unique in its provider: `openai/tiny.en`.
    pub name: String,
    /// Other names it answers to, the one to show first.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// The name of its [`Prefab`](super::Prefab); files that are no model, and repositories of the hub, have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefab: Option<String>,
    /// SPDX expression of the weights' licence.
    pub license: String,
    /// Where the weights come from, for people: a repository or a page.
    pub origin: String,
    /// The hub repository of those resources that name no source of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hub: Option<HubRef>,
    /// Whether the repository asks for consent before it gives its files.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gated: bool,
    /// The spec of the same model where nobody asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ungated: Option<String>,
    /// What else the kit must know to use it as published, in the kit's own words: pooling, prompts, stop tokens.
    #[serde(default, skip_serializing_if = "toml::Table::is_empty")]
    pub descriptor: toml::Table,
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

    /// Gives the resources that name no source or namespace those of the row's hub repository; without one, the
    /// namespace is what stands before the slash of the row's name.
    pub(super) fn complete(&mut self) {
        let owner = match &self.hub {
            Some(hub) => hub.repo.owner(),
            None => self.name.split('/').next().unwrap_or(&self.name),
        };
        for resource in self.resources.iter_mut() {
            if let (Some(hub), true) = (&self.hub, resource.sources.is_empty()) {
                resource.sources.push(Source::Hub(hub.clone()));
            }
            if resource.namespace.is_empty() {
                resource.namespace = owner.to_owned();
            }
        }
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
