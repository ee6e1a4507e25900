use std::{
    io::Read,
    sync::OnceLock,
    thread,
    time::{Duration, SystemTime},
};

use ureq::{
    Agent, Proxy,
    http::{HeaderMap, Uri, header},
    tls::{Certificate, RootCerts, TlsConfig},
};

use super::{Proxies, Settings, Token, failure::Failure};

/// Redirects followed for one request.
const REDIRECTS: usize = 10;

/// The wait before the second attempt; each further one waits twice as long.
const BACKOFF: Duration = Duration::from_millis(300);

/// The longest document that is read into memory, in bytes; listings of the largest repositories are a tenth of it.
const DOCUMENT_BYTES: u64 = 64 << 20;

/// Bytes taken from a connection at a time.
const INPUT_BYTES: usize = 1 << 20;

/// Requests, over connections that are kept for the next one.
pub(in crate::data) struct Http {
    agent: OnceLock<Agent>,
    proxies: Proxies,
    connect_timeout: Duration,
    read_timeout: Duration,
    retries: u32,
}

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub(in crate::data) struct Ask<'a> {
    /// The address.
    pub(in crate::data) url: &'a str,
    /// Sent to this address's origin, and to no other that it redirects to.
    pub(in crate::data) token: Option<&'a Token>,
    /// The first byte wanted.
    pub(in crate::data) from: u64,
}

impl<'a> Ask<'a> {
    /// All of what is at `url`, for anyone.
    pub(in crate::data) fn new(url: &'a str) -> Self {
        Self {
            url,
            token: None,
            from: 0,
        }
    }
}

/// An answer with a status that means success.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    pub(super) body: Box<dyn Read + Send>,
}

impl Answer {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

impl Http {
    pub(in crate::data) fn new(settings: &Settings) -> Self {
        Self {
            agent: OnceLock::new(),
            proxies: settings.proxies.clone(),
            connect_timeout: settings.connect_timeout,
            read_timeout: settings.read_timeout,
            retries: settings.retries,
        }
    }

    /// Made on first use: reading the system's certificates takes time that a run without a download does not have.
    fn agent(&self) -> &Agent {
        self.agent.get_or_init(|| {
            let tls = TlsConfig::builder().root_certs(root_certs()).build();
            Agent::config_builder()
                .tls_config(tls)
                .proxy(None)
                .user_agent(concat!("pretrained/", env!("CARGO_PKG_VERSION")))
                .http_status_as_error(false)
                .max_redirects(0)
                .max_redirects_will_error(false)
                .timeout_connect(Some(self.connect_timeout))
                .timeout_recv_response(Some(self.read_timeout))
                .timeout_per_read(Some(self.read_timeout))
                .input_buffer_size(INPUT_BYTES)
                .build()
                .into()
        })
    }

    /// One document, read whole; tried again while the failure may pass.
    pub(in crate::data) fn document(&self, ask: Ask<'_>) -> Result<Document, Failure> {
        self.with_retries(|| {
            let answer = self.get(ask)?;
            let next = answer.header("link").and_then(next_page).map(str::to_owned);
            let mut bytes = Vec::new();
            let mut body = answer.body.take(DOCUMENT_BYTES);
            body.read_to_end(&mut bytes).map_err(Failure::Body)?;
            Ok(Document { bytes, next })
        })
    }

    /// Attempts while the failure may pass, with a wait between them.
    pub(super) fn with_retries<T>(
        &self,
        mut attempt: impl FnMut() -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let mut failed = 0;
        loop {
            match attempt() {
                Err(failure) if failure.may_pass() && failed < self.retries => {
                    self.wait(failed, &failure);
                    failed += 1;
                }
                result => return result,
            }
        }
    }

    /// Whether attempts are left after `failed` of them.
    pub(super) fn may_retry(&self, failed: u32) -> bool {
        failed < self.retries
    }

    /// Waits as long as the server wishes, or longer each time, and never for the same time as another process.
    pub(super) fn wait(&self, failed: u32, failure: &Failure) {
        let backoff = BACKOFF * 2_u32.saturating_pow(failed.min(8));
        let wait = failure.retry_after().unwrap_or(backoff);
        thread::sleep(wait + backoff.mul_f64(fastrand::f64() / 2.0));
    }

