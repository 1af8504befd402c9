//! `untax check` beside loads that people run, on a healthy host: what it finds must be true, and it
//! must tell the databases apart.

#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test looks at the machine by other ways than the code that it tests, and prints what \
              it saw"
)]

mod support;

use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;
use support::numbers::{part, possible};
use support::{Untax, text};
use untax_scenes::{Engine, Release, SceneError, Setup, WORKLOADS, Watched, Workload};

/// Longer than any check here takes.
const MINUTES: u32 = 120;

/// Most of a database's active time that may be unaccounted for.
const UNACCOUNTED: f64 = 0.05;

/// A window may be spoilt by what else runs on the machine of a test: what is wrong in each of so many is
/// wrong.
const TRIES: usize = 3;

/// How such a server is set up: as a package does, but for its memory.
fn settings(engine: Engine) -> &'static [(&'static str, &'static str)] {
    match engine {
        Engine::Mysql => &[("innodb_buffer_pool_size", "512M")],
        _ => &[("shared_buffers", "512MB"), ("autovacuum", "on")],
    }
}

/// A process, and those that it and they have started.
fn processes_of(first: u32) -> BTreeSet<u32> {
    let parent = |pid: u32| {
        let stat = text(&format!("/proc/{pid}/stat"));
        stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse::<u32>().ok()
    };
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let all = all.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is_own = |pid: &u32| {
        let above = std::iter::successors(Some(*pid), |pid| parent(*pid));
        above.take(20).any(|pid| pid == first)
    };
    all.filter(is_own).collect()
}

/// What is wrong with what a check says beside a load.
fn wrong(check: &Value, databases: &[Watched], engine: Engine) -> Vec<String> {
    possible(check);
    let own = processes_of(std::process::id());
    let found = check["databases"].as_array().unwrap();
    let mut wrong = Vec::new();
    let is_watched = |pid: &Value| databases.iter().any(|watched| *pid == watched.pid);
    for other in found.iter().filter(|found| !is_watched(&found["pid"])) {
        if other["pid"].as_u64().is_some_and(|pid| own.contains(&(pid as u32))) {
            wrong.push(format!("{} is no database", other["id"]));
        }
    }
    for (n, watched) in databases.iter().enumerate() {
        let Some(found) = found.iter().find(|found| found["pid"] == watched.pid) else {
            wrong.push(format!("the {} is not found", watched.role));
            continue;
        };
        let id = format!("{}:{}", engine.id(), watched.pid);
        if found["id"] != id || found["data_directory"] != watched.data_directory.as_str() {
            wrong.push(format!("the {} is {} in {}", watched.role, id, found["data_directory"]));
        }
        let (unaccounted, active) = (part(found, "unaccounted_s"), part(found, "active_s"));
        if unaccounted > UNACCOUNTED * active {
            wrong.push(format!("{}: {unaccounted} of {active} s unaccounted", watched.role));
        }
        let others = databases.iter().filter(|other| other.pid != watched.pid);
        let others: BTreeSet<u32> = others.flat_map(|other| processes_of(other.pid)).collect();
        // The load asks the first one; to one that follows it, its clients are neighbours as the first one is.
        let own: BTreeSet<u32> = match n {
            0 => own.difference(&others).copied().collect(),
            _ => processes_of(watched.pid),
        };
        for finding in loud(found) {
            if finding["scope"] == "platform" && !is_true_here(finding, &own) {
                wrong.push(format!("{}: {}", watched.role, said(finding)));
            }
        }
    }
    wrong
}

/// The findings above info.
fn loud(found: &Value) -> impl Iterator<Item = &Value> {
    let findings = found["findings"].as_array().unwrap().iter();
    findings.filter(|finding| finding["severity"] != "info")
}

/// Whether this host has that cause: its pages are small, its CPUs have an owner who takes them back, and
/// other programs than the load's run on it. How much small pages take is measured apart. A database is a
/// neighbour of another on the same host, its clients are not: all of these are processes of its own.
fn is_true_here(finding: &Value, own: &BTreeSet<u32>) -> bool {
    match finding["rule"].as_str().unwrap() {
        "small-pages" | "vm-steal" => true,
        "cpu-contended" => {
            let evidence = finding["evidence"].as_array().unwrap().iter();
            let named: Vec<u32> =
                evidence.filter_map(|fact| pid_of(fact["of"].as_str()?)).collect();
            !named.is_empty() && named.iter().all(|pid| !own.contains(pid))
        }
        _ => false,
    }
}

/// `sort (pid 4711) in /batch`.
fn pid_of(named: &str) -> Option<u32> {
    named.split_once("(pid ")?.1.split_once(')')?.0.parse().ok()
}

