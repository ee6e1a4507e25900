//! Weight matrices in the formats that they are stored in.

use bytes::Bytes;
use half::{bf16, f16};

use super::Error;
use super::quant::GROUP;

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
        /// `[rows, cols]` i8, from −127 to 127.
        codes: Bytes,
        /// `[rows]` f32.
        scales: Vec<f32>,
    },
    /// Signed bytes, and a factor for each [`GROUP`](super::quant::GROUP) of them along a row.
    Q8Group {
        /// `[rows, cols]` i8, from −127 to 127.
        codes: Bytes,
        /// `[rows, groups]`.
        scales: Vec<f16>,
    },
    /// Four bits: a value is `code · scale + min`, with a scale and a minimum for each
    /// [`GROUP`](super::quant::GROUP) along a row.
    Q4Group {
        /// `[rows, cols]`, a byte each, from 0 to 15.
        codes: Bytes,
        /// `[rows, groups]`.
        scales: Vec<f16>,
        /// `[rows, groups]`.
        mins: Vec<f16>,
    },
}

impl WeightFormat {
    /// What scales are called, how many there are and should be, where there are any.
    fn scales(&self, rows: usize, groups: usize) -> Option<(&'static str, usize, usize)> {
        match self {
            Self::F32(_) | Self::F16(_) | Self::Bf16(_) => None,
            Self::Q8 { scales, .. } => Some(("q8 scales", scales.len(), rows)),
            Self::Q8Group { scales, .. } => Some(("q8-group scales", scales.len(), groups)),
            Self::Q4Group { scales, mins, .. } => {
                Some(("q4-group scales", scales.len().min(mins.len()), groups))
            }
        }
    }
}

/// What a matrix is kept in, and with it how it is multiplied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// f32 weights and activations.
    F32,
    /// Both rounded to bfloat16, products summed in f32.
    Bf16,
    /// int8 weights with a scale a row; activations become int8 with a scale a row; products are summed in i32.
    Q8,
    /// int8 weights with a scale for each group of 32 along a row, activations likewise.
    Q8Group,
    /// 4-bit weights with scale and minimum for each group of 32 along a row; int8 activations as for [`Format::Q8Group`].
    Q4Group,
}

impl Format {
    /// `f32`, `bf16`, `q8`, `q8-group` or `q4-group`.
    pub fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::Bf16 => "bf16",
            Self::Q8 => "q8",
            Self::Q8Group => "q8-group",
            Self::Q4Group => "q4-group",
        }
    }
}

/// One row of a weight, as stored.
#[derive(Clone, Copy)]
pub(super) enum Row<'a> {
    F32(&'a [f32]),
    F16(&'a [f16]),
    Bf16(&'a [bf16]),
    Q8(&'a [i8], f32),
    Q8Group {
        codes: &'a [i8],
        scales: &'a [f16],
    },
    Q4Group {
        codes: &'a [u8],
        scales: &'a [f16],
        mins: &'a [f16],
    },
}

impl Weight {
    /// A matrix from its stored bytes, which are copied only when they are not aligned for their element type.
    ///
    /// # Errors
    /// [`Error::WeightSize`] when bytes or scales are not as many as `rows` and `cols` ask for.
    pub fn new(rows: usize, cols: usize, format: WeightFormat) -> Result<Self, Error> {
        let groups = rows.saturating_mul(cols.div_ceil(GROUP));
        if let Some((name, found, expected)) = format.scales(rows, groups)
            && found != expected
        {
            return Err(Error::WeightSize {
                rows,
                cols,
                format: name,
                expected: expected.saturating_mul(4),
                found: found * 4,
            });
        }
        let (name, size, found) = match &format {
            WeightFormat::F32(data) => ("f32", 4, data.len()),
            WeightFormat::F16(data) => ("f16", 2, data.len()),
            WeightFormat::Bf16(data) => ("bf16", 2, data.len()),
            WeightFormat::Q8 { codes, .. } => ("q8", 1, codes.len()),
            WeightFormat::Q8Group { codes, .. } => ("q8-group", 1, codes.len()),
            WeightFormat::Q4Group { codes, .. } => ("q4-group", 1, codes.len()),
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
            codes => codes,
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

    /// What the matrix is multiplied in when it is used as it is: halves are widened to singles, which loses nothing.
    pub fn multiplied_in(&self) -> Format {
        match self.format {
            WeightFormat::F32(_) | WeightFormat::F16(_) => Format::F32,
            WeightFormat::Bf16(_) => Format::Bf16,
            WeightFormat::Q8 { .. } => Format::Q8,
            WeightFormat::Q8Group { .. } => Format::Q8Group,
            WeightFormat::Q4Group { .. } => Format::Q4Group,
        }
    }

    /// Its values, row after row.
    pub fn values(&self) -> Vec<f32> {
        let mut values = vec![0.0; self.rows * self.cols];
        for (r, row) in values.chunks_exact_mut(self.cols.max(1)).enumerate() {
            self.row(r).widen(row);
        }
        values
    }

    /// Row `r` as stored.
    pub(super) fn row(&self, r: usize) -> Row<'_> {
        let span = r * self.cols..(r + 1) * self.cols;
        let groups = self.cols.div_ceil(GROUP);
        let groups = r * groups..(r + 1) * groups;
        match &self.format {
            WeightFormat::F32(data) => Row::F32(&bytemuck::cast_slice(data)[span]),
            WeightFormat::F16(data) => Row::F16(&bytemuck::cast_slice(data)[span]),
            WeightFormat::Bf16(data) => Row::Bf16(&bytemuck::cast_slice(data)[span]),
            WeightFormat::Q8 { codes, scales } => {
                Row::Q8(&bytemuck::cast_slice(codes)[span], scales[r])
            }
            WeightFormat::Q8Group { codes, scales } => Row::Q8Group {
                codes: &bytemuck::cast_slice(codes)[span],
                scales: &scales[groups],
            },
            WeightFormat::Q4Group {
                codes,
                scales,
                mins,
            } => Row::Q4Group {
                codes: &codes[span],
                scales: &scales[groups.clone()],
                mins: &mins[groups],
            },
        }
    }
}

impl Row<'_> {
    /// As [`Weight::multiplied_in`].
    #[inline(always)]
    pub(super) fn multiplied_in(self) -> Format {
        match self {
            Row::F32(_) | Row::F16(_) => Format::F32,
            Row::Bf16(_) => Format::Bf16,
            Row::Q8(..) => Format::Q8,
            Row::Q8Group { .. } => Format::Q8Group,
            Row::Q4Group { .. } => Format::Q4Group,
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
            Row::Q8Group { codes, scales } => {
                let groups = codes.chunks(GROUP).zip(out.chunks_mut(GROUP)).zip(scales);
                for ((codes, out), scale) in groups {
                    each(codes, out, |code| f32::from(code) * scale.to_f32());
                }
            }
            Row::Q4Group {
                codes,
                scales,
                mins,
            } => {
                let groups = codes.chunks(GROUP).zip(out.chunks_mut(GROUP));
                for ((codes, out), (scale, min)) in groups.zip(scales.iter().zip(mins)) {
                    each(codes, out, |code| {
                        f32::from(code) * scale.to_f32() + min.to_f32()
                    });
                }
            }
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
