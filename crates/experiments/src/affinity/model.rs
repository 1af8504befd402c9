//! The published table in a model: labelled as one everywhere.

use crate::experiment::{BenchResult, Ending};
use maud::html;
use serde::{Deserialize, Serialize};
use untax_report::html::part::Part;
use untax_report::terminal::Style;
use untax_steer::model::{LABEL, Row, Size, table};

/// The cells of the published table in a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Modelled {
    schema: String,
    run: String,
    /// What it is called: no measurement.
    model: String,
    machine: String,
    rows: Vec<Row>,
}

const HEAD: [&str; 7] = ["load", "size", "busy", "soft 100:1", "soft 5:4", "untax steer", "hard"];

impl Modelled {
    pub(super) fn of(size: Size, run: &str) -> Self {
        Self {
            schema: "untax.bench.affinity/1".to_owned(),
            run: run.to_owned(),
            model: LABEL.to_owned(),
            machine: size.name().to_owned(),
            rows: table(size),
        }
    }

    fn title(&self) -> String {
        format!(
            "Throughput over that of no affinity, percent, {} CPUs: {}",
            self.machine, self.model
        )
    }

    fn cells(&self) -> impl Iterator<Item = [String; 7]> + '_ {
        let percent = |value: f64| format!("{value:+.1}");
        self.rows.iter().map(move |row| {
            [
                row.load.clone(),
                row.size.to_string(),
                row.instances.to_string(),
                percent(row.wake_100_1_percent),
                percent(row.wake_5_4_percent),
                percent(row.policy_percent),
                percent(row.hard_percent),
            ]
        })
    }
}

impl BenchResult for Modelled {
    fn json(&self) -> serde_json::Result<String> {
        serde_json::to_string_pretty(self)
    }

    fn terminal(&self, _: Style) -> String {
        let line = |cells: [String; 7]| {
            let [load, rest @ ..] = cells;
            let rest: String = rest.iter().map(|cell| format!("{cell:>13}")).collect();
            format!("{load:<10}{rest}\n")
        };
        let head = std::iter::once(line(HEAD.map(str::to_owned)));
        let lines: String = head.chain(self.cells().map(line)).collect();
        format!("{}\n\n{lines}", self.title())
    }

    fn html(&self) -> Part {
        let body = html! {
            h1 { (self.title()) }
            table {
                thead { tr { @for name in HEAD { th { (name) } } } }
                tbody { @for cells in self.cells() { tr { @for cell in cells { td { (cell) } } } } }
            }
        };
        Part::new(self.title(), body, self)
    }

    fn ending(&self) -> Ending {
        Ending::Clean
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_says_so_in_every_form_and_can_be_read_again() {
        let row = Row {
            load: "database".to_owned(),
            size: 16,
            instances: 2,
            wake_100_1_percent: 5.0,
            wake_5_4_percent: 4.0,
            policy_percent: 5.0,
            hard_percent: 5.5,
        };
        let result = Modelled {
            schema: "untax.bench.affinity/1".to_owned(),
            run: "a-run".to_owned(),
            model: LABEL.to_owned(),
            machine: "2x22".to_owned(),
            rows: vec![row],
        };
        let json = result.json().unwrap();
        for text in [json.clone(), result.terminal(Style::default()), result.html().page()] {
            assert!(text.contains("model, not measured"), "{text}");
        }
        assert_eq!(serde_json::from_str::<Modelled>(&json).unwrap(), result);
    }
}
