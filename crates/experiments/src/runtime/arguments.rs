//! The arguments of `untax bench runtime`.

use crate::cluster::ClusterArguments;
use crate::platform::Arguments as Common;
use std::path::PathBuf;

/// Measure what a container runtime costs: the same servers and programs in each, paired
///
/// Each server and each program runs as a plain process, as a process in a control group, and in
/// every runtime that works here. Clients run outside. Start-up is not measured. The bench needs
/// root, and CPUs that nobody else uses.
#[derive(Debug, clap::Parser)]
#[command(
    after_help = "Examples:\n  untax bench runtime                            the most telling work, 10 minutes\n  \
                  untax bench runtime --quick                    less of it, in 3 minutes\n  \
                  untax bench runtime --list                     arms and work, and why some cannot run here\n  \
                  untax bench runtime --workloads redis-get --arms runc --fail-if 'runc/host < 0.95'\n  \
                  untax bench runtime --runtime /usr/bin/youki --limit 1\n  \
                  untax bench runtime --cluster --image registry.example/untax:1   its runtime classes"
)]
pub(super) struct Arguments {
    #[command(flatten)]
    pub(super) common: Common,
    /// Another OCI runtime to compare: its program, with options behind it, and a name before '=' if
    /// it is to have another than the program's; may be repeated
    #[arg(long, value_name = "[NAME=]PATH [OPTION…]")]
    pub(super) runtime: Vec<String>,
    /// The program of gVisor [default: the installed one]
    #[arg(long, value_name = "PATH")]
    pub(super) runsc: Option<PathBuf>,
    /// Limit every arm but the host to so many CPUs, to see what throttling takes
    #[arg(long, value_name = "CPUS", value_parser = cpus)]
    pub(super) limit: Option<f64>,
    /// Work of your own: a command that runs in every arm; its time is measured
    #[arg(long, value_name = "CMD")]
    pub(super) workload: Option<String>,
    #[command(flatten)]
    pub(super) cluster: ClusterArguments,
}

fn cpus(text: &str) -> Result<f64, String> {
    let cpus: f64 = text.parse().map_err(|_| format!("{text} is not a number of CPUs"))?;
    // The kernel takes no quota below a millisecond, which is 0.01 of a period of 100 ms.
    if (0.01..=4096.0).contains(&cpus) {
        Ok(cpus)
    } else {
        Err("a limit is 0.01 to 4096 CPUs".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn limits_are_numbers_of_cpus() {
        Arguments::command().debug_assert();
        assert_eq!(cpus("1.5"), Ok(1.5));
        for wrong in ["0", "-1", "all", "NaN"] {
            assert!(cpus(wrong).is_err(), "{wrong}");
        }
    }
}
