//! What a bad network or a bad hub does to `pretrained fetch`: a typed error, nothing wrong under a final name, and a
//! next run that completes.
#![cfg(feature = "net")]
#![allow(
    clippy::unwrap_used,
    reason = "this is test code, though not every function is a test"
)]

mod fetching;
mod hub;
mod program;

use std::time::{Duration, Instant};

use fetching::{Machine, TINY, WEIGHTS_BYTES, each, tiny, tiny_files};
use hub::{Fault, Hub, Times};

/// Requests for the weights, for a small file, for the commit of a branch, for the listing.
const WEIGHTS: &str = "/cdn/";
const CONFIG: &str = "1/config.json";
const BRANCH: &str = "/revision/";
const TREE: &str = "/tree/";

const NEVER_ENDING: Duration = Duration::from_secs(600);

/// What goes wrong once or always, and what comes of it.
#[derive(Default)]
struct Case {
    name: &'static str,
    faults: Vec<(&'static str, Fault, Times)>,
    args: &'static [&'static str],
    code: i32,
    /// What the one line on stderr says.
    says: &'static [&'static str],
    /// The ranges of the weights that were asked for in this run, `all` for no range; not looked at when empty.
    asked: &'static [&'static str],
    /// And in the next run.
    asked_next: &'static [&'static str],
    /// At least so many seconds, and less than so many.
    secs: Option<(u64, u64)>,
}

fn check(case: &Case) {
    let hub = Hub::new().repo(tiny()).serve();
    for (part, fault, times) in &case.faults {
        hub.fault(part, fault.clone(), *times);
    }
    let machine = Machine::new(&hub);
    let fetch = || {
        hub.forget();
        let args: Vec<_> = ["hf:org/tiny"].iter().chain(case.args).copied().collect();
        let began = Instant::now();
        let ended = machine.fetch_with(&[("HF_HUB_DOWNLOAD_TIMEOUT", "1")], &args);
        let asked: Vec<_> = hub
            .requests_to(WEIGHTS)
            .iter()
            .map(|request| request.range.clone().unwrap_or("all".into()))
            .collect();
        (ended, asked, began.elapsed())
    };
    let (ended, asked, took) = fetch();
    let ended = ended.expect(case.code);
    if case.code == 0 {
        assert_eq!(ended.stderr, "");
        machine.assert_snapshot(&tiny_files());
        assert_eq!(hub.faults_left(), 0, "the fault was met");
    } else {
        let line = ended.error_line();
        for said in case.says {
            assert!(line.contains(said), "`{said}` in: {line}");
        }
        assert_eq!(ended.stdout, "");
        assert!(!machine.place.path(&format!("{TINY}/refs/main")).exists());
    }
    if !case.asked.is_empty() {
        assert_eq!(asked, case.asked);
    }
    if let Some((at_least, less_than)) = case.secs {
        let range = Duration::from_secs(at_least)..Duration::from_secs(less_than);
        assert!(range.contains(&took), "took {took:?}");
    }
    machine.assert_trustworthy(&tiny_files());

    hub.mend();
    let (ended, asked, _) = fetch();
    ended.expect(0);
    machine.assert_snapshot(&tiny_files());
    if case.code == 0 {
        assert_eq!(hub.requests().len(), 0, "what is here is not asked for");
    } else if !case.asked_next.is_empty() {
        assert_eq!(asked, case.asked_next);
    }
}

fn check_all(cases: &[Case]) {
    each(cases, |case| case.name.to_owned(), check);
}

