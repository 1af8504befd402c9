//! One trial: loads, steering beside them, and work counted once both have settled.

use super::instance::{Busy, Job, Server};
use super::observed::{NUMA, Observed};
use super::steerer::{Tree, order};
use crate::platform::{Measured, Running, Trouble};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use untax_core::cpus::Cpus;
use untax_scenes::{Engine, NumaBalancing, Turn};
use untax_steer::policy::Rule;
use untax_steer::{Beside, Done, SteerError};
use untax_trials::Interrupt;

/// What loads and steering get to settle: the start of clients, the hold before a spill and after it (1 s each), and
/// its trial of 5 s with more CPUs and of 5 s at home. That is 13 s by the defaults of `untax steer`, and counts of
/// work come a second late.
const SETTLE: Duration = Duration::from_secs(18);

/// Clients of a server for each CPU that it prefers: as many as keep it busy while half of them wait.
const CLIENTS: usize = 4;

/// Instances that are up, the first ones of them busy in trials.
pub(super) struct Instances {
    pub(super) job: Job,
    pub(super) servers: Vec<Option<Server>>,
    pub(super) preferred: Vec<Cpus>,
    pub(super) busy: usize,
    /// How they are steered; none without affinity.
    pub(super) rule: Option<Rule>,
    pub(super) state: PathBuf,
    pub(super) length: Duration,
    /// `kernel.numa_balancing` as the arm has it; put back with this.
    pub(super) _balancing: Option<(NumaBalancing, Turn)>,
}

impl Instances {
    fn engine(&self) -> &'static str {
        match self.job {
            Job::Postgres | Job::Tpcc(Engine::Postgres, _) => "postgres",
            Job::Redis => "redis",
            Job::Tpcc(..) => "mysql",
            Job::Hackbench(_) | Job::Command(_) => "generic",
        }
    }

    /// Every instance: its server, idle ones too, with its load; a load without a server is an instance itself.
    fn trees(&self, loads: &[Busy]) -> Vec<Tree> {
        let mut trees = Vec::new();
        for (place, preferred) in self.preferred.iter().enumerate() {
            let server = self.servers.get(place).and_then(Option::as_ref).and_then(Server::pid);
            let load = loads.get(place).and_then(Busy::pid);
            let Some(pid) = server.or(load) else { continue };
            trees.push(Tree {
                name: format!("instance-{place}"),
                engine: self.engine(),
                pid,
                clients: server.and(load),
                preferred: preferred.clone(),
            });
        }
        trees
    }

    fn start_loads(&self) -> Result<Vec<Busy>, Trouble> {
        let length = SETTLE + self.length + Duration::from_secs(2);
        let load = |place: usize| {
            let clients = (self.preferred[place].len() * CLIENTS) as u32;
            let server = self.servers.get(place).and_then(Option::as_ref);
            Busy::start(&self.job, server, clients, length)
        };
        (0..self.busy).map(load).collect()
    }

    fn counts(&self, loads: &[Busy]) -> Result<Vec<Option<f64>>, Trouble> {
        let count = |(place, load): (usize, &Busy)| {
            load.count(self.servers.get(place).and_then(Option::as_ref))
        };
        loads.iter().enumerate().map(count).collect()
    }

    /// Work per second of all loads together.
    fn measure(
        &self,
        loads: &mut [Busy],
        observed: &mut Observed,
        interrupt: &Interrupt,
    ) -> Result<f64, Trouble> {
        if matches!(self.job, Job::Command(_)) {
            return loads.iter_mut().map(|load| load.wait(interrupt)).sum();
        }
        interrupt.sleep(SETTLE)?;
        let (before, began) = (self.counts(loads)?, Instant::now());
        observed.watch(self.length, interrupt)?;
        let (after, took_s) = (self.counts(loads)?, began.elapsed().as_secs_f64());
        let seconds = self.length.as_secs().max(1) as usize;
        let rate = |(place, load): (usize, &Busy)| match (before[place], after[place]) {
            (Some(before), Some(after)) => Some((after - before) / took_s),
            _ => load.last_rate(seconds),
        };
        let rates: Option<Vec<f64>> = loads.iter().enumerate().map(rate).collect();
        let none = || Trouble::Failed("a load told no rate; look at its server".to_owned());
        Ok(rates.ok_or_else(none)?.iter().sum())
    }
}

impl Running for Instances {
    fn trial(&mut self, interrupt: &Interrupt) -> Result<Measured, Trouble> {
        let mut loads = self.start_loads()?;
        let trees = self.trees(&loads);
        let whole = |tree: &Tree| {
            let pids = std::iter::once(tree.pid).chain(tree.clients);
            pids.map(|pid| (pid, tree.preferred.clone())).collect::<Vec<_>>()
        };
        let busy = trees.iter().flat_map(whole).collect();
        let failed = |error: SteerError| Trouble::of(&error);
        let start = |rule| Beside::start(order(&trees, rule), &self.state);
        let beside = self.rule.map(start).transpose().map_err(failed)?;
        let mut observed = Observed::of(busy);
        let rate = self.measure(&mut loads, &mut observed, interrupt);
        let steered = beside.map_or(Ok(Done::default()), Beside::stop).map_err(failed)?;
        let rate = rate?;
        let mut measured = Measured::of(rate).counting(rate * self.length.as_secs_f64());
        if self.rule.is_some() {
            measured = measured.with("steer-cpu", steered.cpu_share * 100.0, "%").with(
                "steer-changes",
                f64::from(steered.changes),
                "changes",
            );
        }
        if let Some(share) = observed.home_share() {
            measured = measured.with("on-preferred", share * 100.0, "%");
        }
        if let Some(moves) = observed.moves_per_s() {
            measured = measured.with("migrations", moves, "moves/s");
        }
        for (name, count) in NUMA.iter().zip(observed.numa().into_iter().flatten()) {
            measured = measured.with(&name.replace('_', "-"), count, "events");
        }
        Ok(measured)
    }
}
