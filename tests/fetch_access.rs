//! Whom `pretrained fetch` asks, what it says to them, and what it says when they refuse.
#![cfg(feature = "net")]
#![allow(
    clippy::unwrap_used,
    reason = "this is test code, though not every function is a test"
)]

mod fetching;
mod hub;
mod program;
mod proxy;

use fetching::{HUB, Machine, TINY, each, tiny, tiny_files};
use hub::{Fault, Host, Hub, Repo, Times};
use proxy::Proxy;

/// A token that opens everything, which must not be seen anywhere.
const TOKEN: &str = "hf_SecretOfAFriend";

fn closed_hub() -> Hub {
    let closed = |name| Repo::new(name).file("config.json", "{}").token(TOKEN);
    Hub::new()
        .repo(tiny().tag("v1"))
        .repo(closed("org/gated").gated())
        .repo(closed("org/secret").private())
        .account("hf_stranger")
}

#[test]
fn refusals_are_told_apart() {
    struct Case {
        spec: &'static str,
        token: &'static str,
        code: i32,
        says: &'static str,
        hint: &'static str,
    }
    let case = |spec, token, code, says, hint| Case {
        spec,
        token,
        code,
        says,
        hint,
    };
    let cases = [
        case(
            "hf:org/gated",
            "",
            6,
            "`org/gated` are given only to accounts that were granted access",
            "ask for access at HUB/org/gated, and put a token of that account into HF_TOKEN",
        ),
        case(
            "hf:org/gated",
            "hf_stranger",
            6,
            "granted access, and this token's was not",
            "ask for access at HUB/org/gated\n",
        ),
        case("hf:org/gated", TOKEN, 0, "", ""),
        case(
            "hf:org/secret",
            "",
            3,
            "no repository `org/secret`, or it is private and there is no token",
            "HF_TOKEN",
        ),
        case(
            "hf:org/secret",
            "hf_stranger",
            3,
            "no repository `org/secret`, or it is private and this token may not see it",
            "check the spelling, and the token",
        ),
        case("hf:org/secret", TOKEN, 0, "", ""),
        case("hf:org/none", "", 3, "no repository `org/none`", "spelling"),
        case(
            "hf:org/tiny",
            "hf_nobody",
            6,
            "refuses the token",
            "HF_TOKEN",
        ),
        case(
            "hf:org/tiny@v9",
            "",
            3,
            "`org/tiny` has no revision `v9`",
            "",
        ),
        case("hf:a/b/c", "", 2, "`hf:a/b/c` is not a model", ""),
        case("hf:../x", "", 2, "is not a model", ""),
        case("hf:org/tiny@../x", "", 2, "is not a model", ""),
    ];
    each(
        &cases,
        |case| format!("{} with {:?}", case.spec, case.token),
        |case| {
            let hub = closed_hub().serve();
            let machine = Machine::new(&hub);
            let ended = machine.fetch_with(&[("HF_TOKEN", case.token)], &[case.spec]);
            let ended = ended.expect(case.code);
            let said = format!("{}{}", ended.stdout, ended.stderr);
            assert!(
                case.token.is_empty() || !said.contains(case.token),
                "{said}"
            );
            if case.code != 0 {
                assert!(ended.error_line().contains(case.says), "{}", ended.stderr);
                let hint = case.hint.replace("HUB", &hub.url());
                assert!(ended.stderr.contains(&hint), "{hint}: {}", ended.stderr);
                assert_eq!(machine.trusted().len(), 0);
            }
        },
    );
}

#[test]
fn unknown_revision_names_those_that_are_here() {
    let hub = closed_hub().serve();
    let machine = Machine::new(&hub);
    machine.fetch(&["hf:org/tiny"]).expect(0);
    machine.fetch(&["hf:org/tiny@v1"]).expect(0);
    let ended = machine.fetch(&["hf:org/tiny@v9"]).expect(3);
    assert!(ended.stderr.contains("`main`, `v1`"), "{}", ended.stderr);
}

#[test]
fn a_refusal_of_another_host_is_not_the_hubs() {
    let hub = Hub::new().repo(tiny()).cdn_elsewhere().serve();
    hub.fault("/cdn/", Fault::Status(403), Times::Always);
    let ended = Machine::new(&hub).fetch(&["hf:org/tiny"]).expect(5);
    let line = ended.error_line();
    assert!(line.contains("redirects to http://127.0.0.1:"), "{line}");
    assert!(line.contains("answered 403"), "{line}");
    assert!(!line.contains("signature"), "{line}");
}

