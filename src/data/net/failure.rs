use std::time::Duration;

use super::settings::without_query;
use crate::data::Error;

/// The longest that a server's wish to be left alone is granted; who wants more is not asked again.
const PATIENCE: Duration = Duration::from_secs(60);

/// Why a request has no answer that can be used.
#[derive(Debug)]
pub(in crate::data) enum Failure {
    /// The server said so.
    Status {
        /// Its status.
        status: u16,
        /// The hub's own word for it: `GatedRepo`.
        code: Option<String>,
        /// The hub's explanation.
        message: Option<String>,
        /// How long it wants to be left alone.
        retry_after: Option<Duration>,
    },
    /// There was no answer, or it broke off.
    Transport(ureq::Error),
    /// It broke off while the body was read.
    Body(std::io::Error),
    /// It was sent round and round, or nowhere.
    Redirect(&'static str),
    /// It was sent elsewhere, and failed there.
    Elsewhere {
        /// Scheme and host of that place.
        origin: String,
        /// What happened there.
        failure: Box<Failure>,
    },
}

impl Failure {
    /// Whether another attempt may have more luck.
    pub(super) fn may_pass(&self) -> bool {
        match self {
            Self::Status {
                status,
                retry_after,
                ..
            } => {
                let is_soon = retry_after.is_none_or(|wait| wait <= PATIENCE);
                matches!(status, 408 | 429 | 500..=599) && is_soon
            }
            Self::Transport(error) => {
                !matches!(
                    error,
                    ureq::Error::Rustls(_)
                        | ureq::Error::Tls(_)
                        | ureq::Error::BadUri(_)
                        | ureq::Error::InvalidProxyUrl
                        | ureq::Error::Http(_)
                        | ureq::Error::TooManyRedirects
                ) && !is_of_tls(error)
            }
            Self::Body(_) => true,
            Self::Redirect(_) => false,
            Self::Elsewhere { failure, .. } => failure.may_pass(),
        }
    }

    /// How long the server wants to be left alone.
    pub(super) fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Status { retry_after, .. } => *retry_after,
            Self::Elsewhere { failure, .. } => failure.retry_after(),
            _ => None,
        }
    }

    /// What happened, in a few words.
    pub(super) fn reason(&self) -> String {
        match self {
            Self::Status {
                status,
                message,
                retry_after,
                ..
            } => {
                let why = message.iter().map(|message| format!(": {message}"));
                let wait = retry_after.filter(|&wait| wait > PATIENCE);
                let wait =
                    wait.map(|it| format!(", and is not to be asked for {} s", it.as_secs()));
                let more: String = why.chain(wait).collect();
                format!("answered {status}{more}")
            }
            Self::Transport(error) => transport_reason(error),
            Self::Body(error) => {
                let cause = error.get_ref().and_then(|it| it.downcast_ref());
                let reason = cause.map_or_else(|| error.to_string(), transport_reason);
                format!("the answer broke off: {reason}")
            }
            Self::Redirect(reason) => (*reason).to_owned(),
            Self::Elsewhere { origin, failure } => {
                format!("redirects to {origin}: {}", failure.reason())
            }
        }
    }

    /// The failure as the room's error, where nothing more is known of it than its address.
    pub(in crate::data) fn of_url(&self, url: &str) -> Error {
        Error::Network {
            url: without_query(url),
            reason: self.reason(),
            remedy: self.remedy(),
        }
    }

    fn remedy(&self) -> Option<&'static str> {
        match self {
            Self::Transport(error) if is_of_tls(error) => Some(
                "where the network has a certificate authority of its own, put its certificate into SSL_CERT_FILE",
            ),
            Self::Transport(_) => Some(
                "look after the connection, or HTTPS_PROXY and NO_PROXY; `--offline` uses only what is here",
            ),
            Self::Status { status: 429, .. } => {
                Some("the server wants fewer requests: wait, or put a token into HF_TOKEN")
            }
            Self::Status {
                status: 500..=599, ..
            } => Some("try again later"),
            Self::Elsewhere { failure, .. } => failure.remedy(),
            _ => None,
        }
    }
}

/// What happened to a connection, in a few words.
fn transport_reason(error: &ureq::Error) -> String {
    match error {
        ureq::Error::HostNotFound => "the host is not known".to_owned(),
        ureq::Error::Timeout(_) => "no answer in time".to_owned(),
        ureq::Error::InvalidProxyUrl => "its proxy is not an address".to_owned(),
        ureq::Error::Io(error) => {
            let reason = error.to_string();
            // The standard library has no kind for it.
            match reason.strip_prefix("failed to lookup address information") {
                Some(_) => "the host is not known".to_owned(),
                None => reason,
            }
        }
        error => error.to_string(),
    }
}

/// Whether TLS would not have the other side.
fn is_of_tls(error: &ureq::Error) -> bool {
    match error {
        ureq::Error::Rustls(_) | ureq::Error::Tls(_) => true,
        ureq::Error::Io(error) => {
            error.kind() == std::io::ErrorKind::InvalidData
                && error
                    .to_string()
                    .to_ascii_lowercase()
                    .contains("certificate")
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(status: u16) -> Failure {
        Failure::Status {
            status,
            code: None,
            message: None,
            retry_after: None,
        }
    }

    #[test]
    fn only_what_may_pass_is_tried_again() {
        for code in [408, 429, 500, 502, 503, 504] {
            assert!(status(code).may_pass(), "{code}");
        }
        for code in [400, 401, 403, 404, 410, 416] {
            assert!(!status(code).may_pass(), "{code}");
        }
        for (wait, may_pass) in [(1, true), (60, true), (61, false)] {
            let failure = Failure::Status {
                status: 503,
                code: None,
                message: None,
                retry_after: Some(Duration::from_secs(wait)),
            };
            assert_eq!(failure.may_pass(), may_pass, "{wait} s");
        }
        assert!(Failure::Transport(ureq::Error::HostNotFound).may_pass());
        assert!(!Failure::Transport(ureq::Error::Tls("unknown issuer")).may_pass());
        assert!(!Failure::Redirect("too many").may_pass());
    }
}
