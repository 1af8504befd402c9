//! What the storage of a database saw over all windows.

use crate::history::Track;
use std::collections::BTreeSet;
use untax_core::storage::{Storage, sort};

/// Each kind of request on each disk.
pub(crate) fn storage(track: &Track) -> Vec<Storage> {
    let flows: BTreeSet<String> = track
        .columns("disk.")
        .filter_map(|(id, _)| Some(id.strip_suffix(".requests")?.to_owned()))
        .collect();
    let seconds = sum(track.column("window_s")).max(f64::MIN_POSITIVE);
    let mut all: Vec<Storage> =
        flows.iter().filter_map(|flow| of_flow(track, flow, seconds)).collect();
    sort(&mut all);
    all
}

fn of_flow(track: &Track, flow: &str, seconds: f64) -> Option<Storage> {
    let column = |name: &str| track.column(&format!("disk.{flow}.{name}"));
    let mut words = flow.split('.').map(str::to_owned);
    let (device, role, direction) = (words.next()?, words.next()?, words.next()?);
    let requests = sum(column("requests"));
    if requests <= 0.0 {
        return None;
    }
    let (bytes, service_s) = (sum(column("bytes")), sum(column("service_s")));
    let peak = most(column("second_peak_bytes"));
    let median =
        untax_core::stats::median(column("second_median_bytes")).filter(|bytes| *bytes > 0.0);
    Some(Storage {
        device,
        role,
        direction,
        requests_per_s: requests / seconds,
        bytes_per_s: bytes / seconds,
        size_bytes: bytes / requests,
        sequential: sum(column("sequential")) / requests,
        latency_s: service_s / requests,
        latency_s_p99: most(column("p99_s")),
        queue_depth: service_s / seconds,
        burst: peak.zip(median).map(|(peak, median)| peak / median),
    })
}

fn sum(column: &[f64]) -> f64 {
    column.iter().filter(|value| value.is_finite()).sum()
}

fn most(column: &[f64]) -> Option<f64> {
    column.iter().copied().filter(|value| value.is_finite()).reduce(f64::max)
}
