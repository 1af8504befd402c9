//! `untax verify`.

mod host;
mod passive;
mod workload;

use super::{apply, plan};
use crate::duration::duration;
use crate::screen::{print, print_json, say, style, write_file};
use crate::state::State;
use crate::{Outcome, Usage};
use anyhow::{Context, anyhow, bail};
use host::{Host, Tried};
use jiff::Timestamp;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;
use untax_changes::guard::Duty;
use untax_changes::{Guard, Program, Tree};
use untax_core::plan::{Effect, Plan};
use untax_core::power::{self, power};
use untax_core::verdict::{self, SCHEMA, Verification, Word, judge};
use untax_core::{Check, Gain};
use untax_remedies::workloads::Workload;
use untax_report::{format, html, terminal};
use untax_trials::{
    Arm, Cell, Design, Interrupt, Interrupted, Observer, Runner, Trial, is_unanimous, judged,
};
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
    suits(args, &plan)?;
    let stop = Arc::default();
    for signal in signal_hook::consts::TERM_SIGNALS {
        signal_hook::flag::register(*signal, Arc::clone(&stop))?;
    }
    let tried = Tried::of(&plan, state)?;
    let standing = tried.is_standing();
    let measured = Measured::choose(args, &plan)?;
    let duty = Duty {
        root: Tree::live().root().to_owned(),
        receipts: state.receipts()?,
        plan: plan.plan.clone(),
        again: if standing { tried.plan.steps.clone() } else { Vec::new() },
        restart: args.restart.clone(),
        clean: Some(measured.clean_command().to_owned()).filter(|command| !command.is_empty()),
    };
    let guard = Guard::start(&Program::this(), &duty, None)?;
    let mut host = Host::new(args, state, stop, tried, &measured, guard);
    let design = design(args);
    let made = measured.prepare().and_then(|()| trials(args, &design, &mut host));
    let cleaned = measured.clean();
    // The guard tries once more where that was not so.
    if host.applied == Some(standing) && !host.stuck {
        host.guard.done();
    }
    let trials = made?;
    cleaned?;
    let receipt = host.tried.receipts.last().map(|receipt| receipt.id().to_owned());
    report(args, state, &plan, Made { trials, seed: design.seed }, host.measure, receipt)
}

/// The arms in the design of every verification.
const ARMS: [&str; 2] = ["without the plan", "with the plan"];

/// The place among them of the one with the plan.
const WITH: usize = 1;

/// The host without the plan and with it, under one workload.
fn design(args: &Args) -> Design {
    let known = args.workload.as_deref().and_then(Workload::find).map(|_| args.trial);
    let length = args.passive.or(known.map(|trial| trial * (1 + args.warm_up)));
    let cell = Cell { name: "workload".to_owned(), length };
    Design::of_visits(fastrand::u64(..), ARMS.map(Arm::new).to_vec(), vec![cell], args.pairs)
}

/// Makes the trials; the host is as before when this returns, if that can be.
fn trials(args: &Args, design: &Design, host: &mut Host) -> anyhow::Result<Vec<verdict::Trial>> {
    let interrupt = Interrupt::from(Arc::clone(&host.stop));
    let live = untax_host::Host::live();
    let runner = Runner::new(design, &interrupt, &live).within(args.budget);
    let made = runner.run(host, Vec::new(), &mut Screen { pairs: args.pairs });
    let made = made.map_err(|error| match error.downcast_ref::<Interrupted>() {
        Some(_) => anyhow!("interrupted; the host is as before"),
        None => error,
    });
    Ok(judged(&made?, WITH, |rate| *rate))
}

/// The trials, and what their order was drawn from.
struct Made {
    trials: Vec<verdict::Trial>,
    seed: u64,
}

