//! `asr whisper` with the built-in model on the sample clip: every output, and how a run behaves around them.
#![cfg(feature = "bundled-whisper")]
#![allow(
    clippy::unwrap_used,
    reason = "this is test code, though not every function is a test"
)]

mod program;

use std::io::{BufRead, BufReader};

use program::{Place, sample, words};
use serde_json::{Value, json};

const SENTENCE: &str = "And so, my fellow Americans, ask not what your country can do for you, \
                        ask what you can do for your country.";

fn sample_path() -> String {
    sample().to_str().unwrap().to_owned()
}

#[test]
fn the_first_command_prints_the_sentence_of_the_sample() {
    let ended = Place::new()
        .run(&["asr", "whisper", &sample_path()])
        .expect(0);
    assert_eq!(words(&ended.stdout), words(SENTENCE));
    assert!(
        !ended.stdout.starts_with(' ') && ended.stdout.ends_with('\n'),
        "{:?}",
        ended.stdout
    );
    assert_eq!(
        ended.stderr.lines().count(),
        1,
        "the note about the built-in model: {}",
        ended.stderr
    );
    assert!(
        !ended.stderr.contains(['\r', '\u{1b}']),
        "{:?}",
        ended.stderr
    );
}

#[test]
fn quiet_leaves_stderr_empty_and_stdout_as_it_was() {
    let place = Place::new();
    let plain = place.run(&["asr", "whisper", &sample_path()]).expect(0);
    let quiet = place
        .run(&["asr", "whisper", "-q", &sample_path()])
        .expect(0);
    assert_eq!((quiet.stdout, quiet.stderr.as_str()), (plain.stdout, ""));
}

#[test]
fn a_named_model_needs_no_note() {
    let ended = Place::new()
        .run(&["asr", "whisper", "-m", "bundled:tiny.en", &sample_path()])
        .expect(0);
    assert_eq!(ended.stderr, "");
}

#[test]
fn standard_input_is_read_when_asked_or_when_nothing_is_given() {
    let place = Place::new();
    let bytes = std::fs::read(sample()).unwrap();
    for args in [&["asr", "whisper", "-"][..], &["asr", "whisper"]] {
        let ended = place.run_with_stdin(args, &bytes).expect(0);
        assert_eq!(words(&ended.stdout), words(SENTENCE), "{args:?}");
    }
}

#[test]
fn json_is_a_document_of_known_fields() {
    let ended = Place::new()
        .run(&["asr", "whisper", "--json", &sample_path()])
        .expect(0);
    assert_eq!(ended.stderr, "");
    let document = ended.json();
    assert_eq!(document["schema"], "pretrained.asr/1");
    assert_eq!(document["command"], "asr whisper");
    assert_eq!(document["model"]["provider"], "bundled");
    assert_eq!(document["model"]["device"], "cpu");
    assert_eq!(document["model"]["precision"], "q8");
    assert_eq!(document["failed"], json!([]));
    assert!(document["stats"]["wall_s"].as_f64().unwrap() > 0.0);

    let file = &document["files"][0];
    assert_eq!(file["file"], sample_path());
    assert_eq!(file["language"], "en");
    assert!((file["duration"].as_f64().unwrap() - 11.0).abs() < 0.01);
    assert_eq!(words(file["text"].as_str().unwrap()), words(SENTENCE));
    let segments = file["segments"].as_array().unwrap();
    let joined: String = segments
        .iter()
        .map(|segment| segment["text"].as_str().unwrap())
        .collect();
    assert_eq!(file["text"], joined);
    for (id, segment) in segments.iter().enumerate() {
        assert_eq!(segment["id"], id);
        let (start, end) = (
            segment["start"].as_f64().unwrap(),
            segment["end"].as_f64().unwrap(),
        );
        assert!(0.0 <= start && start <= end && end <= 30.0, "{segment}");
        assert!(
            segment["tokens"]
                .as_array()
                .unwrap()
                .iter()
                .all(Value::is_u64),
            "{segment}"
        );
        let probability = segment["no_speech_prob"].as_f64().unwrap();
        assert!((0.0..=1.0).contains(&probability), "{segment}");
        for field in ["seek", "temperature", "avg_logprob", "compression_ratio"] {
            assert!(segment[field].is_number(), "{field}: {segment}");
        }
    }
}

