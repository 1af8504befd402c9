//! One cause on one engine: the part that starts servers and measures.

use crate::state::State;
use crate::watching::observe;
use anyhow::{Context, bail};
use std::time::Duration;
use untax_core::lab::{LabRun, Pairs, Seen, Subject};
use untax_core::{Gain, Window};
use untax_host::Host;
use untax_lab::{Cause, Dose, Injection, LabError, OtherLoad, Variant};
use untax_pipeline::{Calibrating, Options, Target};
use untax_scenes::Release;
use untax_trials::{
    Arm, Cell, Design, Interrupt, Observer, Progress, Rig, Runner, Slot, Trial, Watch, judged,
    without_mixed_pairs,
};

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
    /// Under which load, and beside which cause.
    pub variant: Variant,
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

/// Puts a cause on a server, checks with it and without, and measures the gain. The caller has
/// the turn.
pub fn run(
    cause: &'static Cause,
    release: Release,
    method: Method,
    state: &State,
    progress: impl FnMut(&str),
) -> anyhow::Result<LabRun> {
    Ok(record(cause, release, method, state, progress)?.0)
}

/// The same, with the window of each check with the cause.
pub fn record(
    cause: &'static Cause,
    release: Release,
    method: Method,
    state: &State,
    mut progress: impl FnMut(&str),
) -> anyhow::Result<(LabRun, Vec<Window>)> {
    progress("starting and filling a server");
    let mut scene = Injection::prepare_as(cause, release, method.dose, method.variant)?;
    // Fills caches and prepares connections, which no trial is to pay for.
    work(&scene, 2)?;
    scene.switch(true)?;
    progress("checking with the cause");
    let (with, window) = checked(&scene, method, state)?;
    scene.switch(false)?;
    progress("checking without it");
    let (without, _) = checked(&scene, method, state)?;
    // Trials with nothing and without it would be of the same.
    let pairs = if cause.is_none() { 0 } else { method.pairs };
    let design = design(&scene, method, pairs);
    let mut server = Server { scene, cause, method, state, is_on: false, windows: vec![window] };
    let made = Runner::new(&design, &Interrupt::default(), &Host::live()).run(
        &mut server,
        Vec::new(),
        &mut Screen { pairs, told: None, progress: &mut progress },
    )?;
    let treatment = server.scene.testbed().treatment();
    // Where the cause is that CPUs sleep, they do so with it and not without.
    let made = if treatment.is_some() { made } else { without_mixed_pairs(&made) };
    let pairs = pairs_of(&made, design.seed);
    let subject = Subject {
        run: State::new_run("lab"),
        cause: cause.id.to_owned(),
        engine: release.id.to_owned(),
        dose: method.dose.id().to_owned(),
        load: method.variant.load.map(OtherLoad::id),
        beside: method.variant.beside.map(|beside| beside.id),
        takes: cause.takes,
        treatment,
    };
    let windows = server.windows;
    Ok((LabRun::judge(subject, with, &without, pairs, method.window.as_secs_f64()), windows))
}

/// The places of the arms in the design.
const WITH: usize = 0;
const WITHOUT: usize = 1;

/// The server with the cause and without it, under its load.
fn design(scene: &Injection, method: Method, pairs: u32) -> Design {
    // A cause may limit the server's CPUs; without it nothing does.
    let group = scene.testbed().group().directory("cpu", "cpu").ok();
    let groups = group.into_iter().map(|(_, directory)| directory.to_owned()).collect();
    let watch = Watch { groups, ..Watch::default() };
    let without = Arm { watch, ..Arm::new("without the cause") };
    let length = Some(Duration::from_secs(u64::from(method.seconds() + LONGER_S)));
    let cell = Cell { name: "load".to_owned(), length };
    Design::of_visits(
        fastrand::u64(..),
        vec![Arm::new("with the cause"), without],
        vec![cell],
        pairs,
    )
}

/// A scratch server and the cause that is put on it.
struct Server<'a> {
    scene: Injection,
    cause: &'static Cause,
    method: Method,
    state: &'a State,
    /// Whether the cause is there, and what checks saw of it.
    is_on: bool,
    windows: Vec<Window>,
}

/// What a trial gives: throughput, and the gain that a check beside it predicts.
type Outcome = (f64, Option<Gain>);

impl Rig for Server<'_> {
    type Error = anyhow::Error;
    type Outcome = Outcome;

    fn prepare(&mut self, arms: &[usize], _: &mut dyn FnMut(&str, f64)) -> anyhow::Result<()> {
        self.is_on = arms.contains(&WITH);
        if self.scene.switch(self.is_on)? {
            let settling_s = u32::try_from(self.scene.settling().as_secs()).unwrap_or(u32::MAX);
            work(&self.scene, settling_s)?;
        }
        Ok(())
    }

    fn run(&mut self, _: &Slot) -> anyhow::Result<Option<Outcome>> {
        let tried = tried(&self.scene, self.method, self.state)?;
        Ok(tried.map(|(per_s, (seen, window))| {
            if self.is_on {
                self.windows.push(window);
            }
            (per_s, seen.gain(self.cause.id))
        }))
    }

    fn tear_down(&mut self) -> anyhow::Result<()> {
        // The scene takes its cause away when it is dropped.
        Ok(())
    }
}

