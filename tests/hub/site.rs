//! What is at each path.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::RwLock;

use serde_json::{Value, json};

use super::content::{Content, File};
use super::fault::{Faults, PLANTED, redirect};
use super::http::{Host, Ranges, Request, Response, Subject};
use super::repo::{Access, Commit, Repo};

/// In the addresses of large files; without it they are refused, as signed addresses are.
const SIGNATURE: &str = "signature=6e6f2073656372657473";

/// What a hub serves.
pub(super) struct Site {
    pub(super) origin: String,
    pub(super) prefix: String,
    /// Where large files are, if that is elsewhere.
    pub(super) cdn_origin: Option<String>,
    pub(super) page: usize,
    pub(super) accounts: Vec<String>,
    pub(super) statics: BTreeMap<String, File>,
    pub(super) repos: RwLock<Vec<Repo>>,
    pub(super) faults: Faults,
}

impl Site {
    pub(super) fn base(&self) -> String {
        format!("{}{}", self.origin, self.prefix)
    }

    pub(super) fn answer(&self, request: &Request) -> Response {
        let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
        let path = match request.host {
            Host::Hub => path.strip_prefix(&self.prefix),
            Host::Cdn => Some(path),
        };
        let Some(path) = path.and_then(|path| path.strip_prefix('/')) else {
            return nothing_here();
        };
        let decoded: Vec<String> = path.split('/').map(decode).collect();
        let segments: Vec<&str> = decoded.iter().map(String::as_str).collect();
        let has_cdn = (request.host == Host::Cdn) == self.cdn_origin.is_some();
        let answer = match segments.as_slice() {
            ["cdn", rest @ ..] if has_cdn => self.large_file(rest, query),
            _ if request.host == Host::Cdn => Err(nothing_here()),
            ["static", path @ ..] => self.static_file(&path.join("/")),
            ["loop", turn] => self.turn(turn),
            ["api", "models", rest @ ..] => self.describe(request, rest, query),
            rest => self.resolve(request, rest),
        };
        answer.unwrap_or_else(|refusal| refusal)
    }

    fn static_file(&self, path: &str) -> Result<Response, Response> {
        let file = self.statics.get(path).ok_or_else(nothing_here)?;
        Ok(whole(file))
    }

    /// A redirect to the next turn of the loop.
    fn turn(&self, turn: &str) -> Result<Response, Response> {
        let turn: u64 = turn.parse().map_err(|_| nothing_here())?;
        Ok(redirect(302, format!("{}/loop/{}", self.base(), turn + 1)))
    }

    /// `<repo>`, `<repo>/revision/<revision>` or `<repo>/tree/<revision>[/<directory>]`.
    fn describe(
        &self,
        request: &Request,
        segments: &[&str],
        query: &str,
    ) -> Result<Response, Response> {
        let repos = self.repos.read().unwrap();
        let (name, rest) = split_name(segments, &["revision", "tree"]);
        let repo = self.repo(&repos, request, &name, false)?;
        match rest {
            [] => info(repo, find(repo, &["main"])?.0, query),
            ["revision", revision @ ..] => match find(repo, revision)? {
                (commit, []) => info(repo, commit, query),
                _ => Err(no_revision()),
            },
            ["tree", rest @ ..] => {
                let (commit, directory) = find(repo, rest)?;
                self.tree(request, commit, &directory.join("/"), query)
            }
            _ => Err(nothing_here()),
        }
    }

    /// `<repo>/resolve/<revision>/<path>`: a small file, or a redirect to a large one.
    fn resolve(&self, request: &Request, segments: &[&str]) -> Result<Response, Response> {
        let (name, rest) = split_name(segments, &["resolve"]);
        let ["resolve", rest @ ..] = rest else {
            return Err(nothing_here());
        };
        let repos = self.repos.read().unwrap();
        let repo = self.repo(&repos, request, &name, true)?;
        let (commit, path) = find(repo, rest)?;
        let path = path.join("/");
        let planted;
        let file = match commit.files.get(&path) {
            Some(file) => file,
            None if self.faults.planted(&path) => {
                planted = File::new(Content::from(PLANTED));
                &planted
            }
            None => {
                let refusal = refusal(404, Some("EntryNotFound"), "no such file in this revision");
                return Err(refusal.with("X-Repo-Commit", &commit.id));
            }
        };
        let Some(lfs) = &file.lfs else {
            return Ok(whole(file).with("X-Repo-Commit", &commit.id));
        };
        let cdn = self.cdn_origin.clone().unwrap_or_else(|| self.base());
        let signed = format!(
            "{cdn}/cdn/{}/{}/{}?{SIGNATURE}",
            repo.name,
            commit.id,
            encode(&path)
        );
        Ok(redirect(302, signed)
            .with("X-Repo-Commit", &commit.id)
            .with("X-Linked-Etag", format!("\"{}\"", lfs.sha256))
            .with("X-Linked-Size", file.content.len().to_string()))
    }

