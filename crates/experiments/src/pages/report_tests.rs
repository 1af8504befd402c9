//! The screen and the page of a bench, and what no name can do to them.

use super::example;
use super::schema::PagesBench;
use super::{html, terminal};
use unicode_width::UnicodeWidthStr;
use untax_report::terminal::Style;

const PLAIN: Style = Style { colour: false, width: 80 };

fn page(bench: &PagesBench) -> String {
    html::part(bench).page()
}

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

#[test]
fn a_screen_has_both_tables() {
    let screen = terminal::screen(&example::small(), PLAIN);
    for line in screen.lines() {
        assert!(!line.contains(char::is_control) && line.width() <= PLAIN.width, "{line:?}");
    }
    insta::assert_snapshot!(screen);
}

#[test]
fn a_screen_without_trials_says_so() {
    let mut bench = example::bench();
    bench.complete = false;
    bench.cells.clear();
    bench.ratios.clear();
    bench.noise.ratios.clear();
    insta::assert_snapshot!(terminal::screen(&bench, PLAIN));
}

#[test]
fn a_page_is_self_contained() {
    let page = page(&example::small());
    assert!(page.contains("default-src 'none'"));
    for reference in ["src=", "href=", "url(", "@import", "http:", "https:"] {
        assert!(!page.contains(reference), "{reference}");
    }
    insta::assert_snapshot!(body(&page));
}

#[test]
fn hostile_names_stay_text_and_the_record_reads_back() {
    let bench = example::hostile();
    let page = page(&bench);
    assert!(!page.contains(|c: char| c.is_control() && c != '\n'));
    assert!(!page.contains("<script") && !page.contains("</script"));
    assert!(!page.contains('\u{202e}'));
    let plain = serde_json::to_string(&bench).unwrap();
    let read = |json: &str| serde_json::from_str::<PagesBench>(json).unwrap();
    assert_eq!(read(&record(&page)), read(&plain));
}

#[test]
fn figures_survive_values_that_are_not_numbers() {
    let mut bench = example::bench();
    for cell in &mut bench.cells {
        cell.reads_per_s.high = f64::NAN;
        cell.reads_per_s.median = f64::INFINITY;
    }
    for ratio in &mut bench.ratios {
        ratio.low = f64::NAN;
    }
    let page = body(&page(&bench));
    assert!(!page.contains("=\"NaN\"") && !page.contains("=\"inf\""));
}

#[test]
fn a_single_cell_makes_a_figure() {
    let mut bench = example::bench();
    bench.cells.truncate(1);
    bench.ratios.clear();
    let page = body(&page(&bench));
    assert_eq!(page.matches("<figure").count(), 1);
    assert!(!page.contains("Times as fast"));
}
