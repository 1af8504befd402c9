//! No affinity, hard partitions and soft affinity, as a family of the frame.

use super::arguments::Arguments;
use super::instance::{Job, Server};
use super::trial::Instances;
use crate::platform::{Arm, Better, Cell, Family, Needs, Placement, Running, Trouble, Workload};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use untax_core::Bytes;
use untax_core::cpus::Cpus;
use untax_host::{Host, facts};
use untax_steer::policy::{Ratio, Rule};
use untax_steer::proposal::{Demand, propose};
use untax_steer::topology::Topology;
use untax_trials::Interrupt;

/// Instances that are up in every cell.
const INSTANCES: usize = 2;

/// How long work is counted.
const LENGTH: Duration = Duration::from_secs(5);

/// About how long servers take to start with their rows, and loads to settle.
const START: Duration = Duration::from_secs(14);

/// How an arm is steered.
struct Way {
    id: &'static str,
    summary: &'static str,
    rule: Option<Rule>,
}

const WAYS: [Way; 4] = [
    Way { id: "none", summary: "every instance may use all CPUs", rule: None },
    Way {
        id: "hard",
        summary: "every instance has its preferred CPUs alone",
        rule: Some(Rule::Never),
    },
    Way {
        id: "soft",
        summary: "untax steer: others too, while its own are 85 % busy and that pays",
        rule: Some(Rule::Full),
    },
    Way {
        id: "soft-5-4",
        summary: "untax steer by the ratio 5:4",
        rule: Some(Rule::Above(Ratio { preferred: 5, allowed: 4 })),
    },
];

/// The family.
pub(super) struct Affinities {
    command: Option<String>,
    state: PathBuf,
    preferred: Result<Vec<Cpus>, String>,
    nodes: usize,
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
        Ok(Self {
            command: arguments.workload.clone(),
            state,
            preferred,
            nodes: topology.nodes().len(),
        })
    }

    /// Every job with its id, and whether it is among the most telling.
    fn jobs(&self) -> Vec<(String, Job, bool)> {
        let hackbench = [4, 8, 16, 32]
            .map(|groups| (format!("hackbench-{groups}"), Job::Hackbench(groups), groups == 4));
        let servers =
            [("postgres".to_owned(), Job::Postgres, true), ("redis".to_owned(), Job::Redis, true)];
        let own =
            self.command.iter().map(|c| ("workload".to_owned(), Job::Command(c.clone()), true));
        own.chain(servers).chain(hackbench).collect()
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
        Job::Command(_) => ("your command", "runs/s"),
    };
    let summary = format!("{what}, {busy} of two instances busy, clients on the same CPUs");
    Workload {
        trial: LENGTH,
        start: START,
        placements: vec![Placement::None],
        is_usual,
        is_quick: is_usual && matches!(job, Job::Hackbench(_) | Job::Command(_)),
        ..Workload::new(id, &summary, unit, Better::Higher)
    }
}

impl Family for Affinities {
    fn arms(&mut self) -> Vec<Arm> {
        let nodes = format!("{} NUMA node{}", self.nodes, if self.nodes == 1 { "" } else { "s" });
        let arm = |way: &Way| {
            let arm = Arm::new(way.id, way.summary).with("machine", nodes.clone());
            match &self.preferred {
                Ok(preferred) => {
                    let lists: Vec<String> = preferred.iter().map(ToString::to_string).collect();
                    arm.with("preferred", lists.join(" and "))
                }
                Err(why) => arm.cannot(why.clone()),
            }
        };
        WAYS.iter().map(arm).collect()
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
        let server = |_| Server::start(&job).map_err(|error| Trouble::of(&error));
        let servers = (0..INSTANCES).map(server).collect::<Result<_, _>>()?;
        let rule = WAYS.iter().find(|way| way.id == arm.id).and_then(|way| way.rule);
        let (state, length) = (self.state.clone(), cell.workload.trial);
        Ok(Box::new(Instances { job, servers, preferred, busy, rule, state, length }))
    }
}
