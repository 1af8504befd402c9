//! Windows of agents, from what Prometheus kept of their metrics.

use crate::history::{History, Track};
use std::collections::{BTreeMap, BTreeSet};
use untax_fleet::{Client, FleetError, Over, Range, at_once, over_time};

/// Why there are no windows.
#[derive(Debug, thiserror::Error)]
pub enum PrometheusError {
    /// The store does not answer, or answers something else.
    #[error(transparent)]
    Fleet(#[from] FleetError),
    /// It keeps nothing of such a database.
    #[error("{0} has no database of that name; untax fleet --prometheus {0} lists them")]
    NoDatabase(String),
    /// More than a person can read, and than a store likes to hand out.
    #[error("{0} has {1} databases; choose one with --database NAME")]
    TooMany(String, usize),
}

/// Databases whose windows are asked for at once.
const MOST_DATABASES: usize = 20;

/// A store gives so many points of one series at most.
const MOST_POINTS: f64 = 10_000.0;

/// What a query gives.
type Rows = Vec<Over>;

/// The windows of the last `since_s` seconds, of one database or of all that there are.
pub fn history(
    url: &str,
    client: &Client,
    database: Option<&str>,
    since_s: f64,
) -> Result<History, PrometheusError> {
    let number = |text: &str| -> Result<Option<f64>, FleetError> {
        Ok(at_once(url, client, text)?.first().map(|row| row.value))
    };
    let now_s = number("time()")?.unwrap_or_default();
    let window_s = number("quantile(0.5, untax_agent_window_seconds)")?;
    let window_s = window_s.ok_or_else(|| FleetError::NoAgents(url.to_owned()))?;
    let step_s = window_s.max(since_s / MOST_POINTS).max(1.0);
    let points = (since_s / step_s).ceil().max(1.0);
    let range = Range { from_s: now_s - points * step_s, to_s: now_s, step_s };
    let ask = |text: &str| over_time(url, client, text, range);
    let which = database.map_or(String::new(), |name| format!("{{database={name:?}}}"));
    let found = at_once(
        url,
        client,
        &format!(
            "count by (node, database) (last_over_time(untax_database_processes{which}[{since_s:.0}s]))"
        ),
    )?;
    match found.len() {
        0 => return Err(PrometheusError::NoDatabase(url.to_owned())),
        many if many > MOST_DATABASES => {
            return Err(PrometheusError::TooMany(url.to_owned(), many));
        }
        _ => {}
    }
    let nodes: BTreeSet<&str> = found.iter().map(|row| row.label("node")).collect();
    let mut kept = Windows::new(range, points as usize, nodes.len() > 1);
    kept.ends(ask("untax_agent_last_window_timestamp_seconds")?);
    for (metric, id) in COUNTERS {
        kept.counter(ask(&format!("{metric}{which}"))?, id);
    }
    for (metric, id) in GAUGES {
        kept.gauge(ask(&format!("{metric}{which}"))?, id);
    }
    for (metric, id, write) in FACTS {
        kept.fact(&ask(&format!("{metric}{which}"))?, id, *write);
    }
    for (metric, label, id) in INFOS {
        let which = if metric.contains("node") { "" } else { &which };
        kept.info(&ask(&format!("{metric}{which}"))?, label, id);
    }
    Ok(kept.history)
}

/// Counters of databases, and the numbers that their growth is; `{…}` stands for a label.
const COUNTERS: &[(&str, &str)] = &[
    ("untax_database_requests_total", "requests"),
    ("untax_database_time_seconds_total", "part.{part}"),
    ("untax_disk_requests_total", "disk.all.{role}.{direction}.requests"),
    ("untax_disk_bytes_total", "disk.all.{role}.{direction}.bytes"),
    ("untax_disk_service_seconds_total", "disk.all.{role}.{direction}.service_s"),
    ("untax_disk_queue_seconds_total", "disk.all.{role}.{direction}.queue_s"),
    ("untax_database_minor_faults_total", "minor_faults"),
];

const GAUGES: &[(&str, &str)] = &[("untax_database_connections", "connections")];

/// How a value is written.
type Write = fn(f64) -> String;

/// Gauges that change rarely, and how they are written.
const FACTS: &[(&str, &str, Write)] = &[
    ("untax_database_cpu_limit_cores", "cpu-limit", |cpus| format!("{cpus} CPUs")),
    ("untax_database_memory_limit_bytes", "memory-limit", bytes),
    ("untax_database_page_size_bytes", "page-size", bytes),
];

/// Labels that are facts.
const INFOS: &[(&str, &str, &str)] = &[
    ("untax_database_info", "version", "version"),
    ("untax_database_info", "huge_pages", "huge-pages"),
    ("untax_node_info", "kernel", "kernel"),
    ("untax_node_info", "cpu", "cpu-model"),
    ("untax_node_info", "thp", "thp"),
    ("untax_node_info", "machine_id", "machine-id"),
];

fn bytes(bytes: f64) -> String {
    untax_core::Bytes(bytes as u64).to_string()
}

struct Windows {
    history: History,
    count: usize,
    /// Whether a database's name tells its node, too.
    names_nodes: bool,
    /// By how much the end of each node's last window moved, seconds.
    moved_s: BTreeMap<String, Vec<f64>>,
}

impl Windows {
    fn new(range: Range, count: usize, names_nodes: bool) -> Self {
        let at = |number: usize| range.from_s + (number + 1) as f64 * range.step_s;
        let history = History {
            at_s: (0..count).map(at).collect(),
            up_s: (0..count).map(at).collect(),
            window_s: vec![range.step_s; count],
            ..History::default()
        };
        Self { history, count, names_nodes, moved_s: BTreeMap::new() }
    }

