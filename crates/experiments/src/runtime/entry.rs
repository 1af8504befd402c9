//! The entry of `bench runtime` in the list of experiments.

use super::arguments::Arguments;
use super::cluster::RuntimeClasses;
use super::family::Runtimes;
use super::work;
use crate::experiment::{Context, Experiment, ExperimentError, RunResult};
use crate::platform::{About, WARNINGS, entry};
use clap::{ArgMatches, CommandFactory, FromArgMatches};

const ABOUT: About = About { id: "runtime", schema: "untax.bench.runtime/1", in_cluster: false };

/// `untax bench runtime`.
pub const EXPERIMENT: Experiment = Experiment {
    id: ABOUT.id,
    summary: "what a container runtime costs this machine's databases, paired with the plain host",
    privilege: "root, to start containers, networks and control groups",
    minimum_kernel: "4.18, as the runtimes need",
    cost: "CPUs and disk busy for the whole time, by default 10 minutes; 1 GiB of memory, 2 GiB of disk",
    schema: ABOUT.schema,
    warnings: WARNINGS,
    command: Arguments::command,
    children: &[work::WORK],
    run,
    read: entry::read,
};

fn run(matches: &ArgMatches, context: &mut Context) -> RunResult {
    let arguments = Arguments::from_arg_matches(matches).map_err(ExperimentError::failed)?;
    if arguments.cluster.cluster {
        let about = About { in_cluster: true, ..ABOUT };
        let asked = arguments.common.arms.clone();
        let mut classes = RuntimeClasses::new(arguments.cluster.clone(), asked);
        return entry::run(about, &arguments.common, &mut classes, context);
    }
    let mut family = Runtimes::new(&arguments);
    entry::run(ABOUT, &arguments.common, &mut family, context)
}
