//! Requests read and responses written, HTTP/1.1 as far as GET and HEAD need it.

use std::io::{self, BufRead, Read, Write};
use std::net::TcpStream;
use std::ops::Range;
use std::time::Duration;

use super::connections::Stopping;
use super::content::Content;

/// Which of the two servers got a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Host {
    Hub,
    /// The one that large files are redirected to, where that is another.
    Cdn,
}

/// A request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) host: Host,
    pub(crate) method: String,
    /// Percent-encoded as sent, with the query; of a request to a proxy, without the origin.
    pub(crate) path: String,
    /// The origin that a request to a proxy is for.
    pub(crate) proxied_to: Option<String>,
    pub(crate) range: Option<String>,
    pub(crate) if_range: Option<String>,
    pub(crate) authorization: Option<String>,
    pub(crate) user_agent: Option<String>,
    /// The client closes the connection after this one.
    pub(super) last: bool,
}

impl Request {
    /// `GET /path?query`, which faults and searches match.
    pub(crate) fn line(&self) -> String {
        format!("{} {}", self.method, self.path)
    }

    /// The token of `Authorization: Bearer`.
    pub(crate) fn token(&self) -> Option<&str> {
        self.authorization.as_deref()?.strip_prefix("Bearer ")
    }

    /// `None` when the client has closed the connection; an error when this is not HTTP.
    pub(super) fn read(reader: &mut impl BufRead, host: Host) -> io::Result<Option<Self>> {
        let mut reader = reader.take(64 << 10);
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let mut words = line.split_whitespace();
        let (Some(method), Some(target), Some(version)) =
            (words.next(), words.next(), words.next())
        else {
            return Err(io::ErrorKind::InvalidData.into());
        };
        let (proxied_to, path) = split_origin(target);
        let mut request = Self {
            host,
            method: method.into(),
            path: path.into(),
            proxied_to: proxied_to.map(Into::into),
            range: None,
            if_range: None,
            authorization: None,
            user_agent: None,
            // What others send as a body is not read.
            last: version == "HTTP/1.0" || !["GET", "HEAD"].contains(&method),
        };
        loop {
            let mut line = String::new();
            reader.read_line(&mut line)?;
            let line = line.trim_end();
            if line.is_empty() {
                return Ok(Some(request));
            }
            let (name, value) = line.split_once(':').ok_or(io::ErrorKind::InvalidData)?;
            request.header(&name.to_ascii_lowercase(), value.trim());
        }
    }

    fn header(&mut self, name: &str, value: &str) {
        let field = match name {
            "range" => &mut self.range,
            "if-range" => &mut self.if_range,
            "authorization" => &mut self.authorization,
            "user-agent" => &mut self.user_agent,
            "connection" => {
                self.last |= value.eq_ignore_ascii_case("close");
                return;
            }
            _ => return,
        };
        *field = Some(value.into());
    }
}

/// `http://host/path` → its origin and path; what a server itself is asked for has no origin.
fn split_origin(target: &str) -> (Option<&str>, &str) {
    let Some(rest) = target.strip_prefix("http://") else {
        return (None, target);
    };
    let path_at = target.len() - rest.len() + rest.find('/').unwrap_or(rest.len());
    (Some(&target[..path_at]), &target[path_at..])
}

/// What a response is about, for the faults that edit it.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Subject {
    Info,
    InfoWithSizes,
    Tree,
    File,
    Other,
}

/// What a range in the request leads to.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Ranges {
    Ignored,
    Honoured,
    Refused,
    /// Answered with a range that begins earlier than asked, and says so.
    Misplaced,
}

/// How the end of the body is known.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Framing {
    Length,
    Chunked,
    UntilClose,
}

/// A whole response; what is asked of its body is cut out when it is sent.
pub(super) struct Response {
    pub(super) status: u16,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) content: Content,
    pub(super) subject: Subject,
    pub(super) ranges: Ranges,
    pub(super) framing: Framing,
    /// Says nothing for this long, and then closes the connection.
    pub(super) hang: Option<Duration>,
    /// Closes the connection after this many bytes of the body.
    pub(super) cut_after: Option<u64>,
    /// After this many bytes of the body, says nothing for this long, and then goes on.
    pub(super) stall: Option<(u64, Duration)>,
    pub(super) bytes_per_sec: Option<u64>,
}

impl Response {
    pub(super) fn new(status: u16, content_type: &str, content: impl Into<Content>) -> Self {
        Self {
            status,
            headers: vec![("Content-Type", content_type.into())],
            content: content.into(),
            subject: Subject::Other,
            ranges: Ranges::Ignored,
            framing: Framing::Length,
            hang: None,
            cut_after: None,
            stall: None,
            bytes_per_sec: None,
        }
    }

