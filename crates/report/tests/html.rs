//! The pages: what they say, that they need nothing else, and that they are a complete record.

#![allow(clippy::panic, clippy::unwrap_used, reason = "a test may fail")]

mod common;

use serde::{Serialize, de::DeserializeOwned};
use untax_core::check::Check;
use untax_core::power::Power;
use untax_core::verdict::{self, About, Trial, Verification};
use untax_report::html::{Run, check, report, verification};

/// The page without its style sheet and its record, a tag a line.
fn body(page: &str) -> String {
    let start = page.find("<main>").unwrap();
    let end = page.find("<details class=\"record\">").unwrap();
    page[start..end].replace("><", ">\n<")
}

/// The record as a browser would read it.
fn record(page: &str) -> String {
    let (_, rest) = page.split_once("<pre id=\"record\">").unwrap();
    let (json, _) = rest.split_once("</pre>").unwrap();
    json.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&")
}

fn assert_harmless(page: &str) {
    assert!(!page.contains(|c: char| c.is_control() && c != '\n'));
    assert!(!page.contains("<script") && !page.contains("</script"));
    assert!(!page.contains('\u{202e}'));
}

fn assert_self_contained(page: &str) {
    assert!(page.contains("default-src 'none'"));
    for reference in ["src=", "href=", "url(", "@import", "http:", "https:"] {
        assert!(!page.contains(reference), "{reference}");
    }
}

#[test]
fn two_databases() {
    let page = check(&common::rich());
    assert_self_contained(&page);
    insta::assert_snapshot!(body(&page));
}

#[test]
fn active_threads_are_drawn_over_the_window_where_they_were_traced() {
    let mut rich = common::rich();
    let title = "Active threads over the window: from 0 to 3.25";
    assert!(check(&rich).contains(title));
    for database in &mut rich.databases {
        database.time_pieces.clear();
        database.time.active_s = untax_core::Reading::Present(untax_core::Seconds(0.0));
    }
    let page = check(&rich);
    assert!(!page.contains("over the window: from"));
    assert!(
        page.contains("<dt>Active</dt><dd>idle: no thread that serves clients was active</dd>")
    );
}

#[test]
fn no_database() {
    insta::assert_snapshot!(body(&check(&common::empty())));
}

fn verified() -> Verification {
    let rates = [(0, false, 100.0), (0, true, 130.0), (1, true, 128.0), (1, false, 101.0)];
    let trials: Vec<Trial> =
        rates.map(|(pair, applied, rate)| Trial::new(pair, applied, rate)).to_vec();
    Verification {
        schema: verdict::SCHEMA.to_owned(),
        run: "verify-1".to_owned(),
        plan: "plan-<1>".to_owned(),
        taken_at: jiff::Timestamp::UNIX_EPOCH,
        about: Some(About {
            host: "db-7".to_owned(),
            databases: vec!["postgres:4012".to_owned()],
            steps: vec!["pool of 2 MiB pages on node 0: 0 -> 540".to_owned()],
            load: "pgbench -S <b>".to_owned(),
        }),
        measure: "transactions per second".to_owned(),
        verdict: verdict::judge(&trials).unwrap(),
        trials,
        predicted: None,
        power: Some(Power { factor: 1.1, found: 0.83, pairs: 15 }),
        receipt: Some("receipt-1".to_owned()),
        seed: None,
        affinity: None,
    }
}

#[test]
fn a_verification_shows_every_trial() {
    let page = verification(&verified());
    assert_self_contained(&page);
    insta::assert_snapshot!(body(&page));
}

#[test]
fn a_report_holds_its_results_in_order_and_their_records() {
    let page = report(vec![Run::Verification(verified()), Run::Check(Box::new(common::rich()))]);
    assert_self_contained(&page);
    assert_harmless(&page);
    let at = |text: &str| page.find(text).unwrap_or_else(|| panic!("no {text}"));
    assert!(at("untax verify") < at("untax check"));
    let records: Vec<serde_json::Value> = serde_json::from_str(&record(&page)).unwrap();
    assert_eq!(records[0], serde_json::to_value(verified()).unwrap());
    assert_eq!(records[1]["schema"], untax_core::check::SCHEMA);
    assert_eq!(
        report(vec![Run::Verification(verified())]),
        verification(&verified()),
        "one result is its own page"
    );
}

#[test]
fn disks_show_their_pattern() {
    let page = check(&common::with_disk());
    assert_self_contained(&page);
    assert_harmless(&page);
    assert!(page.contains("log write") && page.contains("98\u{202f}%"), "{}", body(&page));
    // One bar of sizes; two of times, with a gap between them.
    assert_eq!(page.matches("<svg class=\"histogram\"").count(), 2);
    assert_eq!(page.matches("<rect x=\"").count(), 3);
    same(&record(&page), &common::with_disk());
}

#[test]
fn hostile_names_stay_text() {
    assert_harmless(&check(&common::hostile()));
}

#[test]
fn the_record_reads_back_as_the_same_result() {
    for result in [common::rich(), common::hostile(), common::empty()] {
        assert!(same::<Check>(&record(&check(&result)), &result));
    }
}

/// Whether a record reads as JSON of the value itself does.
fn same<T: Serialize + DeserializeOwned + PartialEq>(record: &str, value: &T) -> bool {
    let plain = serde_json::to_string(value).unwrap();
    serde_json::from_str::<T>(record).unwrap() == serde_json::from_str::<T>(&plain).unwrap()
}
