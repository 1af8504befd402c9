//! The requests of a database to disks, by what the file is for: the log against data.

use crate::catalogue::{
    DISK_BURST, DISK_BYTES, DISK_QUEUE, DISK_REQUESTS, DISK_SEQUENTIAL, DISK_TIME,
};
use crate::sample::Samples;
use std::collections::BTreeMap;
use untax_core::io::{Direction, Flow, Role};
use untax_core::{Io, Reading};

/// Adds what grew.
pub(super) fn counters(samples: &mut Samples, io: &Reading<Io>, database: &str) {
    for ((role, direction), flows) in by_kind(io, database) {
        let labels = [role.name(), direction.name()];
        let sum = |of: &dyn Fn(&Flow) -> f64| flows.iter().map(|flow| of(flow)).sum::<f64>();
        let requests = |flow: &Flow| flow.requests as f64;
        samples.add(&DISK_REQUESTS, &labels, sum(&requests));
        samples.add(&DISK_BYTES, &labels, sum(&|flow| flow.bytes.0 as f64));
        samples.add(&DISK_TIME, &labels, sum(&|flow| flow.latency.mean_s.0 * requests(flow)));
        samples.add(&DISK_QUEUE, &labels, sum(&|flow| flow.queued_s.0 * requests(flow)));
    }
}

/// Adds what the last window says.
pub(super) fn gauges(samples: &mut Samples, io: &Reading<Io>, database: &str) {
    for ((role, direction), flows) in by_kind(io, database) {
        let labels = [role.name(), direction.name()];
        let requests: f64 = flows.iter().map(|flow| flow.requests as f64).sum();
        let in_row: f64 = flows.iter().map(|flow| flow.sequential * flow.requests as f64).sum();
        // Without a request there is no share of them: a division by 0 is not told.
        samples.add(&DISK_SEQUENTIAL, &labels, in_row / requests);
        let burst = flows.iter().map(|flow| flow.burst).fold(0.0, f64::max);
        samples.add(&DISK_BURST, &labels, burst);
    }
}

/// The flows of a database on all devices; none where they were not traced.
fn by_kind<'a>(
    io: &'a Reading<Io>,
    database: &'a str,
) -> BTreeMap<(Role, Direction), Vec<&'a Flow>> {
    let mut kinds: BTreeMap<_, Vec<&Flow>> = BTreeMap::new();
    for flow in io.value().into_iter().flat_map(|io| io.flows_of(database)) {
        kinds.entry((flow.role, flow.direction)).or_default().push(flow);
    }
    kinds
}
