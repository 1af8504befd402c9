//! The command line. Help, completions, the man page and docs/command-line.md come from here.

use crate::commands::{
    advise, agent, apply, bench, capture, check, compare, completions, demo, doctor, explain,
    fleet, lab, man, plan, report, runs, steer, timeline, undo, verify, watch,
};
use clap::{Parser, Subcommand};
use std::path::PathBuf;

/// What does the platform take from my database, what do I change, and did it work?
///
/// untax attaches to a live database and shows the cost of each layer under it, in percent of the
/// database's own time. Every number has an interval and a method. A value that cannot be measured
/// is called unmeasured, with the reason. A check changes no setting of the host.
#[derive(Debug, Parser)]
#[command(
    name = "untax",
    version,
    long_version = crate::version::long(),
    arg_required_else_help = true,
    after_help = "Exit codes: 0 done, or nothing found; 1 findings above info, not proven, or \
                  something left; 2 failed; 3 bad usage. Each command's help says which.\n\n\
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
    /// A check watches the databases for a window, and then asks their servers for their counters.
    /// A check changes no setting of the host or of a server. As root, a check sees everything;
    /// otherwise the result names what it could not see. A check loads BPF programs for the window,
    /// and saves its result in --state-dir. Where data is on small pages, a check also calibrates,
    /// at most once in 24 hours. A calibration takes some 3 s of CPU and several hundred MiB.
    Check(check::Args),
    /// Show what the platform takes from the databases, window after window
    ///
    /// The command runs until you press q. With --json, the command prints one line for each
    /// window, with the whole result.
    Watch(watch::Args),
    /// Say why the throughput of a database changed
    ///
    /// The input is a recording of untax watch or untax agent, or Prometheus. The result lists each
    /// step and each ramp that the noise of the load does not explain. For each change, it shows
    /// the seconds of a request before and after, part by part, and the facts that changed at about
    /// the same time. The parts add up to the change. Without evidence, a change is called
    /// unexplained.
    Timeline(timeline::Args),
    /// Export what the platform takes from every database of this host to Prometheus, all the time
    ///
    /// The agent checks one window after the other, and serves the results as series at /metrics.
    /// The agent changes nothing on the host, and saves nothing unless --record is given. The agent
    /// exports at most 50 databases, each with at most 155 series, and counts what it leaves out.
    Agent(agent::Args),
    /// Say what a rule means, how it is measured and how to fix it
    ///
    /// The text also names the sources of its facts.
    Explain(explain::Args),
    /// Say what to change, from a saved check; changes nothing
    ///
    /// A plan lists the changes in order, each with the value before and after. A plan also lists
    /// the tasks that are left to you. The command reads only the saved check, or a capture.
    Plan(plan::Args),
    /// Apply a plan, so that it can be undone
    ///
    /// untax does the steps one by one. Before each step, the old value is saved on disk, so that
    /// untax undo can restore this value after any crash. When a step fails, or you interrupt the
    /// command, all steps are undone.
    Apply(apply::Args),
    /// Undo an applied plan
    ///
    /// untax restores every value, and every file byte for byte, the last step first. Values that
    /// somebody else changed since are shown and left alone. Undoing twice is harmless.
    Undo(undo::Args),
    /// Prove or disprove a plan by trials with and without it
    ///
    /// untax applies and undoes the plan alternately, in random order, and runs a workload each
    /// time. The result shows the measured gain with an interval, beside the predicted gain and the
    /// effect of noise alone. Afterwards the host is as it was before, also when untax is killed.
    /// If the plan was applied at the start, it is applied again, under a new receipt.
    Verify(verify::Args),
    /// Compare each cause in two checks
    ///
    /// The comparison covers databases that are in both checks. A difference counts only where the
    /// intervals do not overlap. To prove the gain of a change, use untax verify.
    Compare(compare::Args),
    /// Write saved results as one web page
    ///
    /// The page is self-contained, and holds checks, verifications, page-size benches and lab
    /// matrices, in the order in which you name them.
    Report(report::Args),
    /// Keep each database on CPUs of its own, and let it use idle ones while that pays
    ///
    /// With soft affinity, each database has CPUs that it prefers. A database also uses other CPUs
    /// while its own are full, the others are idle, and its throughput gains by them. An owner gets
    /// its CPUs back within two samples. The command sets only the CPU masks of threads, within
    /// each cpuset, and skips threads that set their own mask. Everything is restored when it ends.
    /// If it is killed, its guard restores everything, or the next untax steer stop does.
    Steer(steer::Args),
    /// Benchmark this machine: page size, container runtime, network path, storage, affinity
    #[command(subcommand)]
    Bench(bench::Bench),
    /// Say which runtime, network or storage to choose, and what each would cost a database
    ///
    /// The advice combines the results of untax bench on this host with the needs of the database
    /// from a check: system calls, network, disks. Every price has an interval and names its basis.
    /// A price that was not measured here is called so, with the command that measures it. The
    /// advice shows isolation beside speed. It changes nothing.
    Advise(advise::Args),
    /// Say what the platform takes from every database of many hosts, or of a cluster
    ///
    /// The report ranks the databases that lose most, and lists the causes in the whole fleet. The
    /// report names the change that frees most, silent nodes, and nodes with the same machine id.
    /// The data comes from Prometheus, or from the agents themselves.
    Fleet(fleet::Args),
    /// Save what a check reads here, without secrets, to replay elsewhere
    ///
    /// A capture holds every file that a check reads on this host, and marks files that were denied
    /// or absent. A capture holds no passwords and no texts of queries. Use it to report a wrong
    /// diagnosis, or as a test.
    Capture(capture::Args),
    /// Show in a minute what untax does, on a scratch database
    ///
    /// The demo starts its own PostgreSQL and gives it a CPU limit, like that of a container. A
    /// check finds the limit and predicts the gain of its removal. The demo then removes the limit
    /// and measures the gain. Everything is undone afterwards, also when untax is killed.
    Demo(demo::Args),
    /// Cause a problem on a scratch database, and see it found
    #[command(subcommand)]
    Lab(Lab),
    /// List saved runs, or say what one found
    ///
    /// The list begins with the latest run. In every command, you may shorten the name of a run
    /// while it still names one run. The name @last is the latest run, and @-1 is the run before
    /// it.
    Runs(runs::Args),
    /// Show what untax can see and change on this host, as this user
    ///
    /// For each requirement, the list shows its purpose, what untax cannot do without it, and how
    /// to get it. The command changes nothing.
    Doctor(doctor::Args),
    /// Print a script that completes untax's options in a shell
    Completions(completions::Args),
    /// Print the manual page, or write the pages of all commands into a directory
    Man(man::Args),
}

/// Problems made on purpose, on a scratch database that is started for it.
#[derive(Debug, Subcommand)]
pub enum Lab {
    /// List the causes, the engines that suit them, and the requirements that this machine lacks
    List(lab::list::Args),
    /// Put one cause on one engine: check, remove it, check again, and measure the gain
    ///
    /// The lab starts a scratch server with its own directory, control group and port. The lab puts
    /// a cause on the server under load, checks the server, removes the cause, and checks again.
    /// Then it measures throughput with and without the cause by turns. Everything is undone
    /// afterwards, also when untax is killed.
    ///
    /// Some causes change settings of the whole host meanwhile: pools of huge pages, transparent
    /// huge pages, limits of dirty pages, or the size of the connection table. The host is also
    /// busy. Do not run the lab next to a database that matters.
    Run(lab::run::Args),
    /// Put many causes on many engines, in random order, and make a table of what was found
    ///
    /// The order is random so that a slow drift of the machine favours no cause. The lab saves its
    /// results after each run. The same command continues an interrupted matrix.
    Matrix(lab::matrix::Args),
}
