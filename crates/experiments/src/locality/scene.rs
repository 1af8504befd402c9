//! The database with its limits, and what is done to it.

use super::action::Action;
use super::error::LocalityError;
use super::limits::{Limits, Unlimited};
use super::schema;
use super::server::{CLIENTS, Server, TABLES, data};
use std::path::Path;
use std::time::Duration;
use untax_core::Bytes;
use untax_scenes::{Limit, Override, Setting, limit_device};
use untax_trials::Interrupt;

/// The database within its limits; all is taken away when this is dropped.
pub(super) struct Scene {
    // In this order: limits go first, so that the server can end in good order and soon.
    more_time: Option<Override>,
    time: Setting,
    _disk: Setting,
    _memory: Setting,
    pub(super) server: Server,
    unlimited: Unlimited,
    limits: Limits,
    memory: Bytes,
}

/// How long limits are in force before the first window.
const SETTLE: Duration = Duration::from_secs(3);

impl Scene {
    /// Starts the database and limits it, while `say` hears of each part. Clients go on for so long.
    pub(super) fn start(
        base: &Path,
        load: Duration,
        interrupt: &Interrupt,
        mut say: impl FnMut(&str),
    ) -> Result<Self, LocalityError> {
        say("two disks, a server and its tables");
        let mut server = Server::start(base, load)?;
        interrupt.check()?;
        say("what it does without limits");
        let memory = server.memory(interrupt)?;
        let memory_limit = server.group.limit_memory(memory.0)?;
        let unlimited = server.count(interrupt)?;
        let limits = Limits::of(&unlimited)?;
        let (number, per_s) = (server.slow.number()?, limits.slow_reads_per_s);
        let disk = limit_device(&number, &server.group, Limit::ReadOperations, per_s)?;
        let time = server.group.limit_cpus(limits.cpus[0])?;
        interrupt.sleep(SETTLE)?;
        Ok(Self {
            more_time: None,
            time,
            _disk: disk,
            _memory: memory_limit,
            server,
            unlimited,
            limits,
            memory,
        })
    }

    /// Does something to it.
    pub(super) fn act(&mut self, action: Action) -> Result<(), LocalityError> {
        match action {
            Action::MoreTime => {
                let cpus = self.limits.cpus[1];
                self.more_time = Some(self.server.group.change_cpus(&self.time, cpus)?);
                Ok(())
            }
            Action::MoveTable(table) => self.server.move_table(table),
        }
    }

    /// What the result says of it.
    pub(super) fn figures(&self) -> schema::Scene {
        schema::Scene {
            clients: CLIENTS,
            tables: TABLES,
            data_bytes: data(),
            memory_limit_bytes: self.memory,
            unlimited_per_s: self.unlimited.per_s,
            cpu_s_of_request: self.unlimited.cpu_s_of_request,
            reads_of_request: self.unlimited.reads_of_request,
            cpus_before: self.limits.cpus[0],
            cpus_after: self.limits.cpus[1],
            slow_reads_per_s: self.limits.slow_reads_per_s,
        }
    }
}
