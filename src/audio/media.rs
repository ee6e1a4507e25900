//! A container opened: its audio track chosen, its packets handed to a decoder.

use std::cell::Cell;
use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::sync::{LazyLock, Once};

use symphonia::core::audio::GenericAudioBufferRef;
use symphonia::core::codecs::CodecParameters;
use symphonia::core::codecs::audio::{
    AudioCodecId, AudioCodecParameters, AudioDecoder, AudioDecoderOptions, CODEC_ID_NULL_AUDIO,
    well_known,
};
use symphonia::core::codecs::registry::CodecRegistry;
use symphonia::core::common::Limit;
use symphonia::core::errors::Error as MediaError;
use symphonia::core::formats::probe::Hint;
use symphonia::core::formats::well_known as formats;
use symphonia::core::formats::{
    FormatId, FormatOptions, FormatReader, Track, TrackFlags, TrackType,
};
use symphonia::core::io::{MediaSourceStream, MediaSourceStreamOptions};
use symphonia::core::meta::MetadataOptions;
use symphonia::core::packet::Packet;

use super::Error;
use super::cut::Cut;
use super::mp4;
use super::ogg;
use super::opus::{self, OpusDecoder};
use super::sniff;
use super::source::{Source, View};
use super::wav::Wave;

/// Bytes of the start that say what a file is.
const HEAD_BYTES: usize = 4096;
/// Longest single tag that is kept while a container is opened; we read none of them.
const TAG_BYTES: usize = 1 << 20;

/// Every codec of symphonia, and Opus.
static CODECS: LazyLock<CodecRegistry> = LazyLock::new(|| {
    let mut codecs = CodecRegistry::new();
    symphonia::default::register_enabled_codecs(&mut codecs);
    codecs.register_audio_decoder::<OpusDecoder>();
    codecs
});

/// An open container and the decoder of its audio track.
pub(super) struct Media {
    reader: Box<dyn FormatReader>,
    decoder: Box<dyn AudioDecoder>,
    params: AudioCodecParameters,
    /// The track that is decoded.
    pub(super) track: Track,
    /// The container's name.
    pub(super) container: &'static str,
    /// What a wave header says, where there is one.
    pub(super) wave: Option<Wave>,
    /// Bytes that are missing for every byte that is there, where the container is cut off.
    pub(super) missing_ratio: f64,
    /// Seconds at the start of the track that are not to be heard: what the decoder needs to warm up.
    pub(super) skip_secs: f64,
    /// Where the container starts in the source: behind ID3 tags.
    pub(super) start: u64,
}

impl Media {
    /// Refuses the beginning of a stream that is certainly no audio, so that the rest need not be read. What starts with a
    /// tag passes: the audio may be behind it.
    pub(super) fn judge(beginning: Source) -> Result<(), Error> {
        let mut tag = [0; 3];
        let _ = beginning.read_at(0, &mut tag); // bytes in memory
        match Self::open(&beginning) {
            Err(error @ (Error::NotAudio { .. } | Error::UnsupportedContainer { .. }))
                if tag != *b"ID3" =>
            {
                Err(error)
            }
            _ => Ok(()),
        }
    }

    /// Finds out from its content what `source` is and opens its default audio track, or else the first one that can
    /// be decoded.
    pub(super) fn open(source: &Source) -> Result<Self, Error> {
        let read = |source| Error::Read { source };
        let start = skip_id3(source).map_err(read)?;
        let mut head = [0; HEAD_BYTES];
        let n = source.read_at(start, &mut head).map_err(read)?;
        let head = &head[..n];
        if let Some(found) = sniff::not_audio(head) {
            return Err(Error::NotAudio { found });
        }
        if let Some(container) = sniff::unsupported_container(head) {
            return Err(Error::UnsupportedContainer { container });
        }
        let wave = if start == 0 {
            Wave::parse(source).map_err(read)?
        } else {
            None
        };
        let cut = Cut::find(source).map_err(read)?;
        let view = if let Some(wave) = &wave {
            wave.view(source.clone())
        } else if let Some(cut) = &cut {
            cut.view(source.clone())
        } else if let Some(view) = ogg::without_comments(source).map_err(read)? {
            view
        } else {
            View::new(source.clone(), Vec::new(), start..source.len())
        };
        let reader = match guarded(|| probe(view)) {
            Ok(reader) => reader,
            Err(MediaError::IoError(e)) if e.kind() != io::ErrorKind::UnexpectedEof => {
                return Err(read(e));
            }
            Err(_) => {
                return Err(match known_container(head) {
                    Some(container) => Error::Undecodable { container },
                    None => Error::NotAudio {
                        found: "unknown data",
                    },
                });
            }
        };
        let container =
            container_name(reader.format_info().format).unwrap_or(reader.format_info().short_name);
        let (track, params, decoder) = match choose_track(reader.tracks()) {
            Ok(chosen) => chosen,
            Err(None) => {
                return Err(Error::NoAudioTrack { container });
            }
            Err(Some(codec)) => {
                return Err(Error::UnsupportedCodec {
                    container,
                    codec: codec_name(codec),
                });
            }
        };
        // An edit list repeats the pre-skip of Opus.
        let skip_secs = if params.codec == well_known::CODEC_ID_OPUS {
            opus::pre_skip_secs(&params)
        } else if reader.format_info().format == formats::FORMAT_ID_ISOMP4 {
            mp4::skip_secs(source, track.id).map_err(read)?
        } else {
            0.0
        };
        Ok(Self {
            reader,
            decoder,
            params,
            track,
            container,
            wave,
            start,
            missing_ratio: cut.map_or(0.0, |cut| cut.missing_ratio),
            skip_secs,
        })
    }

