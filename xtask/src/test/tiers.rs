//! Which tests run in `make test`, and which in `make test-long`: the lists, and the page about them.
//!
//! A test that a test program runs is long when it is ignored for a reason that begins with "long".

// Names of source files are written in lower case.
#![allow(clippy::case_sensitive_file_extension_comparisons)]

use super::run::Job;
use crate::child::mortal;
use crate::tidy::Tree;
use anyhow::{Context, Result};
use std::fmt::Write;
use std::fs;
use std::path::Path;

/// What stands before a test that only `make test-long` runs.
const LONG: &str = "#[ignore = \"long: ";

/// A part of the tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tier {
    /// What must pass before a change lands: `make test`.
    Short,
    /// All other tests: `make test-long`.
    Long,
}

/// A kernel of a guest machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kernel {
    /// The suite of Debian that it comes from.
    suite: &'static str,
    version: &'static str,
}

const KERNEL_5: Kernel = Kernel { suite: "bullseye", version: "5.10" };
const KERNEL_6: Kernel = Kernel { suite: "bookworm", version: "6.1" };
const KERNEL_6_12: Kernel = Kernel { suite: "trixie", version: "6.12" };
const NEWEST: Kernel = Kernel { suite: "trixie-backports", version: "7.x" };

/// Those that are traced.
const TRACED: &[Kernel] = &[KERNEL_6, KERNEL_6_12, NEWEST];

/// A test in a guest machine.
pub struct Guest {
    /// Its file in `tests/vm/`, without the extension.
    script: &'static str,
    pub tier: Tier,
    what: &'static str,
    /// It runs once on each of them.
    kernels: &'static [Kernel],
    /// What follows the program on the command line of the test.
    argument: Option<&'static str>,
    machine: Machine,
}

