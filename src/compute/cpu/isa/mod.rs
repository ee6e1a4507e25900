//! Which instructions the processor has, and how one source is compiled for each set of them.
//!
//! A kernel is a [`Kernel`]: a value that holds its operands and a method, generic over [`Lanes`], that does the work.
//! [`Isa::run`] calls that method from a function which enables the instruction set's features. A new instruction set is
//! one more file beside this one.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod lanes;
#[cfg(target_arch = "aarch64")]
mod neon;
mod portable;

pub(super) use self::lanes::{Heights, Lanes};
use crate::compute::Error;

/// An instruction set that this processor has: holding one is the proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Isa(Kind);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    #[cfg(target_arch = "x86_64")]
    Avx512Bf16,
    #[cfg(target_arch = "x86_64")]
    Avx512,
    #[cfg(target_arch = "x86_64")]
    AvxVnni,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "aarch64")]
    NeonDot,
    #[cfg(target_arch = "aarch64")]
    Neon,
    Portable,
}

/// Work for one thread, compiled for each instruction set.
pub(super) trait Kernel {
    /// Does the work. Implementations are `#[inline(always)]`, or the features of the caller would be lost.
    fn run<L: Lanes>(self);
}

impl Isa {
    /// The instruction sets of this processor, the fastest first. `portable` is always the last.
    pub fn available() -> Vec<Self> {
        let mut found = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            let avx2 = is_x86_feature_detected!("avx2")
                && is_x86_feature_detected!("fma")
                && is_x86_feature_detected!("f16c");
            let avx512 = avx2
                && is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("avx512vnni");
            if avx512 && is_x86_feature_detected!("avx512bf16") {
                found.push(Self(Kind::Avx512Bf16));
            }
            if avx512 {
                found.push(Self(Kind::Avx512));
            }
            if avx2 && is_x86_feature_detected!("avxvnni") {
                found.push(Self(Kind::AvxVnni));
            }
            if avx2 {
                found.push(Self(Kind::Avx2));
            }
        }
        #[cfg(target_arch = "aarch64")]
        {
            if std::arch::is_aarch64_feature_detected!("dotprod") {
                found.push(Self(Kind::NeonDot));
            }
            found.push(Self(Kind::Neon)); // part of the architecture
        }
        found.push(Self(Kind::Portable));
        found
    }

    /// The fastest instruction set, or the one called `name`.
    ///
    /// # Errors
    /// [`Error::UnknownIsa`] when this processor or build has no set of that name.
    pub fn choose(name: Option<&str>) -> Result<Self, Error> {
        let available = Self::available();
        let Some(name) = name else {
            return Ok(available[0]);
        };
        available
            .iter()
            .copied()
            .find(|isa| isa.name() == name)
            .ok_or_else(|| Error::UnknownIsa {
                name: name.to_owned(),
                available: available
                    .iter()
                    .map(|isa| isa.name())
                    .collect::<Vec<_>>()
                    .join(", "),
            })
    }

    /// `avx512bf16`, `avx512`, `avxvnni`, `avx2`, `neondot`, `neon` or `portable`.
    pub fn name(self) -> &'static str {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512Bf16 => "avx512bf16",
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => "avx512",
            #[cfg(target_arch = "x86_64")]
            Kind::AvxVnni => "avxvnni",
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => "avx2",
            #[cfg(target_arch = "aarch64")]
            Kind::NeonDot => "neondot",
            #[cfg(target_arch = "aarch64")]
            Kind::Neon => "neon",
            Kind::Portable => "portable",
        }
    }

    /// Lanes of a register.
    pub(super) fn width(self) -> usize {
        self.shape().0
    }

    /// Heights of the tiles of products, without and with groups.
    pub(super) fn heights(self, grouped: bool) -> Heights {
        let (_, heights, group_heights) = self.shape();
        if grouped { group_heights } else { heights }
    }

    /// Whether there is an instruction for products of bfloat16 numbers; without it, those of singles are faster.
    pub(super) fn multiplies_bf16(self) -> bool {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512Bf16 => true,
            _ => false,
        }
    }

    fn shape(self) -> (usize, Heights, Heights) {
        fn of<L: Lanes>() -> (usize, Heights, Heights) {
            (L::WIDTH, L::HEIGHTS, L::GROUP_HEIGHTS)
        }
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512Bf16 | Kind::Avx512 => of::<avx512::Avx512<false>>(),
            #[cfg(target_arch = "x86_64")]
            Kind::AvxVnni | Kind::Avx2 => of::<avx2::Avx2<false>>(),
            #[cfg(target_arch = "aarch64")]
            Kind::NeonDot | Kind::Neon => of::<neon::Neon<false>>(),
            Kind::Portable => of::<portable::Portable>(),
        }
    }

    /// Runs a kernel compiled for this instruction set.
    #[allow(unsafe_code)]
    pub(super) fn run(self, kernel: impl Kernel) {
        match self.0 {
            // SAFETY: an `Isa` of this kind is only made by `available`, after the processor was asked for each of the
            // features that the function enables.
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512Bf16 => unsafe { run_avx512_bf16(kernel) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => unsafe { run_avx512(kernel) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Kind::AvxVnni => unsafe { run_avx_vnni(kernel) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => unsafe { run_avx2(kernel) },
            #[cfg(target_arch = "aarch64")]
            Kind::NeonDot => kernel.run::<neon::Neon<true>>(),
            #[cfg(target_arch = "aarch64")]
            Kind::Neon => kernel.run::<neon::Neon<false>>(),
            Kind::Portable => kernel.run::<portable::Portable>(),
        }
    }
}

// The features are those that `Isa::available` asks for; AVX-512 implies AVX2, FMA and F16C.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx512bf16")]
fn run_avx512_bf16(kernel: impl Kernel) {
    kernel.run::<avx512::Avx512<true>>();
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
fn run_avx512(kernel: impl Kernel) {
    kernel.run::<avx512::Avx512<false>>();
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c,avxvnni")]
fn run_avx_vnni(kernel: impl Kernel) {
    kernel.run::<avx2::Avx2<true>>();
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c")]
fn run_avx2(kernel: impl Kernel) {
    kernel.run::<avx2::Avx2<false>>();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_available_set_can_be_chosen_by_its_name() {
        for isa in Isa::available() {
            assert_eq!(Isa::choose(Some(isa.name())).unwrap(), isa);
        }
        assert_eq!(Isa::choose(None).unwrap(), Isa::available()[0]);
    }

    #[test]
    fn an_unknown_name_lists_those_that_work() {
        let message = Isa::choose(Some("mmx")).unwrap_err().to_string();
        assert!(
            message.contains("`mmx`") && message.contains("portable"),
            "{message}"
        );
    }
}
