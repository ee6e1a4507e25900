//! Opcodes and their arguments.

use super::PickleFault;

pub(super) const MARK: u8 = b'(';
pub(super) const STOP: u8 = b'.';
pub(super) const POP: u8 = b'0';
pub(super) const POP_MARK: u8 = b'1';
pub(super) const DUP: u8 = b'2';
pub(super) const BINFLOAT: u8 = b'G';
pub(super) const BININT: u8 = b'J';
pub(super) const BININT1: u8 = b'K';
pub(super) const BININT2: u8 = b'M';
pub(super) const NONE: u8 = b'N';
pub(super) const BINPERSID: u8 = b'Q';
pub(super) const REDUCE: u8 = b'R';
pub(super) const BINSTRING: u8 = b'T';
pub(super) const SHORT_BINSTRING: u8 = b'U';
pub(super) const BINUNICODE: u8 = b'X';
pub(super) const APPEND: u8 = b'a';
pub(super) const BUILD: u8 = b'b';
pub(super) const GLOBAL: u8 = b'c';
pub(super) const DICT: u8 = b'd';
pub(super) const APPENDS: u8 = b'e';
pub(super) const BINGET: u8 = b'h';
pub(super) const LONG_BINGET: u8 = b'j';
pub(super) const LIST: u8 = b'l';
pub(super) const BINPUT: u8 = b'q';
pub(super) const LONG_BINPUT: u8 = b'r';
pub(super) const SETITEM: u8 = b's';
pub(super) const TUPLE: u8 = b't';
pub(super) const SETITEMS: u8 = b'u';
pub(super) const EMPTY_TUPLE: u8 = b')';
pub(super) const EMPTY_LIST: u8 = b']';
pub(super) const EMPTY_DICT: u8 = b'}';
// Protocol 2.
pub(super) const PROTO: u8 = 0x80;
pub(super) const NEWOBJ: u8 = 0x81;
pub(super) const TUPLE1: u8 = 0x85;
pub(super) const TUPLE2: u8 = 0x86;
pub(super) const TUPLE3: u8 = 0x87;
pub(super) const NEWTRUE: u8 = 0x88;
pub(super) const NEWFALSE: u8 = 0x89;
pub(super) const LONG1: u8 = 0x8a;
pub(super) const LONG4: u8 = 0x8b;
// Protocol 3.
pub(super) const BINBYTES: u8 = b'B';
pub(super) const SHORT_BINBYTES: u8 = b'C';
// Protocol 4.
pub(super) const SHORT_BINUNICODE: u8 = 0x8c;
pub(super) const BINUNICODE8: u8 = 0x8d;
pub(super) const BINBYTES8: u8 = 0x8e;
pub(super) const STACK_GLOBAL: u8 = 0x93;
pub(super) const MEMOIZE: u8 = 0x94;
pub(super) const FRAME: u8 = 0x95;
// Protocol 5.
pub(super) const BYTEARRAY8: u8 = 0x96;

/// The widest integer that is read, in bytes.
const MAX_INTEGER_BYTES: usize = 16;

