//! What was heard: segments with their times, and the whole they make.

/// A stretch of speech that the model closed with timestamps.
#[derive(Clone, Debug, PartialEq)]
pub struct Segment {
    /// Place in the transcript, from 0.
    pub id: usize,
    /// Start of the window that the segment was decoded from, in frames of 10 ms.
    pub seek: usize,
    /// Start in seconds from the beginning of the audio.
    pub start: f64,
    /// End in seconds, not before `start`.
    pub end: f64,
    /// The words; most begin with a space, so that texts join by concatenation. Empty where the model's text was void.
    pub text: String,
    /// Ids that `text` was decoded from, timestamps included.
    pub tokens: Vec<u32>,
    /// Sampling temperature whose decoding was accepted; 0 is greedy.
    pub temperature: f32,
    /// Mean log-probability of the window's tokens.
    pub avg_logprob: f64,
    /// UTF-8 bytes of the window's text over their zlib-compressed length; above 2.4 the text repeats itself.
    pub compression_ratio: f64,
    /// Probability that the window holds no speech, 0 to 1.
    pub no_speech_prob: f64,
}

/// One recording, transcribed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Transcript {
    /// Code of the language that was asked for or detected (`en`); `None` when nothing was decoded.
    pub language: Option<String>,
    /// Probability of the detected language, 0 to 1; `None` when it was not detected but given.
    pub language_probability: Option<f64>,
    /// Length of the audio in seconds.
    pub duration_secs: f64,
    /// In order of time.
    pub segments: Vec<Segment>,
}

impl Transcript {
    /// The segments' texts, joined.
    pub fn text(&self) -> String {
        self.segments
            .iter()
            .map(|segment| segment.text.as_str())
            .collect()
    }
}