/// What the machine of a guest is given.
enum Machine {
    /// Nothing but the defaults.
    Plain,
    /// These words for the kernel's command line.
    Words(&'static str),
    /// The words in a file, which the test is given in place of the program, and so many MiB of memory.
    WordsOf(&'static str, u32),
}

const PLAIN: Guest = Guest {
    script: "",
    tier: Tier::Long,
    what: "",
    kernels: &[NEWEST],
    argument: None,
    machine: Machine::Plain,
};

/// Every test in a guest machine.
pub const GUESTS: &[Guest] = &[
    Guest {
        script: "kernel",
        tier: Tier::Short,
        what: "programs are loaded, the parts of time add up, and `cpu.max` is found",
        kernels: TRACED,
        ..PLAIN
    },
    Guest {
        script: "kernel",
        what: "the same where lockdown protects the kernel's integrity alone",
        kernels: TRACED,
        machine: Machine::Words("lockdown=integrity"),
        ..PLAIN
    },
    Guest {
        script: "limits",
        what: "`cpu.max` and `memory.high` of cgroup v2 are found",
        kernels: TRACED,
        ..PLAIN
    },
    Guest {
        script: "untraced",
        what: "a kernel that is too old to be traced: a check falls back to what it counts",
        kernels: &[KERNEL_5],
        ..PLAIN
    },
    Guest {
        script: "untraced",
        what: "the same where the kernel is locked down",
        kernels: TRACED,
        machine: Machine::Words("lockdown=confidentiality"),
        ..PLAIN
    },
    Guest {
        script: "untraced",
        what: "the same where the kernel has no type information",
        kernels: TRACED,
        argument: Some("types"),
        ..PLAIN
    },
    Guest {
        script: "oom",
        what: "memory that comes close to `memory.max`, and processes that the kernel kills",
        kernels: TRACED,
        ..PLAIN
    },
    Guest {
        script: "postgres",
        what: "PostgreSQL under `io.max` and `memory.high`, and behind a network that loses packets",
        kernels: TRACED,
        ..PLAIN
    },
    Guest {
        script: "client-network",
        what: "PostgreSQL whose clients are behind a network that delays packets",
        ..PLAIN
    },
    Guest {
        script: "io-limit",
        what: "a neighbour that floods the disk of PostgreSQL is limited by a plan, and freed again",
        ..PLAIN
    },
    Guest {
        script: "neighbour-thrash",
        what: "PostgreSQL beside a pod that thrashes inside its own `memory.max`",
        kernels: TRACED,
        ..PLAIN
    },
    Guest {
        script: "hugepage-limit",
        what: "PostgreSQL in a group that allows fewer huge pages than it will touch",
        kernels: TRACED,
        ..PLAIN
    },
    Guest {
        script: "numa",
        what: "memory on another NUMA node than its threads, and memory that moves between nodes",
        kernels: TRACED,
        ..PLAIN
    },
    Guest {
        script: "steer",
        what: "`untax steer` under a cpuset that is written and CPUs that go, far memory, and where `--backend ext` is refused",
        ..PLAIN
    },
    Guest { script: "pool-short", what: "a plan for more huge pages than a node has", ..PLAIN },
    // The first node has a hole below 4 GiB: with less memory, no aligned GiB of it is in one piece.
    Guest {
        script: "boot",
        what: "a boot with the words that a plan writes",
        machine: Machine::WordsOf("crates/remedies/tests/boot/guest.words", 7168),
        ..PLAIN
    },
];

impl Guest {
    /// Seconds after which a guest is stopped.
    const TIMEOUT: &str = "2400";

    /// Boots the machine with each of its kernels and runs the test in it, on the built program `untax`.
    pub fn jobs(&self, root: &Path, xtask: &Path, untax: &Path) -> Result<Vec<Job>> {
        self.kernels.iter().map(|kernel| self.job(*kernel, root, xtask, untax)).collect()
    }

    fn job(&self, kernel: Kernel, root: &Path, xtask: &Path, untax: &Path) -> Result<Job> {
        let mut command = mortal(xtask);
        command.current_dir(root).args(["vm", "run", "--timeout", Self::TIMEOUT]);
        command.args(["--suite", kernel.suite]);
        let mut program = untax.to_owned();
        match self.machine {
            Machine::Plain => {}
            Machine::Words(words) => {
                command.args(["--cmdline", words]);
            }
            Machine::WordsOf(file, memory) => {
                program = file.into();
                let words = fs::read_to_string(root.join(file)).context(file)?;
                command.args(["--memory", &memory.to_string(), "--cmdline", words.trim()]);
            }
        }
        command.arg("--").arg(self.path()).arg(program).args(self.argument);
        Ok(Job::new(self.name(kernel), command))
    }

    fn name(&self, kernel: Kernel) -> String {
        let words = match self.machine {
            Machine::Words(words) => Some(words),
            Machine::Plain | Machine::WordsOf(..) => self.argument,
        };
        let with = words.map(|words| format!(" with {words}")).unwrap_or_default();
        format!("{}{with} on Linux {}", self.path(), kernel.version)
    }

    fn path(&self) -> String {
        format!("tests/vm/{}.sh", self.script)
    }

    /// The versions of its kernels.
    fn versions(&self) -> String {
        let versions: Vec<&str> = self.kernels.iter().map(|kernel| kernel.version).collect();
        versions.join(", ")
    }
}

/// A test program that is told how often to kill or try something, instead of having tests.
pub struct Kills {
    program: &'static str,
    what: &'static str,
    short: u32,
    long: u32,
}

/// Every program that is told a number.
const KILLS: &[Kills] = &[
    Kills {
        program: "crash",
        what: "kills of `untax apply` and `untax undo`",
        short: 20,
        long: 200,
    },
    Kills { program: "guard", what: "kills of a guard, and of whom it guards", short: 1, long: 1 },
    Kills { program: "kill", what: "kills of `untax bench pages`", short: 5, long: 50 },
    Kills { program: "kill_bench", what: "kills of `untax bench runtime`", short: 2, long: 10 },
    Kills { program: "kill_network", what: "kills of `untax bench network`", short: 2, long: 10 },
    Kills {
        program: "kill_steer",
        what: "kills of a program that steers threads, of its guard, or of both",
        short: 10,
        long: 200,
    },
    Kills {
        program: "kill_idle",
        what: "kills of `untax apply`, `untax undo` and a lab that set `guest_halt_poll_ns`",
        short: 5,
        long: 20,
    },
    Kills {
        program: "kill_storage",
        what: "kills of `untax bench storage` and `untax bench locality`",
        short: 2,
        long: 10,
    },
    Kills { program: "kill_lab", what: "kills of `untax lab run`", short: 1, long: 50 },
    Kills {
        program: "exact_counts",
        what: "random settings of PostgreSQL, MariaDB and MySQL, whose huge pages are counted",
        short: 3,
        long: 200,
    },
];

impl Kills {
    pub fn times(&self, tier: Tier) -> u32 {
        match tier {
            Tier::Short => self.short,
            Tier::Long => self.long,
        }
    }
}

/// What a test program is told, when it is told a number.
pub fn kills_of(program: &str) -> Option<&'static Kills> {
    KILLS.iter().find(|kills| kills.program == program)
}

/// Whether the tests of a program start real servers or measure, and so run alone.
pub fn is_real(program: &str) -> bool {
    program.starts_with("real")
}

/// The long tests of the source files: file, name and reason.
fn long_tests(tree: &Tree) -> Vec<(&str, &str, &str)> {
    let mut tests = Vec::new();
    for (path, text) in tree.iter().filter(|(path, _)| path.ends_with(".rs")) {
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        for (i, line) in lines.iter().enumerate() {
            let Some(reason) = line.strip_prefix(LONG) else { continue };
            let name = lines[i..].iter().find_map(|line| line.strip_prefix("fn "));
            let name = name.and_then(|rest| rest.split('(').next()).unwrap_or_default();
            tests.push((path.as_str(), name, reason.trim_end_matches("\"]")));
        }
    }
    tests
}

/// What `docs/testing.md` says below its title.
pub fn page(tree: &Tree) -> String {
    let mut text = ABOUT.to_owned();
    text.push_str(
        "\n## Guest machines\n\n| test | what it shows | Linux | runs in |\n| --- | --- | --- | --- |\n",
    );
    for guest in GUESTS {
        let command = match guest.tier {
            Tier::Short => "`make test`",
            Tier::Long => "`make test-long`",
        };
        let (path, what, versions) = (guest.path(), guest.what, guest.versions());
        let _ = writeln!(text, "| {path} | {what} | {versions} | {command} |");
    }
    text.push_str("\n## Kills and random settings\n\n");
    text.push_str("| test program | what it tries | `make test` | `make test-long` |\n");
    text.push_str("| --- | --- | --- | --- |\n");
    for kills in KILLS {
        let Kills { program, what, short, long } = kills;
        let _ = writeln!(text, "| `{program}` | {what} | {short} | {long} |");
    }
    text.push_str("\n## Long tests\n\n| file | test | why it is long |\n| --- | --- | --- |\n");
    for (path, name, reason) in long_tests(tree) {
        let _ = writeln!(text, "| {path} | `{name}` | {reason} |");
    }
    text
}

const ABOUT: &str = "\
`make test` runs what must pass before a change lands. `make test-long` runs the rest of the tests: run
it before a release, and after a change to the code that they test. Measurements that take hours are not
tests: `make bench` runs them.

| stage | what it runs | `make test` | `make test-long` |
| --- | --- | --- | --- |
| build | every test program | yes | yes |
| formatting, lints | `cargo fmt --check`, `cargo clippy` | yes | |
| tidiness | what `cargo xtask tidy` checks of the source | yes | |
| dependencies | licences, bans and sources, as deny.toml allows them | yes | |
| fresh documents | whether `cargo xtask docs` would write the same | yes | |
| examples in documentation | `cargo test --doc` | yes | |
| unit and property tests | all of them | yes | |
| guest machines | kernels of Debian with cgroup v2 and two NUMA nodes, emulated | a short test on each | the others |
| tests on real servers | PostgreSQL, MariaDB, MySQL, Redis and Valkey on this machine, one test at a time | the short ones | the long ones |
| kills | programs that are killed at random moments, and random settings | a few | many |
| Kubernetes | plans and the agent on a cluster of one node, where `make kubernetes` has built it | | yes |
| packages of a release | the static file in an empty root, packages in a fresh Debian 12, the image | | yes |

A stage runs even if an earlier stage failed. The summary lists the time of each stage, the ten slowest
tests, skipped tests with the reason, and failures.

Tests on real servers are in files whose names begin with `real`. These tests need root and the servers'
packages, which `make test` installs. A long test is marked in its file, with the reason:
`#[ignore = \"long: two databases are verified, 80 s\"]`.

To run one test by hand, use `cargo test -p untax --test real_watch -- NAME`, with `--include-ignored`
for a long test.
";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{paths, tidy};

