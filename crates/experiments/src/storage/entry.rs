//! The entry of `bench storage` in the list of experiments.

use super::arguments::StorageArguments;
use super::family::Storage;
use super::job::STORAGE;
use crate::experiment::{Context, Experiment, ExperimentError, RunResult};
use crate::platform::{About, PlatformError, WARNINGS, entry};
use clap::{ArgMatches, CommandFactory, FromArgMatches};
use untax_changes::Program;

const ABOUT: About = About { id: "storage", schema: "untax.bench.storage/1", in_cluster: false };

/// `untax bench storage`.
pub const EXPERIMENT: Experiment = Experiment {
    id: ABOUT.id,
    summary: "what each volume or filesystem costs a database: log, reads, checkpoints, commits",
    privilege: "root, to mount scratch filesystems and to limit groups; directories need none",
    // Direct I/O of loop devices.
    minimum_kernel: "4.10",
    cost: "some GiB of disk below TMPDIR or 1 GiB in each --path, and the disk itself",
    schema: ABOUT.schema,
    warnings: WARNINGS,
    command: StorageArguments::command,
    children: &[STORAGE],
    run,
    read: entry::read,
};

fn run(matches: &ArgMatches, context: &mut Context) -> RunResult {
    let arguments = StorageArguments::from_arg_matches(matches).map_err(ExperimentError::failed)?;
    let family = Storage::new(Program::this(), arguments.request());
    let mut family = family.map_err(|error| match error {
        PlatformError::Usage(why) => ExperimentError::Usage(why),
        other => ExperimentError::failed(other),
    })?;
    entry::run(ABOUT, &arguments.common, &mut family, context)
}