fn share(tax: &Value) -> String {
    let percent = |bound: &str| 100.0 * tax[bound].as_f64().unwrap_or_default();
    if tax.is_null() {
        return "–".to_owned();
    }
    format!("{:.1} ({:.1}–{:.1}) %", percent("share"), percent("low"), percent("high"))
}

fn said(finding: &Value) -> String {
    let word = |name: &str| finding[name].as_str().unwrap_or_default().to_owned();
    let modelled = if finding["tax"]["modelled"] == true { ", modelled" } else { "" };
    format!(
        "`{}` {}, {}{modelled}: {}",
        word("rule"),
        word("severity"),
        share(&finding["tax"]),
        word("summary")
    )
}

/// A row of the table of docs/results/workloads.md.
fn row(workload: &Workload, release: Release, watched: &Watched, check: &Value) -> String {
    let found = support::database(check, watched.pid);
    let loud: Vec<String> = loud(found).map(said).collect();
    let unaccounted = 100.0 * part(found, "unaccounted_s") / part(found, "active_s");
    format!(
        "| {} | {}, {} | {} | {} | {} | {unaccounted:.1} % |",
        workload.id,
        release.id,
        watched.role,
        if loud.is_empty() { "none".to_owned() } else { loud.join("; ") },
        share(&found["tax"]),
        share(&found["database_tax"]),
    )
}

/// Runs a workload on each of its servers, and says what is wrong with what a check says of it.
fn check_beside(id: &str, is_tried: impl Fn(Release) -> bool) {
    support::real(|| {
        let workload = WORKLOADS.iter().find(|workload| workload.id == id).unwrap();
        let untax = Untax::new();
        let mut always = Vec::new();
        for release in workload.releases.iter().copied().filter(|release| is_tried(*release)) {
            always.extend(wrong_on(workload, release, &untax)?);
        }
        assert!(always.is_empty(), "{always:#?}");
        Ok(())
    });
}

fn wrong_on(
    workload: &Workload,
    release: Release,
    untax: &Untax,
) -> Result<Vec<String>, SceneError> {
    let settings = settings(release.engine);
    let setup = Setup { release: Some(release), settings, durable: true, ..Setup::default() };
    let prepared = (workload.prepare)(&setup)?;
    let mut load = prepared.load(MINUTES)?;
    std::thread::sleep(Duration::from_secs(3));
    let mut last = Vec::new();
    for _ in 0..TRIES {
        let check = untax.run(&["check", "--window", "6s", "--json"]).json();
        load.check()?;
        for watched in &prepared.databases {
            println!("{}", row(workload, release, watched, &check));
        }
        if let Some(folder) = std::env::var_os("UNTAX_KEEP") {
            let file = Path::new(&folder).join(format!("{}-{}.json", workload.id, release.id));
            std::fs::write(file, serde_json::to_string_pretty(&check).unwrap()).unwrap();
        }
        last = wrong(&check, &prepared.databases, release.engine);
        if last.is_empty() {
            break;
        }
        println!("wrong: {last:#?}");
    }
    Ok(last.iter().map(|wrong| format!("{} on {}: {wrong}", workload.id, release.id)).collect())
}

#[test]
#[ignore = "long: four servers"]
fn read_write() {
    check_beside("read-write", |_| true);
}

#[test]
#[ignore = "long: four servers"]
fn copy_in() {
    check_beside("copy-in", |_| true);
}

#[test]
#[ignore = "long: two servers"]
fn copy_out() {
    check_beside("copy-out", |_| true);
}

#[test]
#[ignore = "long: four servers"]
fn big_sort() {
    check_beside("big-sort", |_| true);
}

#[test]
#[ignore = "long: three servers"]
fn parallel_query() {
    check_beside("parallel-query", |_| true);
}

#[test]
#[ignore = "long: two servers"]
fn vacuum() {
    check_beside("vacuum", |_| true);
}

#[test]
fn a_standby_is_told_from_its_primary() {
    check_beside("standby", |release| !release.is_unpacked);
}

#[test]
#[ignore = "long: another version"]
fn a_standby_of_another_version_is_too() {
    check_beside("standby", |release| release.is_unpacked);
}

#[test]
#[ignore = "long: two servers"]
fn logical_replication() {
    check_beside("logical-replication", |_| true);
}

#[test]
fn a_pooler_is_neither_a_database_nor_a_neighbour() {
    check_beside("pgbouncer", |release| !release.is_unpacked);
}

#[test]
#[ignore = "long: another version"]
fn nor_is_it_of_another_version() {
    check_beside("pgbouncer", |release| release.is_unpacked);
}

#[test]
#[ignore = "long: four servers that are filled"]
fn tpcc() {
    check_beside("tpcc", |_| true);
}

#[test]
#[ignore = "long: four servers that are filled"]
fn tpcc_with_think_time() {
    check_beside("tpcc-think-time", |_| true);
}
