//! The threads of an instance: found, narrowed, and left alone where they have a mask of their own.
//!
//! No cpuset file is written, and no thread gets a CPU that its cpuset does not have.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use untax_changes::affinity::{self, Processes};
use untax_changes::{Temporary, TemporaryError, class};
use untax_core::Reading;
use untax_core::cpus::Cpus;
use untax_core::host::CgroupLayout;
use untax_core::plan::{Family, Target};
use untax_host::process::Scheduling;
use untax_host::{Host, cgroup};

/// Passes over the threads of one change: a thread that is born during one has the mask of its maker, which
/// may have been the old one.
const PASSES: u32 = 5;

/// How many looks use what is known of processes before all are read anew.
const LOOKS_KNOWN: u32 = 10;

/// The threads of one instance.
#[derive(Debug)]
pub struct Threads {
    /// Its main process, then those that are steered along with it.
    families: Vec<Family>,
    /// Every mask that its threads ever got here.
    given: BTreeSet<Cpus>,
    wanted: Option<Cpus>,
    /// Whether a program in the kernel places its threads, which have its class and no mask.
    is_by_class: bool,
    pids: Vec<u32>,
    /// What the last pass saw.
    seen: Pass,
}

/// What one pass over the threads saw.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pass {
    /// Threads whose mask was changed.
    pub changed: u32,
    /// Threads with the mask that they are to have.
    pub steered: u32,
    /// Threads with a mask of their own, which are left alone.
    pub own: u32,
    /// Those masks.
    pub own_masks: BTreeSet<Cpus>,
}

/// What all instances share: the host, its processes and its groups.
pub struct Machine {
    pub host: Host,
    pub layout: Option<CgroupLayout>,
    processes: Processes,
    looks: u32,
    allowed: BTreeMap<String, Option<Cpus>>,
}

impl Machine {
    /// The running machine.
    pub fn live() -> Self {
        let host = Host::live();
        let layout = untax_host::facts::cgroup_layout(&host).into_value();
        Self { host, layout, processes: Processes::default(), looks: 0, allowed: BTreeMap::new() }
    }

    /// Looks for processes that came and went, and forgets which CPUs groups have.
    pub fn look(&mut self) -> Reading<()> {
        self.allowed.clear();
        self.looks += 1;
        if self.looks % LOOKS_KNOWN == 1 {
            return self.processes.look_anew(&self.host);
        }
        self.processes.look(&self.host)
    }

    /// The CPUs that the groups of a process leave to it; `None` when it ended, or has none that is online.
    pub fn allowed(&mut self, pid: u32) -> Option<Cpus> {
        let groups = affinity::groups(&self.host, pid).into_value()?;
        let (host, layout) = (&self.host, self.layout.as_ref());
        let read = || match layout {
            Some(layout) => cgroup::cpus::allowed(host, layout, &groups).into_value(),
            None => cgroup::cpus::online(host).into_value(),
        };
        self.allowed.entry(groups.clone()).or_insert_with(read).clone()
    }
}

impl Threads {
    /// The threads of a process and of all that descend from it; none is changed yet.
    pub fn of(host: &Host, root: u32) -> Reading<Self> {
        affinity::family(host, root).map(|family| Self {
            families: vec![family],
            given: BTreeSet::new(),
            wanted: None,
            is_by_class: false,
            pids: Vec::new(),
            seen: Pass::default(),
        })
    }

    /// With another process and all that descend from it.
    pub fn along(mut self, host: &Host, root: u32) -> Reading<Self> {
        affinity::family(host, root).map(|family| {
            self.families.push(family);
            self
        })
    }

    /// Its main process.
    pub fn root(&self) -> u32 {
        self.families[0].root
    }

    /// Its main process, and those that are steered along with it.
    pub fn roots(&self) -> impl Iterator<Item = u32> {
        self.families.iter().map(|family| family.root)
    }

    /// Its processes at the last look.
    pub fn pids(&self) -> &[u32] {
        &self.pids
    }

    /// What the last pass saw.
    pub fn seen(&self) -> &Pass {
        &self.seen
    }

    /// Finds its processes among those of the last look, without those of other instances. None: it ended.
    /// `roots` are those of all instances, so that no process is found twice.
    pub fn find(&mut self, machine: &Machine, roots: &[u32]) {
        let of_family = |family: &Family| {
            let is_apart = |pid: u32| pid != family.root && roots.contains(&pid);
            machine.processes.descendants(family, is_apart)
        };
        self.pids = self.families.iter().flat_map(of_family).collect();
    }

