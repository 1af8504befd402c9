//! `untax verify`.

pub mod guard;
mod passive;
mod workload;

use super::{apply, plan};
use crate::observe::duration;
use crate::screen::{print, print_json, say, style, write_file};
use crate::state::State;
use crate::{Outcome, Usage};
use anyhow::{Context, bail};
use guard::{Duty, Guard};
use jiff::Timestamp;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use untax_core::plan::{Effect, Plan};
use untax_core::power::{self, power};
use untax_core::receipt::Status;
use untax_core::verdict::{SCHEMA, Trial, Verification, Word, judge};
use untax_core::{Check, Gain};
use untax_remedies::executor::Standing;
use untax_remedies::verify::{Arms, Budget, verify};
use untax_remedies::workload::Rate;
use untax_remedies::{Receipt, Tree, executor};
use untax_report::{html, terminal};
use workload::Measured;

/// Arguments of `untax verify`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "The rate of a workload is what pgbench, sysbench or redis-benchmark print, or a \
                  number on its last line; else how often it could run in a second.\n\n\
                  With --restart the database is restarted each time the plan is applied or \
                  undone: about five times in four pairs, which makes 20 times (24 at most) in \
                  15 pairs, and 10 times where the first 8 pairs agree and end it. A pair is two \
                  trials, each with its warm-up: 15 pairs with a workload of 10s take 10 \
                  minutes, and what the restarts take. A workload that is known by name keeps \
                  the server busy, and pgbench and sysbench make a database of 256 MiB there and \
                  drop it. The place for all this is a replica, or a maintenance window.\n\n\
                  Exit codes: 0 proven, 1 disproven or inconclusive, 2 could not do it, \
                  3 bad usage.\n\n\
                  Examples:\n  \
                  untax verify fix/ --workload 'pgbench -S -c 16 -T 20 bench' \\\n    \
                  --restart 'systemctl restart postgresql'\n  \
                  untax verify plan-20260101T101500000Z --passive 60s   under traffic that is there anyway\n  \
                  untax verify fix/ --workload 'pgbench -c 300 bench' \\\n    \
                  --workload-applied 'pgbench -c 300 -p 6432 bench'   a pooler, which no step sets"
)]
pub struct Args {
    /// The plan: its id, its file, or the directory that it was written to
    #[arg(value_name = "PLAN")]
    plan: String,
    /// The shell command to run in each trial; or pgbench, sysbench or redis-benchmark alone, to
    /// have it run on the database of the plan, on data of its own
    #[arg(long, value_name = "CMD", required_unless_present = "passive")]
    pub workload: Option<String>,
    /// The shell command for trials with the plan, where it is another one: through a pooler, say
    #[arg(long, value_name = "CMD", requires = "workload")]
    pub workload_applied: Option<String>,
    /// Length of a trial of a workload that is known by name
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration)]
    pub trial: Duration,
    /// Connections of a workload that is known by name [default: 4 for each CPU]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub clients: Option<u32>,
    /// Run no workload: in each trial, measure for this long what the databases of the plan serve
    /// anyway, in accesses to cached data a second; tells something only where the database is
    /// saturated. The plan is applied and undone by turns all the same
    #[arg(long, value_name = "TIME", conflicts_with = "workload", value_parser = duration)]
    pub passive: Option<Duration>,
    /// The shell command that restarts the database, for plans that need it; it must not
    /// return before the database serves, and is run about five times in four pairs
    #[arg(long, value_name = "CMD")]
    restart: Option<String>,
    /// Runs of the workload after each change that are not counted
    #[arg(long, value_name = "N", default_value_t = 1)]
    warm_up: u32,
    /// The most pairs of trials
    #[arg(long, value_name = "N", default_value_t = 15, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pairs: u32,
    /// Begin no new pair after this time
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = duration)]
    budget: Duration,
    /// Also write the result as a self-contained web page
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(args: &Args, state: &State) -> anyhow::Result<Outcome> {
    let plan = plan::load(&args.plan, state)?;
    apply::accept(&plan)?;
    if plan.steps.is_empty() && args.workload_applied.is_none() {
        bail!(
            "plan {} has no step that untax could apply: when you have done what it leaves to \
             you, --workload-applied says how to reach what it changed",
            plan.plan
        );
    }
    let restart = plan.steps.iter().any(|step| step.effect == Effect::Restart);
    if restart && args.restart.is_none() {
        let text = "this plan takes effect when the database is restarted: say how with --restart";
        return Err(Usage(text.to_owned()).into());
    }
    let stop = Arc::new(AtomicBool::new(false));
    for signal in signal_hook::consts::TERM_SIGNALS {
        signal_hook::flag::register(*signal, Arc::clone(&stop))?;
    }
    let receipt = in_force(&plan, state)?;
    let standing = receipt.is_some();
    let measured = Measured::choose(args, &plan)?;
    let duty = Duty {
        state: state.directory()?.to_owned(),
        plan: plan.clone(),
        standing,
        restart: args.restart.clone(),
        clean: measured.clean_command().to_owned(),
    };
    let guard = Guard::post(&duty)?;
    let mut host = Host {
        args,
        plan: &plan,
        state,
        stop,
        standing,
        applied: Some(standing),
        receipt,
        stuck: false,
        measured: &measured,
        measure: "",
        guard,
    };
    let budget = Budget { pairs: args.pairs, time: args.budget };
    let made = measured.prepare().and_then(|()| {
        verify(&mut host, budget, fastrand::u64(..), |trials| tell(trials, args.pairs))
    });
    // In whatever way it ended, and also when that was an interruption.
    host.stop = Arc::default();
    let left = host.set(standing);
    let cleaned = measured.clean();
    // The guard tries once more where that was not so.
    if left.is_ok() && !host.stuck {
        host.guard.done();
    }
    left?;
    let trials = made?;
    cleaned?;
    let receipt = host.receipt.as_ref().map(|receipt| receipt.id().to_owned());
    report(args, state, &plan, trials, host.measure, receipt)
}

