//! The entry of `bench affinity` in the list of experiments.

use super::arguments::Arguments;
use super::family::Affinities;
use super::hackbench::HACKBENCH;
use super::model::Modelled;
use crate::experiment::{BenchResult, Context, Experiment, ExperimentError, RunResult};
use crate::platform::{About, WARNINGS, entry};
use clap::{ArgMatches, CommandFactory, FromArgMatches};
use untax_steer::model::Size;

const ABOUT: About = About { id: "affinity", schema: "untax.bench.affinity/1", in_cluster: false };

/// `untax bench affinity`.
pub const EXPERIMENT: Experiment = Experiment {
    id: ABOUT.id,
    summary: "what hard and soft CPU affinity are worth on this machine, with one or two busy instances",
    privilege: "root, to start servers as their users; --workload and hackbench need none",
    minimum_kernel: "4.18",
    cost: "CPUs busy for the whole time, by default 10 minutes; 1 GiB of memory",
    schema: ABOUT.schema,
    warnings: WARNINGS,
    command: Arguments::command,
    children: &[HACKBENCH],
    run,
    read,
};

fn run(matches: &ArgMatches, context: &mut Context) -> RunResult {
    let arguments = Arguments::from_arg_matches(matches).map_err(ExperimentError::failed)?;
    let size = match arguments.model.as_deref() {
        Some(name) => [Size::Two22, Size::Two64].into_iter().find(|size| size.name() == name),
        None => None,
    };
    if let Some(size) = size {
        return Ok(Box::new(Modelled::of(size, context.run)));
    }
    let mut family = Affinities::new(&arguments, context.state).map_err(ExperimentError::failed)?;
    entry::run(ABOUT, &arguments.common, &mut family, context)
}

/// A model is marked as one; every other result is measured.
fn read(saved: serde_json::Value) -> serde_json::Result<Box<dyn BenchResult>> {
    if saved.get("model").is_some() {
        return Ok(Box::new(serde_json::from_value::<Modelled>(saved)?));
    }
    entry::read(saved)
}
