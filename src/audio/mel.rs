//! Log-mel features as Whisper's reference implementation computes them, in bounded memory.
//!
//! openai/whisper `audio.py` at c0d2f62: 16 kHz samples followed by 30 s of zeros; a centred short-time Fourier
//! transform of 400 samples with a periodic Hann window and a hop of 160, reflected at the start, its last frame
//! dropped; power; mel filters; `log10` clamped at 1e-10; a floor 8 below the maximum over **all** frames; `(x + 4) / 4`.
//!
//! The floor is why a window cannot be computed before the last sample is known. So the unfloored logarithms of the
//! whole input are kept, in a temporary file once they are many, and floor and scale are applied as windows are read.

use std::f64::consts::TAU;
use std::io;
use std::sync::Arc;

use realfft::{RealFftPlanner, RealToComplex, num_complex::Complex};

use super::SAMPLE_RATE;
use super::filters::MelFilters;
use super::spill::Spill;

/// Samples of one transform: 25 ms.
pub const N_FFT: usize = 400;
/// Samples from one frame to the next: 10 ms.
pub const HOP_SAMPLES: usize = 160;
/// Frames of the 30 s that a Whisper encoder looks at.
pub const N_FRAMES: usize = 3000;
/// Frames of a second.
pub const FRAMES_A_SEC: usize = SAMPLE_RATE as usize / HOP_SAMPLES;

/// Samples reflected at the start, so that frame 0 is centred on sample 0.
const PAD: usize = N_FFT / 2;
/// Bins of one spectrum.
const N_BINS: usize = N_FFT / 2 + 1;
/// Smallest power that is told apart from silence.
const MIN_POWER: f64 = 1e-10;
/// Its logarithm: the value of a silent frame.
const SILENCE: f32 = -10.0;
/// What lies further than this below the loudest value, in powers of ten, is raised to it.
const RANGE: f32 = 8.0;

/// Turns samples, pushed as they come, into [`Features`].
pub struct LogMel {
    frames: Frames,
    spill: Spill,
    max: f32,
    samples: u64,
    /// Samples from the start of the next frame on; at first those that the reflection waits for.
    pending: Vec<f32>,
    reflected: bool,
}

impl LogMel {
    /// A front end of `n_mels` bins: 80, or 128 for large-v3 and turbo. Any positive number works.
    pub fn new(n_mels: usize) -> Self {
        Self {
            frames: Frames::new(n_mels),
            spill: Spill::new(n_mels),
            max: SILENCE,
            samples: 0,
            pending: Vec::new(),
            reflected: false,
        }
    }

    /// Takes the next `[samples]` of the 16 kHz mono waveform.
    ///
    /// # Errors
    /// The temporary file that holds the frames of a long input cannot be read back.
    pub fn push(&mut self, samples: &[f32]) -> io::Result<()> {
        self.samples += samples.len() as u64;
        self.pending.extend_from_slice(samples);
        if !self.reflected {
            if self.pending.len() <= PAD {
                return Ok(());
            }
            self.reflect();
        }
        self.drain()
    }

    /// Ends the waveform.
    ///
    /// # Errors
    /// As for [`push`](Self::push).
    pub fn finish(mut self) -> io::Result<Features> {
        // The zeros that follow reach back over PAD samples: the frames that still see the waveform are computed,
        // all others are known.
        let content = usize::try_from(self.samples).unwrap_or(usize::MAX) / HOP_SAMPLES;
        if self.samples > 0 {
            self.pending.extend_from_slice(&[0.0; N_FFT + PAD]);
            if !self.reflected {
                self.reflect();
            }
            self.drain()?;
        }
        let floor = self.max - RANGE;
        Ok(Features {
            spill: self.spill,
            content,
            floor,
        })
    }

    fn reflect(&mut self) {
        let start: Vec<f32> = self.pending[1..=PAD].iter().rev().copied().collect();
        self.pending.splice(..0, start);
        self.reflected = true;
    }

    /// Computes every frame whose samples are there.
    fn drain(&mut self) -> io::Result<()> {
        let mut start = 0;
        while let Some(samples) = self.pending.get(start..start + N_FFT) {
            let frame = self.frames.compute(samples);
            self.max = frame.iter().fold(self.max, |max, x| max.max(*x));
            self.spill.push(frame)?;
            start += HOP_SAMPLES;
        }
        self.pending.drain(..start);
        Ok(())
    }
}

