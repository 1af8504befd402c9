//! The view of `untax watch`: what events make of its state, and what it looks like then.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod common;

use jiff::SignedDuration;
use proptest::prelude::*;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use untax_core::Reading::{self, Denied, Present};
use untax_core::check::{Check, TimeShares};
use untax_core::{Finding, Seconds};
use untax_report::watch::{Event, Key, State, Steered, draw};

/// A state after some events.
fn after(state: State, events: impl IntoIterator<Item = Event>) -> State {
    events.into_iter().fold(state, State::after)
}

fn keys(state: State, keys: &[Key]) -> State {
    after(state, keys.iter().map(|key| Event::Key(*key)))
}

fn checked(check: &Check) -> Event {
    Event::Checked(Box::new(check.clone()), Vec::new())
}

/// The screen as text.
fn screen_of(state: &State, columns: u16, rows: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(columns, rows)).unwrap();
    terminal.draw(|frame| draw(frame, state)).unwrap();
    let buffer = terminal.backend().buffer();
    let cells = buffer.content().chunks(columns.into());
    let line = |row: &[ratatui::buffer::Cell]| {
        row.iter().map(ratatui::buffer::Cell::symbol).collect::<String>().trim_end().to_owned()
    };
    cells.map(line).collect::<Vec<String>>().join("\n")
}

fn screen(state: &State) -> String {
    screen_of(state, 80, 24)
}

/// A window `number` times two seconds later, with the first database's first finding at `share`.
fn window(number: u32, share: Option<f64>) -> Check {
    let mut check = common::rich();
    check.window_s = 2.0;
    check.taken_at += SignedDuration::from_secs(2 * i64::from(number));
    let db = &mut check.databases[1];
    db.time = traced();
    db.findings.retain(|finding| finding.rule != "page-table-bloat");
    if let Some(share) = share {
        let small = db.findings.iter_mut().find(|f| f.rule == "small-pages").unwrap();
        small.tax = Some(common::tax(share, share * 0.9, share * 1.1, "counted × calibrated"));
        db.tax.clone_from(&small.tax);
    } else {
        db.findings.retain(|finding| finding.rule != "small-pages");
        db.tax = None;
    }
    check
}

fn traced() -> TimeShares {
    let s = |seconds| Present(Seconds(seconds));
    TimeShares {
        active_s: s(8.0),
        on_cpu_s: s(2.0),
        minor_faults_s: s(0.5),
        runnable_s: s(3.0),
        throttled_s: s(1.0),
        disk_s: s(2.0),
        lock_s: s(1.0),
        idle_s: s(60.0),
        ..TimeShares::unknown("not traced")
    }
}

/// Some windows of the same two databases: the tax rises, is gone, is not measured, is back.
fn some_windows(columns: u16, rows: u16) -> State {
    let rising = [0.01, 0.05, 0.09, 0.14].into_iter().map(Some);
    let shares = rising.chain([None]).zip(0..).map(|(share, number)| window(number, share));
    let mut blind = window(5, None);
    blind.databases[1].unmeasured.push(common::unmeasured("small-pages", "the server is silent"));
    let all = shares.chain([blind, window(6, Some(0.11))]);
    after(State::new(columns, rows), all.map(|check| checked(&check)))
}

#[test]
fn before_the_first_window() {
    insta::assert_snapshot!(screen(&State::new(80, 24)));
}

#[test]
fn no_database() {
    insta::assert_snapshot!(screen(&after(State::new(80, 24), [checked(&common::empty())])));
}

#[test]
fn databases_with_their_causes_over_time() {
    insta::assert_snapshot!(screen(&some_windows(80, 24)));
}

#[test]
fn a_small_terminal_keeps_what_matters() {
    insta::assert_snapshot!(screen_of(&some_windows(40, 10), 40, 10));
}

#[test]
fn a_wide_terminal() {
    insta::assert_snapshot!(screen_of(&some_windows(140, 30), 140, 30));
}

#[test]
fn a_database_opened() {
    insta::assert_snapshot!(screen(&keys(some_windows(80, 24), &[Key::Open])));
}

#[test]
fn a_cause_opened() {
    insta::assert_snapshot!(screen(&keys(some_windows(80, 24), &[Key::Move(1), Key::Open])));
}

