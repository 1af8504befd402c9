//! From a window and its check to what is recorded of it: pure.

use crate::moment::{Moment, Values};
use std::collections::{BTreeMap, BTreeSet};
use untax_core::activity::{Doing, Part};
use untax_core::check::Checked;
use untax_core::host::{CpuTime, HostFacts};
use untax_core::io::{Flow, Place, Role};
use untax_core::timeline::CLIENT;
use untax_core::window::Pair;
use untax_core::{Bytes, Check, Database, Io, Reading, Window, stats};

/// Programs that had less of the CPUs than this (CPUs) are not recorded: they would be many, and matter little.
const LEAST_NEIGHBOUR: f64 = 0.05;

/// So many programs are recorded, those that had most.
const MOST_NEIGHBOURS: usize = 5;

/// What is recorded of a window. `names` are the stable names of the databases at its end, in their order.
pub fn moment(window: &Window, check: &Check, names: &[String]) -> Moment {
    let all = window.databases().zip(&check.databases).zip(names);
    let databases = all.map(|((pair, checked), name)| {
        (name.clone(), of_database(&pair, checked, check.io.value()))
    });
    Moment {
        at: window.end.taken_at,
        up_s: window.end.uptime_s,
        window_s: window.seconds(),
        host: of_host(window, check.io.value()),
        databases: databases.collect(),
    }
}

fn of_database(pair: &Pair, checked: &Checked, io: Option<&Io>) -> Values {
    let mut values = Values::default();
    let database = pair.end;
    values.number("window_s", pair.seconds);
    if let Some(count) = &database.traits.requests_counter {
        values.known("requests", pair.told_growth(count).into_value());
    }
    counted(&mut values, pair);
    values.known("connections", checked.connections.value().map(|count| f64::from(*count)));
    seconds(&mut values, pair, checked);
    if let Some(io) = io {
        for flow in io.flows_of(&database.id) {
            of_flow(&mut values, flow);
        }
    }
    facts(&mut values, database, checked);
    let places: Vec<&Place> = io.map(|io| io.places_of(&database.id).collect()).unwrap_or_default();
    of_places(&mut values, &places);
    values
}

/// What the kernel and the server counted.
fn counted(values: &mut Values, pair: &Pair) {
    let seconds = |name: &str, read: fn(&Database) -> Reading<untax_core::Seconds>| {
        pair.growth(name, |database| read(database).map(|time_s| time_s.0)).into_value()
    };
    values.known("cpu_s", seconds("time on CPU", |database| database.counters.on_cpu_s.clone()));
    values.known(
        "system_s",
        seconds("time in the kernel", |database| database.counters.system_s.clone()),
    );
    let faults = |database: &Database| database.counters.minor_faults.clone().map(|n| n as f64);
    values.known("minor_faults", pair.growth("minor faults", faults).into_value());
    let checkpoints: Vec<f64> = ["checkpoints_timed", "checkpoints_req"]
        .iter()
        .filter_map(|name| pair.told_growth(name).into_value())
        .collect();
    if !checkpoints.is_empty() {
        values.number("checkpoints", checkpoints.iter().sum());
    }
}

/// The seconds of the threads that serve requests, by part: those of the ledger, waits of unknown meaning, and
/// waits for clients by threads that did anything at all.
fn seconds(values: &mut Values, pair: &Pair, checked: &Checked) {
    let (Some(ledger), Some(activity)) = (checked.ledger.value(), pair.activity.value()) else {
        return;
    };
    let account = &ledger.serving;
    let mut add = |part: &str, time_s: f64| values.more(format!("time.{part}_s"), time_s);
    for entry in &account.entries {
        if let Ok(serde_json::Value::String(cause)) = serde_json::to_value(entry.cause) {
            add(&cause, entry.own_s.0 + entry.behind_s.0);
        }
    }
    let model = pair.end.model;
    let of = |part: Part| {
        activity.sum(|spent| {
            !spent.in_background(model)
                && spent.part(model) == part
                && spent.doing != Doing::Dormant
        })
    };
    add("unresolved", account.remains_s.0 + of(Part::Unaccounted).0);
    add(CLIENT, of(Part::Idle).0);
    let behind: f64 = account.entries.iter().map(|entry| entry.behind_s.0).sum();
    values.number("behind_s", behind);
}

