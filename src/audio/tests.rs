//! Whole files through the whole room: every container, every way to be broken.

use std::f64::consts::TAU;
use std::io::{Cursor, Write};
use std::path::PathBuf;

use super::source::Source;
use super::*;

mod damage;

/// What `tests/data/audio/make.sh` puts into every file.
fn signal(t: f64) -> f64 {
    0.4 * (TAU * (300.0 * t + 400.0 * t * t)).sin() * (0.6 + 0.4 * (3.0 * TAU * t).sin())
}

struct Case {
    file: &'static str,
    container: &'static str,
    secs: f64,
    /// Mean of the channels, of which the second is half as loud and all others are silent.
    gain: f64,
    /// Signal to noise that the codec reaches at least.
    snr_db: f64,
    /// Seconds of warm-up that the codec puts before the signal, where its container does not tell.
    late_secs: f64,
    /// Samples that the codec may add at the end, at 16 kHz, where its container does not count them.
    padding: usize,
}

const MPEG: &str = "MPEG audio";
const MKV: &str = "Matroska/WebM";

const EXACT: Case = Case {
    file: "",
    container: "",
    secs: 0.5,
    gain: 1.0,
    snr_db: 70.0,
    late_secs: 0.0,
    padding: 0,
};

const CASES: [Case; 28] = [
    Case {
        file: "s16.wav",
        container: "WAV",
        ..EXACT
    },
    Case {
        file: "alaw.wav",
        container: "WAV",
        snr_db: 30.0,
        ..EXACT
    },
    Case {
        file: "mulaw.wav",
        container: "WAV",
        snr_db: 30.0,
        ..EXACT
    },
    Case {
        file: "adpcm_ms.wav",
        container: "WAV",
        snr_db: 25.0,
        padding: 1012,
        ..EXACT
    },
    Case {
        file: "adpcm_ima.wav",
        container: "WAV",
        snr_db: 25.0,
        padding: 1017,
        ..EXACT
    },
    Case {
        file: "rf64.wav",
        container: "WAV",
        ..EXACT
    },
    Case {
        file: "s16.aiff",
        container: "AIFF",
        ..EXACT
    },
    Case {
        file: "s16.caf",
        container: "CAF",
        ..EXACT
    },
    Case {
        file: "alac.m4a",
        container: "MP4",
        ..EXACT
    },
    Case {
        file: "stereo.flac",
        container: "FLAC",
        secs: 0.3,
        gain: 0.75,
        padding: 1,
        ..EXACT
    },
    Case {
        file: "flac.ogg",
        container: "Ogg",
        ..EXACT
    },
    Case {
        file: "cbr.mp3",
        container: MPEG,
        secs: 2.0,
        snr_db: 15.0,
        ..EXACT
    },
    Case {
        file: "vbr.mp3",
        container: MPEG,
        gain: 0.75,
        snr_db: 15.0,
        ..EXACT
    },
    Case {
        file: "no_xing.mp3",
        container: MPEG,
        snr_db: 25.0,
        late_secs: 1105.0 / 24_000.0,
        padding: 1500,
        ..EXACT
    },
    Case {
        file: "layer2.mp2",
        container: MPEG,
        snr_db: 25.0,
        late_secs: 481.0 / 32_000.0,
        padding: 1000,
        ..EXACT
    },
    Case {
        file: "vorbis.ogg",
        container: "Ogg",
        gain: 0.75,
        snr_db: 15.0,
        ..EXACT
    },
    Case {
        file: "vorbis.webm",
        container: MKV,
        snr_db: 25.0,
        late_secs: 128.0 / 48_000.0,
        padding: 400,
        ..EXACT
    },
    Case {
        file: "aac.m4a",
        container: "MP4",
        snr_db: 15.0,
        padding: 400,
        ..EXACT
    },
    Case {
        file: "aac.aac",
        container: "ADTS",
        snr_db: 15.0,
        late_secs: 1024.0 / 32_000.0,
        padding: 1024,
        ..EXACT
    },
    Case {
        file: "aac.mkv",
        container: MKV,
        snr_db: 15.0,
        late_secs: 1024.0 / 48_000.0,
        padding: 800,
        ..EXACT
    },
    Case {
        file: "silk_20ms.opus",
        container: "Ogg",
        snr_db: 8.0,
        ..EXACT
    },
    Case {
        file: "silk_60ms.opus",
        container: "Ogg",
        snr_db: 8.0,
        ..EXACT
    },
    Case {
        file: "hybrid.opus",
        container: "Ogg",
        snr_db: 8.0,
        ..EXACT
    },
    Case {
        file: "celt.opus",
        container: "Ogg",
        gain: 0.75,
        snr_db: 15.0,
        ..EXACT
    },
    Case {
        file: "celt_5ms.opus",
        container: "Ogg",
        secs: 0.3,
        snr_db: 15.0,
        ..EXACT
    },
    Case {
        file: "surround.opus",
        container: "Ogg",
        secs: 0.3,
        gain: 0.25,
        snr_db: 15.0,
        ..EXACT
    },
    Case {
        file: "opus.webm",
        container: MKV,
        gain: 0.75,
        snr_db: 15.0,
        padding: 320,
        ..EXACT
    },
    Case {
        file: "opus.mp4",
        container: "MP4",
        snr_db: 15.0,
        padding: 320,
        ..EXACT
    },
];