#[test]
fn the_token_is_found_where_python_finds_it_and_goes_to_the_hub_alone() {
    struct Case {
        name: &'static str,
        vars: Vec<(&'static str, String)>,
        args: Vec<String>,
        sent: bool,
    }
    let case = |name, vars, sent| Case {
        name,
        vars,
        args: Vec::new(),
        sent,
    };
    let hub = Hub::new()
        .repo(tiny())
        .account(TOKEN)
        .account("hf_other")
        .cdn_elsewhere()
        .serve();
    let set = |name, value: &str| (name, value.to_owned());
    let file = "own/token";
    let off = set("HF_HUB_DISABLE_IMPLICIT_TOKEN", "1");
    let cases = [
        case("none", vec![], false),
        case("HF_TOKEN", vec![set("HF_TOKEN", TOKEN)], true),
        case("HF_TOKEN_PATH", vec![set("HF_TOKEN_PATH", file)], true),
        case("HF_HOME", vec![set("HF_HOME", "own")], true),
        case("XDG", vec![set("XDG_CACHE_HOME", "xdg")], true),
        case(
            "HF_TOKEN refused",
            vec![set("HF_TOKEN", TOKEN), off.clone()],
            false,
        ),
        case(
            "file refused",
            vec![set("HF_TOKEN_PATH", file), off.clone()],
            false,
        ),
        Case {
            args: vec!["--token-file".to_owned(), file.to_owned()],
            ..case("--token-file", vec![set("HF_TOKEN", "hf_other")], true)
        },
        Case {
            args: vec!["--token-file".to_owned(), file.to_owned()],
            ..case("--token-file, implicit ones refused", vec![off], true)
        },
    ];
    for case in &cases {
        for voice in [&[][..], &["--json"]] {
            let machine = Machine::new(&hub);
            for path in [file, "xdg/huggingface/token"] {
                machine.file(path, format!("{TOKEN}\n").as_bytes());
            }
            hub.forget();
            let mut args = vec!["fetch", "hf:org/tiny"];
            args.extend(voice);
            args.extend(case.args.iter().map(String::as_str));
            let mut command = machine.place.command(&args);
            command
                .env("PRETRAINED_OFFLINE", "0")
                .env("HF_ENDPOINT", hub.url())
                .envs(case.vars.iter().map(|(name, value)| (name, value)));
            let ended = machine.place.end(&mut command).expect(0);
            assert!(
                !(ended.stdout + &ended.stderr).contains(TOKEN),
                "{}",
                case.name
            );
            let requests = hub.requests();
            assert!(requests.iter().any(|it| it.host == Host::Cdn));
            for request in requests {
                let token = Some(TOKEN).filter(|_| case.sent && request.host == Host::Hub);
                assert_eq!(request.token(), token, "{}: {}", case.name, request.line());
            }
        }
    }
    let machine = Machine::new(&hub);
    machine.file("empty", b"\n");
    for (path, code) in [("empty", 2), ("none", 3)] {
        let args = ["hf:org/tiny", "--token-file", path];
        machine.fetch(&args).expect(code);
    }
}

#[test]
fn a_redirect_to_another_host_is_followed_without_the_token() {
    let other = Hub::new()
        .static_file("elsewhere/config.json", &tiny_files()["config.json"][..])
        .serve();
    let hub = Hub::new().repo(tiny()).account(TOKEN).serve();
    let to = format!("{}?key=s3cret", other.static_url("elsewhere/config.json"));
    hub.fault("1/config.json", Fault::RedirectTo(to), Times::Always);
    let machine = Machine::new(&hub);
    let ended = machine.fetch_with(&[("HF_TOKEN", TOKEN)], &["hf:org/tiny"]);
    ended.expect(0);
    machine.assert_snapshot(&tiny_files());
    let [request] = &other.requests()[..] else {
        panic!("{:?}", other.requests());
    };
    assert_eq!(request.authorization, None);
    assert!(hub.requests().iter().all(|it| it.token() == Some(TOKEN)));

    // Nor does what the address is signed with show when it fails.
    other.fault("elsewhere", Fault::Status(503), Times::Always);
    let args = ["hf:org/tiny", "--force", "--retries", "0"];
    let ended = machine.fetch(&args).expect(5);
    assert!(ended.stderr.contains(&other.url()), "{}", ended.stderr);
    assert!(!ended.stderr.contains("s3cret"), "{}", ended.stderr);
}

#[test]
fn no_switch_for_offline_opens_a_socket() {
    let cases = [
        ("--offline", "", "--offline was given"),
        ("", "PRETRAINED_OFFLINE", "PRETRAINED_OFFLINE is set"),
        ("", "HF_HUB_OFFLINE", "HF_HUB_OFFLINE is set"),
        ("", "TRANSFORMERS_OFFLINE", "TRANSFORMERS_OFFLINE is set"),
    ];
    let hub = Hub::new().repo(tiny()).serve();
    for (flag, variable, why) in cases {
        let machine = Machine::new(&hub);
        for spec in ["hf:org/tiny", "hf:org/tiny@v1"] {
            let mut args = vec![spec];
            args.extend(Some(flag).filter(|flag| !flag.is_empty()));
            let vars: Vec<_> = Some((variable, "1"))
                .filter(|_| !variable.is_empty())
                .into_iter()
                .collect();
            let ended = machine.fetch_with(&vars, &args).expect(4);
            let line = ended.error_line();
            assert!(line.contains(spec) && line.contains(why), "{line}");
            let way = format!("run `pretrained fetch {spec}` where there is a network");
            assert!(ended.stderr.contains(&way), "{}", ended.stderr);
        }
        assert!(machine.cached().is_empty());
    }
    assert_eq!(hub.accepted(), 0);
}

#[test]
fn what_was_fetched_into_a_directory_is_used_where_there_is_no_network() {
    let hub = Hub::new().repo(tiny()).serve();
    let connected = Machine::new(&hub);
    let kit = connected.place.path("kit");
    let kit = kit.to_str().unwrap();
    let ended = connected.fetch(&["hf:org/tiny", "--cache-dir", kit]);
    let snapshot = ended.expect(0).stdout;
    assert!(snapshot.starts_with(kit), "{snapshot}");
    assert!(connected.cached().is_empty());
    hub.stop();
    let alone = Machine::new(&hub);
    let args = ["hf:org/tiny", "--cache-dir", kit, "--offline"];
    assert_eq!(alone.fetch(&args).expect(0).stdout, snapshot);
    assert!(alone.cached().is_empty());
}

#[test]
fn only_the_address_that_is_named_is_asked() {
    for (slash, by_flag) in [("", false), ("/", false), ("/", true)] {
        let hub = Hub::new()
            .repo(tiny().formerly("org/old"))
            .prefix("/mirror/hf")
            .page(2)
            .serve();
        let machine = Machine::new(&hub);
        let address = format!("{}{slash}", hub.url());
        let ended = if by_flag {
            let args = ["hf:org/tiny", "--origin", &address];
            machine.fetch_with(&[("HF_ENDPOINT", "http://hub.invalid")], &args)
        } else {
            machine.fetch_with(&[("HF_ENDPOINT", &address)], &["hf:org/tiny"])
        };
        ended.expect(0);
        machine.assert_snapshot(&tiny_files());
        // Six files and directories on pages of two.
        assert_eq!(hub.requests_to("/tree/").len(), 4, "{:?}", hub.requests());
        for request in hub.requests() {
            let of_hub = ["api/models", "org/tiny", "cdn"];
            let is_known = of_hub
                .iter()
                .any(|part| request.path.starts_with(&format!("/mirror/hf/{part}/")));
            assert!(is_known, "{}", request.line());
        }
        // By its former name it is found as well, and kept under that.
        machine.fetch(&["hf:org/old"]).expect(0);
        let names = machine.place.names(HUB);
        assert!(names.contains(&"models--org--old".to_owned()), "{names:?}");
    }
}

#[test]
fn proxies_are_asked_as_the_environment_says() {
    let dead = "http://127.0.0.1:9";
    let hub = Hub::new().repo(tiny()).serve();
    let proxy = Proxy::to(&hub);
    let name = "http://hub.example:8080";
    // The hub's address, the variables, and whether the proxy is asked.
    type Vars<'a> = &'a [(&'a str, &'a str)];
    let cases: [(&str, Vars<'_>, bool); 8] = [
        (name, &[("HTTP_PROXY", proxy.url())], true),
        (
            name,
            &[("http_proxy", proxy.url()), ("HTTP_PROXY", dead)],
            true,
        ),
        (name, &[("ALL_PROXY", proxy.url())], true),
        (
            name,
            &[("HTTP_PROXY", proxy.url()), ("ALL_PROXY", dead)],
            true,
        ),
        (
            name,
            &[("HTTP_PROXY", proxy.url()), ("NO_PROXY", "other.example")],
            true,
        ),
        (
            "",
            &[("HTTP_PROXY", dead), ("NO_PROXY", "a.example, 127.0.0.1")],
            false,
        ),
        ("", &[("ALL_PROXY", dead), ("no_proxy", "*")], false),
        ("", &[("HTTPS_PROXY", dead)], false),
    ];
    for (address, vars, is_asked) in cases {
        let own = hub.url();
        let address = if address.is_empty() { &own } else { address };
        let machine = Machine::new(&hub);
        let before = proxy.asked().len();
        let mut vars = vars.to_vec();
        vars.push(("HF_ENDPOINT", address));
        machine
            .fetch_with(&vars, &["hf:org/tiny", "--include", "*.json"])
            .expect(0);
        let asked = proxy.asked().split_off(before);
        assert_eq!(!asked.is_empty(), is_asked, "{vars:?}");
        assert!(
            asked.iter().all(|target| target == "hub.example:8080"),
            "{asked:?}"
        );
        assert!(machine.place.path(TINY).exists() || address == name);
    }
    let machine = Machine::new(&hub);
    for (proxy, says) in [(dead, "refused"), ("not a proxy", "proxy")] {
        let args = ["hf:org/tiny", "--retries", "0"];
        let ended = machine
            .fetch_with(&[("HTTP_PROXY", proxy)], &args)
            .expect(5);
        assert!(ended.error_line().contains(says), "{}", ended.stderr);
    }
}
