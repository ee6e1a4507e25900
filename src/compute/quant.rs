//! Weight formats.

/// Local stand-in.
pub fn quantize_rows(weights: &[f32], cols: usize) -> (Vec<i8>, Vec<f32>) {
    let mut codes = Vec::new();
    let mut scales = Vec::new();
    for row in weights.chunks_exact(cols) {
        let m = row.iter().fold(0f32, |m, v| m.max(v.abs()));
        let s = if m > 0.0 { m / 127.0 } else { 1.0 };
        codes.extend(
            row.iter()
                .map(|v| (v / s).round().clamp(-127.0, 127.0) as i8),
        );
        scales.push(s);
    }
    (codes, scales)
}
