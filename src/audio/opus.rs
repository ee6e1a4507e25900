//! Opus (RFC 6716) for symphonia, which demuxes it from Ogg, WebM, MP4 and CAF but does not decode it.
//!
//! The work is done by `ropus`, a port of the reference codec's fixed-point build: measured against libopus over SILK,
//! hybrid and CELT, mono, stereo and 5.1, frames of 2.5 to 60 ms, it was the one pure-Rust decoder whose output stayed
//! within rounding of the reference's in every mode, at several hundred times real time.

use ropus::OpusMSDecoder;
use symphonia::core::audio::{
    AsGenericAudioBufferRef, AudioBuffer, AudioMut, AudioSpec, Channels, GenericAudioBufferRef,
};
use symphonia::core::codecs::CodecInfo;
use symphonia::core::codecs::audio::well_known::CODEC_ID_OPUS;
use symphonia::core::codecs::audio::{
    AudioCodecParameters, AudioDecoder, AudioDecoderOptions, FinalizeResult,
};
use symphonia::core::codecs::registry::{RegisterableAudioDecoder, SupportedAudioCodec};
use symphonia::core::errors::{Error, Result};
use symphonia::core::packet::PacketRef;

/// Opus always decodes to this rate.
const RATE_HZ: u32 = 48_000;
/// Longest packet, 120 ms (RFC 6716, section 3.2.5), in samples of one channel.
const MAX_PACKET_SAMPLES: usize = 5_760;

/// What an identification header (RFC 7845, section 5.1) says.
#[derive(Debug, PartialEq)]
struct Head {
    channels: u8,
    /// Samples to drop from the start.
    pre_skip: u16,
    /// Factor on every sample.
    gain: f32,
    streams: u8,
    coupled: u8,
    /// For every channel the decoded channel it plays.
    mapping: Vec<u8>,
}

impl Head {
    fn parse(bytes: &[u8]) -> Option<Self> {
        let fixed: &[u8; 19] = bytes.first_chunk()?;
        if &fixed[..8] != b"OpusHead" {
            return None;
        }
        let channels = fixed[9];
        // MP4 stores the same fields as version 0 and big-endian ("Encapsulation of Opus in ISO Base Media File
        // Format", section 4.3.2); all others are version 1 and little-endian.
        let u16_at = |at: usize| {
            let two = [fixed[at], fixed[at + 1]];
            if fixed[8] == 0 {
                u16::from_be_bytes(two)
            } else {
                u16::from_le_bytes(two)
            }
        };
        let gain_db = f32::from(u16_at(16) as i16) / 256.0;
        let (streams, coupled, mapping) = match (fixed[18], channels) {
            (0, 1) => (1, 0, vec![0]),
            (0, 2) => (1, 1, vec![0, 1]),
            (0, _) | (_, 0) => return None,
            _ => (
                *bytes.get(19)?,
                *bytes.get(20)?,
                bytes.get(21..21 + usize::from(channels))?.to_vec(),
            ),
        };
        Some(Self {
            channels,
            pre_skip: u16_at(10),
            gain: 10f32.powf(gain_db / 20.0),
            streams,
            coupled,
            mapping,
        })
    }
}

/// Seconds to drop from the start of an Opus stream, which no demuxer does; 0 for any other codec.
pub(super) fn pre_skip_secs(params: &AudioCodecParameters) -> f64 {
    let head = params.extra_data.as_deref().and_then(Head::parse);
    head.filter(|_| params.codec == CODEC_ID_OPUS)
        .map_or(0.0, |head| f64::from(head.pre_skip) / f64::from(RATE_HZ))
}

/// A symphonia decoder for Opus.
pub(super) struct OpusDecoder {
    params: AudioCodecParameters,
    head: Head,
    inner: OpusMSDecoder,
    /// `[MAX_PACKET_SAMPLES, channels]`.
    pcm: Vec<i16>,
    buf: AudioBuffer<f32>,
}

impl OpusDecoder {
    fn try_new(params: &AudioCodecParameters) -> Result<Self> {
        let head = params
            .extra_data
            .as_deref()
            .and_then(Head::parse)
            .ok_or(Error::DecodeError("opus: invalid identification header"))?;
        let channels = usize::from(head.channels);
        let inner = OpusMSDecoder::new(
            RATE_HZ as i32,
            i32::from(head.channels),
            i32::from(head.streams),
            i32::from(head.coupled),
            &head.mapping,
        )
        .map_err(|_| Error::DecodeError("opus: invalid channel mapping"))?;
        let spec = AudioSpec::new(RATE_HZ, Channels::Discrete(u16::from(head.channels)));
        Ok(Self {
            params: params.clone(),
            head,
            inner,
            pcm: vec![0; MAX_PACKET_SAMPLES * channels],
            buf: AudioBuffer::new(spec, MAX_PACKET_SAMPLES),
        })
    }