    /// Takes when the last window of each node had ended.
    fn ends(&mut self, rows: Rows) {
        for (labels, points) in rows {
            let node = labels.get("node").cloned().unwrap_or_default();
            self.moved_s.insert(node, growth(&points, self.count));
        }
    }

    fn track(&mut self, labels: &BTreeMap<String, String>) -> Option<&mut Track> {
        let name = labels.get("database")?;
        let node = labels.get("node").map_or("", String::as_str);
        let name = if self.names_nodes { format!("{name} on {node}") } else { name.clone() };
        let is_new = !self.history.databases.contains_key(&name);
        let track = self.history.databases.entry(name).or_default();
        if is_new {
            for (at, moved_s) in self.moved_s.get(node).into_iter().flatten().enumerate() {
                // Where no window ended, or a node's clock was set back, nothing is known.
                if *moved_s > 0.0 {
                    track.put("window_s", at, *moved_s);
                }
            }
            track.set(0, "engine", labels.get("engine").cloned());
        }
        Some(track)
    }

    fn counter(&mut self, rows: Rows, id: &str) {
        let count = self.count;
        for (labels, points) in rows {
            let id = filled(id, &labels);
            let Some(track) = self.track(&labels) else { continue };
            for (at, grown) in growth(&points, count).into_iter().enumerate() {
                if grown >= 0.0 && track.number("window_s", at).is_some() {
                    match id.strip_prefix("part.") {
                        Some(part) => add_part(track, part, at, grown),
                        None => track.put(&id, at, grown),
                    }
                }
            }
        }
    }

    fn gauge(&mut self, rows: Rows, id: &str) {
        for (labels, points) in rows {
            let Some(track) = self.track(&labels) else { continue };
            for (number, value) in points {
                if let Some(at) = number.checked_sub(1) {
                    track.put(id, at, value);
                }
            }
        }
    }

    fn fact(&mut self, rows: &Rows, id: &str, write: fn(f64) -> String) {
        for (labels, points) in rows {
            let Some(track) = self.track(labels) else { continue };
            for (number, value) in points {
                track.set(number.saturating_sub(1), id, Some(write(*value)));
            }
        }
    }

