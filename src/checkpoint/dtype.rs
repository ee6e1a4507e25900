//! What the elements of a stored tensor are.

use std::fmt;

/// Element type of a stored tensor; values are little-endian.
///
/// The quantised types are ggml's: rows are cut into blocks of [`Dtype::block_len`] elements, each stored with its own
/// scale in [`Dtype::size`] bytes. They are known by name and size, so that a file of them can be listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dtype {
    /// IEEE double.
    F64,
    /// IEEE single.
    F32,
    /// IEEE half.
    F16,
    /// bfloat16, the upper half of a single.
    Bf16,
    /// Signed 64-bit integer.
    I64,
    /// Signed 32-bit integer.
    I32,
    /// Signed 16-bit integer.
    I16,
    /// Signed 8-bit integer.
    I8,
    /// Unsigned 8-bit integer.
    U8,
    /// One byte, 0 or 1.
    Bool,
    /// 1 bit, a scale.
    Q1_0,
    /// 2 bits, a scale.
    Q2_0,
    /// 4 bits, a scale.
    Q4_0,
    /// 4 bits, a scale and a minimum.
    Q4_1,
    /// 5 bits, a scale.
    Q5_0,
    /// 5 bits, a scale and a minimum.
    Q5_1,
    /// 8 bits, a scale.
    Q8_0,
    /// 8 bits, a scale and a sum; for activations.
    Q8_1,
    /// 2 bits, scales and minima of groups of 16.
    Q2K,
    /// 3 bits, scales of groups of 16.
    Q3K,
    /// 4 bits, scales and minima of groups of 32.
    Q4K,
    /// 5 bits, scales and minima of groups of 32.
    Q5K,
    /// 6 bits, scales of groups of 16.
    Q6K,
    /// 8 bits, a scale and sums; for activations.
    Q8K,
    /// 1.6 bits: places in a table of groups.
    Iq1S,
    /// 1.8 bits: places in a table of groups.
    Iq1M,
    /// 2.1 bits: places in a table of groups.
    Iq2Xxs,
    /// 2.3 bits: places in a table of groups.
    Iq2Xs,
    /// 2.6 bits: places in a table of groups.
    Iq2S,
    /// 3.1 bits: places in a table of groups.
    Iq3Xxs,
    /// 3.4 bits: places in a table of groups.
    Iq3S,
    /// 4 bits: places in a table of 16 values, a scale.
    Iq4Nl,
    /// 4 bits: places in a table of 16 values, scales of groups of 32.
    Iq4Xs,
    /// 1.7 bits: −1, 0 or 1, five of them in a byte.
    Tq1_0,
    /// 2 bits: −1, 0 or 1.
    Tq2_0,
    /// 4-bit floats with a power of two as their scale.
    Mxfp4,
    /// 4-bit floats with an 8-bit float as the scale of each 16.
    Nvfp4,
}

/// ggml's numbers (`enum ggml_type`); files no longer have those that are left out.
const GGML_TYPES: [(u32, Dtype); 35] = [
    (0, Dtype::F32),
    (1, Dtype::F16),
    (2, Dtype::Q4_0),
    (3, Dtype::Q4_1),
    (6, Dtype::Q5_0),
    (7, Dtype::Q5_1),
    (8, Dtype::Q8_0),
    (9, Dtype::Q8_1),
    (10, Dtype::Q2K),
    (11, Dtype::Q3K),
    (12, Dtype::Q4K),
    (13, Dtype::Q5K),
    (14, Dtype::Q6K),
    (15, Dtype::Q8K),
    (16, Dtype::Iq2Xxs),
    (17, Dtype::Iq2Xs),
    (18, Dtype::Iq3Xxs),
    (19, Dtype::Iq1S),
    (20, Dtype::Iq4Nl),
    (21, Dtype::Iq3S),
    (22, Dtype::Iq2S),
    (23, Dtype::Iq4Xs),
    (24, Dtype::I8),
    (25, Dtype::I16),
    (26, Dtype::I32),
    (27, Dtype::I64),
    (28, Dtype::F64),
    (29, Dtype::Iq1M),
    (30, Dtype::Bf16),
    (34, Dtype::Tq1_0),
    (35, Dtype::Tq2_0),
    (39, Dtype::Mxfp4),
    (40, Dtype::Nvfp4),
    (41, Dtype::Q1_0),
    (42, Dtype::Q2_0),
];

