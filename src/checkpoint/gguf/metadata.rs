//! The values of a GGUF file, as strings.

use std::collections::BTreeMap;

use super::{GgufFault, string, text};
use crate::checkpoint::cursor::Cursor;
use crate::checkpoint::error::printable;

/// The key of what tensors' places are multiples of.
const ALIGNMENT_KEY: &str = "general.alignment";
/// What they are multiples of where the file does not say.
const DEFAULT_ALIGNMENT: usize = 32;
/// The longest array whose elements are written out.
const MAX_SHOWN: u64 = 8;
/// Arrays inside one another; ggml itself writes none inside another.
const MAX_DEPTH: usize = 4;
/// What a value's bytes are called when they are missing.
const VALUE: &str = "a value";

/// The type of a value (`gguf_metadata_value_type`).
#[derive(Clone, Copy, PartialEq, Eq)]
enum ValueType {
    U8,
    I8,
    U16,
    I16,
    U32,
    I32,
    F32,
    Bool,
    String,
    Array,
    U64,
    I64,
    F64,
}

impl ValueType {
    fn from_code(code: u32) -> Option<Self> {
        Some(match code {
            0 => Self::U8,
            1 => Self::I8,
            2 => Self::U16,
            3 => Self::I16,
            4 => Self::U32,
            5 => Self::I32,
            6 => Self::F32,
            7 => Self::Bool,
            8 => Self::String,
            9 => Self::Array,
            10 => Self::U64,
            11 => Self::I64,
            12 => Self::F64,
            _ => return None,
        })
    }

    /// Bytes of each value, or `None` where they differ.
    fn size(self) -> Option<u64> {
        match self {
            Self::U8 | Self::I8 | Self::Bool => Some(1),
            Self::U16 | Self::I16 => Some(2),
            Self::U32 | Self::I32 | Self::F32 => Some(4),
            Self::U64 | Self::I64 | Self::F64 => Some(8),
            Self::String | Self::Array => None,
        }
    }

    /// What many of them are called.
    fn plural(self) -> &'static str {
        match self {
            Self::F32 | Self::F64 => "floats",
            Self::Bool => "booleans",
            Self::String => "strings",
            Self::Array => "arrays",
            _ => "integers",
        }
    }
}

/// `count` values by key, and the alignment that they ask for.
pub(super) fn read(
    cursor: &mut Cursor<'_>,
    count: u64,
) -> Result<(BTreeMap<String, String>, usize), GgufFault> {
    let mut values = BTreeMap::new();
    let mut alignment = DEFAULT_ALIGNMENT;
    for _ in 0..count {
        let key = text(cursor, "a key")?;
        let mut reader = Reader { cursor, key: &key };
        let kind = reader.kind()?;
        let value = match kind {
            ValueType::String => {
                String::from_utf8_lossy(string(reader.cursor, VALUE)?).into_owned()
            }
            _ => reader.value(kind, 0)?,
        };
        if key == ALIGNMENT_KEY {
            let stated = value.parse().ok().filter(|n: &usize| n.is_power_of_two());
            alignment =
                stated
                    .filter(|_| kind == ValueType::U32)
                    .ok_or_else(|| GgufFault::Alignment {
                        found: printable(&value),
                    })?;
        }
        if values.contains_key(&key) {
            return Err(GgufFault::RepeatedKey {
                key: printable(&key),
            });
        }
        values.insert(key, value);
    }
    Ok((values, alignment))
}

/// Reads the value of one key.
struct Reader<'r, 'a> {
    cursor: &'r mut Cursor<'a>,
    key: &'r str,
}

impl Reader<'_, '_> {
    fn kind(&mut self) -> Result<ValueType, GgufFault> {
        let code = self.cursor.u32("a value's type")?;
        ValueType::from_code(code).ok_or_else(|| GgufFault::ValueType {
            key: printable(self.key),
            found: code,
        })
    }

    /// A value inside `depth` arrays; a string is quoted.
    fn value(&mut self, kind: ValueType, depth: usize) -> Result<String, GgufFault> {
        let cursor = &mut *self.cursor;
        Ok(match kind {
            ValueType::U8 => u8::from_le_bytes(cursor.array(VALUE)?).to_string(),
            ValueType::I8 => i8::from_le_bytes(cursor.array(VALUE)?).to_string(),
            ValueType::U16 => u16::from_le_bytes(cursor.array(VALUE)?).to_string(),
            ValueType::I16 => i16::from_le_bytes(cursor.array(VALUE)?).to_string(),
            ValueType::U32 => u32::from_le_bytes(cursor.array(VALUE)?).to_string(),
            ValueType::I32 => i32::from_le_bytes(cursor.array(VALUE)?).to_string(),
            ValueType::U64 => u64::from_le_bytes(cursor.array(VALUE)?).to_string(),
            ValueType::I64 => i64::from_le_bytes(cursor.array(VALUE)?).to_string(),
            ValueType::F32 => f32::from_le_bytes(cursor.array(VALUE)?).to_string(),
            ValueType::F64 => f64::from_le_bytes(cursor.array(VALUE)?).to_string(),
            ValueType::Bool => match cursor.array(VALUE)? {
                [0] => false.to_string(),
                [1] => true.to_string(),
                [found] => {
                    return Err(GgufFault::Bool {
                        key: printable(self.key),
                        found,
                    });
                }
            },
            ValueType::String => format!("{:?}", String::from_utf8_lossy(string(cursor, VALUE)?)),
            ValueType::Array => self.array(depth + 1)?,
        })
    }

    /// An array, the innermost of `depth`: its elements if they are few, otherwise how many there are.
    fn array(&mut self, depth: usize) -> Result<String, GgufFault> {
        if depth > MAX_DEPTH {
            return Err(GgufFault::TooDeep {
                key: printable(self.key),
                limit: MAX_DEPTH,
            });
        }
        let kind = self.kind()?;
        let count = self.cursor.u64("an array's length")?;
        if count <= MAX_SHOWN {
            let elements: Result<Vec<_>, _> = (0..count).map(|_| self.value(kind, depth)).collect();
            return Ok(format!("[{}]", elements?.join(", ")));
        }
        match (kind, kind.size()) {
            (_, Some(size)) => {
                self.cursor.take(count.saturating_mul(size), VALUE)?;
            }
            (ValueType::String, None) => {
                for _ in 0..count {
                    string(self.cursor, VALUE)?;
                }
            }
            (_, None) => {
                for _ in 0..count {
                    self.array(depth + 1)?;
                }
            }
        }
        Ok(format!("[{count} {}]", kind.plural()))
    }
}
