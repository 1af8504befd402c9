//! The screen of `untax advise`.

use super::Style;
use super::screen::{Ink, Screen, pad, span};
use crate::format;
use untax_core::Reading;
use untax_core::advice::{Advice, Choice, DatabaseAdvice, Needs, Price};
use untax_core::bench::RatioVerdict;
use untax_core::verdict::LEAST_PAIRS;

/// Columns of a price.
const PRICE: usize = 22;

/// Where labels end.
const COLUMN: usize = 10;

/// The alternatives of one layer.
pub fn advice(advice: &Advice, style: Style) -> String {
    let mut screen = Screen::new(style);
    if advice.databases.is_empty() {
        let text = "no database was running; start one, and run untax advise again";
        screen.line(&[span(Ink::Bold, format!("{}: {text}", advice.layer))]);
    }
    for (place, database) in advice.databases.iter().enumerate() {
        if place > 0 {
            screen.blank();
        }
        draw(&mut screen, &advice.layer, database);
    }
    if let [latest, earlier @ ..] = &advice.benches[..] {
        screen.blank();
        let more = match earlier.len() {
            0 => String::new(),
            n => format!(" and {n} earlier"),
        };
        let text = format!(
            "A price is the time of a request, divided by its time in the alternative named, \
             where the database limits the load. Measured here by {latest}{more}."
        );
        screen.labelled("", 0, Ink::Dim, &text, 3);
    }
    screen.finish()
}

fn draw(screen: &mut Screen, layer: &str, database: &DatabaseAdvice) {
    let now = match &database.now {
        Reading::Present(now) => format!("{layer} now: {now}"),
        gap => format!("{layer} now: unknown, {}", gap.why().unwrap_or_default()),
    };
    screen.ends((Ink::Bold, &format!("{} ({})", database.id, database.product)), (Ink::Plain, ""));
    screen.labelled("  has", COLUMN, Ink::Dim, &now, 3);
    screen.labelled("  needs", COLUMN, Ink::Dim, &needs(&database.needs), 4);
    for said in &database.says {
        screen.labelled("  advice", COLUMN, Ink::Green, said, 6);
    }
    let prices: Vec<&Price> =
        database.choices.iter().filter_map(|choice| choice.price.as_ref()).collect();
    let (Some(over), [first, ..]) = (&database.over, &prices[..]) else { return };
    let by = format!("  times {over}, by {}: {}", first.method.words(), first.cell);
    screen.line(&[span(Ink::Dim, by)]);
    let widest = database.choices.iter().map(|choice| choice.id.len()).max().unwrap_or(0);
    for choice in &database.choices {
        row(screen, choice, widest + 6);
    }
}

/// What it needs, in one line.
fn needs(needs: &Needs) -> String {
    let share = |share: &Reading<f64>, of: &str| match share {
        Reading::Present(share) => format!("{} {of}", format::percent(*share)),
        _ => format!("unmeasured {of}"),
    };
    [
        share(&needs.kernel_share, "of CPU time in the kernel"),
        share(&needs.network_share, "of a request on the way"),
        share(&needs.disk_share, "of active time waiting for disks"),
    ]
    .join(", ")
}

fn row(screen: &mut Screen, choice: &Choice, column: usize) {
    let name = pad(&format!("    {}", choice.id), column);
    let Some(price) = &choice.price else {
        let why = choice.why.as_deref().unwrap_or("not measured");
        screen.labelled(name.trim_end(), column, Ink::Dim, why, 2);
        return;
    };
    let factor = price.factor;
    let (ink, word) = match price.verdict {
        RatioVerdict::Slower => (Ink::Red, "slower"),
        RatioVerdict::Faster => (Ink::Green, "faster"),
        RatioVerdict::Inconclusive if price.pairs < LEAST_PAIRS => (Ink::Yellow, "too few pairs"),
        RatioVerdict::Inconclusive => (Ink::Plain, "no price beyond noise"),
    };
    let kernel = match choice.separates_kernel {
        Some(true) => ", own kernel",
        Some(false) => ", host's kernel",
        None => "",
    };
    let note = price.note.as_deref().map(|note| format!("; {note}")).unwrap_or_default();
    screen.line(&[
        span(Ink::Plain, name),
        span(ink, pad(&format::ratio(factor.median, factor.low, factor.high), PRICE)),
        span(Ink::Dim, format!("{word}{kernel}{note}")),
    ]);
}
