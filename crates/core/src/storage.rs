//! What the storage of a database sees: each kind of request on each disk, and a sentence about all of them.

use crate::io::{Flow, Io, Second};
use crate::{Bytes, Seconds};
use serde::{Deserialize, Serialize};

/// What passed one disk for one purpose, over all windows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Storage {
    /// The device.
    pub device: String,
    /// What it was for.
    pub role: String,
    /// `read`, `write`, `flush` or `discard`.
    pub direction: String,
    /// Requests a second.
    pub requests_per_s: f64,
    /// Bytes a second.
    pub bytes_per_s: f64,
    /// Bytes of a request, mean.
    pub size_bytes: f64,
    /// Share (0..1) that began where an earlier one had ended.
    pub sequential: f64,
    /// Mean time from issue to completion.
    pub latency_s: f64,
    /// The 99th percentile of the slowest window.
    pub latency_s_p99: Option<f64>,
    /// Requests that the device had at once, mean.
    pub queue_depth: f64,
    /// Bytes of the busiest second over those of the median second; `None` where half of all seconds had none, or
    /// seconds were not told apart.
    pub burst: Option<f64>,
}

impl Storage {
    /// What the storage of one database saw in a window.
    pub fn of(io: &Io, database: &str) -> Vec<Self> {
        let seconds = io.window_s.0.max(f64::MIN_POSITIVE);
        let mut all: Vec<Self> =
            io.flows_of(database).map(|flow| Self::of_flow(flow, seconds)).collect();
        sort(&mut all);
        all
    }

    fn of_flow(flow: &Flow, seconds: f64) -> Self {
        let requests = flow.requests as f64;
        Self {
            device: flow.device.clone(),
            role: flow.role.name().to_owned(),
            direction: flow.direction.name().to_owned(),
            requests_per_s: requests / seconds,
            bytes_per_s: flow.bytes.0 as f64 / seconds,
            size_bytes: flow.bytes.0 as f64 / requests.max(1.0),
            sequential: flow.sequential,
            latency_s: flow.latency.mean_s.0,
            latency_s_p99: Some(flow.latency.p99_s.0),
            // Each is there for as long as it takes: Little's law.
            queue_depth: requests * flow.latency.mean_s.0 / seconds,
            burst: flow.seconds.as_deref().and_then(burst),
        }
    }

    fn is(&self, role: &str, direction: &str) -> bool {
        self.role == role && self.direction == direction
    }
}

/// In the order of output: what moves most first.
pub fn sort(all: &mut [Storage]) {
    all.sort_by(|a, b| {
        b.bytes_per_s.total_cmp(&a.bytes_per_s).then_with(|| {
            (&a.device, &a.role, &a.direction).cmp(&(&b.device, &b.role, &b.direction))
        })
    });
}

/// Bytes of the busiest of some seconds over those of the median one; `None` where half of them had none, or there are
/// fewer than three.
pub fn burst(seconds: &[Second]) -> Option<f64> {
    let bytes: Vec<f64> = seconds.iter().map(|second| second.bytes.0 as f64).collect();
    let median = crate::stats::median(&bytes).filter(|median| *median > 0.0 && bytes.len() >= 3)?;
    Some(bytes.iter().copied().fold(0.0, f64::max) / median)
}

/// Several rows as one: sums, and means over requests.
fn together<'a>(rows: impl Iterator<Item = &'a Storage>) -> Option<Storage> {
    rows.cloned().reduce(|a, b| {
        let (one, other) = (a.requests_per_s, b.requests_per_s);
        let all = (one + other).max(f64::MIN_POSITIVE);
        let mean = |a: f64, b: f64| (a * one + b * other) / all;
        Storage {
            requests_per_s: one + other,
            bytes_per_s: a.bytes_per_s + b.bytes_per_s,
            size_bytes: mean(a.size_bytes, b.size_bytes),
            sequential: mean(a.sequential, b.sequential),
            latency_s: mean(a.latency_s, b.latency_s),
            queue_depth: a.queue_depth + b.queue_depth,
            burst: a.burst.into_iter().chain(b.burst).reduce(f64::max),
            latency_s_p99: a.latency_s_p99.into_iter().chain(b.latency_s_p99).reduce(f64::max),
            ..a
        }
    })
}

