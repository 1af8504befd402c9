//! The way from arguments to a result, the same for every family.

use super::arguments::Arguments;
use super::arm::Arm;
use super::cell::{Cell, Workload};
use super::error::PlatformError;
use super::explain::explain;
use super::family::{Family, Needs};
use super::placement::{Placement, cores};
use super::run::{self, Audience, Outcome, Plan};
use super::schema::{AaCount, CellResult, CellState, PlatformBench};
use super::shown::{Form, Shown};
use super::{beside, junit, lines, warnings};
use crate::experiment::{BenchResult, Context, ExperimentError, Listener, RunResult};
use crate::machine::Machine;
use crate::progress::Progress;
use jiff::Timestamp;
use std::path::PathBuf;
use std::time::Duration;
use untax_changes::{Lock, Tree, recover, temporary};
use untax_core::Bytes;
use untax_core::host::HostFacts;
use untax_core::verdict::LEAST_PAIRS;
use untax_host::Host;
use untax_trials::{Interrupt, Saved};

/// What a family is called.
#[derive(Debug, Clone, Copy)]
pub struct About {
    /// Its id, such as `runtime`.
    pub id: &'static str,
    /// The schema of its results.
    pub schema: &'static str,
    /// Whether it is measured on nodes of a cluster rather than on this machine.
    pub in_cluster: bool,
}

/// CPUs that other programs may use beside a trial: a tenth of one is what others of a quiet machine take in
/// bursts, and slows work that is pinned to that CPU by as much.
const MOST_OTHERS: f64 = 0.10;

/// What of a trial's length is left with `--quick`.
const QUICK: f64 = 0.5;

/// Runs the bench of a family.
pub fn run(
    about: About,
    arguments: &Arguments,
    family: &mut dyn Family,
    context: &mut Context,
) -> RunResult {
    let lock = Lock::to_bench(context.state).map_err(ExperimentError::failed)?;
    let left = recover(&temporary::folder(context.state), &Tree::live());
    for file in left.map_err(ExperimentError::failed)? {
        let note = format!("restored {file}: an earlier bench was killed together with its guard");
        context.listener.note(&note);
    }
    let interrupt = Interrupt::by_signals().map_err(ExperimentError::Signals)?;
    let facts = untax_host::facts::read_all(&Host::live());
    let setting = Setting { about, arguments, facts: &facts, run: context.run };
    let path = context.state.join(format!("bench-{}.trials.json", about.id));
    let bench = setting.bench(family, &interrupt, &path, context.listener);
    drop(lock);
    let bench = bench.map_err(|error| match error {
        PlatformError::Usage(what) => ExperimentError::Usage(what),
        other => ExperimentError::failed(other),
    })?;
    if let Some(path) = &arguments.junit {
        let written = std::fs::write(path, junit::xml(&bench));
        written.map_err(|source| {
            ExperimentError::failed(untax_trials::SavedError::Io { path: path.clone(), source })
        })?;
    }
    let form = match arguments.format.as_str() {
        _ if arguments.list => Form::List,
        "markdown" => Form::Markdown,
        _ => Form::Screen,
    };
    Ok(Box::new(Shown { bench, form }))
}

/// Reads a saved result.
pub fn read(saved: serde_json::Value) -> serde_json::Result<Box<dyn BenchResult>> {
    Ok(Box::new(Shown { bench: serde_json::from_value(saved)?, form: Form::Screen }))
}

/// All that a run stands on.
struct Setting<'a> {
    about: About,
    arguments: &'a Arguments,
    facts: &'a HostFacts,
    run: &'a str,
}

/// Everything that was asked for, and what of it can be measured.
struct Choice {
    arms: Vec<Arm>,
    /// All cells, those that cannot be measured with the reason.
    cells: Vec<(Cell, Option<String>)>,
}

