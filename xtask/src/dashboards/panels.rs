//! The panels: what each asks Prometheus.

/// A dashboard.
pub struct Board {
    /// The name of its file.
    pub id: &'static str,
    pub title: &'static str,
    pub panels: &'static [Panel],
}

/// A panel.
pub struct Panel {
    pub title: &'static str,
    /// The query; `$node` and `$database` are the chosen ones.
    pub query: &'static str,
    /// What each row is called.
    pub legend: &'static str,
    pub unit: Unit,
    pub kind: Kind,
}

#[derive(Clone, Copy)]
pub enum Unit {
    Share,
    Seconds,
    Bytes,
    BytesPerSecond,
    PerSecond,
    Count,
}

#[derive(Clone, Copy)]
pub enum Kind {
    Graph,
    Table,
}

const fn graph(
    title: &'static str,
    query: &'static str,
    legend: &'static str,
    unit: Unit,
) -> Panel {
    Panel { title, query, legend, unit, kind: Kind::Graph }
}

const fn table(title: &'static str, query: &'static str, unit: Unit) -> Panel {
    Panel { title, query, legend: "", unit, kind: Kind::Table }
}

/// All dashboards.
pub static DASHBOARDS: &[Board] = &[
    Board {
        id: "fleet",
        title: "untax / fleet",
        panels: &[
            table(
                "Databases that lose most, seconds of active time a second",
                "topk(20, untax:lost_seconds:rate1h{node=~\"$node\"})",
                Unit::Seconds,
            ),
            table(
                "Causes that take most, seconds of active time a second",
                "topk(20, sum by (rule, scope) (untax:tax_seconds:rate1h{node=~\"$node\"}) > 0)",
                Unit::Seconds,
            ),
            graph(
                "Share of active time that the platform takes",
                "sum by (rule) (rate(untax_tax_seconds_total{scope=\"platform\",node=~\"$node\"}[$__rate_interval])) / scalar(sum(rate(untax_database_active_seconds_total{node=~\"$node\"}[$__rate_interval]))) > 0",
                "{{rule}}",
                Unit::Share,
            ),
            table(
                "Rules that are not measured, databases",
                "count by (rule, id) (untax_unmeasured{node=~\"$node\"})",
                Unit::Count,
            ),
            graph(
                "Databases",
                "sum(untax_agent_databases{node=~\"$node\"})",
                "databases",
                Unit::Count,
            ),
        ],
    },
    Board {
        id: "database",
        title: "untax / database",
        panels: &[
            graph(
                "Share of active time by cause",
                "sum by (rule) (rate(untax_tax_seconds_total{database=~\"$database\",node=~\"$node\"}[$__rate_interval])) / on (rule) (sum by (rule) (rate(untax_measured_active_seconds_total{database=~\"$database\",node=~\"$node\"}[$__rate_interval])) > 0) > 0",
                "{{rule}}",
                Unit::Share,
            ),
            graph(
                "Where the time of its threads goes, seconds a second",
                "sum by (part) (rate(untax_database_time_seconds_total{database=~\"$database\",node=~\"$node\"}[$__rate_interval]))",
                "{{part}}",
                Unit::Seconds,
            ),
            graph(
                "Requests",
                "sum(rate(untax_database_requests_total{database=~\"$database\",node=~\"$node\"}[$__rate_interval]))",
                "requests",
                Unit::PerSecond,
            ),
            graph(
                "Memory",
                "untax_database_memory_bytes{database=~\"$database\",node=~\"$node\"}",
                "{{database}} {{kind}}",
                Unit::Bytes,
            ),
            graph(
                "Connections",
                "untax_database_connections{database=~\"$database\",node=~\"$node\"}",
                "{{database}}",
                Unit::Count,
            ),
            table(
                "Findings of the last window",
                "untax_finding{database=~\"$database\",node=~\"$node\"}",
                Unit::Count,
            ),
            table(
                "Not measured in the last window",
                "untax_unmeasured{database=~\"$database\",node=~\"$node\"}",
                Unit::Count,
            ),
        ],
    },
    Board {
        id: "disks",
        title: "untax / disks: log against data",
        panels: &[
            graph(
                "Bytes by role and direction",
                "sum by (role, direction) (rate(untax_disk_bytes_total{database=~\"$database\",node=~\"$node\"}[$__rate_interval]))",
                "{{role}} {{direction}}",
                Unit::BytesPerSecond,
            ),
            graph(
                "Requests",
                "sum by (role, direction) (rate(untax_disk_requests_total{database=~\"$database\",node=~\"$node\"}[$__rate_interval]))",
                "{{role}} {{direction}}",
                Unit::PerSecond,
            ),
            graph(
                "Time of one request, issue to completion",
                "sum by (role, direction) (rate(untax_disk_service_seconds_total{database=~\"$database\",node=~\"$node\"}[$__rate_interval])) / (sum by (role, direction) (rate(untax_disk_requests_total{database=~\"$database\",node=~\"$node\"}[$__rate_interval])) > 0)",
                "{{role}} {{direction}}",
                Unit::Seconds,
            ),
            graph(
                "Share of requests in sequence",
                "avg by (role, direction) (untax_disk_sequential_ratio{database=~\"$database\",node=~\"$node\"})",
                "{{role}} {{direction}}",
                Unit::Share,
            ),
            graph(
                "Busiest quarter of a second over the mean",
                "max by (role, direction) (untax_disk_burst_ratio{database=~\"$database\",node=~\"$node\"})",
                "{{role}} {{direction}}",
                Unit::Count,
            ),
        ],
    },
    Board {
        id: "nodes",
        title: "untax / nodes and pages",
        panels: &[
            table("Nodes", "untax_node_info{node=~\"$node\"}", Unit::Count),
            graph(
                "Pages of pools",
                "untax_node_huge_pages{node=~\"$node\"}",
                "{{node}} {{size_bytes}} {{state}}",
                Unit::Count,
            ),
            graph(
                "Page tables",
                "untax_node_memory_bytes{kind=\"page_tables\",node=~\"$node\"}",
                "{{node}}",
                Unit::Bytes,
            ),
            graph(
                "Memory that is available",
                "untax_node_memory_bytes{kind=\"available\",node=~\"$node\"}",
                "{{node}}",
                Unit::Bytes,
            ),
            graph(
                "CPU time, seconds a second",
                "sum by (node, mode) (rate(untax_node_cpu_seconds_total{node=~\"$node\"}[$__rate_interval]))",
                "{{node}} {{mode}}",
                Unit::Seconds,
            ),
        ],
    },
    Board {
        id: "agent",
        title: "untax / the agent itself",
        panels: &[
            graph(
                "CPU",
                "rate(untax_agent_cpu_seconds_total{node=~\"$node\"}[$__rate_interval])",
                "{{node}}",
                Unit::Share,
            ),
            graph(
                "Resident memory, at most",
                "untax_agent_resident_peak_bytes{node=~\"$node\"}",
                "{{node}}",
                Unit::Bytes,
            ),
            graph(
                "Windows",
                "sum by (node, result) (rate(untax_agent_windows_total{node=~\"$node\"}[$__rate_interval]))",
                "{{node}} {{result}}",
                Unit::PerSecond,
            ),
            graph("Series", "untax_agent_series{node=~\"$node\"}", "{{node}}", Unit::Count),
            graph(
                "Left out",
                "untax_agent_databases_left_out{node=~\"$node\"}",
                "{{node}} {{reason}}",
                Unit::Count,
            ),
        ],
    },
];
