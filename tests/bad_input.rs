//! What is wrong with an input or a model is one line that names it, and the right exit code; the others go on.
#![cfg(feature = "bundled-whisper")]
#![allow(
    clippy::unwrap_used,
    reason = "this is test code, though not every function is a test"
)]

mod model_files;
mod program;

use model_files::{Weights, config, pickle_archive, safetensors};
use program::{Ended, Place, sample, words};

fn sample_bytes() -> Vec<u8> {
    std::fs::read(sample()).unwrap()
}

#[track_caller]
fn fails_alone(place: &Place, input: &str, code: i32) -> Ended {
    let ended = place.run(&["asr", "whisper", input]).expect(code);
    assert_eq!(ended.stdout, "");
    assert!(
        ended.error_line().contains(input),
        "names the input: {}",
        ended.stderr
    );
    ended
}

#[test]
fn an_input_that_is_not_there_is_not_found() {
    let ended = fails_alone(&Place::new(), "nofile.wav", 3);
    assert!(
        ended.error_line().contains("no such file"),
        "{}",
        ended.stderr
    );
}

#[test]
fn an_empty_file_is_called_empty() {
    let place = Place::new();
    let ended = fails_alone(&place, place.file("empty.wav", b""), 11);
    assert!(ended.error_line().contains("empty"), "{}", ended.stderr);
    let ended = place.run_with_stdin(&["asr", "whisper"], b"").expect(11);
    assert!(
        ended.error_line().contains("stdin") && ended.stderr.contains("empty"),
        "{}",
        ended.stderr
    );
}

#[test]
fn what_is_no_audio_is_bad_input() {
    let place = Place::new();
    let header = &sample_bytes()[..20];
    let noise: Vec<u8> = (0..50_000_u32)
        .map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    let cases = [
        place.file(
            "text.wav",
            b"It was the best of times, it was the worst of times.\n",
        ),
        place.file("header-cut.wav", header),
        place.file(
            "page.mp3",
            b"<!DOCTYPE html><html><body>Not found</body></html>",
        ),
        place.file("noise.flac", &[b"fLaC", &noise[..]].concat()),
        place.file("noise.ogg", &[b"OggS", &noise[..]].concat()),
    ];
    for input in cases {
        fails_alone(&place, input, 11);
    }
}

#[test]
fn a_directory_is_no_input() {
    let place = Place::new();
    std::fs::create_dir(place.path("album")).unwrap();
    let ended = fails_alone(&place, "album", 11);
    assert!(ended.error_line().contains("directory"), "{}", ended.stderr);
}

#[cfg(unix)]
#[test]
fn a_file_that_may_not_be_read_is_said_to_be_so() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    let input = place.sample("secret.wav");
    let path = place.path(input);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o000)).unwrap();
    if std::fs::File::open(&path).is_ok() {
        eprintln!("skipped: this user may read everything");
        return;
    }
    let ended = fails_alone(&place, input, 11);
    assert!(
        ended
            .error_line()
            .to_lowercase()
            .contains("permission denied"),
        "{}",
        ended.stderr
    );
}

#[test]
fn a_wav_that_is_cut_short_is_transcribed_as_far_as_it_goes() {
    let place = Place::new();
    let bytes = sample_bytes();
    let ended = place
        .run(&[
            "asr",
            "whisper",
            place.file("cut.wav", &bytes[..bytes.len() * 6 / 10]),
        ])
        .expect(0);
    assert_eq!(
        words(&ended.stdout)[..5],
        ["and", "so", "my", "fellow", "americans"]
    );
}

#[test]
fn one_bad_file_among_good_ones_is_exit_9() {
    let place = Place::new();
    let (good, bad) = (place.sample("good.wav"), place.file("bad.wav", b"no audio"));
    let alone = place.run(&["asr", "whisper", "-q", good]).expect(0).stdout;
    for inputs in [
        [good, bad, "nofile.wav"],
        [bad, "nofile.wav", good],
        ["nofile.wav", good, bad],
    ] {
        let ended = place
            .run(&[&["asr", "whisper", "-q"], &inputs[..]].concat())
            .expect(9);
        assert_eq!(ended.stdout, alone, "{inputs:?}");
        for name in [bad, "nofile.wav"] {
            let lines = ended
                .stderr
                .lines()
                .filter(|line| !line.starts_with("hint: ") && line.contains(name));
            assert_eq!(lines.count(), 1, "{name}: {}", ended.stderr);
        }
        assert!(
            ended.stderr.ends_with("pretrained: 2 of 3 inputs failed\n"),
            "{}",
            ended.stderr
        );
    }
}

#[test]
fn json_lists_what_failed_and_why() {
    let place = Place::new();
    let (good, bad) = (place.sample("good.wav"), place.file("bad.wav", b"no audio"));
    let ended = place
        .run(&["asr", "whisper", "--json", bad, good])
        .expect(9);
    let document = ended.json();
    assert_eq!(document["files"].as_array().unwrap().len(), 1);
    assert_eq!(
        (
            &document["failed"][0]["file"],
            &document["failed"][0]["code"]
        ),
        (&bad.into(), &11.into())
    );
    assert_eq!(ended.error_object()["kind"], "partial");

    let ended = place
        .run(&["asr", "whisper", "--json", "nofile.wav"])
        .expect(3);
    let object = ended.error_object();
    assert_eq!(
        (&object["kind"], &object["file"]),
        (&"not_found".into(), &"nofile.wav".into())
    );
    assert_eq!(ended.json()["failed"][0]["code"], 3);
}

