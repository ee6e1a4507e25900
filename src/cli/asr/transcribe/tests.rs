use std::io;

use super::*;
use crate::cli::exit::Exit;
use crate::cli::out::Voice;
use crate::cli::out::capture::{Captured, out};
use crate::cli::output::tests::{segment, transcript};

/// Hears in each input the words of its name, a segment a word; fails where the name says so.
struct Fake {
    heard_segments: usize,
}

impl Transcriber for Fake {
    fn transcribe(&mut self, input: &Input, listener: Listener<'_>) -> Result<Heard, Error> {
        let name = name(input).into_owned();
        if name.contains("bad") {
            return Err(Error::usage("cannot decode", "try another"));
        }
        if name.contains("damaged") {
            let _ = listener(Event::Warning("3 packets skipped"));
        }
        let _ = listener(Event::Length(2.0));
        let mut segments = Vec::new();
        for word in name
            .trim_end_matches(".wav")
            .split('-')
            .filter(|word| !word.is_empty())
        {
            let at = segments.len() as f64;
            segments.push(segment(at, at + 1.0, &format!(" {word}")));
            self.heard_segments += 1;
            if listener(Event::Segment(&segments[segments.len() - 1])).is_break() {
                break;
            }
        }
        let zero = Duration::ZERO;
        Ok(Heard {
            transcript: transcript(segments),
            read: zero,
            encode: zero,
            decode: zero,
        })
    }
}

/// What a run over `inputs` wrote and how it ended.
struct Seen {
    data: String,
    talk: String,
    run: Result<Run, Error>,
    heard_segments: usize,
}

fn see(inputs: &[&str], target: &Target, data: &Captured) -> Seen {
    let inputs: Vec<_> = inputs.iter().map(|name| Input::Path(name.into())).collect();
    let talk = Captured::default();
    let mut model = Fake { heard_segments: 0 };
    let run = transcribe(
        &inputs,
        target,
        &mut model,
        &mut out(Voice::Normal, data, &talk),
    );
    Seen {
        data: data.text(),
        talk: talk.text(),
        run,
        heard_segments: model.heard_segments,
    }
}

fn see_stdout(format: Format, inputs: &[&str]) -> Seen {
    see(inputs, &Target::Stdout(format), &Captured::default())
}

#[test]
fn texts_come_in_order_with_a_blank_line_between_files() {
    let seen = see_stdout(Format::Txt, &["and-so.wav", "-.wav", "my-fellow.wav"]);
    assert_eq!(seen.data, "and\nso\n\nmy\nfellow\n");
    assert_eq!(seen.talk, "");
    assert!(seen.run.unwrap().verdict().is_ok());
}

#[test]
fn a_bad_input_is_one_line_and_the_others_go_on() {
    let seen = see_stdout(
        Format::Txt,
        &["bad.wav", "good.wav", "bad2.wav", "fine.wav"],
    );
    assert_eq!(seen.data, "good\n\nfine\n");
    let line = |name| format!("{name}: cannot decode\nhint: try another\n");
    assert_eq!(seen.talk, line("bad.wav") + &line("bad2.wav"));
    let verdict = seen.run.unwrap().verdict().unwrap_err();
    assert_eq!(verdict.exit(), Exit::Partial);
    assert_eq!(verdict.text(), "pretrained: 2 of 4 inputs failed");
}

#[test]
fn the_only_input_fails_with_its_own_code_and_is_reported_once() {
    let seen = see_stdout(Format::Txt, &["bad.wav"]);
    assert_eq!(
        (seen.data.as_str(), seen.talk.as_str()),
        ("", ""),
        "the caller reports it"
    );
    let run = seen.run.unwrap();
    assert_eq!(run.failed()[0].code, Exit::Usage.code());
    assert_eq!(run.verdict().unwrap_err().text(), "bad.wav: cannot decode");
}

#[test]
fn damage_is_said_of_its_input() {
    assert_eq!(
        see_stdout(Format::Txt, &["damaged.wav"]).talk,
        "damaged.wav: 3 packets skipped\n"
    );
}

#[test]
fn a_header_is_written_even_when_nothing_is_heard() {
    assert_eq!(see_stdout(Format::Vtt, &["-.wav"]).data, "WEBVTT\n\n");
    assert_eq!(
        see_stdout(Format::Vtt, &["one.wav"]).data,
        "WEBVTT\n\n00:00.000 --> 00:01.000\none\n\n"
    );
    assert_eq!(
        see_stdout(Format::Json, &["one.wav"]).data,
        "",
        "the caller writes the document"
    );
}

#[test]
fn a_reader_that_leaves_ends_the_run_at_once() {
    let closed = Captured::failing(1, io::ErrorKind::BrokenPipe);
    let seen = see(
        &["one-two-three.wav", "four.wav"],
        &Target::Stdout(Format::Txt),
        &closed,
    );
    assert!(matches!(seen.run, Err(Error::Closed)));
    assert_eq!((seen.data.as_str(), seen.heard_segments), ("one\n", 2));
}

#[test]
fn a_directory_gets_a_file_an_input_and_format() {
    let dir = tempfile::tempdir().unwrap();
    let target = Target::Directory(dir.path().to_owned(), vec![Format::Txt, Format::Json]);
    let seen = see(
        &["one.wav", "a/bad.wav", "b/one.wav", "b/bad.wav"],
        &target,
        &Captured::default(),
    );
    assert_eq!(seen.data, "");
    let mut names: Vec<_> = std::fs::read_dir(dir.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["one.2.json", "one.2.txt", "one.json", "one.txt"]);
    let json = std::fs::read_to_string(dir.path().join("one.2.json")).unwrap();
    assert!(
        json.starts_with(r#"{"file":"b/one.wav","#),
        "the input's own object: {json}"
    );
    assert!(
        seen.talk
            .contains(&format!("wrote {}\n", dir.path().join("one.txt").display())),
        "{}",
        seen.talk
    );
}

#[test]
fn a_result_that_cannot_be_written_fails_its_input_alone() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("one.txt")).unwrap();
    let target = Target::Directory(dir.path().to_owned(), vec![Format::Txt]);
    let run = see(&["one.wav", "two.wav"], &target, &Captured::default())
        .run
        .unwrap();
    assert_eq!((run.heard.len(), run.failures.len()), (1, 1));
    assert_eq!(run.failures[0].1.exit(), Exit::Internal);
}

#[test]
fn two_inputs_give_what_each_gives_alone_in_both_orders() {
    let alone = |name| see_stdout(Format::Txt, &[name]).data;
    let (a, b) = (alone("a-one.wav"), alone("b-two.wav"));
    assert_eq!(
        see_stdout(Format::Txt, &["a-one.wav", "b-two.wav"]).data,
        format!("{a}\n{b}")
    );
    assert_eq!(
        see_stdout(Format::Txt, &["b-two.wav", "a-one.wav"]).data,
        format!("{b}\n{a}")
    );
}
