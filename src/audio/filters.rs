//! The mel filters of the "slaney" kind: triangles that are linear in hertz up to 1 kHz and logarithmic above,
//! each of area one.
//!
//! M. Slaney, *Auditory Toolbox* (1998), as `librosa.filters.mel` computes it with its defaults; Whisper publishes its
//! result as `mel_filters.npz`, which this equals to 1e-6.

/// Hertz of one mel below the corner.
const HZ_A_MEL: f64 = 200.0 / 3.0;
/// Where the scale becomes logarithmic.
const CORNER_HZ: f64 = 1000.0;
/// A factor of 6.4 in frequency is 27 mels.
const LOG_STEP: f64 = 27.0;
const LOG_FACTOR: f64 = 6.4;

/// A bank of triangular filters over a power spectrum, each stored from its first weight that is not zero.
pub(super) struct MelFilters {
    filters: Vec<(usize, Vec<f64>)>,
}

impl MelFilters {
    /// `n_mels` filters between 0 Hz and half of `rate_hz`, over the bins of a transform of `n_fft` samples.
    pub(super) fn new(n_mels: usize, n_fft: usize, rate_hz: u32) -> Self {
        let top = hz_to_mel(f64::from(rate_hz) / 2.0);
        let edge = |i: usize| mel_to_hz(top * i as f64 / (n_mels + 1) as f64);
        let bin_hz = f64::from(rate_hz) / n_fft as f64;
        let filters = (0..n_mels).map(|mel| {
            let (low, centre, high) = (edge(mel), edge(mel + 1), edge(mel + 2));
            let area = 2.0 / (high - low);
            let weight = |bin: usize| {
                let hz = bin as f64 * bin_hz;
                area * ((hz - low) / (centre - low))
                    .min((high - hz) / (high - centre))
                    .max(0.0)
            };
            let n_bins = n_fft / 2 + 1;
            let first = (0..n_bins).find(|bin| weight(*bin) > 0.0).unwrap_or(n_bins);
            (
                first,
                (first..n_bins)
                    .map(weight)
                    .take_while(|w| *w > 0.0)
                    .collect(),
            )
        });
        Self {
            filters: filters.collect(),
        }
    }

    /// The energy in each filter of a power spectrum.
    pub(super) fn apply<'a>(&'a self, power: &'a [f64]) -> impl Iterator<Item = f64> + 'a {
        let dot = |(first, weights): &(usize, Vec<f64>)| {
            weights
                .iter()
                .zip(&power[*first..])
                .map(|(w, p)| w * p)
                .sum()
        };
        self.filters.iter().map(dot)
    }
}

fn hz_to_mel(hz: f64) -> f64 {
    if hz < CORNER_HZ {
        hz / HZ_A_MEL
    } else {
        CORNER_HZ / HZ_A_MEL + (hz / CORNER_HZ).ln() * LOG_STEP / LOG_FACTOR.ln()
    }
}

fn mel_to_hz(mel: f64) -> f64 {
    let corner = CORNER_HZ / HZ_A_MEL;
    if mel < corner {
        mel * HZ_A_MEL
    } else {
        CORNER_HZ * (LOG_FACTOR.ln() * (mel - corner) / LOG_STEP).exp()
    }
}
