//! Causes that measures tell.

use super::kind::{AT_ONCE, Kind, Parts, Sign};
use crate::scene::Scene;
use std::collections::BTreeSet;
use untax_core::Bytes;
use untax_core::Seconds;
use untax_core::timeline::FactChange;

/// A measure that differs by less is as it was: a quarter.
const SAME: f64 = 1.25;

/// Steal and shares of memory that differ by less are as they were.
const SAME_SHARE: f64 = 0.03;

/// Reads that change disks, of all, at least.
const MOVED_SHARE: f64 = 0.1;

/// CPUs that a neighbour takes, or frees, at least.
const LEAST_CPUS: f64 = 0.1;

/// Data writes that grow by so much are a burst.
const BURST: f64 = 3.0;

const DISK: &[&str] = &["disk", "kernel", "dirty-pages"];

pub(super) const MOVED_HOST: Kind = Kind {
    id: "moved-host",
    parts: Parts::These(&["cpu", "run-queue", "wake-up", "kernel", "disk"]),
    look: moved_host,
};

pub(super) const STEAL: Kind =
    Kind { id: "steal", parts: Parts::These(&["cpu", "run-queue", "wake-up"]), look: steal };

pub(super) const NEIGHBOUR: Kind = Kind {
    id: "neighbour",
    parts: Parts::These(&["run-queue", "wake-up", "cpu"]),
    look: neighbour,
};

pub(super) const DISK_NEIGHBOUR: Kind =
    Kind { id: "disk-neighbour", parts: Parts::These(DISK), look: disk_neighbour };

pub(super) const DATA_MOVED: Kind =
    Kind { id: "data-moved", parts: Parts::These(DISK), look: data_moved };

pub(super) const CACHE: Kind =
    Kind { id: "cache", parts: Parts::These(&["disk", "kernel"]), look: cache };

pub(super) const READ_LATENCY: Kind =
    Kind { id: "read-latency", parts: Parts::These(&["disk", "kernel"]), look: read_latency };

pub(super) const WRITE_LATENCY: Kind =
    Kind { id: "write-latency", parts: Parts::These(DISK), look: write_latency };

pub(super) const WRITE_BURST: Kind =
    Kind { id: "write-burst", parts: Parts::These(DISK), look: write_burst };

pub(super) const PLACEMENT: Kind =
    Kind { id: "placement", parts: Parts::These(&["cpu"]), look: placement };

pub(super) const LOAD: Kind =
    Kind { id: "load", parts: Parts::These(&[AT_ONCE, "client"]), look: load };