#[test]
fn help_is_closed_by_any_key() {
    let state = keys(some_windows(80, 24), &[Key::Help]);
    insta::assert_snapshot!(screen(&state));
    for key in [Key::Sort, Key::Other] {
        let closed = screen(&keys(state.clone(), &[key]));
        assert_eq!(closed, screen(&some_windows(80, 24)), "and that is all it does");
    }
    assert!(keys(state, &[Key::Quit]).is_over());
}

#[test]
fn without_privilege_the_reason_is_shown() {
    let mut check = window(0, None);
    let why = || Denied("tracing needs root (CAP_BPF and CAP_PERFMON)".to_owned());
    let time = &mut check.databases[1].time;
    time.active_s = why();
    time.disk_s = why();
    let state = after(State::new(80, 24), [checked(&check)]);
    assert!(screen(&state).contains("tracing needs root"), "{}", screen(&state));
    let opened = screen(&keys(state, &[Key::Open]));
    assert!(opened.contains("tracing needs root"), "{opened}");
    assert!(opened.lines().any(|line| line.ends_with('?')), "its column is no bar: {opened}");
}

#[test]
fn the_selection_stays_when_the_order_changes() {
    let state = keys(some_windows(80, 24), &[Key::Move(1)]);
    let selected = |state: &State| {
        let screen = screen(state);
        screen.lines().find(|line| line.starts_with('▸')).unwrap().to_owned()
    };
    assert!(selected(&state).contains("small-pages"));
    for key in [Key::Sort, Key::Sort, Key::Sort] {
        assert!(selected(&keys(state.clone(), &[key])).contains("small-pages"));
    }
    // Another cause becomes the dearest.
    let mut check = window(7, Some(0.01));
    check.databases[1].findings[0].tax = Some(common::tax(0.5, 0.4, 0.6, ""));
    let state = after(state, [checked(&check)]);
    assert!(selected(&state).contains("small-pages"), "{}", screen(&state));
    // And the ends of the list hold.
    assert!(selected(&keys(state.clone(), &[Key::Move(i16::MIN)])).contains("PostgreSQL"));
    assert!(selected(&keys(state, &[Key::Move(i16::MAX)])).contains("hugepages-idle"));
}

#[test]
fn sorting_puts_another_database_first() {
    let state = some_windows(80, 24);
    let first = |state: &State| screen(state).lines().nth(1).unwrap().to_owned();
    assert!(first(&state).contains("PostgreSQL"), "by tax");
    let state = keys(state, &[Key::Sort]);
    assert!(first(&state).contains("PostgreSQL"), "by name");
    let mut idle = window(7, Some(0.2));
    idle.databases[1].time.active_s = Present(Seconds(0.5));
    let state = after(keys(state, &[Key::Sort]), [checked(&idle)]);
    assert!(first(&state).contains("Redis"), "by active threads: {}", screen(&state));
}

#[test]
fn a_held_picture_stays_and_then_has_all() {
    let state = keys(some_windows(80, 24), &[Key::Pause]);
    let held = screen(&state);
    assert!(held.contains("PAUSED, 0 held"), "{held}");
    let state = after(state, [checked(&window(7, Some(0.3))), checked(&window(8, Some(0.4)))]);
    assert_eq!(screen(&state).replace("PAUSED, 2", "PAUSED, 0"), held);
    let state = keys(state, &[Key::Pause]);
    let all = after(
        some_windows(80, 24),
        [checked(&window(7, Some(0.3))), checked(&window(8, Some(0.4)))],
    );
    assert_eq!(screen(&state), screen(&all));
}

#[test]
fn a_database_that_ends_says_so_and_is_forgotten_in_time() {
    let mut alone = window(7, Some(0.1));
    alone.databases.remove(1);
    let state = after(some_windows(80, 24), [checked(&alone)]);
    let shown = screen(&state);
    assert!(shown.contains("1 database ") && shown.contains("ended, seen at 10:15:24Z"), "{shown}");
    let later = (8..620).map(|number| {
        let mut check = window(number, None);
        check.databases.remove(1);
        checked(&check)
    });
    let state = after(state, later);
    assert!(!screen(&state).contains("PostgreSQL"), "{}", screen(&state));
}