/// A pickle's bytes, read opcode by opcode; knows the current one for messages.
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    position: usize,
    opcode: u8,
    /// Where the current opcode stands.
    at: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            position: 0,
            opcode: 0,
            at: 0,
        }
    }

    /// The next opcode.
    pub(super) fn opcode(&mut self) -> Result<u8, PickleFault> {
        self.at = self.position;
        self.opcode = self.u8()?;
        Ok(self.opcode)
    }

    pub(super) fn bad_opcode(&self) -> PickleFault {
        PickleFault::Opcode {
            opcode: self.opcode,
            at: self.at,
        }
    }

    pub(super) fn bad_operands(&self) -> PickleFault {
        PickleFault::Operands {
            opcode: self.opcode,
            at: self.at,
        }
    }

    pub(super) fn bad_argument(&self) -> PickleFault {
        PickleFault::Argument {
            opcode: self.opcode,
            at: self.at,
        }
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8], PickleFault> {
        let taken = self.bytes[self.position..]
            .get(..len)
            .ok_or(PickleFault::Truncated { at: self.at })?;
        self.position += len;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], PickleFault> {
        let (array, _) = self.bytes[self.position..]
            .split_first_chunk()
            .ok_or(PickleFault::Truncated { at: self.at })?;
        self.position += N;
        Ok(*array)
    }

    pub(super) fn u8(&mut self) -> Result<u8, PickleFault> {
        Ok(u8::from_le_bytes(self.array()?))
    }

    pub(super) fn u32(&mut self) -> Result<u32, PickleFault> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    /// A length of 1, 4 or 8 bytes.
    fn length<const N: usize>(&mut self) -> Result<usize, PickleFault> {
        let mut wide = [0; 8];
        wide[..N].copy_from_slice(&self.array::<N>()?);
        usize::try_from(u64::from_le_bytes(wide)).map_err(|_| self.bad_argument())
    }

    /// The argument of FRAME, a hint that is only checked.
    pub(super) fn frame(&mut self) -> Result<(), PickleFault> {
        let length = self.length::<8>()?;
        if length > self.bytes.len() - self.position {
            return Err(PickleFault::Truncated { at: self.at });
        }
        Ok(())
    }

    /// The argument of an integer opcode.
    pub(super) fn integer(&mut self, opcode: u8) -> Result<i128, PickleFault> {
        Ok(match opcode {
            BININT1 => self.u8()?.into(),
            BININT2 => u16::from_le_bytes(self.array()?).into(),
            BININT => i32::from_le_bytes(self.array()?).into(),
            LONG1 => {
                let length = self.length::<1>()?;
                self.long(length)?
            }
            LONG4 => {
                let length = self.length::<4>()?;
                self.long(length)?
            }
            _ => return Err(self.bad_opcode()),
        })
    }

    /// A two's complement integer of `length` bytes, the lowest first.
    fn long(&mut self, length: usize) -> Result<i128, PickleFault> {
        if length > MAX_INTEGER_BYTES {
            return Err(self.bad_argument());
        }
        let bytes = self.take(length)?;
        let is_negative = bytes.last().is_some_and(|&high| high >= 0x80);
        let mut wide = [if is_negative { 0xff } else { 0 }; MAX_INTEGER_BYTES];
        wide[..length].copy_from_slice(bytes);
        Ok(i128::from_le_bytes(wide))
    }

    /// The argument of BINFLOAT.
    pub(super) fn float(&mut self) -> Result<f64, PickleFault> {
        Ok(f64::from_be_bytes(self.array()?))
    }

    /// The argument of a bytes or text opcode.
    pub(super) fn bytes(&mut self, opcode: u8) -> Result<&'a [u8], PickleFault> {
        let length = match opcode {
            SHORT_BINBYTES | SHORT_BINUNICODE | SHORT_BINSTRING => self.length::<1>()?,
            BINBYTES | BINUNICODE | BINSTRING => self.length::<4>()?,
            BINBYTES8 | BINUNICODE8 | BYTEARRAY8 => self.length::<8>()?,
            _ => return Err(self.bad_opcode()),
        };
        self.take(length)
    }

    /// The argument of a text opcode; Python 2's strings are taken as text too.
    pub(super) fn text(&mut self, opcode: u8) -> Result<&'a str, PickleFault> {
        std::str::from_utf8(self.bytes(opcode)?).map_err(|_| self.bad_argument())
    }

    /// Text up to a line feed.
    pub(super) fn line(&mut self) -> Result<&'a str, PickleFault> {
        let rest = &self.bytes[self.position..];
        let length = rest
            .iter()
            .position(|&byte| byte == b'\n')
            .ok_or(PickleFault::Truncated { at: self.at })?;
        self.position += length + 1;
        std::str::from_utf8(&rest[..length]).map_err(|_| self.bad_argument())
    }
}