/// `disk.DEVICE.ROLE.DIRECTION.…`; a device's name has no point in it but for partitions of odd kinds, which are
/// written with an underscore.
fn of_flow(values: &mut Values, flow: &Flow) {
    let device = flow.device.replace('.', "_");
    let begin = format!("disk.{device}.{}.{}", flow.role.name(), flow.direction.name());
    let requests = flow.requests as f64;
    let mut add = |name: &str, value: f64| values.number(format!("{begin}.{name}"), value);
    add("requests", requests);
    add("bytes", flow.bytes.0 as f64);
    add("sequential", flow.sequential * requests);
    add("service_s", flow.latency.mean_s.0 * requests);
    add("queue_s", flow.queued_s.0 * requests);
    add("p99_s", flow.latency.p99_s.0);
    if let Some(seconds) = &flow.seconds {
        let bytes: Vec<f64> = seconds.iter().map(|second| second.bytes.0 as f64).collect();
        add("second_peak_bytes", bytes.iter().copied().fold(0.0, f64::max));
        add("second_median_bytes", stats::median(&bytes).unwrap_or(f64::NAN));
    }
}

fn facts(values: &mut Values, database: &Database, checked: &Checked) {
    values.fact("engine", Some(database.engine.clone()));
    let started = database.started_ticks.value();
    values.fact("instance", started.map(|ticks| format!("{}:{ticks}", database.pid)));
    values.fact("version", database.version.value().cloned());
    values.fact("product", Some(database.product.clone()));
    values.fact("container", database.container.as_ref().map(|container| container.id.clone()));
    values.fact("pod", database.pod.as_ref().map(|pod| pod.uid.clone()));
    values.fact("allowed-cpus", database.allowed_cpus.value().cloned());
    values.fact("page-size", checked.memory.page_size_bytes.value().map(Bytes::to_string));
    values.fact("huge-pages", database.huge_pages.value().map(|pages| pages.asked.clone()));
    if let Some(cgroup) = database.cgroup.value() {
        if let Some(limits) = cgroup.cpu.value() {
            let least = limits.iter().map(|limit| limit.cpus).reduce(f64::min);
            values.fact(
                "cpu-limit",
                Some(least.map_or("none".to_owned(), |cpus| format!("{cpus} CPUs"))),
            );
        }
        let memory = cgroup.memory_limit_bytes.value().map(Bytes::to_string);
        let none =
            matches!(cgroup.memory_limit_bytes, Reading::Absent(_)).then(|| "none".to_owned());
        values.fact("memory-limit", memory.or(none));
        if let Some(limits) = cgroup.io.value() {
            let limit = |limit: &untax_core::database::IoLimit| {
                format!("{:?} {}/s on {}", limit.what, limit.per_s, limit.device)
            };
            let all: Vec<String> = limits.iter().map(limit).collect();
            values.fact(
                "io-limit",
                Some(if all.is_empty() { "none".to_owned() } else { all.join(", ") }),
            );
        }
    }
    for (name, value) in database.settings.value().into_iter().flat_map(|settings| &settings.values)
    {
        // A role that changes by itself is no setting.
        let id =
            if name == "in_hot_standby" { "role".to_owned() } else { format!("setting.{name}") };
        let value = match (name.as_str(), value.as_str()) {
            ("in_hot_standby", "on") => "standby",
            ("in_hot_standby", _) => "primary",
            (_, value) => value,
        };
        values.fact(id, Some(value));
    }
    if let Some(placement) = database.placement.value() {
        let nodes = placement.memory.value().into_iter().flatten();
        for on_node in nodes {
            values.number(format!("memory-on-node.{}_bytes", on_node.node), on_node.bytes.0 as f64);
        }
    }
}