/// Refuses a plan of which trials would show nothing, and one for which the database must be
/// restarted when nobody said how. Says what trials do not show.
fn suits(args: &Args, plan: &Plan) -> anyhow::Result<()> {
    let id = &plan.plan;
    if plan.steps.is_empty() && args.workload_applied.is_none() {
        bail!(
            "plan {id} has no step that untax could apply: when you have done what it leaves to \
             you, --workload-applied says how to reach what it changed"
        );
    }
    let at_boot = plan.steps.iter().filter(|step| step.effect == Effect::Reboot);
    let at_boot: Vec<&str> = at_boot.map(|step| step.id.as_str()).collect();
    if at_boot.len() == plan.steps.len() && args.workload_applied.is_none() {
        bail!(
            "plan {id} takes effect when the machine is booted, so trials would compare the host \
             with itself: check under load, apply the plan, reboot, check under the same load, \
             and let untax compare tell both checks apart"
        );
    }
    if !at_boot.is_empty() {
        let steps = at_boot.join(", ");
        say(&format!("no part of the trials, because only a boot makes it effective: {steps}"));
    }
    let restart = plan.steps.iter().any(|step| step.effect == Effect::Restart);
    if restart && args.restart.is_none() {
        let text = "this plan takes effect when the database is restarted: say how with --restart";
        return Err(Usage(text.to_owned()).into());
    }
    Ok(())
}

/// Judges the trials; keeps and shows what came out.
fn report(
    args: &Args,
    state: &State,
    plan: &Plan,
    Made { trials, seed }: Made,
    measure: &str,
    receipt: Option<String>,
) -> anyhow::Result<Outcome> {
    let verdict = judge(&trials).with_context(|| no_pair(&trials))?;
    let run = State::new_run("verify");
    let result = Verification {
        schema: SCHEMA.to_owned(),
        run: run.clone(),
        plan: plan.plan.clone(),
        taken_at: Timestamp::now(),
        measure: measure.to_owned(),
        power: power(&trials, power::FACTOR),
        receipt,
        seed: Some(seed),
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

/// Why there is no verdict.
fn no_pair(trials: &[verdict::Trial]) -> String {
    match trials.iter().find(|trial| !trial.counts()) {
        Some(trial) => {
            let reasons = format::guards(&trial.spoiled);
            format!("no pair of trials counts, because trials were spoiled: {reasons}")
        }
        None => "not one pair of trials was made".to_owned(),
    }
}

/// Says what each trial gave, and ends the trials early when all pairs agree.
struct Screen {
    pairs: u32,
}

impl Observer<f64, anyhow::Error> for Screen {
    fn trial(&mut self, trials: &[Trial<f64>]) -> anyhow::Result<()> {
        let Some(last) = trials.last() else { return Ok(()) };
        let (pair, pairs, arm) = (last.slot.block + 1, self.pairs, ARMS[last.slot.arm]);
        let mut line = format!("pair {pair} of at most {pairs}, {arm:16}: {:.1}", last.outcome);
        if !last.counts() {
            let spoiled: Vec<_> = last.spoiled().cloned().collect();
            line += &format!(" (does not count: {})", format::guards(&spoiled));
        }
        say(&line);
        Ok(())
    }

    fn is_decided(&mut self, trials: &[Trial<f64>]) -> bool {
        is_unanimous(&judged(trials, WITH, |rate| *rate))
    }
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

fn shell(command: &str) -> anyhow::Result<String> {
    let mut shell = Command::new("sh");
    let output = shell.args(["-c", command]).stdin(Stdio::null()).output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{command} ended with {}: {}", output.status, said.trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::apply::tests::{makes, plan_of};
    use std::path::Path;

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
            warm_up: 0,
            pairs: 1,
            budget: Duration::MAX,
            html: None,
            json: false,
        }
    }

    #[test]
    fn a_plan_for_the_next_boot_is_no_plan_for_trials() {
        let with = |effects: &[Effect]| {
            plan_of(effects.iter().map(|effect| makes(Path::new("/x"), *effect)).collect())
        };
        let refused = suits(&args("true"), &with(&[Effect::Reboot])).unwrap_err().to_string();
        assert!(refused.contains("untax compare"), "{refused}");
        suits(&args("true"), &with(&[Effect::Reboot, Effect::Now])).unwrap();
        let unsaid = suits(&args("true"), &with(&[Effect::Reboot, Effect::Restart])).unwrap_err();
        assert!(unsaid.is::<Usage>(), "{unsaid}");
        let pooler = Args { workload_applied: Some("true".to_owned()), ..args("true") };
        suits(&pooler, &with(&[Effect::Reboot])).unwrap();
        suits(&pooler, &with(&[])).unwrap();
        assert!(suits(&args("true"), &with(&[])).is_err());
    }
}