    #[test]
    fn a_long_test_is_listed_with_its_reason() {
        let file = "#[test]\n#[ignore = \"long: an hour\"]\nfn slow() {}\n#[test]\nfn fast() {}\n";
        let tree = Tree::from([("a/tests/real_x.rs".to_owned(), file.to_owned())]);
        assert_eq!(long_tests(&tree), [("a/tests/real_x.rs", "slow", "an hour")]);
        let page = page(&tree);
        assert!(page.ends_with("| a/tests/real_x.rs | `slow` | an hour |\n"), "{page}");
    }

    #[test]
    fn every_ignored_test_is_long() {
        let tree = tidy::read(&paths::root()).unwrap();
        for (path, text) in tree.iter().filter(|(path, _)| path.ends_with(".rs")) {
            for line in text.lines().map(str::trim).filter(|line| line.starts_with("#[ignore")) {
                assert!(line.starts_with(LONG), "{path} ignores a test that no tier runs: {line}");
            }
        }
    }

    #[test]
    fn promises_say_which_of_their_tests_are_long() {
        let tree = tidy::read(&paths::root()).unwrap();
        let promises = &tree["SPECIFICATION.md"];
        let tests = long_tests(&tree).into_iter().map(|(path, name, _)| format!("{path}::{name}`"));
        // A script that is short on one machine shows there what it promises.
        let is_short = |path: &String| {
            GUESTS.iter().any(|guest| guest.tier == Tier::Short && guest.path() == *path)
        };
        let guests = GUESTS.iter().map(Guest::path).filter(|path| !is_short(path));
        for proof in tests.chain(guests) {
            for after in promises.split(&proof).skip(1) {
                assert!(
                    after.starts_with(" (long)"),
                    "{proof} is long; SPECIFICATION.md must say so"
                );
            }
        }
    }

    #[test]
    fn every_test_in_a_guest_and_every_program_that_is_told_a_number_is_in_a_tier() {
        let tree = tidy::read(&paths::root()).unwrap();
        let scripts = tree.keys().filter(|path| path.starts_with("tests/vm/"));
        for script in scripts.filter(|path| !path.ends_with("/guest.sh")) {
            assert!(GUESTS.iter().any(|guest| guest.path() == *script), "{script} is in no tier");
        }
        let manifests = tree.iter().filter(|(path, _)| path.ends_with("Cargo.toml"));
        for (path, text) in manifests {
            for test in
                text.split("[[test]]").skip(1).filter(|test| test.contains("harness = false"))
            {
                let name = test.lines().find_map(|line| line.strip_prefix("name = \"")).unwrap();
                let name = name.trim_end_matches('"');
                assert!(kills_of(name).is_some(), "{path}: {name} is in no tier");
            }
        }
    }
}