    /// From now on its threads get the class of the program in the kernel, and no masks.
    pub fn use_class(&mut self, journal: &mut Temporary) -> Result<(), TemporaryError> {
        for family in &self.families {
            journal.hold(&Target::Class { family: family.clone() })?;
        }
        self.is_by_class = true;
        Ok(())
    }

    /// Gives its threads these CPUs. The mask is in the journal before any thread has it.
    pub fn give(
        &mut self,
        machine: &mut Machine,
        roots: &[u32],
        journal: &mut Temporary,
        cpus: &Cpus,
    ) -> Result<u32, GiveError> {
        if self.is_by_class {
            // The program has the CPUs; its threads must have its class.
            let is_first = self.wanted.replace(cpus.clone()).is_none();
            return Ok(if is_first { self.keep(machine, roots)? } else { 0 });
        }
        if !self.given.contains(cpus) {
            for family in &self.families {
                journal.hold(&Target::Affinity { family: family.clone(), cpus: cpus.clone() })?;
            }
            self.given.insert(cpus.clone());
        }
        self.wanted = Some(cpus.clone());
        Ok(self.keep(machine, roots)?)
    }

    /// Gives new threads, and those whose cpuset changed, the CPUs that all are to have: how many were set.
    pub fn keep(&mut self, machine: &mut Machine, roots: &[u32]) -> io::Result<u32> {
        let mut changed = 0;
        for _ in 0..PASSES {
            machine.look();
            self.find(machine, roots);
            self.seen = self.pass(machine, true)?;
            changed += self.seen.changed;
            if self.seen.changed == 0 {
                break;
            }
        }
        Ok(changed)
    }

    /// Looks at the masks of all threads and changes none.
    pub fn look(&mut self, machine: &mut Machine, roots: &[u32]) -> io::Result<()> {
        machine.look();
        self.find(machine, roots);
        self.seen = self.pass(machine, false)?;
        Ok(())
    }

    fn pass(&self, machine: &mut Machine, changes: bool) -> io::Result<Pass> {
        let mut pass = Pass::default();
        for pid in &self.pids {
            let Some(allowed) = machine.allowed(*pid) else { continue };
            let wanted = self.wanted.as_ref().map(|wanted| wanted.and(&allowed));
            for thread in affinity::threads(&machine.host, *pid) {
                let Some(now) = affinity::of_thread(thread)? else { continue };
                if self.is_by_class {
                    let is_whole = now == allowed;
                    self.class(&machine.host, *pid, thread, is_whole && changes, &mut pass)?;
                    continue;
                }
                if Some(&now) == wanted.as_ref() {
                    pass.steered += 1;
                } else if !self.is_given(&now, &allowed) {
                    pass.own += 1;
                    pass.own_masks.insert(now);
                } else if let Some(wanted) = wanted.as_ref().filter(|w| changes && !w.is_empty()) {
                    pass.changed += u32::from(affinity::set(thread, wanted)?);
                }
            }
        }
        Ok(pass)
    }

    /// Looks at the class of a thread, and gives it that of the program. A thread with a policy, a nice value or
    /// CPUs of its own keeps its class.
    fn class(
        &self,
        host: &Host,
        pid: u32,
        thread: u32,
        changes: bool,
        pass: &mut Pass,
    ) -> io::Result<()> {
        let Some(now) = class::of_thread(host, pid, thread) else { return Ok(()) };
        if now.policy == Scheduling::EXT {
            pass.steered += 1;
        } else if !changes || now.policy != Scheduling::OTHER || now.nice != 0 {
            pass.own += 1;
        } else if self.wanted.is_some() {
            pass.changed += u32::from(class::enter(thread)?);
        }
        Ok(())
    }

    /// Whether a mask is one that threads have without doing anything: all of the cpuset, or one that was
    /// given here, which the kernel cuts when the cpuset shrinks.
    fn is_given(&self, mask: &Cpus, allowed: &Cpus) -> bool {
        mask == allowed || self.given.iter().any(|given| given.and(allowed) == *mask)
    }
}

/// Why threads did not get their CPUs.
#[derive(Debug, thiserror::Error)]
pub enum GiveError {
    /// The prior state is not on disk.
    #[error(transparent)]
    Journal(#[from] TemporaryError),
    /// The kernel refused.
    #[error("the CPUs of its threads cannot be set; run as root, or with CAP_SYS_NICE")]
    Kernel(#[from] io::Error),
}
