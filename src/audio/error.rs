//! Why audio cannot be had from an input.

use std::io;

/// Why audio cannot be had from an input. Every variant names the input as it was given.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is nothing at the path.
    #[error("no such file `{name}`")]
    NotFound {
        /// The input as given.
        name: String,
    },
    /// The path is a directory.
    #[error("`{name}` is a directory, not an audio file")]
    Directory {
        /// The input as given.
        name: String,
    },
    /// The operating system refuses to open or read the input.
    #[error("cannot read `{name}`")]
    Read {
        /// The input as given.
        name: String,
        /// What the operating system said.
        #[source]
        source: io::Error,
    },
    /// The input has no bytes at all.
    #[error("empty file `{name}`")]
    Empty {
        /// The input as given.
        name: String,
    },
    /// The content is something else, or nothing that is known.
    #[error("`{name}` has no known audio container: it looks like {found}")]
    NotAudio {
        /// The input as given.
        name: String,
        /// What the first bytes look like.
        found: &'static str,
    },
    /// The content is a media container that is not supported.
    #[error("`{name}` is {container}, a container that is not supported")]
    UnsupportedContainer {
        /// The input as given.
        name: String,
        /// The container.
        container: &'static str,
    },
    /// The container holds no sound.
    #[error("no audio track in `{name}` ({container})")]
    NoAudioTrack {
        /// The input as given.
        name: String,
        /// The container.
        container: &'static str,
    },
    /// The sound is coded in a way that is not supported.
    #[error("`{name}` ({container}) holds {codec}, a codec that is not supported")]
    UnsupportedCodec {
        /// The input as given.
        name: String,
        /// The container.
        container: &'static str,
        /// The codec.
        codec: String,
    },
    /// The sample rate is outside [`RATES_HZ`](super::RATES_HZ).
    #[error("`{name}` has a sample rate of {rate_hz} Hz, supported are 1000 to 768000 Hz")]
    UnsupportedRate {
        /// The input as given.
        name: String,
        /// Its rate in Hz.
        rate_hz: u32,
    },
    /// A known container, yet not one sample of it can be decoded.
    #[error("nothing in `{name}` ({container}) can be decoded")]
    Undecodable {
        /// The input as given.
        name: String,
        /// The container.
        container: &'static str,
    },
}
