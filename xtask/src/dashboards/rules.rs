//! What Prometheus records for the fleet, and what it warns of.

/// A query whose result is kept under a name.
pub struct Recorded {
    pub name: &'static str,
    pub query: &'static str,
}

/// Something to be told of.
struct Alert {
    name: &'static str,
    query: &'static str,
    /// For how long it must be so.
    lasting: &'static str,
    severity: &'static str,
    summary: &'static str,
    /// The page of the documentation that says what to do.
    page: &'static str,
}

/// What is recorded: the fleet's questions are about databases and causes, and not about single series.
pub const RECORDED: &[Recorded] = &[
    Recorded {
        name: "untax:tax_seconds:rate1h",
        query: "sum by (node, namespace, pod, engine, database, rule, scope) (rate(untax_tax_seconds_total[1h])) > 0",
    },
    Recorded {
        name: "untax:active_seconds:rate1h",
        query: "sum by (node, namespace, pod, engine, database) (rate(untax_database_active_seconds_total[1h]))",
    },
    Recorded {
        name: "untax:lost_seconds:rate1h",
        query: "sum by (node, namespace, pod, engine, database) (untax:tax_seconds:rate1h{scope=\"platform\"})",
    },
];

/// None of databases is told of a window beside a trial: its findings are left out here, and its taxes are in no counter.
const ALERTS: &[Alert] = &[
    Alert {
        name: "UntaxTaxHigh",
        query: "untax:lost_seconds:rate1h / untax:active_seconds:rate1h > 0.25",
        lasting: "30m",
        severity: "warning",
        summary: "The platform takes {{ $value | humanizePercentage }} of the active time of {{ $labels.database }}",
        page: "docs/rules.md",
    },
    Alert {
        name: "UntaxOutOfMemoryNear",
        query: "untax_finding{rule=\"oom-near\",severity=\"high\"} unless on (node) untax_agent_beside_trial",
        lasting: "1m",
        severity: "critical",
        summary: "{{ $labels.database }} is close to its memory limit, and little of it can be freed",
        page: "docs/rules.md#oom-near",
    },
    Alert {
        name: "UntaxNotMeasured",
        query: "untax_unmeasured{id=~\"needs-root|no-bpf|other-pid-namespace|denied\"} unless on (node) untax_agent_beside_trial",
        lasting: "1h",
        severity: "info",
        summary: "{{ $labels.rule }} is not measured on {{ $labels.database }} ({{ $labels.id }})",
        page: "docs/ids.md",
    },
    Alert {
        name: "UntaxAgentSilent",
        query: "time() - untax_agent_last_window_timestamp_seconds > 600",
        lasting: "5m",
        severity: "warning",
        summary: "No window ended on {{ $labels.node }} for {{ $value | humanizeDuration }}: its databases are not known to be well",
        page: "docs/metrics.md",
    },
    Alert {
        name: "UntaxLeftOut",
        query: "untax_agent_series_left_out > 0 or untax_agent_databases_left_out{reason=\"too-many\"} > 0",
        lasting: "30m",
        severity: "info",
        summary: "{{ $labels.node }} has more databases or series than its agent tells",
        page: "docs/metrics.md",
    },
    Alert {
        name: "UntaxDuplicateMachineId",
        query: "count by (machine_id) (count by (machine_id, node) (untax_node_info{machine_id!=\"\"})) > 1",
        lasting: "10m",
        severity: "warning",
        summary: "{{ $value }} nodes have one machine id: they were cloned, and may get one IP address by DHCP",
        page: "docs/rules.md#duplicate-machine-id",
    },
];

/// Every query.
#[cfg(test)]
pub fn queries() -> impl Iterator<Item = &'static str> {
    let recorded = RECORDED.iter().map(|rule| rule.query);
    recorded.chain(ALERTS.iter().map(|alert| alert.query))
}

/// The file of rules.
pub fn yaml() -> String {
    let mut text = "# Written by `cargo xtask dashboards`.\ngroups:\n".to_owned();
    text.push_str("  - name: untax.fleet\n    rules:\n");
    for Recorded { name, query } in RECORDED {
        text.push_str(&format!("      - record: {name}\n        expr: {}\n", quoted(query)));
    }
    text.push_str("  - name: untax.alerts\n    rules:\n");
    for alert in ALERTS {
        let Alert { name, query, lasting, severity, summary, page } = alert;
        text.push_str(&format!(
            "      - alert: {name}\n        expr: {}\n        for: {lasting}\n        labels: {{severity: {severity}}}\n        \
             annotations:\n          summary: {}\n          runbook: {page}\n",
            quoted(query),
            quoted(summary)
        ));
    }
    text
}

/// A text as YAML quotes it where nothing in it is special.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
