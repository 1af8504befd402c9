//! Prometheus' API, or that of any store that speaks it. Only so many databases are asked for as are
//! wanted: a store takes seconds to hand out every row of a large fleet.

use super::error::FleetError;
use crate::row::{Row, Rows};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;
use untax_agent::{Bounds, Client};

/// A query over a large fleet takes some seconds.
const BOUNDS: Bounds = Bounds::within(Duration::from_secs(60));

/// For how long a node is remembered that tells nothing any more.
const REMEMBERED: &str = "1d";

/// What identifies a database.
const IDENTITY: &str = "node, namespace, pod, engine, database";

/// The queries of one look.
struct Queries {
    taxes: String,
    active: String,
    lost: String,
}

impl Queries {
    /// Of rates that recording rules keep: the cheap way.
    fn recorded() -> Self {
        Self {
            taxes: "untax:tax_seconds:rate1h".to_owned(),
            active: "untax:active_seconds:rate1h".to_owned(),
            lost: "untax:lost_seconds:rate1h".to_owned(),
        }
    }

    /// Of the counters themselves, over so many seconds.
    fn raw(range_s: u64) -> Self {
        let rate = |name: &str, by: &str, of: &str| {
            format!("sum by ({IDENTITY}{by}) (rate({name}{of}[{range_s}s]))")
        };
        Self {
            taxes: format!("({} > 0)", rate("untax_tax_seconds_total", ", rule, scope", "")),
            active: rate("untax_database_active_seconds_total", "", ""),
            lost: rate("untax_tax_seconds_total", "", "{scope=\"platform\"}"),
        }
    }
}

/// Range of the recording rules, seconds.
const RECORDED_S: u64 = 3600;

/// Asks for the databases that lose most, at most so many, over the last `range_s` seconds.
pub fn prometheus(
    url: &str,
    client: &Client,
    range_s: u64,
    most: usize,
) -> Result<Rows, FleetError> {
    let query = |text: &str| query(url, client, text);
    let ended_query = format!(
        "max by (node) (last_over_time(untax_agent_last_window_timestamp_seconds[{REMEMBERED}]))"
    );
    let ended = query(&ended_query)?;
    if ended.is_empty() {
        return Err(FleetError::NoAgents(url.to_owned()));
    }
    let is_recorded =
        range_s == RECORDED_S && !query("count(untax:lost_seconds:rate1h)")?.is_empty();
    let Queries { taxes, active, lost } =
        if is_recorded { Queries::recorded() } else { Queries::raw(range_s) };
    let on = "and on (node, database)";
    let top = format!("topk({most}, {lost})");
    let number = |rows: Vec<Row>| rows.first().map(|row| row.value);
    Ok(Rows {
        source: url.to_owned(),
        now_s: number(query("time()")?).unwrap_or_default(),
        range_s: Some(range_s as f64),
        taxes: query(&format!("{taxes} {on} {top}"))?,
        active: query(&format!("{active} {on} {top}"))?,
        causes: causes(
            query(&format!("sum by (rule, scope) ({taxes})"))?,
            &query(&format!("count by (rule, scope) ({taxes} > 0)"))?,
        ),
        unmeasured: query(&format!("untax_unmeasured {on} {top}"))?,
        ended,
        nodes: query(
            "untax_node_info and on (machine_id) \
             (count by (machine_id) (count by (machine_id, node) (untax_node_info{machine_id!=\"\"})) > 1)",
        )?,
        unreachable: Vec::new(),
        databases: number(query("sum(untax_agent_databases)")?),
    })
}

/// The seconds of each cause, with the number of databases as a label.
fn causes(seconds: Vec<Row>, counts: &[Row]) -> Vec<Row> {
    let mut all = seconds;
    for row in &mut all {
        let same = |count: &&Row| count.labels == row.labels;
        let count = counts.iter().find(same).map_or(0.0, |count| count.value);
        row.labels.insert("count".to_owned(), format!("{count:.0}"));
    }
    all
}

fn query(url: &str, client: &Client, text: &str) -> Result<Vec<Row>, FleetError> {
    let answer = client.ask(url, &format!("/api/v1/query?query={}", encoded(text)), BOUNDS)?;
    rows(&answer).ok_or_else(|| FleetError::Form(url.to_owned()))
}

/// A text as part of an address.
fn encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric();
    let encoded = |byte: u8| {
        if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }
    };
    text.bytes().map(encoded).collect()
}

