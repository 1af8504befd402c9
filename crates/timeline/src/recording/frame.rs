//! What a frame of a recording holds: some windows in a row, as JSON, with a column for each number.

use crate::moment::{Moment, Values};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Some windows in a row. Later versions add names, and leave those that are here as they are.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Frame {
    /// When each window ended, seconds since 1970.
    pub at_s: Vec<f64>,
    /// The same by the clock that nobody sets, seconds since boot.
    pub up_s: Vec<f64>,
    /// How long each window was.
    pub window_s: Vec<f64>,
    /// The host.
    pub host: Columns,
    /// The databases, by name.
    pub databases: BTreeMap<String, Columns>,
}

/// What is known of one thing.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Columns {
    /// A value for each window; null where it is not known.
    #[serde(default)]
    pub numbers: BTreeMap<String, Vec<Option<Number>>>,
    /// Facts that differ from the window before: which window, which fact, and its value; null where it is not known
    /// any more. The first window of a recording, and one in each hour, has all.
    #[serde(default)]
    pub facts: Vec<(usize, String, Option<String>)>,
}

/// A number as it is written: whole ones without a point.
#[derive(Debug, Clone, Copy, PartialEq, schemars::JsonSchema)]
#[schemars(transparent)]
pub struct Number(pub f64);

impl Serialize for Number {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Whole numbers of this size are exact.
        if self.0.fract() == 0.0 && self.0.abs() < 9e15 {
            serializer.serialize_i64(self.0 as i64)
        } else {
            serializer.serialize_f64(self.0)
        }
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        f64::deserialize(deserializer).map(Self)
    }
}

/// Facts of one thing as they were written last.
type Facts = BTreeMap<String, String>;

/// Facts as they were written last, those of the host under no name.
#[derive(Debug, Clone, Default)]
pub(crate) struct Written(BTreeMap<String, Facts>);

impl Frame {
    /// Windows as a frame, with the facts that differ from what was written last.
    pub(crate) fn of(moments: &[Moment], written: &mut Written) -> Self {
        let names: BTreeSet<&String> =
            moments.iter().flat_map(|moment| moment.databases.keys()).collect();
        let none = Values::default();
        let of = |name: &String| -> Vec<Option<&Values>> {
            moments.iter().map(|moment| moment.databases.get(name)).collect()
        };
        let host: Vec<Option<&Values>> = moments.iter().map(|moment| Some(&moment.host)).collect();
        let mut columns = |name: &str, each: &[Option<&Values>]| {
            Columns::of(each, &none, written.0.entry(name.to_owned()).or_default())
        };
        let host = columns("", &host);
        let databases = names.into_iter().map(|name| (name.clone(), columns(name, &of(name))));
        Self {
            at_s: moments.iter().map(|moment| milliseconds(seconds_of(moment.at))).collect(),
            up_s: moments.iter().map(|moment| milliseconds(moment.up_s)).collect(),
            window_s: moments.iter().map(|moment| milliseconds(moment.window_s)).collect(),
            databases: databases.collect(),
            host,
        }
    }

    /// How many windows it has, if all of its columns agree on that.
    pub fn windows(&self) -> Option<usize> {
        let count = self.at_s.len();
        let agrees = |columns: &Columns| {
            columns.numbers.values().all(|column| column.len() == count)
                && columns.facts.iter().all(|(at, ..)| *at < count)
        };
        let times = self.up_s.len() == count && self.window_s.len() == count;
        (times && agrees(&self.host) && self.databases.values().all(agrees)).then_some(count)
    }
}

impl Columns {
    fn of(each: &[Option<&Values>], none: &Values, written: &mut Facts) -> Self {
        let known = || each.iter().map(|values| values.unwrap_or(none));
        let ids: BTreeSet<&String> = known().flat_map(|values| values.numbers.keys()).collect();
        let column = |id: &String| -> Vec<Option<Number>> {
            known()
                .map(|values| values.numbers.get(id).map(|value| Number(rounded(*value))))
                .collect()
        };
        let numbers = ids.into_iter().map(|id| (id.clone(), column(id))).collect();
        let mut facts = Vec::new();
        for (at, values) in each.iter().enumerate() {
            // Of what is not there nothing is said: it may come back as it was.
            let Some(values) = values else { continue };
            let gone = written.keys().filter(|id| !values.facts.contains_key(*id));
            facts.extend(gone.map(|id| (at, id.clone(), None)));
            let differs = values.facts.iter().filter(|(id, value)| written.get(*id) != Some(value));
            facts.extend(differs.map(|(id, value)| (at, id.clone(), Some(value.clone()))));
            written.clone_from(&values.facts);
        }
        Self { numbers, facts }
    }
}

/// Seconds since 1970.
pub(crate) fn seconds_of(at: Timestamp) -> f64 {
    at.as_millisecond() as f64 / 1e3
}

fn milliseconds(seconds: f64) -> f64 {
    (seconds * 1e3).round() / 1e3
}

/// To five digits: an error of one in a hundred thousand, far below what a window's numbers vary by.
fn rounded(value: f64) -> f64 {
    let digits = format!("{value:.4e}");
    digits.parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(requests: f64, limit: Option<&str>) -> Moment {
        let mut values = Values::default();
        values.number("requests", requests);
        values.fact("cpu-limit", limit);
        Moment {
            at: Timestamp::UNIX_EPOCH,
            up_s: 1.0,
            window_s: 10.0,
            host: Values::default(),
            databases: [("a".to_owned(), values)].into(),
        }
    }

    #[test]
    fn facts_are_written_when_they_change() {
        let mut written = Written::default();
        let all = [
            moment(1.0, Some("2")),
            moment(2.0, Some("2")),
            moment(3.0, Some("4")),
            moment(4.0, None),
        ];
        let frame = Frame::of(&all, &mut written);
        let limit = "cpu-limit".to_owned();
        let expected = vec![
            (0, limit.clone(), Some("2".to_owned())),
            (2, limit.clone(), Some("4".to_owned())),
            (3, limit, None),
        ];
        assert_eq!(frame.databases["a"].facts, expected);
        assert_eq!(frame.windows(), Some(4));
        let again = Frame::of(&all[3..], &mut written);
        assert!(again.databases["a"].facts.is_empty());
    }

    #[test]
    fn numbers_keep_five_digits_and_whole_ones_have_no_point() {
        let numbers = [0.0, 123_456_789.0, 0.001_234_567, 15_000.0].map(|n| Number(rounded(n)));
        let text = serde_json::to_string(&numbers).unwrap();
        assert_eq!(text, "[0,123460000,0.0012346,15000]");
    }

    #[test]
    fn a_frame_whose_columns_disagree_has_no_length() {
        let mut frame = Frame::of(&[moment(1.0, None)], &mut Written::default());
        frame.up_s.clear();
        assert_eq!(frame.windows(), None);
    }
}