    pub(super) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(each, _)| *each == name)?;
        Some(&found.1)
    }

    /// Sends it, and says whether the connection can take another request.
    pub(super) fn send(
        mut self,
        request: &Request,
        out: &mut TcpStream,
        stopping: &Stopping,
    ) -> io::Result<bool> {
        if let Some(duration) = self.hang {
            stopping.wait(duration)?;
            return Ok(false);
        }
        let span = self.cut_to_range(request);
        let length = span.end - span.start;
        let last = request.last || self.framing == Framing::UntilClose;
        match self.framing {
            Framing::Length => self.headers.push(("Content-Length", length.to_string())),
            Framing::Chunked => self.headers.push(("Transfer-Encoding", "chunked".into())),
            Framing::UntilClose => {}
        }
        if last {
            self.headers.push(("Connection", "close".into()));
        }
        let mut head = format!("HTTP/1.1 {} {}\r\n", self.status, reason(self.status));
        for (name, value) in &self.headers {
            head += &format!("{name}: {value}\r\n");
        }
        out.write_all(format!("{head}\r\n").as_bytes())?;
        if request.method == "HEAD" {
            return Ok(!last);
        }
        let end = span.end.min(
            self.cut_after
                .map_or(span.end, |bytes| span.start.saturating_add(bytes)),
        );
        self.send_body(span.start..end, out, stopping)?;
        let whole = end == span.end && self.cut_after.is_none();
        if whole && self.framing == Framing::Chunked {
            out.write_all(b"0\r\n\r\n")?;
        }
        Ok(whole && !last)
    }

    /// The bytes to send, with the status and the headers that go with them.
    fn cut_to_range(&mut self, request: &Request) -> Range<u64> {
        let whole = self.content.len();
        if self.ranges == Ranges::Ignored || self.status != 200 {
            return 0..whole;
        }
        self.headers.push(("Accept-Ranges", "bytes".into()));
        let unchanged = |etag: &String| Some(etag.as_str()) == self.header("ETag");
        let asked = match &request.range {
            Some(range)
                if request.method == "GET" && request.if_range.as_ref().is_none_or(unchanged) =>
            {
                asked_span(range, whole)
            }
            _ => None,
        };
        let Some(mut span) = asked else {
            return 0..whole;
        };
        if self.ranges == Ranges::Misplaced {
            span.start /= 2;
        }
        if self.ranges == Ranges::Refused || span.is_empty() {
            self.status = 416;
            self.headers
                .push(("Content-Range", format!("bytes */{whole}")));
            return 0..0;
        }
        let said = format!("bytes {}-{}/{whole}", span.start, span.end - 1);
        self.status = 206;
        self.headers.push(("Content-Range", said));
        span
    }

    fn send_body(
        &self,
        span: Range<u64>,
        out: &mut TcpStream,
        stopping: &Stopping,
    ) -> io::Result<()> {
        let mut stall = self
            .stall
            .map(|(after, wait)| (span.start.saturating_add(after), wait));
        let mut at = span.start;
        while at < span.end {
            if let Some((_, duration)) = stall.take_if(|(begin, _)| *begin <= at) {
                stopping.wait(duration)?;
            }
            let mut end = stall.map_or(span.end, |(begin, _)| begin.min(span.end));
            if let Some(rate) = self.bytes_per_sec {
                end = end.min(at + (rate / 20).max(1));
                stopping.wait(Duration::from_secs_f64((end - at) as f64 / rate as f64))?;
            }
            if self.framing == Framing::Chunked {
                end = end.min(at + (64 << 10));
                write!(out, "{:x}\r\n", end - at)?;
            }
            self.content.write(at..end, out)?;
            if self.framing == Framing::Chunked {
                out.write_all(b"\r\n")?;
            }
            at = end;
        }
        Ok(())
    }
}

/// The bytes that `bytes=5-`, `bytes=5-9` or `bytes=-5` names, empty if they are past the end; `None` for a range
/// that a server may ignore.
fn asked_span(range: &str, whole: u64) -> Option<Range<u64>> {
    let (first, last) = range.strip_prefix("bytes=")?.split_once('-')?;
    if first.is_empty() {
        let bytes: u64 = last.parse().ok()?;
        return Some(whole.saturating_sub(bytes)..whole);
    }
    let end = match last {
        "" => whole,
        last => last.parse::<u64>().ok()?.saturating_add(1).min(whole),
    };
    Some(first.parse().ok()?..end)
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        206 => "Partial Content",
        302 => "Found",
        307 => "Temporary Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        416 => "Range Not Satisfiable",
        429 => "Too Many Requests",
        503 => "Service Unavailable",
        _ => "Status",
    }
}
