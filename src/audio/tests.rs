//! Whole files through the whole room: every container, every way to be broken.

use std::f64::consts::TAU;
use std::io::{Cursor, Write};
use std::path::PathBuf;

use super::source::Source;
use super::*;

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
            all.len() < 200 * SAMPLE_RATE as usize,
            "far more samples than any test file can hold"
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
    drain(Samples::new(
        Source::new(Cursor::new(bytes)).unwrap(),
        "test".to_owned(),
    )?)
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
        let mut media = media::Media::open(&source, name).unwrap();
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
fn wave_headers_that_are_wrong_are_read_right() {
    let data: Vec<u8> = (0..8000i16).flat_map(|i| (i * 3).to_le_bytes()).collect();
    let n = data.len() as u32;
    // Sizes of the whole, of the samples and of the samples counted, all 64-bit.
    let ds64 = |bytes: u64| {
        [
            b"ds64\x1c\0\0\0",
            &[0; 8][..],
            &bytes.to_le_bytes(),
            &[0; 12],
        ]
        .concat()
    };
    let list = b"LIST\x05\0\0\0INFO?\0";
    let trailer = [&data[..], b"LIST\x04\0\0\0INFO"].concat();
    let cases: [(&str, Vec<u8>, f64); 9] = [
        ("plain", wave(b"RIFF", b"", n, &data), 0.0),
        (
            "streamed, all ones",
            wave(b"RIFF", b"", u32::MAX, &data),
            0.0,
        ),
        ("streamed, zero", wave(b"RIFF", b"", 0, &data), 0.0),
        (
            "streamed, 2 GiB",
            wave(b"RIFF", b"", 0x7fff_ffff, &data),
            0.0,
        ),
        ("odd chunk before", wave(b"RIFF", list, n, &data), 0.0),
        ("chunk behind", wave(b"RIFF", b"", n, &trailer), 0.0),
        ("RF64", wave(b"RF64", &ds64(n.into()), u32::MAX, &data), 0.0),
        (
            "RF64 of 5 GiB, cut",
            wave(b"RF64", &ds64(5 << 30), u32::MAX, &data),
            (5u64 << 30) as f64 / 16_000.0 - 1.0,
        ),
        ("cut to a half", wave(b"RIFF", b"", 2 * n, &data), 1.0),
    ];
    for (name, file, missing_secs) in cases {
        let decoded = decode(file).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(decoded.samples.len(), 16_000, "{name}");
        assert!(
            (decoded.damage.missing_secs - missing_secs).abs() < 1e-6,
            "{name}: {}",
            decoded.damage
        );
    }
}

#[test]
fn no_samples_are_no_error() {
    for file in [
        wave(b"RIFF", b"", 0, b""),
        wave(b"RIFF", b"", 0, b"LIST\x04\0\0\0INFO"),
    ] {
        let decoded = decode(file).unwrap();
        assert!(decoded.samples.is_empty() && decoded.damage.is_none());
    }
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
            "`test` has no known audio container: it looks like text",
        ),
        (
            "picture",
            b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec(),
            "`test` has no known audio container: it looks like a PNG picture",
        ),
        (
            "noise",
            vec![0x55; 5000],
            "`test` has no known audio container: it looks like text",
        ),
        (
            "zeros",
            vec![0; 5000],
            "`test` has no known audio container: it looks like unknown data",
        ),
        (
            "ac3",
            bytes("ac3.mp4"),
            "`test` (MP4) holds AC-3, a codec that is not supported",
        ),
        (
            "asf",
            bytes("wma.asf"),
            "`test` is Windows Media (ASF), a container that is not supported",
        ),
        (
            "video",
            bytes("video.mp4"),
            "no audio track in `test` (MP4)",
        ),
        (
            "header only",
            bytes("s16.wav")[..30].to_vec(),
            "nothing in `test` (WAV) can be decoded",
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

/// The noise that stands for broken media: never a valid sync word for long.
fn noise(seed: u64, n: usize) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(seed);
    (0..n).map(|_| random.u8(..)).collect()
}

#[test]
fn times_after_damage_stay_right() {
    // Bytes overwritten in the middle of the file; what follows must be where it was, as clean as it was.
    let mut failures: Vec<String> = Vec::new();
    for (file, at, n) in [
        ("cbr.mp3", 4000, 400),
        ("cbr.mp3", 3000, 1100),
        ("flac.ogg", 5000, 300),
        ("stereo.flac", 9000, 900),
        ("stereo.flac", 12_000, 900),
        ("aac.m4a", 2000, 200),
        ("alac.m4a", 3000, 300),
        ("s16.wav", 4000, 500),
    ] {
        let clean = decode_file(file).unwrap().samples;
        for seed in 0..20 {
            let mut broken = bytes(file);
            broken[at..at + n].copy_from_slice(&noise(seed, n));
            let decoded = match decode(broken) {
                Ok(decoded) => decoded,
                Err(e) => {
                    failures.push(format!("{file}, seed {seed}: {e}"));
                    continue;
                }
            };
            let (n, found) = (clean.len(), decoded.samples.len());
            if found.abs_diff(n) > 1 {
                failures.push(format!(
                    "{file}, seed {seed}: {found} and {n} samples, {}",
                    decoded.damage
                ));
                continue;
            }
            let snr = snr_db(&decoded.samples, |i| clean[i].into(), n - 1300..n - 100);
            // Samples and ALAC carry no checksum: noise among them cannot be told from sound.
            if snr < 15.0 || (decoded.damage.is_none() && !matches!(file, "s16.wav" | "alac.m4a")) {
                failures.push(format!(
                    "{file}, seed {seed}: {snr:.1} dB, {}",
                    decoded.damage
                ));
            }
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

#[test]
fn cut_files_give_what_is_left() {
    for case in &CASES {
        let whole = bytes(case.file);
        let all = decode_file(case.file).unwrap().samples.len();
        let mut last = 0;
        for sixteenth in 1..16 {
            let n = decode(whole[..whole.len() * sixteenth / 16].to_vec())
                .map_or(0, |d| d.samples.len());
            assert!(
                n <= all + 100,
                "{} cut to {sixteenth}/16: {n} of {all} samples",
                case.file
            );
            last = n;
        }
        // MP4 has its index behind the samples.
        let whole_only = case.container == "MP4";
        assert!(
            whole_only || last * 4 > all,
            "{} cut to 15/16: {last} of {all} samples",
            case.file
        );
    }
    let cut_front = decode(bytes("cbr.mp3")[3333..].to_vec()).unwrap();
    assert!(
        cut_front.samples.len() > 16_000,
        "the rest of a file whose front is cut off"
    );
}

#[test]
fn random_damage_never_panics() {
    let mut random = fastrand::Rng::with_seed(7);
    for case in &CASES {
        let whole = bytes(case.file);
        for _ in 0..60 {
            let mut broken = whole.clone();
            for _ in 0..random.usize(1..20) {
                // Headers are where it hurts most.
                let end = if random.bool() {
                    broken.len().min(600)
                } else {
                    broken.len()
                };
                let at = random.usize(..end);
                broken[at] = if random.bool() {
                    random.u8(..)
                } else {
                    [0, 1, 0x7f, 0x80, 0xff][random.usize(..5)]
                };
            }
            let _ = decode(broken);
        }
    }
}