    fn decode_packet(&mut self, packet: &[u8]) -> Result<()> {
        self.buf.clear();
        let len =
            i32::try_from(packet.len()).map_err(|_| Error::DecodeError("opus: packet too long"))?;
        if len == 0 {
            return Err(Error::DecodeError("opus: empty packet"));
        }
        let n = self
            .inner
            .decode(
                Some(packet),
                len,
                &mut self.pcm,
                MAX_PACKET_SAMPLES as i32,
                false,
            )
            .ok()
            .and_then(|n| usize::try_from(n).ok())
            .filter(|n| *n <= MAX_PACKET_SAMPLES)
            .ok_or(Error::DecodeError("opus: invalid packet"))?;
        self.buf.render_uninit(Some(n));
        let channels = usize::from(self.head.channels);
        let scale = self.head.gain / 32_768.0;
        for channel in 0..channels {
            let plane = self
                .buf
                .plane_mut(channel)
                .expect("as many planes as channels");
            let samples = self.pcm[channel..n * channels].iter().step_by(channels);
            for (to, from) in plane.iter_mut().zip(samples) {
                *to = f32::from(*from) * scale;
            }
        }
        Ok(())
    }
}

impl AudioDecoder for OpusDecoder {
    fn reset(&mut self) {
        self.inner.reset();
    }

    fn codec_info(&self) -> &CodecInfo {
        &Self::supported_codecs()[0].info
    }

    fn codec_params(&self) -> &AudioCodecParameters {
        &self.params
    }

    fn decode_ref(&mut self, packet: &PacketRef<'_>) -> Result<GenericAudioBufferRef<'_>> {
        self.decode_packet(packet.data)?;
        Ok(self.buf.as_generic_audio_buffer_ref())
    }

    fn finalize(&mut self) -> FinalizeResult {
        FinalizeResult::default()
    }

    fn last_decoded(&self) -> GenericAudioBufferRef<'_> {
        self.buf.as_generic_audio_buffer_ref()
    }
}

impl RegisterableAudioDecoder for OpusDecoder {
    fn try_registry_new(
        params: &AudioCodecParameters,
        _: &AudioDecoderOptions,
    ) -> Result<Box<dyn AudioDecoder>> {
        Ok(Box::new(Self::try_new(params)?))
    }

    fn supported_codecs() -> &'static [SupportedAudioCodec] {
        &[SupportedAudioCodec {
            id: CODEC_ID_OPUS,
            info: CodecInfo {
                short_name: "opus",
                long_name: "Opus",
                profiles: &[],
            },
        }]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(channels: u8, family: u8, rest: &[u8]) -> Vec<u8> {
        let mut bytes = b"OpusHead\x01".to_vec();
        bytes.extend_from_slice(&[channels, 0x38, 1, 0x80, 0xbb, 0, 0, 0, 0, family]);
        bytes.extend_from_slice(rest);
        bytes
    }

    #[test]
    fn heads_are_read_in_both_byte_orders() {
        let ogg = Head::parse(&head(2, 0, &[])).unwrap();
        assert_eq!(
            (ogg.pre_skip, ogg.streams, ogg.coupled, ogg.gain),
            (312, 1, 1, 1.0)
        );
        let mut mp4 = head(2, 0, &[]);
        mp4[8] = 0;
        mp4[10..12].copy_from_slice(&[1, 0x38]);
        assert_eq!(Head::parse(&mp4).unwrap(), ogg);
    }

    #[test]
    fn broken_heads_are_refused() {
        let whole = head(6, 1, &[4, 2, 0, 4, 1, 2, 3, 5]);
        assert_eq!(Head::parse(&whole).unwrap().mapping, [0, 4, 1, 2, 3, 5]);
        for cut in 0..whole.len() {
            assert_eq!(Head::parse(&whole[..cut]), None, "cut to {cut}");
        }
        assert_eq!(Head::parse(&head(3, 0, &[])), None);
        assert_eq!(Head::parse(&head(0, 1, &[1, 0])), None);
    }
}
