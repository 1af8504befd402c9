//! Every metric. Documents, dashboards and tests are made from this list.

use crate::metric::{Kind, Metric, Of, Unit};

macro_rules! metrics {
    ($($name:ident: $kind:ident $base:literal $unit:ident of $of:ident [$($label:literal),*],
        $help:literal, $source:literal;)*) => {
        $(#[doc = "One of [`METRICS`]."] pub(crate) static $name: Metric = Metric {
            base: $base, kind: Kind::$kind, unit: Unit::$unit, of: Of::$of, labels: &[$($label),*],
            help: $help, source: $source,
        };)*
        /// All metrics, in the order of the exposition.
        pub static METRICS: &[&Metric] = &[$(&$name),*];
    };
}

metrics! {
    DATABASE: Info "untax_database" Count of Database ["version", "product", "model", "huge_pages"],
        "Facts of a database that change rarely",
        "databases[]: version, product, model, huge_pages.asked";
    ACTIVE: Counter "untax_database_active" Seconds of Database [],
        "Active time of the database's threads, which is everything but idle, in windows beside no trial",
        "databases[].time.active_s";
    TAX: Counter "untax_tax" Seconds of Database ["rule", "scope"],
        "Active time that a cause took in windows beside no trial: its share of a window times the active time of that window",
        "databases[].findings[].tax.share × time.active_s";
    MEASURED: Counter "untax_measured_active" Seconds of Database ["rule"],
        "Active time of the windows, beside no trial, in which the rule could measure its tax: what its tax is to be divided by",
        "time.active_s of windows without an entry of the rule in databases[].unmeasured";
    TOTAL_TAX: Gauge "untax_database_tax" Ratio of Database ["scope", "bound"],
        "Share of active time that all causes of a scope took in the last window",
        "databases[].tax, databases[].database_tax";
    TAX_RATIO: Gauge "untax_tax" Ratio of Database ["rule", "scope"],
        "Share of active time that a cause took in the last window",
        "databases[].findings[].tax.share";
    GAIN: Gauge "untax_gain" Ratio of Database ["rule", "bound"],
        "Predicted factor of throughput without the cause, in the last window",
        "databases[].findings[].gain";
    FINDING: Gauge "untax_finding" Count of Database ["rule", "scope", "severity"],
        "1 while the last window has this finding",
        "databases[].findings[]";
    UNMEASURED: Gauge "untax_unmeasured" Count of Database ["rule", "id"],
        "1 while the last window could not measure the rule; `id` is the reason",
        "databases[].unmeasured[]";
    TIME: Counter "untax_database_time" Seconds of Database ["part"],
        "Time of the database's threads by part; parts lie within each other as in time of a check",
        "databases[].time";
    REQUESTS: Counter "untax_database_requests" Count of Database [],
        "Requests that the server counted",
        "the engine's own count of requests";
    AT_ONCE: Gauge "untax_database_requests_at_once" Count of Database [],
        "Requests that were worked on at once in the last window, mean",
        "time of the threads that serve clients, over the window";
    CONNECTIONS: Gauge "untax_database_connections" Count of Database [],
        "Client connections",
        "databases[].connections";
    PROCESSES: Gauge "untax_database_processes" Count of Database [],
        "Processes of the database",
        "databases[].processes";
    MEMORY: Gauge "untax_database_memory" Bytes of Database ["kind"],
        "Memory of the database: shared, resident, page_tables, hugetlb, anon_huge",
        "databases[].memory";
    PAGE_SIZE: Gauge "untax_database_page_size" Bytes of Database [],
        "The page size behind most of the memory that holds the data",
        "databases[].memory.page_size_bytes";
    MEMORY_LIMIT: Gauge "untax_database_memory_limit" Bytes of Database [],
        "The lowest memory limit of the database's control groups",
        "memory.max and its like";
    SECONDS_LEFT: Gauge "untax_database_memory_left" Seconds of Database [],
        "Time until a memory limit is met at the speed of the last window; absent unless that is near",
        "databases[].findings[] of oom-near: memory-limit, memory-unreclaimable, memory-growth";
    CPU_LIMIT: Gauge "untax_database_cpu_limit_cores" Count of Database [],
        "The lowest CPU limit of the database's control groups, in CPUs",
        "cpu.max and its like";
    MINOR_FAULTS: Counter "untax_database_minor_faults" Count of Database [],
        "Minor page faults",
        "/proc/PID/stat of its processes";
    PRESSURE: Gauge "untax_database_pressure" Ratio of Database ["resource", "kind"],
        "Share of the last window in which tasks of the database's group, or of the machine, were held up",
        "databases[].pressure";
    ROUND_TRIP: Gauge "untax_database_client_round_trip" Seconds of Database ["quantile"],
        "Round trips to TCP clients",
        "databases[].network.client_rtt_us_p50, client_rtt_us_p99";
    DISK_REQUESTS: Counter "untax_disk_requests" Count of Database ["role", "direction"],
        "Requests to block devices for the database's files, by what the file is for",
        "io.flows[].requests";
    DISK_BYTES: Counter "untax_disk" Bytes of Database ["role", "direction"],
        "What these requests moved",
        "io.flows[].bytes";
    DISK_TIME: Counter "untax_disk_service" Seconds of Database ["role", "direction"],
        "From issue to completion, summed over these requests",
        "io.flows[]: latency.mean_s × requests";
    DISK_QUEUE: Counter "untax_disk_queue" Seconds of Database ["role", "direction"],
        "From the making of a request to its issue, summed over these requests",
        "io.flows[]: queued_s × requests";
    DISK_SEQUENTIAL: Gauge "untax_disk_sequential" Ratio of Database ["role", "direction"],
        "Share of these requests in the last window that began where an earlier one had ended",
        "io.flows[].sequential";
    DISK_BURST: Gauge "untax_disk_burst" Ratio of Database ["role", "direction"],
        "Bytes of the busiest quarter of a second over their mean, in the last window, of the burstiest device",
        "io.flows[].burst";
    NODE: Info "untax_node" Count of Node
        ["kernel", "arch", "distribution", "virtualization", "cpu", "thp", "machine_id"],
        "Facts of the node that change rarely; machine_id is a digest",
        "host";
    POOL_PAGES: Gauge "untax_node_huge_pages" Count of Node ["size_bytes", "state"],
        "Pages of a pool of huge pages: total, free, reserved, surplus",
        "host.hugepages";
    NODE_MEMORY: Gauge "untax_node_memory" Bytes of Node ["kind"],
        "Memory of the node: total, available, page_tables",
        "host.memory";
    NODE_CPU: Counter "untax_node_cpu" Seconds of Node ["mode"],
        "Time of the node's CPUs: busy, idle, steal",
        "host.cpu_time";
    NODE_FINDING: Gauge "untax_node_finding" Count of Node ["rule", "severity"],
        "1 while the last window has this finding of the node itself",
        "findings[]";
    NODE_UNMEASURED: Gauge "untax_node_unmeasured" Count of Node ["rule", "id"],
        "1 while the last window could not measure the rule on the node; `id` is the reason",
        "unmeasured[]";
    BUILD: Info "untax_agent_build" Count of Agent ["version"],
        "The version of the agent",
        "the program";
    UP: Gauge "untax_agent_up" Count of Agent [],
        "1 once windows are opened; 0 while the host cannot be read",
        "the agent";
    WINDOW: Gauge "untax_agent_window" Seconds of Agent [],
        "Length of the last window",
        "window_s";
    WINDOW_END: Gauge "untax_agent_last_window_timestamp" Seconds of Agent [],
        "When the last window ended, seconds since 1970",
        "taken_at";
    WINDOWS: Counter "untax_agent_windows" Count of Agent ["result"],
        "Windows by result: checked; beside-trial, whose taxes are in no counter; skipped, because the host could not be read",
        "the agent";
    BESIDE_TRIAL: Gauge "untax_agent_beside_trial" Count of Agent ["command"],
        "1 while the last window overlapped a trial of untax on this host: bench, verify, lab, demo; absent otherwise",
        "the agent";
    OWN_CPU: Counter "untax_agent_cpu" Seconds of Agent [],
        "Processor time of the agent and its children",
        "self.cpu_s";
    OWN_TRACING: Counter "untax_agent_tracing" Seconds of Agent [],
        "Processor time that tracing took in the kernel, on top of that; absent where the kernel does not count it",
        "self.tracing_s";
    OWN_MEMORY: Gauge "untax_agent_resident_peak" Bytes of Agent [],
        "The most memory of the agent that was resident at once",
        "self.rss_bytes";
    DATABASES: Gauge "untax_agent_databases" Count of Agent [],
        "Databases whose series are exported",
        "databases[]";
    LEFT_OUT: Gauge "untax_agent_databases_left_out" Count of Agent ["reason"],
        "Databases whose series are not exported: too-young or too-many",
        "the agent";
    SERIES: Gauge "untax_agent_series" Count of Agent [],
        "Series of databases and of the node that are exported",
        "the agent";
    SERIES_LEFT_OUT: Gauge "untax_agent_series_left_out" Count of Agent [],
        "Series dropped at the limit of series per database",
        "the agent";
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::IDENTITY;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_those_that_prometheus_wants_and_each_is_there_once() {
        let names: BTreeSet<String> = METRICS.iter().map(|metric| metric.name()).collect();
        assert_eq!(names.len(), METRICS.len());
        for metric in METRICS {
            let name = metric.name();
            let is_word = |text: &str| text.chars().all(|c| c.is_ascii_lowercase() || c == '_');
            assert!(name.starts_with("untax_") && is_word(&name), "{name}");
            assert!(!metric.help.ends_with('.') && !metric.source.is_empty(), "{name}");
            let labels: BTreeSet<&str> = metric.labels.iter().copied().collect();
            assert_eq!(labels.len(), metric.labels.len(), "{name}");
            for label in metric.labels {
                assert!(is_word(label) && !["node", "le"].contains(label), "{name}");
                assert!(!IDENTITY.contains(label), "{name}: {label}");
            }
            assert!(metric.kind != Kind::Info || metric.unit == Unit::Count, "{name}");
            for suffix in ["_total", "_info", "_seconds", "_bytes", "_ratio"] {
                assert!(!metric.base.ends_with(suffix), "{name}");
            }
        }
    }

    #[test]
    fn the_names_of_the_design_are_there() {
        let names: BTreeSet<String> = METRICS.iter().map(|metric| metric.name()).collect();
        for name in [
            "untax_tax_seconds_total",
            "untax_database_active_seconds_total",
            "untax_measured_active_seconds_total",
            "untax_tax_ratio",
            "untax_gain_ratio",
            "untax_finding",
            "untax_unmeasured",
            "untax_database_info",
            "untax_node_info",
        ] {
            assert!(names.contains(name), "{name}");
        }
    }
}
