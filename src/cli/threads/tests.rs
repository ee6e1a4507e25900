use super::*;
use crate::cli::exit::Exit;

/// A machine's `/proc` and `/sys`.
struct Machine(tempfile::TempDir);

impl Machine {
    /// One whose processors run by pairs on a core, and on which the process may run on `allowed`.
    fn new(allowed: &str) -> Self {
        let machine = Self(tempfile::tempdir().unwrap());
        machine.file(
            "proc/self/status",
            &format!("Name:\tx\nCpus_allowed:\tff\nCpus_allowed_list:\t{allowed}\n"),
        );
        for processor in 0..8 {
            // As Linux numbers them: the second threads of all cores come last.
            let core = processor % 4;
            machine.file(
                &format!("sys/devices/system/cpu/cpu{processor}/topology/core_cpus_list"),
                &format!("{core},{}\n", core + 4),
            );
        }
        machine
    }

    fn file(&self, path: &str, text: &str) {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// The same, in a group of version 2; `limits` are those of its path, the innermost group last.
    fn with_v2(self, limits: &[(&str, &str)]) -> Self {
        let group = limits.last().map_or("", |(group, _)| group);
        self.file("proc/self/cgroup", &format!("0::/{group}\n"));
        self.file(
            "proc/self/mountinfo",
            "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n\
             31 22 0:28 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n",
        );
        for (group, limit) in limits {
            self.file(&format!("sys/fs/cgroup/{group}/cpu.max"), limit);
        }
        self
    }

    /// The same, in the group `group` of version 1, of whose tree the part from `top` is mounted.
    fn with_v1(self, top: &str, group: &str, limits: &[(&str, &str)]) -> Self {
        self.file(
            "proc/self/cgroup",
            &format!("9:name=systemd:/x\n3:cpuset:/y\n2:cpu,cpuacct:{group}\n0::/\n"),
        );
        self.file(
            "proc/self/mountinfo",
            &format!(
                "33 31 0:30 {top} /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n\
                 34 31 0:31 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n\
                 35 31 0:32 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
            ),
        );
        for (group, quota) in limits {
            let group = format!("sys/fs/cgroup/cpu,cpuacct/{group}");
            self.file(&format!("{group}/cpu.cfs_quota_us"), quota);
            self.file(&format!("{group}/cpu.cfs_period_us"), "100000\n");
        }
        self
    }

    fn threads(&self) -> Option<(usize, DecidedBy)> {
        let threads = Threads::of_linux(self.0.path())?;
        Some((threads.count.get(), threads.decided_by))
    }
}

#[test]
fn there_is_a_thread_for_each_core_that_may_be_used() {
    for (allowed, cores) in [
        ("0-7", 4),
        ("0-3", 4),
        ("0,4", 1),
        ("0-1,4-5", 2),
        ("2-5", 4),
        ("7", 1),
    ] {
        let threads = Machine::new(allowed).threads();
        assert_eq!(threads, Some((cores, DecidedBy::Cores)), "{allowed}");
    }
}

#[test]
fn processors_of_unknown_cores_count_each() {
    let machine = Machine::new("0-5");
    for processor in 0..8 {
        let topology = format!("sys/devices/system/cpu/cpu{processor}/topology");
        fs::remove_dir_all(machine.0.path().join(topology)).unwrap();
    }
    assert_eq!(machine.threads(), Some((6, DecidedBy::Cores)));
    // The name of the list before Linux 5.x.
    for processor in 0..6 {
        let siblings = format!("sys/devices/system/cpu/cpu{processor}/topology");
        machine.file(
            &format!("{siblings}/thread_siblings_list"),
            &format!("{0}-{1}\n", processor / 2 * 2, processor / 2 * 2 + 1),
        );
    }
    assert_eq!(machine.threads(), Some((3, DecidedBy::Cores)));
}

#[test]
fn what_is_not_understood_decides_nothing() {
    for allowed in ["", "x", "0-", "1-99999999", "-1"] {
        assert_eq!(Machine::new(allowed).threads(), None, "{allowed}");
    }
    let empty = Machine(tempfile::tempdir().unwrap());
    assert_eq!(empty.threads(), None);
    for limit in ["", "max", "100000", "x 100000", "100000 0", "-1 100000"] {
        let machine = Machine::new("0-3").with_v2(&[("", limit)]);
        assert_eq!(machine.threads(), Some((4, DecidedBy::Cores)), "{limit}");
    }
}

#[test]
fn quotas_are_rounded_down_to_at_least_one() {
    let cases = [
        ("max 100000", 4, DecidedBy::Cores),
        ("800000 100000", 4, DecidedBy::Cores),
        ("400000 100000", 4, DecidedBy::Cores),
        ("399999 100000", 3, DecidedBy::Quota(3.99999)),
        ("250000 100000", 2, DecidedBy::Quota(2.5)),
        ("10000 20000", 1, DecidedBy::Quota(0.5)),
    ];
    for (limit, count, decided_by) in cases {
        let machine = Machine::new("0-7").with_v2(&[("", limit)]);
        assert_eq!(machine.threads(), Some((count, decided_by)), "{limit}");
    }
}

#[test]
fn the_narrowest_group_on_the_way_decides() {
    let machine = Machine::new("0-7").with_v2(&[
        ("", "max 100000\n"),
        ("a", "200000 100000\n"),
        ("a/b", "300000 100000\n"),
    ]);
    assert_eq!(machine.threads(), Some((2, DecidedBy::Quota(2.0))));
}

#[test]
fn groups_of_version_1_count_too() {
    let limited = Some((2, DecidedBy::Quota(2.0)));
    let machine = |top, group, limits| Machine::new("0-7").with_v1(top, group, limits).threads();
    assert_eq!(machine("/", "/a/b", &[("a", "200000\n")]), limited);
    assert_eq!(machine("/", "/a/b", &[("a/b", "200000\n")]), limited);
    // A container that sees its group as the top, and its path from the host's top.
    assert_eq!(
        machine("/docker/x", "/docker/x", &[("", "200000")]),
        limited
    );
    assert_eq!(
        machine("/docker/x", "/docker/x/y", &[("y", "200000")]),
        limited
    );
    let unlimited = Some((4, DecidedBy::Cores));
    assert_eq!(
        machine("/", "/a", &[("a", "-1\n"), ("other", "100000\n")]),
        unlimited
    );
}

#[test]
fn flag_goes_before_variable_and_neither_beyond_what_runs_at_once() {
    let resolve = |flag, variable: &str| {
        let flag = ThreadsFlag { threads: flag };
        flag.resolve(Some(variable.into()))
    };
    let one = NonZeroUsize::MIN;
    let threads = resolve(Some(1), "1000").unwrap();
    assert_eq!((threads.count, threads.decided_by), (one, DecidedBy::Flag));
    let threads = resolve(None, "1").unwrap();
    assert_eq!(
        (threads.count, threads.decided_by),
        (one, DecidedBy::Variable)
    );
    let at_once = thread::available_parallelism().unwrap();
    assert_eq!(resolve(Some(1000), "").unwrap().count, at_once);
    assert_eq!(resolve(None, "1000").unwrap().count, at_once);
    let unset = resolve(None, "").unwrap();
    assert!(unset.count <= at_once);
    assert!(!matches!(
        unset.decided_by,
        DecidedBy::Flag | DecidedBy::Variable
    ));
    for wrong in ["0", "-1", "two", "1025", "1.5"] {
        let error = resolve(None, wrong).unwrap_err();
        assert_eq!(error.exit(), Exit::Usage, "{wrong}");
        assert!(error.message().contains(wrong), "{}", error.message());
    }
}
