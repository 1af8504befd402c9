//! What is told of one database.

use super::{disks, taxes};
use crate::catalogue::{
    AT_ONCE, CONNECTIONS, CPU_LIMIT, DATABASE, MEMORY, MEMORY_LIMIT, MINOR_FAULTS, PAGE_SIZE,
    PRESSURE, PROCESSES, REQUESTS, ROUND_TRIP, SECONDS_LEFT, TIME,
};
use crate::exhaustion::seconds_left;
use crate::sample::{Sample, Samples};
use untax_core::check::{Checked, TimeShares};
use untax_core::database::Model;
use untax_core::window::Pair;
use untax_core::{Bytes, Database, Io, Reading, Seconds};

/// Microseconds in a second.
const US: f64 = 1e6;

/// The samples of one database of a window: counters first, so that no gauge takes their place.
pub(crate) fn of_database(
    pair: &Pair,
    checked: &Checked,
    io: &Reading<Io>,
    is_beside_trial: bool,
) -> Vec<Sample> {
    let mut samples = Samples::default();
    facts(&mut samples, pair.end);
    time(&mut samples, &checked.time);
    work(&mut samples, pair);
    taxes::counters(&mut samples, checked, is_beside_trial);
    disks::counters(&mut samples, io, &checked.id);
    gauges(&mut samples, pair.end, checked);
    samples.add_reading(&AT_ONCE, &[], pair.load().map(|load| load.at_once));
    taxes::gauges(&mut samples, checked);
    disks::gauges(&mut samples, io, &checked.id);
    samples.0
}

fn facts(samples: &mut Samples, database: &Database) {
    let or_empty = |text: &Reading<String>| text.value().cloned().unwrap_or_default();
    let asked = database.huge_pages.value().map_or("", |pages| &pages.asked);
    let version = or_empty(&database.version);
    samples.add(&DATABASE, &[&version, &database.product, model(database.model), asked], 1.0);
}

fn model(model: Model) -> &'static str {
    match model {
        Model::Process => "process",
        Model::Thread => "thread",
        Model::Loop => "loop",
        Model::Unknown => "",
    }
}

/// The parts of a database's time, as a check names them without their unit.
pub(super) fn parts(time: &TimeShares) -> [(&'static str, &Reading<Seconds>); 11] {
    [
        ("on_cpu", &time.on_cpu_s),
        ("minor_faults", &time.minor_faults_s),
        ("runnable", &time.runnable_s),
        ("throttled", &time.throttled_s),
        ("wake_up", &time.wake_up_s),
        ("disk", &time.disk_s),
        ("reclaim", &time.reclaim_s),
        ("lock", &time.lock_s),
        ("network", &time.network_s),
        ("idle", &time.idle_s),
        ("unaccounted", &time.unaccounted_s),
    ]
}

fn time(samples: &mut Samples, time: &TimeShares) {
    for (part, spent_s) in parts(time) {
        if let Some(spent_s) = spent_s.value() {
            samples.add(&TIME, &[part], spent_s.0);
        }
    }
}

fn work(samples: &mut Samples, pair: &Pair) {
    if let Some(count) = &pair.end.traits.requests_counter {
        samples.add_reading(&REQUESTS, &[], pair.told_growth(count));
    }
    let faults = |database: &Database| database.counters.minor_faults.clone().map(|n| n as f64);
    samples.add_reading(&MINOR_FAULTS, &[], pair.growth("minor faults", faults));
}

fn gauges(samples: &mut Samples, database: &Database, checked: &Checked) {
    samples.add_reading(&CONNECTIONS, &[], checked.connections.clone());
    samples.add(&PROCESSES, &[], f64::from(checked.processes));
    let memory = &checked.memory;
    let kinds = [
        ("shared", &memory.shared_bytes),
        ("resident", &memory.resident_bytes),
        ("page_tables", &memory.page_table_bytes),
        ("hugetlb", &memory.hugetlb_bytes),
        ("anon_huge", &memory.anon_huge_bytes),
    ];
    for (kind, bytes) in kinds {
        samples.add_reading(&MEMORY, &[kind], float(bytes));
    }
    samples.add_reading(&PAGE_SIZE, &[], float(&memory.page_size_bytes));
    if let Some(cgroup) = database.cgroup.value() {
        samples.add_reading(&MEMORY_LIMIT, &[], float(&cgroup.memory_limit_bytes));
        let limits = cgroup.cpu.value().into_iter().flatten();
        if let Some(cpus) = limits.map(|limit| limit.cpus).reduce(f64::min) {
            samples.add(&CPU_LIMIT, &[], cpus);
        }
    }
    if let Some(seconds) = seconds_left(checked) {
        samples.add(&SECONDS_LEFT, &[], seconds);
    }
    pressure(samples, checked);
    let network = &checked.network;
    let trips = [("0.5", &network.client_rtt_us_p50), ("0.99", &network.client_rtt_us_p99)];
    for (quantile, us) in trips {
        samples.add_reading(&ROUND_TRIP, &[quantile], us.clone().map(|us| us / US));
    }
}

fn pressure(samples: &mut Samples, checked: &Checked) {
    let Some(pressure) = checked.pressure.value() else { return };
    let shares = [
        ("cpu", "some", &pressure.cpu_some),
        ("cpu", "full", &pressure.cpu_full),
        ("io", "some", &pressure.io_some),
        ("io", "full", &pressure.io_full),
        ("memory", "some", &pressure.memory_some),
        ("memory", "full", &pressure.memory_full),
    ];
    for (resource, kind, share) in shares {
        samples.add_reading(&PRESSURE, &[resource, kind], share.clone());
    }
}

/// Bytes as a value of a metric.
pub(super) fn float(bytes: &Reading<Bytes>) -> Reading<f64> {
    bytes.clone().map(|bytes| bytes.0 as f64)
}
