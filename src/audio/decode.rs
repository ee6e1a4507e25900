//! Packets become a gapless stream of 16 kHz mono samples.

use symphonia::core::audio::GenericAudioBufferRef;
use symphonia::core::codecs::audio::well_known as codecs;
use symphonia::core::errors::Error as MediaError;
use symphonia::core::packet::Packet;

use super::clock::Clock;
use super::damage::Damage;
use super::media::Media;
use super::mpeg::FrameWalk;
use super::resample::Resampler;
use super::source::{Input, Source};
use super::{Error, RATES_HZ, SAMPLE_RATE};

/// Samples a block has at least, but for the last.
const BLOCK_SAMPLES: usize = 8192;
/// A packet may start this much later than the samples before it end: containers round times to milliseconds.
const JITTER_SECS: f64 = 0.05;
/// A longer gap is believed only where the container declares a duration that it fits into.
const MAX_UNDECLARED_GAP_SECS: f64 = 30.0;
/// Silence is put in for as long as this at most, and this many times what was decoded: no damage that is worth the
/// name makes more of it, but a header of noise would.
const MAX_SILENCE_SECS: f64 = 600.0;
const MAX_SILENCE_RATIO: f64 = 10.0;
/// Silence is pushed in pieces of this many samples.
const SILENCE_SAMPLES: usize = 4096;
/// Errors of a demuxer in a row after which the rest is given up.
const MAX_CONTAINER_ERRORS: usize = 32;
/// Damaged packets in a row after which a decoder is made anew: it may have taken noise for its settings.
const MAX_DECODER_ERRORS: usize = 8;

/// Opens `input` for decoding: its first (or default) audio track, whatever its rate and channels.
///
/// # Errors
/// All of [`Error`]: nothing there, nothing readable, nothing that is audio, or audio that is not supported.
pub fn open(input: &Input) -> Result<Samples, Error> {
    Samples::new(Source::open(input, Media::judge)?)
}

/// The samples of an input as 16 kHz mono f32 in [-1, 1], decoded as they are asked for.
///
/// Channels are averaged with equal weights, which for stereo is what ffmpeg's `-ac 1` does. Sample 0 is the first
/// that should be heard: what an encoder padded at either end is dropped where the container tells. Damaged packets
/// and holes become silence of their length. Memory does not grow with the length of the input.
pub struct Samples {
    media: Media,
    walk: Option<FrameWalk>,
    resampler: Option<Resampler>,
    clock: Clock,
    damage: Damage,
    /// Of a frame stream, the samples of padding at its end, at the rate of the track, where the encoder has counted them.
    padding: Option<u64>,
    /// Without the silence that was put in.
    decoded_secs: f64,
    decoded_any: bool,
    container_errors: usize,
    decoder_errors: usize,
    ended: bool,
    /// One packet, interleaved, then mono.
    pcm: Vec<f32>,
    mono: Vec<f32>,
    block: Vec<f32>,
}

impl Samples {
    pub(super) fn new(source: Source) -> Result<Self, Error> {
        let media = Media::open(&source)?;
        let walk = media
            .is_frame_stream()
            .then(|| FrameWalk::new(source, media.start, media.container == "MPEG audio"));
        let padding = media
            .is_frame_stream()
            .then(|| u64::from(media.track.padding.unwrap_or(0)));
        Ok(Self {
            walk,
            resampler: None,
            clock: Clock {
                base: (media.container == "FLAC").then_some(0),
                emitted: 0,
            },
            damage: Damage::default(),
            padding,
            decoded_secs: 0.0,
            decoded_any: false,
            container_errors: 0,
            decoder_errors: 0,
            ended: false,
            pcm: Vec::new(),
            mono: Vec::new(),
            block: Vec::new(),
            media,
        })
    }

    /// The next samples, some thousands at a time; `None` after the last.
    ///
    /// # Errors
    /// Nothing at all of the input can be decoded, its rate is not supported, or the system cannot read it.
    pub fn next_block(&mut self) -> Result<Option<&[f32]>, Error> {
        self.block.clear();
        while self.block.len() < BLOCK_SAMPLES && !self.ended {
            match self.media.next_packet() {
                Ok(Some(packet)) => {
                    self.container_errors = 0;
                    self.take(&packet)?;
                }
                Ok(None) => self.end()?,
                Err(MediaError::IoError(e)) if e.kind() == std::io::ErrorKind::UnexpectedEof => {
                    self.end()?;
                }
                Err(MediaError::IoError(source)) => {
                    return Err(Error::Read { source });
                }
                Err(_) => {
                    self.damage.packets += u64::from(self.container_errors == 0);
                    self.container_errors += 1;
                    if self.container_errors == MAX_CONTAINER_ERRORS {
                        self.end()?;
                    }
                }
            }
        }
        Ok(if self.block.is_empty() {
            None
        } else {
            Some(&self.block)
        })
    }

    /// What of the input could not be read so far; whole once [`next_block`](Self::next_block) has returned `None`.
    pub fn damage(&self) -> Damage {
        self.damage
    }