/// Judges the trials; keeps and shows what came out.
fn report(
    args: &Args,
    state: &State,
    plan: &Plan,
    trials: Vec<Trial>,
    measure: &str,
    receipt: Option<String>,
) -> anyhow::Result<Outcome> {
    let verdict = judge(&trials).context("not one pair of trials was made")?;
    let run = State::new_run("verify");
    let result = Verification {
        schema: SCHEMA.to_owned(),
        run: run.clone(),
        plan: plan.plan.clone(),
        taken_at: Timestamp::now(),
        measure: measure.to_owned(),
        power: power(&trials, power::FACTOR),
        receipt,
        trials,
        predicted: predicted(plan, state),
        verdict,
    };
    let saved = state.save_run(&run, &result);
    let page = args.html.as_ref();
    let page = page.map_or(Ok(()), |path| write_file(path, &html::verification(&result)));
    if args.json {
        print_json(&result)?;
    } else {
        print(&terminal::verification(&result, style()))?;
    }
    // Last, so that a full disk does not cost the user the result.
    saved?;
    page?;
    Ok(if verdict.word == Word::Proven { Outcome::Clean } else { Outcome::Findings })
}

/// The receipts of a plan that are not undone, the oldest first.
fn not_undone(plan: &Plan, state: &State) -> anyhow::Result<Vec<Receipt>> {
    let (mut receipts, _) = Receipt::all(&state.receipts()?);
    receipts.retain(|r| r.header().plan == plan.plan && r.status() != Status::Reverted);
    Ok(receipts)
}

/// The receipt of a plan that is applied.
fn in_force(plan: &Plan, state: &State) -> anyhow::Result<Option<Receipt>> {
    let mut receipts = not_undone(plan, state)?;
    if let Some(half) = receipts.iter().find(|receipt| receipt.status() == Status::Interrupted) {
        let (plan, id) = (&plan.plan, half.id());
        bail!("plan {plan} is applied half way: put that back first, with untax undo {id}");
    }
    let receipt = receipts.pop();
    let mut standing = executor::standing(&Tree::live(), &plan.steps).into_iter();
    if receipt.is_none() && !plan.steps.is_empty() && standing.all(|s| s == Standing::Done) {
        bail!(
            "this host is as plan {} makes it, and no receipt tells what was before: there is \
             nothing to compare it with",
            plan.plan
        );
    }
    Ok(receipt)
}