#[test]
fn what_breaks_off_goes_on_where_it_stopped() {
    let cut = |times| (WEIGHTS, Fault::CutAfter(60_000), times);
    let once = |fault| (WEIGHTS, fault, Times::Once);
    check_all(&[
        Case {
            name: "cut once",
            faults: vec![cut(Times::Once)],
            asked: &["all", "bytes=60000-"],
            ..Case::default()
        },
        Case {
            name: "cut more often than it is tried again, but not without progress",
            faults: vec![cut(Times::Exactly(3))],
            args: &["--retries", "1"],
            asked: &["all", "bytes=60000-", "bytes=120000-", "bytes=180000-"],
            ..Case::default()
        },
        Case {
            name: "cut without a length",
            faults: vec![once(Fault::CutSilently(60_000))],
            asked: &["all", "bytes=60000-"],
            ..Case::default()
        },
        Case {
            name: "cut, and not tried again",
            faults: vec![cut(Times::Once)],
            args: &["--retries", "0"],
            code: 5,
            says: &["model.safetensors", "broke off"],
            asked: &["all"],
            asked_next: &["bytes=60000-"],
            ..Case::default()
        },
        Case {
            name: "stalled",
            faults: vec![once(Fault::Stall(60_000, NEVER_ENDING))],
            asked: &["all", "bytes=60000-"],
            secs: Some((1, 10)),
            ..Case::default()
        },
        Case {
            name: "stalled, and not tried again",
            faults: vec![once(Fault::Stall(60_000, NEVER_ENDING))],
            args: &["--retries", "0"],
            code: 5,
            says: &["model.safetensors", "broke off: no answer in time"],
            asked_next: &["bytes=60000-"],
            secs: Some((1, 10)),
            ..Case::default()
        },
        Case {
            name: "slower than the time for an answer, but moving",
            faults: vec![once(Fault::SlowBody(WEIGHTS_BYTES / 2))],
            asked: &["all"],
            secs: Some((2, 20)),
            ..Case::default()
        },
        Case {
            name: "a range ignored",
            faults: vec![cut(Times::Once), once(Fault::RangeIgnored)],
            asked: &["all", "bytes=60000-"],
            ..Case::default()
        },
        Case {
            name: "a range refused",
            faults: vec![cut(Times::Once), once(Fault::RangeRefused)],
            asked: &["all", "bytes=60000-", "all"],
            ..Case::default()
        },
        Case {
            name: "another range than was asked for",
            faults: vec![cut(Times::Once), once(Fault::WrongContentRange)],
            asked: &["all", "bytes=60000-", "all"],
            ..Case::default()
        },
        Case {
            name: "wrong bytes after what had come",
            faults: vec![cut(Times::Once), once(Fault::WrongBytes)],
            asked: &["all", "bytes=60000-", "all"],
            ..Case::default()
        },
        Case {
            name: "in chunks",
            faults: vec![once(Fault::Chunked)],
            asked: &["all"],
            ..Case::default()
        },
        Case {
            name: "until the connection closes",
            faults: vec![once(Fault::UntilClose)],
            asked: &["all"],
            ..Case::default()
        },
        Case {
            name: "a listing that is cut",
            faults: vec![(TREE, Fault::CutAfter(100), Times::Once)],
            ..Case::default()
        },
    ]);
}

#[test]
fn a_hub_that_is_not_well_is_asked_again_and_not_for_ever() {
    let busy = |status, part| (part, Fault::Status(status), Times::Exactly(2));
    let wait = |status, secs, times| (WEIGHTS, Fault::StatusRetryAfter(status, secs), times);
    let always = |part, fault| vec![(part, fault, Times::Always)];
    check_all(&[
        Case {
            name: "503 twice",
            faults: vec![busy(503, WEIGHTS)],
            asked: &["all"; 3],
            ..Case::default()
        },
        Case {
            name: "503 with a time to wait",
            faults: vec![wait(503, 2, Times::Once)],
            asked: &["all"; 2],
            secs: Some((2, 10)),
            ..Case::default()
        },
        Case {
            name: "429 of the commit, 500 of the listing, 502 of a small file",
            faults: vec![busy(429, BRANCH), busy(500, TREE), busy(502, CONFIG)],
            ..Case::default()
        },
        Case {
            name: "429 with a time to wait",
            faults: vec![wait(429, 1, Times::Once)],
            asked: &["all"; 2],
            secs: Some((1, 10)),
            ..Case::default()
        },
        Case {
            name: "503 always",
            faults: always(WEIGHTS, Fault::Status(503)),
            code: 5,
            says: &["answered 503", "model.safetensors"],
            asked: &["all"; 4],
            secs: Some((2, 10)),
            ..Case::default()
        },
        Case {
            name: "503 of the commit always",
            faults: always(BRANCH, Fault::Status(503)),
            args: &["--retries", "1"],
            code: 5,
            says: &["answered 503", "/api/models/org/tiny"],
            ..Case::default()
        },
        Case {
            name: "429 for longer than anyone waits",
            faults: vec![wait(429, 86_400, Times::Always)],
            code: 5,
            says: &["answered 429", "86400 s"],
            asked: &["all"],
            secs: Some((0, 5)),
            ..Case::default()
        },
        Case {
            name: "silence once",
            faults: vec![(WEIGHTS, Fault::Hang(NEVER_ENDING), Times::Once)],
            asked: &["all"; 2],
            secs: Some((1, 10)),
            ..Case::default()
        },
        Case {
            name: "silence instead of the commit",
            faults: always(BRANCH, Fault::Hang(NEVER_ENDING)),
            args: &["--retries", "1"],
            code: 5,
            says: &["/api/models/org/tiny", "no answer in time"],
            secs: Some((2, 10)),
            ..Case::default()
        },
        Case {
            name: "a redirect that goes round",
            faults: always("/resolve/", Fault::RedirectLoop),
            args: &["--jobs", "1"],
            code: 5,
            says: &["redirects without end"],
            secs: Some((0, 5)),
            ..Case::default()
        },
        Case {
            name: "a listing that goes round",
            faults: always(TREE, Fault::RedirectLoop),
            code: 5,
            says: &["/tree/", "redirects without end"],
            ..Case::default()
        },
        Case {
            name: "a redirect to no address",
            faults: always(WEIGHTS, Fault::RedirectTo("file:///etc/passwd".into())),
            code: 5,
            says: &["redirects to no web address"],
            ..Case::default()
        },
    ]);
}

