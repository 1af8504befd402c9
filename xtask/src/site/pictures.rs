//! A picture of each finding, from what each rule says of the window that its tests make.

use crate::tidy::Tree;
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use untax_core::{Finding, Severity};
use untax_report::{format, svg};

/// Written and checked by the tests of crates/rules.
pub const FINDINGS: &str = "tests/findings.json";

/// By rule, what it says.
pub type Findings = BTreeMap<String, Finding>;

/// Reads them.
pub fn read(tree: &Tree) -> Result<Findings> {
    let text = tree.get(FINDINGS).with_context(|| format!("there is no {FINDINGS}"))?;
    serde_json::from_str(text).context(FINDINGS)
}

/// The finding of a rule as HTML, which a page of Markdown may hold.
pub fn picture(rule: &str, findings: &Findings) -> Result<String> {
    let finding = findings.get(rule).with_context(|| format!("{FINDINGS} has no {rule}"))?;
    let severity = match finding.severity {
        Severity::Info => "info",
        Severity::Low => "low",
        Severity::Medium => "medium",
        Severity::High => "high",
    };
    let tax = finding.tax.as_ref();
    let said = tax.map_or_else(String::new, |tax| format!("tax {}", format::tax(tax)));
    let bar = tax.map_or_else(String::new, |tax| svg::bar(tax, 1.0, severity).into_string());
    let evidence: String = finding
        .evidence
        .iter()
        .map(|one| {
            let value = escape(&format::evidence(one));
            format!("<tr><td>{}</td><td>{value}</td></tr>", escape(&one.name))
        })
        .collect();
    Ok(format!(
        "<figure class=\"finding\"><div class=\"head\"><span class=\"severity {severity}\">{severity}</span> \
         <code>{rule}</code> <span>{}</span> <span class=\"tax\">{}</span></div>{bar}<table>{evidence}</table>\
         <div>fix: {}</div><figcaption>What it says of a window made for its tests.</figcaption></figure>",
        escape(&finding.summary),
        escape(&said),
        escape(&finding.fix),
    ))
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('\n', " ")
}
