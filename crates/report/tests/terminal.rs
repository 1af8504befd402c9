//! The screens, and what no name can do to them.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod common;

use proptest::prelude::*;
use unicode_width::UnicodeWidthStr;
use untax_core::Reading::Absent;
use untax_core::check::Check;
use untax_core::compare::{self, Cause, Change, Compared, Comparison};
use untax_core::finding::Unmeasured;
use untax_core::{Interval, Scope, Tax};
use untax_report::format::ascii;
use untax_report::markdown;
use untax_report::terminal::{self, Details, Style, comparison};

const PLAIN: Style = Style { colour: false, width: 80 };

fn check(check: &Check, style: Style) -> String {
    terminal::check(check, Details::OneScreen, style)
}

/// Two databases, the second of them idle.
fn one_idle() -> Check {
    let mut result = common::rich();
    let idle = &mut result.databases[1];
    (idle.tax, idle.database_tax) = (None, None);
    idle.findings.clear();
    "postgres@5433".clone_into(&mut idle.name);
    let why = "idle: all its threads together were active for 0.1 s".to_owned();
    idle.unmeasured = vec![Unmeasured::new("disk-slow", why)];
    result
}

#[test]
fn idle_databases_are_one_line_unless_all_is_wanted() {
    let result = one_idle();
    let screen = check(&result, PLAIN);
    let line = "1 idle, not judged: postgres@5433; --all-details shows them";
    assert!(screen.contains(line), "{screen}");
    let all = terminal::check(&result, Details::All, PLAIN);
    assert!(!all.contains("idle, not judged") && all.len() > screen.len(), "{all}");
    assert!(markdown::check(&result).contains("1 idle, not judged: postgres@5433"));
}

#[test]
fn a_gain_is_never_cut() {
    let mut result = common::single();
    let finding = &mut result.databases[0].findings[0];
    finding.fix = "a fix of many words ".repeat(20);
    finding.gain = Some(untax_core::Gain::measured(Interval { mid: 1.25, low: 1.19, high: 1.34 }));
    for width in [40, 60, 80, 100] {
        let screen = check(&result, Style { width, ..PLAIN });
        assert_calm(&screen, width);
        assert!(screen.contains("gain 1.25× (1.19–1.34)"), "{screen}");
    }
}

#[test]
fn ascii_keeps_the_columns() {
    let screen = check(&common::single(), PLAIN);
    let plain = ascii(&screen);
    assert!(plain.is_ascii() && !plain.contains('?'), "{plain}");
    let widths = |text: &str| text.lines().map(UnicodeWidthStr::width).collect::<Vec<_>>();
    assert_eq!(widths(&plain), widths(&screen));
}

#[test]
fn markdown_starts_no_markup_of_others() {
    let text = markdown::check(&common::hostile());
    assert!(!text.contains("<script"), "{text}");
    let rows = text.lines().filter(|line| line.starts_with("| "));
    assert!(rows.count() > 0, "{text}");
}

fn assert_calm(screen: &str, width: usize) {
    for line in screen.lines() {
        assert!(!line.contains(char::is_control), "{line:?}");
        assert!(line.width() <= width, "{} > {width}: {line}", line.width());
        assert_eq!(line.trim_end(), line, "blanks at the end");
    }
}

#[test]
fn one_database() {
    let screen = check(&common::single(), PLAIN);
    insta::assert_snapshot!(screen);
    assert!((24..=40).contains(&screen.lines().count()), "{} lines", screen.lines().count());
}

#[test]
fn two_databases() {
    insta::assert_snapshot!(check(&common::rich(), PLAIN));
}

#[test]
fn no_database() {
    insta::assert_snapshot!(check(&common::empty(), PLAIN));
}

#[test]
fn a_database_that_ended_was_there() {
    let mut result = common::empty();
    let why = "postgres:7 ended or was restarted during the check".to_owned();
    result.unmeasured.push(Unmeasured::new("all", why.clone()));
    let screen = check(&result, PLAIN);
    assert!(screen.starts_with("No database was there all through the check.\n  Once it runs"));
    assert!(screen.contains(&why) && !screen.contains("sudo"), "{screen}");
}

#[test]
fn hostile_names() {
    let screen = check(&common::hostile(), PLAIN);
    assert_calm(&screen, 80);
    insta::assert_snapshot!(screen);
}

#[test]
fn a_database_without_causes() {
    let mut result = common::single();
    result.databases[0].findings.clear();
    result.databases[0].tax = None;
    assert!(check(&result, PLAIN).contains("no cause found, 2 not measured"));
    result.databases[0].unmeasured.clear();
    assert!(check(&result, PLAIN).lines().next().unwrap().ends_with("  no cause found"));
}