    /// Labels of several rows of one thing, each for as long as it stood. Facts of a node are those of its databases.
    fn info(&mut self, rows: &Rows, label: &str, id: &str) {
        let mut all: BTreeMap<BTreeMap<&str, &str>, Vec<(usize, &str)>> = BTreeMap::new();
        for (labels, points) in rows {
            let key = |name: &'static str| labels.get(name).map(|value| (name, value.as_str()));
            let keys = [key("node"), key("database")].into_iter().flatten().collect();
            let value = labels.get(label).map_or("", String::as_str);
            let stood = points.iter().map(|(number, _)| (number.saturating_sub(1), value));
            all.entry(keys).or_default().extend(stood);
        }
        for (keys, mut stood) in all {
            stood.sort_unstable();
            let keys: BTreeMap<String, String> =
                keys.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
            if keys.contains_key("database") {
                let Some(track) = self.track(&keys) else { continue };
                for (at, value) in stood {
                    track.set(at, id, Some(value.to_owned()));
                }
            } else if self.moved_s.len() == 1 {
                for (at, value) in stood {
                    self.history.host.set(at, id, Some(value.to_owned()));
                }
            }
        }
    }
}

/// The parts of time that an agent tells are of all threads, and lie within each other: what is left of waits for a
/// CPU is the run queue's. Idle time is left out, since most of it is of threads that serve nobody.
fn add_part(track: &mut Track, part: &str, at: usize, grown: f64) {
    let (id, sign) = match part {
        "on_cpu" => ("cpu", 1.0),
        "runnable" => ("run-queue", 1.0),
        "throttled" => ("throttled", 1.0),
        "wake_up" => ("wake-up", 1.0),
        "disk" => ("disk", 1.0),
        "reclaim" => ("memory", 1.0),
        "lock" => ("unresolved", 1.0),
        "network" => ("network", 1.0),
        _ => return,
    };
    track.add(&format!("time.{id}_s"), at, sign * grown);
    if matches!(part, "throttled" | "wake_up") {
        track.add("time.run-queue_s", at, -grown);
    }
}

/// `disk.all.{role}` with the value of that label.
fn filled(id: &str, labels: &BTreeMap<String, String>) -> String {
    let mut filled = id.to_owned();
    for (name, value) in labels {
        filled = filled.replace(&format!("{{{name}}}"), value);
    }
    filled
}

/// By how much a counter grew from each moment to the next; not a number where it is not known at both, less than
/// 0 where it began anew.
fn growth(points: &[(usize, f64)], count: usize) -> Vec<f64> {
    let mut grown = vec![f64::NAN; count];
    for both in points.windows(2) {
        let [(before_at, before), (at, value)] = *both else { continue };
        if at == before_at + 1 && before_at < count {
            grown[before_at] = value - before;
        }
    }
    grown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(all: &[(&str, &str)]) -> BTreeMap<String, String> {
        all.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn windows() -> Windows {
        let range = Range { from_s: 1000.0, to_s: 1240.0, step_s: 60.0 };
        let mut windows = Windows::new(range, 4, false);
        // No window ended between the second moment and the third.
        let ends = vec![(0, 990.0), (1, 1050.0), (2, 1050.0), (3, 1170.0), (4, 1230.0)];
        windows.ends(vec![(labels(&[("node", "a")]), ends)]);
        windows
    }

    #[test]
    fn counters_grow_by_the_windows_of_their_node() {
        let mut windows = windows();
        let of = [("node", "a"), ("database", "x"), ("engine", "postgres")];
        let points = vec![(0, 100.0), (1, 700.0), (2, 700.0), (3, 1900.0), (4, 5.0)];
        windows.counter(vec![(labels(&of), points)], "requests");
        let track = &windows.history.databases["x"];
        let known =
            [0, 1, 2, 3].map(|at| (track.number("window_s", at), track.number("requests", at)));
        let expected = [
            (Some(60.0), Some(600.0)),
            (None, None),
            (Some(120.0), Some(1200.0)),
            (Some(60.0), None),
        ];
        assert_eq!(known, expected, "the last one began anew");
        assert_eq!(track.fact("engine", 3), Some("postgres"));
    }

    #[test]
    fn throttled_time_is_no_run_queue() {
        let mut windows = windows();
        for (part, spent_s) in [("runnable", 5.0), ("throttled", 3.0), ("idle", 900.0)] {
            let of = [("node", "a"), ("database", "x"), ("part", part)];
            windows.counter(vec![(labels(&of), vec![(0, 0.0), (1, spent_s)])], "part.{part}");
        }
        let track = &windows.history.databases["x"];
        assert_eq!(track.number("time.throttled_s", 0), Some(3.0));
        assert_eq!(track.number("time.run-queue_s", 0), Some(2.0));
        assert_eq!(track.columns("time.").count(), 2, "no idle time");
    }

    #[test]
    fn a_fact_changes_when_its_label_does() {
        let mut windows = windows();
        let row = |version, points: Vec<(usize, f64)>| {
            (labels(&[("node", "a"), ("database", "x"), ("version", version)]), points)
        };
        let rows =
            vec![row("18.1", vec![(3, 1.0), (4, 1.0)]), row("17.2", vec![(0, 1.0), (1, 1.0)])];
        windows.info(&rows, "version", "version");
        let track = &windows.history.databases["x"];
        assert_eq!(
            (track.fact("version", 1), track.fact("version", 3)),
            (Some("17.2"), Some("18.1"))
        );
    }
}
