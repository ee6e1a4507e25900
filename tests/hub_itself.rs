//! The hub that tests download from: answers as the real one where clients look, and fails as asked.
#![allow(
    clippy::unwrap_used,
    reason = "this is test code, though not every function is a test"
)]

mod hub;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use hub::{Content, Fault, Host, Hub, Repo, Server, Times};
use serde_json::{Value, json};

const FIRST: &str = "1111111111111111111111111111111111111111";
const SECOND: &str = "2222222222222222222222222222222222222222";
const WEIGHTS: &[u8] = b"0123456789";
/// `sha256sum` of [`WEIGHTS`].
const WEIGHTS_SHA256: &str = "84d89877f0d4041efb6bf91a16f0248f2fd573e6af05c19f96bedb9f882f7882";
/// `git hash-object` of "second".
const SECOND_OID: &str = "2147e418895119ab132ef3a44c8b16a4a6ce1b77";

fn tiny() -> Repo {
    Repo::new("org/tiny")
        .formerly("org/old")
        .commit(FIRST)
        .file("config.json", "first")
        .branch("refs/pr/1")
        .commit(SECOND)
        .file("config.json", "second")
        .file("1_Pooling/config.json", "{}")
        .lfs("model.safetensors", WEIGHTS)
}

fn hub() -> Hub {
    let closed = |name| {
        Repo::new(name)
            .file("a.txt", "for friends")
            .token("hf_friend")
    };
    Hub::new()
        .repo(tiny())
        .repo(closed("org/gated").gated())
        .repo(closed("org/secret").private())
        .account("hf_stranger")
        .static_file("clips/a.wav", WEIGHTS)
}

/// What came back for one request on a connection of its own.
struct Reply {
    head: String,
    body: Vec<u8>,
}

impl Reply {
    fn status(&self) -> u16 {
        let status = self.head.split(' ').nth(1).expect(&self.head);
        status.parse().unwrap()
    }

    fn header(&self, name: &str) -> &str {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines
            .filter(|(each, _)| *each == name)
            .map(|(_, value)| value)
            .next()
            .unwrap_or_default()
    }