#[test]
fn pressure_is_told_where_nothing_was_traced() {
    let mut result = common::single();
    let says = "pressure on any task of its group: CPU";
    assert!(!check(&result, PLAIN).contains(says));
    result.databases[0].time.active_s = Absent("tracing needs root".to_owned());
    assert!(check(&result, PLAIN).contains(says), "{}", check(&result, PLAIN));
    result.databases[0].pressure = Absent("switched off".to_owned());
    assert!(!check(&result, PLAIN).contains("pressure"));
}

#[test]
fn what_is_not_measured_is_never_a_number() {
    let mut result = common::single();
    for finding in &mut result.databases[0].findings {
        finding.tax = None;
        finding.evidence.clear();
    }
    result.databases[0].findings.retain(|finding| finding.rule != "lock-contended");
    (result.databases[0].tax, result.databases[0].database_tax) = (None, None);
    result.databases[0].time.active_s = Absent("tracing needs root".into());
    result.databases[0].pressure = Absent("switched off".into());
    let screen = check(&result, PLAIN);
    assert!(screen.lines().next().unwrap().ends_with("platform tax not measured"));
    assert!(!screen.contains('%'), "{screen}");
}

#[test]
fn reasons_are_told_once() {
    let mut result = common::rich();
    let why = "no hardware counters in this virtual machine";
    for db in &mut result.databases {
        db.unmeasured =
            ["small-pages", "page-table-bloat"].map(|rule| common::unmeasured(rule, why)).into();
    }
    let screen = check(&result, Style { width: 100, ..PLAIN });
    let told = format!("Not measured  small-pages, page-table-bloat: {why}");
    assert!(screen.contains(&told), "{screen}");
    result.databases[0].unmeasured = Vec::new();
    let screen = check(&result, Style { width: 100, ..PLAIN });
    assert!(screen.contains("small-pages, page-table-bloat (postgres:4012): no"), "{screen}");
}

#[test]
fn a_comparison_has_room_for_its_verdicts() {
    let tax =
        |share: f64| Some(Tax::new(Interval::new(share - 0.08, share, share + 0.08), "traced"));
    let cause = |change, found, tax| Cause {
        rule: "postgres-full-page-writes".to_owned(),
        scope: Scope::Database,
        found,
        tax,
        change,
    };
    let compared = Compared {
        id: "postgres:7".to_owned(),
        tax: [None, tax(0.12)],
        database_tax: [tax(0.27), tax(0.25)],
        causes: vec![
            cause(Change::Same, [true, true], [tax(0.27), tax(0.25)]),
            cause(Change::Gone, [true, false], [tax(0.27), None]),
            cause(Change::Unmeasured, [true, false], [tax(0.27), None]),
        ],
    };
    let whole = Comparison {
        schema: compare::SCHEMA.to_owned(),
        before: "check-1".to_owned(),
        after: "check-2".to_owned(),
        databases: vec![compared],
        unmatched: vec!["redis:9".to_owned()],
    };
    let screen = comparison(&whole, PLAIN);
    assert_calm(&screen, PLAIN.width);
    insta::assert_snapshot!(screen);
}

#[test]
fn colours_only_add_to_the_text() {
    let style = Style { colour: true, width: 80 };
    for result in [common::rich(), common::hostile(), common::empty()] {
        let coloured = check(&result, style);
        assert!(coloured.contains("\u{1b}["));
        assert_eq!(without_colours(&coloured), check(&result, PLAIN));
    }
}

/// Removes exactly the sequences that set colours and weights.
fn without_colours(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (codes, rest) = part.split_once('m').unwrap();
        assert!(codes.chars().all(|c| c.is_ascii_digit() || c == ';'), "{codes:?}");
        out.push_str(rest);
    }
    out
}

fn named(name: &str) -> Check {
    let mut result = common::rich();
    for db in &mut result.databases {
        db.product = name.into();
        db.id = name.into();
        for f in &mut db.findings {
            f.rule = name.into();
            f.summary = name.into();
            f.fix = name.into();
        }
        for u in &mut db.unmeasured {
            u.why = name.into();
        }
    }
    result
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

    #[test]
    fn no_name_breaks_the_screen(name in "\\PC*|(?s:.)*", width in 0_usize..200) {
        let style = Style { colour: false, width };
        assert_calm(&check(&named(&name), style), width.clamp(40, 100));
    }
}
