//! The command line. Help, completions, the man page and docs/command-line.md come from here.

use crate::commands::{
    advise, agent, apply, bench, capture, check, compare, completions, demo, doctor, explain,
    fleet, lab, man, plan, report, runs, steer, timeline, undo, verify, watch,
};
use clap::{Parser, Subcommand};
use std::path::PathBuf;

/// What does the platform take from my database, what do I change, and did it work?
///
/// untax attaches to a live database and says what each layer under it costs, in percent of the
/// database's own time, with the interval and the method of every number. What cannot be measured
/// is called unmeasured, with the reason. A check changes no setting of the host.
#[derive(Debug, Parser)]
#[command(
    name = "untax",
    version,
    long_version = crate::version::long(),
    arg_required_else_help = true,
    after_help = "Exit codes: 0 done, or nothing found; 1 findings above info, not proven, or something \
                  left; 2 could not do it; 3 bad usage. Each command's help says which.\n\n\
                  Examples:\n  untax check                      every database on this host\n  \
                  untax check --pid 4012 --json    one of them, for scripts\n  \
                  untax explain small-pages        what a finding means and how to fix it\n  \
                  untax bench pages                what page size is worth on this machine"
)]
pub struct Args {
    /// Where runs, calibrations and journals are kept [default: /var/lib/untax for root,
    /// ~/.local/state/untax for others]
    #[arg(long, global = true, value_name = "DIR")]
    pub state_dir: Option<PathBuf>,

    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Say what the platform takes from the databases on this host
    ///
    /// Watches the databases for a while, and then their servers are asked what they count. No setting of
    /// the host or of a server is changed. As root it sees everything; else it says what it could not see.
    /// It loads BPF programs for the window, saves what it found in --state-dir, and at most once in 24
    /// hours, where data is on small pages, takes some 3 s of CPU and several hundred MiB to calibrate.
    Check(check::Args),
    /// Show what the platform takes from the databases, window after window
    ///
    /// Until q is pressed. With --json a whole result is printed on a line for each window.
    Watch(watch::Args),
    /// Say why the throughput of a database changed
    ///
    /// From a recording of untax watch or untax agent, or from Prometheus: each step and each ramp that the noise
    /// of the load does not explain, the seconds of a request before and after it, part by part, and the facts that
    /// changed about then. Parts add up to the change. Without evidence a change is called unexplained.
    Timeline(timeline::Args),
    /// Tell Prometheus what the platform takes from every database of this host, all the time
    ///
    /// One window after the other, as series at /metrics. Nothing of the host is changed, and nothing is
    /// saved, unless --record is given. At most 50 databases are told, each with at most 155 series; what is left out is counted.
    Agent(agent::Args),
    /// Say what a rule means, how it is measured and how to fix it
    ///
    /// With the sources that its facts come from.
    Explain(explain::Args),
    /// Say what to change, from a saved check; changes nothing
    ///
    /// What to change, in order, with the value before and after, and what is left to you. Nothing is
    /// read but the saved check, or a capture.
    Plan(plan::Args),
    /// Do what a plan says, so that it can be undone
    ///
    /// Step by step. The value before each step is on disk before the step is done, so that untax undo
    /// can put it back after any crash. When a step fails, or you interrupt it, all that was done is
    /// undone.
    Apply(apply::Args),
    /// Put back what was applied
    ///
    /// Every value, every file byte for byte, the last step first. What somebody else changed since is
    /// shown and left alone. Undoing twice is harmless.
    Undo(undo::Args),
    /// Prove or disprove a plan by trials with and without it
    ///
    /// Applies and undoes the plan alternately, in random order, runs a workload each time, and says with
    /// an interval what the plan is worth, beside what was predicted and what noise alone does.
    /// Afterwards the host is as it was before, also when untax is killed. A plan that was in force at the
    /// start is applied again, under a new receipt.
    Verify(verify::Args),
    /// Say what became of each cause between two checks
    ///
    /// Of the same databases. A difference counts only where the intervals do not overlap; untax verify
    /// proves what a change is worth.
    Compare(compare::Args),
    /// Write saved results as one web page
    ///
    /// Self-contained: checks, verifications, page-size benches and lab matrices, in the order in which
    /// they are named.
    Report(report::Args),
    /// Keep each database on CPUs of its own, and let it use idle ones while that pays
    ///
    /// Soft affinity: each database has CPUs that it prefers, and uses others while its own are full, the
    /// others idle, and its throughput gains by them. An owner gets its CPUs back within two samples. It
    /// sets only the CPU masks of threads, within each cpuset, and skips threads that set their own mask. All is
    /// put back when it ends, also when it is killed: by its guard, or by the next untax steer stop.
    Steer(steer::Args),
    /// Benchmark this machine: page size, container runtime, network path, storage, affinity
    #[command(subcommand)]
    Bench(bench::Bench),
    /// Say which runtime, network or storage to choose, and what each would cost a database
    ///
    /// From what untax bench measured on this host, and from what a check says that the database needs: its
    /// system calls, its network, its disks. Every price has an interval and says what it stands on; what was
    /// not measured here is called so, with the command that measures it. Isolation stands beside speed.
    /// Changes nothing.
    Advise(advise::Args),
    /// Say what the platform takes from every database of many hosts, or of a cluster
    ///
    /// The databases that lose most, the causes in the whole fleet, the change that frees most, nodes that say
    /// nothing, and nodes with one machine id. Asks Prometheus, or the agents themselves.
    Fleet(fleet::Args),
    /// Save what a check reads here, without secrets, to replay elsewhere
    ///
    /// Every file that a check reads on this host, with those that were denied or absent marked, and
    /// without passwords or texts of queries: to report a wrong diagnosis, or to keep as a test.
    Capture(capture::Args),
    /// Show in a minute what untax does, on a scratch database
    ///
    /// Starts a PostgreSQL of its own, gives it a CPU limit as a container has one, finds the limit by a check,
    /// predicts what its removal would bring, removes it, and measures that. Everything is undone afterwards,
    /// also when untax is killed.
    Demo(demo::Args),
    /// Cause a problem on a scratch database, and see it found
    #[command(subcommand)]
    Lab(Lab),
    /// List saved runs, or say what one found
    ///
    /// The latest first. Wherever a run is wanted, its name may be cut as long as it is still one run's;
    /// @last is the latest one, and @-1 the one before it.
    Runs(runs::Args),
    /// Show what untax can see and change on this host, as this user
    ///
    /// For each requirement: its purpose, what untax cannot do without it, and how to get it. Changes
    /// nothing.
    Doctor(doctor::Args),
    /// Print a script that completes untax's options in a shell
    Completions(completions::Args),
    /// Print the manual page, or write the pages of all commands into a directory
    Man(man::Args),
}

/// Problems made on purpose, on a scratch database that is started for it.
#[derive(Debug, Subcommand)]
pub enum Lab {
    /// List the causes, the engines they make sense for, and what this machine lacks for them
    List(lab::list::Args),
    /// Put one cause on one engine: check, remove it, check again, and measure the gain
    ///
    /// Starts a scratch server in a directory, a control group and on a port of its own, puts a cause on
    /// it under load, checks it, removes the cause, checks again, and measures throughput with and
    /// without it by turns. Everything is undone afterwards, also when untax is killed.
    ///
    /// Some causes change settings of the whole host meanwhile (pools of huge pages, transparent huge
    /// pages, limits of dirty pages, the size of the table of connections), and it is busy: do not run it
    /// next to a database that matters.
    Run(lab::run::Args),
    /// Put many causes on many engines, in random order, and make a table of what was found
    ///
    /// The order is random so that a slow drift of the machine favours no cause. What was done so far is
    /// saved after each: the same command goes on with a matrix that was interrupted.
    Matrix(lab::matrix::Args),
}
