//! One database as its engine sees it while describing it, and what the engine says.

use crate::answer::Answer;
use crate::memory::Memory;
use crate::process_table::{Process, Table};
use untax_core::Reading::{self, Absent};
use untax_core::database::{Accesses, Cgroup, HugePageUse, KeyLookups, Model, Settings};
use untax_core::host::HostFacts;
use untax_core::{Bytes, Interval};
use untax_host::Host;
use untax_host::process::Status;

/// What was read of one database so far.
pub(crate) struct DatabaseView<'a> {
    pub host: &'a Host,
    pub facts: &'a HostFacts,
    pub table: &'a Table,
    /// The main process.
    pub main: &'a Process,
    /// All its processes, the main one included, ascending.
    pub members: Vec<u32>,
    /// `status` of the main process.
    pub status: Reading<Status>,
    /// Where the main process sits.
    pub cgroup: Reading<Cgroup>,
    /// Where the main process works: engines change to their data directory.
    pub directory: Reading<String>,
    /// What the server answered over its socket.
    pub answer: Reading<Answer>,
    /// Filled before the engine describes the database.
    pub settings: Reading<Settings>,
    /// Filled before the engine describes the database.
    pub memory: Memory,
}

impl DatabaseView<'_> {
    pub fn pid(&self) -> u32 {
        self.main.stat.pid
    }

    /// The main process's arguments, none when they cannot be read.
    pub fn arguments(&self) -> &[String] {
        self.main.arguments.value().map_or(&[], Vec::as_slice)
    }

    /// The processes of this database, those included that ended and wait for their parent.
    pub fn processes(&self) -> impl Iterator<Item = &Process> {
        self.members.iter().filter_map(|pid| self.table.get(*pid))
    }

    /// A setting by name, where it is known.
    pub fn setting(&self, name: &str) -> Option<&str> {
        self.settings.value()?.values.get(name).map(String::as_str)
    }

    /// A field of the main process's `status`.
    pub fn status<T>(&self, name: &str, field: impl Fn(&Status) -> Option<T>) -> Reading<T> {
        let pid = self.pid();
        self.status.as_ref().and_then(|status| match field(status) {
            Some(value) => Reading::Present(value),
            None => Absent(format!("/proc/{pid}/status has no {name}")),
        })
    }

    /// Where the engine's own count of accesses stands, and that of those by a key where it has one.
    pub fn accesses(
        &self,
        counter: &str,
        pages_each: Interval,
        by_key: Option<&ByKey>,
    ) -> Reading<Accesses> {
        let lookups = |by_key: &ByKey| {
            let count = *self.answer.value()?.counts.get(by_key.count)?;
            let ByKey { counter, blocks_each, pages_each, .. } = *by_key;
            Some(KeyLookups { count, counter: counter.to_owned(), blocks_each, pages_each })
        };
        self.answer.as_ref().and_then(|answer| answer.accesses.clone()).map(|count| Accesses {
            count,
            counter: counter.to_owned(),
            pages_each,
            by_key: by_key.and_then(lookups),
        })
    }
}

/// How an engine counts look-ups by a key.
pub(crate) struct ByKey {
    /// Its name among the counts that the server tells.
    pub count: &'static str,
    /// Its name for a person.
    pub counter: &'static str,
    /// See [`KeyLookups::blocks_each`].
    pub blocks_each: f64,
    /// See [`KeyLookups::pages_each`].
    pub pages_each: Interval,
}

/// What only the engine can say of a database.
pub(crate) struct Description {
    pub product: String,
    pub version: Reading<String>,
    pub model: Model,
    pub connections: Reading<u32>,
    pub data_directory: Reading<String>,
    /// The memory that holds the data.
    pub data_bytes: Reading<Bytes>,
    /// The page size behind most of it.
    pub page_size_bytes: Reading<Bytes>,
    pub huge_pages: Reading<HugePageUse>,
    pub accesses: Reading<Accesses>,
}
