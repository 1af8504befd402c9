//! From a window to the result of a check.

use crate::accounting::time_shares;
use crate::catalogue::RULES;
use untax_core::check::{Check, Checked, OwnCost, SCHEMA};
use untax_core::finding::Says;
use untax_core::window::Pair;
use untax_core::{Diagnosis, Finding, Interval, Reading, Tax, Unmeasured, Window};

/// Applies every rule to a window.
pub fn check(window: &Window, run: String, own: Reading<OwnCost>) -> Check {
    let diagnoses: Vec<Diagnosis> = RULES.iter().flat_map(|rule| (rule.evaluate)(window)).collect();
    let (findings, mut unmeasured) = said_of(None, &diagnoses);
    unmeasured.extend(window.start.databases.iter().filter_map(|start| {
        let gone = !window.end.databases.iter().any(|end| start.is_same_instance(end));
        gone.then(|| Unmeasured {
            rule: "all".to_owned(),
            why: format!("{} ended or was restarted during the check", start.id),
        })
    }));
    Check {
        schema: SCHEMA.to_owned(),
        run,
        taken_at: window.end.taken_at,
        window_s: window.seconds(),
        own,
        host: window.end.host.clone(),
        calibration: window.calibration.clone(),
        databases: window.databases().map(|pair| checked(&pair, &diagnoses)).collect(),
        findings,
        unmeasured,
    }
}

fn checked(pair: &Pair, diagnoses: &[Diagnosis]) -> Checked {
    let database = pair.end;
    let (findings, unmeasured) = said_of(Some(&database.id), diagnoses);
    Checked {
        id: database.id.clone(),
        engine: database.engine.clone(),
        product: database.product.clone(),
        version: database.version.clone(),
        pid: database.pid,
        model: database.model,
        processes: database.processes,
        connections: database.connections.clone(),
        container: database.container.clone(),
        pod: database.pod.clone(),
        data_directory: database.data_directory.clone(),
        memory: database.memory.clone(),
        huge_pages: database.huge_pages.clone(),
        settings: database.settings.clone(),
        time: time_shares(pair),
        tax: sum(&findings),
        findings,
        unmeasured,
    }
}

/// What the rules said of one database or of the host, the dearest findings first.
fn said_of(database: Option<&str>, diagnoses: &[Diagnosis]) -> (Vec<Finding>, Vec<Unmeasured>) {
    let mut findings = Vec::new();
    let mut unmeasured = Vec::new();
    for diagnosis in diagnoses.iter().filter(|d| d.database.as_deref() == database) {
        match &diagnosis.says {
            Says::Found(finding) => findings.push(finding.clone()),
            Says::Unmeasured(gap) => unmeasured.push(gap.clone()),
        }
    }
    let share = |finding: &Finding| finding.tax.as_ref().map_or(-1.0, |tax| tax.share);
    findings
        .sort_by(|a, b| share(b).total_cmp(&share(a)).then_with(|| b.severity.cmp(&a.severity)));
    (findings, unmeasured)
}

/// The sum of all measured taxes. Rules never charge the same time twice, so they add up.
fn sum(findings: &[Finding]) -> Option<Tax> {
    let taxes: Vec<&Tax> = findings.iter().filter_map(|finding| finding.tax.as_ref()).collect();
    let interval = |tax: &Tax| Interval::new(tax.low, tax.share, tax.high);
    let total = taxes.iter().map(|tax| interval(tax)).reduce(Interval::plus)?;
    Some(Tax::new(total, "sum of the findings' taxes"))
}