/// Says which pair is being made.
struct Screen<'a> {
    pairs: u32,
    told: Option<u32>,
    progress: &'a mut dyn FnMut(&str),
}

impl Observer<Outcome, anyhow::Error> for Screen<'_> {
    fn progress(&mut self, progress: &Progress) {
        let pair = progress.done / 2 + 1;
        if self.told.replace(pair) != Some(pair) {
            let (pairs, left) = (self.pairs, progress.left.as_secs());
            (self.progress)(&format!("trials: pair {pair} of {pairs}, about {left} s left"));
        }
    }

    fn trial(&mut self, trials: &[Trial<Outcome>]) -> anyhow::Result<()> {
        for guard in trials.last().into_iter().flat_map(Trial::spoiled) {
            (self.progress)(&format!("this trial does not count: {guard}"));
        }
        Ok(())
    }
}

/// The pairs of which both trials count, and the trials that do not.
fn pairs_of(made: &[Trial<Outcome>], seed: u64) -> Pairs {
    let mut pairs = Pairs { seed, ..Pairs::default() };
    for block in made.chunk_by(|one, other| one.slot.block == other.slot.block) {
        let of = |arm| block.iter().position(|trial| trial.slot.arm == arm && trial.counts());
        let (Some(with), Some(without)) = (of(WITH), of(WITHOUT)) else {
            pairs.lost += 1;
            continue;
        };
        let (per_s, predicted) = block[with].outcome;
        pairs.with_per_s.push(per_s);
        pairs.predicted.push(predicted);
        pairs.without_per_s.push(block[without].outcome.0);
        pairs.with_first.push(with < without);
        pairs.sleeps.push([with, without].map(|trial| block[trial].sleeps.clone()));
    }
    pairs.spoiled = judged(made, WITHOUT, |(per_s, _)| *per_s);
    pairs.spoiled.retain(|trial| !trial.counts());
    pairs
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
fn tried(
    scene: &Injection,
    method: Method,
    state: &State,
) -> anyhow::Result<Option<(f64, (Seen, Window))>> {
    let Some(load) = scene.load(method.seconds() + LONGER_S)? else { return Ok(None) };
    std::thread::sleep(STARTING);
    let seen = seen(scene, method, state)?;
    let per_s = load.finish()?;
    scene.survived()?;
    Ok(Some((per_s, seen)))
}

/// A check under load.
fn checked(scene: &Injection, method: Method, state: &State) -> anyhow::Result<(Seen, Window)> {
    let mut load = scene.load(UNTIL_STOPPED_S)?;
    std::thread::sleep(scene.settling());
    let seen = seen(scene, method, state)?;
    load.as_mut().map_or(Ok(()), untax_scenes::Load::check)?;
    Ok(seen)
}

/// What a check sees of the server.
fn seen(scene: &Injection, method: Method, state: &State) -> anyhow::Result<(Seen, Window)> {
    let pid = scene.pid().context("the scratch server has ended; is there a crash in its log?")?;
    let options = Options {
        target: Target::Pid(pid),
        window: method.window,
        calibrating: Calibrating::Measure,
    };
    let observed = observe(options, state, &Host::live(), &Host::live(), &Interrupt::default())?;
    scene.survived()?;
    match Seen::of(observed.check(State::new_run("check")), pid) {
        Some(seen) => Ok((seen, observed.window)),
        None => bail!("the scratch server {pid} ended during the check"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use untax_core::Reading::Present;
    use untax_core::guards::{Guard, GuardId};

    fn trial(block: u32, arm: usize, per_s: f64, steal: f64) -> Trial<Outcome> {
        let slot = Slot { block, arm, cell: 0, repeat: false };
        let (id, value) = (GuardId::Steal, Present(steal));
        let guards = vec![Guard { id, subject: None, value, threshold: 0.1 }];
        Trial { slot, outcome: (per_s, None), took_s: 1.0, guards, sleeps: None }
    }

    #[test]
    fn a_pair_counts_when_both_of_its_trials_do_and_its_order_is_kept() {
        let made = [
            trial(0, WITH, 10.0, 0.0),
            trial(0, WITHOUT, 20.0, 0.0),
            // Spoiled once, and then not.
            trial(1, WITHOUT, 99.0, 0.5),
            trial(1, WITHOUT, 22.0, 0.0),
            trial(1, WITH, 11.0, 0.0),
            // Spoiled twice: the pair is lost.
            trial(2, WITH, 99.0, 0.5),
            trial(2, WITH, 99.0, 0.5),
            trial(2, WITHOUT, 99.0, 0.0),
        ];
        let pairs = pairs_of(&made, 7);
        assert_eq!((pairs.with_per_s, pairs.without_per_s), (vec![10.0, 11.0], vec![20.0, 22.0]));
        assert_eq!((pairs.with_first, pairs.predicted.len()), (vec![true, false], 2));
        assert_eq!((pairs.lost, pairs.spoiled.len(), pairs.seed), (1, 3, 7));
        assert!(pairs.spoiled[0].applied && !pairs.spoiled[1].applied);
    }
}