    /// One request, redirects followed.
    pub(super) fn get(&self, ask: Ask<'_>) -> Result<Answer, Failure> {
        let first = parse(ask.url)?;
        let mut uri = first.clone();
        for _ in 0..=REDIRECTS {
            let ask = Ask {
                token: ask.token.filter(|_| same_origin(&uri, &first)),
                ..ask
            };
            match self.get_once(&uri, ask) {
                Ok(Reply::Answer(answer)) => return Ok(answer),
                Ok(Reply::Redirect(to)) => uri = to,
                Err(failure) if same_origin(&uri, &first) => return Err(failure),
                Err(failure) => {
                    return Err(Failure::Elsewhere {
                        origin: origin(&uri),
                        failure: Box::new(failure),
                    });
                }
            }
        }
        Err(Failure::Redirect("redirects without end"))
    }

    /// One request to `uri`, which is the address of `ask` or where that one leads.
    fn get_once(&self, uri: &Uri, ask: Ask<'_>) -> Result<Reply, Failure> {
        let proxy = self.proxy(uri).map_err(Failure::Transport)?;
        let mut request = self.agent().get(uri).config().proxy(proxy).build();
        if let Some(token) = ask.token {
            request = request.header(header::AUTHORIZATION, format!("Bearer {}", token.secret()));
        }
        if ask.from > 0 {
            request = request.header(header::RANGE, format!("bytes={}-", ask.from));
        }
        let response = request.call().map_err(Failure::Transport)?;
        let (head, body) = response.into_parts();
        let status = head.status.as_u16();
        let header = |name: &str| head.headers.get(name)?.to_str().ok();
        match status {
            200..=299 => Ok(Reply::Answer(Answer {
                status,
                headers: head.headers,
                body: Box::new(body.into_reader()),
            })),
            301 | 302 | 303 | 307 | 308 => {
                let location = header("location")
                    .ok_or(Failure::Redirect("redirects without saying where to"))?;
                redirected(uri, location).map(Reply::Redirect)
            }
            _ => Err(Failure::Status {
                status,
                code: header("x-error-code").map(str::to_owned),
                message: header("x-error-message").map(str::to_owned),
                retry_after: header("retry-after").and_then(retry_after),
            }),
        }
    }