#[test]
fn every_format_tells_of_the_same_segments() {
    let place = Place::new();
    let sample = sample_path();
    let run = |format: &str| {
        place
            .run(&["asr", "whisper", "-q", "-f", format, &sample])
            .expect(0)
            .stdout
    };
    let document: Value = serde_json::from_str(&run("json")).unwrap();
    let segments = document["files"][0]["segments"].as_array().unwrap();
    let texts: Vec<_> = segments
        .iter()
        .map(|segment| segment["text"].as_str().unwrap().trim())
        .collect();

    assert_eq!(run("txt").lines().collect::<Vec<_>>(), texts);
    let srt = run("srt");
    let cues: Vec<_> = srt.trim_end().split("\n\n").collect();
    assert_eq!(cues.len(), texts.len());
    for (number, (cue, text)) in (1..).zip(cues.iter().zip(&texts)) {
        let lines: Vec<_> = cue.lines().collect();
        assert_eq!((lines[0], lines[2]), (number.to_string().as_str(), *text));
        assert!(
            lines[1].starts_with("00:00:")
                && lines[1].contains(" --> 00:00:")
                && lines[1].contains(',')
        );
    }
    let vtt = run("vtt");
    assert!(vtt.starts_with("WEBVTT\n\n00:"), "{vtt}");
    assert_eq!(vtt.matches(" --> ").count(), texts.len());
}

#[test]
fn a_directory_gets_a_file_an_input_and_format_and_stdout_nothing() {
    let place = Place::new();
    let (first, second) = (place.sample("talk.wav"), place.sample("other/talk.wav"));
    let args = [
        "asr", "whisper", "-f", "srt,json", "-f", "txt", "-o", "out/new", first, second,
    ];
    let ended = place.run(&args).expect(0);
    assert_eq!(ended.stdout, "");
    let expected = [
        "talk.2.json",
        "talk.2.srt",
        "talk.2.txt",
        "talk.json",
        "talk.srt",
        "talk.txt",
    ];
    assert_eq!(place.names("out/new"), expected);
    assert_eq!(words(&place.read("out/new/talk.2.txt")), words(SENTENCE));
    let stdout = place
        .run(&["asr", "whisper", "-f", "srt", "-o", "-", first])
        .expect(0)
        .stdout;
    assert_eq!(place.read("out/new/talk.srt"), stdout);
    let own: Value = serde_json::from_str(&place.read("out/new/talk.2.json")).unwrap();
    assert_eq!(
        (&own["file"], &own["schema"]),
        (&second.into(), &Value::Null)
    );
}

#[test]
fn two_inputs_give_what_each_gives_alone_in_both_orders() {
    let place = Place::new();
    let mut reader = hound::WavReader::open(sample()).unwrap();
    let samples: Vec<i16> = reader.samples().map(Result::unwrap).collect();
    let (a, b) = (
        place.sample("a.wav"),
        place.wav("b.wav", &samples[..samples.len() / 3]),
    );
    let run = |inputs: &[&str]| {
        place
            .run(&[&["asr", "whisper", "-q"], inputs].concat())
            .expect(0)
            .stdout
    };
    let (of_a, of_b) = (run(&[a]), run(&[b]));
    assert_ne!(of_a, of_b);
    assert_eq!(run(&[a, b]), format!("{of_a}\n{of_b}"));
    assert_eq!(run(&[b, a]), format!("{of_b}\n{of_a}"));
}

#[test]
fn any_number_of_threads_gives_the_same_transcript() {
    let place = Place::new();
    let run = |threads: &str| {
        let ended = place
            .run(&["asr", "whisper", "--json", "-t", threads, &sample_path()])
            .expect(0);
        ended.json()["files"].clone()
    };
    assert_eq!(run("1"), run("3"));
}