impl Setting<'_> {
    fn bench(
        &self,
        family: &mut dyn Family,
        interrupt: &Interrupt,
        path: &PathBuf,
        listener: &mut dyn Listener,
    ) -> Result<PlatformBench, PlatformError> {
        let arguments = self.arguments;
        let choice = choose(arguments, family)?;
        let seed = Saved::seed(path).filter(|_| arguments.resume);
        let is_measured =
            |(cell, why): &(Cell, Option<String>)| why.is_none().then(|| cell.clone());
        let plan = Plan {
            arms: choice.arms.iter().filter(|arm| arm.cannot.is_none()).cloned().collect(),
            cells: choice.cells.iter().filter_map(is_measured).collect(),
            seed: seed.unwrap_or_else(|| arguments.drawn_seed()),
            budget: if arguments.list { Duration::ZERO } else { arguments.time() },
            most_blocks: arguments.blocks,
            most_others: (!arguments.beside).then_some(MOST_OTHERS),
        };
        let mut beside = Vec::new();
        if !arguments.list {
            self.refuse(&choice, &plan, family.needs())?;
            beside = beside::busy(&Host::live(), interrupt)?;
            if !beside.is_empty() && !arguments.beside {
                let names = beside.join(", ");
                let why = format!(
                    "busy databases run here, which this would disturb: {names}; stop them, or pass --beside"
                );
                return Err(PlatformError::Refused(why));
            }
        }
        if !arguments.resume && !arguments.list {
            match std::fs::remove_file(path) {
                Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                    return Err(untax_trials::SavedError::Io { path: path.clone(), source }.into());
                }
                _ => {}
            }
        }
        let assemble = |outcome: &Outcome, complete: bool| {
            self.assemble(&choice, &plan, &beside, outcome, complete)
        };
        let mut screen = Screen { listener, assemble: &assemble };
        let outcome = if arguments.list {
            Outcome::default()
        } else {
            run::run(&plan, family, interrupt, path, &mut screen)?
        };
        Ok(assemble(&outcome, !outcome.was_interrupted))
    }

    /// Refuses what cannot work before anything is started.
    fn refuse(&self, choice: &Choice, plan: &Plan, needs: Needs) -> Result<(), PlatformError> {
        let refused = |why: String| Err(PlatformError::Refused(why));
        if needs.root && !rustix::process::geteuid().is_root() {
            return refused(format!("bench {} needs root; run it with sudo", self.about.id));
        }
        if let Some(why) = choice.arms.first().and_then(|baseline| baseline.cannot.as_ref()) {
            return refused(format!("the baseline {} cannot run here: {why}", choice.arms[0].id));
        }
        if plan.cells.is_empty() {
            let reasons: Vec<String> = choice
                .cells
                .iter()
                .filter_map(|(cell, why)| Some(format!("{}: {}", cell.name(), why.as_ref()?)))
                .collect();
            return refused(format!("nothing can be measured here: {}", reasons.join("; ")));
        }
        let available = self.facts.memory.value().and_then(|memory| memory.available_bytes.value());
        if let Some(available) = available.filter(|available| **available < needs.memory) {
            return Err(PlatformError::Memory { need: needs.memory, available: *available });
        }
        let directory = std::env::temp_dir();
        if let Ok(free) = rustix::fs::statvfs(&directory) {
            let available = Bytes(free.f_bavail * free.f_frsize);
            if available < needs.disk {
                return Err(PlatformError::Disk { need: needs.disk, available, directory });
            }
        }
        Ok(())
    }

    fn assemble(
        &self,
        choice: &Choice,
        plan: &Plan,
        beside: &[String],
        outcome: &Outcome,
        complete: bool,
    ) -> PlatformBench {
        let tally = outcome.tally(plan);
        let of_nodes = || "that of the nodes".to_owned();
        let machine = if self.about.in_cluster {
            Machine { cpu_model: of_nodes(), kernel_release: of_nodes(), idle: of_nodes() }
        } else {
            Machine::of(self.facts)
        };
        let mut measured = 0..plan.cells.len();
        let cell = |(cell, why): &(Cell, Option<String>)| match why {
            None => measured.next().map(|place| tally.cell(place)),
            Some(why) => Some(unmeasured(cell, plan, why)),
        };
        let mut cells: Vec<CellResult> = choice.cells.iter().filter_map(cell).collect();
        explain(&mut cells);
        let aa = aa(&cells);
        let baseline = choice.arms.first().map(|arm| arm.id.clone()).unwrap_or_default();
        let guards = self.arguments.fail_if.iter().flat_map(|guard| guard.judge(&tally));
        PlatformBench {
            schema: self.about.schema.to_owned(),
            run: self.run.to_owned(),
            taken_at: Timestamp::now(),
            in_cluster: self.about.in_cluster,
            cpu_model: machine.cpu_model,
            kernel_release: machine.kernel_release,
            idle: machine.idle,
            seed: plan.seed,
            budget_s: plan.budget.as_secs_f64(),
            spent_s: outcome
                .trials
                .iter()
                .map(|trial| trial.took_s)
                .fold(0.0, |sum, took| sum + took),
            beside: beside.to_vec(),
            baseline,
            arms: choice.arms.clone(),
            guards: if self.arguments.list { Vec::new() } else { guards.collect() },
            warnings: if self.arguments.list { Vec::new() } else { warnings::of(&cells, aa) },
            lines: lines::of(&choice.arms, &cells),
            cells,
            aa,
            complete,
        }
    }
}