fn path(file: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests/data/audio", file]
        .iter()
        .collect()
}

fn bytes(file: &str) -> Vec<u8> {
    std::fs::read(path(file)).unwrap()
}

struct Decoded {
    samples: Vec<f32>,
    damage: Damage,
    container: &'static str,
}

fn drain(mut samples: Samples) -> Result<Decoded, Error> {
    let mut all = Vec::new();
    while let Some(block) = samples.next_block()? {
        all.extend_from_slice(block);
        assert!(
            all.len() < 700 * SAMPLE_RATE as usize,
            "more than the silence that is put in at most"
        );
    }
    Ok(Decoded {
        samples: all,
        damage: samples.damage(),
        container: samples.container(),
    })
}

fn decode_file(file: &str) -> Result<Decoded, Error> {
    drain(open(&Input::Path(path(file)))?)
}

fn decode(bytes: Vec<u8>) -> Result<Decoded, Error> {
    drain(Samples::new(Source::new(Cursor::new(bytes)).unwrap())?)
}

/// How far `found` stands above its difference from `expected`, in dB; both ends are left out, where filters ring.
fn snr_db(found: &[f32], expected: impl Fn(usize) -> f64, range: std::ops::Range<usize>) -> f64 {
    let (mut power, mut noise) = (0.0, 1e-20);
    for i in range {
        power += expected(i).powi(2);
        noise += (f64::from(found[i]) - expected(i)).powi(2);
    }
    10.0 * (power / noise).log10()
}