    /// The status and the headers that say how long the body is or where to go.
    fn about_body(&self) -> String {
        let about = ["Location", "Retry-After", "Content-", "Transfer-"];
        let mut lines = self.head.lines();
        let status = lines.next().map(|line| line.split(' ').nth(1).expect(line));
        let headers = lines.filter(|line| {
            !line.starts_with("Content-Type") && about.iter().any(|name| line.starts_with(name))
        });
        status
            .into_iter()
            .chain(headers)
            .collect::<Vec<_>>()
            .join("; ")
    }

    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

fn connect(server: &Server) -> TcpStream {
    let url = server.url();
    let authority = url["http://".len()..].split('/').next().unwrap();
    TcpStream::connect(authority).unwrap()
}

/// Sends a request line and headers, and reads until the server closes.
fn ask(server: &Server, line: &str, headers: &str) -> Reply {
    let mut stream = connect(server);
    write!(
        stream,
        "{line} HTTP/1.1\r\nConnection: close\r\n{headers}\r\n"
    )
    .unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    let blank = bytes.windows(4).position(|four| four == b"\r\n\r\n");
    let body = bytes.split_off(blank.map_or(bytes.len(), |at| at + 4));
    let head = String::from_utf8(bytes).unwrap();
    Reply { head, body }
}

fn get(server: &Server, path: &str) -> Reply {
    ask(server, &format!("GET {path}"), "")
}

#[test]
fn info_tree_and_files_agree() {
    let server = hub().page(2).serve();
    let info = get(&server, "/api/models/org/tiny?blobs=true").json();
    assert_eq!(info["sha"], SECOND);
    assert_eq!(info["siblings"][1]["blobId"], SECOND_OID);
    let first = get(&server, "/api/models/org/tiny/tree/main?recursive=true");
    let link = first.header("Link");
    let next = link.strip_prefix(&format!("<{}", server.url())).unwrap();
    let (next, _) = next.split_once('>').expect(link);
    let second = get(&server, next);
    assert_eq!(second.header("Link"), "");
    assert_eq!(first.json()[0]["type"], "directory");
    assert_eq!(first.json()[1]["path"], "1_Pooling/config.json");
    let weights = &second.json()[1];
    assert_eq!(
        weights["lfs"],
        json!({"oid": WEIGHTS_SHA256, "size": 10, "pointerSize": 127})
    );

    let small = get(&server, "/org/tiny/resolve/main/config.json");
    assert_eq!(small.body, b"second");
    assert_eq!(small.header("ETag"), format!("\"{SECOND_OID}\""));
    assert_eq!(small.header("X-Repo-Commit"), SECOND);
    let large = ask(&server, "HEAD /org/tiny/resolve/main/model.safetensors", "");
    assert_eq!((large.status(), large.body.len()), (302, 0));
    assert_eq!(large.header("X-Linked-Size"), "10");
    let etag = large.header("X-Linked-Etag");
    assert_eq!(etag, format!("\"{WEIGHTS_SHA256}\""));
    let location = large
        .header("Location")
        .strip_prefix(&server.url())
        .unwrap();
    let moved = get(&server, location);
    assert_eq!(
        (moved.body.as_slice(), moved.header("ETag")),
        (WEIGHTS, etag)
    );
    let unsigned = location.split('?').next().unwrap();
    assert_eq!(get(&server, unsigned).status(), 403);
}

#[test]
fn revisions_are_branches_tags_and_commits_and_move() {
    let server = hub().serve();
    let sha = |revision: &str| {
        get(
            &server,
            &format!("/api/models/org/tiny/revision/{revision}"),
        )
        .json()["sha"]
            .clone()
    };
    for name in ["refs%2Fpr%2F1", "refs/pr/1", FIRST, "1111111"] {
        assert_eq!(sha(name), FIRST, "{name}");
    }
    assert_eq!(sha("main"), SECOND);
    server.move_ref("org/tiny", "main", FIRST);
    assert_eq!(sha("main"), FIRST);
    let file = get(&server, "/org/tiny/resolve/refs%2Fpr%2F1/config.json");
    assert_eq!(file.body, b"first");
    let old = get(&server, "/org/old/resolve/main/config.json");
    assert_eq!(
        (old.status(), old.header("Location")),
        (307, "/org/tiny/resolve/main/config.json")
    );
}

#[test]
fn refusals_tell_their_reason() {
    let server = hub().serve();
    let config = "/org/tiny/resolve/main/config.json";
    let cases = [
        ("/org/none/resolve/main/a.txt", "", 401, "RepoNotFound"),
        ("/api/models/org/none", "hf_stranger", 404, "RepoNotFound"),
        ("/api/models/org/secret", "", 401, "RepoNotFound"),
        ("/api/models/org/secret", "hf_stranger", 404, "RepoNotFound"),
        ("/api/models/org/secret", "hf_friend", 200, ""),
        ("/api/models/org/gated", "", 200, ""),
        ("/org/gated/resolve/main/a.txt", "", 401, "GatedRepo"),
        (
            "/org/gated/resolve/main/a.txt",
            "hf_stranger",
            403,
            "GatedRepo",
        ),
        ("/org/gated/resolve/main/a.txt", "hf_friend", 200, ""),
        ("/org/tiny/resolve/v9/a.txt", "", 404, "RevisionNotFound"),
        ("/org/tiny/resolve/main/a.txt", "", 404, "EntryNotFound"),
        (config, "hf_stranger", 200, ""),
        (config, "hf_nobody", 401, ""),
        ("/nowhere", "", 404, ""),
    ];
    for (path, token, status, code) in cases {
        let header = match token {
            "" => String::new(),
            token => format!("Authorization: Bearer {token}\r\n"),
        };
        let reply = ask(&server, &format!("GET {path}"), &header);
        assert_eq!(
            (reply.status(), reply.header("X-Error-Code")),
            (status, code),
            "{path} with {token:?}"
        );
    }
    assert_eq!(server.requests().len(), cases.len());
    assert_eq!(
        server.requests_to("none")[1].authorization.as_deref(),
        Some("Bearer hf_stranger")
    );
}

#[test]
fn ranges_are_served_while_the_file_is_the_same() {
    let server = hub().serve();
    let etag = get(&server, "/static/clips/a.wav")
        .header("ETag")
        .to_owned();
    let cases = [
        ("bytes=4-", "", 206, "bytes 4-9/10", "456789"),
        ("bytes=4-5", "", 206, "bytes 4-5/10", "45"),
        ("bytes=-3", "", 206, "bytes 7-9/10", "789"),
        ("bytes=10-", "", 416, "bytes */10", ""),
        ("bytes=4-", etag.as_str(), 206, "bytes 4-9/10", "456789"),
        ("bytes=4-", "\"other\"", 200, "", "0123456789"),
    ];
    for (range, if_range, status, said, body) in cases {
        let headers = match if_range {
            "" => format!("Range: {range}\r\n"),
            etag => format!("Range: {range}\r\nIf-Range: {etag}\r\n"),
        };
        let reply = ask(&server, "GET /static/clips/a.wav", &headers);
        assert_eq!(
            (
                reply.status(),
                reply.header("Content-Range"),
                reply.body.as_slice()
            ),
            (status, said, body.as_bytes()),
            "{range} {if_range}"
        );
    }
}

#[test]
fn a_connection_takes_one_request_after_another() {
    let server = hub().prefix("/mirror/hf").serve();
    assert_eq!(get(&server, "/static/clips/a.wav").status(), 404, "outside");
    let mut stream = connect(&server);
    for line in ["HEAD", "GET", "GET"] {
        write!(
            stream,
            "{line} /mirror/hf/static/clips/a.wav HTTP/1.1\r\n\r\n"
        )
        .unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            head.extend(byte);
        }
        let head = String::from_utf8(head).unwrap();
        assert!(head.contains("\r\nContent-Length: 10\r\n"), "{head}");
        if line == "GET" {
            let mut body = [0; 10];
            stream.read_exact(&mut body).unwrap();
            assert_eq!(body, WEIGHTS);
        }
    }
    assert_eq!((server.accepted(), server.requests().len()), (2, 4));
}

