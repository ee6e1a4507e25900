//! How many threads compute.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::{fs, thread};

use super::error::Error;

/// The variable that sets the number of threads where no flag does.
pub(crate) const VARIABLE: &str = "PRETRAINED_THREADS";

/// The most threads that can be asked for.
const MOST: u16 = 1024;

/// The flag of the commands that compute.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct ThreadsFlag {
    /// Threads to compute with, at most as many as the processor runs at once [env: PRETRAINED_THREADS] [default: one a
    /// core that this process may use]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=MOST as i64))]
    threads: Option<u16>,
}

/// A number of threads, and what decided it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Threads {
    pub(crate) count: NonZeroUsize,
    pub(crate) decided_by: DecidedBy,
}

/// What decides how many threads there are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum DecidedBy {
    /// `--threads`.
    Flag,
    /// [`VARIABLE`].
    Variable,
    /// The processor has so many cores that the process may run on.
    Cores,
    /// The control group may use the time of so many processors.
    Quota(f64),
    /// What the system says runs at once, where it says no more.
    Parallelism,
}

impl ThreadsFlag {
    /// The number that was typed, else that of `variable`, else one a core; more than run at once would only wait for one
    /// another.
    ///
    /// # Errors
    /// The variable is not such a number.
    pub(crate) fn resolve(&self, variable: Option<OsString>) -> Result<Threads, Error> {
        let at_once = thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        let asked = match self.threads {
            Some(threads) => Some((threads, DecidedBy::Flag)),
            None => from_variable(variable)?.map(|threads| (threads, DecidedBy::Variable)),
        };
        let asked = asked.and_then(|(threads, decided_by)| {
            let count = NonZeroUsize::new(threads.into())?.min(at_once);
            Some(Threads { count, decided_by })
        });
        let cores = || cfg!(target_os = "linux").then(|| Threads::of_linux(Path::new("/")))?;
        Ok(asked.or_else(cores).unwrap_or(Threads {
            count: at_once,
            decided_by: DecidedBy::Parallelism,
        }))
    }
}

fn from_variable(value: Option<OsString>) -> Result<Option<u16>, Error> {
    let Some(value) = value.filter(|value| !value.is_empty()) else {
        return Ok(None);
    };
    let number = value.to_str().and_then(|text| text.parse().ok());
    match number.filter(|number| (1..=MOST).contains(number)) {
        Some(number) => Ok(Some(number)),
        None => Err(Error::usage(
            format!(
                "{VARIABLE} is `{}`, which is no number of threads",
                value.to_string_lossy()
            ),
            format!("a number from 1 to {MOST}"),
        )),
    }
}

impl Threads {
    /// One thread a physical core that the process may run on, and no more than its control group has time for; `None`
    /// when Linux does not say on what it may run. `root` is where `/proc` and `/sys` are.
    fn of_linux(root: &Path) -> Option<Self> {
        let cores = allowed_cores(root).and_then(NonZeroUsize::new)?;
        let quota = quota(root);
        let of_quota = quota.and_then(|quota| NonZeroUsize::new(quota as usize)); // rounded down
        Some(match quota {
            Some(quota) if quota < cores.get() as f64 => Self {
                count: of_quota.unwrap_or(NonZeroUsize::MIN),
                decided_by: DecidedBy::Quota(quota),
            },
            _ => Self {
                count: cores,
                decided_by: DecidedBy::Cores,
            },
        })
    }
}

impl DecidedBy {
    /// The word for it in JSON.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Flag => "flag",
            Self::Variable => "variable",
            Self::Cores => "cores",
            Self::Quota(_) => "quota",
            Self::Parallelism => "parallelism",
        }
    }
}

impl fmt::Display for DecidedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag => f.write_str("--threads"),
            Self::Variable => f.write_str(VARIABLE),
            Self::Cores => f.write_str("physical cores that this process may run on"),
            Self::Quota(processors) => write!(
                f,
                "its control group may use the time of {processors:.1} processors"
            ),
            Self::Parallelism => f.write_str("what the system says runs at once"),
        }
    }
}

