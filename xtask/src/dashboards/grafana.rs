//! A dashboard in the form that Grafana imports.

use super::panels::{Board, Kind, Panel, Unit};
use serde_json::{Value, json};

/// Columns of Grafana's grid, and of it those of one panel.
const COLUMNS: usize = 24;
const WIDTH: usize = 12;
const HEIGHT: usize = 8;

/// The version of the form.
const SCHEMA: u32 = 39;

/// The file.
pub fn json(board: &Board) -> String {
    let panels: Vec<Value> = board.panels.iter().enumerate().map(panel).collect();
    let board = json!({
        "uid": format!("untax-{}", board.id),
        "title": board.title,
        "tags": ["untax"],
        "schemaVersion": SCHEMA,
        "editable": true,
        "refresh": "1m",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": [source(), variable("node"), variable("database")]},
        "panels": panels,
    });
    format!("{board:#}\n")
}

fn source() -> Value {
    json!({"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Prometheus"})
}

fn variable(label: &str) -> Value {
    let metric = if label == "database" { "untax_database_info" } else { "untax_node_info" };
    json!({
        "name": label, "type": "query", "label": label, "includeAll": true, "allValue": ".*",
        "multi": true, "refresh": 2, "current": {"text": "All", "value": "$__all"},
        "datasource": {"type": "prometheus", "uid": "${datasource}"},
        "query": {"query": format!("label_values({metric}, {label})"), "refId": label},
    })
}

fn panel((number, panel): (usize, &Panel)) -> Value {
    let is_table = matches!(panel.kind, Kind::Table);
    let per_row = COLUMNS / WIDTH;
    let place = json!({
        "x": number % per_row * WIDTH, "y": number / per_row * HEIGHT, "w": WIDTH, "h": HEIGHT,
    });
    let mut target = json!({"refId": "A", "expr": panel.query, "legendFormat": panel.legend});
    if is_table {
        target["instant"] = true.into();
        target["format"] = "table".into();
    }
    json!({
        "id": number + 1,
        "title": panel.title,
        "type": if is_table { "table" } else { "timeseries" },
        "datasource": {"type": "prometheus", "uid": "${datasource}"},
        "gridPos": place,
        "fieldConfig": {"defaults": {"unit": unit(panel.unit)}, "overrides": []},
        "targets": [target],
    })
}

/// As Grafana names it.
fn unit(unit: Unit) -> &'static str {
    match unit {
        Unit::Share => "percentunit",
        Unit::Seconds => "s",
        Unit::Bytes => "bytes",
        Unit::BytesPerSecond => "binBps",
        Unit::PerSecond => "ops",
        Unit::Count => "short",
    }
}
