//! Mono samples of any rate become [`SAMPLE_RATE`] samples.

use rubato::audioadapter_buffers::direct::SequentialSlice;
use rubato::{Fft, FixedSync, Resampler as Filter, WindowFunction};

use super::SAMPLE_RATE;

/// Least length of the anti-aliasing filter in samples of the lower of the two rates. A longer filter has a narrower
/// transition band: with this one the pass band (-0.1 dB) reaches 0.96 of the lower Nyquist frequency, and what lies
/// above that frequency is 130 dB down (measured with sines, 8 to 96 kHz).
const FILTER_SAMPLES: usize = 512;

/// A streaming resampler from one rate to [`SAMPLE_RATE`].
///
/// Sample 0 out is sample 0 in (the filter's delay is taken away), and `n` samples in give
/// `round(n * SAMPLE_RATE / rate)` samples out. The output does not depend on how the input is cut into pushes.
pub(super) struct Resampler {
    rate_hz: u32,
    /// `None` where the rate is already right.
    fft: Option<Fft<f32>>,
    /// Samples that wait until a whole chunk is there.
    pending: Vec<f32>,
    chunk_out: Vec<f32>,
    /// Leading output samples still to drop: the filter's delay.
    delay: usize,
    pushed: u64,
    emitted: u64,
}

impl Resampler {
    /// A resampler from `rate_hz`, which must lie within [`RATES_HZ`](super::RATES_HZ).
    pub(super) fn new(rate_hz: u32) -> Self {
        let fft = (rate_hz != SAMPLE_RATE).then(|| {
            // A chunk is the smallest whole number of periods in both rates, times some. The filter is as long as a
            // chunk, and its delay is half that: an even length keeps the delay whole.
            let (period_in, period_out) = periods(rate_hz);
            let least =
                (FILTER_SAMPLES * rate_hz.div_ceil(SAMPLE_RATE) as usize).div_ceil(period_in);
            let odd = period_in % 2 == 1 || period_out % 2 == 1;
            let chunk = period_in
                * if odd {
                    least.next_multiple_of(2)
                } else {
                    least
                };
            Fft::<f32>::new_custom(
                rate_hz as usize,
                SAMPLE_RATE as usize,
                chunk,
                1,
                1,
                WindowFunction::BlackmanHarris2,
                FixedSync::Both,
            )
            .expect("both rates and the chunk are positive")
        });
        let delay = fft.as_ref().map_or(0, Filter::output_delay);
        let chunk_out = vec![0.0; fft.as_ref().map_or(0, Filter::output_frames_max)];
        Self {
            rate_hz,
            fft,
            pending: Vec::new(),
            chunk_out,
            delay,
            pushed: 0,
            emitted: 0,
        }
    }

    /// The rate of what is pushed, in Hz.
    pub(super) fn rate_hz(&self) -> u32 {
        self.rate_hz
    }

    /// Takes `samples` and appends to `out` what is ready.
    pub(super) fn push(&mut self, samples: &[f32], out: &mut Vec<f32>) {
        self.pushed += samples.len() as u64;
        if self.fft.is_none() {
            self.emitted += samples.len() as u64;
            out.extend_from_slice(samples);
            return;
        }
        self.pending.extend_from_slice(samples);
        self.drain(u64::MAX, out);
    }

    /// Appends to `out` what is still inside the filter: nothing may be pushed afterwards.
    pub(super) fn finish(&mut self, out: &mut Vec<f32>) {
        let Some(fft) = &self.fft else { return };
        let chunk = fft.input_frames_next();
        let (rate, target) = (u128::from(self.rate_hz), u128::from(SAMPLE_RATE));
        let total = (u128::from(self.pushed) * target + rate / 2) / rate;
        let total = u64::try_from(total).unwrap_or(u64::MAX);
        while self.emitted < total {
            self.pending.resize(chunk, 0.0);
            self.drain(total, out);
        }
    }

    /// Runs whole chunks through the filter; the output never grows beyond `total` samples in all.
    fn drain(&mut self, total: u64, out: &mut Vec<f32>) {
        let Some(fft) = &mut self.fft else { return };
        let chunk = fft.input_frames_next();
        let whole = self.pending.len() / chunk * chunk;
        for input in self.pending[..whole].chunks_exact(chunk) {
            let len_out = self.chunk_out.len();
            let adapted = SequentialSlice::new(input, 1, chunk).expect("one chunk, as asked for");
            let mut output = SequentialSlice::new_mut(&mut self.chunk_out, 1, len_out)
                .expect("sized by the resampler's maximum");
            let (_, n) = fft
                .process_into_buffer(&adapted, &mut output, None)
                .expect("buffers of the sizes asked for");
            let skip = self.delay.min(n);
            self.delay -= skip;
            let left = usize::try_from(total - self.emitted).unwrap_or(usize::MAX);
            let ready = &self.chunk_out[skip..n];
            let ready = &ready[..ready.len().min(left)];
            out.extend_from_slice(ready);
            self.emitted += ready.len() as u64;
        }
        self.pending.drain(..whole);
    }
}

