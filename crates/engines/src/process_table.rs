//! All processes of a moment, the engines that their programs belong to, and how they descend
//! from each other.

use std::collections::{BTreeMap, BTreeSet};
use untax_core::Reading;
use untax_core::Seconds;
use untax_core::snapshot::Sandbox;
use untax_host::process::Stat;

/// The program of gVisor.
pub(crate) const GVISOR: &str = "runsc";

/// One process.
pub(crate) struct Process {
    pub stat: Stat,
    /// The program's path, as it was when it was started.
    pub executable: Reading<String>,
    /// Whether that file was replaced or removed since.
    pub deleted: Reading<bool>,
    /// Read only where the program may be an engine's.
    pub arguments: Reading<Vec<String>>,
    /// The id of the engine whose program it runs, and what part it plays.
    pub part: Option<(&'static str, Role)>,
}

/// What an engine judges a process by.
pub(crate) struct Candidate<'a> {
    pub name: &'a str,
    pub arguments: &'a Reading<Vec<String>>,
}

impl Candidate<'_> {
    /// The arguments, none when they cannot be read.
    pub fn arguments(&self) -> &[String] {
        self.arguments.value().map_or(&[], Vec::as_slice)
    }

    /// Whether one of the arguments after the first is one of these.
    pub fn has(&self, any: &[&str]) -> bool {
        self.arguments().iter().skip(1).any(|a| any.contains(&a.as_str()))
    }
}

/// What part a process plays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Role {
    /// The main process of a database, unless it is a copy of its parent.
    Server,
    /// A part of a database that another process leads.
    Worker,
    /// Nothing tells: led by its parent if that is of the same engine.
    Unclear,
    /// Leads, or belongs to, the instance of this name: for engines whose processes do not
    /// descend from one another.
    Named { leads: bool, name: String },
    /// Runs the engine's program for something else than serving a database.
    Other,
}

/// All processes of a moment.
pub(crate) struct Table {
    processes: BTreeMap<u32, Process>,
    children: BTreeMap<u32, Vec<u32>>,
    mains: BTreeSet<u32>,
    kernel_workers: Vec<Stat>,
}

impl Table {
    /// These processes, by pid, and those threads of the kernel.
    pub fn new(processes: BTreeMap<u32, Process>, kernel_workers: Vec<Stat>) -> Self {
        let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for process in processes.values() {
            children.entry(process.stat.parent).or_default().push(process.stat.pid);
        }
        let mut table = Self { processes, children, mains: BTreeSet::new(), kernel_workers };
        let leads = |pid: &u32| table.leads(*pid);
        table.mains = table.processes.keys().copied().filter(leads).collect();
        table
    }

    pub fn get(&self, pid: u32) -> Option<&Process> {
        self.processes.get(&pid)
    }

    /// All processes, ascending.
    pub fn stats(&self) -> impl Iterator<Item = &Stat> {
        self.processes.values().map(|process| &process.stat)
    }

    /// Threads of the kernel that work for whoever hands them something to do.
    pub fn kernel_workers(&self) -> impl Iterator<Item = &Stat> {
        self.kernel_workers.iter()
    }

    /// The main processes of all databases, ascending.
    pub fn mains(&self) -> impl Iterator<Item = u32> {
        self.mains.iter().copied()
    }

    /// Whether a process leads a database.
    fn leads(&self, pid: u32) -> bool {
        let Some(process) = self.get(pid) else { return false };
        let Some((engine, role)) = &process.part else { return false };
        let parent = self
            .get(process.stat.parent)
            .filter(|p| matches!(&p.part, Some((e, r)) if e == engine && *r != Role::Other));
        match role {
            // A server's child looks like the server until it has written its own title. A
            // different command line means that someone started another server from inside.
            Role::Server => parent.is_none_or(|p| p.arguments != process.arguments),
            Role::Unclear => parent.is_none(),
            Role::Named { leads, .. } => *leads,
            Role::Worker | Role::Other => false,
        }
    }

    /// A process and all that descend from it, down to where another database begins.
    pub fn descendants(&self, main: u32) -> Vec<u32> {
        let mut found = vec![main];
        let mut next = 0;
        while let Some(pid) = found.get(next) {
            let children = self.children.get(pid).into_iter().flatten().copied();
            // A process is nobody's own ancestor, but a table read while it changes may say so.
            let new = children.filter(|c| !self.mains.contains(c) && *c != main);
            found.extend(new.collect::<Vec<_>>());
            next += 1;
            if next > self.processes.len() {
                break;
            }
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Sandboxes with kernels of their own, by the programs that are these kernels or start them.
    pub fn sandboxes(&self, ticks_per_second: Option<u64>) -> Vec<Sandbox> {
        let user_ticks = |pid: &u32| Some(self.processes.get(pid)?.stat.user_ticks);
        let sandbox = |(pid, process): (&u32, &Process)| {
            let runtime = sandbox(process)?.to_owned();
            let below = self.descendants(*pid).into_iter().filter(|below| below != pid);
            let ticks: u64 = below.filter_map(|below| user_ticks(&below)).sum();
            let programs_s = ticks_per_second.map(|each| Seconds(ticks as f64 / each as f64));
            Some(Sandbox { runtime, pid: *pid, programs_s })
        };
        self.processes.iter().filter_map(sandbox).collect()
    }

    /// Processes of an engine whose role says that they belong to a named instance.
    pub fn named_members<'a>(&'a self, engine: &'a str) -> impl Iterator<Item = (u32, &'a str)> {
        self.processes.iter().filter_map(move |(pid, process)| match &process.part {
            Some((e, Role::Named { name, .. })) if *e == engine => Some((*pid, name.as_str())),
            _ => None,
        })
    }
}

/// The runtime of a sandbox that this process is the kernel of, or watches. The program of gVisor
/// does everything: only the process called so is the kernel.
fn sandbox(process: &Process) -> Option<&'static str> {
    match base(process.executable.value()?) {
        GVISOR => {
            let arguments = process.arguments.value()?;
            (arguments.first()? == "runsc-sandbox").then_some("gvisor")
        }
        "containerd-shim-kata-v2" => Some("kata"),
        _ => None,
    }
}

/// The last part of a path.
pub(crate) fn base(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}