#[test]
fn a_proxy_is_asked_for_the_whole_address() {
    let server = hub().serve();
    let reply = ask(&server, "GET http://hub.example/static/clips/a.wav", "");
    assert_eq!(reply.body, WEIGHTS);
    let request = &server.requests()[0];
    assert_eq!(request.path, "/static/clips/a.wav");
    assert_eq!(request.proxied_to.as_deref(), Some("http://hub.example"));
}

#[test]
fn a_fault_is_taken_by_the_requests_that_it_is_for() {
    let moment = Duration::from_millis(1);
    let elsewhere = Fault::RedirectTo("http://x/".into());
    // The fault, the range asked for, the headers about the body or where to go, and the body.
    #[rustfmt::skip]
    let cases = [
        (Fault::Status(503), "", "503; Content-Length: 20", "the hub is not well\n"),
        (Fault::StatusRetryAfter(429, 7), "", "429; Retry-After: 7; Content-Length: 20", "the hub is not well\n"),
        (Fault::Hang(moment), "", "", ""),
        (elsewhere, "", "302; Location: http://x/; Content-Length: 14", "see http://x/\n"),
        (Fault::CutAfter(4), "", "200; Content-Length: 10", "0123"),
        (Fault::CutAfter(4), "bytes=5-", "206; Content-Range: bytes 5-9/10; Content-Length: 5", "5678"),
        (Fault::CutSilently(4), "", "200", "0123"),
        (Fault::WrongBytes, "", "200; Content-Length: 10", "0123456788"),
        (Fault::Truncated(9), "bytes=5-", "206; Content-Range: bytes 5-8/9; Content-Length: 4", "5678"),
        (Fault::Stall(3, moment), "", "200; Content-Length: 10", "0123456789"),
        (Fault::SlowBody(1000), "", "200; Content-Length: 10", "0123456789"),
        (Fault::Chunked, "", "200; Transfer-Encoding: chunked", "a\r\n0123456789\r\n0\r\n\r\n"),
        (Fault::UntilClose, "", "200", "0123456789"),
        (Fault::RangeIgnored, "bytes=4-", "200; Content-Length: 10", "0123456789"),
        (Fault::RangeRefused, "bytes=4-", "416; Content-Range: bytes */10; Content-Length: 0", ""),
        (Fault::WrongContentRange, "bytes=4-", "206; Content-Range: bytes 2-9/10; Content-Length: 8", "23456789"),
    ];
    for (fault, range, head, body) in cases {
        let server = hub().serve();
        let shown = format!("{fault:?}");
        server.fault("a.wav", fault, Times::Once);
        let other = get(&server, "/org/tiny/resolve/main/config.json");
        assert_eq!(other.status(), 200, "{shown}: is for a.wav");
        let range = match range {
            "" => String::new(),
            range => format!("Range: {range}\r\n"),
        };
        let reply = ask(&server, "GET /static/clips/a.wav", &range);
        assert_eq!(reply.about_body(), head, "{shown}");
        assert_eq!(String::from_utf8_lossy(&reply.body), body, "{shown}");
        assert_eq!(server.faults_left(), 0, "{shown}");
        let next = get(&server, "/static/clips/a.wav");
        assert_eq!(next.body, WEIGHTS, "{shown}: once");
    }
}

