//! What a report says first, in which order, and how it groups what is not known.

use crate::facts;
use crate::format::{self, count_of};
use std::cmp::Ordering;
use std::collections::BTreeSet;
use untax_core::check::{Check, Checked};
use untax_core::{Finding, Scope, Severity, Tax, Unmeasured, reason};

/// What can be said of a database's tax as a whole.
pub enum Cost<'a> {
    /// Measured, though perhaps not for every cause.
    Measured(&'a Tax),
    /// Causes were found, none of them measured.
    NotMeasured,
    /// No cause was found, but some rules could not look.
    NothingFound {
        /// How many could not.
        blind: usize,
    },
}

/// What the causes of one scope cost a database.
fn cost_of(db: &Checked, scope: Scope) -> Cost<'_> {
    match db.tax_of(scope) {
        Some(tax) => Cost::Measured(tax),
        None if db.findings_of(scope).next().is_none() => {
            Cost::NothingFound { blind: db.unmeasured.len() }
        }
        None => Cost::NotMeasured,
    }
}

/// What the platform costs a database.
pub fn cost(db: &Checked) -> Cost<'_> {
    cost_of(db, Scope::Platform)
}

/// The same in a few words.
pub fn cost_in_short(db: &Checked) -> String {
    in_short(&cost(db))
}

fn in_short(cost: &Cost<'_>) -> String {
    match cost {
        Cost::Measured(tax) => format::tax(tax),
        Cost::NotMeasured => format::NOT_MEASURED.to_owned(),
        Cost::NothingFound { blind: 0 } => "no cause found".to_owned(),
        Cost::NothingFound { blind } => format!("no cause found, {blind} not measured"),
    }
}

/// The same, to stand on its own.
pub fn platform_tax(db: &Checked) -> String {
    match cost(db) {
        Cost::NothingFound { .. } => cost_in_short(db),
        _ => format!("platform tax {}", cost_in_short(db)),
    }
}

/// What the database and its application cost themselves; `None` where nothing of the kind was found.
pub fn database_tax(db: &Checked) -> Option<String> {
    match cost_of(db, Scope::Database) {
        Cost::NothingFound { .. } => None,
        cost => Some(format!("database tax {}", in_short(&cost))),
    }
}

/// Both in one line, the second without its interval.
pub fn both_taxes(db: &Checked) -> String {
    let own = db.database_tax.as_ref().map(format::tax_in_short);
    let own = own.map(|tax| format!(" · database {tax}")).unwrap_or_default();
    format!("{}{own}", platform_tax(db))
}

/// The answer in one sentence: the page's title.
pub fn headline(check: &Check) -> String {
    let Some(dearest) = databases_by_cost(check).first().copied() else {
        let lost = "No database was there all through the check";
        return if check.lost_a_database() { lost } else { "No database found on this host" }
            .into();
    };
    let name = facts::name(dearest);
    match cost(dearest) {
        Cost::Measured(tax) => {
            let share = format::tax_in_short(tax);
            format!("The platform takes {share} of the active time of {name}")
        }
        Cost::NothingFound { .. } if dearest.database_tax.is_some() => {
            let own = database_tax(dearest).unwrap_or_default();
            format!("No cause of the platform's found for {name}; {own}")
        }
        Cost::NotMeasured => {
            let causes = dearest.findings_of(Scope::Platform).count() as u64;
            let causes = count_of(causes, "cause");
            format!("{causes} found for {name}; what they cost is not measured")
        }
        Cost::NothingFound { blind: 0 } => format!("The platform costs {name} nothing we can see"),
        Cost::NothingFound { .. } => {
            format!("No cause found for {name}, but not all could be measured")
        }
    }
}

/// How much of what the rules look at could not be looked at, where that is anything.
pub fn seen_in_part(check: &Check) -> Option<String> {
    let rules: BTreeSet<&str> = check.unseen().map(|gap| gap.rule.as_str()).collect();
    let commonest = check.unseen().next()?;
    let rules = count_of(rules.len() as u64, "rule");
    let action = reason::of(&commonest.why).action;
    Some(format!("Seen in part only: {rules} could not look at all of it. {action}"))
}

