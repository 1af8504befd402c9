//! The server, the load, the disk and the network that a cause needs.

use crate::dose::Dose;
use untax_scenes::{Engine, Kind, Runtime, Settings, Work};

/// The server and the load that a cause wants.
#[derive(Debug, Clone, Copy)]
pub struct Environment {
    /// The server's settings.
    pub settings: Settings<'static>,
    /// Other settings while the cause is on, for a cause that is one of settings.
    pub cause_settings: Option<Settings<'static>>,
    /// The load; none for an idle server.
    pub work: Option<Work>,
    /// Another load while the cause is on, for a cause that is one of load.
    pub cause_work: Option<Work>,
    /// How much data there are.
    pub fill_mebibytes: u64,
    /// Whether data are to survive a crash.
    pub durable: bool,
    /// The size of a disk of the server's own.
    pub disk_mebibytes: Option<u64>,
    /// What that disk writes in a second at most, with the cause and without.
    pub disk_bytes_per_s: Option<u64>,
    /// How many requests of each direction that disk does in a second at most, without the cause.
    pub disk_requests_per_s: Option<u64>,
    /// Whether the server and its clients have a network of their own, and speak TCP.
    pub network: bool,
    /// What that network carries a second, with the cause and without.
    pub link_bits_per_s: Option<u64>,
    /// What the memory limit of the control group that it shares with neighbours leaves to all of them
    /// beside what the server itself holds, with the cause and without; none without such a group.
    pub pod_left_bytes: Option<u64>,
    /// The runtime of the server without the cause.
    pub runtime: Runtime,
    /// Its runtime while the cause is on, where that is another one.
    pub cause_runtime: Option<Runtime>,
    /// Huge pages of 2 MiB, reserved before the server starts.
    pub huge_pages: u64,
    /// Whether idle CPUs are kept awake without the cause, and sleep with it.
    pub idle_cpus: bool,
    /// How long the load runs before a check, and before a trial after a restart.
    pub settling_s: u64,
}

/// Huge pages for 256 MiB of buffers and what engines need beside them.
const POOL_PAGES: u64 = 160;

impl Environment {
    /// A server with nothing to complain of: few clients, all data in its own memory, on huge pages
    /// where the engine can have them.
    pub(crate) fn healthy(engine: Engine) -> Self {
        let settings: Settings = match engine {
            Engine::Postgres => &[("shared_buffers", "256MB"), ("huge_pages", "on")],
            Engine::Mysql => &[("innodb_buffer_pool_size", "256M"), ("large-pages", "1")],
            Engine::Redis => &[],
        };
        Self {
            settings,
            cause_settings: None,
            work: Some(Work { kind: Kind::Reads, clients: 8 }),
            cause_work: None,
            fill_mebibytes: 150,
            durable: false,
            disk_mebibytes: None,
            disk_bytes_per_s: None,
            disk_requests_per_s: None,
            network: false,
            link_bits_per_s: None,
            pod_left_bytes: None,
            runtime: Runtime::Host,
            cause_runtime: None,
            idle_cpus: false,
            settling_s: 2,
            huge_pages: if engine == Engine::Redis { 0 } else { POOL_PAGES },
        }
    }

    /// The same in a mild dose with clients that think, so that CPUs and disks have time to spare, as
    /// those of most servers do: where they have none, it is they that decide what removing a cause
    /// brings. The clients of Redis cannot think.
    pub(crate) fn with_think_time(self, engine: Engine, dose: Dose) -> Self {
        let thinking = Work { kind: Kind::WithThinkTime, clients: 16 };
        match (engine, dose) {
            (Engine::Redis, _) | (_, Dose::Strong) => self,
            _ => Self { work: Some(thinking), ..self },
        }
    }

    /// The same with what another cause wants too, whose load and settings are there all the time.
    pub(crate) fn beside(self, other: Self) -> Self {
        let work =
            if self.cause_work.is_some() { self.work } else { other.cause_work.or(self.work) };
        Self {
            settings: if self.disk_mebibytes.is_some() { self.settings } else { other.settings },
            work,
            fill_mebibytes: self.fill_mebibytes.max(other.fill_mebibytes),
            durable: self.durable || other.durable,
            disk_mebibytes: self.disk_mebibytes.max(other.disk_mebibytes),
            disk_bytes_per_s: self.disk_bytes_per_s.or(other.disk_bytes_per_s),
            disk_requests_per_s: self.disk_requests_per_s.or(other.disk_requests_per_s),
            network: self.network || other.network,
            ..self
        }
    }

    /// A server that flushes every commit to a disk of its own, and clients that commit.
    pub(crate) fn durable(engine: Engine) -> Self {
        let healthy = Self::healthy(engine);
        let settings: Settings = match engine {
            Engine::Redis => &[("appendonly", "yes"), ("appendfsync", "always")],
            // A log that needs no flushing of pages while somebody looks.
            Engine::Mysql => &[
                ("innodb_buffer_pool_size", "256M"),
                ("large-pages", "1"),
                ("loose-innodb_log_file_size", "1G"),
                ("loose-innodb_redo_log_capacity", "1G"),
            ],
            Engine::Postgres => healthy.settings,
        };
        Self {
            settings,
            work: Some(Work { kind: Kind::Writes, clients: 8 }),
            durable: true,
            disk_mebibytes: Some(4096),
            ..healthy
        }
    }
}
