//! Flags as users of the other whisper programs type them, turned into ours before parsing.

use std::ffi::OsString;

/// Words of whisper.cpp's `whisper-cli` that begin with one dash. Parsed by our grammar they would mean something else
/// without saying so: `-osrt` would be `-o srt`, a directory.
const SINGLE_DASH: [(&str, &str); 6] = [
    ("-otxt", "--format=txt"),
    ("-osrt", "--format=srt"),
    ("-ovtt", "--format=vtt"),
    ("-oj", "--format=json"),
    ("-tr", "--task=translate"),
    ("-np", "--quiet"),
];

/// `args` in our spelling: long flags with dashes for underscores, and [`SINGLE_DASH`] under `asr`. What follows `--`
/// are names, and stays.
pub(super) fn ours(args: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut asr = false;
    let mut names = false;
    args.map(|arg| {
        let Some(text) = arg.to_str().filter(|_| !names) else {
            return arg;
        };
        names = text == "--";
        asr |= text == "asr";
        if text.starts_with("--") {
            return with_dashes(text).into();
        }
        let peer = SINGLE_DASH
            .iter()
            .find(|(theirs, _)| asr && *theirs == text);
        peer.map_or(arg, |(_, ours)| ours.into())
    })
    .collect()
}

/// `--output_dir=a_b` as `--output-dir=a_b`.
fn with_dashes(flag: &str) -> String {
    let (name, value) = flag.split_at(flag.find('=').unwrap_or(flag.len()));
    name.replace('_', "-") + value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_flags_before_the_names_are_respelled() {
        let cases = [
            (
                "asr whisper --output_dir=a_b a_b.wav",
                "asr whisper --output-dir=a_b a_b.wav",
            ),
            (
                "asr whisper -osrt -tr x.wav",
                "asr whisper --format=srt --task=translate x.wav",
            ),
            (
                "inspect -osrt --cache_dir d_e",
                "inspect -osrt --cache-dir d_e",
            ),
            ("asr whisper -- --a_b -osrt", "asr whisper -- --a_b -osrt"),
        ];
        for (typed, expected) in cases {
            let ours = ours(typed.split(' ').map(OsString::from));
            assert_eq!(
                ours,
                expected.split(' ').map(OsString::from).collect::<Vec<_>>(),
                "{typed}"
            );
        }
    }
}