/// What to do where there is no database.
pub const NO_DATABASE: [&str; 2] = [
    "A database that runs as another user is only seen by root: use sudo.",
    "Any other program can be checked by its process: untax check --pid PID",
];

/// The same for a check, which may have seen one end.
pub fn without_database(check: &Check) -> &'static [&'static str] {
    if check.lost_a_database() { &["Once it runs again: untax check"] } else { &NO_DATABASE }
}

/// The databases, the dearest first.
pub fn databases_by_cost(check: &Check) -> Vec<&Checked> {
    let worst = |db: &Checked| db.findings.iter().map(|f| f.severity).max();
    let mut databases: Vec<_> = check.databases.iter().collect();
    let by_own =
        |a: &Checked, b: &Checked| by_share(b.database_tax.as_ref(), a.database_tax.as_ref());
    databases.sort_by(|a, b| {
        let by_platform = by_share(b.tax.as_ref(), a.tax.as_ref());
        by_platform.then(by_own(a, b)).then(worst(b).cmp(&worst(a)))
    });
    databases
}

/// Whether nothing but its idleness was seen of a database.
pub fn is_idle(db: &Checked) -> bool {
    let is_judged = db.tax.is_some() || db.database_tax.is_some();
    let is_found = db.findings.iter().any(|finding| finding.severity > Severity::Info);
    let is_said = db.unmeasured.iter().any(|gap| gap.id == reason::IDLE.id);
    is_said && !is_judged && !is_found
}

/// The databases that were busy, the dearest first, and those that were idle. A single database is never left
/// out.
pub fn busy_and_idle(check: &Check) -> (Vec<&Checked>, Vec<&Checked>) {
    let all = databases_by_cost(check);
    if all.len() < 2 {
        return (all, Vec::new());
    }
    all.into_iter().partition(|db| !is_idle(db))
}

/// Those that were idle in one line; `None` where none was.
pub fn idle_line(idle: &[&Checked]) -> Option<String> {
    let short = |db: &&Checked| if db.name.is_empty() { db.id.clone() } else { db.name.clone() };
    let names: Vec<String> = idle.iter().map(short).collect();
    (!idle.is_empty()).then(|| format!("{} idle, not judged: {}", idle.len(), names.join(", ")))
}

/// Findings of one scope, in the order of [`findings_in_order`].
pub fn findings_of(findings: &[Finding], scope: Scope) -> Vec<&Finding> {
    let ordered = findings_in_order(findings).into_iter();
    ordered.filter(|finding| finding.scope == scope).collect()
}

/// Where findings of scope database stand by themselves.
pub const OF_DATABASE: &str = "In the database and its application";

/// Findings by severity, the gravest first, and within one by tax: a database that is about to fail comes before a
/// tax that is small.
pub fn findings_in_order(findings: &[Finding]) -> Vec<&Finding> {
    let mut ordered: Vec<_> = findings.iter().collect();
    ordered
        .sort_by(|a, b| b.severity.cmp(&a.severity).then(by_share(b.tax.as_ref(), a.tax.as_ref())));
    ordered
}

fn by_share(a: Option<&Tax>, b: Option<&Tax>) -> Ordering {
    let share = |tax: Option<&Tax>| tax.map_or(-1.0, |t| t.share);
    share(a).total_cmp(&share(b))
}

/// The end of the scale that all bars of a check share: a round share at or above every bound.
pub fn scale(check: &Check) -> f64 {
    let all = check.databases.iter().flat_map(|db| &db.findings).chain(&check.findings);
    let several = check.databases.len() > 1;
    let databases = check.databases.iter().filter(|_| several);
    let totals = databases.flat_map(|db| [&db.tax, &db.database_tax]).flatten();
    let taxes = all.filter_map(|f| f.tax.as_ref()).chain(totals);
    round_scale(taxes.map(|t| t.high).fold(0.0, f64::max))
}