    /// `<repo>/<commit>/<path>`; whoever has the address may read it.
    fn large_file(&self, segments: &[&str], query: &str) -> Result<Response, Response> {
        if query != SIGNATURE {
            return Err(Response::new(403, "text/plain", "not signed\n"));
        }
        let repos = self.repos.read().unwrap();
        repos
            .iter()
            .find_map(|repo| {
                let name: Vec<&str> = repo.name.split('/').collect();
                let (id, path) = segments.strip_prefix(name.as_slice())?.split_first()?;
                let file = whole(repo.at(id)?.files.get(&path.join("/"))?);
                // Another host knows nothing of commits.
                Some(match self.cdn_origin {
                    Some(_) => file,
                    None => file.with("X-Repo-Commit", *id),
                })
            })
            .ok_or_else(nothing_here)
    }

    /// The repository, if it is there for this request; `files` asks for what is in them.
    fn repo<'a>(
        &self,
        repos: &'a [Repo],
        request: &Request,
        name: &str,
        files: bool,
    ) -> Result<&'a Repo, Response> {
        let token = request.token();
        let known = |token: &str| {
            let of_repos = repos.iter().flat_map(|repo| &repo.tokens);
            self.accounts.iter().chain(of_repos).any(|one| one == token)
        };
        if request.authorization.is_some() && !token.is_some_and(known) {
            let message = "Invalid credentials in Authorization header";
            return Err(refusal(401, None, message));
        }
        let refused = if token.is_some() { 403 } else { 401 };
        let may_read = |repo: &Repo| repo.tokens.iter().any(|one| Some(one.as_str()) == token);
        let is_hidden = |repo: &Repo| repo.access == Access::Private && !may_read(repo);
        if let Some(repo) = repos.iter().find(|repo| repo.name == name) {
            if files && repo.access == Access::Gated && !may_read(repo) {
                let message = "access is for those who accepted the terms and logged in";
                return Err(refusal(refused, Some("GatedRepo"), message));
            }
            if !is_hidden(repo) {
                return Ok(repo);
            }
        }
        let has_moved = |repo: &&Repo| repo.former_name.as_deref() == Some(name);
        if let Some(repo) = repos.iter().find(has_moved).filter(|repo| !is_hidden(repo)) {
            let path = request.path.replacen(name, &repo.name, 1);
            return Err(redirect(307, path));
        }
        // The real hub does not tell strangers what exists.
        let status = if token.is_some() { 404 } else { 401 };
        Err(refusal(status, Some("RepoNotFound"), "no such repository"))
    }

    fn tree(
        &self,
        request: &Request,
        commit: &Commit,
        directory: &str,
        query: &str,
    ) -> Result<Response, Response> {
        let recursive = matches!(parameter(query, "recursive").as_deref(), Some("true" | "1"));
        let entries = list(commit, directory, recursive);
        if entries.is_empty() && !directory.is_empty() {
            let message = "no such directory in this revision";
            return Err(refusal(404, Some("EntryNotFound"), message));
        }
        let number = |name| parameter(query, name).and_then(|value| value.parse::<usize>().ok());
        let page = number("limit").unwrap_or(self.page).clamp(1, self.page);
        let begin = number("cursor").unwrap_or(0).min(entries.len());
        let end = (begin + page).min(entries.len());
        let mut response = json_of(&Value::from(&entries[begin..end]));
        response.subject = Subject::Tree;
        if end == entries.len() {
            return Ok(response);
        }
        let path = request.path.split('?').next().unwrap_or_default();
        let kept = query
            .split('&')
            .filter(|pair| !pair.is_empty() && !pair.starts_with("cursor="));
        let cursor = format!("cursor={end}");
        let pairs: Vec<&str> = kept.chain([cursor.as_str()]).collect();
        let next = format!("<{}{path}?{}>; rel=\"next\"", self.origin, pairs.join("&"));
        Ok(response.with("Link", next))
    }
}

/// The entries of a directory, or of the whole commit for "", by path.
fn list(commit: &Commit, directory: &str, recursive: bool) -> Vec<Value> {
    let under = match directory {
        "" => String::new(),
        directory => format!("{directory}/"),
    };
    let mut directories = BTreeSet::new();
    let mut entries = Vec::new();
    for (path, file) in &commit.files {
        let Some(inside) = path.strip_prefix(&under) else {
            continue;
        };
        let slashes: Vec<usize> = inside.match_indices('/').map(|(at, _)| at).collect();
        for at in slashes.iter().take(if recursive { usize::MAX } else { 1 }) {
            let name = &path[..under.len() + at];
            if directories.insert(name) {
                // No client that we know reads the id of a directory.
                let oid = File::new(Content::from(name)).oid;
                entries.push(json!({"type": "directory", "oid": oid, "size": 0, "path": name}));
            }
        }
        if recursive || slashes.is_empty() {
            entries.push(entry(path, file));
        }
    }
    entries
}