/// The physical cores among the processors that the process may run on: those that run on one core name the same
/// siblings. A processor of which nothing is said is a core of its own.
fn allowed_cores(root: &Path) -> Option<usize> {
    let status = fs::read_to_string(root.join("proc/self/status")).ok()?;
    let mut lines = status.lines();
    let allowed = lines.find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    let siblings = |processor: usize| {
        let topology = format!("sys/devices/system/cpu/cpu{processor}/topology");
        let read = |name| fs::read_to_string(root.join(&topology).join(name)).ok();
        let list = read("core_cpus_list").or_else(|| read("thread_siblings_list"));
        list.map_or_else(|| processor.to_string(), |list| list.trim().to_owned())
    };
    let cores: BTreeSet<_> = processors(allowed.trim())?
        .into_iter()
        .map(siblings)
        .collect();
    Some(cores.len())
}

/// The processors of a list such as `0-3,8`.
fn processors(list: &str) -> Option<BTreeSet<usize>> {
    const PROCESSORS: usize = 1 << 16; // Linux knows no more than 8192
    let mut all = BTreeSet::new();
    for range in list.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        if last >= PROCESSORS {
            return None;
        }
        all.extend(first..=last);
    }
    Some(all)
}

/// The processors whose time the control groups of the process may use, the narrowest of them; `None` when all of it.
fn quota(root: &Path) -> Option<f64> {
    let groups = fs::read_to_string(root.join("proc/self/cgroup")).ok()?;
    let mounts = fs::read_to_string(root.join("proc/self/mountinfo")).ok()?;
    let hierarchies = mounts
        .lines()
        .filter_map(|mount| Hierarchy::new(mount, &groups));
    let quotas = hierarchies.flat_map(|hierarchy| hierarchy.quotas(root));
    quotas.min_by(f64::total_cmp)
}

/// A mounted tree of control groups that limits the time of processors.
struct Hierarchy {
    version: Version,
    /// Where it is mounted, without the slash before it.
    mount: PathBuf,
    /// The group of the process in it.
    group: PathBuf,
}

#[derive(Clone, Copy)]
enum Version {
    V1,
    V2,
}

impl Hierarchy {
    /// The hierarchy of a line of `mountinfo` (proc_pid_mountinfo(5)): `… root mount-point options … - type source
    /// options`. `groups` are the lines `number:controllers:path` of cgroups(7).
    fn new(mount: &str, groups: &str) -> Option<Self> {
        let (before, after) = mount.split_once(" - ")?;
        let before: Vec<_> = before.split(' ').collect();
        let (top, point) = (before.get(3)?, before.get(4)?);
        let after: Vec<_> = after.split(' ').collect();
        let limits_time = |controllers: &str| controllers.split(',').any(|it| it == "cpu");
        let version = match *after.first()? {
            "cgroup2" => Version::V2,
            "cgroup" if limits_time(after.get(2)?) => Version::V1,
            _ => return None,
        };
        let mut groups = groups.lines().filter_map(|line| {
            let (_, rest) = line.split_once(':')?;
            rest.split_once(':')
        });
        let (_, group) = groups.find(|(controllers, _)| match version {
            Version::V1 => limits_time(controllers),
            Version::V2 => controllers.is_empty(),
        })?;
        // A container may have mounted a part of the tree, and see its groups from there or from the top.
        let group = Path::new(group);
        let group = group.strip_prefix(top).or_else(|_| group.strip_prefix("/"));
        Some(Self {
            version,
            mount: Path::new(point).strip_prefix("/").ok()?.to_owned(),
            group: group.ok()?.to_owned(),
        })
    }

    /// The quotas of the group and of those above it.
    fn quotas(&self, root: &Path) -> Vec<f64> {
        let mount = root.join(&self.mount);
        let groups = self.group.ancestors().map(|group| mount.join(group));
        groups
            .filter_map(|group| self.version.quota(&group))
            .collect()
    }
}

impl Version {
    /// The quota of `group`, in processors; `None` when it has none.
    fn quota(self, group: &Path) -> Option<f64> {
        let read = |name: &str| fs::read_to_string(group.join(name)).ok();
        let (quota, period) = match self {
            Self::V1 => (read("cpu.cfs_quota_us")?, read("cpu.cfs_period_us")?),
            Self::V2 => {
                let limit = read("cpu.max")?;
                let (quota, period) = limit.split_once(' ')?;
                (quota.to_owned(), period.to_owned())
            }
        };
        // `max` and -1 stand for no limit.
        let quota: u64 = quota.trim().parse().ok()?;
        let period: u64 = period.trim().parse().ok().filter(|period| *period > 0)?;
        Some(quota as f64 / period as f64)
    }
}

#[cfg(test)]
mod tests;
