//! Pickles read as data.
//!
//! A pickle is a program for a stack machine; Python runs it, calling whatever it names. This reader knows the opcodes
//! that `torch.save` writes (Python's `pickletools` documents each), builds plain values from them, and knows a dozen
//! names, each with a meaning of its own here. Any other name ends the reading with an error, so nothing that a file
//! says can be executed, and there is no opcode whose cost is not bounded by the bytes already read.
//!
//! Values live in one table and refer to each other by place, as the pickle's memo makes them do: shared values stay
//! shared, a cycle is harmless, and dropping a million nested lists takes no stack.

use std::collections::HashMap;

use super::super::error::printable;
use crate::checkpoint::Dtype;

mod global;
mod opcode;

use global::Global;
use opcode::Reader;

/// The longest pickle read, in bytes: some hundred thousand tensors.
const MAX_PICKLE_BYTES: usize = 32 << 20;
/// The most values, memo entries or stack places: an eighth of the longest pickle's bytes.
const MAX_VALUES: usize = 4 << 20;
/// The most extents of a tensor; torch's own limit for most operations.
const MAX_RANK: usize = 64;

/// A value's place in its pickle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Id(u32);

/// A value of a pickle; text and bytes are slices of it.
#[derive(Debug)]
pub(super) enum Value<'a> {
    None,
    Bool(bool),
    Int(i128),
    Float(f64),
    Str(&'a str),
    /// Bytes outside any storage; no model keeps weights there.
    Bytes,
    List(Vec<Id>),
    Tuple(Vec<Id>),
    /// Pairs in the order set; the last of equal keys counts.
    Dict(Vec<(Id, Id)>),
    Global(Global),
    Storage(Storage<'a>),
    /// A view of a storage; the parts are read by [`Pickle::rebuilt`].
    Tensor {
        storage: Id,
        offset: Id,
        shape: Id,
        stride: Id,
    },
}

/// A storage that the archive holds beside the pickle.
#[derive(Clone, Copy, Debug)]
pub(super) struct Storage<'a> {
    /// Name of the member that holds it.
    pub(super) key: &'a str,
    pub(super) dtype: Dtype,
    /// Its length according to the pickle.
    pub(super) elements: usize,
}

/// A tensor as its rebuilding call describes it, offsets and strides in elements.
#[derive(Debug)]
pub(super) struct Rebuilt<'a> {
    pub(super) storage: Storage<'a>,
    pub(super) offset: usize,
    pub(super) shape: Vec<usize>,
    pub(super) stride: Vec<usize>,
}

/// What is wrong with a torch archive's pickle.
#[derive(Debug, thiserror::Error)]
pub enum PickleFault {
    /// The pickle names something that does not rebuild tensors.
    #[error("`{name}` is not a tensor-rebuilding global; nothing was executed")]
    Global {
        /// Module and name, joined by a dot.
        name: String,
    },
    /// The pickle calls something known, but not as torch does.
    #[error("`{name}` is called in a way that torch does not write; nothing was executed")]
    Call {
        /// What is called.
        name: String,
    },
    /// An opcode that torch does not write.
    #[error("opcode {opcode:#04x} at byte {at} of the pickle is not one that torch writes")]
    Opcode {
        /// The opcode.
        opcode: u8,
        /// Its place.
        at: usize,
    },
    /// The pickle ends before it says so.
    #[error("the pickle ends in the middle of what starts at byte {at}")]
    Truncated {
        /// Start of the opcode that needs more bytes.
        at: usize,
    },
    /// An opcode finds other things on the stack, or less, than it works on.
    #[error("opcode {opcode:#04x} at byte {at} of the pickle does not find its operands")]
    Operands {
        /// The opcode.
        opcode: u8,
        /// Its place.
        at: usize,
    },
    /// An argument that cannot be: a length over the end, text that is not UTF-8, a memo entry never written.
    #[error("opcode {opcode:#04x} at byte {at} of the pickle has an impossible argument")]
    Argument {
        /// The opcode.
        opcode: u8,
        /// Its place.
        at: usize,
    },
    /// Over a limit that no real file comes near.
    #[error("the pickle has more than {limit} {what}")]
    TooLarge {
        /// What there is too much of.
        what: &'static str,
        /// How much is allowed.
        limit: usize,
    },
    /// Dictionaries in dictionaries without end.
    #[error("the saved object is nested more than {limit} deep")]
    TooDeep {
        /// How deep is allowed.
        limit: usize,
    },
    /// A reference to data outside the pickle that does not name a storage.
    #[error("the pickle refers to data that is not a tensor's storage")]
    PersistentId,
    /// A rebuilding call whose offset, shape or stride are not whole non-negative numbers.
    #[error(
        "a tensor has an offset, shape or stride that is not made of whole non-negative numbers"
    )]
    TensorArguments,
    /// A dictionary key that cannot be a part of a name.
    #[error("a dictionary in the saved object has a key that is neither text nor a number")]
    Key,
    /// Two tensors come to the same name.
    #[error("two tensors are called `{name}`")]
    RepeatedName {
        /// The name.
        name: String,
    },
    /// A tensor that has no name because nothing is around it.
    #[error("the file holds a single tensor, not a dictionary of tensors")]
    LoneTensor,
    /// No dictionary of tensors where the caller looks for one.
    #[error("there is no dictionary of tensors under `{key}`{}", instead(.found))]
    StateDict {
        /// The path of keys asked for.
        key: String,
        /// Keys of the saved object under which there are some.
        found: Vec<String>,
    },
}