#[test]
fn every_container_gives_the_same_signal() {
    let mut failures = Vec::new();
    for case in &CASES {
        let decoded = match decode_file(case.file) {
            Ok(decoded) => decoded,
            Err(e) => {
                failures.push(format!("{}: {e}", case.file));
                continue;
            }
        };
        let n = (case.secs * f64::from(SAMPLE_RATE)).round() as usize;
        let expected =
            |i: usize| case.gain * signal(i as f64 / f64::from(SAMPLE_RATE) - case.late_secs);
        let snr = if decoded.samples.len() < n {
            f64::NAN
        } else {
            snr_db(&decoded.samples, expected, 1000..n - 400)
        };
        let extra = decoded.samples.len() as i64 - n as i64;
        eprintln!(
            "{}: {snr:.1} dB, {extra} samples more, {}",
            case.file, decoded.damage
        );
        let well = snr >= case.snr_db
            && (0..=case.padding as i64).contains(&extra)
            && decoded.container == case.container
            && decoded.damage.is_none();
        if !well {
            failures.push(format!(
                "{} ({}): {snr:.1} dB, {extra} samples more, {}",
                case.file, decoded.container, decoded.damage
            ));
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

#[test]
fn opus_equals_libopus_in_every_mode() {
    for name in ["silk_20ms", "silk_60ms", "hybrid", "celt", "celt_5ms"] {
        let source = Source::new(Cursor::new(bytes(&format!("{name}.opus")))).unwrap();
        let mut media = media::Media::open(&source).unwrap();
        let (mut pcm, mut all, mut channels) = (Vec::<f32>::new(), Vec::new(), 0);
        while let Some(packet) = media.next_packet().unwrap() {
            let decoded = media.decode(&packet).unwrap();
            decoded.copy_to_vec_interleaved(&mut pcm);
            channels = decoded.num_planes();
            all.extend_from_slice(&pcm);
        }
        let pre_skip = (media.skip_secs * 48_000.0).round() as usize;
        let expected = bytes(&format!("{name}.s16le"));
        let expected: Vec<i16> = expected
            .chunks(2)
            .map(|b| i16::from_le_bytes([b[0], b[1]]))
            .collect();
        let found = all.chunks(channels).skip(pre_skip).step_by(16).flatten();
        assert!(
            expected.iter().any(|x| x.unsigned_abs() > 5000),
            "{name}: a golden of silence shows nothing"
        );
        let mut n = 0;
        for (found, expected) in found.zip(&expected) {
            let difference = (found * 32_768.0 - f32::from(*expected)).abs();
            // The reference's fixed-point and float builds differ by this much too.
            assert!(
                difference <= 8.0,
                "{name}, value {n}: {difference} of 32768"
            );
            n += 1;
        }
        assert_eq!(n, expected.len(), "{name}");
    }
}

/// A wave header in front of `data`: 8 kHz mono, 16 bits.
fn wave(magic: &[u8; 4], before: &[u8], data_size: u32, data: &[u8]) -> Vec<u8> {
    let mut file = magic.to_vec();
    file.extend_from_slice(b"\xff\xff\xff\xffWAVE");
    file.extend_from_slice(before);
    file.extend_from_slice(b"fmt \x10\0\0\0\x01\0\x01\0\x40\x1f\0\0\x80\x3e\0\0\x02\0\x10\0data");
    file.extend_from_slice(&data_size.to_le_bytes());
    file.extend_from_slice(data);
    file
}

#[test]
fn every_sample_format_of_wave_files_is_read() {
    let value = |i: usize| signal(i as f64 / 16_000.0);
    let formats = [8, 16, 24, 32].map(|bits| (bits, hound::SampleFormat::Int));
    for (bits_per_sample, sample_format) in formats
        .into_iter()
        .chain([(32, hound::SampleFormat::Float)])
    {
        for channels in [1, 2, 3, 8] {
            let spec = hound::WavSpec {
                channels,
                sample_rate: 16_000,
                bits_per_sample,
                sample_format,
            };
            let mut file = Cursor::new(Vec::new());
            let mut writer = hound::WavWriter::new(&mut file, spec).unwrap();
            for i in 0..4000 * usize::from(channels) {
                let x = value(i / usize::from(channels));
                match sample_format {
                    hound::SampleFormat::Float => writer.write_sample(x as f32).unwrap(),
                    hound::SampleFormat::Int => {
                        let scale = (1u64 << (bits_per_sample - 1)) as f64;
                        writer.write_sample((x * scale).round() as i32).unwrap();
                    }
                }
            }
            writer.finalize().unwrap();
            let decoded = decode(file.into_inner()).unwrap();
            assert_eq!(decoded.samples.len(), 4000);
            let snr = snr_db(&decoded.samples, value, 0..4000);
            let least = 6.0 * f64::from(bits_per_sample.min(20)) - 13.0;
            assert!(
                snr > least,
                "{bits_per_sample} bits, {channels} channels: {snr:.1} dB"
            );
        }
    }
}

#[test]
fn values_that_are_no_numbers_are_silence() {
    let data: Vec<u8> = [f32::NAN, 0.5, f32::INFINITY, -0.5]
        .iter()
        .flat_map(|x| x.to_le_bytes())
        .collect();
    let mut file = wave(b"RIFF", b"", 16, &data);
    // 16 kHz, 32-bit float.
    file[20..36].copy_from_slice(b"\x03\0\x01\0\x80\x3e\0\0\0\xfa\0\0\x04\0\x20\0");
    assert_eq!(decode(file).unwrap().samples, [0.0, 0.5, 0.0, -0.5]);
}

#[test]
fn what_is_no_audio_is_named() {
    let message = |result: Result<Decoded, Error>| {
        result
            .err()
            .map_or("no error".to_owned(), |e| e.to_string())
    };
    let cases: [(&str, Vec<u8>, &str); 8] = [
        (
            "text",
            b"hello, world\n".repeat(50),
            "no known audio container: it looks like text",
        ),
        (
            "picture",
            b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec(),
            "no known audio container: it looks like a PNG picture",
        ),
        (
            "noise",
            vec![0x55; 5000],
            "no known audio container: it looks like text",
        ),
        (
            "zeros",
            vec![0; 5000],
            "no known audio container: it looks like unknown data",
        ),
        (
            "ac3",
            bytes("ac3.mp4"),
            "MP4 holds AC-3, a codec that is not supported",
        ),
        (
            "asf",
            bytes("wma.asf"),
            "Windows Media (ASF) is a container that is not supported",
        ),
        (
            "video",
            bytes("video.mp4"),
            "no audio track in the MP4 container",
        ),
        (
            "header only",
            bytes("s16.wav")[..30].to_vec(),
            "cannot decode: nothing in the WAV container is readable",
        ),
    ];
    for (name, file, expected) in cases {
        assert_eq!(message(decode(file)), expected, "{name}");
    }
}

#[test]
fn extensions_and_tags_do_not_matter() {
    let dir = tempfile::tempdir().unwrap();
    let clean = decode_file("cbr.mp3").unwrap().samples;
    // An ID3 tag (3 MiB by its size of four times seven bits) that looks like MPEG audio throughout.
    let mut file = b"ID3\x04\0\0\x01\x40\0\0".to_vec();
    file.extend(b"\xff\xfb\x90\x64".repeat(3 << 18));
    file.extend(bytes("cbr.mp3"));
    let tagged = dir.path().join("talk.flac");
    std::fs::File::create(&tagged)
        .unwrap()
        .write_all(&file)
        .unwrap();
    let decoded = drain(open(&Input::from_arg(tagged)).unwrap()).unwrap();
    assert!(decoded.samples == clean && decoded.container == MPEG);
}