#[test]
fn a_restarted_database_goes_on_as_the_same() {
    let mut gone = window(7, None);
    gone.databases.remove(1);
    let mut back = window(8, Some(0.12));
    back.databases[1].id = "postgres:5000".into();
    back.databases[1].pid = 5000;
    let state = keys(some_windows(80, 24), &[Key::Move(1)]);
    let state = after(state, [checked(&gone), checked(&back)]);
    let shown = screen(&state);
    assert!(shown.contains("was pid 4012 until a restart seen at 10:15:26Z"), "{shown}");
    assert_eq!(shown.matches("PostgreSQL").count(), 1, "{shown}");
    let cause = shown.lines().find(|line| line.starts_with('▸')).unwrap();
    assert!(cause.contains("small-pages") && cause.contains('▁'), "with its history: {cause}");
    // In its first moments a server works in the directory that it was started in.
    let mut starting = back.clone();
    starting.databases[1].data_directory = Present("/".into());
    let windows = [checked(&gone), checked(&starting), checked(&back)];
    let shown = screen(&after(some_windows(80, 24), windows));
    assert!(shown.contains("was pid 4012"), "{shown}");
    assert_eq!(shown.matches("PostgreSQL").count(), 1, "{shown}");
    // The same within one window.
    let state = after(some_windows(80, 24), [checked(&back)]);
    assert!(screen(&state).contains("was pid 4012"), "{}", screen(&state));
}

#[test]
fn what_is_open_closes_when_it_is_forgotten() {
    let state = keys(some_windows(80, 24), &[Key::Move(1), Key::Open]);
    assert!(screen(&state).contains("Evidence"));
    let gone = after(state, (7..620).map(|number| checked(&window(number, None))));
    assert!(!screen(&gone).contains("Evidence"), "{}", screen(&gone));
    assert!(screen(&gone).contains("▸PostgreSQL"), "its database is near: {}", screen(&gone));
}

#[test]
fn what_is_open_scrolls_to_its_end_and_no_further() {
    let open = keys(some_windows(60, 12), &[Key::Move(1), Key::Open]);
    let end = keys(open.clone(), &[Key::Move(i16::MAX)]);
    let shown = screen_of(&end, 60, 12);
    assert!(shown.contains("untax explain small-pages"), "{shown}");
    let one_up = screen_of(&keys(end, &[Key::Move(-1)]), 60, 12);
    assert!(!one_up.contains("untax explain small-pages"), "{one_up}");
    // A larger terminal shows it whole.
    let large = after(keys(open, &[Key::Move(i16::MAX)]), [Event::Resize(60, 60)]);
    assert!(screen_of(&large, 60, 60).contains("on 4 KiB pages"), "{}", screen_of(&large, 60, 60));
}

#[test]
fn notes_are_shown_once() {
    let note = || vec!["the calibration is not kept: disk full".to_owned()];
    let check = || Box::new(common::single());
    let events = [Event::Checked(check(), note()), Event::Checked(check(), note())];
    let shown = screen(&after(State::new(80, 40), events));
    assert_eq!(screen_of(&after(State::new(80, 40), []), 80, 40).matches("disk full").count(), 0);
    assert_eq!(shown.matches("disk full").count(), 1, "{shown}");
    let later = (0..13).map(|number| checked(&window(number, None)));
    let said = Event::Checked(check(), note());
    let later = screen(&after(State::new(80, 40), std::iter::once(said).chain(later)));
    assert_eq!(later.matches("disk full").count(), 0, "nobody wants to know for ever: {later}");
}

fn named(name: &str) -> Check {
    let mut check = common::rich();
    for db in &mut check.databases {
        db.product = name.into();
        db.id = format!("{}{name}", db.id);
        let all = db.findings.iter_mut();
        all.for_each(|finding: &mut Finding| {
            finding.rule = name.into();
            finding.summary = name.into();
            finding.fix = name.into();
        });
        db.unmeasured.iter_mut().for_each(|gap| gap.why = name.into());
    }
    check
}

