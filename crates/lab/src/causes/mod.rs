//! The causes that the lab can inject: one file each, its name being the id of the rule that is to
//! find it.

mod conntrack_pressure;
mod cpu_contended;
mod cpu_throttled;
mod dirty_burst;
mod disk_slow;
mod duplicate_machine_id;
mod io_hang;
mod lock_contended;
mod mysql_temp_files;
mod neighbour_reclaim;
mod none;
mod none_idle;
mod oom_near;
mod page_table_bloat;
mod postgres_full_page_writes;
mod reclaim_stall;
mod redis_network_bound;
mod sandboxed_runtime;
mod shared_filesystem;
mod short_connections;
mod small_pages;
mod tcp_retransmit;
mod thp_mode;
mod too_many_connections;

use crate::LabError;
use crate::scene::Scene;
use std::any::Any;
use untax_scenes::{Disk, Engine, Place, Settings, Work, find_program, is_root};

/// A problem that the lab can make, and the server and load that suffer from it.
#[derive(Debug)]
pub struct Cause {
    /// The id of the rule that is to find it; `none` and `none-idle` are no problem.
    pub id: &'static str,
    /// One line: what is done to the database.
    pub summary: &'static str,
    /// The same of its mild dose, which takes about as much as platforms do; `None` when there is one
    /// dose alone.
    pub mild: Option<&'static str>,
    /// The engines that it is put on.
    pub engines: &'static [Engine],
    /// Why not on each of the others: they do not suffer from it, or the lab does not do it to them.
    pub left_out: &'static [(Engine, &'static str)],
    /// What it needs of the machine.
    pub needs: &'static [Need],
    /// What it takes when that is no time of the database's: then its finding has no tax.
    pub takes: Option<&'static str>,
    /// The server and the load.
    pub plan: fn(Engine, Dose) -> Plan,
    /// Makes the problem until what it returns is dropped.
    pub inject: fn(&Scene) -> Result<Injected, LabError>,
}

/// How much of a problem is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dose {
    /// So much that nothing else counts beside it.
    Strong,
    /// About as much as platforms take.
    Mild,
}

impl Dose {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Strong, Self::Mild];

    /// What goes with this dose.
    pub(crate) fn of<T>(self, strong: T, mild: T) -> T {
        match self {
            Self::Strong => strong,
            Self::Mild => mild,
        }
    }

    /// As results name it.
    pub fn id(self) -> &'static str {
        self.of("strong", "mild")
    }
}

/// What a cause needs of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// To be root.
    Root,
    /// A program, and the Debian package that has it.
    Tool(&'static str, &'static str),
    /// Loop devices.
    LoopDevice,
}

impl Need {
    /// Why the machine does not have it; `None` if it has, as far as can be told beforehand.
    fn unmet(self) -> Option<String> {
        match self {
            Self::Root if is_root() => None,
            Self::Root => Some("it needs root; run it with sudo".to_owned()),
            Self::Tool(name, package) => find_program(name, package).err().map(|e| e.to_string()),
            Self::LoopDevice if Disk::is_possible() => None,
            Self::LoopDevice => Some("it needs loop devices; this kernel has none".to_owned()),
        }
    }
}

/// The server and the load that a cause wants.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
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
    /// Where it runs, and where instead while the cause is on.
    pub place: Place,
    /// See there.
    pub cause_place: Option<Place>,
    /// Huge pages of 2 MiB, reserved before the server starts.
    pub huge_pages: u64,
    /// How long the load runs before a check, and before a trial after a restart.
    pub settling_s: u64,
}

/// What undoes a cause when dropped, in this order.
#[derive(Default)]
pub struct Injected(Vec<Box<dyn Any>>);

impl Injected {
    /// Nothing to undo.
    pub fn nothing() -> Self {
        Self::default()
    }

    /// Undone by dropping this.
    pub fn by(guard: impl Any) -> Self {
        Self(vec![Box::new(guard)])
    }

    /// Then by dropping this.
    #[must_use]
    pub fn and(mut self, guard: impl Any) -> Self {
        self.0.push(Box::new(guard));
        self
    }
}

/// Every cause, in the order in which help names them.
pub static CAUSES: &[Cause] = &[
    none::CAUSE,
    none_idle::CAUSE,
    cpu_throttled::CAUSE,
    cpu_contended::CAUSE,
    reclaim_stall::CAUSE,
    disk_slow::CAUSE,
    io_hang::CAUSE,
    dirty_burst::CAUSE,
    shared_filesystem::CAUSE,
    lock_contended::CAUSE,
    short_connections::CAUSE,
    too_many_connections::CAUSE,
    small_pages::CAUSE,
    page_table_bloat::CAUSE,
    thp_mode::CAUSE,
    tcp_retransmit::CAUSE,
    oom_near::CAUSE,
    neighbour_reclaim::CAUSE,
    mysql_temp_files::CAUSE,
    postgres_full_page_writes::CAUSE,
    redis_network_bound::CAUSE,
    conntrack_pressure::CAUSE,
    duplicate_machine_id::CAUSE,
    sandboxed_runtime::CAUSE,
];

impl Cause {
    /// The cause of that id.
    pub fn find(id: &str) -> Option<&'static Self> {
        CAUSES.iter().find(|cause| cause.id == id)
    }

    /// Whether nothing is to be found.
    pub fn is_none(&self) -> bool {
        self.id.starts_with("none")
    }

    /// Whether there is such a dose of it; of nothing there are all.
    pub fn has(&self, dose: Dose) -> bool {
        dose == Dose::Strong || self.mild.is_some() || self.is_none()
    }

    /// Why this machine cannot do it to that engine in that dose; `None` if it can, as far as can be
    /// told beforehand.
    pub fn impossible(&self, engine: Engine, dose: Dose) -> Option<String> {
        if !self.has(dose) {
            return Some("it has one dose alone; leave out --dose".to_owned());
        }
        if let Some((_, why)) = self.left_out.iter().find(|(other, _)| *other == engine) {
            let others: Vec<&str> = self.engines.iter().map(|engine| engine.id()).collect();
            return Some(format!("{why}; try {}", others.join(", ")));
        }
        self.needs.iter().find_map(|need| need.unmet())
    }
}

