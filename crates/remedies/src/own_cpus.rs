//! The CPUs that databases may use, where these are not all: what keeps CPUs awake or fast is for them alone.

use std::collections::BTreeSet;
use untax_core::host::{HostFacts, cpus};
use untax_core::plan::{Effect, Step, Target};
use untax_core::{Database, Snapshot};

/// No kernel has more CPUs (`NR_CPUS`).
const MOST: u32 = 8192;

/// The CPUs of this host that are there.
pub fn online(host: &HostFacts) -> Option<BTreeSet<u32>> {
    Some(host.each_cpu_time.value()?.iter().map(|(cpu, _)| *cpu).collect())
}

/// The CPUs that these databases may use together; `None` where these are all, or not known.
pub fn pinned<'a>(
    host: &HostFacts,
    databases: impl Iterator<Item = &'a Database>,
) -> Option<BTreeSet<u32>> {
    let all = online(host)?;
    let own = databases.map(|database| {
        // A list may name CPUs that are not there, however many.
        let named = cpus(database.allowed_cpus.value()?).take_while(|cpu| *cpu <= MOST);
        Some(named.filter(|cpu| all.contains(cpu)).collect::<BTreeSet<u32>>())
    });
    let own: BTreeSet<u32> = own.collect::<Option<Vec<_>>>()?.into_iter().flatten().collect();
    (!own.is_empty() && own.len() < all.len()).then_some(own)
}

/// The databases of a snapshot with these ids.
pub fn named<'a>(
    snapshot: &'a Snapshot,
    ids: &'a [String],
) -> impl Iterator<Item = &'a Database> + 'a {
    snapshot.databases.iter().filter(|database| ids.contains(&database.id))
}

/// A value of the kernel that gets another one, at once.
pub struct Setting {
    /// The step's name in the plan.
    pub id: String,
    /// One line: of what.
    pub what: String,
    /// The file.
    pub file: String,
    /// Its value.
    pub from: String,
    /// Its value to be.
    pub to: String,
}

impl Setting {
    /// The step that sets it now.
    pub fn step(&self, remedy: &str, databases: &[String]) -> Step {
        let Self { id, what, file, from, to } = self;
        Step {
            id: id.clone(),
            remedy: remedy.to_owned(),
            summary: format!("{what}: {from} -> {to}"),
            databases: databases.to_vec(),
            target: Target::Value { file: file.clone() },
            from: Some(from.clone()),
            to: Some(to.clone()),
            refresh: Vec::new(),
            effect: Effect::Now,
        }
    }
}

/// The step that sets the same after every boot, by a file of systemd-tmpfiles.
pub fn at_boot(settings: &[Setting], remedy: &str, databases: &[String]) -> Step {
    let drop_in = format!("/etc/tmpfiles.d/untax-{remedy}.conf");
    let line = |Setting { file, to, .. }: &Setting| format!("w {file} - - - - {to}\n");
    let lines: String = settings.iter().map(line).collect();
    Step {
        id: format!("{remedy}-boot"),
        remedy: remedy.to_owned(),
        summary: format!("{drop_in}: the same after every boot"),
        databases: databases.to_vec(),
        target: Target::File { file: drop_in },
        from: None,
        to: Some(format!("# Made by untax.\n{lines}")),
        refresh: Vec::new(),
        effect: Effect::Reboot,
    }
}
