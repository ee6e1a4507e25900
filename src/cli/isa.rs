//! Which instruction set the kernels use.

use super::error::Error;
use crate::compute::cpu::Isa;

/// The variable that names the instruction set to use.
pub(crate) const VARIABLE: &str = "PRETRAINED_ISA";

/// The instruction set that [`VARIABLE`] names, or the fastest of this processor.
///
/// # Errors
/// This processor or build has none of that name.
pub(crate) fn from_environment() -> Result<Isa, Error> {
    let name = std::env::var(VARIABLE).ok();
    let name = name.as_deref().filter(|name| !name.is_empty());
    Ok(Isa::choose(name)?)
}