#[test]
fn wrong_bytes_are_never_kept() {
    let once = |part, fault| vec![(part, fault, Times::Once)];
    check_all(&[
        Case {
            name: "one bit of the weights",
            faults: once(WEIGHTS, Fault::WrongBytes),
            code: 8,
            says: &["model.safetensors", "digest"],
            asked: &["all"],
            asked_next: &["all"],
            ..Case::default()
        },
        Case {
            name: "one bit of a file that git holds",
            faults: once(CONFIG, Fault::WrongBytes),
            code: 8,
            says: &["config.json", "digest"],
            ..Case::default()
        },
        Case {
            name: "a file that is too short, and says so",
            faults: once(WEIGHTS, Fault::Truncated(1000)),
            code: 8,
            says: &["has 1000 bytes, not 200000"],
            asked_next: &["all"],
            ..Case::default()
        },
        Case {
            name: "a listing with sizes of other files",
            faults: once(TREE, Fault::WrongSizeInListing),
            code: 8,
            says: &["bytes, not"],
            ..Case::default()
        },
        Case {
            name: "a page to log in, in place of the weights",
            faults: once(WEIGHTS, Fault::HtmlPage),
            code: 8,
            says: &["model.safetensors", "is an HTML page"],
            asked_next: &["all"],
            ..Case::default()
        },
        Case {
            name: "a page to log in, in place of a small file",
            faults: once(CONFIG, Fault::HtmlPage),
            code: 8,
            says: &["config.json", "is an HTML page"],
            ..Case::default()
        },
        Case {
            name: "a page to log in, in place of the commit",
            faults: once(BRANCH, Fault::HtmlPage),
            code: 5,
            says: &["/api/models/org/tiny", "is an HTML page"],
            ..Case::default()
        },
        Case {
            name: "a page to log in, in place of the listing",
            faults: once(TREE, Fault::HtmlPage),
            code: 5,
            says: &["/tree/", "is an HTML page"],
            ..Case::default()
        },
        Case {
            name: "half a listing that looks whole",
            faults: once(TREE, Fault::CutSilently(100)),
            code: 5,
            says: &["/tree/", "is no answer of a hub"],
            ..Case::default()
        },
    ]);
}

#[test]
fn a_hub_that_lies_gets_nothing_written() {
    let listing = |paths, named| (TREE, Fault::BadListing(paths), named);
    let commit = |id, named| (BRANCH, Fault::BadCommit(id), named);
    let lies = [
        listing(&["../x"], "`../x`"),
        listing(&["C:\\x"], "`C:\\x`"),
        listing(&["a/../../x"], "`a/../../x`"),
        listing(&["/etc/x"], "`/etc/x`"),
        listing(&["con.txt"], "`con.txt`"),
        // Which of the two is named does not matter.
        listing(&["CONFIG.json"], ""),
        listing(&["1_pooling/x"], ""),
        commit("main", "`main`"),
        commit("../../../x", "`../../../x`"),
        commit("1111", "`1111`"),
        commit("", "``"),
    ];
    each(
        &lies,
        |(_, fault, _)| format!("{fault:?}"),
        |(part, fault, named)| {
            let hub = Hub::new().repo(tiny()).serve();
            hub.fault(part, fault.clone(), Times::Always);
            let machine = Machine::new(&hub);
            let ended = machine.fetch(&["hf:org/tiny", "--include", "*"]).expect(8);
            let line = ended.error_line();
            assert!(line.contains(&format!("{named} is refused")), "{line}");
            assert!(machine.cached().is_empty(), "{:?}", machine.cached());
            assert_eq!(hub.requests_to("/resolve/").len(), 0);
            hub.mend();
            machine.fetch(&["hf:org/tiny"]).expect(0);
            machine.assert_snapshot(&tiny_files());
        },
    );
}

#[test]
fn nobody_at_the_address_is_a_failure_of_the_network() {
    let hub = Hub::new().repo(tiny()).serve();
    let machine = Machine::new(&hub);
    hub.stop();
    let stopped = hub.url();
    for (address, says) in [
        (stopped.as_str(), "refused"),
        ("http://hub.invalid", "the host is not known"),
    ] {
        let args = ["hf:org/tiny", "--retries", "1"];
        let ended = machine
            .fetch_with(&[("HF_ENDPOINT", address)], &args)
            .expect(5);
        let line = ended.error_line();
        assert!(line.contains(says) && line.contains(address), "{line}");
    }
    assert!(machine.cached().is_empty());
}