/// Moments at equal distances, seconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Range {
    /// The first.
    pub from_s: f64,
    /// The last, or later.
    pub to_s: f64,
    /// From one to the next.
    pub step_s: f64,
}

/// Labels, and the numbers of moments with their values.
pub type Over = (BTreeMap<String, String>, Vec<(usize, f64)>);

/// What a query gives at one moment, rows of several labels.
pub fn at_once(url: &str, client: &Client, text: &str) -> Result<Vec<Row>, FleetError> {
    query(url, client, text)
}

/// What a query gives at each moment of a range: labels, and the moment's number with its value.
pub fn over_time(
    url: &str,
    client: &Client,
    text: &str,
    range: Range,
) -> Result<Vec<Over>, FleetError> {
    let Range { from_s, to_s, step_s } = range;
    let path = format!(
        "/api/v1/query_range?query={}&start={from_s:.3}&end={to_s:.3}&step={step_s:.3}",
        encoded(text)
    );
    let answer = client.ask(url, &path, BOUNDS)?;
    matrix(&answer, range).ok_or_else(|| FleetError::Form(url.to_owned()))
}

/// The rows of an answer over time.
fn matrix(answer: &str, range: Range) -> Option<Vec<Over>> {
    let answer: Value = serde_json::from_str(answer).ok()?;
    let data = &answer["data"];
    let number = |at_s: f64| ((at_s - range.from_s) / range.step_s).round().max(0.0) as usize;
    let point =
        |pair: &Value| Some((number(pair[0].as_f64()?), pair[1].as_str()?.parse::<f64>().ok()?));
    let row = |row: &Value| {
        let labels = serde_json::from_value(row["metric"].clone()).ok()?;
        let points: Option<Vec<(usize, f64)>> =
            row["values"].as_array()?.iter().map(point).collect();
        Some((labels, points?))
    };
    (data["resultType"] == "matrix")
        .then(|| data["result"].as_array()?.iter().map(row).collect())?
}

/// The rows of an answer; a scalar is one without labels. `None` where it has another form.
fn rows(answer: &str) -> Option<Vec<Row>> {
    let answer: Value = serde_json::from_str(answer).ok()?;
    let data = &answer["data"];
    let value = |pair: &Value| pair[1].as_str()?.parse::<f64>().ok();
    if data["resultType"] == "scalar" {
        return Some(vec![Row { value: value(&data["result"])?, ..Row::default() }]);
    }
    let row = |row: &Value| {
        let labels: BTreeMap<String, String> =
            serde_json::from_value(row["metric"].clone()).ok()?;
        Some(Row { labels, value: value(&row["value"])? })
    };
    let all: Option<Vec<Row>> = data["result"].as_array()?.iter().map(row).collect();
    // What is no number says nothing.
    Some(all?.into_iter().filter(|row| row.value.is_finite()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_of_the_api_are_read_and_others_are_refused() {
        let vector = r#"{"data":{"resultType":"vector","result":[
            {"metric":{"node":"a\"é"},"value":[1,"0.5"]},{"metric":{},"value":[1,"NaN"]}]}}"#;
        let read = rows(vector).unwrap();
        assert_eq!((read.len(), read[0].label("node")), (1, "a\"é"));
        let scalar = r#"{"data":{"resultType":"scalar","result":[1,"7"]}}"#;
        assert!((rows(scalar).unwrap()[0].value - 7.0).abs() < 1e-9);
        for other in ["<html>", "{}", r#"{"data":{"result":[{"metric":{},"value":[1]}]}}"#] {
            assert_eq!(rows(other), None, "{other}");
        }
    }

    #[test]
    fn answers_over_time_are_numbered_by_their_moments() {
        let answer = r#"{"data":{"resultType":"matrix","result":[
            {"metric":{"node":"a"},"values":[[100,"1"],[160,"3.5"]]}]}}"#;
        let range = Range { from_s: 40.0, to_s: 200.0, step_s: 60.0 };
        let rows = matrix(answer, range).unwrap();
        assert_eq!(rows[0].1, [(1, 1.0), (2, 3.5)]);
        assert_eq!(matrix(r#"{"data":{"resultType":"vector","result":[]}}"#, range), None);
    }

    #[test]
    fn a_cause_has_the_number_of_its_databases() {
        let row = |value| Row { labels: [("rule".to_owned(), "x".to_owned())].into(), value };
        let all = causes(vec![row(0.5)], &[row(3.0)]);
        assert_eq!(all[0].label("count"), "3");
    }
}
