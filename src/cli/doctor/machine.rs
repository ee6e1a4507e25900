//! What this machine is.

use std::fs;

use serde::Serialize;

/// The system.
#[derive(Debug, Serialize)]
pub(super) struct System {
    /// `linux`, `macos`, `windows`.
    os: &'static str,
    /// Of the kernel; `None` where it is not told.
    version: Option<String>,
    /// The architecture that this build is for.
    arch: &'static str,
}

/// The processor.
#[derive(Debug, Serialize)]
pub(super) struct Processor {
    /// As its maker calls it; `None` where that is not told.
    model: Option<String>,
    /// What it has of the instructions that kernels may be written for.
    features: Vec<&'static str>,
}

impl System {
    pub(super) fn new() -> Self {
        let version = fs::read_to_string("/proc/sys/kernel/osrelease").ok();
        Self {
            os: std::env::consts::OS,
            version: version.map(|version| version.trim().to_owned()),
            arch: std::env::consts::ARCH,
        }
    }

    pub(super) fn text(&self) -> String {
        match &self.version {
            Some(version) => format!("{} {version}, {}", self.os, self.arch),
            None => format!("{}, {}", self.os, self.arch),
        }
    }
}

impl Processor {
    pub(super) fn new() -> Self {
        let list = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        Self {
            model: model_of(&list),
            features: features(),
        }
    }

    pub(super) fn model_text(&self) -> String {
        self.model.clone().unwrap_or_else(|| "unknown".to_owned())
    }

    pub(super) fn features_text(&self) -> String {
        self.features.join(" ")
    }
}

/// The model that the first processor of `/proc/cpuinfo` is said to be; on many ARM systems none is.
fn model_of(list: &str) -> Option<String> {
    list.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == "model name").then(|| value.trim().to_owned())
    })
}

/// Those of the features that `$detected` finds; it takes literals only.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
macro_rules! found {
    ($detected:ident: $($feature:tt)*) => {
        [$(($feature, std::arch::$detected!($feature))),*]
            .into_iter()
            .filter_map(|(feature, found)| found.then_some(feature))
            .collect()
    };
}

#[cfg(target_arch = "x86_64")]
fn features() -> Vec<&'static str> {
    found!(is_x86_feature_detected:
        "sse4.1" "sse4.2" "avx" "f16c" "fma" "avx2" "avxvnni" "avxifma" "avxvnniint8" "avxneconvert"
        "avx512f" "avx512bw" "avx512dq" "avx512vl" "avx512vbmi" "avx512ifma" "avx512vnni" "avx512bf16" "avx512fp16")
}

#[cfg(target_arch = "aarch64")]
fn features() -> Vec<&'static str> {
    found!(is_aarch64_feature_detected: "neon" "fp16" "dotprod" "i8mm" "bf16" "sve" "sve2")
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn features() -> Vec<&'static str> {
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn model_is_that_of_the_first_processor() {
        let list = "processor\t: 0\nmodel\t\t: 97\nmodel name\t: A : B\n\nmodel name\t: C\n";
        assert_eq!(model_of(list).as_deref(), Some("A : B"));
        assert_eq!(model_of("processor\t: 0\nBogoMIPS\t: 50.00\n"), None);
    }

    #[test]
    fn features_include_those_that_every_processor_has() {
        if cfg!(target_arch = "aarch64") {
            assert!(features().contains(&"neon"));
        }
        let unique: std::collections::BTreeSet<_> = features().into_iter().collect();
        assert_eq!(unique.len(), features().len());
    }
}
