use super::*;

/// A segment of which only the times and the text matter.
pub(crate) fn segment(start: f64, end: f64, text: &str) -> Segment {
    Segment {
        id: 0,
        seek: 0,
        start,
        end,
        text: text.to_owned(),
        tokens: vec![50364, 400],
        temperature: 0.2,
        avg_logprob: -0.25,
        compression_ratio: 1.25,
        no_speech_prob: 0.125,
    }
}

pub(crate) fn transcript(segments: Vec<Segment>) -> Transcript {
    Transcript {
        language: Some("en".into()),
        language_probability: None,
        duration_secs: 11.0,
        segments,
    }
}

fn awkward() -> Transcript {
    transcript(vec![
        segment(0.0, 2.740_000_000_000_001, " Ever tried --> ever failed."),
        segment(3.6, 5.86, "\u{a0}\u{1c}<i>No</i> & \"matter\",\tagain. \n"),
        segment(5.86, 5.86, ""),
        segment(3660.5, 3671.0, " 你好，世界"),
    ])
}

// The three expectations below are the output of openai-whisper 20250625's own writers for these segments.

#[test]
fn text_is_that_of_the_reference() {
    let expected = "Ever tried --> ever failed.\n<i>No</i> & \"matter\",\tagain.\n\n你好，世界\n";
    assert_eq!(Format::Txt.document("talk.wav", &awkward()), expected);
}

#[test]
fn srt_is_that_of_the_reference() {
    let expected = "\
1
00:00:00,000 --> 00:00:02,740
Ever tried -> ever failed.

2
00:00:03,600 --> 00:00:05,860
<i>No</i> & \"matter\",\tagain.

3
00:00:05,860 --> 00:00:05,860


4
01:01:00,500 --> 01:01:11,000
你好，世界

";
    assert_eq!(Format::Srt.document("talk.wav", &awkward()), expected);
}

#[test]
fn vtt_is_that_of_the_reference() {
    let expected = "\
WEBVTT

00:00.000 --> 00:02.740
Ever tried -> ever failed.

00:03.600 --> 00:05.860
<i>No</i> & \"matter\",\tagain.

00:05.860 --> 00:05.860


01:01:00.500 --> 01:01:11.000
你好，世界

";
    assert_eq!(Format::Vtt.document("talk.wav", &awkward()), expected);
}

#[test]
fn pieces_add_up_to_the_document() {
    let transcript = awkward();
    for format in [Format::Txt, Format::Srt, Format::Vtt] {
        let mut whole = format.opening().to_owned();
        for (number, segment) in (1..).zip(&transcript.segments) {
            whole += &format.piece(number, segment).unwrap();
        }
        assert_eq!(
            whole,
            format.document("talk.wav", &transcript),
            "{format:?}"
        );
    }
}

#[test]
fn json_holds_every_field_of_the_reference_and_ours() {
    let text = Format::Json.document("talk.wav", &awkward());
    assert!(
        text.ends_with("}\n") && text.lines().count() == 1,
        "one line: {text}"
    );
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    let fields: Vec<_> = value
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    assert_eq!(
        fields,
        [
            "file",
            "duration",
            "language",
            "language_probability",
            "text",
            "segments"
        ]
    );
    let fields: Vec<_> = value["segments"][0]
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    let expected = [
        "id",
        "seek",
        "start",
        "end",
        "text",
        "tokens",
        "temperature",
        "avg_logprob",
        "compression_ratio",
        "no_speech_prob",
    ];
    assert_eq!(fields, expected);
    assert_eq!(value["segments"][0]["end"], 2.74);
    assert_eq!(value["segments"][0]["text"], " Ever tried --> ever failed.");
    assert!(
        text.contains(r#""temperature":0.2,"#),
        "shortest spelling: {text}"
    );
}

#[test]
fn json_of_numbers_that_are_none_is_null() {
    let mut odd = segment(f64::NAN, f64::INFINITY, " \u{1b}\u{0}");
    odd.avg_logprob = f64::NEG_INFINITY;
    odd.temperature = f32::NAN;
    odd.no_speech_prob = f64::NAN;
    let text = Format::Json.document("talk.wav", &transcript(vec![odd]));
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    for field in [
        "start",
        "end",
        "temperature",
        "avg_logprob",
        "no_speech_prob",
    ] {
        assert_eq!(
            value["segments"][0][field],
            serde_json::Value::Null,
            "{field}"
        );
    }
    assert!(
        !text.contains(|c: char| c.is_control() && c != '\n'),
        "escaped: {text}"
    );
}

#[test]
fn nothing_heard_is_an_empty_result_in_every_format() {
    let nothing = Transcript::default();
    assert_eq!(Format::Txt.document("talk.wav", &nothing), "");
    assert_eq!(Format::Srt.document("talk.wav", &nothing), "");
    assert_eq!(Format::Vtt.document("talk.wav", &nothing), "WEBVTT\n\n");
    assert_eq!(
        Format::Json.document("talk.wav", &nothing),
        concat!(
            r#"{"file":"talk.wav","duration":0.0,"language":null,"language_probability":null,"text":"","segments":[]}"#,
            "\n"
        )
    );
}
