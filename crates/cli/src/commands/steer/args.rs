//! The arguments of `untax steer`.

use crate::duration::duration;
use std::time::Duration;

/// Arguments of `untax steer`.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "An instance is NAME=CPUS. NAME is ENGINE@PORT, or the pid of any process. The instance \
                  uses other CPUs too while its own are more than 85 % busy and the others idle.\n\n\
                  NAME=CPUS/hard forbids other CPUs. NAME=CPUS/PREFERRED:ALLOWED sets another \
                  limit. The busy share of its own CPUs, divided by the busy share of all its \
                  CPUs, must be above PREFERRED/ALLOWED. So 100:1 is harder than 5:4. \
                  NAME+PID=CPUS steers another process tree along with it, such as its \
                  pooler.\n\n\
                  Examples:\n  untax steer --auto --propose       which CPUs each would prefer; changes nothing\n  \
                  untax steer --instance postgres@5432=0-21 --instance mysql@3306=22-43\n  \
                  untax steer --auto --json          as a stream, for scripts\n\n\
                  Exit codes: 0 ended, and all is restored; 2 failed; 3 bad usage."
)]
pub struct Args {
    #[command(subcommand)]
    pub command: Option<Action>,
    /// A database and the CPUs that it prefers; once for each
    #[arg(long = "instance", value_name = "NAME=CPUS", required_unless_present = "auto")]
    pub instances: Vec<String>,
    /// Every database on this host, on CPUs that are proposed from the machine, from where its memory lies
    /// and from what it uses in three seconds
    #[arg(long, conflicts_with = "instances")]
    pub auto: bool,
    /// Show the proposed CPUs, and change nothing
    #[arg(long, requires = "auto")]
    pub propose: bool,
    /// How long changed CPUs stay, unless their owner needs them
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = positive)]
    pub hold: Duration,
    /// How long to measure throughput with more CPUs, and with only its own, to see whether more
    /// CPUs pay
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = positive)]
    pub judge: Duration,
    /// The time between two samples; longer where these would take more than 0.3 % of a CPU
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = positive)]
    pub period: Duration,
    /// How threads get their CPUs: user sets masks of threads, on any kernel; ext loads a program
    /// into the kernel (`sched_ext`), which places each thread when it wakes (Linux 6.13 or later,
    /// no CPU limits or weights of control groups, no real-time programs; its gain is not proven
    /// yet)
    #[arg(long, value_name = "MEANS", value_parser = ["user", "ext"], default_value = "user")]
    pub backend: String,
    /// Print each event as JSON on a line of its own
    #[arg(long)]
    pub json: bool,
}

/// What else there is to do.
#[derive(Debug, clap::Subcommand)]
pub enum Action {
    /// Show which process steers, the CPUs that threads got, and what a killed steering left
    Status {
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
    /// End steering and wait until all is restored; also restore what a killed steering left
    Stop {
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
}

/// A time that is not zero.
fn positive(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        Duration::ZERO => Err(format!("{text} is no time; 100ms is")),
        time => Ok(time),
    }
}
