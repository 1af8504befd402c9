//! Steering in the foreground.

use super::args::Args;
use super::choice::{Wanted, choose};
use crate::Outcome;
use crate::screen::{print, print_json, print_line, say};
use crate::state::State;
use anyhow::Context;
use serde::Serialize;
use std::time::Duration;
use untax_changes::{Lock, Program};
use untax_core::cpus::Cpus;
use untax_report::format::clean_json;
use untax_steer::event::{Begun, Event, Line};
use untax_steer::policy::Verdict;
use untax_steer::{Backend, Chosen, Order, put_back_rest, steer};
use untax_trials::Interrupt;

/// What `--propose` prints.
#[derive(Serialize, schemars::JsonSchema)]
pub struct Proposal<'a> {
    schema: &'static str,
    instances: Vec<Proposed<'a>>,
}

#[derive(Serialize, schemars::JsonSchema)]
struct Proposed<'a> {
    name: &'a str,
    pid: u32,
    preferred: &'a Cpus,
}

/// Steers until interrupted.
pub fn run(args: &Args, state: &State) -> anyhow::Result<Outcome> {
    let interrupt = Interrupt::by_signals().context("cannot listen for signals")?;
    let directory = state.directory()?;
    let lock = if args.propose { None } else { Some(Lock::to_steer(directory)?) };
    if lock.is_some() {
        for rest in put_back_rest(directory)? {
            say(&format!(
                "untax: put back {rest}: an earlier steering was killed together with its guard"
            ));
        }
    }
    let pass = |time: Duration| {
        let _ = interrupt.sleep(time);
    };
    let Args { instances, hold, judge, .. } = args;
    let wanted = Wanted { instances, hold: *hold, judge: *judge };
    let instances = choose(&wanted, pass)?;
    let Some(lock) = lock else { return propose(args, &instances) };
    let backend = if args.backend == Backend::Ext.name() { Backend::Ext } else { Backend::User };
    let order = Order { backend, instances, period: args.period, run: State::new_run("steer") };
    let mut written = Ok(true);
    let mut tell = |line: Line| {
        let text = if args.json { json(&line) } else { Ok(words(&line)) };
        written = text.and_then(|text| match text {
            Some(text) => print_line(&text),
            None => Ok(true),
        });
        if !matches!(written, Ok(true)) {
            // Nobody reads any more: the stream is the reason to run.
            interrupt.raise();
        }
    };
    steer(&order, &Program::this(), directory, &lock, &interrupt, &mut tell)?;
    written.map(|_| Outcome::Clean)
}

fn propose(args: &Args, instances: &[Chosen]) -> anyhow::Result<Outcome> {
    let proposed = |chosen: &'_ Chosen| -> (String, u32, Cpus) {
        (chosen.candidate.name.clone(), chosen.candidate.pid, chosen.preferred.clone())
    };
    let all: Vec<_> = instances.iter().map(proposed).collect();
    if args.json {
        let instances =
            all.iter().map(|(name, pid, preferred)| Proposed { name, pid: *pid, preferred });
        print_json(&Proposal { schema: "untax.steer/1", instances: instances.collect() })?;
    } else {
        print(
            &all.iter()
                .map(|(name, _, cpus)| format!("--instance {name}={cpus}\n"))
                .collect::<String>(),
        )?;
    }
    Ok(Outcome::Clean)
}

fn json(line: &Line) -> anyhow::Result<Option<String>> {
    let json = serde_json::to_string(line).context("cannot write the event as JSON")?;
    Ok(Some(clean_json(&json)))
}

/// An event for a person; the state of every second is for scripts.
fn words(line: &Line) -> Option<String> {
    let text = match &line.event {
        Event::State { .. } => return None,
        Event::Started { instances, warnings, .. } => {
            for warning in warnings {
                say(&format!("untax: {warning}"));
            }
            instances.iter().map(begun).collect::<Vec<_>>().join("\n")
        }
        Event::Changed { instance, cpus, why, threads } => {
            format!("{instance}: CPUs {cpus} for {threads} threads: {}", why.words())
        }
        Event::Judged { instance, verdict } => format!("{instance}: {}", judged(verdict)),
        Event::Gone { instance } => format!("{instance}: has ended"),
        Event::GuardRenewed => "the guard had ended; another was started".to_owned(),
        Event::Ended { own } => format!(
            "all threads have all CPUs of their cpuset again; steering took {:.2} % of a CPU",
            own.share * 100.0
        ),
    };
    Some(format!("{:>8.1} s  {text}", line.at_s))
}

fn begun(begun: &Begun) -> String {
    let Begun { name, pid, preferred, allowed, own_threads, .. } = begun;
    let own = match own_threads {
        0 => String::new(),
        count => format!("; {count} threads with CPUs of their own are left alone"),
    };
    format!("{name} (pid {pid}) prefers CPUs {preferred} of {allowed}{own}")
}

fn judged(verdict: &Verdict) -> String {
    match verdict.gain {
        None => "whether more CPUs pay is not measured: nothing counts its work".to_owned(),
        Some(gain) => {
            let so = if verdict.is_worth { "so it keeps them" } else { "so it stays on its own" };
            format!("with more CPUs its throughput is {gain:.2} times that on its own: {so}")
        }
    }
}