#[test]
fn no_samples_are_no_words() {
    let place = Place::new();
    let silent = place.wav("silent.wav", &[]);
    assert_eq!(
        place
            .run(&["asr", "whisper", "-q", silent])
            .expect(0)
            .stdout,
        ""
    );
    let file = place
        .run(&["asr", "whisper", "--json", silent])
        .expect(0)
        .json()["files"][0]
        .clone();
    let expected = json!({"file": "silent.wav", "duration": 0.0, "language": null, "language_probability": null,
                          "text": "", "segments": []});
    assert_eq!(file, expected);
}

#[test]
fn statistics_are_one_json_line_at_the_end_of_stderr() {
    let ended = Place::new()
        .run(&["asr", "whisper", "-q", "--stats=json", &sample_path()])
        .expect(0);
    assert_eq!(words(&ended.stdout), words(SENTENCE));
    let stats: Value = serde_json::from_str(&ended.stderr).unwrap();
    assert_eq!(stats["schema"], "pretrained.stats/1");
    assert!(
        (stats["audio_s"].as_f64().unwrap() - 11.0).abs() < 0.01,
        "{stats}"
    );
    let secs = |field: &str| stats[field].as_f64().unwrap();
    let parts = secs("load_s") + secs("read_s") + secs("encode_s") + secs("decode_s");
    assert!(
        secs("encode_s") > 0.0 && secs("decode_s") > 0.0 && parts <= secs("wall_s") + 0.005,
        "{stats}"
    );
    assert!(
        stats["tokens"].as_u64().unwrap() > 20 && stats["threads"].as_u64().unwrap() > 0,
        "{stats}"
    );
    assert!(
        stats["isa"].is_string() && stats["device"] == "cpu",
        "{stats}"
    );
    if cfg!(target_os = "linux") {
        assert!(
            stats["peak_rss_bytes"].as_u64().unwrap() > 10_000_000,
            "{stats}"
        );
    }
}

#[test]
fn what_the_built_in_model_cannot_do_is_an_error_that_names_one_that_can() {
    for args in [
        &["-l", "fr"][..],
        &["-l", "French"],
        &["--task", "translate"],
    ] {
        let ended = Place::new()
            .run(&[&["asr", "whisper", &sample_path()], args].concat())
            .expect(2);
        assert_eq!(ended.stdout, "");
        assert!(
            ended.error_line().contains("English"),
            "{args:?}: {}",
            ended.stderr
        );
        assert!(
            ended.stderr.contains("-m base"),
            "{args:?}: {}",
            ended.stderr
        );
    }
}

#[test]
fn its_own_language_by_code_or_name_changes_nothing() {
    let place = Place::new();
    let run = |language| {
        place
            .run(&["asr", "whisper", "-q", "-l", language, &sample_path()])
            .expect(0)
            .stdout
    };
    assert_eq!(
        [run("auto"), run("en"), run("English")].map(|text| words(&text)),
        [(); 3].map(|()| words(SENTENCE))
    );
}

#[test]
fn a_reader_that_leaves_is_a_quiet_end() {
    let place = Place::new();
    let inputs: Vec<_> = (0..20).map(|_| sample_path()).collect();
    let inputs: Vec<_> = inputs.iter().map(String::as_str).collect();
    let mut child = place
        .command(&[&["asr", "whisper", "-q"], &inputs[..]].concat())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert!(!line.is_empty(), "a line came before the end");
    let output = child.wait_with_output().unwrap();
    assert_eq!(
        (
            output.status.code(),
            String::from_utf8(output.stderr).unwrap()
        ),
        (Some(0), String::new())
    );
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_told() {
    let full = std::fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let output = Place::new()
        .command(&["asr", "whisper", "-q", &sample_path()])
        .stdout(full)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(
        stderr.starts_with("pretrained: cannot write stdout: "),
        "{stderr}"
    );
}