/// What there is in place of a dictionary that is missing, as the end of a message.
fn instead(found: &[String]) -> String {
    if found.is_empty() {
        return ", nor under any other key".to_owned();
    }
    let found: Vec<_> = found.iter().map(|key| format!("`{key}`")).collect();
    format!("; there is one under {}", found.join(", "))
}

/// A pickle, read.
#[derive(Debug)]
pub(super) struct Pickle<'a> {
    values: Vec<Value<'a>>,
    root: Id,
}

impl<'a> Pickle<'a> {
    /// Reads a pickle of protocol 2 to 5.
    pub(super) fn parse(bytes: &'a [u8]) -> Result<Self, PickleFault> {
        if bytes.len() > MAX_PICKLE_BYTES {
            return Err(PickleFault::TooLarge {
                what: "bytes",
                limit: MAX_PICKLE_BYTES,
            });
        }
        let mut machine = Machine {
            reader: Reader::new(bytes),
            values: Vec::new(),
            stack: Vec::new(),
            marks: Vec::new(),
            memo: HashMap::new(),
        };
        let root = machine.run()?;
        Ok(Self {
            values: machine.values,
            root,
        })
    }

    /// The saved object.
    pub(super) fn root(&self) -> Id {
        self.root
    }

    pub(super) fn value(&self, id: Id) -> &Value<'a> {
        &self.values[id.0 as usize]
    }

    /// The description of the tensor `id`.
    pub(super) fn rebuilt(&self, id: Id) -> Result<Rebuilt<'a>, PickleFault> {
        let Value::Tensor {
            storage,
            offset,
            shape,
            stride,
        } = *self.value(id)
        else {
            return Err(PickleFault::TensorArguments);
        };
        let Value::Storage(storage) = *self.value(storage) else {
            return Err(PickleFault::TensorArguments);
        };
        Ok(Rebuilt {
            storage,
            offset: self.index(offset)?,
            shape: self.indices(shape)?,
            stride: self.indices(stride)?,
        })
    }

    fn index(&self, id: Id) -> Result<usize, PickleFault> {
        match *self.value(id) {
            Value::Int(value) => usize::try_from(value).map_err(|_| PickleFault::TensorArguments),
            _ => Err(PickleFault::TensorArguments),
        }
    }

    fn indices(&self, id: Id) -> Result<Vec<usize>, PickleFault> {
        match self.value(id) {
            Value::Tuple(items) | Value::List(items) if items.len() <= MAX_RANK => {
                items.iter().map(|&item| self.index(item)).collect()
            }
            _ => Err(PickleFault::TensorArguments),
        }
    }
}

/// The stack machine.
struct Machine<'a> {
    reader: Reader<'a>,
    values: Vec<Value<'a>>,
    stack: Vec<Id>,
    /// Heights of the stack at each open MARK.
    marks: Vec<usize>,
    memo: HashMap<u32, Id>,
}

