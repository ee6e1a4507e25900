//! The names that a torch pickle may use, and what each means here.

use std::fmt;

use crate::checkpoint::Dtype;

/// A name that rebuilds tensors, or stands beside them. None of these is ever looked up or called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::checkpoint::torch) enum Global {
    /// A dictionary.
    OrderedDict,
    /// `(storage, offset, shape, stride, …)`; what follows is about gradients.
    RebuildTensor,
    /// `(tensor, …)`, a tensor that is trained.
    RebuildParameter,
    /// `(function, type, arguments, state)`, a tensor with attributes.
    RebuildFromType,
    /// The type of a storage; an untyped one is of bytes.
    Storage(Dtype),
    /// `(tuple,)`, a shape.
    Size,
    /// `(kind, index)`, where a tensor was.
    Device,
    /// The type of a tensor, as an argument only.
    TensorType,
}

/// Every accepted name by its module.
const GLOBALS: [(&str, &str, Global); 21] = [
    ("collections", "OrderedDict", Global::OrderedDict),
    ("torch._utils", "_rebuild_tensor_v2", Global::RebuildTensor),
    ("torch._utils", "_rebuild_tensor", Global::RebuildTensor),
    (
        "torch._utils",
        "_rebuild_parameter",
        Global::RebuildParameter,
    ),
    (
        "torch._utils",
        "_rebuild_parameter_with_state",
        Global::RebuildParameter,
    ),
    (
        "torch._tensor",
        "_rebuild_from_type_v2",
        Global::RebuildFromType,
    ),
    ("torch", "DoubleStorage", Global::Storage(Dtype::F64)),
    ("torch", "FloatStorage", Global::Storage(Dtype::F32)),
    ("torch", "HalfStorage", Global::Storage(Dtype::F16)),
    ("torch", "BFloat16Storage", Global::Storage(Dtype::Bf16)),
    ("torch", "LongStorage", Global::Storage(Dtype::I64)),
    ("torch", "IntStorage", Global::Storage(Dtype::I32)),
    ("torch", "ShortStorage", Global::Storage(Dtype::I16)),
    ("torch", "CharStorage", Global::Storage(Dtype::I8)),
    ("torch", "ByteStorage", Global::Storage(Dtype::U8)),
    ("torch", "BoolStorage", Global::Storage(Dtype::Bool)),
    (
        "torch.storage",
        "UntypedStorage",
        Global::Storage(Dtype::U8),
    ),
    ("torch", "Size", Global::Size),
    ("torch", "device", Global::Device),
    ("torch", "Tensor", Global::TensorType),
    ("torch.nn.parameter", "Parameter", Global::TensorType),
];

impl Global {
    /// The meaning of `module.name`, or `None` if it is not one of the accepted names.
    pub(super) fn named(module: &str, name: &str) -> Option<Self> {
        GLOBALS
            .iter()
            .find(|(known_module, known_name, _)| *known_module == module && *known_name == name)
            .map(|&(_, _, global)| global)
    }
}

impl fmt::Display for Global {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match GLOBALS.iter().find(|(_, _, global)| global == self) {
            Some((module, name, _)) => write!(f, "{module}.{name}"),
            None => write!(f, "{self:?}"),
        }
    }
}
