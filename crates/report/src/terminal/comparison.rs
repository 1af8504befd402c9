//! The screen of `untax compare`.

use super::Style;
use super::screen::{Ink, Screen, pad, span};
use crate::format;
use crate::markdown::change;
use untax_core::Tax;
use untax_core::compare::{Change, Comparison};

/// Columns of the rule and of the verdict; what a narrow screen cuts is the taxes behind them.
const RULE: usize = 28;
const VERDICT: usize = 20;

/// Two checks, cause by cause.
pub fn comparison(comparison: &Comparison, style: Style) -> String {
    let mut screen = Screen::new(style);
    for database in &comparison.databases {
        let both = |taxes: &[Option<Tax>; 2]| {
            let [before, after] = taxes.each_ref().map(|tax| format::tax_or_not(tax.as_ref()));
            format!("{before} -> {after}")
        };
        let platform = format!("platform tax {}", both(&database.tax));
        screen.ends((Ink::Bold, &database.id), (Ink::Bold, &platform));
        if database.database_tax.iter().any(Option::is_some) {
            let own = format!("database tax {}", both(&database.database_tax));
            screen.ends((Ink::Plain, ""), (Ink::Bold, &own));
        }
        for cause in &database.causes {
            let tax = |at: usize| match (cause.found[at], cause.tax[at].as_ref()) {
                (false, _) if cause.change == Change::Unmeasured => "not measured".to_owned(),
                (false, _) => "not found".to_owned(),
                (true, tax) => format::tax_or_not(tax),
            };
            let ink = match cause.change {
                Change::Gone | Change::Less => Ink::Green,
                Change::New | Change::More => Ink::Red,
                Change::Unmeasured => Ink::Yellow,
                Change::Same => Ink::Dim,
            };
            screen.line(&[
                span(Ink::Plain, pad(&format!("  {}", cause.rule), RULE)),
                span(ink, pad(change(cause.change), VERDICT)),
                span(Ink::Plain, format!("{} -> {}", tax(0), tax(1))),
            ]);
        }
        screen.blank();
    }
    for id in &comparison.unmatched {
        screen.line(&[span(Ink::Yellow, format!("{id} is in one of the checks only"))]);
    }
    screen.finish()
}