/// A measure that changed.
fn measure(id: &str, [before, after]: [f64; 2], write: impl Fn(f64) -> String) -> FactChange {
    FactChange {
        id: id.to_owned(),
        before: Some(write(before)),
        after: Some(write(after)),
        at: None,
    }
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

fn cpus(cpus: f64) -> String {
    format!("{cpus:.2} CPUs")
}

fn time(seconds: f64) -> String {
    Seconds(seconds).to_string()
}

fn per_s(bytes: f64) -> String {
    format!("{}/s", Bytes(bytes as u64))
}

/// By how many times a measure grew, as a logarithm; infinite where it was nothing before.
fn grown([before, after]: [f64; 2]) -> f64 {
    if before <= 0.0 && after <= 0.0 { 0.0 } else { (after / before).ln() }
}

fn differs(both: [f64; 2], factor: f64) -> bool {
    grown(both).abs() >= factor.ln()
}

fn said(text: &str, facts: Vec<FactChange>) -> Sign {
    let parts: Vec<String> = facts
        .iter()
        .map(|fact| {
            let value = |value: &Option<String>| value.clone().unwrap_or_default();
            format!("{} {} → {}", fact.id, value(&fact.before), value(&fact.after))
        })
        .collect();
    Sign { text: format!("{text}: {}", parts.join(", ")), facts, shortens: None }
}

fn steal_share(scene: &Scene) -> Option<[f64; 2]> {
    let host = &scene.history.host;
    let all = |at| {
        Some(host.number("busy_s", at)? + host.number("idle_s", at)? + host.number("steal_s", at)?)
    };
    scene.ratio(|at| host.number("steal_s", at), all)
}

/// A live migration leaves the server running. Then the model of the CPUs tells, or the clock, which stood still,
/// beside what another host has more or less of.
fn moved_host(scene: &Scene) -> Option<Sign> {
    if !scene.facts_of(&["instance"]).is_empty() {
        return None;
    }
    let hardware = scene.facts_of(&["cpu-model", "machine-id"]);
    let near = crate::changed::near(scene.before.end, scene.after.start);
    let jumped =
        scene.times.clock_steps.iter().find(|(at, step_s)| near.contains(at) && *step_s > 0.0);
    let mut facts = hardware.clone();
    if let Some((_, step_s)) = jumped {
        facts.push(measure("clock behind by", [0.0, *step_s], time));
    }
    let steal = steal_share(scene).filter(|[a, b]| (a - b).abs() >= SAME_SHARE);
    facts.extend(steal.map(|both| measure("steal", both, percent)));
    let cpu = scene.per_request(|at| scene.track.number("cpu_s", at));
    let cpu = cpu.filter(|both| differs(*both, 1.15));
    facts.extend(cpu.map(|both| measure("CPU time of a request", both, time)));
    let is_moved = !hardware.is_empty() || (jumped.is_some() && (steal.is_some() || cpu.is_some()));
    is_moved.then(|| said("the machine probably moved to another host", facts))
}

fn steal(scene: &Scene) -> Option<Sign> {
    let both = steal_share(scene).filter(|[a, b]| (a - b).abs() >= SAME_SHARE)?;
    let sign = said("other guests of the hypervisor", vec![measure("steal", both, percent)]);
    Some(sign.that_shortens(both[1] < both[0]))
}

/// What programs beside the database took of the CPUs, other databases too.
fn neighbour(scene: &Scene) -> Option<Sign> {
    let host = &scene.history.host;
    let programs = host.columns("neighbour.").map(|(id, column)| {
        let name = id.strip_suffix(".cpu_s").unwrap_or(id).to_owned();
        (name, column)
    });
    let databases = scene.history.databases.iter().filter(|(name, _)| *name != scene.name);
    let databases = databases.map(|(name, track)| (name.clone(), track.column("cpu_s")));
    let each = programs.chain(databases).filter_map(|(name, column)| {
        let value = |at: usize| {
            // A program that is not among those recorded took next to nothing.
            Some(column.get(at).copied().filter(|value| value.is_finite()).unwrap_or(0.0))
        };
        Some((name, scene.per_second(value)?))
    });
    let each: Vec<(String, [f64; 2])> = each.collect();
    let sum = |side: usize| each.iter().map(|(_, both)| both[side]).sum::<f64>();
    let all = [sum(0), sum(1)];
    if (all[1] - all[0]).abs() < LEAST_CPUS || !differs(all, SAME) {
        return None;
    }
    let way = (all[1] - all[0]).signum();
    let most = |both: &[f64; 2]| (both[1] - both[0]) * way;
    let (name, both) = each.iter().max_by(|a, b| most(&a.1).total_cmp(&most(&b.1)))?;
    let text = if way > 0.0 { "a neighbour came" } else { "a neighbour left" };
    Some(said(text, vec![measure(name, *both, cpus)]).that_shortens(way < 0.0))
}

/// The sum of a measure of the database's own flows, of the roles and directions that are wanted.
fn flows(
    scene: &Scene,
    at: usize,
    wanted: impl Fn(&str, &str) -> bool,
    measure: &str,
) -> Option<f64> {
    let mut sum: Option<f64> = None;
    for (id, column) in scene.track.columns("disk.") {
        let mut words = id.split('.').skip(1);
        let is = matches!((words.next(), words.next(), words.next()), (Some(role), Some(direction), Some(name))
            if name == measure && wanted(role, direction));
        if is {
            let value = column.get(at).copied().filter(|value| value.is_finite()).unwrap_or(0.0);
            sum = Some(sum.unwrap_or(0.0) + value);
        }
    }
    sum
}

fn is_read(_: &str, direction: &str) -> bool {
    direction == "read"
}

fn is_log_write(role: &str, direction: &str) -> bool {
    (role == "log" && direction == "write") || direction == "flush"
}

fn is_data_write(role: &str, direction: &str) -> bool {
    role == "data" && direction == "write"
}

/// The share of reads on each disk.
fn data_moved(scene: &Scene) -> Option<Sign> {
    let reads = |device: &str, at: usize| {
        let columns = scene.track.columns("disk.").filter(|(id, _)| {
            let mut words = id.split('.');
            words.next() == Some(device)
                && words.nth(1) == Some("read")
                && words.next() == Some("requests")
        });
        Some(
            columns
                .filter_map(|(_, column)| column.get(at))
                .filter(|value| value.is_finite())
                .sum::<f64>(),
        )
    };
    let devices: BTreeSet<&str> =
        scene.track.columns("disk.").filter_map(|(id, _)| id.split('.').next()).collect();
    let share = |device: &str| {
        scene.ratio(|at| reads(device, at), |at| flows(scene, at, is_read, "requests"))
    };
    let each = devices.iter().filter_map(|device| Some((*device, share(device)?)));
    let mut moved: Vec<(&str, [f64; 2])> = each.collect();
    moved.retain(|(_, both)| (both[1] - both[0]).abs() >= MOVED_SHARE);
    let facts =
        moved.iter().map(|(device, both)| measure(&format!("reads on {device}"), *both, percent));
    (!moved.is_empty()).then(|| said("data moved to another disk", facts.collect()))
}

/// How many reads a request takes, and how long one takes.
fn reads(scene: &Scene) -> Option<([f64; 2], [f64; 2])> {
    let count = scene.per_request(|at| flows(scene, at, is_read, "requests"))?;
    let each = scene.ratio(
        |at| flows(scene, at, is_read, "service_s"),
        |at| flows(scene, at, is_read, "requests"),
    );
    Some((count, each.unwrap_or([1.0, 1.0])))
}

fn count(value: f64) -> String {
    if value >= 0.01 || value == 0.0 { format!("{value:.2}") } else { format!("{value:.1e}") }
}

fn cache(scene: &Scene) -> Option<Sign> {
    let (number, each) = reads(scene)?;
    let is_this = differs(number, SAME) && grown(number).abs() >= grown(each).abs();
    let text =
        if grown(number) < 0.0 { "the cache got warm" } else { "the cache got cold, or too small" };
    let facts = vec![measure("reads of a request", number, count)];
    is_this.then(|| said(text, facts).that_shortens(grown(number) < 0.0))
}

fn read_latency(scene: &Scene) -> Option<Sign> {
    let (number, each) = reads(scene)?;
    let is_this = differs(each, SAME) && grown(each).abs() > grown(number).abs();
    let text = if grown(each) < 0.0 {
        "reads got faster, as they do when data becomes local"
    } else {
        "reads got slower"
    };
    let facts = vec![measure("a read", each, time), measure("reads of a request", number, count)];
    is_this.then(|| said(text, facts).that_shortens(grown(each) < 0.0))
}

fn write_latency(scene: &Scene) -> Option<Sign> {
    let each = scene.ratio(
        |at| flows(scene, at, is_log_write, "service_s"),
        |at| flows(scene, at, is_log_write, "requests"),
    )?;
    let text = if grown(each) < 0.0 {
        "writes of the log got faster"
    } else {
        "writes of the log got slower"
    };
    let facts = vec![measure("a write of the log", each, time)];
    differs(each, SAME).then(|| said(text, facts).that_shortens(grown(each) < 0.0))
}

fn write_burst(scene: &Scene) -> Option<Sign> {
    let bytes = scene.per_second(|at| flows(scene, at, is_data_write, "bytes"))?;
    if !differs(bytes, BURST) {
        return None;
    }
    let text = if grown(bytes) > 0.0 {
        "a burst of data writes began"
    } else {
        "a burst of data writes ended"
    };
    let mut facts = vec![measure("data writes", bytes, per_s)];
    let checkpoints = |at| scene.track.number("checkpoints", at);
    if let Some(both) = scene.per_second(checkpoints).filter(|both| differs(*both, SAME)) {
        facts.push(measure("checkpoints a minute", both.map(|rate| rate * 60.0), count));
    }
    Some(said(text, facts).that_shortens(grown(bytes) < 0.0))
}

/// What others read and write on the disks of the database.
fn disk_neighbour(scene: &Scene) -> Option<Sign> {
    let own: Vec<&str> =
        scene.track.columns("disk.").filter_map(|(id, _)| id.split('.').next()).collect();
    let host = &scene.history.host;
    let bytes = |at: usize| {
        let on_own = host.columns("others.").filter(|(id, _)| {
            let mut words = id.split('.');
            words.next().is_some_and(|device| own.contains(&device))
                && words.next_back() == Some("bytes")
        });
        Some(
            on_own.filter_map(|(_, column)| column.get(at)).filter(|value| value.is_finite()).sum(),
        )
    };
    let others = scene.per_second(bytes)?;
    let all_own = scene.per_second(|at| flows(scene, at, |_, _| true, "bytes"))?;
    let most = others[0].max(others[1]);
    let matters = most > 0.1 * all_own[0].max(all_own[1]) && differs(others, 1.5);
    let text = if grown(others) > 0.0 {
        "others began to use the disk"
    } else {
        "others stopped using the disk"
    };
    let facts = vec![measure("others' requests", others, per_s)];
    matters.then(|| said(text, facts).that_shortens(grown(others) < 0.0))
}

/// The share of memory on the node that has most.
fn placement(scene: &Scene) -> Option<Sign> {
    let nodes: Vec<(&str, &[f64])> = scene.track.columns("memory-on-node.").collect();
    if nodes.len() < 2 {
        return None;
    }
    let on = |at: usize, column: &[f64]| column.get(at).copied().filter(|value| value.is_finite());
    let all = |at: usize| Some(nodes.iter().filter_map(|(_, column)| on(at, column)).sum::<f64>());
    let (name, _, both) = nodes
        .iter()
        .filter_map(|(name, column)| {
            let both = scene.ratio(|at| Some(on(at, column).unwrap_or(0.0)), all)?;
            Some((*name, (both[1] - both[0]).abs(), both))
        })
        .max_by(|a, b| a.1.total_cmp(&b.1))?;
    let moved = (both[1] - both[0]).abs() >= SAME_SHARE;
    let node = format!("share on node {}", name.trim_end_matches("_bytes"));
    moved.then(|| said("memory moved between nodes", vec![measure(&node, both, percent)]))
}

/// More or fewer clients, or clients that wait longer or shorter between their requests.
fn load(scene: &Scene) -> Option<Sign> {
    let compared = scene.seconds.value()?;
    let at_once = [compared.at_once.before, compared.at_once.after];
    let client = compared.parts.iter().find(|part| part.part == "client");
    let mut facts =
        vec![measure("threads at work or waiting for clients", at_once, |n| format!("{n:.1}"))];
    facts.extend(
        client.map(|part| measure("between two requests", [part.before_s, part.after_s], time)),
    );
    let connections = scene.per_second(|at| {
        Some(scene.track.number("connections", at)? * scene.times.window_s.get(at)?)
    });
    facts.extend(connections.map(|both| measure("connections", both, |n| format!("{n:.0}"))));
    Some(said("the clients asked for another load", facts))
}
