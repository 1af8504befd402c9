//! What checks say beside loads that people run, on servers that nothing ails, and what huge pages bring
//! these.
//!
//! Arm A runs on base pages, arm B on huge ones. A check of the whole host watches each trial. The table
//! of findings is of all trials of arm A; the prediction is what these say of `small-pages`.

use super::gains::{self, Row};
use super::output::Output;
use super::paired::Paired;
use super::program::{Untax, finished};
use super::record::{Measured, Record};
use anyhow::Context;
use clap::Args;
use serde_json::{Value, json};
use std::fmt::Write;
use std::process::Stdio;
use std::time::Duration;
use untax_core::{Interval, stats};
use untax_scenes::{
    Engine, HugePages, Prepared, Release, Settings, Setup, Turn, WORKLOADS, Workload,
};
use untax_trials::{Arm, Block, Cell, Design, Rig, Slot};

/// What to measure.
#[derive(Debug, Args)]
pub struct Options {
    /// Pairs of trials of each workload on each of its servers
    #[arg(long, default_value_t = 3)]
    pairs: u32,
    /// Length of one check, seconds
    #[arg(long, default_value_t = 8)]
    seconds: u32,
    /// Only workloads and servers that have this in their name, such as `tpcc on postgres`
    #[arg(long, default_value = "")]
    only: String,
    #[command(flatten)]
    output: Output,
}

/// Before the check: clients connect, and processes touch their memory for the first time.
const WARM_UP: Duration = Duration::from_secs(3);

/// A check opens and closes within the load.
const MARGIN_S: u32 = 4;

/// Of buffers of 512 MiB for two servers, with what belongs to them.
const POOL_PAGES: u64 = 640;

/// The settings of each arm.
fn settings(engine: Engine, arm: usize) -> Settings<'static> {
    match (engine, arm) {
        (Engine::Mysql, 0) => &[("innodb_buffer_pool_size", "512M")],
        (Engine::Mysql, _) => &[("innodb_buffer_pool_size", "512M"), ("large-pages", "1")],
        (_, 0) => &[("shared_buffers", "512MB"), ("autovacuum", "on"), ("huge_pages", "off")],
        _ => &[("shared_buffers", "512MB"), ("autovacuum", "on"), ("huge_pages", "on")],
    }
}

/// A workload on one of its servers.
struct Case {
    workload: &'static Workload,
    release: Release,
}

impl Case {
    fn name(&self) -> String {
        format!("{} on {}", self.workload.id, self.release.id)
    }
}

/// Runs the bench and writes the table.
pub fn run(options: &Options) -> anyhow::Result<()> {
    let _turn = Turn::wait()?;
    let of = |workload: &'static Workload| {
        let releases = workload.releases.iter();
        releases.map(move |release| Case { workload, release: *release })
    };
    let cases: Vec<Case> =
        WORKLOADS.iter().flat_map(of).filter(|case| case.name().contains(&options.only)).collect();
    let design = design(&cases, options);
    let paired = Paired::open(&options.output, "workloads", &design)?;
    let untax = Untax::find()?;
    let mut servers = Servers { running: None, cases: &cases, untax, options };
    let record = paired.run(&mut servers)?;
    options.output.write("workloads.md", &page(&record))
}

/// Pair by pair, ABBA, one workload after the other.
fn design(cases: &[Case], options: &Options) -> Design {
    let arm = |name: &str, pages: &str| Arm {
        configuration: format!("{pages} pages, {} s", options.seconds),
        ..Arm::new(name)
    };
    let cell = |case: &Case| Cell { name: case.name(), length: None };
    let block = |cell: usize, pair: u32| {
        let order = if pair.is_multiple_of(2) { [0, 1] } else { [1, 0] };
        let slot = |arm| Slot { block: pair, arm, cell, repeat: false };
        Block { together: Vec::new(), slots: order.map(slot).to_vec() }
    };
    let pairs = options.pairs;
    Design {
        seed: 0,
        arms: vec![arm("A", "base"), arm("B", "huge")],
        cells: cases.iter().map(cell).collect(),
        blocks: (0..cases.len())
            .flat_map(|cell| (0..pairs).map(move |pair| block(cell, pair)))
            .collect(),
    }
}

/// The servers of one workload in one arm. They are dropped before the pages that they use.
struct Servers<'a> {
    running: Option<(Slot, Prepared, Option<HugePages>)>,
    cases: &'a [Case],
    untax: Untax,
    options: &'a Options,
}

