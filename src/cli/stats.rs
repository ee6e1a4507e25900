//! Where the time and the memory of a run went.

use std::time::Duration;

use serde::Serialize;

use super::json::{line, round_ms};

/// Figures of one run; times in seconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Stats {
    /// Length of the audio that was transcribed.
    pub(crate) audio_s: Option<f64>,
    /// From the start of the command to its end.
    pub(crate) wall_s: Option<f64>,
    /// Finding and loading the model.
    pub(crate) load_s: Option<f64>,
    /// Reading the audio and computing its features.
    pub(crate) read_s: Option<f64>,
    /// Running the encoder.
    pub(crate) encode_s: Option<f64>,
    /// Running the decoder.
    pub(crate) decode_s: Option<f64>,
    /// Tokens in the transcripts, timestamps included.
    pub(crate) tokens: usize,
    /// Most memory that was resident at once; `None` where the system does not tell.
    pub(crate) peak_rss_bytes: Option<u64>,
    /// Threads that computed.
    pub(crate) threads: usize,
    /// Instruction set of the kernels in use.
    pub(crate) isa: String,
    /// Where it ran.
    pub(crate) device: String,
}

impl Stats {
    /// One line of JSON, the `pretrained.stats/1` schema.
    pub(crate) fn json(&self) -> String {
        #[derive(Serialize)]
        struct Document<'a> {
            schema: &'static str,
            #[serde(flatten)]
            stats: &'a Stats,
        }
        line(&Document {
            schema: "pretrained.stats/1",
            stats: self,
        })
    }

    /// One line for people.
    pub(crate) fn text(&self) -> String {
        let secs = |value: Option<f64>| {
            value.map_or_else(|| "?".to_owned(), |secs| format!("{secs:.2} s"))
        };
        let speed = match (self.audio_s, self.wall_s) {
            (Some(audio), Some(wall)) if wall > 0.0 => format!(" ({:.1}x real time)", audio / wall),
            _ => String::new(),
        };
        let memory = self.peak_rss_bytes.map_or_else(String::new, |bytes| {
            format!("; peak memory {:.0} MB", bytes as f64 / 1e6)
        });
        format!(
            "{} of audio in {}{speed}: load {}, read {}, encode {}, decode {}; {} tokens{memory}; {}, {}, {}",
            secs(self.audio_s),
            secs(self.wall_s),
            secs(self.load_s),
            secs(self.read_s),
            secs(self.encode_s),
            secs(self.decode_s),
            self.tokens,
            if self.threads == 1 {
                "1 thread".to_owned()
            } else {
                format!("{} threads", self.threads)
            },
            self.isa,
            self.device,
        )
    }
}

/// `duration` as the statistics hold it.
pub(crate) fn secs(duration: Duration) -> Option<f64> {
    round_ms(duration.as_secs_f64())
}

/// Most memory this process has had resident, in bytes: `VmHWM` of `/proc/self/status`, so `None` outside Linux.
pub(crate) fn peak_rss_bytes() -> Option<u64> {
    parse_peak_rss(&std::fs::read_to_string("/proc/self/status").ok()?)
}

fn parse_peak_rss(status: &str) -> Option<u64> {
    let value = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = value.trim().strip_suffix("kB")?.trim_end().parse().ok()?;
    kibibytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Stats {
        Stats {
            audio_s: Some(11.0),
            wall_s: secs(Duration::from_micros(550_400)),
            load_s: Some(0.08),
            tokens: 26,
            peak_rss_bytes: Some(180_000_000),
            threads: 2,
            isa: "avx2".into(),
            device: "cpu".into(),
            ..Stats::default()
        }
    }

    #[test]
    fn the_json_line_names_its_schema_and_leaves_the_unknown_null() {
        let value: serde_json::Value = serde_json::from_str(&example().json()).unwrap();
        assert_eq!(value["schema"], "pretrained.stats/1");
        assert_eq!(value["wall_s"], 0.55);
        assert_eq!(value["encode_s"], serde_json::Value::Null);
        assert_eq!(value["peak_rss_bytes"], 180_000_000);
    }

    #[test]
    fn the_text_line_gives_the_speed() {
        let text = example().text();
        assert!(
            text.starts_with("11.00 s of audio in 0.55 s (20.0x real time): load 0.08 s, read ?"),
            "{text}"
        );
        assert!(
            text.contains("peak memory 180 MB; 2 threads, avx2, cpu"),
            "{text}"
        );
    }

    #[test]
    fn peak_memory_is_read_from_the_status_file() {
        assert_eq!(
            parse_peak_rss("Name:\tx\nVmHWM:\t  1234 kB\nVmRSS:\t 1 kB\n"),
            Some(1234 * 1024)
        );
        for odd in [
            "",
            "VmHWM:",
            "VmHWM:\t-1 kB",
            "VmHWM:\t12 MB",
            "VmHWM:\t99999999999999999999 kB",
        ] {
            assert_eq!(parse_peak_rss(odd), None, "{odd}");
        }
    }
}
