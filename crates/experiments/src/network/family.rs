//! Paths as the frame of platform benches takes them.

use super::arguments::NetworkArguments;
use super::exchange::Exchange;
use super::peers::{ClientSpec, Place, ServerSpec};
use super::pgbench::Pgbench;
use super::redis::RedisGet;
use super::workloads::{self, Load};
use crate::platform::{Arm, Cell, Family, Needs, Running, Step, Trouble, Workload};
use std::collections::BTreeMap;
use std::rc::Rc;
use untax_changes::Program;
use untax_core::Bytes;
use untax_scenes::{Counts, NetworkPath, PATHS, PORT, PathKind, Postgres};
use untax_trials::Interrupt;

/// The arm that all others are divided by.
const BASELINE: &str = "wire";

/// Memory of ten thousand services in several namespaces, and of a scratch PostgreSQL.
const MEMORY: Bytes = Bytes(1 << 30);

/// Space for a scratch PostgreSQL.
const DISK: Bytes = Bytes(512 << 20);

/// All paths, and those that are built.
pub(super) struct Paths {
    program: Program,
    wanted: Vec<Wanted>,
    /// The ids that were asked for; all where there are none.
    asked: Vec<String>,
    built: BTreeMap<String, Rc<NetworkPath>>,
    /// One cluster, which moves from path to path: to make one takes longer than to measure it.
    postgres: Option<Rc<std::cell::RefCell<Postgres>>>,
}

/// A kind of path with its number of services or rules.
#[derive(Clone, Copy)]
struct Wanted {
    kind: &'static PathKind,
    count: Option<u32>,
}

impl Wanted {
    fn id(&self) -> String {
        match self.count {
            Some(count) => format!("{}-{count}", self.kind.id),
            None => self.kind.id.to_owned(),
        }
    }
}

impl Paths {
    pub(super) fn new(arguments: &NetworkArguments, program: Program) -> Self {
        Self {
            program,
            wanted: wanted(&arguments.services, &arguments.rules),
            asked: arguments.common.arms.clone(),
            built: BTreeMap::new(),
            postgres: None,
        }
    }

    fn arm(&mut self, wanted: Wanted) -> Arm {
        let id = wanted.id();
        let mut arm = Arm::new(&id, wanted.kind.summary);
        for (name, value) in wanted.kind.configuration {
            arm = arm.with(name, *value);
        }
        if let (Some(counts), Some(count)) = (wanted.kind.counts, wanted.count) {
            let (series, counts) = (wanted.kind.id.to_owned(), noun(counts).to_owned());
            arm.step = Some(Step { series, counts, number: count });
        }
        let is_asked = self.asked.is_empty() || self.asked.contains(&id) || id == BASELINE;
        if !is_asked || self.built.contains_key(&id) {
            return arm;
        }
        match wanted.kind.build(wanted.count.unwrap_or_default()) {
            Ok(path) => {
                self.built.insert(id, Rc::new(path));
                arm
            }
            Err(error) => {
                let Trouble::Failed(why) = Trouble::of(&error) else { return arm };
                arm.cannot(why)
            }
        }
    }
}

fn noun(counts: Counts) -> &'static str {
    match counts {
        Counts::Services => "services",
        Counts::Rules => "rules before the one that accepts",
    }
}

/// Kinds whose cost is measured at every number, so that a line shows how it grows.
const GROWING: [&str; 3] = ["services-iptables", "services-nft", "policies"];

/// Kinds that are built with the smallest number alone: what they add stands beside the number.
const SMALL: [&str; 1] = ["nodes-services"];

/// The baseline, then every other kind: with each number where it grows, else with one.
fn wanted(services: &[u32], rules: &[u32]) -> Vec<Wanted> {
    let mut all: Vec<Wanted> = Vec::new();
    for kind in PATHS {
        let mut numbers = match kind.counts {
            None => Vec::new(),
            Some(Counts::Services) => services.to_vec(),
            Some(Counts::Rules) => rules.to_vec(),
        };
        numbers.sort_unstable();
        numbers.dedup();
        if !GROWING.contains(&kind.id) {
            let one = if SMALL.contains(&kind.id) { numbers.first() } else { numbers.last() };
            numbers = one.copied().into_iter().collect();
        }
        if kind.counts.is_none() {
            all.push(Wanted { kind, count: None });
        }
        all.extend(numbers.into_iter().map(|count| Wanted { kind, count: Some(count) }));
    }
    all.sort_by_key(|wanted| wanted.kind.id != BASELINE);
    all
}

impl Family for Paths {
    fn arms(&mut self) -> Vec<Arm> {
        self.wanted.clone().into_iter().map(|wanted| self.arm(wanted)).collect()
    }

    fn workloads(&mut self) -> Vec<Workload> {
        workloads::all()
    }

    fn needs(&self) -> Needs {
        Needs { memory: MEMORY, disk: DISK, root: true }
    }

    fn start(
        &mut self,
        arm: &Arm,
        cell: &Cell,
        _: &Interrupt,
    ) -> Result<Box<dyn Running>, Trouble> {
        let built = self.built.get(&arm.id).cloned();
        let path = built.ok_or_else(|| Trouble::Failed(format!("{} is not built", arm.id)))?;
        let load = Load::of(&cell.workload.id)
            .ok_or_else(|| Trouble::Failed(format!("no load {}", cell.workload.id)))?;
        match load {
            Load::Exchange { kind, connections } => {
                let place = Place::of(&path.server, &cell.cpus.server);
                let server = ServerSpec { kind, place, port: PORT, asked: true };
                let client = ClientSpec {
                    kind,
                    place: Place::of(&path.client, &cell.cpus.client),
                    address: path.address,
                    port: PORT,
                    connections,
                    seconds: cell.workload.trial.as_secs_f64(),
                };
                Ok(Box::new(Exchange::start(self.program.clone(), path, &server, client)?))
            }
            Load::RedisGet => Ok(Box::new(RedisGet::start(path, cell)?)),
            Load::Pgbench { reconnects } => {
                let running = Pgbench::start(&mut self.postgres, path, cell, reconnects)?;
                Ok(Box::new(running))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(services: &[u32], rules: &[u32]) -> Vec<String> {
        wanted(services, rules).iter().map(Wanted::id).collect()
    }

    #[test]
    fn the_baseline_comes_first_and_what_grows_is_built_with_each_number() {
        let ids = ids(&[1, 100], &[50]);
        assert_eq!(ids[0], BASELINE);
        let with = |kind: &str| ids.iter().filter(|id| id.starts_with(kind)).count();
        assert_eq!(with("services-iptables-1"), 2);
        assert_eq!(with("services-nft-"), 2);
        assert!(ids.contains(&"services-ebpf-100".to_owned()));
        assert!(ids.contains(&"nodes-services-1".to_owned()));
        assert!(ids.contains(&"policies-50".to_owned()));
        let mut unique = ids.clone();
        unique.sort_unstable();
        unique.dedup();
        assert_eq!(unique.len(), ids.len());
    }

    #[test]
    fn a_number_that_is_given_twice_is_built_once() {
        let ids = ids(&[10, 10], &[5, 5]);
        assert_eq!(ids.iter().filter(|id| *id == "services-iptables-10").count(), 1);
    }
}
