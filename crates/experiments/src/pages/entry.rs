//! The entry of `bench pages` in the list of experiments.

use super::arguments::Arguments;
use super::engine::Servers;
use super::error::BenchError;
use super::job;
use super::plan::Refusal;
use super::schema::{PagesBench, SCHEMA};
use super::{html, run as bench_run, terminal, warnings};
use crate::bench::Bench;
use crate::calibrate;
use crate::experiment::{
    BenchResult, Context, Ending, Experiment, ExperimentError, Listener, RunResult,
};
use crate::machine::{Machine, own_cgroup};
use crate::platform::{self, About, PlatformError};
use crate::progress::{Observer, Progress};
use clap::{ArgMatches, CommandFactory, FromArgMatches};
use untax_changes::{Lock, Program, Tree, recover, temporary};
use untax_host::Host;
use untax_report::html::part::Part;
use untax_report::terminal::Style;
use untax_trials::Interrupt;

/// `untax bench pages`.
pub const EXPERIMENT: Experiment = Experiment {
    id: "pages",
    summary: "what page size is worth on this machine: reads by key over shared memory",
    privilege: "root, to reserve huge pages; without root only pages that are free already",
    // memfd_create with MFD_HUGETLB and sealing of huge pages.
    minimum_kernel: "4.16",
    cost: "memory for the tables (by default up to a quarter of what is available for each page \
           size) and as many CPUs as there are connections",
    schema: SCHEMA,
    warnings: warnings::KINDS,
    command: Arguments::command,
    children: &[job::READ_PAGES],
    run,
    read,
};

/// Results of `--engine`, which have another form.
pub const SERVERS: About =
    About { id: "pages-engine", schema: "untax.bench.pages-engine/1", in_cluster: false };

fn read(saved: serde_json::Value) -> serde_json::Result<Box<dyn BenchResult>> {
    if saved["schema"] == SERVERS.schema {
        return platform::entry::read(saved);
    }
    Ok(Box::new(serde_json::from_value::<PagesBench>(saved)?))
}

fn run(matches: &ArgMatches, context: &mut Context) -> RunResult {
    let arguments = Arguments::from_arg_matches(matches).map_err(ExperimentError::failed)?;
    if let Some((request, common)) = arguments.servers() {
        let mut servers = Servers::new(request).map_err(|error| match error {
            PlatformError::Usage(why) => ExperimentError::Usage(why),
            other => ExperimentError::failed(other),
        })?;
        return platform::entry::run(SERVERS, &common, &mut servers, context);
    }
    let lock = Lock::to_bench(context.state).map_err(ExperimentError::failed)?;
    let left = recover(&temporary::folder(context.state), &Tree::live());
    for file in left.map_err(ExperimentError::failed)? {
        let note = format!("restored {file}: an earlier bench was killed together with its guard");
        context.listener.note(&note);
    }
    let interrupt = Interrupt::by_signals().map_err(ExperimentError::Signals)?;
    let facts = untax_host::facts::read_all(&Host::live());
    let cgroup = own_cgroup(&facts);
    let bench = Bench {
        program: &Program::this(),
        tree: &Tree::live(),
        state: context.state,
        lock: &lock,
        machine: &Machine::of(&facts),
        cgroup: cgroup.as_ref(),
        run: context.run,
        calibration: Some(calibrate::FULL),
        interrupt,
    };
    let mut observer = ToListener(context.listener);
    let result = bench_run::run(&arguments.request(), &bench, &mut observer).map_err(refusal)?;
    if let Some(calibration) = result.calibration.as_ref().filter(|_| result.complete) {
        context.listener.calibrated(calibration);
    }
    Ok(Box::new(result))
}

/// A request that makes no sense is bad usage.
fn refusal(error: BenchError) -> ExperimentError {
    match error {
        BenchError::Refused(Refusal::Senseless(what)) => ExperimentError::Usage(what.to_owned()),
        other => ExperimentError::failed(other),
    }
}

impl BenchResult for PagesBench {
    fn json(&self) -> serde_json::Result<String> {
        serde_json::to_string_pretty(self)
    }

    fn terminal(&self, style: Style) -> String {
        terminal::screen(self, style)
    }

    fn html(&self) -> Part {
        html::part(self)
    }

    fn ending(&self) -> Ending {
        if self.complete { Ending::Clean } else { Ending::Interrupted }
    }
}

/// Hands progress and partial results on to the command line.
struct ToListener<'a>(&'a mut dyn Listener);

impl Observer<PagesBench> for ToListener<'_> {
    fn progress(&mut self, progress: &Progress) {
        self.0.progress(progress);
    }

    fn partial(&mut self, result: &PagesBench) {
        self.0.partial(result);
    }
}
