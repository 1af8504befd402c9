//! What differs between two checks of the same databases.

use crate::check::{Check, Checked};
use crate::finding::{Scope, Tax};
use serde::{Deserialize, Serialize};

/// The schema's name and version.
pub const SCHEMA: &str = "untax.compare/1";

/// Two checks, database by database.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Comparison {
    /// `untax.compare/1`.
    pub schema: String,
    /// The run that the other is compared with.
    pub before: String,
    /// The other run.
    pub after: String,
    /// The databases that are in both.
    pub databases: Vec<Compared>,
    /// Databases that are in one of them only.
    pub unmatched: Vec<String>,
}

/// One database in two checks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Compared {
    /// Its id in the later one: a restart gives it another process.
    pub id: String,
    /// The taxes of the platform's causes together.
    pub tax: [Option<Tax>; 2],
    /// Those of the database's own causes together.
    #[serde(default)]
    pub database_tax: [Option<Tax>; 2],
    /// The causes found in either, the dearest before first.
    pub causes: Vec<Cause>,
}

/// One cause in two checks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Cause {
    /// The rule's id.
    pub rule: String,
    /// Whose cause it is.
    #[serde(default)]
    pub scope: Scope,
    /// Whether it was found, before and after.
    pub found: [bool; 2],
    /// What it costs; `None` where it was not found or not measured.
    pub tax: [Option<Tax>; 2],
    /// What may be said of the difference.
    pub change: Change,
}

/// What became of a cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Change {
    /// Found before, not after.
    Gone,
    /// Found after, not before.
    New,
    /// Its tax is lower, and the intervals do not overlap.
    Less,
    /// Its tax is higher, and the intervals do not overlap.
    More,
    /// Found both times, and nothing more can be said.
    Same,
    /// Found in one of them, and not measured in the other.
    Unmeasured,
}

/// Compares two checks. Databases are the same when they serve the same data, or, where the place of
/// either is not known, have the same id.
pub fn compare(before: &Check, after: &Check) -> Comparison {
    let known = |of: &Checked| of.data_directory.is_present();
    let same = |a: &Checked, b: &Checked| {
        if known(a) && known(b) { a.has_data_of(b) } else { a.id == b.id }
    };
    let earlier = |b: &Checked| before.databases.iter().find(|a| same(a, b));
    let pairs = after.databases.iter().filter_map(|b| Some((earlier(b)?, b)));
    let gone = before.databases.iter().filter(|a| !after.databases.iter().any(|b| same(a, b)));
    let new = after.databases.iter().filter(|b| earlier(b).is_none());
    Comparison {
        schema: SCHEMA.to_owned(),
        before: before.run.clone(),
        after: after.run.clone(),
        databases: pairs.map(|(a, b)| compared(a, b)).collect(),
        unmatched: gone.chain(new).map(|database| database.id.clone()).collect(),
    }
}

fn compared(before: &Checked, after: &Checked) -> Compared {
    let mut rules: Vec<&str> = Vec::new();
    for finding in before.findings.iter().chain(&after.findings) {
        if !rules.contains(&finding.rule.as_str()) {
            rules.push(&finding.rule);
        }
    }
    let cause = |rule: &str| {
        let both = [before, after].map(|of| of.findings.iter().find(|f| f.rule == rule));
        let tax = both.map(|finding| finding.and_then(|finding| finding.tax.clone()));
        let found = both.map(|finding| finding.is_some());
        let measured = [before, after].map(|of| {
            let mut gaps = of.unmeasured.iter().map(|gap| gap.rule.as_str());
            !gaps.any(|of| of == rule)
        });
        let change = change(found, measured, &tax);
        // An older run does not say whose cause it is.
        let scope = both.iter().flatten().map(|finding| finding.scope).max().unwrap_or_default();
        Cause { rule: rule.to_owned(), scope, found, tax, change }
    };
    Compared {
        id: after.id.clone(),
        tax: [before.tax.clone(), after.tax.clone()],
        database_tax: [before.database_tax.clone(), after.database_tax.clone()],
        causes: rules.into_iter().map(cause).collect(),
    }
}

fn change(found: [bool; 2], measured: [bool; 2], tax: &[Option<Tax>; 2]) -> Change {
    match (found, tax) {
        ([true, false], _) if measured[1] => Change::Gone,
        ([false, true], _) if measured[0] => Change::New,
        ([true, false] | [false, true], _) => Change::Unmeasured,
        (_, [Some(before), Some(after)]) if after.high < before.low => Change::Less,
        (_, [Some(before), Some(after)]) if after.low > before.high => Change::More,
        _ => Change::Same,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Interval;

    #[test]
    fn only_intervals_apart_are_a_difference() {
        let tax = |low, mid, high| Some(Tax::new(Interval::new(low, mid, high), "test"));
        let both = [true, true];
        let of = |before, after| change(both, both, &[before, after]);
        assert_eq!(of(tax(0.2, 0.3, 0.4), tax(0.0, 0.1, 0.15)), Change::Less);
        assert_eq!(of(tax(0.0, 0.1, 0.15), tax(0.2, 0.3, 0.4)), Change::More);
        assert_eq!(of(tax(0.2, 0.3, 0.4), tax(0.1, 0.2, 0.3)), Change::Same);
        assert_eq!(of(tax(0.2, 0.3, 0.4), None), Change::Same, "not measured is not zero");
        let gone = |measured| change([true, false], measured, &[tax(0.2, 0.3, 0.4), None]);
        assert_eq!(gone(both), Change::Gone);
        assert_eq!(gone([true, false]), Change::Unmeasured);
        assert_eq!(change([false, true], both, &[None, None]), Change::New);
        assert_eq!(change([false, true], [false, true], &[None, None]), Change::Unmeasured);
    }
}
