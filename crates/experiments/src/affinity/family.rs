//! No affinity, hard partitions and soft affinity, as a family of the frame.

use super::arguments::Arguments;
use super::instance::{Job, Server};
use super::trial::Instances;
use super::ways::{WAYS, Way};
use crate::platform::{Arm, Better, Cell, Family, Needs, Placement, Running, Trouble, Workload};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use untax_core::Bytes;
use untax_core::cpus::Cpus;
use untax_host::{Host, facts};
use untax_scenes::{Engine, NumaBalancing, SceneError, Turn};
use untax_steer::proposal::{Demand, propose};
use untax_steer::topology::Topology;
use untax_trials::Interrupt;

/// Instances that are up in every cell.
const INSTANCES: usize = 2;

/// How long work is counted.
const LENGTH: Duration = Duration::from_secs(5);

/// About how long servers take to start with their rows, and loads to settle.
const START: Duration = Duration::from_secs(18);

/// Terminals of TPC-C for each busy instance.
const TERMINALS: [u32; 3] = [4, 8, 16];

/// About how long the tables of TPC-C take, of which every instance has its own.
const START_TPCC: Duration = Duration::from_secs(90);

/// The family.
pub(super) struct Affinities {
    command: Option<String>,
    state: PathBuf,
    preferred: Result<Vec<Cpus>, String>,
    topology: Topology,
}

impl Affinities {
    /// On this machine; its journal of masks lies in the state directory.
    pub(super) fn new(arguments: &Arguments, state: &Path) -> io::Result<Self> {
        let (host, state) = (Host::live(), state.join("affinity"));
        std::fs::create_dir_all(&state)?;
        let facts = facts::read_all(&host);
        let topology = Topology::read(&host, &facts);
        let own = untax_changes::affinity::of_thread(std::process::id())?.unwrap_or_default();
        let demand = Demand { allowed: own, used_cpus: 1.0, node: None };
        let preferred = propose(&topology, &vec![demand; INSTANCES]);
        let preferred = preferred.map_err(|_| "two instances need two cores".to_owned());
        Ok(Self { command: arguments.workload.clone(), state, preferred, topology })
    }

    /// Every job with its id, and whether it is among the most telling.
    fn jobs(&self) -> Vec<(String, Job, bool)> {
        let hackbench = [4, 8, 16, 32]
            .map(|groups| (format!("hackbench-{groups}"), Job::Hackbench(groups), groups == 4));
        let servers =
            [("postgres".to_owned(), Job::Postgres, true), ("redis".to_owned(), Job::Redis, true)];
        let tpcc = TERMINALS.into_iter().flat_map(|terminals| {
            let id = |engine: &str| format!("tpcc-{engine}-{terminals}");
            [
                (id("postgres"), Job::Tpcc(Engine::Postgres, terminals), false),
                (id("mysql"), Job::Tpcc(Engine::Mysql, terminals), false),
            ]
        });
        let own =
            self.command.iter().map(|c| ("workload".to_owned(), Job::Command(c.clone()), true));
        own.chain(servers).chain(hackbench).chain(tpcc).collect()
    }

    /// The nodes of these CPUs.
    fn nodes_of(&self, cpus: &Cpus) -> Vec<u32> {
        let has = |node: &u32| !self.topology.of_node(*node).and(cpus).is_empty();
        self.topology.nodes().into_iter().filter(has).collect()
    }

    /// The job of a cell, and how many instances are busy in it.
    fn job(&self, id: &str) -> Option<(Job, usize)> {
        let (name, busy) = id.rsplit_once('-')?;
        let busy = if busy == "two" { INSTANCES } else { 1 };
        let mut jobs = self.jobs().into_iter();
        Some((jobs.find(|(known, ..)| known == name)?.1, busy))
    }
}

fn work(id: &str, job: &Job, busy: &str, is_usual: bool) -> Workload {
    let (what, unit) = match job {
        Job::Postgres => ("pgbench -S", "transactions/s"),
        Job::Redis => ("redis-benchmark GET", "requests/s"),
        Job::Hackbench(_) => ("groups of 20 senders and 20 receivers", "messages/s"),
        Job::Tpcc(Engine::Mysql, _) => ("TPC-C of 2 warehouses by go-tpc", "new orders/s"),
        Job::Tpcc(..) => ("TPC-C of 2 warehouses by pgbench", "transactions/s"),
        Job::Command(_) => ("your command", "runs/s"),
    };
    let summary = format!("{what}, {busy} of two instances busy, clients on the same CPUs");
    Workload {
        trial: LENGTH,
        start: if matches!(job, Job::Tpcc(..)) { START_TPCC } else { START },
        placements: vec![Placement::None],
        is_usual,
        is_quick: is_usual && matches!(job, Job::Hackbench(_) | Job::Command(_)),
        cannot: job.cannot(),
        ..Workload::new(id, &summary, unit, Better::Higher)
    }
}

impl Family for Affinities {
    fn arms(&mut self) -> Vec<Arm> {
        let nodes = self.topology.nodes().len();
        WAYS.iter().map(|way| way.arm(&self.preferred, nodes)).collect()
    }

    fn workloads(&mut self) -> Vec<Workload> {
        let both = |(id, job, is_usual): (String, Job, bool)| {
            ["two", "one"].map(|busy| work(&format!("{id}-{busy}"), &job, busy, is_usual))
        };
        self.jobs().into_iter().flat_map(both).collect()
    }

    fn needs(&self) -> Needs {
        Needs { memory: Bytes(1 << 30), disk: Bytes(1 << 30), root: false }
    }

    fn start(
        &mut self,
        arm: &Arm,
        cell: &Cell,
        _: &Interrupt,
    ) -> Result<Box<dyn Running>, Trouble> {
        let id = &cell.workload.id;
        let known =
            self.job(id).ok_or_else(|| Trouble::Failed(format!("there is no work {id}")))?;
        let (job, busy) = known;
        let preferred = self.preferred.clone().map_err(Trouble::Failed)?;
        let unknown = || Trouble::Failed(format!("there is no arm {}", arm.id));
        let way = Way::find(&arm.id).ok_or_else(unknown)?;
        let failed = |error: SceneError| Trouble::of(&error);
        let balancing = match way.balancing {
            Some(on) => {
                let turn = Turn::wait().map_err(failed)?;
                Some((NumaBalancing::set(on).map_err(failed)?, turn))
            }
            None => None,
        };
        let server = |place: usize| {
            let words = way.words(&self.nodes_of(&preferred[place]));
            Server::start(&job, &words).map_err(failed)
        };
        let servers = (0..INSTANCES).map(server).collect::<Result<_, _>>()?;
        let rule = way.rule;
        let (state, length) = (self.state.clone(), cell.workload.trial);
        Ok(Box::new(Instances {
            job,
            servers,
            preferred,
            busy,
            rule,
            state,
            length,
            _balancing: balancing,
        }))
    }
}
