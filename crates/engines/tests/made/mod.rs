//! A host that is made up, process by process.

#![expect(clippy::unwrap_used, reason = "a made-up host is as the test says")]
#![allow(dead_code, reason = "each test file uses its own part of it")]

use std::collections::BTreeMap;
use untax_core::database::Database;
use untax_core::host::HostFacts;
use untax_core::reading::Gap;
use untax_core::{Bytes, Reading};
use untax_engines::{Asker, Discovered, Selection, discover};
use untax_host::{Host, Record, facts};

/// A host under construction. What is said first of a file stays.
#[derive(Default)]
pub struct Made {
    record: Record,
    files: BTreeMap<String, String>,
}

/// One process of it.
pub struct Process<'a> {
    pub pid: u32,
    pub parent: u32,
    pub comm: &'a str,
    pub exe: &'a str,
    /// Arguments, separated by `|`.
    pub command: &'a str,
}

impl Made {
    pub fn new() -> Self {
        let made = Self::default().answer("clock_ticks_per_second", &Reading::Present(100_u64));
        made.file("/proc/meminfo", "Hugepagesize:       2048 kB\n").process(&Process {
            pid: 1,
            parent: 0,
            comm: "init",
            exe: "/sbin/init",
            command: "/sbin/init",
        })
    }

    pub fn file(mut self, path: &str, text: &str) -> Self {
        self.files.entry(path.to_owned()).or_insert(text.to_owned());
        self
    }

    pub fn link(mut self, path: &str, target: &str) -> Self {
        self.record = self.record.with_link(path, target);
        self
    }

    pub fn answer<T: serde::Serialize>(mut self, key: &str, answer: &Reading<T>) -> Self {
        self.record = self.record.with_answer(key, answer);
        self
    }

    pub fn denied(mut self, path: &str) -> Self {
        self.record.gaps.insert(path.to_owned(), Gap::Denied(path.to_owned()));
        self
    }

    /// A process that has used 2 s as `stat` says and 2.5 s as `schedstat` says, with 1000 minor
    /// faults, and children that it waited for, with 5 s and 200 faults.
    pub fn process(self, process: &Process) -> Self {
        let Process { pid, parent, comm, exe, command } = process;
        let at = |name: &str| format!("/proc/{pid}/{name}");
        let stat = format!(
            "{pid} ({comm}) S {parent} {pid} {pid} 0 -1 4194304 1000 200 3 4 150 50 300 200 20 0 1 \
             0 {} 0 0",
            u64::from(*pid) * 10
        );
        let status = "Uid:\t105\t105\t105\t105\nGid:\t113\t113\t113\t113\nVmRSS:\t8192 kB\n\
                      RssAnon:\t4096 kB\nRssShmem:\t1024 kB\nVmPTE:\t100 kB\n\
                      HugetlbPages:\t0 kB\nThreads:\t1\n";
        let command = command.replace('|', "\0");
        let made = self
            .file(&at("stat"), &stat)
            .file(&at("status"), &format!("{status}NSpid:\t{pid}\n"))
            .file(&at("schedstat"), "2500000000 700000000 9\n")
            .file(&at("cmdline"), &command)
            .file(&at("maps"), "");
        if exe.is_empty() { made } else { made.link(&at("exe"), exe) }
    }

    /// A PostgreSQL postmaster with its data directory.
    pub fn postmaster(self, pid: u32, parent: u32, data: &str) -> Self {
        let exe = "/usr/lib/postgresql/15/bin/postgres";
        let command = format!("{exe}|-D|{data}");
        let process = Process { pid, parent, comm: "postgres", exe, command: &command };
        self.process(&process).link(&format!("/proc/{pid}/cwd"), data)
    }

    /// A child of a postmaster.
    pub fn backend(self, pid: u32, parent: u32, title: &str) -> Self {
        let exe = "/usr/lib/postgresql/15/bin/postgres";
        self.process(&Process { pid, parent, comm: "postgres", exe, command: title })
    }

    pub fn select(self, selection: &Selection) -> Reading<Vec<Database>> {
        self.select_with(selection, |_| {})
    }

    pub fn select_with(
        self,
        selection: &Selection,
        change: impl FnOnce(&mut HostFacts),
    ) -> Reading<Vec<Database>> {
        self.discovered(selection, change).map(|found| found.databases)
    }

    pub fn discovered(
        self,
        selection: &Selection,
        change: impl FnOnce(&mut HostFacts),
    ) -> Reading<Discovered> {
        let mut record = self.record;
        record.links.retain(|path, _| !record.gaps.contains_key(path));
        for (path, text) in self.files {
            if !record.gaps.contains_key(&path) {
                record = record.with_file(&path, &text);
            }
        }
        let host = Host::from_record(record);
        let mut facts = facts::read_all(&host);
        facts.base_page_bytes = Reading::Present(Bytes::KIB_4);
        change(&mut facts);
        discover(&host, &facts, selection, &Asker::this_program())
    }

    pub fn all(self) -> Vec<Database> {
        self.select(&Selection::All).into_value().unwrap()
    }

    /// The only database there is.
    pub fn only(self) -> Database {
        let mut all = self.all();
        assert_eq!(all.len(), 1, "{all:#?}");
        all.remove(0)
    }
}

pub fn ids(databases: &[Database]) -> Vec<&str> {
    databases.iter().map(|d| d.id.as_str()).collect()
}

pub fn setting<'a>(database: &'a Database, name: &str) -> Option<&'a str> {
    database.settings.value()?.values.get(name).map(String::as_str)
}
