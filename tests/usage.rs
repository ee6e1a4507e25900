//! Command lines that need no model: help, usage errors, the list of prefabs.

mod program;

use program::Place;

#[test]
fn help_and_version_go_to_stdout() {
    for args in [
        &["--help"][..],
        &["-h"],
        &["--version"],
        &["asr", "whisper", "--help"],
        &["inspect", "-h"],
    ] {
        let ended = Place::new().run(args).expect(0);
        assert!(
            ended.stdout.contains("pretrained"),
            "{args:?}: {}",
            ended.stdout
        );
        assert_eq!(ended.stderr, "", "{args:?}");
    }
}

#[test]
fn no_command_is_help_on_stderr_and_exit_2() {
    for args in [&[][..], &["asr"]] {
        let ended = Place::new().run(args).expect(2);
        assert_eq!(ended.stdout, "");
        assert!(
            ended.stderr.contains("Usage: pretrained"),
            "{}",
            ended.stderr
        );
    }
}

#[test]
fn a_variable_that_is_no_number_of_threads_is_refused_unless_a_flag_goes_before_it() {
    let place = Place::new();
    let run = |args: &[&str]| {
        let mut command = place.command(args);
        command.env("PRETRAINED_THREADS", "many");
        place.end(&mut command)
    };
    let refused = run(&["asr", "whisper", "a.wav"]).expect(2);
    assert!(
        refused
            .error_line()
            .contains("PRETRAINED_THREADS is `many`")
    );
    // Past the flags: there is no such file, or, in a build without a model, none of those either.
    let exit = if cfg!(feature = "bundled-whisper") {
        3
    } else {
        4
    };
    run(&["asr", "whisper", "-t", "1", "a.wav"]).expect(exit);
}

#[test]
fn what_cannot_be_is_one_line_a_hint_and_exit_2() {
    struct Case(&'static [&'static str], &'static str);
    let cases = [
        Case(
            &["asr", "whisper", "--no-such-flag", "a.wav"],
            "--no-such-flag",
        ),
        Case(&["asr", "whisper", "-t", "0", "a.wav"], "0 is not in 1..="),
        Case(&["asr", "whisper", "-t", "many", "a.wav"], "many"),
        Case(&["asr", "whisper", "-f", "docx", "a.wav"], "docx"),
        Case(&["asr", "whisper", "--device", "tpu", "a.wav"], "tpu"),
        Case(&["asr", "whisper", "--task", "sing", "a.wav"], "sing"),
        Case(&["asr", "whisper", "-l", "klingon", "a.wav"], "klingon"),
        Case(
            &["asr", "whisper", "-f", "srt", "a.wav", "b.wav"],
            "several inputs",
        ),
        Case(&["asr", "whisper", "-f", "srt,json", "a.wav"], "one format"),
        Case(&["asr", "whisper", "-", "-"], "twice"),
        Case(&["prefabs", "no-such-kit"], "no-such-kit"),
        Case(&["inspect"], "nothing to inspect"),
        Case(&["fetch"], "<SPEC>"),
        Case(&["cache", "ls", "-f", "size"], "size>1GB"),
        Case(&["no-such-command"], "no-such-command"),
    ];
    for Case(args, named) in cases {
        let ended = Place::new().run(args).expect(2);
        assert_eq!(ended.stdout, "", "{args:?}");
        let line = ended.error_line();
        assert!(
            line.starts_with("pretrained: ") && line.contains(named),
            "{args:?}: {line}"
        );
    }
}

#[test]
fn with_json_a_usage_error_is_one_object() {
    let cases = [
        &["--json", "asr", "whisper", "--no-such-flag"][..],
        &["asr", "whisper", "a.wav", "-f", "srt", "--json"],
        &["asr", "--json"],
    ];
    for args in cases {
        let ended = Place::new().run(args).expect(2);
        let object = ended.error_object();
        assert_eq!(object["schema"], "pretrained.error/1", "{args:?}");
        assert_eq!(
            (&object["code"], &object["kind"]),
            (&2.into(), &"usage".into()),
            "{args:?}"
        );
        assert!(object["message"].is_string(), "{args:?}");
    }
}

#[test]
fn the_geometries_of_every_kit_are_listed() {
    let place = Place::new();
    let table = place.run(&["prefabs"]).expect(0);
    assert_eq!(table.stderr, "");
    let listed = |kit: &str| {
        let kits = table
            .stdout
            .lines()
            .filter_map(|line| line.split_whitespace().nth(1));
        kits.filter(|listed| *listed == kit).count()
    };
    let counts = [
        "whisper",
        "moonshine",
        "qwen3-asr",
        "embed",
        "lm",
        "silero",
        "resnet",
    ]
    .map(listed);
    assert_eq!(counts, [13, 5, 2, 11, 6, 1, 6], "{}", table.stdout);

    let document = place
        .run(&["prefabs", "whisper", "--json"])
        .expect(0)
        .json();
    assert_eq!(document["schema"], "pretrained.prefabs/1");
    let tiny = document["prefabs"]
        .as_array()
        .unwrap()
        .iter()
        .find(|prefab| prefab["name"] == "whisper-tiny.en")
        .unwrap();
    // The elements of the 167 tensors in OpenAI's file; 1500 x 384 of them are the encoder's fixed positions.
    assert_eq!(tiny["parameters"], 37_760_256);
    assert_eq!(
        (&tiny["width"], &tiny["vocab"]),
        (&384.into(), &51864.into())
    );
    assert_eq!(tiny["f16_bytes"], 2 * 37_760_256);
    assert_eq!(tiny["kv_bytes_per_token"], 2 * 4 * 384 * 2);

    let document = place.run(&["prefabs", "lm", "--json"]).expect(0).json();
    let kits = document["prefabs"].as_array().unwrap().iter();
    assert!(kits.into_iter().all(|prefab| prefab["kit"] == "lm"));
}

#[test]
fn a_closed_stdout_is_a_quiet_end() {
    let mut child = Place::new().command(&["--help"]).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr), (Some(0), Vec::new()));
}