/// The log-mel features of a whole input and of the 30 s of silence behind it.
#[derive(Debug)]
pub struct Features {
    spill: Spill,
    content: usize,
    floor: f32,
}

impl Features {
    /// Bins of a frame.
    pub fn n_mels(&self) -> usize {
        self.spill.width()
    }

    /// Frames of the input itself, without the silence behind it: one for every whole 10 ms.
    pub fn content_frames(&self) -> usize {
        self.content
    }

    /// Fills `out`, `[N_FRAMES, n_mels]` with the bins of a frame side by side, with the frames
    /// `start..start + n_frames`, and with 0.0 behind them: the input of a Whisper encoder.
    ///
    /// Frames from [`content_frames`](Self::content_frames) on are those of the silence (which is what detecting a
    /// language reads for a short input); there are [`N_FRAMES`] of them, and 0.0 again from there on.
    ///
    /// # Errors
    /// The temporary file that holds the frames of a long input cannot be read back.
    ///
    /// # Panics
    /// If `n_frames` is beyond [`N_FRAMES`], or `out` is not of that shape.
    pub fn window(&self, start: usize, n_frames: usize, out: &mut [f32]) -> io::Result<()> {
        let n_mels = self.n_mels();
        assert!(
            n_frames <= N_FRAMES,
            "{n_frames} frames asked for, {N_FRAMES} fit"
        );
        assert_eq!(
            out.len(),
            N_FRAMES * n_mels,
            "length of a window of {N_FRAMES} frames, {n_mels} bins"
        );
        let total = self.content.saturating_add(N_FRAMES);
        let present = n_frames.min(total.saturating_sub(start));
        let computed = present.min(self.spill.len().saturating_sub(start));
        let (frames, zeros) = out.split_at_mut(present * n_mels);
        let (heard, silent) = frames.split_at_mut(computed * n_mels);
        self.spill.read(start, heard)?;
        silent.fill(SILENCE);
        for x in frames {
            *x = (x.max(self.floor) + 4.0) / 4.0;
        }
        zeros.fill(0.0);
        Ok(())
    }
}

/// One frame after another: window, transform, filters, logarithm.
///
/// In f64: the reference's own f32 rounding is then all that differs, which matters where a bin is 80 dB below the
/// rest of its frame.
struct Frames {
    fft: Arc<dyn RealToComplex<f64>>,
    hann: Vec<f64>,
    filters: MelFilters,
    windowed: Vec<f64>,
    spectrum: Vec<Complex<f64>>,
    scratch: Vec<Complex<f64>>,
    power: Vec<f64>,
    log_mel: Vec<f32>,
}

impl Frames {
    fn new(n_mels: usize) -> Self {
        let fft = RealFftPlanner::<f64>::new().plan_fft_forward(N_FFT);
        Self {
            hann: (0..N_FFT)
                .map(|i| 0.5 - 0.5 * (TAU * i as f64 / N_FFT as f64).cos())
                .collect(),
            filters: MelFilters::new(n_mels, N_FFT, SAMPLE_RATE),
            windowed: fft.make_input_vec(),
            spectrum: fft.make_output_vec(),
            scratch: fft.make_scratch_vec(),
            power: vec![0.0; N_BINS],
            log_mel: vec![0.0; n_mels],
            fft,
        }
    }

    /// `[N_FFT]` samples to `[n_mels]` logarithms.
    fn compute(&mut self, samples: &[f32]) -> &[f32] {
        for ((to, x), w) in self.windowed.iter_mut().zip(samples).zip(&self.hann) {
            *to = f64::from(*x) * w;
        }
        self.fft
            .process_with_scratch(&mut self.windowed, &mut self.spectrum, &mut self.scratch)
            .expect("buffers made by the plan");
        for (power, bin) in self.power.iter_mut().zip(&self.spectrum) {
            *power = bin.norm_sqr();
        }
        for (to, power) in self.log_mel.iter_mut().zip(self.filters.apply(&self.power)) {
            *to = power.max(MIN_POWER).log10() as f32;
        }
        &self.log_mel
    }
}

#[cfg(test)]
mod tests {
    use safetensors::SafeTensors;

    use super::*;

    /// The largest difference from the reference that is accepted, absolute, in the scaled features.
    const MAX_DIFFERENCE: f32 = 1e-4;

    struct Golden(Vec<u8>);