/// A cell that cannot be measured here.
fn unmeasured(cell: &Cell, plan: &Plan, why: &str) -> CellResult {
    let outcome = Outcome::default();
    let one = Plan {
        arms: plan.arms.clone(),
        cells: vec![cell.clone()],
        ..Plan { arms: Vec::new(), cells: Vec::new(), ..*plan }
    };
    let why = Some(why.to_owned());
    CellResult { state: CellState::Failed, why, ..outcome.tally(&one).cell(0) }
}

/// Cells in which the baseline seems to differ from itself.
fn aa(cells: &[CellResult]) -> AaCount {
    let told = cells.iter().filter(|cell| !cell.explains);
    let told = told.filter_map(|cell| Some((cell.noise.as_ref()?.ratios.len(), cell.aa?)));
    let told = told.filter(|(pairs, _)| *pairs >= LEAST_PAIRS as usize);
    let differ = told.clone().filter(|(_, aa)| aa.low > 1.0 || aa.high < 1.0).count();
    AaCount { differ: differ as u32, cells: told.count() as u32 }
}

/// What is asked for, of all that the family has.
fn choose(arguments: &Arguments, family: &mut dyn Family) -> Result<Choice, PlatformError> {
    let (arms, workloads) = (family.arms(), family.workloads());
    let known: Vec<&str> = arms.iter().map(|arm| arm.id.as_str()).collect();
    let asked = arguments.fail_if.iter().flat_map(|guard| guard.names().0);
    let asked = asked.chain(arguments.arms.iter().map(String::as_str));
    for id in asked {
        refuse_unknown("arm", id, &known)?;
    }
    let is_meant = |(place, arm): &(usize, Arm)| {
        *place == 0 || arguments.arms.is_empty() || arguments.arms.contains(&arm.id)
    };
    let arms = arms.into_iter().enumerate().filter(is_meant).map(|(_, arm)| arm).collect();
    let known: Vec<&str> = workloads.iter().map(|work| work.id.as_str()).collect();
    let asked = arguments.fail_if.iter().filter_map(|guard| guard.names().1);
    let asked = asked.chain(arguments.workloads.iter().map(String::as_str));
    for id in asked.filter(|id| *id != "all") {
        refuse_unknown("workload", id, &known)?;
    }
    let workloads = workloads.into_iter().filter(|work| is_asked(arguments, work));
    let cores = cores(&Host::live());
    let mut cells = Vec::new();
    for workload in workloads {
        let placements: Vec<Placement> = match arguments.pin.as_slice() {
            [] => workload.placements.clone(),
            asked => asked.to_vec(),
        };
        for placement in placements {
            let (cpus, lacking) = match placement.cpus(&cores) {
                Ok(cpus) => (cpus, None),
                Err(why) => (super::Cpus::default(), Some(why)),
            };
            let why = workload.cannot.clone().or(lacking);
            let workload = timed(arguments, workload.clone());
            cells.push((Cell { workload, placement, cpus }, why));
        }
    }
    Ok(Choice { arms, cells })
}

fn refuse_unknown(what: &str, id: &str, known: &[&str]) -> Result<(), PlatformError> {
    if known.contains(&id) {
        return Ok(());
    }
    Err(PlatformError::Usage(format!("there is no {what} '{id}'; there are {}", known.join(", "))))
}

fn is_asked(arguments: &Arguments, work: &Workload) -> bool {
    let asked = &arguments.workloads;
    if asked.is_empty() && !arguments.list {
        return if arguments.quick { work.is_quick } else { work.is_usual };
    }
    asked.is_empty() || asked.iter().any(|id| id == "all" || *id == work.id)
}

/// The same work, with trials as long as is asked for.
fn timed(arguments: &Arguments, work: Workload) -> Workload {
    let usual = if arguments.quick { work.trial.mul_f64(QUICK) } else { work.trial };
    Workload { trial: arguments.trial.unwrap_or(usual), ..work }
}

/// Hands progress and results so far to the command line.
struct Screen<'a> {
    listener: &'a mut dyn Listener,
    assemble: &'a dyn Fn(&Outcome, bool) -> PlatformBench,
}

impl Audience for Screen<'_> {
    fn progress(&mut self, progress: &Progress) {
        self.listener.progress(progress);
    }

    fn block(&mut self, outcome: &Outcome) {
        let bench = (self.assemble)(outcome, false);
        self.listener.partial(&Shown { bench, form: Form::Screen });
    }
}

#[cfg(test)]
#[path = "entry_tests.rs"]
mod tests;
