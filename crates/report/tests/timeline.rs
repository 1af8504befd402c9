//! The page, the figure and the screen of a timeline.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use jiff::Timestamp;
use unicode_width::UnicodeWidthStr;
use untax_core::Reading;
use untax_core::timeline::{
    Account, Cause, Change, Comparison, Database, FactChange, Kind, Line, Note, SCHEMA, Series,
    Timeline,
};
use untax_report::terminal::{Style, timeline as screen};
use untax_report::{html, timeline_figure};

/// Two minutes of a database whose CPU limit is raised after one of them.
fn timeline(name: &str) -> Timeline {
    let account = |requests: f64, throttled: f64| {
        let mut account = Account::default();
        let parts = [("cpu", requests * 0.0002), ("throttled", throttled)];
        account.add(60.0, requests, parts.map(|(part, s)| (part.to_owned(), s)));
        account
    };
    let (before, after) = (account(900_000.0, 300.0), account(1_200_000.0, 240.0));
    let moment = |second: i64| Timestamp::from_second(1_790_000_000 + second).unwrap();
    let compared = Comparison::of(&before, &after).unwrap();
    let fact = FactChange {
        id: "cpu-limit".to_owned(),
        before: Some("2 CPUs".to_owned()),
        after: Some(name.to_owned()),
        at: Some(moment(60)),
    };
    let change = Change {
        kind: Kind::Step,
        from: moment(60),
        to: moment(60),
        rank: 1,
        before_per_s: before.per_s(),
        after_per_s: after.per_s(),
        causes: vec![Cause {
            id: "cpu-limit".to_owned(),
            text: format!("the CPU limit changed: from 2 CPUs to {name}"),
            gained_per_s: Some(compared.gained_by(&["throttled"])),
            parts: vec!["throttled".to_owned()],
            facts: vec![fact.clone()],
        }],
        unexplained_per_s: Some(0.0),
        offset_per_s: Some(0.0),
        also: vec![fact],
        seconds: Reading::Present(compared),
    };
    let line =
        |id: &str, values: [f64; 4]| Line { id: id.to_owned(), values: values.map(Some).to_vec() };
    let series = Series {
        at_s: [15.0, 45.0, 75.0, 105.0].map(|s| 1_790_000_000.0 + s).to_vec(),
        per_s: vec![Some(15e3), Some(15e3), None, Some(20e3)],
        parts: vec![line("cpu", [2e-4; 4]), line("throttled", [3e-4, 3e-4, 2e-4, 2e-4])],
        disk_bytes_per_s: vec![line(&format!("{name} log write"), [1e6, 2e6, 3e6, 1e6])],
        disk_latency_s: Vec::new(),
    };
    let note = Note {
        id: "gap".to_owned(),
        at: Some(moment(70)),
        text: "nothing was recorded".to_owned(),
    };
    let database = Database {
        name: name.to_owned(),
        engine: "postgres".to_owned(),
        untold: None,
        changes: vec![change],
        notes: Vec::new(),
        series,
        storage: Vec::new(),
        storage_in_words: String::new(),
    };
    Timeline {
        schema: SCHEMA.to_owned(),
        source: "day.untax".to_owned(),
        from: moment(0),
        to: moment(120),
        windows: 12,
        window_s: 10.0,
        notes: vec![note],
        databases: vec![database],
    }
}

#[test]
fn the_page_draws_changes_with_their_causes() {
    let page = html::timeline(&timeline("4 CPUs"));
    assert!(page.contains("15\u{202f}000 → 20\u{202f}000 requests/s"), "{page}");
    assert!(page.contains("the CPU limit changed: from 2 CPUs to 4 CPUs"));
    // One for wide windows and one for narrow ones.
    let figures: Vec<&str> = page.split("<svg class=\"timeline ").skip(1).collect();
    assert!(figures[0].starts_with("wide\"") && figures[1].starts_with("narrow\""));
    assert_eq!(figures.len(), 2);
    for figure in figures {
        let lines = figure.matches("<polyline class=\"throughput\"").count();
        assert_eq!(lines, 2, "a gap parts the line");
        assert_eq!(figure.matches("<polygon class=\"time-part ").count(), 2);
        assert_eq!(figure.matches("class=\"change gained\"").count(), 1);
    }
    assert!(page.contains("nothing was recorded"));
    let figure = timeline_figure::file(&timeline("4 CPUs").databases[0]);
    assert!(
        figure.starts_with("<svg ") && figure.contains("<style>") && figure.ends_with("</svg>\n")
    );
}

#[test]
fn the_screen_says_what_each_part_brought() {
    let text = screen(&timeline("4 CPUs"), Style { colour: false, width: 100 });
    for said in [
        "1. 15 000 → 20 000 requests/s  +33 %",
        "the CPU limit changed: from 2 CPUs to 4 CPUs",
        "held back by a CPU limit",
        "nothing was recorded",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
    assert!(text.lines().all(|line| line.width() <= 100), "{text}");
}

#[test]
fn hostile_names_stay_text() {
    let name = "</style><script>alert(1)</script>\u{202e}\u{1b}[31m";
    let timeline = timeline(name);
    for text in [html::timeline(&timeline), timeline_figure::file(&timeline.databases[0])] {
        assert!(!text.contains("<script"), "{text}");
    }
    let page = html::timeline(&timeline);
    assert!(!page.contains(|c: char| (c.is_control() && c != '\n') || c == '\u{202e}'));
    let text = screen(&timeline, Style { colour: false, width: 80 });
    assert!(!text.contains(|c: char| (c.is_control() && c != '\n') || c == '\u{202e}'));
}

#[test]
fn an_empty_timeline_draws_nothing() {
    let mut timeline = timeline("x");
    timeline.databases[0].series = Series::default();
    timeline.databases[0].changes.clear();
    let page = html::timeline(&timeline);
    assert!(page.contains("Throughput did not change beyond its noise") && !page.contains("<svg"));
}