#[test]
fn an_unknown_model_is_not_found_and_a_near_name_is_offered() {
    let ended = Place::new()
        .run(&["asr", "whisper", "-m", "tinny", sample().to_str().unwrap()])
        .expect(3);
    assert!(ended.error_line().contains("`tinny`"), "{}", ended.stderr);
    assert!(
        ended.stderr.contains("did you mean") && ended.stderr.contains("tiny"),
        "{}",
        ended.stderr
    );
}

#[test]
fn a_model_path_that_is_not_there_is_not_found() {
    let ended = Place::new()
        .run(&[
            "asr",
            "whisper",
            "-m",
            "./no/model.pt",
            sample().to_str().unwrap(),
        ])
        .expect(3);
    assert!(
        ended.error_line().contains("no/model.pt"),
        "{}",
        ended.stderr
    );
}

#[test]
fn a_known_model_that_is_not_here_is_offline() {
    let ended = Place::new()
        .run(&[
            "asr",
            "whisper",
            "-m",
            "well-known:base",
            sample().to_str().unwrap(),
        ])
        .expect(4);
    assert!(ended.error_line().contains("base"), "{}", ended.stderr);
}

/// Runs with the weights `bytes` as a Hugging Face directory, and gives how it ended.
#[track_caller]
fn with_weights(bytes: &[u8], code: i32, named: &[&str]) {
    let place = Place::new();
    place.file("model/config.json", config().as_bytes());
    place.file("model/model.safetensors", bytes);
    let ended = place
        .run(&[
            "asr",
            "whisper",
            "-m",
            "./model",
            sample().to_str().unwrap(),
        ])
        .expect(code);
    assert_eq!(ended.stdout, "");
    let line = ended.error_line();
    assert!(
        named.iter().all(|name| line.contains(name)),
        "{named:?}: {line}"
    );
}

// Messages name a tensor in OpenAI's spelling, whichever the file uses.

#[test]
fn weights_that_lack_a_tensor_name_it() {
    let mut weights = Weights::small();
    weights.remove("model.decoder.layers.0.encoder_attn.v_proj.bias");
    with_weights(
        &safetensors(&weights),
        12,
        &["decoder.blocks.0.cross_attn.value.bias"],
    );
}

#[test]
fn weights_of_another_shape_name_the_tensor_and_both_shapes() {
    let mut weights = Weights::small();
    weights.reshape("model.encoder.layer_norm.weight", &[63]);
    with_weights(
        &safetensors(&weights),
        8,
        &["encoder.ln_post.weight", "63", "64"],
    );
}

#[test]
fn damaged_safetensors_are_told_by_name() {
    let whole = safetensors(&Weights::small());
    let huge_header = [&(u64::MAX / 2).to_le_bytes()[..], &whole[8..]].concat();
    let not_json = [&16_u64.to_le_bytes()[..], b"{not json at all"].concat();
    for bytes in [
        &whole[..whole.len() - 1],
        &whole[..100],
        &whole[..7],
        &huge_header,
        &not_json,
    ] {
        with_weights(bytes, 12, &["model.safetensors"]);
    }
}

#[test]
fn a_pickle_that_names_another_global_is_refused_by_that_name() {
    let place = Place::new();
    place.file("evil.pt", &pickle_archive("posix", "system"));
    for command in [
        &["asr", "whisper", "-m", "./evil.pt", "talk.wav"][..],
        &["inspect", "./evil.pt"],
    ] {
        let ended = place.run(command).expect(12);
        let line = ended.error_line();
        let named = if cfg!(feature = "pickle") {
            ["evil.pt", "posix.system"]
        } else {
            ["evil.pt", "feature `pickle`"]
        };
        assert!(named.iter().all(|name| line.contains(name)), "{line}");
    }
}

#[test]
fn a_config_that_is_no_json_is_told_by_file_line_and_column() {
    let place = Place::new();
    place.file(
        "model/config.json",
        b"{\"model_type\": \"whisper\",\n \"d_model\" 64}",
    );
    place.file("model/model.safetensors", &safetensors(&Weights::small()));
    for command in [
        &["asr", "whisper", "-m", "./model", "talk.wav"][..],
        &["inspect", "./model"],
    ] {
        let ended = place.run(command).expect(12);
        let line = ended.error_line();
        assert!(
            line.contains("./model/config.json: expected `:` at line 2 column 12"),
            "{line}"
        );
    }
}

#[test]
fn a_model_of_another_family_is_not_supported_by_that_name() {
    let place = Place::new();
    let other = config().replace("\"whisper\"", "\"wav2vec2\"");
    place.file("model/config.json", other.as_bytes());
    place.file("model/model.safetensors", &safetensors(&Weights::small()));
    let ended = place
        .run(&["asr", "whisper", "-m", "./model", "talk.wav"])
        .expect(12);
    let line = ended.error_line();
    assert!(
        line.contains("not supported") && line.contains("`wav2vec2`") && line.contains("`whisper`"),
        "{line}"
    );
}
