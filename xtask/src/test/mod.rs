//! `cargo xtask test`: runs the tests in stages. Every stage runs though an earlier one failed; the
//! end says what failed, what was skipped, and which tests took longest.

mod programs;
mod report;
mod run;
pub mod tiers;

pub use programs::cargo;

use crate::{docs, paths, release, tidy};
use anyhow::Result;
use clap::Args;
use programs::Programs;
use report::Report;
use run::{Job, Outcome};
use std::path::Path;
use std::process::{Command, ExitCode};
use std::thread;
use tiers::{GUESTS, Tier};

/// Which tests to run.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Run the long tests, which are left out otherwise, and no others.
    #[arg(long)]
    long: bool,
}

impl Arguments {
    /// Runs the tests of a tier; the exit code says whether all passed.
    pub fn run(&self) -> ExitCode {
        let mut report = Report::new();
        if self.long {
            long(&paths::root(), &mut report);
        } else {
            short(&paths::root(), &mut report);
        }
        print!("{report}");
        if report.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

fn short(root: &Path, report: &mut Report) {
    let programs = prepare(root, report);
    thread::scope(|scope| {
        // Nothing is measured until it has ended; it takes one processor.
        let guests = scope.spawn(|| as_root(guests(root, &programs, Tier::Short), 1));
        check(root, report);
        report.stage("unit and property tests", || {
            let processors = thread::available_parallelism().map_or(1, usize::from);
            run_all(programs.tests(Tier::Short, false), processors)
        });
        report.stage("guest machines", || guests.join().unwrap_or_default());
    });
    report.stage("tests on real servers", || as_root(programs.tests(Tier::Short, true), 1));
    report.stage("kills", || as_root(Ok(programs.kills(Tier::Short)), 1));
    let servers = programs.tests(Tier::Long, true).map_or(0, |tests| tests.len());
    let guests = guests(root, &programs, Tier::Long).map_or(0, |guests| guests.len());
    report.leave(format!(
        "{servers} tests on real servers, {guests} guest machines, more kills, and Kubernetes: \
         make test-long"
    ));
}

fn long(root: &Path, report: &mut Report) {
    let programs = prepare(root, report);
    report.stage("loads", || {
        let build = paths::cache().map(|cache| {
            let mut command = Command::new(root.join("scripts/loads.sh"));
            command.arg(cache);
            vec![Job::new("loads", command)]
        });
        as_root(build, 1)
    });
    // Two at a time: a guest has one thread, however many processors it sees.
    report.stage("guest machines", || as_root(guests(root, &programs, Tier::Long), 2));
    report.stage("tests on real servers", || as_root(programs.tests(Tier::Long, true), 1));
    report.stage("kills", || as_root(Ok(programs.kills(Tier::Long)), 1));
    report.stage("packages of a release", || {
        let command = Command::new(root.join("scripts/packages.sh"));
        as_root(Ok(vec![Job::new("packages of a release", command)]), 1)
    });
    report.stage("Kubernetes", || {
        let mut command = Command::new(root.join("scripts/kubernetes.sh"));
        command.arg("--if-built");
        as_root(Ok(vec![Job::new("Kubernetes", command)]), 1)
    });
}

/// Installs what the tests need, and builds them.
fn prepare(root: &Path, report: &mut Report) -> Programs {
    let mut programs = Programs::default();
    report.stage("packages", || {
        let mut packages = Command::new(root.join("scripts/needs.sh"));
        packages.args(["test", "vm"]);
        let servers = paths::cache().map(|cache| {
            let mut servers = Command::new(root.join("scripts/engines.sh"));
            let mut prometheus = Command::new(root.join("scripts/prometheus.sh"));
            servers.arg(&cache);
            prometheus.arg(&cache);
            vec![
                Job::new("packages", packages),
                Job::new("unpacked servers", servers),
                Job::new("unpacked Prometheus", prometheus),
            ]
        });
        as_root(servers, 1)
    });
    report.stage("build", || {
        let build = || {
            programs = Programs::build(root)?;
            Ok((true, String::new()))
        };
        vec![run::outcome("build", build)]
    });
    programs
}

/// What needs no test program.
fn check(root: &Path, report: &mut Report) {
    let lints = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
    let shown = |name, words: &[&str]| vec![Job::new(name, cargo(words)).run_shown()];
    let checked =
        |name, done: Result<()>| vec![run::outcome(name, || done.map(|()| (true, String::new())))];
    report.stage("formatting", || shown("formatting", &["fmt", "--all", "--check"]));
    report.stage("lints", || shown("lints", &lints));
    report.stage("tidiness", || checked("tidiness", tidy::run(root)));
    report.stage("dependencies", || checked("dependencies", release::policy::check(root)));
    report.stage("fresh documents", || checked("fresh documents", docs::check(root)));
    report.stage("examples in documentation", || {
        shown("examples in documentation", &["test", "--quiet", "--workspace", "--doc"])
    });
}

/// The guest machines of a tier, on the built program.
fn guests(root: &Path, programs: &Programs, tier: Tier) -> Result<Vec<Job>> {
    let xtask = std::env::current_exe()?;
    let guests = GUESTS.iter().filter(|guest| guest.tier == tier);
    let jobs = guests.map(|guest| guest.jobs(root, &xtask, programs.untax()));
    jobs.collect::<Result<Vec<_>>>().map(|jobs| jobs.into_iter().flatten().collect())
}

/// Runs jobs that need root; without it they are skipped.
fn as_root(jobs: Result<Vec<Job>>, at_once: usize) -> Vec<Outcome> {
    if rustix::process::geteuid().is_root() {
        return run_all(jobs, at_once);
    }
    jobs.unwrap_or_default().into_iter().map(|job| job.skip("needs root")).collect()
}

/// Runs jobs; that there are none to be had is a failure like that of a test.
fn run_all(jobs: Result<Vec<Job>>, at_once: usize) -> Vec<Outcome> {
    match jobs {
        Ok(jobs) => run::all(jobs, at_once),
        Err(error) => vec![run::outcome("the list of tests", || Err(error))],
    }
}