impl<'a> Machine<'a> {
    /// Runs to the STOP and gives the value left on the stack.
    fn run(&mut self) -> Result<Id, PickleFault> {
        use opcode::*;
        loop {
            let opcode = self.reader.opcode()?;
            match opcode {
                PROTO => {
                    if !(2..=5).contains(&self.reader.u8()?) {
                        return Err(self.reader.bad_argument());
                    }
                }
                FRAME => self.reader.frame()?,
                STOP => return self.pop(),

                NONE => self.push(Value::None)?,
                NEWTRUE => self.push(Value::Bool(true))?,
                NEWFALSE => self.push(Value::Bool(false))?,
                BININT | BININT1 | BININT2 | LONG1 | LONG4 => {
                    let value = self.reader.integer(opcode)?;
                    self.push(Value::Int(value))?;
                }
                BINFLOAT => {
                    let value = self.reader.float()?;
                    self.push(Value::Float(value))?;
                }
                SHORT_BINUNICODE | BINUNICODE | BINUNICODE8 | SHORT_BINSTRING | BINSTRING => {
                    let value = self.reader.text(opcode)?;
                    self.push(Value::Str(value))?;
                }
                SHORT_BINBYTES | BINBYTES | BINBYTES8 | BYTEARRAY8 => {
                    self.reader.bytes(opcode)?;
                    self.push(Value::Bytes)?;
                }

                MARK => {
                    self.check_limit(self.marks.len(), "marks")?;
                    self.marks.push(self.stack.len());
                }
                POP => self.discard()?,
                POP_MARK => {
                    let start = self.unmark()?;
                    self.stack.truncate(start);
                }
                DUP => {
                    let top = self.top()?;
                    self.push_id(top)?;
                }

                EMPTY_TUPLE => self.push(Value::Tuple(Vec::new()))?,
                TUPLE1 => self.tuple(1)?,
                TUPLE2 => self.tuple(2)?,
                TUPLE3 => self.tuple(3)?,
                TUPLE => {
                    let items = self.pop_to_mark()?;
                    self.push(Value::Tuple(items))?;
                }
                EMPTY_LIST => self.push(Value::List(Vec::new()))?,
                LIST => {
                    let items = self.pop_to_mark()?;
                    self.push(Value::List(items))?;
                }
                APPEND => {
                    let item = self.pop()?;
                    self.append(&[item])?;
                }
                APPENDS => {
                    let items = self.pop_to_mark()?;
                    self.append(&items)?;
                }
                EMPTY_DICT => self.push(Value::Dict(Vec::new()))?,
                DICT => {
                    let items = self.pop_to_mark()?;
                    self.push(Value::Dict(Vec::new()))?;
                    self.set_items(&items)?;
                }
                SETITEM => {
                    let value = self.pop()?;
                    let key = self.pop()?;
                    self.set_items(&[key, value])?;
                }
                SETITEMS => {
                    let items = self.pop_to_mark()?;
                    self.set_items(&items)?;
                }

                BINPUT => {
                    let index = self.reader.u8()?.into();
                    self.memoize(index)?;
                }
                LONG_BINPUT => {
                    let index = self.reader.u32()?;
                    self.memoize(index)?;
                }
                MEMOIZE => {
                    // Never over `MAX_VALUES`.
                    self.memoize(self.memo.len() as u32)?;
                }
                BINGET => {
                    let index = self.reader.u8()?.into();
                    self.recall(index)?;
                }
                LONG_BINGET => {
                    let index = self.reader.u32()?;
                    self.recall(index)?;
                }

                GLOBAL => {
                    let (module, name) = (self.reader.line()?, self.reader.line()?);
                    self.push_global(module, name)?;
                }
                STACK_GLOBAL => {
                    let (name, module) = (self.pop()?, self.pop()?);
                    match (self.value(module), self.value(name)) {
                        (&Value::Str(module), &Value::Str(name)) => {
                            self.push_global(module, name)?;
                        }
                        _ => return Err(self.reader.bad_operands()),
                    }
                }
                BINPERSID => {
                    let id = self.pop()?;
                    let storage = self.storage(id).ok_or(PickleFault::PersistentId)?;
                    self.push(Value::Storage(storage))?;
                }
                REDUCE | NEWOBJ => {
                    let (arguments, callable) = (self.pop()?, self.pop()?);
                    self.call(callable, arguments)?;
                }
                BUILD => {
                    // Attributes of a dictionary or tensor (`_metadata`, hooks) are no part of its values.
                    self.pop()?;
                    let object = self.top()?;
                    if !matches!(self.value(object), Value::Dict(_) | Value::Tensor { .. }) {
                        return Err(self.reader.bad_operands());
                    }
                }
                _ => return Err(self.reader.bad_opcode()),
            }
        }
    }

