//! Windows of the past in memory: a column for each number, and the facts with the windows that they changed in.

use crate::recording::frame::{Columns, Frame};
use std::collections::BTreeMap;

/// Windows in order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct History {
    /// When each window ended, seconds since 1970.
    pub(crate) at_s: Vec<f64>,
    /// The same by the clock that nobody sets, seconds since boot.
    pub(crate) up_s: Vec<f64>,
    /// How long each window was.
    pub(crate) window_s: Vec<f64>,
    /// The host.
    pub(crate) host: Track,
    /// The databases, by name.
    pub(crate) databases: BTreeMap<String, Track>,
    /// What is wrong with the recording, and before which window.
    pub(crate) remarks: Vec<(usize, Remark)>,
}

/// What is wrong with a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Remark {
    /// The file ends within a frame.
    TornEnd,
    /// A frame is not as it was written, or needs one that is not.
    Damaged,
}

/// One thing over all windows.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Track {
    /// Numbers; not a number where they are not known. A column may be shorter than the history.
    numbers: BTreeMap<String, Vec<f64>>,
    /// Facts: from which window on, and the value, if it was known.
    facts: BTreeMap<String, Vec<(usize, Option<String>)>>,
}

impl History {
    /// Adds the windows of a frame.
    pub(crate) fn extend(&mut self, frame: &Frame) {
        let before = self.at_s.len();
        self.at_s.extend(&frame.at_s);
        self.up_s.extend(&frame.up_s);
        self.window_s.extend(&frame.window_s);
        self.host.extend(&frame.host, before);
        for (name, columns) in &frame.databases {
            self.databases.entry(name.clone()).or_default().extend(columns, before);
        }
    }

    pub(crate) fn remark(&mut self, remark: Remark) {
        let at = self.at_s.len();
        if self.remarks.last() != Some(&(at, remark)) {
            self.remarks.push((at, remark));
        }
    }

    /// Leaves only the windows of so many seconds before the end of the last one, and that one.
    #[must_use]
    pub fn last(mut self, seconds: f64) -> Self {
        let Some(count) = self.at_s.len().checked_sub(1) else { return self };
        let up_s = &self.up_s;
        // Back to where more than that has passed; over a boot by the clock.
        let passed = |at: usize| {
            let by_uptime = up_s[count] - up_s[at];
            if by_uptime >= 0.0 { by_uptime } else { self.at_s[count] - self.at_s[at] }
        };
        let first = (0..=count).rev().take_while(|at| passed(*at) < seconds.max(0.001)).last();
        let first = first.unwrap_or(count);
        for times in [&mut self.at_s, &mut self.up_s, &mut self.window_s] {
            times.drain(..first);
        }
        for track in self.databases.values_mut().chain([&mut self.host]) {
            track.drop_first(first);
        }
        self.remarks.retain(|(at, _)| *at >= first);
        for (at, _) in &mut self.remarks {
            *at -= first;
        }
        self
    }

    /// Whether there is no window.
    pub fn is_empty(&self) -> bool {
        self.at_s.is_empty()
    }

    /// The names of all databases.
    pub fn names(&self) -> Vec<&str> {
        self.databases.keys().map(String::as_str).collect()
    }

    /// Leaves only the databases for which this holds.
    pub fn retain(&mut self, keeps: impl Fn(&str) -> bool) {
        self.databases.retain(|name, _| keeps(name));
    }
}

impl Track {
    fn extend(&mut self, columns: &Columns, before: usize) {
        for (id, values) in &columns.numbers {
            let column = self.numbers.entry(id.clone()).or_default();
            column.resize(before, f64::NAN);
            column.extend(values.iter().map(|value| value.map_or(f64::NAN, |value| value.0)));
        }
        for (at, id, value) in &columns.facts {
            self.set(before + at, id, value.clone());
        }
    }

    /// A number has this value in a window.
    pub fn put(&mut self, id: &str, at: usize, value: f64) {
        let column = self.numbers.entry(id.to_owned()).or_default();
        if column.len() <= at {
            column.resize(at + 1, f64::NAN);
        }
        column[at] = value;
    }

    /// Adds to a number in a window.
    pub fn add(&mut self, id: &str, at: usize, value: f64) {
        self.put(id, at, self.number(id, at).unwrap_or(0.0) + value);
    }

    /// A fact has a value from a window on.
    pub fn set(&mut self, at: usize, id: &str, value: Option<String>) {
        let all = self.facts.entry(id.to_owned()).or_default();
        if all.last().is_none_or(|(_, last)| *last != value) {
            all.push((at, value));
        }
    }

    fn drop_first(&mut self, count: usize) {
        for column in self.numbers.values_mut() {
            column.drain(..count.min(column.len()));
        }
        for all in self.facts.values_mut() {
            let stands = all.iter().rposition(|(at, _)| *at <= count).unwrap_or(0);
            all.drain(..stands);
            for (at, _) in all {
                *at = at.saturating_sub(count);
            }
        }
    }

    /// A number in one window, where it is known.
    pub fn number(&self, id: &str, at: usize) -> Option<f64> {
        self.numbers.get(id)?.get(at).copied().filter(|value| value.is_finite())
    }

    /// A column of numbers; empty where there is none.
    pub fn column(&self, id: &str) -> &[f64] {
        self.numbers.get(id).map_or(&[], Vec::as_slice)
    }

    /// The ids of numbers that begin so, with what follows.
    pub fn columns<'a>(&'a self, begin: &'a str) -> impl Iterator<Item = (&'a str, &'a [f64])> {
        let from = self.numbers.range(begin.to_owned()..);
        from.map_while(move |(id, column)| Some((id.strip_prefix(begin)?, column.as_slice())))
    }

    /// A fact as it stood in a window.
    pub fn fact(&self, id: &str, at: usize) -> Option<&str> {
        let all = self.facts.get(id)?;
        let (_, value) = all.iter().rev().find(|(from, _)| *from <= at)?;
        value.as_deref()
    }

    /// All facts, with the windows from which on they have another value.
    pub fn facts(&self) -> impl Iterator<Item = (&str, &[(usize, Option<String>)])> {
        self.facts.iter().map(|(id, all)| (id.as_str(), all.as_slice()))
    }
}