    /// The proxy that stands between here and `uri`.
    fn proxy(&self, uri: &Uri) -> Result<Option<Proxy>, ureq::Error> {
        let is_https = uri.scheme_str() == Some("https");
        let host = uri.host().unwrap_or_default();
        let proxy = self.proxies.of(is_https, host, port(uri));
        proxy.map(Proxy::new).transpose()
    }
}

/// What one request led to.
enum Reply {
    Answer(Answer),
    Redirect(Uri),
}

/// A document that was asked for.
pub(in crate::data) struct Document {
    /// All of it.
    pub(in crate::data) bytes: Vec<u8>,
    /// The address of the page that follows it.
    pub(in crate::data) next: Option<String>,
}

fn parse(url: &str) -> Result<Uri, Failure> {
    let uri: Uri = url
        .parse()
        .map_err(|_| Failure::Redirect("is not an address"))?;
    match (uri.scheme_str(), uri.host()) {
        (Some("http" | "https"), Some(_)) => Ok(uri),
        _ => Err(Failure::Redirect("is not an address of http or https")),
    }
}

/// Whether both are served by the same program: a secret for one is none of another's business.
pub(super) fn same_origin(a: &Uri, b: &Uri) -> bool {
    a.scheme() == b.scheme()
        && port(a) == port(b)
        && a.host().map(str::to_ascii_lowercase) == b.host().map(str::to_ascii_lowercase)
}

fn port(uri: &Uri) -> u16 {
    let usual = if uri.scheme_str() == Some("https") {
        443
    } else {
        80
    };
    uri.port_u16().unwrap_or(usual)
}

/// Scheme and host, for people.
fn origin(uri: &Uri) -> String {
    let scheme = uri.scheme_str().unwrap_or_default();
    let host = uri.host().unwrap_or_default();
    let port = uri.port().map(|port| format!(":{port}"));
    format!("{scheme}://{host}{}", port.unwrap_or_default())
}

/// Where `location`, an address or the path of one, leads from `uri`.
fn redirected(uri: &Uri, location: &str) -> Result<Uri, Failure> {
    let before_path = location.split(['/', '?', '#']).next().unwrap_or_default();
    if before_path.ends_with(':') {
        let to = parse(location).map_err(|_| Failure::Redirect("redirects to no web address"))?;
        if uri.scheme_str() == Some("https") && to.scheme_str() == Some("http") {
            return Err(Failure::Redirect("redirects from https to http"));
        }
        return Ok(to);
    }
    let (scheme, authority) = uri
        .scheme_str()
        .zip(uri.authority())
        .expect("checked when it was parsed");
    if let Some(rest) = location.strip_prefix("//") {
        return parse(&format!("{scheme}://{rest}"));
    }
    let path = if location.starts_with('/') {
        location.to_owned()
    } else {
        let dir = uri.path().rsplit_once('/').map_or("", |(dir, _)| dir);
        format!("{dir}/{location}")
    };
    parse(&format!("{scheme}://{authority}{path}"))
}

/// The wait that a `Retry-After` header asks for: seconds, or a date (RFC 9110, section 10.2.3).
fn retry_after(value: &str) -> Option<Duration> {
    if let Ok(seconds) = value.trim().parse() {
        return Some(Duration::from_secs(seconds));
    }
    let until = httpdate::parse_http_date(value.trim()).ok()?;
    Some(until.duration_since(SystemTime::now()).unwrap_or_default())
}

/// The address of the next page in a `Link` header (RFC 8288).
fn next_page(link: &str) -> Option<&str> {
    link.split(',').find_map(|part| {
        let (target, parameters) = part.trim().strip_prefix('<')?.split_once('>')?;
        let is_next = |parameter: &str| matches!(parameter.trim(), "rel=\"next\"" | "rel=next");
        parameters.split(';').any(is_next).then_some(target)
    })
}

/// The certificates of the system, or of what `SSL_CERT_FILE` and `SSL_CERT_DIR` name; where there are none, those that
/// browsers trust, which are linked in.
fn root_certs() -> RootCerts {
    let found = rustls_native_certs::load_native_certs();
    if found.certs.is_empty() {
        return RootCerts::WebPki;
    }
    let certs: Vec<_> = found
        .certs
        .iter()
        .map(|cert| Certificate::from_der(cert).to_owned())
        .collect();
    RootCerts::from(certs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uri(text: &str) -> Uri {
        text.parse().unwrap()
    }

    #[test]
    fn origin_is_scheme_host_and_port() {
        let same = [
            ("https://h/a", "https://h/b?c"),
            ("https://h:443/", "https://H/"),
            ("http://h:80/", "http://h/"),
        ];
        let other = [
            ("https://h/", "http://h/"),
            ("https://h/", "https://h:8443/"),
            ("https://h/", "https://cdn.h/"),
        ];
        for (a, b) in same {
            assert!(same_origin(&uri(a), &uri(b)), "{a} {b}");
        }
        for (a, b) in other {
            assert!(!same_origin(&uri(a), &uri(b)), "{a} {b}");
        }
    }

    #[test]
    fn redirects_lead_where_they_say() {
        let from = uri("https://h:8/a/b?c");
        let cases = [
            ("https://other/x", "https://other/x"),
            ("/x?y", "https://h:8/x?y"),
            ("x", "https://h:8/a/x"),
            ("//cdn/x", "https://cdn/x"),
            ("/login?next=http://h/", "https://h:8/login?next=http://h/"),
        ];
        for (location, expected) in cases {
            assert_eq!(redirected(&from, location).unwrap(), uri(expected));
        }
        for location in ["http://h/x", "ftp://h/x", "file:///etc/passwd"] {
            assert!(redirected(&from, location).is_err(), "{location}");
        }
    }

    #[test]
    fn waits_are_read_as_seconds_or_as_a_date() {
        assert_eq!(retry_after("3"), Some(Duration::from_secs(3)));
        let past = "Wed, 21 Oct 2015 07:28:00 GMT";
        assert_eq!(retry_after(past), Some(Duration::ZERO));
        assert_eq!(retry_after("soon"), None);
    }

    #[test]
    fn next_page_is_found_among_links() {
        let cases = [
            (
                r#"<https://h/?cursor=2>; rel="next""#,
                Some("https://h/?cursor=2"),
            ),
            (r#"<a>; rel="prev", <b>; title="x"; rel=next"#, Some("b")),
            (r#"<a>; rel="prev""#, None),
            ("", None),
            ("<a", None),
        ];
        for (link, expected) in cases {
            assert_eq!(next_page(link), expected, "{link}");
        }
    }
}
