use std::{
    io::{self, Read},
    path::{Path, PathBuf},
    sync::mpsc::{Receiver, SyncSender, sync_channel},
    thread,
};

use super::{
    failure::Failure,
    http::{Answer, Ask, Http},
    partial::{Left, Partial, Whole},
    settings::without_query,
};
use crate::data::{
    ContentId, Error, Observer, Sha256, Signature, digest::Hashing, signature::PREFIX_BYTES,
};

/// Bytes read, written and hashed at a time.
const BLOCK_BYTES: usize = 1 << 20;

/// Blocks between the connection and the hasher.
const BLOCKS: usize = 4;

/// What a file must turn out to be.
#[derive(Clone, Copy, Debug)]
pub(in crate::data) struct Want {
    /// Its length in bytes, where that is known.
    pub(in crate::data) size: Option<u64>,
    /// What its content is known by.
    pub(in crate::data) id: Option<ContentId>,
}

/// Where it is to be put.
#[derive(Clone, Copy)]
pub(in crate::data) struct Target<'a> {
    /// The name on the way begins with this one.
    pub(in crate::data) staging: &'a Path,
    /// And ends with this.
    pub(in crate::data) ending: &'static str,
    /// Whether a lock keeps other processes out, so that nobody is at work on what is on its way.
    pub(in crate::data) alone: bool,
    /// The final name of a file with that digest; nothing is there before all of it is, and is right.
    pub(in crate::data) place: &'a dyn Fn(Sha256) -> PathBuf,
}

/// What came.
#[derive(Clone, Copy, Debug)]
pub(in crate::data) struct Received {
    /// Its length in bytes.
    pub(in crate::data) size: u64,
    /// Its digest.
    pub(in crate::data) sha256: Sha256,
}

/// Why one place did not give the file.
pub(in crate::data) enum Refusal {
    /// No answer that could be used; what came so far is kept for the next attempt.
    Failure(Failure),
    /// The bytes came, and are not those that were promised; none were kept.
    Corrupt(String),
    /// The failure is on this side, and another place would not help.
    Here(Error),
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self::Here(error)
    }
}

impl Refusal {
    /// What happened, said of the place that `url` is.
    pub(in crate::data) fn of_url(&self, url: &str) -> String {
        let url = without_query(url);
        match self {
            Self::Failure(failure) => format!("{url} {}", failure.reason()),
            Self::Corrupt(reason) => format!("{url} {reason}"),
            Self::Here(error) => error.to_string(),
        }
    }
}

/// Downloads what `ask` is for to `target`, in several attempts if need be, each going on where the last one broke off.
pub(in crate::data) fn download(
    http: &Http,
    ask: Ask<'_>,
    want: Want,
    target: Target<'_>,
    id: usize,
    observer: &dyn Observer,
) -> Result<Received, Refusal> {
    let git_blob_of = match want.id {
        Some(ContentId::GitBlob(_)) => want.size,
        _ => None,
    };
    let left = match want.id {
        _ if !target.alone => Left::Alone,
        Some(_) => Left::TakenOver,
        None => Left::Removed,
    };
    let open = || Partial::open(target.staging, target.ending, left, git_blob_of);
    let mut partial = open()?;
    observer.advance(id, signed(partial.len()));
    let mut resumed = partial.len() > 0;
    let mut failed = 0;
    loop {
        let before = partial.len();
        match attempt(http, ask, want, &mut partial, id, observer) {
            Ok(()) => {}
            Err(Refusal::Failure(failure)) if failure.may_pass() && http.may_retry(failed) => {
                http.wait(failed, &failure);
                // As long as bytes come, the connection is bad but not hopeless.
                failed = if partial.len() > before {
                    0
                } else {
                    failed + 1
                };
                resumed |= partial.len() > 0;
                continue;
            }
            Err(refusal) => {
                observer.advance(id, -signed(partial.len()));
                if want.id.is_none() {
                    partial.restart()?;
                }
                partial.break_off(matches!(refusal, Refusal::Corrupt(_)));
                return Err(refusal);
            }
        }
        let size = partial.len();
        let whole = partial.finish()?;
        let Some(reason) = reason_against(want, size, &whole) else {
            let sha256 = whole.sha256;
            whole.keep(&(target.place)(sha256))?;
            return Ok(Received { size, sha256 });
        };
        whole.discard();
        observer.advance(id, -signed(size));
        if !resumed {
            return Err(Refusal::Corrupt(reason));
        }
        // Perhaps only what was there already is wrong.
        resumed = false;
        partial = open()?;
    }
}