    impl Golden {
        /// A file of the goldens that `tests/golden` holds, made by openai-whisper.
        fn open(file: &str) -> Self {
            let path = format!("{}/tests/golden/{file}", env!("CARGO_MANIFEST_DIR"));
            Self(std::fs::read(&path).unwrap_or_else(|e| panic!("{path}: {e}")))
        }

        fn floats(&self, name: &str) -> Vec<f32> {
            let tensors = SafeTensors::deserialize(&self.0).unwrap();
            let bytes = tensors.tensor(name).unwrap().data().chunks_exact(4);
            bytes
                .map(|b| f32::from_le_bytes(b.try_into().unwrap()))
                .collect()
        }
    }

    fn features(n_mels: usize, samples: &[f32], block: usize) -> Features {
        let mut mel = LogMel::new(n_mels);
        for block in samples.chunks(block) {
            mel.push(block).unwrap();
        }
        mel.finish().unwrap()
    }

    /// `n` frames from `start` on.
    fn frames(features: &Features, start: usize, n: usize) -> Vec<f32> {
        let mut out = vec![f32::NAN; N_FRAMES * features.n_mels()];
        features.window(start, n, &mut out).unwrap();
        assert!(
            out[n * features.n_mels()..].iter().all(|x| *x == 0.0),
            "0.0 behind the frames asked for"
        );
        out.truncate(n * features.n_mels());
        out
    }

    fn assert_near(found: &[f32], expected: &[f32], what: &str) {
        assert_eq!(found.len(), expected.len(), "{what}");
        assert!(
            expected.iter().any(|x| *x != expected[0]),
            "{what}: a golden that is constant shows nothing"
        );
        assert!(found.iter().all(|x| x.is_finite()), "{what}: not finite");
        let (at, worst) = found
            .iter()
            .zip(expected)
            .map(|(a, b)| (a - b).abs())
            .enumerate()
            .max_by(|a, b| a.1.total_cmp(&b.1))
            .unwrap();
        eprintln!("{what}: largest difference {worst:e}");
        assert!(
            worst <= MAX_DIFFERENCE,
            "{what}: {worst} at {at}: {} and {}",
            found[at],
            expected[at]
        );
    }

    #[test]
    fn features_equal_the_reference() {
        let waveform = Golden::open("mel_80.safetensors").floats("waveform");
        for n_mels in [80, 128] {
            let golden = Golden::open(&format!("mel_{n_mels}.safetensors"));
            let features = features(n_mels, &waveform, 1000);
            assert_eq!(features.content_frames(), waveform.len() / HOP_SAMPLES);
            let every_10th: Vec<f32> = (0..features.content_frames() + N_FRAMES)
                .step_by(10)
                .flat_map(|at| frames(&features, at, 1))
                .collect();
            let padded = golden.floats("log_mel_padded_every_10th_frame");
            assert_near(&every_10th, &padded, &format!("{n_mels} bins, padded"));
            // Without the zeros behind it the reference reflects the end: the last two frames differ.
            let n = features.content_frames() - 2;
            let plain = &golden.floats("log_mel")[..n * n_mels];
            assert_near(
                &frames(&features, 0, n),
                plain,
                &format!("{n_mels} bins, plain"),
            );
        }
    }

    #[test]
    fn quiet_parts_beside_loud_ones_equal_a_direct_transform() {
        // 60 dB between the halves.
        let sample = |i: usize| {
            let t = i as f64 / f64::from(SAMPLE_RATE);
            let loud = if i < 8000 { 0.9 } else { 0.0009 };
            (loud * ((TAU * 440.0 * t).sin() + 0.01 * (TAU * 5000.0 * t).sin())) as f32
        };
        let samples: Vec<f32> = (0..16_000).map(sample).collect();
        let features = features(80, &samples, 16_000);
        let filters = MelFilters::new(80, N_FFT, SAMPLE_RATE);
        let direct = |frame: usize| -> Vec<f64> {
            let x = |i: usize| {
                f64::from(
                    samples
                        .get((frame * HOP_SAMPLES + i).abs_diff(PAD))
                        .copied()
                        .unwrap_or(0.0),
                )
            };
            let hann = |i: usize| (TAU / 2.0 * i as f64 / N_FFT as f64).sin().powi(2);
            let seen: Vec<f64> = (0..N_FFT).map(|i| x(i) * hann(i)).collect();
            let power = |bin: usize| {
                let angle = |i: usize| TAU * (bin * i % N_FFT) as f64 / N_FFT as f64;
                let sum = |f: fn(f64) -> f64| {
                    seen.iter()
                        .enumerate()
                        .map(|(i, x)| x * f(angle(i)))
                        .sum::<f64>()
                };
                sum(f64::cos).powi(2) + sum(f64::sin).powi(2)
            };
            let power: Vec<f64> = (0..N_BINS).map(power).collect();
            filters
                .apply(&power)
                .map(|power| power.max(MIN_POWER).log10())
                .collect()
        };
        let n = features.content_frames();
        let expected: Vec<f64> = (0..n).flat_map(direct).collect();
        let max = expected.iter().copied().fold(-10.0, f64::max);
        for (i, (found, log)) in frames(&features, 0, n).iter().zip(&expected).enumerate() {
            let expected = (log.max(max - 8.0) + 4.0) / 4.0;
            let difference = (f64::from(*found) - expected).abs();
            assert!(
                difference < 1e-5,
                "frame {}, bin {}: {found} and {expected}",
                i / 80,
                i % 80
            );
        }
    }