    fn value(&self, id: Id) -> &Value<'a> {
        &self.values[id.0 as usize]
    }

    fn check_limit(&self, count: usize, what: &'static str) -> Result<(), PickleFault> {
        if count < MAX_VALUES {
            return Ok(());
        }
        Err(PickleFault::TooLarge {
            what,
            limit: MAX_VALUES,
        })
    }

    fn push(&mut self, value: Value<'a>) -> Result<(), PickleFault> {
        self.check_limit(self.values.len(), "values")?;
        // Never over `MAX_VALUES`.
        let id = Id(self.values.len() as u32);
        self.values.push(value);
        self.push_id(id)
    }

    fn push_id(&mut self, id: Id) -> Result<(), PickleFault> {
        self.check_limit(self.stack.len(), "values on the stack")?;
        self.stack.push(id);
        Ok(())
    }

    /// The top of the stack, if it lies above the last mark.
    fn top(&self) -> Result<Id, PickleFault> {
        let floor = self.marks.last().copied().unwrap_or(0);
        self.stack[floor..]
            .last()
            .copied()
            .ok_or_else(|| self.reader.bad_operands())
    }

    fn pop(&mut self) -> Result<Id, PickleFault> {
        let top = self.top()?;
        self.stack.pop();
        Ok(top)
    }

    /// Drops the top of the stack, which may be a mark.
    fn discard(&mut self) -> Result<(), PickleFault> {
        if self.marks.last() == Some(&self.stack.len()) {
            self.marks.pop();
            return Ok(());
        }
        self.pop().map(|_| ())
    }

    /// Closes the last mark and gives the height of the stack at it.
    fn unmark(&mut self) -> Result<usize, PickleFault> {
        self.marks.pop().ok_or_else(|| self.reader.bad_operands())
    }

    fn pop_to_mark(&mut self) -> Result<Vec<Id>, PickleFault> {
        let start = self.unmark()?;
        Ok(self.stack.split_off(start))
    }

    fn tuple(&mut self, len: usize) -> Result<(), PickleFault> {
        let floor = self.marks.last().copied().unwrap_or(0);
        match self.stack.len().checked_sub(len) {
            Some(start) if start >= floor => {
                let items = self.stack.split_off(start);
                self.push(Value::Tuple(items))
            }
            _ => Err(self.reader.bad_operands()),
        }
    }

    fn append(&mut self, items: &[Id]) -> Result<(), PickleFault> {
        let list = self.top()?;
        match &mut self.values[list.0 as usize] {
            Value::List(list) => list.extend_from_slice(items),
            _ => return Err(self.reader.bad_operands()),
        }
        Ok(())
    }

    fn set_items(&mut self, items: &[Id]) -> Result<(), PickleFault> {
        let dict = self.top()?;
        let (pairs, rest) = items.as_chunks::<2>();
        match &mut self.values[dict.0 as usize] {
            Value::Dict(dict) if rest.is_empty() => {
                dict.extend(pairs.iter().map(|&[key, value]| (key, value)));
            }
            _ => return Err(self.reader.bad_operands()),
        }
        Ok(())
    }

    fn memoize(&mut self, index: u32) -> Result<(), PickleFault> {
        self.check_limit(self.memo.len(), "memo entries")?;
        let top = self.top()?;
        self.memo.insert(index, top);
        Ok(())
    }

    fn recall(&mut self, index: u32) -> Result<(), PickleFault> {
        match self.memo.get(&index) {
            Some(&id) => self.push_id(id),
            None => Err(self.reader.bad_argument()),
        }
    }

    fn push_global(&mut self, module: &str, name: &str) -> Result<(), PickleFault> {
        let global = Global::named(module, name).ok_or_else(|| PickleFault::Global {
            name: printable(&format!("{module}.{name}")),
        })?;
        self.push(Value::Global(global))
    }

    /// The storage that a persistent id names: `("storage", type, key, location, elements)`.
    fn storage(&self, id: Id) -> Option<Storage<'a>> {
        let Value::Tuple(parts) = self.value(id) else {
            return None;
        };
        let &[tag, kind, key, _location, elements] = parts.as_slice() else {
            return None;
        };
        match (
            self.value(tag),
            self.value(kind),
            self.value(key),
            self.value(elements),
        ) {
            (
                Value::Str("storage"),
                &Value::Global(Global::Storage(dtype)),
                Value::Str(key),
                &Value::Int(elements),
            ) => Some(Storage {
                key,
                dtype,
                elements: elements.try_into().ok()?,
            }),
            _ => None,
        }
    }

    /// Pushes what a call of a known global gives.
    fn call(&mut self, callable: Id, arguments: Id) -> Result<(), PickleFault> {
        let (&Value::Global(global), Value::Tuple(arguments)) =
            (self.value(callable), self.value(arguments))
        else {
            return Err(self.reader.bad_operands());
        };
        match (global, arguments.as_slice()) {
            (Global::OrderedDict, []) => self.push(Value::Dict(Vec::new())),
            // A shape is as good as the tuple in it, and a device as its kind.
            (Global::Size, &[tuple]) => self.push_id(tuple),
            (Global::Device, &[kind, ..]) => self.push_id(kind),
            (Global::RebuildParameter, &[tensor, ..])
                if matches!(self.value(tensor), Value::Tensor { .. }) =>
            {
                self.push_id(tensor)
            }
            (Global::RebuildTensor, &[storage, offset, shape, stride, ..]) => {
                self.push(Value::Tensor {
                    storage,
                    offset,
                    shape,
                    stride,
                })
            }
            // The rebuilding function and its arguments are themselves arguments; one level, so no recursion.
            (Global::RebuildFromType, &[function, _type, inner, ..])
                if matches!(
                    self.value(function),
                    Value::Global(Global::RebuildTensor | Global::RebuildParameter)
                ) =>
            {
                self.call(function, inner)
            }
            _ => Err(PickleFault::Call {
                name: global.to_string(),
            }),
        }
    }
}

#[cfg(test)]
mod tests;
