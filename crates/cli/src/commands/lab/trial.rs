//! One cause on one engine: the part that starts servers and measures.

use crate::state::State;
use crate::watching::observe;
use anyhow::{Context, bail};
use std::time::Duration;
use untax_core::lab::{LabRun, Pairs, Seen, Subject};
use untax_host::Host;
use untax_lab::{Cause, Dose, Injection, LabError};
use untax_pipeline::{Calibrating, Options, Target};
use untax_scenes::Engine;

/// A load that is stopped before its time.
const UNTIL_STOPPED_S: u32 = 3600;

/// How long the load of a trial runs before its check: until its clients have connected, and what a cause
/// does at its beginning is over. A table of connections that fills within a second is full then.
const STARTING: Duration = Duration::from_secs(1);

/// By how much a trial is longer than its check's window, so that the load does not end in the check:
/// where hundreds want a CPU, loading programs takes a second before it, and after it a server times for
/// one or two what cold caches cost.
const LONGER_S: u32 = 5;

/// How a cause is tried.
#[derive(Debug, Clone, Copy)]
pub struct Method {
    /// The length of a check's window; a trial is somewhat longer.
    pub window: Duration,
    /// Pairs of trials.
    pub pairs: u32,
    /// How much of the cause.
    pub dose: Dose,
}

impl Method {
    /// About how long one cause takes: starting and filling a server, two checks, the trials.
    pub fn estimate(self) -> Duration {
        Duration::from_secs(20)
            + self.window * (2 + 2 * self.pairs)
            + Duration::from_secs(2 + 2 * u64::from(LONGER_S)) * self.pairs
    }

    fn seconds(self) -> u32 {
        (self.window.as_secs_f64().ceil() as u32).max(1)
    }
}

/// Puts a cause on an engine, checks with it and without, and measures the gain. The caller has
/// the turn.
pub fn run(
    cause: &'static Cause,
    engine: Engine,
    method: Method,
    state: &State,
    mut progress: impl FnMut(&str),
) -> anyhow::Result<LabRun> {
    progress("starting and filling a server");
    let mut scene = Injection::prepare(cause, engine, method.dose)?;
    // Fills caches and prepares connections, which no trial is to pay for.
    work(&scene, 2)?;
    scene.switch(true)?;
    progress("checking with the cause");
    let with = checked(&scene, method, state)?;
    scene.switch(false)?;
    progress("checking without it");
    let without = checked(&scene, method, state)?;
    let mut pairs = Pairs::default();
    // Trials with nothing and without it would be of the same.
    for pair in if cause.is_none() { 0..0 } else { 0..method.pairs } {
        progress(&format!("trials: pair {} of {}", pair + 1, method.pairs));
        for on in if pair.is_multiple_of(2) { [true, false] } else { [false, true] } {
            if scene.switch(on)? {
                let settling_s = u32::try_from(scene.settling().as_secs()).unwrap_or(u32::MAX);
                work(&scene, settling_s)?;
            }
            let Some((per_s, seen)) = tried(&scene, method, state)? else { continue };
            if on {
                pairs.with_per_s.push(per_s);
                pairs.predicted.push(seen.gain(cause.id));
            } else {
                pairs.without_per_s.push(per_s);
            }
        }
    }
    let subject = Subject {
        run: State::new_run("lab"),
        cause: cause.id.to_owned(),
        engine: engine.id().to_owned(),
        dose: method.dose.id().to_owned(),
        takes: cause.takes,
    };
    Ok(LabRun::judge(subject, with, &without, pairs, method.window.as_secs_f64()))
}

/// Throughput of the load over some seconds; `None` without a load.
fn work(scene: &Injection, seconds: u32) -> Result<Option<f64>, LabError> {
    let per_s = scene.load(seconds)?.map(untax_scenes::Load::finish).transpose()?;
    scene.survived()?;
    Ok(per_s)
}

/// A trial: throughput, and what a check sees meanwhile; `None` without a load. A cause that comes
/// and goes is no other for the check than for the load, and what the check costs, it costs with the
/// cause and without.
fn tried(scene: &Injection, method: Method, state: &State) -> anyhow::Result<Option<(f64, Seen)>> {
    let Some(load) = scene.load(method.seconds() + LONGER_S)? else { return Ok(None) };
    std::thread::sleep(STARTING);
    let seen = seen(scene, method, state)?;
    let per_s = load.finish()?;
    scene.survived()?;
    Ok(Some((per_s, seen)))
}

/// A check under load.
fn checked(scene: &Injection, method: Method, state: &State) -> anyhow::Result<Seen> {
    let _load = scene.load(UNTIL_STOPPED_S)?;
    std::thread::sleep(scene.settling());
    seen(scene, method, state)
}

/// What a check sees of the server.
fn seen(scene: &Injection, method: Method, state: &State) -> anyhow::Result<Seen> {
    let pid = scene.pid().context("the scratch server has ended; is there a crash in its log?")?;
    let options = Options {
        target: Target::Pid(pid),
        window: method.window,
        calibrating: Calibrating::Measure,
    };
    let observed = observe(options, state, &Host::live(), &Host::live())?;
    scene.survived()?;
    match Seen::of(observed.check(State::new_run("check")), pid) {
        Some(seen) => Ok(seen),
        None => bail!("the scratch server {pid} ended during the check"),
    }
}
