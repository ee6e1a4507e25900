//! What can go wrong with an answer.

use std::sync::Mutex;
use std::time::Duration;

use serde_json::{Value, json};

use super::content::{Content, File};
use super::http::{Framing, Ranges, Request, Response, Subject};

/// What a file has that only a bad listing names: it is served, so that a test sees who would write it.
pub(super) const PLANTED: &str = "nobody should write this\n";

/// One way to fail. Each says which requests take it; the others leave it for later.
#[derive(Clone, Debug)]
pub(crate) enum Fault {
    /// Any request: this status.
    Status(u16),
    /// Any request: this status, and to come back after so many seconds.
    StatusRetryAfter(u16, u64),
    /// Any request: nothing is said for so long, and then the connection is closed.
    Hang(Duration),
    /// Any request: a redirect to an address that redirects on, for ever.
    RedirectLoop,
    /// Any request: a redirect to this address.
    RedirectTo(String),
    /// Any request: status 200 and a page to log in, as a hotel's network sends.
    HtmlPage,

    /// A GET with a body: the connection is closed after so many bytes of it.
    CutAfter(u64),
    /// A GET with a body: sent without a length and closed after so many bytes, which looks like its end.
    CutSilently(u64),
    /// A GET with a body: as long as it should be, but the last byte has one bit flipped.
    WrongBytes,
    /// A GET with a body: as though it had only so many bytes.
    Truncated(u64),
    /// A GET with a body: after so many bytes, nothing for so long; then the rest.
    Stall(u64, Duration),
    /// A GET with a body: so many bytes a second.
    SlowBody(u64),
    /// A GET with a body: in chunks, without a length.
    Chunked,
    /// A GET with a body: without a length, and the connection is closed at its end.
    UntilClose,

    /// A GET of a range of a file: status 200 and all of it.
    RangeIgnored,
    /// A GET of a range of a file: status 416.
    RangeRefused,
    /// A GET of a range of a file: a range that begins at half of what was asked, and says so.
    WrongContentRange,

    /// A listing, as a tree or in the model info: these paths are in it too, and what they name is served.
    BadListing(&'static [&'static str]),
    /// A listing with sizes: each is one byte more than the file has.
    WrongSizeInListing,
    /// A response that names the commit, as model info or in a header: it names this instead.
    BadCommit(&'static str),
}

/// How many requests take a fault.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Times {
    Once,
    Exactly(usize),
    Always,
}

impl Fault {
    fn fits(&self, request: &Request, response: &Response) -> bool {
        let get = request.method == "GET" && response.status == 200;
        match self {
            Self::Status(_)
            | Self::StatusRetryAfter(..)
            | Self::Hang(_)
            | Self::RedirectLoop
            | Self::RedirectTo(_)
            | Self::HtmlPage => true,
            Self::CutAfter(_)
            | Self::CutSilently(_)
            | Self::WrongBytes
            | Self::Truncated(_)
            | Self::Stall(..)
            | Self::SlowBody(_)
            | Self::Chunked
            | Self::UntilClose => get && response.content.len() > 0,
            Self::RangeIgnored | Self::RangeRefused | Self::WrongContentRange => {
                get && request.range.is_some() && response.ranges == Ranges::Honoured
            }
            Self::BadListing(_) => {
                matches!(
                    response.subject,
                    Subject::Tree | Subject::Info | Subject::InfoWithSizes
                )
            }
            Self::WrongSizeInListing => {
                matches!(response.subject, Subject::Tree | Subject::InfoWithSizes)
            }
            Self::BadCommit(_) => response.header("X-Repo-Commit").is_some(),
        }
    }