impl Dtype {
    /// The name, the elements of a block, and its bytes.
    const fn layout(self) -> (&'static str, usize, usize) {
        match self {
            Self::F64 => ("F64", 1, 8),
            Self::F32 => ("F32", 1, 4),
            Self::F16 => ("F16", 1, 2),
            Self::Bf16 => ("BF16", 1, 2),
            Self::I64 => ("I64", 1, 8),
            Self::I32 => ("I32", 1, 4),
            Self::I16 => ("I16", 1, 2),
            Self::I8 => ("I8", 1, 1),
            Self::U8 => ("U8", 1, 1),
            Self::Bool => ("BOOL", 1, 1),
            Self::Q1_0 => ("Q1_0", 128, 18),
            Self::Q2_0 => ("Q2_0", 64, 18),
            Self::Q4_0 => ("Q4_0", 32, 18),
            Self::Q4_1 => ("Q4_1", 32, 20),
            Self::Q5_0 => ("Q5_0", 32, 22),
            Self::Q5_1 => ("Q5_1", 32, 24),
            Self::Q8_0 => ("Q8_0", 32, 34),
            Self::Q8_1 => ("Q8_1", 32, 36),
            Self::Q2K => ("Q2_K", 256, 84),
            Self::Q3K => ("Q3_K", 256, 110),
            Self::Q4K => ("Q4_K", 256, 144),
            Self::Q5K => ("Q5_K", 256, 176),
            Self::Q6K => ("Q6_K", 256, 210),
            Self::Q8K => ("Q8_K", 256, 292),
            Self::Iq1S => ("IQ1_S", 256, 50),
            Self::Iq1M => ("IQ1_M", 256, 56),
            Self::Iq2Xxs => ("IQ2_XXS", 256, 66),
            Self::Iq2Xs => ("IQ2_XS", 256, 74),
            Self::Iq2S => ("IQ2_S", 256, 82),
            Self::Iq3Xxs => ("IQ3_XXS", 256, 98),
            Self::Iq3S => ("IQ3_S", 256, 110),
            Self::Iq4Nl => ("IQ4_NL", 32, 18),
            Self::Iq4Xs => ("IQ4_XS", 256, 136),
            Self::Tq1_0 => ("TQ1_0", 256, 54),
            Self::Tq2_0 => ("TQ2_0", 256, 66),
            Self::Mxfp4 => ("MXFP4", 32, 17),
            Self::Nvfp4 => ("NVFP4", 64, 36),
        }
    }

    /// The spelling of a safetensors header or of ggml: `F32`, `BF16`, `BOOL`, `Q4_K`.
    pub const fn name(self) -> &'static str {
        self.layout().0
    }

    /// Elements that are stored together; 1 unless the type is quantised.
    pub const fn block_len(self) -> usize {
        self.layout().1
    }

    /// Bytes of one block, which is one element unless the type is quantised.
    pub const fn size(self) -> usize {
        self.layout().2
    }

    /// Whether elements are stored in blocks with a scale of their own, and have no bytes of their own.
    pub const fn is_quantised(self) -> bool {
        self.block_len() > 1
    }

    /// Bytes of a tensor of this type, or `None` when they overflow or its rows are no whole number of blocks.
    pub fn byte_len(self, shape: &[usize]) -> Option<usize> {
        let (&row, outer) = shape.split_last().unwrap_or((&1, &[]));
        if !row.is_multiple_of(self.block_len()) {
            return None;
        }
        outer
            .iter()
            .chain([&(row / self.block_len()), &self.size()])
            .try_fold(1_usize, |bytes, &extent| bytes.checked_mul(extent))
    }

    /// The type that a safetensors header spells `name`, or `None` for one that no model here uses (`F8_E4M3`, `U32`).
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "F64" => Self::F64,
            "F32" => Self::F32,
            "F16" => Self::F16,
            "BF16" => Self::Bf16,
            "I64" => Self::I64,
            "I32" => Self::I32,
            "I16" => Self::I16,
            "I8" => Self::I8,
            "U8" => Self::U8,
            "BOOL" => Self::Bool,
            _ => return None,
        })
    }

    /// The type of ggml's number `code` (`enum ggml_type`), or `None` for one that is not known or no longer written.
    pub fn from_ggml(code: u32) -> Option<Self> {
        let known = GGML_TYPES.iter().find(|(known, _)| *known == code);
        known.map(|&(_, dtype)| dtype)
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_follow_from_the_shape() {
        let cases: [(Dtype, &[usize], Option<usize>); 13] = [
            (Dtype::F32, &[], Some(4)),
            (Dtype::F16, &[2, 3], Some(12)),
            (Dtype::I64, &[5, 0], Some(0)),
            (Dtype::U8, &[usize::MAX], Some(usize::MAX)),
            (Dtype::F16, &[usize::MAX], None),
            (Dtype::U8, &[usize::MAX, 2], None),
            (Dtype::U8, &[usize::MAX, 2, 0], None),
            (Dtype::Q8_0, &[3, 64], Some(3 * 2 * 34)),
            (Dtype::Q4K, &[2, 256], Some(2 * 144)),
            (Dtype::Q8_0, &[64, 3], None),
            (Dtype::Q8_0, &[], None),
            (Dtype::Q8_0, &[7, 0], Some(0)),
            (Dtype::Q4_0, &[usize::MAX, 32], None),
        ];
        for (dtype, shape, expected) in cases {
            assert_eq!(dtype.byte_len(shape), expected, "{dtype} {shape:?}");
        }
    }

    #[test]
    fn ggml_s_removed_numbers_are_not_known() {
        for code in [4, 5, 31, 32, 33, 36, 37, 38, 43, u32::MAX] {
            assert_eq!(Dtype::from_ggml(code), None, "{code}");
        }
    }

    #[test]
    fn a_safetensors_header_has_no_quantised_types() {
        for (_, dtype) in GGML_TYPES {
            let expected = (!dtype.is_quantised()).then_some(dtype);
            assert_eq!(Dtype::from_name(dtype.name()), expected, "{dtype}");
        }
    }
}
