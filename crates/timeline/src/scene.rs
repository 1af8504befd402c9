//! One change with its surroundings.

use crate::history::{History, Track};
use crate::stretches::Times;
use std::ops::Range;
use untax_core::Reading;
use untax_core::timeline::{Account, Comparison, FactChange};

/// A change, and the windows that show what was before and after it.
pub(crate) struct Scene<'a> {
    pub history: &'a History,
    pub times: &'a Times,
    pub name: &'a str,
    pub track: &'a Track,
    /// Windows before and after.
    pub before: Range<usize>,
    pub after: Range<usize>,
    /// The facts that changed, those of the host too.
    pub facts: Vec<FactChange>,
    pub seconds: Reading<Comparison>,
}

impl Scene<'_> {
    /// A measure before and after: a number over another, each summed over the windows that have both. `None` where
    /// either side has none.
    pub fn ratio(
        &self,
        number: impl Fn(usize) -> Option<f64>,
        over: impl Fn(usize) -> Option<f64>,
    ) -> Option<[f64; 2]> {
        let side = |windows: &Range<usize>| {
            let both = windows.clone().filter_map(|at| Some((number(at)?, over(at)?)));
            let (sum, whole) = both.fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
            (whole > 0.0).then(|| sum / whole)
        };
        Some([side(&self.before)?, side(&self.after)?])
    }

    /// A number of the database for each request.
    pub fn per_request(&self, number: impl Fn(usize) -> Option<f64>) -> Option<[f64; 2]> {
        self.ratio(number, |at| self.track.number("requests", at))
    }

    /// A number for each second.
    pub fn per_second(&self, number: impl Fn(usize) -> Option<f64>) -> Option<[f64; 2]> {
        self.ratio(number, |at| self.times.window_s.get(at).copied())
    }

    /// The facts whose ids are these, or begin so where these end with a point.
    pub fn facts_of(&self, ids: &[&str]) -> Vec<FactChange> {
        let is = |fact: &&FactChange| {
            ids.iter().any(|id| fact.id == *id || (id.ends_with('.') && fact.id.starts_with(id)))
        };
        self.facts.iter().filter(is).cloned().collect()
    }
}

/// What threads did over some windows: those of which requests and time are known.
pub(crate) fn account(track: &Track, windows: Range<usize>) -> Account {
    let mut account = Account::default();
    for at in windows {
        let (Some(requests), Some(length_s)) =
            (track.number("requests", at), track.number("window_s", at))
        else {
            continue;
        };
        let parts: Vec<(String, f64)> = track
            .columns("time.")
            .filter_map(|(id, column)| {
                let time_s = column.get(at).copied().filter(|value| value.is_finite())?;
                Some((id.strip_suffix("_s")?.to_owned(), time_s))
            })
            .collect();
        if !parts.is_empty() {
            account.add(length_s, requests, parts);
        }
    }
    account
}