impl Servers<'_> {
    /// Those of a slot, which may be those of the slot before.
    fn of(&mut self, slot: &Slot) -> anyhow::Result<&Prepared> {
        let is_it =
            self.running.as_ref().is_some_and(|(s, ..)| (s.cell, s.arm) == (slot.cell, slot.arm));
        if !is_it {
            self.running = None;
            let Case { workload, release } = self.cases[slot.cell];
            let pool = (slot.arm == 1).then(|| HugePages::reserve(POOL_PAGES)).transpose()?;
            let settings = settings(release.engine, slot.arm);
            let setup =
                Setup { release: Some(release), settings, durable: true, ..Setup::default() };
            self.running = Some((*slot, (workload.prepare)(&setup)?, pool));
        }
        self.running.as_ref().map(|(_, prepared, _)| prepared).context("no server runs")
    }
}

impl Rig for Servers<'_> {
    type Error = anyhow::Error;
    type Outcome = Vec<Measured>;

    fn prepare(&mut self, _: &[usize], _: &mut dyn FnMut(&str, f64)) -> anyhow::Result<()> {
        Ok(())
    }

    fn run(&mut self, slot: &Slot) -> anyhow::Result<Option<Vec<Measured>>> {
        let (seconds, name) = (self.options.seconds, self.cases[slot.cell].name());
        let prepared = self.of(slot)?;
        let load = prepared.load(seconds + MARGIN_S)?;
        let roles: Vec<(&str, u32)> = prepared.databases.iter().map(|d| (d.role, d.pid)).collect();
        std::thread::sleep(WARM_UP);
        let window = format!("{seconds}s");
        let mut check = self.untax.command(&["check", "--json", "--window", &window]);
        let check = finished(check.stdout(Stdio::piped()).spawn()?)?;
        let tps = load.finish()?;
        let arm = ["A", "B"][slot.arm].to_owned();
        let essence = json!({
            "databases": roles.iter().map(|(role, pid)| of_database(&check, role, *pid)).collect::<Vec<_>>(),
            "self": check["self"],
        });
        Ok(Some(vec![Measured { load: name, arm, tps, check: Some(essence) }]))
    }

    fn tear_down(&mut self) -> anyhow::Result<()> {
        self.running = None;
        Ok(())
    }
}

/// What a check says of one database: what is wrong with it, and where its time went.
fn of_database(check: &Value, role: &str, pid: u32) -> Value {
    let found = check["databases"].as_array().into_iter().flatten().find(|d| d["pid"] == pid);
    let findings = || found.and_then(|found| found["findings"].as_array()).into_iter().flatten();
    let loud = findings().filter(|finding| finding["severity"] != "info");
    let loud = loud.map(|finding| {
        json!({
            "rule": finding["rule"], "scope": finding["scope"], "severity": finding["severity"],
            "summary": finding["summary"], "tax": finding["tax"],
        })
    });
    let small = findings().find(|finding| finding["rule"] == "small-pages");
    json!({
        "role": role,
        "findings": loud.collect::<Vec<_>>(),
        "gain": small.map(|small| &small["gain"]),
        "modelled": small.map(|small| &small["tax"]["modelled"]),
        "tax": found.map(|found| &found["tax"]),
        "database_tax": found.map(|found| &found["database_tax"]),
        "time": found.map(|found| &found["time"]),
    })
}

fn page(record: &Record) -> String {
    format!(
        "# What checks say beside loads that people run\n\n\
         Machine: {}. Command: `{}`. Every trial: [workloads.json](workloads.json).\n\n{}\n\
         What huge pages bring them. {}\n\n{}",
        record.machine,
        record.command,
        findings(record),
        gains::LEGEND,
        gains::table(loads(record).into_iter().map(|load| row(record, load))),
    )
}

/// The loads of a record, each once, in order.
fn loads(record: &Record) -> Vec<&str> {
    let mut loads: Vec<&str> = Vec::new();
    for entry in &record.made {
        if !loads.contains(&entry.measured.load.as_str()) {
            loads.push(&entry.measured.load);
        }
    }
    loads
}