#[test]
fn a_fault_of_the_body_waits_for_a_body() {
    let server = hub().serve();
    server.fault("model.safetensors", Fault::CutAfter(4), Times::Once);
    server.fault("model.safetensors", Fault::RangeIgnored, Times::Once);
    let path = "/org/tiny/resolve/main/model.safetensors";
    let location = get(&server, path).header("Location").to_owned();
    let location = &location[server.url().len()..];
    assert_eq!(ask(&server, &format!("HEAD {location}"), "").status(), 200);
    assert_eq!(server.faults_left(), 2);
    assert_eq!(get(&server, location).body, b"0123");
    assert_eq!(get(&server, location).body, WEIGHTS);
    assert_eq!(server.faults_left(), 1, "no range was asked for");
}

#[test]
fn listings_lie_when_asked_to() {
    let server = hub().serve();
    let tree = "/api/models/org/tiny/tree/main?recursive=true";
    let bad: &[&str] = &["../x", "C:\\x", "CONFIG.json"];
    server.fault("/tree/", Fault::BadListing(bad), Times::Once);
    server.fault("/tree/", Fault::WrongSizeInListing, Times::Once);
    server.fault(
        "org/tiny",
        Fault::BadCommit("not a hash"),
        Times::Exactly(2),
    );
    let listed = get(&server, tree).json();
    let paths: Vec<_> = listed.as_array().unwrap()[4..]
        .iter()
        .map(|entry| entry["path"].as_str().unwrap())
        .collect();
    assert_eq!(paths, bad);
    assert_eq!(
        get(&server, "/org/tiny/resolve/main/..%2Fx").header("X-Repo-Commit"),
        "not a hash"
    );
    assert_eq!(
        get(&server, "/api/models/org/tiny").json()["sha"],
        "not a hash"
    );
    let grown = get(&server, tree).json();
    assert_eq!(
        (&grown[3]["size"], &grown[3]["lfs"]["size"]),
        (&json!(11), &json!(11))
    );
    assert_eq!(get(&server, tree).json()[3]["size"], 10);
}

#[test]
fn a_redirect_loop_does_not_end() {
    let server = hub().serve();
    server.fault("a.wav", Fault::RedirectLoop, Times::Once);
    let mut path = "/static/clips/a.wav".to_owned();
    for _ in 0..30 {
        let reply = get(&server, &path);
        assert_eq!(reply.status(), 302);
        path = reply.header("Location")[server.url().len()..].to_owned();
    }
}

