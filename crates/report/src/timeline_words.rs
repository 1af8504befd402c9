//! Changes of a timeline in words, for the screen and the page alike.

use crate::format;
use crate::html::part::moment;
use untax_core::timeline::{Change, FactChange, Kind};

/// `15 000 → 20 000 requests/s`.
pub(crate) fn levels(change: &Change) -> String {
    let [before, after] = [change.before_per_s, change.after_per_s].map(format::number);
    format!("{before} → {after} requests/s")
}

/// What kind of change it was, and when.
pub(crate) fn when(change: &Change) -> String {
    let from = moment(&change.from.to_string());
    match change.kind {
        Kind::Step => format!("a step at {from}"),
        Kind::Ramp => format!("a ramp from {from} to {}", moment(&change.to.to_string())),
        Kind::Gap => {
            format!("while nothing was recorded, {from} to {}", moment(&change.to.to_string()))
        }
    }
}

/// Requests a second with a sign.
pub(crate) fn signed(per_s: f64) -> String {
    // Last digits of sums are no change.
    let size = if per_s.abs() < 0.005 { 0.0 } else { per_s.abs() };
    let sign = if per_s < 0.0 && size > 0.0 { "−" } else { "+" };
    format!("{sign}{}/s", format::number(size))
}

/// What is unexplained, and what other parts took back; nothing where it is next to nothing.
pub(crate) fn rests(change: &Change) -> Vec<(f64, &'static str)> {
    const LITTLE: f64 = 0.02;
    let each = [
        (change.unexplained_per_s, "unexplained"),
        (
            change.offset_per_s,
            "taken back by waits that became longer, or given back by shorter ones",
        ),
    ];
    let least = LITTLE * change.gained_per_s().abs();
    let known = each.into_iter().filter_map(|(per_s, text)| Some((per_s?, text)));
    known.filter(|(per_s, _)| per_s.abs() > least).collect()
}

/// A fact that changed, in words.
pub(crate) fn fact(fact: &FactChange) -> String {
    let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "not there".to_owned());
    format!("{}: {} → {}", fact.id, value(&fact.before), value(&fact.after))
}