/// Where the database keeps what: filesystem, its mount and its device.
fn of_places(values: &mut Values, places: &[&Place]) {
    let mut all: BTreeMap<Role, Vec<String>> = BTreeMap::new();
    for place in places {
        let Some(filesystem) = place.filesystem.value() else { continue };
        let on = filesystem.device.as_deref().or(filesystem.network.as_deref()).unwrap_or("?");
        let text = format!("{} on {on} at {}", filesystem.kind, filesystem.point);
        let known = all.entry(place.role).or_default();
        if !known.contains(&text) {
            known.push(text);
        }
    }
    for (role, mut places) in all {
        places.sort();
        values.fact(format!("place.{}", role.name()), Some(places.join(", ")));
    }
}

fn of_host(window: &Window, io: Option<&Io>) -> Values {
    let mut values = Values::default();
    let (start, end) = (&window.start.host, &window.end.host);
    if let Some((start, end)) = start.cpu_time.value().zip(end.cpu_time.value()) {
        let grown = |of: fn(&CpuTime) -> f64| of(end) - of(start);
        values.number("busy_s", grown(|time| time.busy_s.0));
        values.number("idle_s", grown(|time| time.idle_s.0));
        values.number("steal_s", grown(|time| time.steal_s.0));
    }
    let databases = window.start.databases.iter().chain(&window.end.databases);
    let mut own: BTreeSet<u32> = databases.flat_map(|database| database.pids.clone()).collect();
    // Clients have more to do when their database is faster: they are no neighbours.
    own.extend(window.activity.value().into_iter().flatten().flat_map(|all| all.clients.clone()));
    let mut neighbours: BTreeMap<&str, f64> = BTreeMap::new();
    for other in window.others.iter().filter(|other| !own.contains(&other.pid)) {
        *neighbours.entry(other.name.as_str()).or_insert(0.0) += other.cpu_s.0;
    }
    let mut neighbours: Vec<(&str, f64)> = neighbours.into_iter().collect();
    neighbours.retain(|(_, cpu_s)| *cpu_s >= LEAST_NEIGHBOUR * window.seconds());
    neighbours.sort_by(|a, b| b.1.total_cmp(&a.1));
    for (name, cpu_s) in neighbours.into_iter().take(MOST_NEIGHBOURS) {
        values.number(format!("neighbour.{name}.cpu_s"), cpu_s);
    }
    if let Some(io) = io {
        // What others read and wrote, on each disk.
        for flow in io.flows.value().into_iter().flatten().filter(|flow| flow.database.is_none()) {
            let begin =
                format!("others.{}.{}", flow.device.replace('.', "_"), flow.direction.name());
            values.more(format!("{begin}.requests"), flow.requests as f64);
            values.more(format!("{begin}.bytes"), flow.bytes.0 as f64);
        }
    }
    host_facts(&mut values, end);
    values
}

fn host_facts(values: &mut Values, host: &HostFacts) {
    values.fact("kernel", host.kernel.value().map(|kernel| kernel.release.clone()));
    values.fact("cpu-model", host.cpu.value().map(|cpu| cpu.model.clone()));
    values.fact("cpus", host.cpu.value().map(|cpu| cpu.logical.to_string()));
    values.fact("machine-id", host.machine_id.value().cloned());
    values.fact("thp", host.thp.value().map(|thp| thp.mode().to_owned()));
    for pool in host.hugepages.value().into_iter().flatten().filter(|pool| pool.node.is_none()) {
        let total = pool.total.value().map(u64::to_string);
        values.fact(format!("pool.{}", pool.size_bytes), total);
    }
    for (name, value) in host.sysctls.value().into_iter().flatten() {
        values.fact(format!("sysctl.{name}"), Some(value.clone()));
    }
}