    /// Makes of a good response the bad one; `base` is where the hub is.
    pub(super) fn spoil(self, response: &mut Response, base: &str) {
        match self {
            Self::Status(status) => {
                *response = Response::new(status, "text/plain", "the hub is not well\n");
            }
            Self::StatusRetryAfter(status, secs) => {
                *response = Response::new(status, "text/plain", "the hub is not well\n")
                    .with("Retry-After", secs.to_string());
            }
            Self::Hang(duration) => response.hang = Some(duration),
            Self::RedirectLoop => *response = redirect(302, format!("{base}/loop/1")),
            Self::RedirectTo(url) => *response = redirect(302, url),
            Self::HtmlPage => {
                let page = "<!DOCTYPE html>\n<html><title>Log in</title><form></form></html>\n";
                *response = Response::new(200, "text/html; charset=utf-8", page);
            }
            Self::CutAfter(bytes) => response.cut_after = Some(bytes),
            Self::CutSilently(bytes) => {
                response.framing = Framing::UntilClose;
                response.cut_after = Some(bytes);
            }
            Self::WrongBytes => {
                let mut bytes = response.content.bytes();
                *bytes.last_mut().unwrap() ^= 1;
                response.content = bytes.into();
            }
            Self::Truncated(length) => {
                let mut bytes = response.content.bytes();
                bytes.truncate(length as usize);
                response.content = bytes.into();
            }
            Self::Stall(after, duration) => response.stall = Some((after, duration)),
            Self::SlowBody(rate) => response.bytes_per_sec = Some(rate),
            Self::Chunked => response.framing = Framing::Chunked,
            Self::UntilClose => response.framing = Framing::UntilClose,
            Self::RangeIgnored => response.ranges = Ranges::Ignored,
            Self::RangeRefused => response.ranges = Ranges::Refused,
            Self::WrongContentRange => response.ranges = Ranges::Misplaced,
            Self::BadListing(paths) => edit(response, |listing| plant(listing, paths)),
            Self::WrongSizeInListing => edit(response, grow),
            Self::BadCommit(id) => {
                for (name, value) in &mut response.headers {
                    if *name == "X-Repo-Commit" {
                        *value = id.into();
                    }
                }
                if matches!(response.subject, Subject::Info | Subject::InfoWithSizes) {
                    edit(response, |info| info["sha"] = id.into());
                }
            }
        }
    }
}

pub(super) fn redirect(status: u16, to: String) -> Response {
    Response::new(status, "text/plain", format!("see {to}\n")).with("Location", to)
}

fn edit(response: &mut Response, change: impl FnOnce(&mut Value)) {
    let mut value = serde_json::from_slice(&response.content.bytes()).unwrap();
    change(&mut value);
    response.content = value.to_string().into();
}

/// The files of model info or of a tree.
fn entries(listing: &mut Value) -> &mut Vec<Value> {
    let entries = match listing {
        Value::Object(info) => &mut info["siblings"],
        tree => tree,
    };
    entries.as_array_mut().unwrap()
}

fn plant(listing: &mut Value, paths: &[&str]) {
    let File { content, oid, .. } = File::new(Content::from(PLANTED));
    let size = content.len();
    let is_tree = listing.is_array();
    entries(listing).extend(paths.iter().map(|path| match is_tree {
        true => json!({"type": "file", "oid": oid, "size": size, "path": path}),
        false => json!({"rfilename": path, "size": size, "blobId": oid}),
    }));
}

fn grow(listing: &mut Value) {
    for entry in entries(listing) {
        for at in ["/size", "/lfs/size"] {
            if let Some(size) = entry.pointer_mut(at) {
                *size = (size.as_u64().unwrap() + 1).into();
            }
        }
    }
}

/// The faults that wait to be taken, oldest first.
#[derive(Default)]
pub(super) struct Faults(Mutex<Vec<Waiting>>);

struct Waiting {
    part: String,
    fault: Fault,
    times: Times,
}

impl Faults {
    pub(super) fn add(&self, part: &str, fault: Fault, times: Times) {
        let part = part.into();
        self.0.lock().unwrap().push(Waiting { part, fault, times });
    }

    pub(super) fn take(&self, request: &Request, response: &Response) -> Option<Fault> {
        let line = request.line();
        let mut waiting = self.0.lock().unwrap();
        let taken = waiting.iter_mut().find(|each| {
            each.times.left() > 0 && line.contains(&each.part) && each.fault.fits(request, response)
        })?;
        if taken.times != Times::Always {
            taken.times = Times::Exactly(taken.times.left() - 1);
        }
        Some(taken.fault.clone())
    }

    pub(super) fn clear(&self) {
        self.0.lock().unwrap().clear();
    }

    pub(super) fn left(&self) -> usize {
        let waiting = self.0.lock().unwrap();
        let counted = waiting.iter().filter(|each| each.times != Times::Always);
        counted.map(|each| each.times.left()).sum()
    }

    /// Whether a bad listing names `path`, taken or not.
    pub(super) fn planted(&self, path: &str) -> bool {
        let waiting = self.0.lock().unwrap();
        waiting
            .iter()
            .any(|each| matches!(each.fault, Fault::BadListing(paths) if paths.contains(&path)))
    }
}

impl Times {
    fn left(self) -> usize {
        match self {
            Self::Once => 1,
            Self::Exactly(times) => times,
            Self::Always => usize::MAX,
        }
    }
}