/// A round share at or above another.
pub fn round_scale(highest: f64) -> f64 {
    [0.02, 0.04, 0.06, 0.1, 0.2, 0.3, 0.4, 0.6]
        .into_iter()
        .find(|end| highest <= *end)
        .unwrap_or(1.0)
}

/// How much a finding matters, in one word.
pub fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::High => "high",
        Severity::Medium => "medium",
        Severity::Low => "low",
        Severity::Info => "info",
    }
}

/// One reason, and everything that could not be measured because of it.
#[derive(Debug, PartialEq, Eq)]
pub struct UnmeasuredReason<'a> {
    pub why: &'a str,
    pub rules: Vec<&'a str>,
    /// The databases concerned; empty when it is all of them, or the host.
    pub databases: Vec<&'a str>,
}

impl UnmeasuredReason<'_> {
    /// The rules and whom they concern.
    pub fn rules_concerned(&self) -> String {
        // The reason matters more than the last of many names; --json has all.
        let rules = match &self.rules[..] {
            [first, second, _, _, ..] => {
                format!("{first}, {second} and {} more", self.rules.len() - 2)
            }
            few => few.join(", "),
        };
        if self.databases.is_empty() {
            return rules;
        }
        format!("{rules} ({})", self.databases.join(", "))
    }
}

/// What could not be measured, one entry per reason in order of appearance.
pub fn unmeasured(check: &Check) -> Vec<UnmeasuredReason<'_>> {
    let of_databases = databases_by_cost(check)
        .into_iter()
        .flat_map(|db| db.unmeasured.iter().map(|u| (u, Some(&*db.id))));
    let of_host = check.unmeasured.iter().map(|u| (u, None));
    let mut groups: Vec<UnmeasuredReason<'_>> = Vec::new();
    for (Unmeasured { rule, why, .. }, database) in of_databases.chain(of_host) {
        let place = groups.iter().position(|g| g.why == why).unwrap_or(groups.len());
        if place == groups.len() {
            groups.push(UnmeasuredReason { why, rules: Vec::new(), databases: Vec::new() });
        }
        let group = &mut groups[place];
        if !group.rules.contains(&rule.as_str()) {
            group.rules.push(rule);
        }
        group.databases.extend(database.filter(|id| !group.databases.contains(id)));
    }
    for group in &mut groups {
        if group.databases.len() == check.databases.len() {
            group.databases.clear();
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use untax_core::{Database, Interval};

    fn finding(rule: &str, severity: Severity, share: Option<f64>) -> Finding {
        Finding {
            tax: share.map(|share| Tax::new(Interval::exact(share), "")),
            ..Finding::new(rule, severity, "", "")
        }
    }

    #[test]
    fn what_the_database_does_to_itself_is_not_the_platforms() {
        let mut db = Checked::of(&Database::unknown("postgres", 7, "not read"), "not read");
        db.findings = vec![Finding {
            scope: Scope::Database,
            ..finding("lock-contended", Severity::High, Some(0.4))
        }];
        db.database_tax.clone_from(&db.findings[0].tax);
        assert_eq!(platform_tax(&db), "no cause found");
        let both = both_taxes(&db).replace(format::THIN, " ");
        assert_eq!(both, "no cause found · database 40 %");
        assert!(findings_of(&db.findings, Scope::Platform).is_empty());
    }

    #[test]
    fn the_gravest_comes_first_and_the_dearest_of_as_grave_ones() {
        let all = [
            finding("info", Severity::Info, None),
            finding("cheap", Severity::Low, Some(0.01)),
            finding("dearer", Severity::Low, Some(0.04)),
            finding("grave", Severity::High, None),
            finding("dear", Severity::Medium, Some(0.2)),
        ];
        let order: Vec<_> = findings_in_order(&all).iter().map(|f| f.rule.as_str()).collect();
        assert_eq!(order, ["grave", "dear", "dearer", "cheap", "info"]);
    }
}