    /// The container's name, such as `WAV` or `Ogg`.
    pub fn container(&self) -> &'static str {
        self.media.container
    }

    /// How many samples there will be by what the container declares, if it does: good enough for a progress bar.
    pub fn declared_samples(&self) -> Option<u64> {
        Some((self.media.declared_secs()? * f64::from(SAMPLE_RATE)) as u64)
    }

    fn take(&mut self, packet: &Packet) -> Result<(), Error> {
        let lost = match &mut self.walk {
            Some(walk) => walk
                .place(&packet.data, packet.dur.get())
                .map_err(|source| Error::Read { source })?,
            None => Some(0),
        };
        let Some(lost) = lost else {
            self.damage.packets += 1;
            return Ok(());
        };
        let decoded = match self.media.decode(packet) {
            Ok(buf) => interleave(&buf, &mut self.pcm),
            Err(_) => None,
        };
        let Some((rate_hz, channels)) = decoded else {
            self.damage.packets += 1;
            self.decoder_errors += 1;
            if self.decoder_errors.is_multiple_of(MAX_DECODER_ERRORS) {
                self.media.restart_decoder();
            }
            if self.walk.is_some() {
                // The silence for it comes with the next good packet, by the bytes between.
                return Ok(());
            }
            // Before the first good packet the rate is unknown; what the container says will do.
            let rate_hz = self
                .resampler
                .as_ref()
                .map(Resampler::rate_hz)
                .or(self.media.declared_rate_hz());
            if let Some(rate_hz) = rate_hz.filter(|hz| RATES_HZ.contains(hz)) {
                self.set_rate(rate_hz)?;
                self.follow_clock(packet, 0, 0);
                let secs = self
                    .media
                    .secs(packet.dur.get())
                    .min(MAX_UNDECLARED_GAP_SECS);
                self.push_silence((secs * f64::from(rate_hz)).round() as u64);
            }
            return Ok(());
        };
        self.decoder_errors = 0;
        if let Some(walk) = &mut self.walk {
            walk.accept();
        }
        if channels == 0 || self.pcm.is_empty() {
            return Ok(());
        }
        self.set_rate(rate_hz)?;
        mix_down(&self.pcm, channels, &mut self.mono);
        let dropped = self.trim(packet, rate_hz, lost);
        self.follow_clock(packet, dropped, lost);
        self.decoded_any = true;
        self.decoded_secs += self.mono.len() as f64 / f64::from(rate_hz);
        self.clock.emitted += self.mono.len() as u64;
        if let Some(resampler) = &mut self.resampler {
            resampler.push(&self.mono, &mut self.block);
        }
        Ok(())
    }

    /// Drops what the container says is padding from the samples of `packet`, before which `lost` are missing; how many
    /// at the start.
    fn trim(&mut self, packet: &Packet, rate_hz: u32, lost: u64) -> u64 {
        let samples =
            |media: &Media, ticks: u64| (media.secs(ticks) * f64::from(rate_hz)).round() as u64;
        let trim = samples(&self.media, packet.trim_start.get());
        let skip = (self.media.skip_secs * f64::from(rate_hz)).round() as u64;
        let start = trim.saturating_add(skip).min(self.mono.len() as u64);
        let skipped = start.saturating_sub(trim) as f64 / f64::from(rate_hz);
        self.media.skip_secs = (self.media.skip_secs - skipped).max(0.0);
        self.mono.drain(..start as usize);
        let end = match self.padding.zip(self.media.track.num_frames) {
            // The end of a frame stream is an estimate, unless the encoder has counted its padding: it must not cut off
            // audio that is there. Its packets do not know of what was lost before them.
            Some((padding, heard)) => (self.clock.emitted + lost + self.mono.len() as u64)
                .saturating_sub(heard)
                .min(padding),
            None if self.walk.is_some() => 0,
            None => samples(&self.media, packet.trim_end.get()),
        };
        let end = end.min(self.mono.len() as u64);
        self.mono.truncate(self.mono.len() - end as usize);
        start
    }

    /// Fills the hole before `packet`, if there is one: `dropped` samples of its start are not heard, and `lost` ones
    /// are missing before it in a stream without clock.
    fn follow_clock(&mut self, packet: &Packet, dropped: u64, lost: u64) {
        let Some(resampler) = &self.resampler else {
            return;
        };
        let rate = f64::from(resampler.rate_hz());
        let gap = match &self.walk {
            Some(_) => lost,
            // The times in these are counted from the bytes: there are no holes to be found.
            None if matches!(self.media.container, "WAV" | "AIFF" | "CAF") => 0,
            None => {
                let at = (self.media.signed_secs(packet.pts.get()) * rate).round() as i64;
                let limit_secs = self
                    .media
                    .declared_secs()
                    .unwrap_or(0.0)
                    .max(MAX_UNDECLARED_GAP_SECS);
                let (jitter, limit) = ((JITTER_SECS * rate) as u64, (limit_secs * rate) as u64);
                self.clock
                    .gap(at.saturating_add_unsigned(dropped), jitter, limit)
            }
        };
        self.push_silence(gap);
    }

    fn push_silence(&mut self, samples: u64) {
        let Some(resampler) = &mut self.resampler else {
            return;
        };
        let rate = f64::from(resampler.rate_hz());
        let budget_secs =
            MAX_SILENCE_SECS + MAX_SILENCE_RATIO * self.decoded_secs - self.damage.silence_secs;
        let samples = samples.min((budget_secs * rate) as u64);
        self.damage.silence_secs += samples as f64 / rate;
        self.clock.emitted += samples;
        let mut left = samples;
        while left > 0 {
            let n = left.min(SILENCE_SAMPLES as u64);
            resampler.push(&[0.0; SILENCE_SAMPLES][..n as usize], &mut self.block);
            left -= n;
        }
    }

    fn set_rate(&mut self, rate_hz: u32) -> Result<(), Error> {
        if self
            .resampler
            .as_ref()
            .is_some_and(|r| r.rate_hz() == rate_hz)
        {
            return Ok(());
        }
        if !RATES_HZ.contains(&rate_hz) {
            return Err(Error::UnsupportedRate { rate_hz });
        }
        if let Some(mut old) = self.resampler.replace(Resampler::new(rate_hz)) {
            old.finish(&mut self.block);
            self.clock = Clock::default();
        }
        Ok(())
    }

    fn end(&mut self) -> Result<(), Error> {
        self.ended = true;
        if let Some(resampler) = &mut self.resampler {
            resampler.finish(&mut self.block);
        }
        if !self.decoded_any && !self.media.declares_nothing() {
            return Err(Error::Undecodable {
                container: self.media.container,
            });
        }
        let rate = self
            .resampler
            .as_ref()
            .map_or(1.0, |r| f64::from(r.rate_hz()));
        self.damage.missing_secs = self.media.missing_secs(self.clock.emitted as f64 / rate);
        Ok(())
    }
}