#[test]
fn stopping_does_not_wait_for_what_hangs() {
    let server = hub().serve();
    server.fault(
        "a.wav",
        Fault::Hang(Duration::from_secs(600)),
        Times::Always,
    );
    let began = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let reply = get(&server, "/static/clips/a.wav");
                assert_eq!((reply.head.as_str(), reply.body.len()), ("", 0));
            });
        }
        while server.most_at_once() < 8 {
            std::thread::sleep(Duration::from_millis(1));
        }
        server.stop();
    });
    assert!(began.elapsed() < Duration::from_secs(60));
    let authority = server.url()["http://".len()..].to_owned();
    assert!(TcpStream::connect(authority).is_err(), "nobody answers");
}

#[test]
fn files_on_disk_are_served_whole_and_in_part() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("weights");
    std::fs::write(&path, WEIGHTS).unwrap();
    let repo = Repo::new("org/disk").lfs("w.bin", Content::on_disk(&path));
    let server = Hub::new().repo(repo).serve();
    let reply = get(&server, "/org/disk/resolve/main/w.bin");
    assert_eq!(
        reply.header("X-Linked-Etag"),
        format!("\"{WEIGHTS_SHA256}\"")
    );
    let location = &reply.header("Location")[server.url().len()..];
    assert_eq!(get(&server, location).body, WEIGHTS);
    let part = ask(&server, &format!("GET {location}"), "Range: bytes=8-\r\n");
    assert_eq!(part.body, b"89");
}

#[test]
#[ignore = "needs PRETRAINED_PYTHON, an interpreter that has huggingface_hub"]
fn the_python_client_downloads_from_it() {
    let python = std::env::var_os("PRETRAINED_PYTHON").expect("PRETRAINED_PYTHON is set");
    for (name, hub) in [
        ("pages", hub().page(2)),
        ("elsewhere", hub().cdn_elsewhere()),
        ("prefix", hub().prefix("/mirror/hf")),
    ] {
        let large = Repo::new("org/large").lfs("w.bin", vec![7; 11 << 20]);
        let server = hub.repo(large).serve();
        // The client writes 10 MiB at a time, and resumes after what it wrote.
        server.fault(
            "/cdn/org/large",
            Fault::CutAfter((10 << 20) + 1),
            Times::Once,
        );
        let home = tempfile::tempdir().unwrap();
        let output = Command::new(&python)
            .arg("tests/hub/with_huggingface_hub.py")
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .env_clear()
            .env("HOME", home.path())
            .env("HF_ENDPOINT", server.url())
            .env("TOKEN", "hf_friend")
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{stderr}");
        let snapshot = String::from_utf8(output.stdout).unwrap();
        let snapshot = Path::new(snapshot.trim());
        assert!(snapshot.ends_with(SECOND), "{}", snapshot.display());
        let read = |name: &str| std::fs::read(snapshot.join(name)).unwrap();
        assert_eq!(read("config.json"), b"second");
        assert_eq!(read("1_Pooling/config.json"), b"{}");
        assert_eq!(read("model.safetensors"), WEIGHTS);
        assert_eq!(server.faults_left(), 0);
        let ranges: Vec<_> = server
            .requests_to("GET ")
            .iter()
            .filter_map(|r| r.range.clone())
            .collect();
        assert_eq!(ranges, ["bytes=10485760-"], "resumed where it was cut");
        let (cdn, hub): (Vec<_>, Vec<_>) = server
            .requests()
            .into_iter()
            .partition(|request| request.host == Host::Cdn);
        assert_eq!(!cdn.is_empty(), name == "elsewhere");
        assert!(
            cdn.iter().all(|request| request.token().is_none()),
            "{name}"
        );
        assert!(
            hub.iter()
                .any(|request| request.token() == Some("hf_friend")),
            "{name}"
        );
    }
}