fn findings(record: &Record) -> String {
    let mut text = String::from(
        "| load and server | database | findings above info, in so many checks | platform | database \
         | unaccounted |\n|---|---|---|---|---|---|\n",
    );
    for load in loads(record) {
        let checks: Vec<&Value> = record.checks(load, "A").collect();
        let roles = checks.first().and_then(|check| check["databases"].as_array());
        for at in 0..roles.map_or(0, Vec::len) {
            let of_role: Vec<&Value> = checks.iter().map(|check| &check["databases"][at]).collect();
            // Writing to a string cannot fail.
            let _ = writeln!(text, "| {load} {}", cells(&of_role));
        }
    }
    text
}

/// The cells of one database, of all checks together.
fn cells(checks: &[&Value]) -> String {
    let role = checks.first().and_then(|check| check["role"].as_str()).unwrap_or_default();
    let mut rules: Vec<&str> = Vec::new();
    let loud = || checks.iter().flat_map(|c| c["findings"].as_array().into_iter().flatten());
    for id in loud().filter_map(|finding| finding["rule"].as_str()) {
        if !rules.contains(&id) {
            rules.push(id);
        }
    }
    let said = rules.iter().map(|rule| {
        let of_rule = loud().filter(|finding| finding["rule"] == *rule);
        let taxes: Vec<&Value> = of_rule.map(|finding| &finding["tax"]).collect();
        format!("`{rule}` {} ({} of {})", median_of(&taxes), taxes.len(), checks.len())
    });
    let said: Vec<String> = said.collect();
    let said = if said.is_empty() { "none".to_owned() } else { said.join(", ") };
    let total =
        |name: &str| median_of(&checks.iter().map(|check| &check[name]).collect::<Vec<_>>());
    let unaccounted = checks.iter().filter_map(|check| {
        let time = &check["time"];
        Some(time["unaccounted_s"].as_f64()? / time["active_s"].as_f64()?)
    });
    let unaccounted = unaccounted.fold(0.0_f64, f64::max) * 100.0;
    format!(
        "| {role} | {said} | {} | {} | {unaccounted:.1} % |",
        total("tax"),
        total("database_tax")
    )
}

/// The medians of shares and of their bounds.
fn median_of(taxes: &[&Value]) -> String {
    let of = |bound: &str| {
        stats::median(&taxes.iter().filter_map(|tax| tax[bound].as_f64()).collect::<Vec<_>>())
    };
    match (of("low"), of("share"), of("high")) {
        (Some(low), Some(mid), Some(high)) => {
            format!("{:.1} % ({:.1}–{:.1})", mid * 100.0, low * 100.0, high * 100.0)
        }
        _ => "–".to_owned(),
    }
}

fn row(record: &Record, load: &str) -> Row {
    let of = |bound: &str| {
        let gains = record.checks(load, "A").map(|check| &check["databases"][0]["gain"]);
        stats::median(&gains.filter_map(|gain| gain[bound].as_f64()).collect::<Vec<_>>())
    };
    let predicted = || Some(Interval::new(of("low")?, of("factor")?, of("high")?));
    Row {
        load: load.to_owned(),
        predicted: predicted(),
        measured: record.ratio(load, "B", "A"),
        floor: record.floor(load),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_counts_the_checks_that_found_something() {
        let check = |findings: Value, unaccounted_s: f64| {
            json!({
                "role": "standby", "findings": findings, "database_tax": null,
                "tax": { "low": 0.1, "share": 0.2, "high": 0.3 },
                "time": { "active_s": 10.0, "unaccounted_s": unaccounted_s },
            })
        };
        let loud =
            json!([{ "rule": "disk-slow", "tax": { "low": 0.05, "share": 0.1, "high": 0.2 } }]);
        let checks = [check(loud, 0.0), check(json!([]), 0.2)];
        assert_eq!(
            cells(&checks.iter().collect::<Vec<_>>()),
            "| standby | `disk-slow` 10.0 % (5.0–20.0) (1 of 2) | 20.0 % (10.0–30.0) | – | 2.0 % |"
        );
    }

    #[test]
    fn each_workload_is_measured_in_pairs_close_in_time() {
        let cases: Vec<Case> = WORKLOADS
            .iter()
            .take(2)
            .map(|workload| Case { workload, release: workload.releases[0] })
            .collect();
        let output = Output { out: std::path::PathBuf::new() };
        let options = Options { pairs: 2, seconds: 8, only: String::new(), output };
        let order: Vec<(usize, usize)> =
            design(&cases, &options).slots().map(|slot| (slot.cell, slot.arm)).collect();
        let abba = |cell| [(cell, 0), (cell, 1), (cell, 1), (cell, 0)];
        assert_eq!(order, [abba(0), abba(1)].concat());
    }
}
