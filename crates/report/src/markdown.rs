//! Results as Markdown: for tickets, chats and merge requests.

use crate::{facts, format, summary};
use untax_core::check::{Check, Checked};
use untax_core::compare::{Change, Comparison};
use untax_core::verdict::Verification;
use untax_core::{Finding, Gain};

/// A check: a table of causes for each database that is not idle.
pub fn check(check: &Check) -> String {
    let (busy, idle) = summary::busy_and_idle(check);
    let mut text = format!("# {}\n", plain(&summary::headline(check)));
    for db in busy {
        text += &database(db);
    }
    if let Some(idle) = summary::idle_line(&idle) {
        text += &format!("\n{}\n", plain(&idle));
    }
    if !check.findings.is_empty() {
        text += &format!("\n## This host\n\n{}", findings(&check.findings));
    }
    let blind = summary::unmeasured(check);
    if !blind.is_empty() {
        text += "\n## Not measured\n\n";
        let line = |gap: &summary::UnmeasuredReason<'_>| {
            format!("- {}: {}\n", plain(&gap.rules_concerned()), plain(gap.why))
        };
        text += &blind.iter().map(line).collect::<String>();
    }
    text + &format!("\n{}\n", plain(&facts::host_line(&check.host).join(" · ")))
}

fn database(db: &Checked) -> String {
    let own = summary::database_tax(db).map(|own| format!(", {own}")).unwrap_or_default();
    let head = format!("{}: {}{own}", facts::name(db), summary::platform_tax(db));
    let line = facts::database_line(db).join(" · ");
    let mut text = format!("\n## {}\n\n{}\n", plain(&head), plain(&line));
    if !db.findings.is_empty() {
        text += &format!("\n{}", findings(&db.findings));
    }
    text
}

fn findings(all: &[Finding]) -> String {
    let mut text = table(["severity", "cause", "tax", "what", "fix", "gain"]);
    for one in summary::findings_in_order(all) {
        let gain = one.gain.as_ref().map(format::gain).unwrap_or_default();
        text += &row([
            summary::severity(one.severity).to_owned(),
            format!("`{}`", plain(&one.rule)),
            format::tax_or_not(one.tax.as_ref()),
            one.summary.clone(),
            one.fix.clone(),
            gain,
        ]);
    }
    text
}

/// Two checks, cause by cause.
pub fn comparison(comparison: &Comparison) -> String {
    let mut text = format!("# {} and {}\n", plain(&comparison.before), plain(&comparison.after));
    for database in &comparison.databases {
        text += &format!("\n## {}\n\n", plain(&database.id));
        text += &table(["cause", "before", "after", "change"]);
        let [before, after] = database.tax.each_ref().map(|tax| format::tax_or_not(tax.as_ref()));
        text += &row(["platform tax".to_owned(), before, after, String::new()]);
        for cause in &database.causes {
            let tax = |at: usize| match (cause.found[at], cause.tax[at].as_ref()) {
                (false, _) if cause.change == Change::Unmeasured => format::NOT_MEASURED.to_owned(),
                (false, _) => "not found".to_owned(),
                (true, tax) => format::tax_or_not(tax),
            };
            let rule = format!("`{}`", plain(&cause.rule));
            text += &row([rule, tax(0), tax(1), change(cause.change).to_owned()]);
        }
    }
    for id in &comparison.unmatched {
        text += &format!("\n{} is in one of the checks only.\n", plain(id));
    }
    text
}

/// What may be said of a difference.
pub(crate) fn change(change: Change) -> &'static str {
    match change {
        Change::Gone => "gone",
        Change::New => "new",
        Change::Less => "less",
        Change::More => "more",
        Change::Unmeasured => "cannot be compared",
        Change::Same => "no difference shown",
    }
}

/// What trials with and without a plan showed.
pub fn verification(result: &Verification) -> String {
    let verdict = &result.verdict;
    let word = format::verdict(verdict.word);
    let measured = format::gain(&Gain::measured(verdict.measured));
    let predicted = result.predicted.as_ref().map(format::gain);
    let mut text = format!("# {word}: {measured}, {} pairs\n\n", verdict.pairs);
    text += &table(["what", "value"]);
    for (what, value) in [
        ("measured", format!("{measured} ({})", result.measure)),
        ("compared", format::compared(result).to_owned()),
        ("predicted", predicted.unwrap_or_else(|| format::NOT_MEASURED.to_owned())),
        ("noise floor", format::percent(verdict.floor)),
        ("plan", result.plan.clone()),
    ] {
        text += &row([what.to_owned(), value]);
    }
    text
}

fn table<const N: usize>(head: [&str; N]) -> String {
    format!("| {} |\n|{}\n", head.join(" | "), " --- |".repeat(N))
}

fn row<const N: usize>(cells: [String; N]) -> String {
    format!("| {} |\n", cells.map(|cell| plain(&cell).replace('|', "\\|")).join(" | "))
}

/// Other people's text in a line of its own that starts no markup of HTML.
fn plain(text: &str) -> String {
    let text = format::clean(text).replace(format::THIN, " ");
    text.replace('<', "&lt;").replace(['\n', '\r'], " ")
}