    #[test]
    fn filters_equal_the_published_ones() {
        for n_mels in [80, 128] {
            let expected = Golden::open(&format!("mel_{n_mels}.safetensors"))
                .floats(&format!("mel_filters_{n_mels}"));
            let filters = MelFilters::new(n_mels, N_FFT, SAMPLE_RATE);
            for bin in 0..N_BINS {
                let mut one = vec![0.0; N_BINS];
                one[bin] = 1.0;
                for (mel, found) in filters.apply(&one).enumerate() {
                    let expected = f64::from(expected[mel * N_BINS + bin]);
                    assert!(
                        (found - expected).abs() < 1e-6,
                        "filter {mel}, bin {bin}: {found} and {expected}"
                    );
                }
            }
        }
    }

    #[test]
    fn features_do_not_depend_on_block_sizes() {
        let samples: Vec<f32> = (0..5000)
            .map(|i| ((i * 7919) % 1000) as f32 / 1000.0 - 0.5)
            .collect();
        let whole = frames(&features(80, &samples, 5000), 0, 40);
        for block in [1, 160, 201, 399, 1601] {
            assert!(
                frames(&features(80, &samples, block), 0, 40) == whole,
                "blocks of {block}"
            );
        }
    }

    #[test]
    fn short_inputs_and_silence_have_features_too() {
        for n in [0, 1, 159, 160, 200, 201, 399, 16_000] {
            let silent = features(80, &vec![0.0; n], 64);
            assert_eq!(silent.content_frames(), n / HOP_SAMPLES);
            assert!(
                frames(&silent, 0, N_FRAMES).iter().all(|x| *x == -1.5),
                "{n} zeros"
            );
            let loud = features(80, &vec![0.5; n], 64);
            assert!(
                n == 0 || frames(&loud, 0, 1).iter().any(|x| *x > 0.0),
                "{n} samples"
            );
        }
    }

    #[test]
    fn windows_end_where_the_silence_ends() {
        let features = features(80, &[0.1; 1600], 1600);
        assert_eq!(
            frames(&features, 10, N_FRAMES).last(),
            Some(&features_of_silence(&features))
        );
        let mut out = vec![f32::NAN; N_FRAMES * 80];
        features.window(20, N_FRAMES, &mut out).unwrap();
        assert_eq!(out[2990 * 80 - 1], features_of_silence(&features));
        assert!(out[2990 * 80..].iter().all(|x| *x == 0.0));
        features.window(usize::MAX, 5, &mut out).unwrap();
        assert!(out.iter().all(|x| *x == 0.0));
    }

    fn features_of_silence(features: &Features) -> f32 {
        (SILENCE.max(features.floor) + 4.0) / 4.0
    }

    #[test]
    fn ten_minutes_are_held_in_bounded_memory() {
        let mut mel = LogMel::new(80);
        let second: Vec<f32> = (0..16_000)
            .map(|i| ((i * 7919) % 1000) as f32 / 1000.0 - 0.5)
            .collect();
        for _ in 0..600 {
            mel.push(&second).unwrap();
        }
        let features = mel.finish().unwrap();
        assert_eq!(features.content_frames(), 60_000);
        assert!(features.spill.memory_bytes() < 20 << 20);
        assert!(
            frames(&features, 100, 100) == frames(&features, 59_800, 100),
            "the same second, filed and in memory"
        );
    }
}