    /// What the container says of the track's codec.
    pub(super) fn params(&self) -> &AudioCodecParameters {
        &self.params
    }

    /// Seconds that the container as a whole lasts, by its header.
    pub(super) fn media_secs(&self) -> Option<f64> {
        let info = self.reader.media_info();
        let (base, duration) = info.time_base.zip(info.duration)?;
        Some(duration.get() as f64 * f64::from(base.numer.get()) / f64::from(base.denom.get()))
    }

    /// Whether the chosen track is the only one: all of the container's length is its own.
    pub(super) fn is_audio_only(&self) -> bool {
        self.reader.tracks().len() == 1
    }

    /// The next packet of the track; `None` at the end.
    ///
    /// # Errors
    /// The container is damaged here; a later call may find its way again.
    pub(super) fn next_packet(&mut self) -> Result<Option<Packet>, MediaError> {
        loop {
            match guarded(|| self.reader.next_packet()) {
                Ok(Some(packet)) if packet.track_id != self.track.id => {}
                // A chained stream begins: the old tracks are gone.
                Err(MediaError::ResetRequired) => match choose_track(self.reader.tracks()) {
                    Ok((track, params, decoder)) => {
                        self.skip_secs = opus::pre_skip_secs(&params);
                        (self.track, self.params, self.decoder) = (track, params, decoder);
                    }
                    Err(_) => return Ok(None),
                },
                other => return other,
            }
        }
    }

    /// Decodes a packet of the track.
    ///
    /// # Errors
    /// The packet is damaged.
    pub(super) fn decode(
        &mut self,
        packet: &Packet,
    ) -> Result<GenericAudioBufferRef<'_>, MediaError> {
        guarded(|| self.decoder.decode(packet))
    }

    /// Forgets what the decoder knows of earlier packets, down to the rate and the channels.
    pub(super) fn restart_decoder(&mut self) {
        if let Ok(decoder) = make_decoder(&self.params) {
            self.decoder = decoder;
        }
    }
}

/// Runs code of a codec or a demuxer: should it panic over damaged input, that is damage, not the end of the run, and
/// nothing is printed.
fn guarded<T>(run: impl FnOnce() -> Result<T, MediaError>) -> Result<T, MediaError> {
    thread_local! {
        static GUARDED: Cell<bool> = const { Cell::new(false) };
    }
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let print = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            if !GUARDED.get() {
                print(panic);
            }
        }));
    });
    GUARDED.set(true);
    let result = panic::catch_unwind(AssertUnwindSafe(run));
    GUARDED.set(false);
    result.unwrap_or(Err(MediaError::DecodeError("the codec failed")))
}

fn probe(view: View) -> Result<Box<dyn FormatReader>, MediaError> {
    let stream = MediaSourceStream::new(Box::new(view), MediaSourceStreamOptions::default());
    let limits = MetadataOptions::default()
        .limit_tag_bytes(Limit::Maximum(TAG_BYTES))
        .limit_visual_bytes(Limit::Maximum(TAG_BYTES));
    symphonia::default::get_probe().probe(&Hint::new(), stream, FormatOptions::default(), limits)
}

type Chosen = (Track, AudioCodecParameters, Box<dyn AudioDecoder>);

/// The default audio track, or else the first that can be decoded; an error holds the codec that cannot.
fn choose_track(tracks: &[Track]) -> Result<Chosen, Option<AudioCodecId>> {
    let is_audio = |track: &&Track| track.track_type() == Some(TrackType::Audio);
    let default = tracks
        .iter()
        .filter(is_audio)
        .filter(|t| t.flags.contains(TrackFlags::DEFAULT));
    let mut unsupported = None;
    for track in default.chain(tracks.iter().filter(is_audio)) {
        let Some(CodecParameters::Audio(params)) = &track.codec_params else {
            continue;
        };
        match make_decoder(params) {
            Ok(decoder) => return Ok((track.clone(), params.clone(), decoder)),
            Err(_) => unsupported = unsupported.or(Some(params.codec)),
        }
    }
    Err(unsupported)
}

