//! The databases of a host by their names.

use serde::Serialize;
use untax_core::Reading;
use untax_core::cpus::Cpus;
use untax_core::database::Database;
use untax_core::host::HostFacts;
use untax_core::placement::OnNode;
use untax_engines::{Asker, Selection, discover};
use untax_host::Host;

/// A database that may be steered.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// `ENGINE@PORT`, or `ENGINE@PID` where it listens on no port.
    pub name: String,
    /// Its engine's id.
    pub engine: String,
    /// Its main process.
    pub pid: u32,
    /// Its memory on each node.
    pub memory: Reading<Vec<OnNode>>,
}

/// A name that fits no database, or several.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize)]
#[error("{name} {why}; databases here: {}", if there.is_empty() { "none".to_owned() } else { there.join(", ") })]
pub struct Unknown {
    name: String,
    why: &'static str,
    there: Vec<String>,
}

/// The databases of a host, in ascending order of pid. Servers are not asked.
pub fn candidates(host: &Host, facts: &HostFacts) -> Reading<Vec<Candidate>> {
    selected(host, facts, &Selection::All)
}

/// The process with this number, whatever it is; `None` where there is none.
pub fn process(host: &Host, facts: &HostFacts, pid: u32) -> Option<Candidate> {
    let found = selected(host, facts, &Selection::Pid(pid)).into_value()?.into_iter().next()?;
    // It stands for itself, also where it is a part of a database.
    let is_whole = found.pid == pid;
    let engine = if is_whole { found.engine.clone() } else { "generic".to_owned() };
    Some(Candidate { name: pid.to_string(), engine, pid, ..found })
}

fn selected(host: &Host, facts: &HostFacts, selection: &Selection) -> Reading<Vec<Candidate>> {
    // Nothing that a server tells is wanted here.
    let asker = Asker::new("/bin/false", Vec::new(), std::time::Duration::from_secs(1));
    discover(host, facts, selection, &asker)
        .map(|found| found.databases.iter().map(candidate).collect())
}

fn candidate(database: &Database) -> Candidate {
    Candidate {
        name: database.name.clone(),
        engine: database.engine.clone(),
        pid: database.pid,
        memory: database.placement.clone().and_then(|placement| placement.memory),
    }
}

/// The one with this name; a number alone is the pid of any process.
pub fn by_name(candidates: &[Candidate], name: &str) -> Result<Candidate, Unknown> {
    let there = || candidates.iter().map(|candidate| candidate.name.clone()).collect();
    let unknown = |why| Unknown { name: name.to_owned(), why, there: there() };
    if let Ok(pid) = name.parse::<u32>() {
        let known = candidates.iter().find(|candidate| candidate.pid == pid).cloned();
        return Ok(known.unwrap_or_else(|| Candidate {
            name: name.to_owned(),
            engine: "generic".to_owned(),
            pid,
            memory: Reading::absent("not looked at"),
        }));
    }
    let mut fitting = candidates.iter().filter(|candidate| candidate.name == name);
    match (fitting.next(), fitting.next()) {
        (Some(one), None) => Ok(one.clone()),
        (Some(_), Some(_)) => Err(unknown("is the name of several; name one by its pid")),
        (None, _) => Err(unknown("is no database that runs here")),
    }
}

/// A warning where most of an instance's memory is on other nodes than its preferred CPUs.
pub fn memory_warning(
    candidate: &Candidate,
    preferred: &Cpus,
    facts: &HostFacts,
) -> Option<String> {
    let nodes = facts.numa.value()?;
    if nodes.len() < 2 {
        return None;
    }
    let Reading::Present(memory) = &candidate.memory else {
        let why = candidate.memory.why().unwrap_or_default();
        return Some(format!("{}: where its memory lies is not known: {why}", candidate.name));
    };
    let is_home = |node: u32| {
        nodes.iter().any(|n| n.node == node && preferred.iter().any(|cpu| n.has_cpu(cpu)))
    };
    let sum = |of: &dyn Fn(u32) -> bool| -> u64 {
        memory.iter().filter(|on| of(on.node)).map(|on| on.bytes.0).sum()
    };
    let (all, far) = (sum(&|_| true), sum(&|node| !is_home(node)));
    let list = |of: &dyn Fn(u32) -> bool| -> String {
        let numbers = nodes.iter().map(|n| n.node).filter(|node| of(*node));
        numbers.map(|node| node.to_string()).collect::<Vec<_>>().join(",")
    };
    let (away, home) = (list(&|node| !is_home(node)), list(&is_home));
    (far * 2 > all).then(|| {
        format!(
            "{}: {:.0} % of its memory is on other nodes than CPUs {preferred}. Prefer the CPUs of that \
             node; or start it under numactl --membind={home}; or move its pages while it is idle: \
             migratepages {} {away} {home}",
            candidate.name,
            far as f64 / all as f64 * 100.0,
            candidate.pid,
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use untax_core::Bytes;
    use untax_host::{Record, facts};

    fn candidate(name: &str, pid: u32, memory: &[(u32, u64)]) -> Candidate {
        let on = |(node, bytes): &(u32, u64)| OnNode { node: *node, bytes: Bytes(*bytes) };
        Candidate {
            name: name.to_owned(),
            engine: "redis".to_owned(),
            pid,
            memory: Reading::Present(memory.iter().map(on).collect()),
        }
    }

    #[test]
    fn a_name_means_one_database() {
        let all = [candidate("a@1", 7, &[]), candidate("b@2", 8, &[]), candidate("b@2", 9, &[])];
        assert_eq!(by_name(&all, "a@1").unwrap().pid, 7);
        assert_eq!(by_name(&all, "9").unwrap().name, "b@2");
        assert_eq!(by_name(&all, "77").unwrap().engine, "generic");
        let several = by_name(&all, "b@2").unwrap_err().to_string();
        assert!(several.contains("by its pid"), "{several}");
        let none = by_name(&all, "c@3").unwrap_err().to_string();
        assert!(none.contains("a@1, b@2"), "{none}");
    }

    #[test]
    fn memory_far_from_the_preferred_cpus_is_a_warning() {
        let record = Record::default()
            .with_file("/sys/devices/system/node/node0/cpulist", "0-1\n")
            .with_file("/sys/devices/system/node/node1/cpulist", "2-3\n");
        let facts = facts::read_all(&Host::from_record(record));
        let warning = |memory: &[(u32, u64)], cpus: &str| {
            memory_warning(&candidate("a@1", 7, memory), &cpus.parse().unwrap(), &facts)
        };
        let far = warning(&[(0, 10), (1, 90)], "0-1").unwrap();
        assert!(far.contains("90 %") && far.ends_with("migratepages 7 1 0"), "{far}");
        assert_eq!(warning(&[(0, 10), (1, 90)], "2-3"), None);
        // The published gain was as large with evenly spread memory.
        assert_eq!(warning(&[(0, 50), (1, 50)], "0-1"), None);
    }
}
