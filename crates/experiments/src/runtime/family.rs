//! The arms and the work of `bench runtime`, and what brings one of them up for the other.

use super::arguments::Arguments;
use super::arms::{self, Vessel, Wanted};
use super::exchange::ExchangeRunning;
use super::job::JobRunning;
use super::scene::{FILE_MEMORY, Scene};
use super::server::{ServerRunning, Servers};
use super::workloads::{self, Kind};
use crate::platform::{Arm, Cell, Family, Needs, Running, Trouble, Workload};
use std::path::PathBuf;
use std::rc::Rc;
use untax_core::Bytes;
use untax_scenes::{Group, Network, Runtime, SceneError, find_program};
use untax_trials::Interrupt;

/// `bench runtime` as the frame sees it.
pub(super) struct Runtimes {
    /// Runtimes of the command line.
    others: Vec<String>,
    runsc: Option<PathBuf>,
    limit: Option<f64>,
    asked: Vec<String>,
    command: Option<String>,
    vessels: Vec<Vessel>,
    /// The network of all servers and loads, made once.
    network: Option<Rc<Network>>,
    servers: Servers,
}

impl Runtimes {
    pub(super) fn new(arguments: &Arguments) -> Self {
        Self {
            others: arguments.runtime.clone(),
            runsc: arguments.runsc.clone(),
            limit: arguments.limit,
            asked: arguments.common.arms.clone(),
            command: arguments.workload.clone(),
            vessels: Vec::new(),
            network: None,
            servers: Servers::default(),
        }
    }

    fn vessels(&mut self) -> &[Vessel] {
        if self.vessels.is_empty() {
            let wanted = Wanted {
                runtimes: &self.others,
                runsc: self.runsc.as_deref(),
                limit: self.limit,
                asked: &self.asked,
            };
            self.vessels = arms::all(&wanted);
        }
        &self.vessels
    }

    fn scene(&mut self, arm: &Arm, kind: Kind) -> Result<Scene, SceneError> {
        let limit = self.limit;
        let vessel = self.vessels().iter().find(|vessel| vessel.arm.id == arm.id);
        let runtime = vessel.and_then(|vessel| vessel.runtime).unwrap_or(Runtime::Host);
        let is_grouped = vessel.is_some_and(|vessel| vessel.is_grouped);
        let network = match &self.network {
            Some(network) => Rc::clone(network),
            None => Rc::clone(self.network.insert(Rc::new(Network::make()?))),
        };
        let is_limited = kind.needs_memory_limit();
        let group = (is_grouped || is_limited).then(Group::for_server).transpose()?;
        let mut limits = Vec::new();
        if let Some(group) = &group {
            if let Some(cpus) = limit.filter(|_| is_grouped) {
                limits.push(group.limit_cpus(cpus)?);
            }
            if is_limited {
                limits.push(group.limit_memory(FILE_MEMORY)?);
            }
        }
        Ok(Scene { runtime, _limits: limits, group, network })
    }
}

/// The programs that work needs, with their packages.
fn programs(kind: Kind) -> &'static [(&'static str, &'static str)] {
    match kind {
        Kind::Primes => &[("sysbench", "sysbench")],
        Kind::Sqlite => &[("sqlite3", "sqlite3")],
        Kind::Redis { .. } => {
            &[("redis-server", "redis-server"), ("redis-benchmark", "redis-tools")]
        }
        Kind::MariaDb { .. } => &[("mariadbd", "mariadb-server"), ("sysbench", "sysbench")],
        Kind::Encode => &[("SvtAv1EncApp", "svt-av1")],
        Kind::Postgres { .. } | Kind::Own(_) | Kind::Exchange(_) | Kind::Command => &[],
    }
}

/// Why work cannot be measured here.
fn lacking(kind: Kind) -> Option<String> {
    if matches!(kind, Kind::Postgres { .. }) {
        return untax_scenes::Postgres::find().err().map(|error| error.to_string());
    }
    let missing = |(program, package): &(&str, &str)| find_program(program, package).err();
    programs(kind).iter().find_map(missing).map(|error| error.to_string())
}

impl Family for Runtimes {
    fn arms(&mut self) -> Vec<Arm> {
        self.vessels().iter().map(|vessel| vessel.arm.clone()).collect()
    }

    fn workloads(&mut self) -> Vec<Workload> {
        let all = workloads::all(self.command.as_deref()).into_iter();
        all.map(|(work, kind)| Workload { cannot: lacking(kind), ..work }).collect()
    }

    fn needs(&self) -> Needs {
        // Three arrays of 64 MiB, or a database with 256 MiB of buffers and its clients; a file, a filled
        // PostgreSQL and a filled MariaDB.
        Needs { memory: Bytes::from_mib(1024), disk: Bytes::from_mib(2048), root: true }
    }

    fn start(
        &mut self,
        arm: &Arm,
        cell: &Cell,
        _: &Interrupt,
    ) -> Result<Box<dyn Running>, Trouble> {
        let kind = workloads::all(self.command.as_deref())
            .into_iter()
            .find_map(|(work, kind)| (work.id == cell.workload.id).then_some(kind));
        let kind = kind.ok_or_else(|| Trouble::Failed("there is no such work".to_owned()))?;
        let started = self.scene(arm, kind).and_then(|scene| {
            Ok(match kind {
                Kind::Exchange(exchange) => {
                    Box::new(ExchangeRunning::start(scene, exchange, cell)?) as Box<dyn Running>
                }
                _ if kind.is_served() => {
                    Box::new(ServerRunning::start(&mut self.servers, scene, kind, cell)?)
                }
                _ => Box::new(JobRunning::start(scene, kind, self.command.as_deref(), cell)?),
            })
        });
        started.map_err(|error| Trouble::of(&error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_program_is_named_with_its_package() {
        let missing = |(program, package): &(&str, &str)| find_program(program, package).err();
        let why = missing(&("no-such-server", "its-package")).unwrap().to_string();
        assert!(why.contains("its-package"), "{why}");
        assert_eq!(lacking(Kind::Command), None);
    }
}