/// Copies a decoded packet out; its rate and its channels.
fn interleave(buf: &GenericAudioBufferRef<'_>, pcm: &mut Vec<f32>) -> Option<(u32, usize)> {
    buf.copy_to_vec_interleaved(pcm);
    Some((buf.spec().rate(), buf.num_planes()))
}

/// The mean of the channels; what is not a number is silence.
fn mix_down(pcm: &[f32], channels: usize, mono: &mut Vec<f32>) {
    mono.clear();
    let clean = |x: f32| if x.is_finite() { x } else { 0.0 };
    match channels {
        1 => mono.extend(pcm.iter().copied().map(clean)),
        2 => mono.extend(
            pcm.chunks_exact(2)
                .map(|frame| clean(0.5 * (frame[0] + frame[1]))),
        ),
        n => {
            let scale = 1.0 / n as f32;
            mono.extend(
                pcm.chunks_exact(n)
                    .map(|frame| clean(frame.iter().sum::<f32>() * scale)),
            );
        }
    }
}

impl Media {
    /// Whether the packets are all there is: no clock, no index.
    fn is_frame_stream(&self) -> bool {
        matches!(self.container, "MPEG audio" | "ADTS")
    }

    /// Seconds of `ticks` of the track's time base.
    fn secs(&self, ticks: u64) -> f64 {
        self.signed_secs(i64::try_from(ticks).unwrap_or(i64::MAX))
    }

    fn signed_secs(&self, ticks: i64) -> f64 {
        let base = self
            .track
            .time_base
            .map_or(0.0, |b| f64::from(b.numer.get()) / f64::from(b.denom.get()));
        ticks as f64 * base
    }

    fn declared_rate_hz(&self) -> Option<u32> {
        self.params().sample_rate
    }

    fn declared_secs(&self) -> Option<f64> {
        let frames = self.track.num_frames.zip(self.declared_rate_hz());
        let frames = frames.map(|(frames, hz)| frames as f64 / f64::from(hz.max(1)));
        frames.or_else(|| self.track.duration.map(|d| self.secs(d.get())))
    }

    /// Whether the container says that it holds no samples.
    fn declares_nothing(&self) -> bool {
        match &self.wave {
            Some(wave) => wave.is_empty(),
            None => self.track.num_frames == Some(0) && !self.is_frame_stream(),
        }
    }

    /// Seconds that are promised beyond the `heard` ones.
    fn missing_secs(&self, heard: f64) -> f64 {
        if let Some(wave) = &self.wave {
            return wave.missing_secs();
        }
        let promised = match self.container {
            _ if self.missing_ratio > 0.0 => Some(heard * (1.0 + self.missing_ratio)),
            "FLAC" | "MP4" | "AIFF" | "CAF" if self.params().codec != codecs::CODEC_ID_OPUS => {
                self.declared_secs()
            }
            "Matroska/WebM" if self.is_audio_only() => self.media_secs(),
            _ => None,
        };
        let missing = promised.map_or(0.0, |secs| secs - heard);
        // Encoders round up to whole packets.
        if missing > 0.25 { missing } else { 0.0 }
    }
}
