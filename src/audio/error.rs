//! Why audio cannot be had from an input.

use std::io;

/// Why audio cannot be had from an input. The input itself is not named: whoever opened it knows, and puts its name in
/// front, as in `talk.wav: no such file`.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is nothing at the path.
    #[error("no such file")]
    NotFound,
    /// The path is a directory.
    #[error("is a directory, not an audio file")]
    Directory,
    /// The operating system refuses to open or read the input.
    #[error("cannot read")]
    Read {
        /// What the operating system said.
        #[source]
        source: io::Error,
    },
    /// What cannot seek is kept in a temporary file, and that cannot be written.
    #[error("cannot keep it in a temporary file; TMPDIR says where those are")]
    Spool {
        /// What the operating system said.
        #[source]
        source: io::Error,
    },
    /// The input has no bytes at all.
    #[error("empty file")]
    Empty,
    /// The content is something else, or nothing that is known.
    #[error("no known audio container: it looks like {found}")]
    NotAudio {
        /// What the first bytes look like.
        found: &'static str,
    },
    /// The content is a media container that is not supported.
    #[error("{container} is a container that is not supported")]
    UnsupportedContainer {
        /// The container.
        container: &'static str,
    },
    /// The container holds no sound.
    #[error("no audio track in the {container} container")]
    NoAudioTrack {
        /// The container.
        container: &'static str,
    },
    /// The sound is coded in a way that is not supported.
    #[error("{container} holds {codec}, a codec that is not supported")]
    UnsupportedCodec {
        /// The container.
        container: &'static str,
        /// The codec.
        codec: String,
    },
    /// The sample rate is outside [`RATES_HZ`](super::RATES_HZ).
    #[error("sample rate of {rate_hz} Hz, supported are 1000 to 768000 Hz")]
    UnsupportedRate {
        /// Its rate in Hz.
        rate_hz: u32,
    },
    /// A known container, yet not one sample of it can be decoded.
    #[error("cannot decode: nothing in the {container} container is readable")]
    Undecodable {
        /// The container.
        container: &'static str,
    },
}