/// How many samples of `rate_hz` last as long as how many of [`SAMPLE_RATE`], in least terms.
fn periods(rate_hz: u32) -> (usize, usize) {
    let (mut a, mut b) = (rate_hz, SAMPLE_RATE);
    while b > 0 {
        (a, b) = (b, a % b);
    }
    ((rate_hz / a) as usize, (SAMPLE_RATE / a) as usize)
}

#[cfg(test)]
mod tests {
    use std::f64::consts::TAU;

    use super::*;

    const RATES: [u32; 14] = [
        1_000, 8_000, 11_025, 12_000, 16_000, 22_050, 24_000, 32_000, 44_056, 44_100, 48_000,
        88_200, 96_000, 192_000,
    ];

    fn sine(rate_hz: u32, hz: f64, n: usize) -> Vec<f32> {
        (0..n)
            .map(|i| (0.5 * (TAU * hz * i as f64 / f64::from(rate_hz)).sin()) as f32)
            .collect()
    }

    fn resample(rate_hz: u32, samples: &[f32], block: usize) -> Vec<f32> {
        let mut resampler = Resampler::new(rate_hz);
        let mut out = Vec::new();
        for block in samples.chunks(block) {
            resampler.push(block, &mut out);
        }
        resampler.finish(&mut out);
        out
    }

    #[test]
    fn sines_keep_phase_and_amplitude() {
        for rate in RATES {
            for part in [0.05, 0.3, 0.6, 0.9] {
                let hz = part * f64::from(rate.min(SAMPLE_RATE)) / 2.0;
                let out = resample(rate, &sine(rate, hz, rate as usize * 2), 4096);
                let want = sine(SAMPLE_RATE, hz, 2 * SAMPLE_RATE as usize);
                assert_eq!(out.len(), want.len(), "{rate} Hz");
                // Both ends ring, because the sine starts and stops there.
                let (mut signal, mut noise) = (0.0f64, 0.0f64);
                for i in out.len() / 4..out.len() * 3 / 4 {
                    signal += f64::from(want[i]).powi(2);
                    noise += f64::from(out[i] - want[i]).powi(2);
                }
                let snr_db = 10.0 * (signal / noise.max(1e-30)).log10();
                assert!(snr_db > 100.0, "{rate} Hz, sine of {hz} Hz: {snr_db:.1} dB");
            }
        }
    }

    #[test]
    fn what_lies_above_the_target_band_is_removed() {
        for rate in [22_050, 32_000, 44_100, 48_000, 96_000, 192_000] {
            let hz = 8_300.0;
            let out = resample(rate, &sine(rate, hz, rate as usize), 1000);
            let inner = &out[out.len() / 4..out.len() * 3 / 4];
            let peak = inner.iter().fold(0.0f32, |m, x| m.max(x.abs()));
            assert!(peak < 1e-5, "{rate} Hz: {peak}");
        }
    }

    #[test]
    fn output_does_not_depend_on_block_sizes() {
        for rate in RATES {
            let samples: Vec<f32> = (0..20_001)
                .map(|i| ((i * 7919) % 1000) as f32 / 1000.0 - 0.5)
                .collect();
            let whole = resample(rate, &samples, samples.len());
            for block in [1, 7, 160, 1152, 6000] {
                assert!(
                    resample(rate, &samples, block) == whole,
                    "{rate} Hz in blocks of {block}"
                );
            }
        }
    }

    #[test]
    fn an_impulse_stays_where_it_is() {
        for rate in [8_000, 48_000, 96_000] {
            let mut samples = vec![0.0; rate as usize];
            samples[rate as usize / 4] = 1.0;
            let out = resample(rate, &samples, 512);
            let peak = out
                .iter()
                .enumerate()
                .max_by(|a, b| a.1.total_cmp(b.1))
                .unwrap()
                .0;
            assert_eq!(peak, SAMPLE_RATE as usize / 4, "{rate} Hz");
        }
    }

    #[test]
    fn length_is_rounded() {
        for (rate, n) in [
            (48_000, 1),
            (48_000, 2),
            (44_100, 44_101),
            (8_000, 3),
            (44_056, 0),
            (96_000, 5),
        ] {
            let out = resample(rate, &vec![0.1; n], 64);
            let want = (n as f64 * f64::from(SAMPLE_RATE) / f64::from(rate)).round() as usize;
            assert_eq!(out.len(), want, "{n} samples of {rate} Hz");
        }
    }
}