/// A decoder that trims nothing by itself: what encoders padded is taken away by us, for all codecs alike.
fn make_decoder(params: &AudioCodecParameters) -> Result<Box<dyn AudioDecoder>, MediaError> {
    guarded(|| CODECS.make_audio_decoder(params, &AudioDecoderOptions::default().gapless(false)))
}

/// Where the content starts behind ID3v2 tags (id3v2.4.0-structure, section 3.1). They are skipped unread, so that a
/// picture of any size costs no memory.
fn skip_id3(source: &Source) -> io::Result<u64> {
    let mut start = 0;
    loop {
        let mut header = [0; 10];
        let is_tag = source.read_at(start, &mut header)? == header.len()
            && header.starts_with(b"ID3")
            && header[6..].iter().all(|b| b & 0x80 == 0);
        if !is_tag {
            return Ok(start);
        }
        let size = header[6..]
            .iter()
            .fold(0u64, |size, b| (size << 7) | u64::from(*b));
        let footer = if header[5] & 0x10 == 0 { 0 } else { 10 };
        start += 10 + size + footer;
    }
}

/// The supported container that starts with `head`, for a file that is recognised but broken.
fn known_container(head: &[u8]) -> Option<&'static str> {
    let at = |at: usize, magic: &[u8]| head.get(at..).is_some_and(|rest| rest.starts_with(magic));
    if at(8, b"WAVE") {
        container_name(formats::FORMAT_ID_WAVE)
    } else if at(0, b"FORM") {
        container_name(formats::FORMAT_ID_AIFF)
    } else if at(0, b"caff") {
        container_name(formats::FORMAT_ID_CAF)
    } else if at(0, b"fLaC") {
        container_name(formats::FORMAT_ID_FLAC)
    } else if at(0, b"OggS") {
        container_name(formats::FORMAT_ID_OGG)
    } else if at(0, b"\x1a\x45\xdf\xa3") {
        container_name(formats::FORMAT_ID_MKV)
    } else if at(4, b"ftyp") {
        container_name(formats::FORMAT_ID_ISOMP4)
    } else {
        None
    }
}

fn container_name(format: FormatId) -> Option<&'static str> {
    Some(match format {
        formats::FORMAT_ID_WAVE => "WAV",
        formats::FORMAT_ID_AIFF => "AIFF",
        formats::FORMAT_ID_CAF => "CAF",
        formats::FORMAT_ID_FLAC => "FLAC",
        formats::FORMAT_ID_OGG => "Ogg",
        formats::FORMAT_ID_MKV => "Matroska/WebM",
        formats::FORMAT_ID_ISOMP4 => "MP4",
        formats::FORMAT_ID_ADTS => "ADTS",
        formats::FORMAT_ID_MP1 | formats::FORMAT_ID_MP2 | formats::FORMAT_ID_MP3 => "MPEG audio",
        _ => return None,
    })
}

/// What people call a codec.
fn codec_name(codec: AudioCodecId) -> String {
    let name = match codec {
        CODEC_ID_NULL_AUDIO => "an unknown codec",
        well_known::CODEC_ID_AC3 => "AC-3",
        well_known::CODEC_ID_EAC3 => "E-AC-3",
        well_known::CODEC_ID_AC4 => "AC-4",
        well_known::CODEC_ID_DCA => "DTS",
        well_known::CODEC_ID_TRUEHD => "TrueHD",
        well_known::CODEC_ID_WMA => "Windows Media Audio",
        well_known::CODEC_ID_SPEEX => "Speex",
        well_known::CODEC_ID_MUSEPACK => "Musepack",
        well_known::CODEC_ID_WAVPACK => "WavPack",
        well_known::CODEC_ID_MONKEYS_AUDIO => "Monkey's Audio",
        well_known::CODEC_ID_TTA => "True Audio",
        well_known::CODEC_ID_RA10 | well_known::CODEC_ID_RA20 | well_known::CODEC_ID_COOK => {
            "RealAudio"
        }
        well_known::CODEC_ID_ADPCM_G722 => "G.722",
        well_known::CODEC_ID_ADPCM_G726 | well_known::CODEC_ID_ADPCM_G726LE => "G.726",
        well_known::CODEC_ID_AAC => "AAC beyond low complexity in stereo",
        other => {
            return CODECS
                .get_audio_decoder(other)
                .map_or_else(|| other.to_string(), |c| c.codec.info.long_name.to_owned());
        }
    };
    name.to_owned()
}