fn any_event() -> impl Strategy<Value = Event> {
    let key = prop_oneof![
        Just(Key::Back),
        Just(Key::Pause),
        Just(Key::Sort),
        (-12..12_i16).prop_map(Key::Move),
        Just(Key::Open),
        Just(Key::Help),
    ];
    let check = prop_oneof![
        (0..9_u32).prop_map(|n| window(n, Some(f64::from(n) / 8.0))),
        Just(common::hostile()),
        Just(common::empty()),
        "\\PC*|(?s:.)*".prop_map(|name| named(&name)),
    ];
    prop_oneof![
        4 => key.prop_map(Event::Key),
        3 => check.prop_map(|check| checked(&check)),
        1 => (0..200_u16, 0..60_u16).prop_map(|(columns, rows)| Event::Resize(columns, rows)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

    #[test]
    fn whatever_happens_there_is_a_picture(
        events in proptest::collection::vec(any_event(), 0..30),
        columns in 1..200_u16,
        rows in 1..60_u16,
    ) {
        let state = after(State::new(columns, rows), events);
        let shown = screen_of(&state, columns, rows);
        prop_assert!(!shown.replace('\n', "").contains(char::is_control));
    }
}

#[test]
fn a_steered_database_says_so_and_no_longer_once_that_ends() {
    let pid = window(0, None).databases[1].pid;
    let steered = Steered {
        pid,
        cpus: (0..3).collect(),
        preferred: (0..2).collect(),
        used_cpus: 2.5,
        preferred_busy_share: 0.97,
        threads: 12,
        own_threads: 0,
        verdict: Some((Some(1.31), true)),
    };
    let state = after(State::new(100, 24), [checked(&window(0, Some(0.2)))]);
    assert!(!screen_of(&state, 100, 24).contains("steered"));
    let state = after(state, [Event::Steered(vec![steered])]);
    let picture = screen_of(&state, 100, 24);
    assert!(picture.contains("steered: CPUs 0-2 (prefers 0-1), 2.5 used, its own 97"), "{picture}");
    let state = after(state, [Event::Steered(Vec::new())]);
    assert!(!screen_of(&state, 100, 24).contains("steered"));
}

/// Keys that type a filter.
fn typed(state: State, text: &str) -> State {
    let keys = text.chars().map(|c| Event::Key(Key::Typed(c)));
    after(after(state, [Event::Key(Key::Filter)]), keys)
}

#[test]
fn a_filter_leaves_the_databases_that_it_fits() {
    let state = after(State::new(80, 24), [checked(&window(0, Some(0.1)))]);
    assert!(screen(&state).contains("PostgreSQL") && screen(&state).contains("Redis"));
    let state = typed(state, "rediz");
    assert!(state.is_typing() && screen(&state).contains("filter: rediz_"), "{}", screen(&state));
    let state = keys(state, &[Key::Erase, Key::Typed('s'), Key::Open]);
    let text = screen(&state);
    assert!(!state.is_typing() && !text.contains("PostgreSQL") && text.contains("Redis"), "{text}");
    assert!(text.contains("1 hidden"), "{text}");
    let state = keys(state, &[Key::Back]);
    assert!(!state.is_over() && screen(&state).contains("PostgreSQL"));
}

#[test]
fn idle_databases_are_hidden_on_demand() {
    let mut check = window(0, Some(0.1));
    let idle = &mut check.databases[0];
    idle.findings.clear();
    (idle.tax, idle.database_tax) = (None, None);
    let why = "idle: all its threads together were active for 0.1 s".to_owned();
    idle.unmeasured = vec![untax_core::Unmeasured::new("disk-slow", why)];
    let state = keys(after(State::new(80, 24), [checked(&check)]), &[Key::Idle]);
    assert!(screen(&state).contains("1 hidden"), "{}", screen(&state));
    assert!(!screen(&keys(state, &[Key::Idle])).contains("hidden"));
}

#[test]
fn databases_are_there_before_the_first_window_is_over() {
    let mut check = window(0, None);
    for db in &mut check.databases {
        db.findings.clear();
        (db.tax, db.database_tax) = (None, None);
        db.time.active_s = Reading::Absent("the first window is not over yet".to_owned());
    }
    let state = after(State::new(80, 24), [Event::Opened(Box::new(check)), Event::Waiting(7)]);
    let text = screen(&state);
    assert!(text.contains("PostgreSQL") && text.contains("First window: 7 s left."), "{text}");
    assert!(!text.contains("no cause found"), "{text}");
    let text = screen(&after(state, [checked(&window(1, Some(0.1)))]));
    assert_eq!(text.matches("PostgreSQL").count(), 1, "{text}");
}

#[test]
fn a_text_is_shown_until_somebody_goes_back() {
    let state = after(State::new(80, 24), [checked(&window(0, Some(0.1)))]);
    let state = after(state, [Event::Text("small-pages\n  what it is".to_owned())]);
    assert!(screen(&state).contains("  what it is"), "{}", screen(&state));
    // The next window does not take it away.
    let state = after(state, [checked(&window(1, Some(0.1)))]);
    assert!(screen(&state).contains("  what it is"), "{}", screen(&state));
    assert!(screen(&keys(state, &[Key::Back])).contains("PostgreSQL"));
}