/// Huge pages for 256 MiB of buffers and what engines need beside them.
const POOL_PAGES: u64 = 160;

impl Plan {
    /// A server with nothing to complain of: few clients, all data in its own memory, on huge pages
    /// where the engine can have them.
    pub(crate) fn calm(engine: Engine) -> Self {
        let settings: Settings = match engine {
            Engine::Postgres => &[("shared_buffers", "256MB"), ("huge_pages", "on")],
            Engine::Mysql => &[("innodb_buffer_pool_size", "256M"), ("large-pages", "1")],
            Engine::Redis => &[],
        };
        Self {
            settings,
            cause_settings: None,
            work: Some(Work { kind: untax_scenes::Kind::Reads, clients: 8 }),
            cause_work: None,
            fill_mebibytes: 150,
            durable: false,
            disk_mebibytes: None,
            disk_bytes_per_s: None,
            disk_requests_per_s: None,
            network: false,
            link_bits_per_s: None,
            pod_left_bytes: None,
            place: Place::Host,
            cause_place: None,
            settling_s: 2,
            huge_pages: if engine == Engine::Redis { 0 } else { POOL_PAGES },
        }
    }

    /// The same in a mild dose with clients that think, so that CPUs and disks have time to spare, as
    /// those of most servers do: where they have none, it is they that decide what removing a cause
    /// brings. The clients of Redis cannot think.
    pub(crate) fn unhurried(self, engine: Engine, dose: Dose) -> Self {
        let thinking = Work { kind: untax_scenes::Kind::Thoughtful, clients: 16 };
        match (engine, dose) {
            (Engine::Redis, _) | (_, Dose::Strong) => self,
            _ => Self { work: Some(thinking), ..self },
        }
    }

    /// A server that flushes every commit to a disk of its own, and clients that commit.
    pub(crate) fn durable(engine: Engine) -> Self {
        let calm = Self::calm(engine);
        let settings: Settings = match engine {
            Engine::Redis => &[("appendonly", "yes"), ("appendfsync", "always")],
            // A log that needs no flushing of pages while somebody looks.
            Engine::Mysql => &[
                ("innodb_buffer_pool_size", "256M"),
                ("large-pages", "1"),
                ("innodb_log_file_size", "1G"),
            ],
            Engine::Postgres => calm.settings,
        };
        Self {
            settings,
            work: Some(Work { kind: untax_scenes::Kind::Writes, clients: 8 }),
            durable: true,
            disk_mebibytes: Some(4096),
            ..calm
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cause_is_complete_and_found_by_its_id() {
        for cause in CAUSES {
            assert!(std::ptr::eq(Cause::find(cause.id).unwrap(), cause), "{} twice", cause.id);
            let file = format!(
                "{}/src/causes/{}.rs",
                env!("CARGO_MANIFEST_DIR"),
                cause.id.replace('-', "_")
            );
            assert!(std::path::Path::new(&file).exists(), "{file}");
            assert!(!cause.summary.is_empty(), "{}", cause.id);
            assert!(!cause.engines.is_empty(), "{}", cause.id);
            assert!(cause.takes.is_none_or(|takes| !takes.is_empty()), "{}", cause.id);
        }
    }

    #[test]
    fn every_engine_suffers_or_says_why_it_is_left_out() {
        for cause in CAUSES {
            for engine in Engine::ALL {
                let mut whys = cause.left_out.iter().filter(|(other, _)| *other == engine);
                let (why, more) = (whys.next(), whys.next());
                let place = format!("{} on {}", cause.id, engine.id());
                assert!(
                    why.is_none() == cause.engines.contains(&engine) && more.is_none(),
                    "{place}"
                );
                let Some((_, why)) = why else { continue };
                let is_told = ["the lab does not do it to ", " does not suffer from it: "];
                assert!(is_told.iter().any(|words| why.contains(words)), "{place}: {why}");
                let refused = cause.impossible(engine, Dose::Strong).unwrap();
                assert!(refused.starts_with(why), "{place}: {refused}");
            }
        }
    }

    #[test]
    fn what_comes_from_its_network_is_put_on_every_engine() {
        for id in ["tcp-retransmit", "conntrack-pressure"] {
            assert_eq!(Cause::find(id).unwrap().engines, Engine::ALL, "{id}");
        }
    }

    #[test]
    fn a_dose_that_there_is_not_says_so() {
        let why = |id| Cause::find(id)?.impossible(Engine::Redis, Dose::Mild);
        assert!(why("thp-mode").is_some_and(|why| why.contains("one dose")));
        assert!(!why("io-hang").is_some_and(|why| why.contains("one dose")));
        assert!(!why("none").is_some_and(|why| why.contains("one dose")));
    }

    #[test]
    fn guards_are_dropped_in_order() {
        use std::sync::{Arc, Mutex};
        struct Guard(u8, Arc<Mutex<Vec<u8>>>);
        impl Drop for Guard {
            fn drop(&mut self) {
                self.1.lock().unwrap().push(self.0);
            }
        }
        let dropped = Arc::default();
        drop(Injected::by(Guard(1, Arc::clone(&dropped))).and(Guard(2, Arc::clone(&dropped))));
        assert_eq!(*dropped.lock().unwrap(), [1, 2]);
    }
}