fn entry(path: &str, file: &File) -> Value {
    let size = file.content.len();
    let mut entry = json!({"type": "file", "oid": file.oid, "size": size, "path": path});
    if let Some(lfs) = &file.lfs {
        entry["lfs"] = json!({"oid": lfs.sha256, "size": size, "pointerSize": lfs.pointer_size});
    }
    entry
}

fn info(repo: &Repo, commit: &Commit, query: &str) -> Result<Response, Response> {
    let sizes = matches!(parameter(query, "blobs").as_deref(), Some("true" | "1"));
    let sibling = |(path, file): (&String, &File)| {
        let mut sibling = json!({"rfilename": path});
        if sizes {
            let size = file.content.len();
            sibling["size"] = size.into();
            sibling["blobId"] = file.oid.as_str().into();
            if let Some(lfs) = &file.lfs {
                sibling["lfs"] =
                    json!({"sha256": lfs.sha256, "size": size, "pointerSize": lfs.pointer_size});
            }
        }
        sibling
    };
    let gated = match repo.access {
        Access::Gated => json!("manual"),
        Access::Everybody | Access::Private => json!(false),
    };
    let mut response = json_of(&json!({
        "_id": &commit.id[..commit.id.len().min(24)],
        "id": repo.name,
        "modelId": repo.name,
        "author": repo.name.split('/').next(),
        "sha": commit.id,
        "private": repo.access == Access::Private,
        "gated": gated,
        "disabled": false,
        "downloads": 0,
        "likes": 0,
        "tags": [],
        "createdAt": "2024-01-01T00:00:00.000Z",
        "lastModified": "2024-01-01T00:00:00.000Z",
        "siblings": commit.files.iter().map(sibling).collect::<Vec<_>>(),
    }))
    .with("X-Repo-Commit", &commit.id);
    response.subject = if sizes {
        Subject::InfoWithSizes
    } else {
        Subject::Info
    };
    Ok(response)
}

/// `org/name/<verb>/…` or `name/<verb>/…` → the name, and what begins with the verb.
fn split_name<'a>(segments: &'a [&'a str], verbs: &[&str]) -> (String, &'a [&'a str]) {
    let of_one = segments.get(1).is_none_or(|second| verbs.contains(second));
    let (name, rest) = segments.split_at(segments.len().min(if of_one { 1 } else { 2 }));
    (name.join("/"), rest)
}

/// The commit that the first segments name, `refs/pr/1` being three where its slashes are not encoded, and the rest.
fn find<'a>(
    repo: &'a Repo,
    segments: &'a [&'a str],
) -> Result<(&'a Commit, &'a [&'a str]), Response> {
    (1..=segments.len().min(3))
        .map(|count| segments.split_at(count))
        .find_map(|(revision, rest)| Some((repo.at(&revision.join("/"))?, rest)))
        .ok_or_else(no_revision)
}

fn whole(file: &File) -> Response {
    let mut response = Response::new(200, "application/octet-stream", file.content.clone())
        .with("ETag", file.etag());
    response.subject = Subject::File;
    response.ranges = Ranges::Honoured;
    response
}

fn json_of(value: &Value) -> Response {
    Response::new(200, "application/json; charset=utf-8", value.to_string())
}

fn refusal(status: u16, code: Option<&str>, message: &str) -> Response {
    let body = json!({"error": message}).to_string();
    let response = Response::new(status, "application/json; charset=utf-8", body)
        .with("X-Error-Message", message);
    match code {
        Some(code) => response.with("X-Error-Code", code),
        None => response,
    }
}

fn no_revision() -> Response {
    refusal(
        404,
        Some("RevisionNotFound"),
        "no such branch, tag or commit",
    )
}

fn nothing_here() -> Response {
    Response::new(404, "text/plain", "there is nothing at this address\n")
}

fn parameter(query: &str, name: &str) -> Option<String> {
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs
        .find(|(key, _)| *key == name)
        .map(|(_, value)| decode(value))
}

fn decode(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let digits = match rest {
            [b'%', high, low, ..] => std::str::from_utf8(&[*high, *low])
                .ok()
                .and_then(|digits| u8::from_str_radix(digits, 16).ok()),
            _ => None,
        };
        bytes.push(digits.unwrap_or(*first));
        rest = if digits.is_some() { &rest[3..] } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Percent-encodes everything but letters, digits, `-._~` and `/`.
fn encode(path: &str) -> String {
    path.bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                char::from(byte).to_string()
            }
            byte => format!("%{byte:02X}"),
        })
        .collect()
}
