//! The entry of `bench locality` in the list of experiments.

use super::arguments::Arguments;
use super::error::LocalityError;
use super::run::{Outcome, Request, run as run_experiment};
use super::schema::{LocalityBench, SCHEMA};
use super::{html, server, terminal};
use crate::experiment::{BenchResult, Context, Ending, Experiment, ExperimentError, RunResult};
use crate::machine::Machine;
use crate::platform::beside;
use clap::{ArgMatches, CommandFactory, FromArgMatches};
use jiff::Timestamp;
use std::path::Path;
use untax_changes::{Lock, Tree, recover, temporary};
use untax_core::Bytes;
use untax_core::bench::{Warning, WarningKind};
use untax_core::host::HostFacts;
use untax_host::Host;
use untax_report::html::part::Part;
use untax_report::terminal::Style;
use untax_scenes::{Filesystem, Postgres};
use untax_trials::Interrupt;

/// `untax bench locality`.
pub const EXPERIMENT: Experiment = Experiment {
    id: "locality",
    summary: "whether untax timeline finds and names changes that are made on purpose: a CPU limit, data that moves to \
              a faster disk",
    privilege: "root, to mount two scratch disks and to limit a server",
    minimum_kernel: "4.10",
    cost: "up to 0.8 of what the CPUs and the disk allow a PostgreSQL, by default for 8 minutes; 1 GiB of disk below \
           TMPDIR, 200 MiB of memory",
    schema: SCHEMA,
    warnings: KINDS,
    command: Arguments::command,
    children: &[],
    run,
    read,
};

const BESIDE: WarningKind = WarningKind {
    id: "beside-databases",
    meaning: "busy databases ran beside the bench, and may have changed its throughput",
    action: "stop them, and run it again without --beside",
};

const MISSING: WarningKind = WarningKind {
    id: "windows-missing",
    meaning: "some windows were not recorded",
    action: "see the reason in the text; run it again on a machine with less to do",
};

const KINDS: &[WarningKind] = &[BESIDE, MISSING];

/// The file of the recording in the state directory.
const RECORDING: &str = "bench-locality.untax";

fn read(saved: serde_json::Value) -> serde_json::Result<Box<dyn BenchResult>> {
    Ok(Box::new(serde_json::from_value::<LocalityBench>(saved)?))
}

fn run(matches: &ArgMatches, context: &mut Context) -> RunResult {
    let arguments = Arguments::from_arg_matches(matches).map_err(ExperimentError::failed)?;
    let lock = Lock::to_bench(context.state).map_err(ExperimentError::failed)?;
    let left = recover(&temporary::folder(context.state), &Tree::live());
    for file in left.map_err(ExperimentError::failed)? {
        let note = format!("restored {file}: an earlier bench was killed together with its guard");
        context.listener.note(&note);
    }
    let interrupt = Interrupt::by_signals().map_err(ExperimentError::Signals)?;
    let bench = bench(&arguments, context, &interrupt).map_err(ExperimentError::failed);
    drop(lock);
    Ok(Box::new(bench?))
}

fn bench(
    arguments: &Arguments,
    context: &mut Context,
    interrupt: &Interrupt,
) -> Result<LocalityBench, LocalityError> {
    let facts = untax_host::facts::read_all(&Host::live());
    let (base, recording) = (std::env::temp_dir(), context.state.join(RECORDING));
    refuse(&facts, &base)?;
    let beside = beside::busy(&Host::live(), interrupt)?;
    if !beside.is_empty() && !arguments.beside {
        let names = beside.join(", ");
        let why = format!(
            "busy databases run here, which would change what is measured: {names}; stop them, or pass --beside"
        );
        return Err(LocalityError::Refused(why));
    }
    let budget = arguments.time();
    let request = Request { budget, base: &base, recording: &recording };
    let outcome = run_experiment(&request, interrupt, context.listener)?;
    let machine = Machine::of(&facts);
    let warnings = warnings(&beside, &outcome.missing);
    let Outcome { scene, schedule, steps, others, timeline, complete, .. } = outcome;
    let mut bench = LocalityBench {
        schema: SCHEMA.to_owned(),
        run: context.run.to_owned(),
        taken_at: Timestamp::now(),
        cpu_model: machine.cpu_model,
        kernel_release: machine.kernel_release,
        idle: machine.idle,
        budget_s: budget.as_secs_f64(),
        window_s: schedule.window.as_secs_f64(),
        level_s: schedule.level.as_secs_f64(),
        scene,
        steps,
        others,
        guards: Vec::new(),
        warnings,
        recording: recording.display().to_string(),
        timeline,
        complete,
    };
    bench.guards = arguments.fail_if.iter().map(|guard| guard.judge(&bench)).collect();
    Ok(bench)
}

/// Refuses what cannot work before anything is started.
fn refuse(facts: &HostFacts, base: &Path) -> Result<(), LocalityError> {
    let refused = |why: String| Err(LocalityError::Refused(why));
    if !rustix::process::geteuid().is_root() {
        return refused("bench locality needs root; run it with sudo".to_owned());
    }
    Postgres::find()?;
    if let Some(why) = Filesystem::Ext4.obstacle(base) {
        return refused(why);
    }
    if let Ok(free) = rustix::fs::statvfs(base) {
        let available = Bytes(free.f_bavail * free.f_frsize);
        if available < server::DISK {
            let (need, base) = (server::DISK, base.display());
            return refused(format!(
                "this bench needs {need} below {base}, and {available} are free; free some, or set TMPDIR"
            ));
        }
    }
    let available = facts.memory.value().and_then(|memory| memory.available_bytes.value());
    match available.filter(|available| **available < MEMORY) {
        Some(available) => refused(format!(
            "this bench needs {MEMORY} of memory, and {available} are available; free some"
        )),
        None => Ok(()),
    }
}

/// The server, its tables while they are made, and this program.
const MEMORY: Bytes = Bytes::from_mib(400);

fn warnings(beside: &[String], missing: &[String]) -> Vec<Warning> {
    let warning = |kind: WarningKind, text: String| Warning { id: kind.id.to_owned(), text };
    let beside = (!beside.is_empty()).then(|| {
        warning(BESIDE, format!("busy databases ran beside this bench: {}", beside.join(", ")))
    });
    let missing = missing.iter().map(|why| warning(MISSING, format!("a window is missing: {why}")));
    beside.into_iter().chain(missing).collect()
}

impl BenchResult for LocalityBench {
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
        if !self.complete {
            Ending::Interrupted
        } else if self.guards.iter().any(|guard| guard.failed) {
            Ending::GuardFailed
        } else {
            Ending::Clean
        }
    }
}
