//! The screen of `untax timeline`.

use super::Style;
use super::screen::{Ink, Screen, pad, pad_left, span};
use crate::format;
use crate::timeline_words::{fact, levels, rests, signed, when};
use untax_core::timeline::{Change, Comparison, Database, Timeline, part_in_words};
use untax_core::{Reading, Seconds};

/// Column of a cause's text.
const CAUSE: usize = 16;

/// Columns of the parts.
const PART: usize = 43;
const NUMBER: usize = 12;

/// Parts that brought less than this share of a change have no line.
const LITTLE: f64 = 0.02;

/// How throughput went, and why it changed.
pub fn timeline(result: &Timeline, style: Style) -> String {
    let mut screen = Screen::new(style);
    let of = format!(
        "{} of {}, {} to {}",
        format::count_of(result.windows, "window"),
        format::seconds(Seconds(result.window_s)),
        clock(&result.from),
        clock(&result.to)
    );
    screen.line(&[span(Ink::Dim, of)]);
    for note in &result.notes {
        let at = note.at.as_ref().map(clock).unwrap_or_default();
        screen.labelled(&at, CAUSE + 5, Ink::Yellow, &note.text, 2);
    }
    for database in &result.databases {
        screen.blank();
        self::database(&mut screen, database);
    }
    screen.finish()
}

fn clock(at: &jiff::Timestamp) -> String {
    at.strftime("%Y-%m-%d %H:%M:%S").to_string()
}

fn database(screen: &mut Screen, database: &Database) {
    screen.line(&[span(Ink::Bold, database.name.as_str())]);
    for note in &database.notes {
        let at = note.at.as_ref().map(clock).unwrap_or_default();
        screen.labelled(&format!("  {at}"), CAUSE + 7, Ink::Yellow, &note.text, 2);
    }
    match &database.untold {
        Some(why) => {
            screen.labelled("  throughput", CAUSE, Ink::Yellow, &format!("not known: {why}"), 2);
        }
        None if database.changes.is_empty() => {
            screen.line(&[span(Ink::Plain, "  no change beyond the noise of the load itself")]);
        }
        None => {}
    }
    for one in &database.changes {
        screen.blank();
        change(screen, one);
    }
    if !database.storage_in_words.is_empty() {
        screen.blank();
        screen.labelled("  storage", CAUSE, Ink::Plain, &database.storage_in_words, 6);
    }
}

fn change(screen: &mut Screen, change: &Change) {
    let ink = if change.gained_per_s() < 0.0 { Ink::Red } else { Ink::Green };
    let share = change.gained_per_s() / change.before_per_s;
    let share = if share.is_finite() { format!("{:+.0} %", share * 100.0) } else { String::new() };
    screen
        .ends((ink, &format!("  {}. {}  {share}", change.rank, levels(change))), (Ink::Plain, ""));
    screen.line(&[span(Ink::Dim, format!("     {}", when(change)))]);
    for cause in &change.causes {
        let gained = cause.gained_per_s.map(signed).unwrap_or_default();
        screen.labelled(&format!("     {gained}"), CAUSE + 4, Ink::Plain, &cause.text, 4);
    }
    if change.causes.is_empty() {
        screen.line(&[span(
            Ink::Yellow,
            "     unexplained: nothing changed about then that accounts for it",
        )]);
    }
    for (per_s, text) in rests(change) {
        screen.labelled(&format!("     {}", signed(per_s)), CAUSE + 4, Ink::Dim, text, 2);
    }
    match &change.seconds {
        Reading::Present(compared) => parts(screen, compared),
        gap => {
            let why = gap.why().unwrap_or_default();
            screen.labelled(
                "     time",
                CAUSE + 4,
                Ink::Yellow,
                &format!("not measured: {why}"),
                2,
            );
        }
    }
    if !change.also.is_empty() {
        let all: Vec<String> = change.also.iter().map(fact).collect();
        screen.labelled("     changed too", CAUSE + 4, Ink::Dim, &all.join("; "), 3);
    }
}

fn parts(screen: &mut Screen, compared: &Comparison) {
    let row = |screen: &mut Screen, name: &str, numbers: [String; 3]| {
        let numbers = numbers.map(|number| pad_left(&number, NUMBER));
        let [before, after, gained] = numbers;
        screen.line(&[
            span(Ink::Dim, pad(&format!("       {name}"), PART)),
            span(Ink::Plain, before + &after + &gained),
        ]);
    };
    let least = LITTLE * compared.gained_per_s.abs();
    let head = ["before", "after", "brought"].map(str::to_owned);
    row(screen, "time of a request", head);
    for part in compared.parts.iter().filter(|part| part.gained_per_s.abs() >= least) {
        let time = |s: f64| format::seconds(Seconds(s));
        let numbers = [time(part.before_s), time(part.after_s), signed(part.gained_per_s)];
        row(screen, part_in_words(&part.part), numbers);
    }
    let at_once = &compared.at_once;
    if at_once.gained_per_s.abs() >= least {
        let [before, after] = [at_once.before, at_once.after].map(format::number);
        row(screen, "threads at once", [before, after, signed(at_once.gained_per_s)]);
    }
}
