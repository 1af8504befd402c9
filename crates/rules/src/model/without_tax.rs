//! Findings whose tax cannot be measured: they say why beside what they found.

use untax_core::finding::Says;
use untax_core::window::Pair;
use untax_core::{Diagnosis, Evidence, Finding, Gain, Severity, Unmeasured, Window};

/// A finding without a tax.
pub struct Words {
    /// How much it matters.
    pub severity: Severity,
    /// One line: what is the case.
    pub summary: String,
    /// One line: what to change.
    pub fix: String,
    /// What it stands on.
    pub evidence: Vec<Evidence>,
    /// What its end should bring, where that is known although the tax is not.
    pub gain: Option<Gain>,
    /// The remedy's id.
    pub remedy: Option<&'static str>,
    /// Why its tax is not measured.
    pub why: &'static str,
}

/// What was found of a database, or of the host, and why its tax is not known.
pub fn finding_and_gap(rule: &str, database: Option<&str>, words: Words) -> Vec<Diagnosis> {
    let finding = Finding {
        evidence: words.evidence,
        gain: words.gain,
        remedy: words.remedy.map(str::to_owned),
        ..Finding::new(rule, words.severity, words.summary, words.fix)
    };
    let gap = Unmeasured::new(rule, format!("tax: {}", words.why));
    let says = [Says::Found(finding), Says::Unmeasured(gap)];
    says.map(|says| Diagnosis { database: database.map(str::to_owned), says }).into()
}

/// What was found, and of each finding of a database that has no tax why it has none.
pub fn with_reasons(
    window: &Window,
    mut found: Vec<Diagnosis>,
    why: impl Fn(&Pair) -> String,
) -> Vec<Diagnosis> {
    let gap = |diagnosis: &Diagnosis| match &diagnosis.says {
        Says::Found(finding) if finding.tax.is_none() => {
            let id = diagnosis.database.as_deref()?;
            let pair = window.databases().find(|pair| pair.end.id == id)?;
            let why = format!("tax: {}", why(&pair));
            let says = Unmeasured::new(&finding.rule, why);
            Some(Diagnosis { says: Says::Unmeasured(says), ..diagnosis.clone() })
        }
        _ => None,
    };
    let gaps: Vec<Diagnosis> = found.iter().filter_map(gap).collect();
    found.extend(gaps);
    found
}

/// What could not be measured of a database, or of the host.
pub fn unmeasured(rule: &str, database: Option<&str>, why: String) -> Vec<Diagnosis> {
    let says = Says::Unmeasured(Unmeasured::new(rule, why));
    vec![Diagnosis { database: database.map(str::to_owned), says }]
}
