//! The network: requests, and files that come over it.
//!
//! A file is written under a name of its own and hashed as it comes; only when its length and digest are what was
//! promised does it get its final name. A transfer that breaks off goes on where it stopped, in the same run or a later
//! one. Secrets are sent to the hub's own address and never follow a redirect to another.

#[cfg(feature = "net")]
mod failure;
#[cfg(feature = "net")]
mod http;
#[cfg(feature = "net")]
mod partial;
mod proxies;
mod settings;
#[cfg(feature = "net")]
mod transfer;

pub use proxies::Proxies;
pub use settings::{Settings, Token, address, is_on, without_query};

#[cfg(feature = "net")]
pub(super) use self::{
    failure::Failure,
    http::{Ask, Document, Http},
    partial::bytes_left,
    transfer::{Received, Refusal, Target, Want, download},
};

#[cfg(feature = "net")]
pub(super) use settings::escaped;

/// The network, or the reason why there is none.
pub struct Network {
    settings: Settings,
    #[cfg(feature = "net")]
    http: Http,
}

impl Network {
    /// The network as `settings` want it used; no connection is opened before something is asked for.
    pub fn new(settings: Settings) -> Self {
        Self {
            #[cfg(feature = "net")]
            http: Http::new(&settings),
            settings,
        }
    }

    /// How it is used.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Why nothing may be asked of it; `None` when it may.
    pub fn offline(&self) -> Option<&'static str> {
        if cfg!(feature = "net") {
            self.settings.offline
        } else {
            Some("this build has no network code")
        }
    }

    #[cfg(feature = "net")]
    pub(super) fn http(&self) -> &Http {
        &self.http
    }
}
