//! Broken files: wrong headers, ends cut off, bytes overwritten.

use super::*;

/// The noise that stands for broken media: never a valid sync word for long.
fn noise(seed: u64, n: usize) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(seed);
    (0..n).map(|_| random.u8(..)).collect()
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