/// Fewer requests than this in a second are hardly any.
const HARDLY_PER_S: f64 = 1.0;

/// A person's sentence about it; empty where nothing passed. `memory_bytes` is what holds data in memory, where
/// that is known.
pub fn in_words(all: &[Storage], memory_bytes: Option<Bytes>) -> String {
    let of =
        |role: &str, direction: &str| together(all.iter().filter(|row| row.is(role, direction)));
    let mut said = Vec::new();
    let log = of("log", "write").filter(|log| log.requests_per_s >= HARDLY_PER_S);
    if let Some(data) = of("data", "write").filter(|data| data.requests_per_s >= HARDLY_PER_S) {
        said.push(writes("data writes", &data, log.as_ref()));
    }
    if let Some(log) = &log {
        said.push(writes("log writes", log, None));
    }
    if let Some(temp) = of("temp", "write").filter(|temp| temp.requests_per_s >= HARDLY_PER_S) {
        said.push(writes("temporary files", &temp, None));
    }
    let reads = together(all.iter().filter(|row| row.direction == "read"));
    let memory = memory_bytes.map_or(String::new(), |bytes| format!(" from {bytes} of memory"));
    match reads.filter(|reads| reads.requests_per_s >= HARDLY_PER_S) {
        Some(reads) => said.push(writes("reads", &reads, None)),
        None if said.is_empty() => return String::new(),
        None => said.push(format!("hardly any reads: data is served{memory}")),
    }
    said.join("; ")
}

fn writes(what: &str, row: &Storage, log: Option<&Storage>) -> String {
    let bursts = row.burst.filter(|burst| *burst >= 2.0).map(|burst| {
        let beside = log.and_then(|log| log.burst).filter(|log| *log > 0.0);
        let of_log = beside.map(|log| format!(", {:.1}× the log's", burst / log));
        format!(" in bursts of {burst:.0}× the median second{}", of_log.unwrap_or_default())
    });
    let pattern = match row.sequential {
        s if s >= 0.8 => "sequential".to_owned(),
        s => format!("{:.0} % random", (1.0 - s) * 100.0),
    };
    format!(
        "{what}{}: {:.0}/s of {} each, {pattern}, {}",
        bursts.unwrap_or_default(),
        row.requests_per_s,
        Bytes(row.size_bytes as u64),
        Seconds(row.latency_s)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(role: &str, direction: &str, requests_per_s: f64) -> Storage {
        Storage {
            device: "vda".to_owned(),
            role: role.to_owned(),
            direction: direction.to_owned(),
            requests_per_s,
            bytes_per_s: requests_per_s * 8192.0,
            size_bytes: 8192.0,
            sequential: if role == "log" { 1.0 } else { 0.04 },
            latency_s: 0.0015,
            latency_s_p99: None,
            queue_depth: 1.0,
            burst: Some(if role == "log" { 2.0 } else { 22.0 }),
        }
    }

    #[test]
    fn a_sentence_names_what_a_person_would() {
        let all =
            [row("data", "write", 900.0), row("log", "write", 100.0), row("data", "read", 0.2)];
        assert_eq!(
            in_words(&all, Some(Bytes(32 << 30))),
            "data writes in bursts of 22× the median second, 11.0× the log's: 900/s of 8 KiB each, 96 % random, \
             1.5 ms; log writes in bursts of 2× the median second: 100/s of 8 KiB each, sequential, 1.5 ms; hardly \
             any reads: data is served from 32 GiB of memory"
        );
        assert_eq!(in_words(&[], None), "");
    }

    #[test]
    fn a_burst_is_over_the_median_second() {
        let second = |bytes: &u64| Second { bytes: Bytes(*bytes), requests: 1 };
        let seconds = |all: &[u64]| all.iter().map(second).collect::<Vec<_>>();
        assert_eq!(burst(&seconds(&[10, 10, 10, 110, 10])), Some(11.0));
        assert_eq!(burst(&seconds(&[0, 0, 0, 110, 10])), None, "most seconds had nothing");
        assert_eq!(burst(&seconds(&[1, 2])), None);
    }
}
