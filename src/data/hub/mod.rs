//! The hub: repositories of models, and the cache of them that this program shares with the Python libraries and the
//! `hf` tool.
//!
//! ```text
//! <root>/CACHEDIR.TAG
//! <root>/.locks/models--org--repo/pretrained.lock      one fetch of a repository at a time
//! <root>/.locks/models--org--repo/<id>.lock            one fetch of a blob at a time, the Python library's too
//! <root>/models--org--repo/
//!   blobs/<id>                                          content, by its sha256 or git's name for it
//!   blobs/<id>.<random>.pretrained.incomplete           content on its way; the Python library's without our name
//!   snapshots/<commit>/<path> -> ../../blobs/<id>       the files of a commit
//!   refs/<revision>                                     the commit that a branch or tag meant, written last
//!   trees/<commit>.json                                 what a commit holds, as the Python library keeps it
//!   .pretrained/<commit>.json                           the same, as this program keeps it
//!   .pretrained/<commit>.in-progress                    there while a fetch is under way, or was interrupted
//!   .pretrained/.<name>.<random>.tmp                    one of these or of the references on its way
//! ```
//!
//! The layout is that of huggingface_hub (`file_download.py`). A blob is named by the id that was computed from its
//! bytes. A listing of ours does not lie in `trees/`: there it would say that the whole repository is wanted, and the
//! Python library would call a snapshot without, say, the weights of other frameworks incomplete.

#[cfg(feature = "net")]
mod api;
mod cache;
mod listing;
mod provider;
mod reference;
mod safety;
mod select;

pub use cache::{HubCache, Snapshot};
pub use listing::{Entry, Listing};
pub use provider::{Hub, HubProvider};
pub use reference::{Commit, HubRef, RepoId, Revision};
pub use select::Choice;

#[cfg(feature = "net")]
pub(super) use cache::Put;