/// One request, for what is not there yet.
fn attempt(
    http: &Http,
    ask: Ask<'_>,
    want: Want,
    partial: &mut Partial,
    id: usize,
    observer: &dyn Observer,
) -> Result<(), Refusal> {
    let restart = |partial: &mut Partial| {
        observer.advance(id, -signed(partial.len()));
        partial.restart()
    };
    // Without a digest nobody could tell if the file has changed since the last attempt.
    if want.id.is_none() || want.size.is_some_and(|size| partial.len() > size) {
        restart(partial)?;
    }
    if want.size == Some(partial.len()) {
        return Ok(()); // all there, or nothing to come
    }
    let from = partial.len();
    let answer = match http.get(Ask { from, ..ask }) {
        Ok(answer) if from == 0 || continues_at(&answer, from) => answer,
        // The server sends all of it, or refuses the rest: begin again.
        Ok(answer) if answer.status == 200 => {
            restart(partial)?;
            answer
        }
        Ok(_) | Err(Failure::Status { status: 416, .. }) => {
            restart(partial)?;
            http.get(ask).map_err(Refusal::Failure)?
        }
        Err(failure) => return Err(Refusal::Failure(failure)),
    };
    partial.mark_sound();
    let announced = answer
        .header("content-length")
        .and_then(|it| it.parse::<u64>().ok());
    let announced = announced.map(|rest| rest.saturating_add(partial.len()));
    if let (Some(size), Some(announced)) = (want.size, announced)
        && size != announced
    {
        let mut head = Vec::new();
        if partial.len() == 0 {
            // A page that breaks off is one all the same.
            let _ = answer.body.take(PREFIX_BYTES as u64).read_to_end(&mut head);
        }
        let length = || format!("has {announced} bytes, not {size}");
        return Err(Refusal::Corrupt(stand_in(&head).unwrap_or_else(length)));
    }
    receive(answer.body, partial, want.size, &|bytes| {
        observer.advance(id, signed(bytes as u64));
    })?;
    match want.size.or(announced) {
        Some(size) if partial.len() < size => Err(Refusal::Failure(Failure::Body(
            io::ErrorKind::UnexpectedEof.into(),
        ))),
        _ => Ok(()),
    }
}

/// Whether the answer is what follows the first `from` bytes.
fn continues_at(answer: &Answer, from: u64) -> bool {
    let range = answer.header("content-range");
    let first = range
        .and_then(|range| range.trim().strip_prefix("bytes"))
        .and_then(|range| range.trim().split('-').next()?.parse::<u64>().ok());
    answer.status == 206 && first == Some(from)
}

/// Writes the body to the file and hashes it at the same time, on two threads; more than `limit` bytes are refused.
fn receive(
    mut body: Box<dyn Read + Send>,
    partial: &mut Partial,
    limit: Option<u64>,
    advance: &dyn Fn(usize),
) -> Result<(), Refusal> {
    let limit = limit.unwrap_or(u64::MAX);
    let mut len = partial.len();
    let (mut writer, hashing) = partial.split();
    thread::scope(|scope| {
        // Made in here, so that however this ends the hasher sees the end of its blocks.
        let (full, to_hash) = sync_channel::<Vec<u8>>(BLOCKS);
        let (spare, empty) = sync_channel::<Vec<u8>>(BLOCKS);
        scope.spawn(move || hash(hashing, &to_hash, &spare));
        loop {
            let mut block = empty.try_recv().unwrap_or_default();
            let read = fill(&mut body, &mut block);
            len += block.len() as u64;
            if len > limit {
                let head = if len == block.len() as u64 {
                    &*block
                } else {
                    &[]
                };
                let length = || format!("has more than {limit} bytes");
                return Err(Refusal::Corrupt(stand_in(head).unwrap_or_else(length)));
            }
            let is_last = block.is_empty();
            if !is_last {
                writer.write(&block)?;
                advance(block.len());
                // The hasher takes blocks until there are no more.
                let _ = full.send(block);
            }
            match read {
                Err(error) => return Err(Refusal::Failure(Failure::Body(error))),
                Ok(()) if is_last => return Ok(()),
                Ok(()) => {}
            }
        }
    })
}

/// Hashes blocks as they come, and hands them back empty.
fn hash(hashing: &mut Hashing, blocks: &Receiver<Vec<u8>>, spare: &SyncSender<Vec<u8>>) {
    for mut block in blocks {
        hashing.update(&block);
        block.clear();
        // A block that is not wanted back is dropped.
        let _ = spare.try_send(block);
    }
}

/// Reads into the empty `block` until it is full or nothing more comes; what was read before an error stays.
fn fill(body: &mut impl Read, block: &mut Vec<u8>) -> io::Result<()> {
    body.take(BLOCK_BYTES as u64).read_to_end(block).map(|_| ())
}

/// What speaks against the bytes that came, if anything does.
fn reason_against(want: Want, size: u64, whole: &Whole) -> Option<String> {
    if let Some(expected) = want.size.filter(|&expected| expected != size) {
        return Some(format!("has {size} bytes, not {expected}"));
    }
    let (expected, found) = match want.id {
        // What stands in for a file would otherwise be pinned as it.
        None => return stand_in(&head(whole.path())),
        Some(ContentId::Sha256(expected)) if expected != whole.sha256 => {
            (expected.to_string(), whole.sha256.to_string())
        }
        Some(ContentId::GitBlob(expected)) if Some(expected) != whole.git_blob => {
            let found = whole.git_blob.map(|id| id.to_string());
            (expected.to_string(), found.unwrap_or_default())
        }
        Some(_) => return None,
    };
    let digest = || format!("has the digest {found}, not {expected}");
    Some(stand_in(&head(whole.path())).unwrap_or_else(digest))
}

/// What came in place of a file that begins with `head`, if that can be told.
fn stand_in(head: &[u8]) -> Option<String> {
    match Signature::of(head) {
        found @ (Signature::Html | Signature::LfsPointer) => {
            Some(format!("is {found}, not the file"))
        }
        _ => None,
    }
}

/// The beginning of the file at `path`; nothing when it cannot be read.
fn head(path: &Path) -> Vec<u8> {
    let mut head = Vec::with_capacity(PREFIX_BYTES);
    let file = std::fs::File::open(path);
    let read = file.and_then(|file| file.take(PREFIX_BYTES as u64).read_to_end(&mut head));
    read.map_or_else(|_| Vec::new(), |_| head)
}

fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}
