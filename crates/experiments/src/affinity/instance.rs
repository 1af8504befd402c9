//! Instances and their loads.

use super::hackbench::Messages;
use crate::platform::Trouble;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use untax_scenes::{Database, Kind, Load, Postgres, Redis, SceneError, Work};
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
    /// A shell command.
    Command(String),
}

/// A server that runs, busy or not.
pub(super) enum Server {
    Postgres(Postgres),
    Redis(Redis),
}

impl Server {
    /// Starts a server with rows; `None` for jobs that have none.
    pub(super) fn start(job: &Job) -> Result<Option<Self>, SceneError> {
        let server = match job {
            Job::Postgres => {
                let settings = [("shared_buffers", "256MB"), ("huge_pages", "off")];
                Self::Postgres(Postgres::start(untax_scenes::Runtime::Host, &settings)?)
            }
            Job::Redis => Self::Redis(Redis::start(untax_scenes::Runtime::Host, &[])?),
            Job::Hackbench(_) | Job::Command(_) => return Ok(None),
        };
        server.database().fill(MIB)?;
        Ok(Some(server))
    }

    fn database(&self) -> &dyn Database {
        match self {
            Self::Postgres(server) => server,
            Self::Redis(server) => server,
        }
    }

    pub(super) fn pid(&self) -> Option<u32> {
        self.database().pid()
    }

    /// What it has done so far, for servers that count at once.
    fn count(&self) -> Result<Option<f64>, SceneError> {
        let Self::Redis(server) = self else { return Ok(None) };
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
            (_, Some(server)) => {
                let seconds = length.as_secs().max(1) as u32;
                let work = Work { kind: Kind::Reads, clients };
                let load = server.database().work(work, MIB, seconds);
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
