//! Weight matrices in the formats that they are stored in.

use bytes::Bytes;
use half::{bf16, f16};

use super::Error;

/// A weight matrix `[rows, cols]`: output features by input features, row-major.
///
/// Its bytes are shared with the checkpoint that they came from and aligned for their element type.
#[derive(Clone, Debug)]
pub struct Weight {
    rows: usize,
    cols: usize,
    /// Aligned, and of the size that `rows` and `cols` ask for.
    format: WeightFormat,
}

/// How a weight's values are stored.
#[derive(Clone, Debug)]
pub enum WeightFormat {
    /// IEEE singles.
    F32(Bytes),
    /// IEEE halves.
    F16(Bytes),
    /// bfloat16.
    Bf16(Bytes),
    /// Signed bytes, and for each row the factor that turns them into values.
    Q8 {
        /// `[rows, cols]` i8.
        codes: Bytes,
        /// `[rows]` f32.
        scales: Vec<f32>,
    },
}

/// One row of a weight, as stored.
#[derive(Clone, Copy)]
pub(super) enum Row<'a> {
    F32(&'a [f32]),
    F16(&'a [f16]),
    Bf16(&'a [bf16]),
    Q8(&'a [i8], f32),
}

impl Weight {
    /// A matrix from its stored bytes, which are copied only when they are not aligned for their element type.
    ///
    /// # Errors
    /// [`Error::WeightSize`] when bytes or scales are not as many as `rows` and `cols` ask for.
    pub fn new(rows: usize, cols: usize, format: WeightFormat) -> Result<Self, Error> {
        let (name, size, found) = match &format {
            WeightFormat::F32(data) => ("f32", 4, data.len()),
            WeightFormat::F16(data) => ("f16", 2, data.len()),
            WeightFormat::Bf16(data) => ("bf16", 2, data.len()),
            WeightFormat::Q8 { codes, .. } => ("q8", 1, codes.len()),
        };
        let expected = rows.saturating_mul(cols).saturating_mul(size);
        if found != expected {
            return Err(Error::WeightSize {
                rows,
                cols,
                format: name,
                expected,
                found,
            });
        }
        let format = match format {
            WeightFormat::F32(data) => WeightFormat::F32(aligned::<f32>(data)),
            WeightFormat::F16(data) => WeightFormat::F16(aligned::<f16>(data)),
            WeightFormat::Bf16(data) => WeightFormat::Bf16(aligned::<bf16>(data)),
            WeightFormat::Q8 { scales, .. } if scales.len() != rows => {
                let (expected, found) = (rows * 4, scales.len() * 4);
                return Err(Error::WeightSize {
                    rows,
                    cols,
                    format: "q8 scales",
                    expected,
                    found,
                });
            }
            q8 @ WeightFormat::Q8 { .. } => q8,
        };
        Ok(Self { rows, cols, format })
    }

    /// A matrix of singles.
    ///
    /// # Panics
    /// `values` are not `rows · cols`.
    pub fn from_f32(rows: usize, cols: usize, values: Vec<f32>) -> Self {
        assert_eq!(
            values.len(),
            rows * cols,
            "values of a {rows} x {cols} matrix"
        );
        Self {
            rows,
            cols,
            format: WeightFormat::F32(Bytes::from_owner(Owner(values))),
        }
    }

    /// Output features.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Input features.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Row `r` as stored.
    pub(super) fn row(&self, r: usize) -> Row<'_> {
        let span = r * self.cols..(r + 1) * self.cols;
        match &self.format {
            WeightFormat::F32(data) => Row::F32(&bytemuck::cast_slice(data)[span]),
            WeightFormat::F16(data) => Row::F16(&bytemuck::cast_slice(data)[span]),
            WeightFormat::Bf16(data) => Row::Bf16(&bytemuck::cast_slice(data)[span]),
            WeightFormat::Q8 { codes, scales } => {
                Row::Q8(&bytemuck::cast_slice(codes)[span], scales[r])
            }
        }
    }
}

impl<'a> Row<'a> {
    /// Columns `from..to` of the row.
    #[inline(always)]
    pub(super) fn columns(self, from: usize, to: usize) -> Self {
        match self {
            Row::F32(values) => Row::F32(&values[from..to]),
            Row::F16(values) => Row::F16(&values[from..to]),
            Row::Bf16(values) => Row::Bf16(&values[from..to]),
            Row::Q8(codes, scale) => Row::Q8(&codes[from..to], scale),
        }
    }

    /// Writes the row's values to `out`, one for each column.
    #[inline(always)]
    pub(super) fn widen(self, out: &mut [f32]) {
        match self {
            Row::F32(values) => out.copy_from_slice(values),
            Row::F16(values) => each(values, out, f16_to_f32),
            Row::Bf16(values) => each(values, out, bf16_to_f32),
            Row::Q8(codes, scale) => each(codes, out, |code| f32::from(code) * scale),
        }
    }
}

#[inline(always)]
fn each<T: Copy>(from: &[T], to: &mut [f32], widen: impl Fn(T) -> f32) {
    assert_eq!(from.len(), to.len(), "columns of a row");
    for (to, &from) in to.iter_mut().zip(from) {
        *to = widen(from);
    }
}

/// The value of a half, without branches, so that loops over it vectorise on every instruction set.
///
/// Moved up by 13 bits, a half's exponent and fraction read as a single that is 2¹¹² too small, subnormals included;
/// infinities and NaNs (exponent 31) are put right afterwards.
#[inline(always)]
pub(in crate::compute) fn f16_to_f32(x: f16) -> f32 {
    let bits = x.to_bits();
    let magnitude = u32::from(bits & 0x7fff) << 13;
    let sign = u32::from(bits & 0x8000) << 16;
    let finite = (f32::from_bits(magnitude) * f32::from_bits((127 + 112) << 23)).to_bits();
    let special = magnitude | 0x7f80_0000;
    f32::from_bits(
        sign | if bits & 0x7c00 == 0x7c00 {
            special
        } else {
            finite
        },
    )
}

/// The value of a bfloat16 number.
#[inline(always)]
pub(in crate::compute) fn bf16_to_f32(x: bf16) -> f32 {
    f32::from_bits(u32::from(x.to_bits()) << 16)
}

/// Values that are lent out as bytes.
struct Owner<T>(Vec<T>);

impl<T: bytemuck::Pod> AsRef<[u8]> for Owner<T> {
    fn as_ref(&self) -> &[u8] {
        bytemuck::cast_slice(&self.0)
    }
}

/// `data` itself when it can be read as `T`s where it lies, else a copy that can.
fn aligned<T: bytemuck::Pod + Send>(data: Bytes) -> Bytes {
    if bytemuck::try_cast_slice::<u8, T>(&data).is_ok() {
        return data;
    }
    Bytes::from_owner(Owner(bytemuck::pod_collect_to_vec::<u8, T>(&data)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_half_widens_to_the_value_of_its_bits() {
        for bits in 0..=u16::MAX {
            let (ours, truth) = (
                f16_to_f32(f16::from_bits(bits)),
                f16::from_bits(bits).to_f32(),
            );
            assert!(
                ours == truth || (ours.is_nan() && truth.is_nan()),
                "{bits:#06x}: {ours} is not {truth}"
            );
        }
    }

    #[test]
    fn every_bfloat16_widens_to_the_value_of_its_bits() {
        for bits in 0..=u16::MAX {
            let (ours, truth) = (
                bf16_to_f32(bf16::from_bits(bits)),
                bf16::from_bits(bits).to_f32(),
            );
            assert!(
                ours == truth || (ours.is_nan() && truth.is_nan()),
                "{bits:#06x}: {ours} is not {truth}"
            );
        }
    }

    #[test]
    fn unaligned_bytes_hold_the_same_values() {
        let values: Vec<f32> = (0..6).map(|i| i as f32 * 0.5).collect();
        let mut bytes = vec![0u8];
        bytes.extend_from_slice(bytemuck::cast_slice(&values));
        for start in 0..4 {
            let mut moved = vec![0u8; start];
            moved.extend_from_slice(&bytes[1..]);
            let data = Bytes::from(moved).slice(start..);
            let weight = Weight::new(2, 3, WeightFormat::F32(data)).unwrap();
            let mut row = [0.0; 3];
            weight.row(1).widen(&mut row);
            assert_eq!(row, [1.5, 2.0, 2.5], "at offset {start}");
        }
    }

    #[test]
    fn a_wrong_size_is_refused() {
        let short = WeightFormat::F16(Bytes::from(vec![0; 10]));
        assert!(matches!(
            Weight::new(2, 3, short),
            Err(Error::WeightSize {
                expected: 12,
                found: 10,
                ..
            })
        ));
        let scales = WeightFormat::Q8 {
            codes: Bytes::from(vec![0; 6]),
            scales: vec![1.0],
        };
        assert!(matches!(
            Weight::new(2, 3, scales),
            Err(Error::WeightSize {
                format: "q8 scales",
                ..
            })
        ));
        let overflow = WeightFormat::F32(Bytes::new());
        assert!(Weight::new(usize::MAX, usize::MAX, overflow).is_err());
    }
}
