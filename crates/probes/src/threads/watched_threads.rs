//! Which threads are watched.

use super::clock::now;
use super::kernel_types::{self, MAX_DATABASES, NewThread, STRANGER, UNSEEN};
use super::state::Threads;
use super::watched_database::WatchedDatabase;
use super::{samples, syscalls};
use libbpf_rs::{ErrorExt as _, ErrorKind, MapCore, MapFlags};
use untax_core::Database;
use untax_core::activity::Polling;
use untax_core::database::{Model, ProcessRole};
use untax_engines::process_role;

impl Threads {
    /// Watches these databases and no others.
    pub(super) fn follow(&mut self, databases: &[Database]) -> libbpf_rs::Result<()> {
        for index in self.slots.keep(databases) {
            self.watched.remove(&index);
            self.forget(index)?;
        }
        for database in databases {
            let index = self.slots.of(database);
            if index as usize >= MAX_DATABASES {
                continue;
            }
            let limited = is_limited(database);
            let watched = self.watched.get(&index);
            let known = watched.is_some();
            // Every thread knows whether there is a limit.
            if watched.is_some_and(|watched| watched.limited != limited) {
                self.forget(index)?;
            }
            let data_known = match self.watched.get(&index) {
                Some(watched) => watched.data_known,
                None => samples::set_data_range(&self.bpf, &self.host, index, database)?,
            };
            let added = self.add(index, database, known)?;
            let watched = self.watched.entry(index).or_insert_with(|| WatchedDatabase {
                database: database.id.clone(),
                pid: database.pid,
                threads: added,
                data_known,
                limited,
                slices: Vec::new(),
                opened_ns: Vec::new(),
                total_ns: Vec::new(),
            });
            watched.limited = limited;
            if known && let Some(threads) = database.threads.value() {
                watched.threads = *threads;
            }
        }
        Ok(())
    }

    /// Lets go of the threads that are charged to a number, so that it can be given to another
    /// database.
    fn forget(&self, index: u32) -> libbpf_rs::Result<()> {
        let map = self.bpf.map("threads")?;
        let keys: Vec<Vec<u8>> = map.keys().collect();
        for key in keys {
            let thread = map.lookup(&key, MapFlags::ANY)?;
            if thread.is_some_and(|thread| kernel_types::database(&thread) == Some(index)) {
                // It may have ended just now.
                let _ = map.delete(&key);
            }
        }
        Ok(())
    }

    /// Watches all threads that a database has now; those that they start are watched with them.
    /// Of one that is `known`, only processes that there was no room for are new. Gives how many
    /// were added.
    fn add(&self, index: u32, database: &Database, known: bool) -> libbpf_rs::Result<u32> {
        let map = self.bpf.map("threads")?;
        let any = NewThread {
            since_ns: 0,
            database: index,
            doing: UNSEEN,
            polling: Polling::Never,
            limited: is_limited(database),
            model: database.model,
            aside: false,
            call: 0,
        };
        let mut threads = 0;
        let mut pids = database.pids.clone();
        let mut next = 0;
        while let Some(pid) = pids.get(next).copied() {
            next += 1;
            if known && map.lookup(&pid.to_ne_bytes(), MapFlags::ANY)?.is_some() {
                continue;
            }
            let role = database.roles.get(&pid).copied().or_else(|| self.role(database, pid));
            let helps = role == Some(ProcessRole::Helper);
            let aside = helps || role == Some(ProcessRole::FedByPeers);
            let asked = role == Some(ProcessRole::Client);
            // A process that ended since has no threads.
            let names = self.host.names(&format!("/proc/{pid}/task"));
            for tid in names.into_value().iter().flatten().filter_map(|name| name.parse().ok()) {
                let (call, doing) = syscalls::current_wait(&self.host, pid, tid)
                    .map_or((0, UNSEEN), |(number, doing)| (number + 1, doing as u8));
                // It may wait for a disk for long before it polls for the next request.
                let polling = match any.model {
                    Model::Loop if tid == database.pid => Polling::Timed,
                    _ if asked && tid == pid => Polling::Forever,
                    // It may be at work for long before it polls.
                    _ if helps || self.helps(database, pid, tid) => Polling::Helper,
                    _ => Polling::Never,
                };
                let new_thread = NewThread { since_ns: now(), doing, polling, aside, call, ..any };
                threads += u32::from(self.insert(tid, &new_thread)?);
            }
            // Those that it started since the snapshot looked; what it starts from now on is
            // watched with it.
            let path = format!("/proc/{pid}/task/{pid}/children");
            let children = self.host.text(&path).into_value().unwrap_or_default();
            let children = children.split_ascii_whitespace().filter_map(|word| word.parse().ok());
            let new: Vec<u32> = children.filter(|child| !pids.contains(child)).collect();
            pids.extend(new);
        }
        Ok(threads)
    }

    /// What a process is for of which the snapshot does not tell: it was started since, or had no title yet.
    fn role(&self, database: &Database, pid: u32) -> Option<ProcessRole> {
        if database.model != Model::Process {
            return None;
        }
        let title = self.host.text(&format!("/proc/{pid}/cmdline")).into_value()?;
        process_role(&database.engine, title.trim_end_matches('\0'))
    }

    /// Whether a thread of a server that serves each client in one has the name of one that helps these.
    fn helps(&self, database: &Database, pid: u32, tid: u32) -> bool {
        if database.model != Model::Thread {
            return false;
        }
        let name = self.host.text(&format!("/proc/{pid}/task/{tid}/comm")).into_value();
        let role = name.and_then(|name| process_role(&database.engine, name.trim_end()));
        role == Some(ProcessRole::Helper)
    }

    /// Whether a thread was not watched yet: it may have been started a moment ago by one that is. One that
    /// was watched because others waited for it is its database's from now on.
    fn insert(&self, tid: u32, new_thread: &NewThread) -> libbpf_rs::Result<bool> {
        let map = self.bpf.map("threads")?;
        let key = tid.to_ne_bytes();
        let watched = map.lookup(&key, MapFlags::ANY)?;
        if watched.is_some_and(|thread| kernel_types::database(&thread) == Some(STRANGER)) {
            return map.update(&key, &new_thread.bytes(), MapFlags::EXIST).map(|()| true);
        }
        match map.update(&key, &new_thread.bytes(), MapFlags::NO_EXIST) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(error.context("there is no room for all of them")),
        }
    }
}

/// Whether its control group may be limited: one whose limits are not known may.
fn is_limited(database: &Database) -> bool {
    let cgroup = database.cgroup.value();
    cgroup.and_then(|cgroup| cgroup.cpu.value()).is_none_or(|limits| !limits.is_empty())
}
