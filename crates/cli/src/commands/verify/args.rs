//! The arguments of `untax verify`.

use crate::commands::check::FORMATS;
use crate::duration::duration;
use std::path::PathBuf;
use std::time::Duration;

/// Arguments of `untax verify`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "The rate of a workload is the rate that pgbench, sysbench or redis-benchmark \
                  prints, or a number on its last line. Otherwise, the rate is how often the \
                  workload could run in a second.\n\n\
                  With --restart, untax restarts the database each time it applies or undoes the \
                  plan. For 15 pairs these are about 20 restarts (at most 24), or 10 if the first \
                  8 pairs agree. \
                  A pair is two trials, each with its warm-up: 15 pairs of a workload of 10s take \
                  10 minutes, plus the restarts. A workload that is known by name keeps the \
                  server busy. The workloads pgbench and sysbench create a database of 256 MiB on \
                  the server, and drop it afterwards. Run this on a replica, or in a maintenance window.\n\n\
                  Exit codes: 0 proven, 1 disproven or inconclusive, 2 failed, 3 bad usage.\n\n\
                  Examples:\n  \
                  untax verify fix/ --workload 'pgbench -S -c 16 -T 20 bench' \\\n    \
                  --restart 'systemctl restart postgresql'\n  \
                  untax verify plan-20260101T101500000Z --passive 60s   under traffic that is there anyway\n  \
                  untax verify fix/ --workload 'pgbench -c 300 bench' \\\n    \
                  --workload-applied 'pgbench -c 300 -p 6432 bench'   a pooler, which no step sets\n  \
                  untax verify fix/ --steer --passive 60s   no affinity, hard partitions, untax steer"
)]
pub struct Args {
    /// The plan: its id, its file, or the directory that it was written to
    #[arg(value_name = "PLAN")]
    pub plan: String,
    /// The shell command to run in each trial; or pgbench, sysbench or redis-benchmark alone, to
    /// have it run on the database of the plan, on data of its own
    #[arg(long, value_name = "CMD")]
    pub workload: Option<String>,
    /// The shell command for trials with the plan, if it differs, for example through a pooler
    #[arg(long, value_name = "CMD", requires = "workload")]
    pub workload_applied: Option<String>,
    /// Length of a trial of a workload that is known by name
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration)]
    pub trial: Duration,
    /// Connections of a workload that is known by name [default: 4 for each CPU, and one for a plan
    /// that keeps CPUs awake between requests]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub clients: Option<u32>,
    /// Run no workload. In each trial, measure the present load of the plan's databases for this
    /// long, in accesses to cached data a second. The result is useful only where the database is
    /// saturated. The plan is applied and undone alternately all the same
    #[arg(long, value_name = "TIME", conflicts_with = "workload", value_parser = duration)]
    pub passive: Option<Duration>,
    /// Instead of the plan's steps, try no affinity, hard partitions and soft affinity (untax
    /// steer) for every database here, on proposed CPUs. A plan without steps that hands over soft
    /// affinity is tried so anyway
    #[arg(long, conflicts_with_all = ["workload_applied", "restart"])]
    pub steer: bool,
    /// A database and the CPUs that it prefers, as for untax steer; once for each
    #[arg(long = "instance", value_name = "NAME=CPUS", conflicts_with_all = ["workload_applied", "restart"])]
    pub instances: Vec<String>,
    /// The shell command that restarts the database, for plans that need a restart. The command
    /// must not return before the database serves. About 20 restarts for 15 pairs, 10 if the first
    /// 8 agree
    #[arg(long, value_name = "CMD")]
    pub restart: Option<String>,
    /// Runs of the workload after each change that are not counted
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub warm_up: u32,
    /// The most pairs of trials
    #[arg(long, value_name = "N", default_value_t = 15, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub pairs: u32,
    /// Begin no new pair after this time
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = duration)]
    pub budget: Duration,
    /// Also write the result as a self-contained web page
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
    /// Form of the output; --json overrides it
    #[arg(long, value_name = "FORMAT", default_value = "screen", value_parser = FORMATS)]
    pub format: String,
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// Arguments with this workload, and what is the default of the others.
    pub fn args(workload: &str) -> Args {
        Args {
            plan: String::new(),
            workload: Some(workload.to_owned()),
            workload_applied: None,
            trial: Duration::from_secs(1),
            clients: None,
            passive: None,
            restart: None,
            steer: false,
            instances: Vec::new(),
            warm_up: 0,
            pairs: 1,
            budget: Duration::MAX,
            html: None,
            json: false,
            format: "screen".to_owned(),
        }
    }
}
