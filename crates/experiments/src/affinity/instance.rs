//! Instances and their loads.

use super::hackbench::Messages;
use crate::platform::Trouble;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use untax_scenes::{
    Database, Engine, Kind, Load, MARIADB, POSTGRES, Postgres, Prepared, Redis, SceneError, Setup,
    Work, has_go_tpc, tpcc,
};
use untax_trials::Interrupt;

/// MiB of rows that each server has: more than any cache, less than its memory.
const MIB: u64 = 64;

/// What runs in an instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Job {
    Postgres,
    Redis,
    /// So many groups of `hackbench`.
    Hackbench(u32),
    /// TPC-C with so many terminals, on a server of its own.
    Tpcc(Engine, u32),
    /// A shell command.
    Command(String),
}

impl Job {
    /// Why it cannot run here.
    pub(super) fn cannot(&self) -> Option<String> {
        let Self::Tpcc(Engine::Mysql, _) = self else { return None };
        (!has_go_tpc()).then(|| {
            "go-tpc is not built: scripts/loads.sh ~/.cache/untax builds it, from the sources of untax"
                .to_owned()
        })
    }
}

/// A server that runs, busy or not.
pub(super) enum Server {
    Postgres(Postgres),
    Redis(Redis),
    /// With its tables and its load.
    Tpcc(Prepared),
}

impl Server {
    /// Starts a server with rows; `None` for jobs that have none. The words come before its command.
    pub(super) fn start(job: &Job, words: &[String]) -> Result<Option<Self>, SceneError> {
        let plain = Setup { before_server: words, ..Setup::default() };
        let server = match job {
            Job::Postgres => {
                let settings = [("shared_buffers", "256MB"), ("huge_pages", "off")];
                Self::Postgres(Postgres::start_as(&Setup { settings: &settings, ..plain })?)
            }
            Job::Redis => Self::Redis(Redis::start_as(&plain)?),
            Job::Tpcc(engine, terminals) => {
                let release = if *engine == Engine::Mysql { MARIADB } else { POSTGRES };
                let setup = Setup { release: Some(release), durable: true, ..plain };
                return Ok(Some(Self::Tpcc(tpcc(&setup, *terminals)?)));
            }
            Job::Hackbench(_) | Job::Command(_) => return Ok(None),
        };
        server.database().map_or(Ok(()), |database| database.fill(MIB))?;
        Ok(Some(server))
    }

    fn database(&self) -> Option<&dyn Database> {
        match self {
            Self::Postgres(server) => Some(server),
            Self::Redis(server) => Some(server),
            Self::Tpcc(_) => None,
        }
    }

    pub(super) fn pid(&self) -> Option<u32> {
        match self {
            Self::Tpcc(prepared) => prepared.databases.first().map(|database| database.pid),
            _ => self.database()?.pid(),
        }
    }

    /// What it has done so far, for servers that count at once.
    fn count(&self) -> Result<Option<f64>, SceneError> {
        let server = match self {
            Self::Redis(server) => server,
            // Their clients tell a rate every second.
            Self::Tpcc(_) | Self::Postgres(_) => return Ok(None),
        };
        let info = server.command(["info", "stats"])?;
        let count = info.lines().find_map(|line| line.strip_prefix("total_commands_processed:"));
        Ok(count.and_then(|count| count.trim().parse().ok()))
    }
}

/// The load of a busy instance.
pub(super) enum Busy {
    Clients(Load),
    Messages(Messages),
    Command(Child, Instant),
}

impl Busy {
    /// Starts the load of a job for so long.
    pub(super) fn start(
        job: &Job,
        server: Option<&Server>,
        clients: u32,
        length: Duration,
    ) -> Result<Self, Trouble> {
        let failed = |error: std::io::Error| Trouble::of(&error);
        match (job, server) {
            (Job::Hackbench(groups), _) => {
                Messages::start(*groups).map(Self::Messages).map_err(failed)
            }
            (Job::Command(command), _) => {
                let mut shell = Command::new("/bin/sh");
                shell.args(["-c", command]).stdin(Stdio::null()).stdout(Stdio::null());
                Ok(Self::Command(shell.spawn().map_err(failed)?, Instant::now()))
            }
            (_, Some(Server::Tpcc(prepared))) => {
                let load = prepared.load(length.as_secs().max(1) as u32);
                load.map(Self::Clients).map_err(|error| Trouble::of(&error))
            }
            (_, Some(server)) => {
                let seconds = length.as_secs().max(1) as u32;
                let database = server.database().ok_or_else(|| {
                    Trouble::Failed("the server of this instance takes no rows".to_owned())
                })?;
                let work = Work { kind: Kind::Reads, clients };
                let load = database.work(work, MIB, seconds);
                load.map(Self::Clients).map_err(|error| Trouble::of(&error))
            }
            (_, None) => {
                Err(Trouble::Failed("the server of this instance does not run".to_owned()))
            }
        }
    }

    /// The process that all of the load descends from.
    pub(super) fn pid(&self) -> Option<u32> {
        match self {
            Self::Clients(load) => load.pid(),
            Self::Messages(messages) => Some(messages.pid()),
            Self::Command(child, _) => Some(child.id()),
        }
    }

    /// Work so far, where something counts it at once.
    pub(super) fn count(&self, server: Option<&Server>) -> Result<Option<f64>, Trouble> {
        match (self, server) {
            (Self::Messages(messages), _) => Ok(Some(messages.count())),
            (_, Some(server)) => server.count().map_err(|error| Trouble::of(&error)),
            _ => Ok(None),
        }
    }

    /// Work per second in the last so many seconds, where the client tells that.
    pub(super) fn last_rate(&self, seconds: usize) -> Option<f64> {
        let Self::Clients(load) = self else { return None };
        let each = load.each_second();
        let last = each.get(each.len().checked_sub(seconds)?..)?;
        (!last.is_empty()).then(|| last.iter().sum::<f64>() / last.len() as f64)
    }

    /// Waits for a command, and gives how often it would run in a second.
    pub(super) fn wait(&mut self, interrupt: &Interrupt) -> Result<f64, Trouble> {
        let Self::Command(child, since) = self else {
            return Err(Trouble::Failed("this load does not end by itself".to_owned()));
        };
        loop {
            if let Some(status) = child.try_wait().map_err(|error| Trouble::of(&error))? {
                if !status.success() {
                    return Err(Trouble::Failed(format!("the command ended with {status}")));
                }
                return Ok(since.elapsed().as_secs_f64().recip());
            }
            interrupt.sleep(Duration::from_millis(5))?;
        }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        if let Self::Command(child, _) = self {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
