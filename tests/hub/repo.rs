//! A repository of a model: commits, the names that point at them, and who may read.

use std::collections::BTreeMap;

use sha1::{Digest, Sha1};

use super::content::{Content, File, hex};

/// Who may read a repository.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Access {
    Everybody,
    /// Everybody sees what there is; files are for those who accepted the terms.
    Gated,
    /// To others it does not exist.
    Private,
}

/// A repository in the making: files go into its latest commit.
#[derive(Clone)]
pub(crate) struct Repo {
    pub(super) name: String,
    pub(super) former_name: Option<String>,
    pub(super) access: Access,
    /// The tokens of those who may read what is not for everybody.
    pub(super) tokens: Vec<String>,
    commits: Vec<Commit>,
    refs: BTreeMap<String, String>,
}

/// The files of a revision by path.
#[derive(Clone)]
pub(super) struct Commit {
    pub(super) id: String,
    pub(super) files: BTreeMap<String, File>,
}

impl Repo {
    /// A repository that everybody may read, with an empty first commit whose id comes of `name`.
    pub(crate) fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            former_name: None,
            access: Access::Everybody,
            tokens: Vec::new(),
            commits: vec![Commit {
                id: hex(&Sha1::digest(name)),
                files: BTreeMap::new(),
            }],
            refs: BTreeMap::new(),
        }
    }

    /// A file that git holds itself, as the hub keeps small ones.
    pub(crate) fn file(self, path: &str, content: impl Into<Content>) -> Self {
        self.with(path, File::new(content.into()))
    }

    /// A file in large-file storage, which `resolve` redirects to.
    pub(crate) fn lfs(self, path: &str, content: impl Into<Content>) -> Self {
        self.with(path, File::large(content.into()))
    }

    /// Leaves a file of the commit before out of this one.
    pub(crate) fn without(mut self, path: &str) -> Self {
        self.latest().files.remove(path).unwrap();
        self
    }

    /// Begins a commit with the files of the one before, if there are any; otherwise names the first one.
    pub(crate) fn commit(mut self, id: &str) -> Self {
        let files = self.latest().files.clone();
        if files.is_empty() {
            self.commits.pop();
        }
        let id = id.into();
        self.commits.push(Commit { id, files });
        self
    }

    /// Points a branch (`main`, `refs/pr/1`) at the latest commit. Without this, `main` is always the latest.
    pub(crate) fn branch(mut self, name: &str) -> Self {
        let id = self.latest().id.clone();
        self.point(name, &id);
        self
    }

    /// Points a tag at the latest commit.
    pub(crate) fn tag(self, name: &str) -> Self {
        self.branch(name)
    }

    /// Lets only those read files who have one of its tokens, and everybody see the listing.
    pub(crate) fn gated(mut self) -> Self {
        self.access = Access::Gated;
        self
    }

    /// Hides it from everybody who does not have one of its tokens.
    pub(crate) fn private(mut self) -> Self {
        self.access = Access::Private;
        self
    }

    /// A token that may read it.
    pub(crate) fn token(mut self, token: &str) -> Self {
        self.tokens.push(token.into());
        self
    }

    /// The name it had before; requests to that are redirected to the new one.
    pub(crate) fn formerly(mut self, name: &str) -> Self {
        self.former_name = Some(name.into());
        self
    }

    /// The id of the commit that a branch, a tag or the start of an id stands for.
    pub(crate) fn commit_id(&self, revision: &str) -> String {
        self.at(revision).unwrap().id.clone()
    }

    pub(super) fn point(&mut self, name: &str, commit: &str) {
        assert!(self.commits.iter().any(|each| each.id == commit));
        self.refs.insert(name.into(), commit.into());
    }

    /// The commit of a branch, a tag, an id, or seven or more digits that an id starts with.
    pub(super) fn at(&self, revision: &str) -> Option<&Commit> {
        let id = match self.refs.get(revision) {
            Some(id) => id,
            None if revision == "main" => return self.commits.last(),
            None if revision.len() < 7 => return None,
            None => revision,
        };
        self.commits.iter().find(|commit| commit.id.starts_with(id))
    }

    fn latest(&mut self) -> &mut Commit {
        self.commits.last_mut().unwrap()
    }

    fn with(mut self, path: &str, file: File) -> Self {
        self.latest().files.insert(path.into(), file);
        self
    }
}