fn tell(trials: &[Trial], pairs: u32) {
    let Some(last) = trials.last() else { return };
    let arm = if last.applied { "with the plan   " } else { "without the plan" };
    say(&format!("pair {} of at most {pairs}, {arm}: {:.1}", last.pair + 1, last.rate));
}

/// What the check predicted for the findings that the plan answers: the largest, as removing one
/// cause often removes a part of another.
fn predicted(plan: &Plan, state: &State) -> Option<Gain> {
    let saved: super::check::Saved = state.load_run(&plan.snapshot.run).ok()?;
    let Check { databases, .. } = saved.check;
    let answers = |remedy: &Option<String>| {
        let id = remedy.as_deref().unwrap_or_default();
        untax_remedies::REMEDIES.iter().any(|known| {
            known.answers.contains(&id) && plan.steps.iter().any(|step| step.remedy == known.id)
        })
    };
    let findings = databases.into_iter().flat_map(|database| database.findings);
    let gains = findings.filter(|finding| answers(&finding.remedy)).filter_map(|f| f.gain);
    gains.max_by(|a, b| a.factor.total_cmp(&b.factor))
}

/// This host, with and without a plan.
struct Host<'a> {
    args: &'a Args,
    plan: &'a Plan,
    state: &'a State,
    stop: Arc<AtomicBool>,
    /// Whether the plan was applied before, and is to be afterwards.
    standing: bool,
    /// Whether it is now; `None` while an undo that was begun is not whole.
    applied: Option<bool>,
    /// Of the plan, while it has steps and its undo was not whole.
    receipt: Option<Receipt>,
    /// Whether steps of a plan that failed could not be undone: its guard tries that once more.
    stuck: bool,
    measured: &'a Measured,
    measure: &'static str,
    /// Knows whether the host is as it was.
    guard: Guard,
}

impl Arms for Host<'_> {
    type Error = anyhow::Error;

    fn set(&mut self, applied: bool) -> anyhow::Result<()> {
        if self.applied == Some(applied) {
            return Ok(());
        }
        if applied != self.standing {
            self.guard.changing()?;
        }
        if let Some(receipt) = &mut self.receipt {
            self.applied = None;
            undo(receipt)?;
            self.receipt = None;
        }
        if applied && !self.plan.steps.is_empty() {
            let temporary = !self.standing;
            let made = apply::execute(self.plan, self.state, &self.stop, temporary, |_| {});
            self.stuck =
                made.is_err() && not_undone(self.plan, self.state).is_ok_and(|r| !r.is_empty());
            self.receipt = Some(made?);
        }
        self.applied = Some(applied);
        restart(self.args.restart.as_deref())?;
        if applied == self.standing {
            self.guard.as_before();
        }
        Ok(())
    }

    fn rate(&mut self) -> anyhow::Result<f64> {
        if self.args.passive.is_none() {
            for _ in 0..self.args.warm_up {
                self.trial()?;
            }
        }
        let rate = self.trial()?;
        if !self.measure.is_empty() && self.measure != rate.measure {
            bail!(
                "one trial gave {} and another {}, which cannot be compared: let the workload \
                 print its rate every time",
                self.measure,
                rate.measure
            );
        }
        self.measure = rate.measure;
        Ok(rate.per_s)
    }
}

impl Host<'_> {
    fn trial(&self) -> anyhow::Result<Rate> {
        if self.stop.load(Ordering::Relaxed) {
            bail!("interrupted; the host is as before");
        }
        self.measured.rate(self.applied == Some(true), &self.stop)
    }
}

/// Undoes a receipt, wholly.
fn undo(receipt: &mut Receipt) -> anyhow::Result<()> {
    let undone = executor::undo(&Tree::live(), receipt, false)?;
    if !undone.is_whole() {
        bail!(
            "the plan could not be undone wholly: {}; untax undo {} tries again",
            undone.left(),
            receipt.id()
        );
    }
    Ok(())
}

fn restart(command: Option<&str>) -> anyhow::Result<()> {
    command.map_or(Ok(()), |command| {
        shell(command).map(drop).context("the database was not restarted")
    })
}

fn shell(command: &str) -> anyhow::Result<String> {
    let mut shell = Command::new("sh");
    let output = shell.args(["-c", command]).stdin(Stdio::null()).output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{command} ended with {}: {}", output.status, said.trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
