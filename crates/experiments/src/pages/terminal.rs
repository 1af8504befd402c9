//! The screen of `untax bench pages`.

use super::schema::{Cell, PagesBench, Ratio};
use super::summary;
use crate::text_table::{Table, column};
use untax_core::bench::RatioVerdict;
use untax_report::terminal::Style;
use untax_report::terminal::screen::{Ink, Screen, span};
use untax_report::{facts, format};

/// The widest that a column gets.
const WIDEST: usize = 28;

/// The result of a page-size bench as two tables.
pub(super) fn screen(bench: &PagesBench, style: Style) -> String {
    let mut screen = Screen::new(style);
    screen.line(&[span(Ink::Bold, format!("{}.", summary::headline(bench)))]);
    for line in summary::page_sizes(bench) {
        screen.labelled("", 2, Ink::Plain, &line, 2);
    }
    if !bench.complete {
        let note = "Interrupted: the trials done so far are shown.";
        screen.labelled("", 2, Ink::Yellow, note, 1);
    }
    screen.blank();
    cells(&mut screen, &bench.cells);
    ratios(&mut screen, &bench.ratios);
    closing(&mut screen, bench);
    screen.finish()
}

fn cells(screen: &mut Screen, cells: &[Cell]) {
    if cells.is_empty() {
        screen.line(&[span(Ink::Yellow, "  No trial was completed.")]);
        return screen.blank();
    }
    let columns = [
        column("page", false, cells.iter().map(|c| c.page.clone())),
        column("row", true, cells.iter().map(|c| format::bytes(c.row_bytes))),
        column("connections", true, cells.iter().map(|c| format::count(c.connections.into()))),
        column("reads/s (95 %)", true, cells.iter().map(|c| format::estimate(c.reads_per_s))),
        column("page tables", true, cells.iter().map(|c| format::bytes(c.page_table_bytes))),
    ];
    let group: Vec<u64> = cells.iter().map(|c| c.row_bytes.0).collect();
    let inks = vec![Ink::Plain; cells.len()];
    Table { columns: &columns, groups: &group, inks: &inks, widest: WIDEST }.draw(screen);
}

fn ratios(screen: &mut Screen, ratios: &[Ratio]) {
    if ratios.is_empty() {
        return;
    }
    let columns = [
        column("ratio", false, ratios.iter().map(|r| format!("{} over {}", r.of, r.over))),
        column("row", true, ratios.iter().map(|r| format::bytes(r.row_bytes))),
        column("connections", true, ratios.iter().map(|r| format::count(r.connections.into()))),
        column(
            "factor (95 %)",
            true,
            ratios.iter().map(|r| format::ratio(r.factor, r.low, r.high)),
        ),
        column("verdict", false, ratios.iter().map(|r| r.verdict.id().to_owned())),
    ];
    let group: Vec<u64> = ratios.iter().map(|r| r.row_bytes.0).collect();
    let inks: Vec<Ink> = ratios.iter().map(|r| verdict_ink(r.verdict)).collect();
    Table { columns: &columns, groups: &group, inks: &inks, widest: WIDEST }.draw(screen);
}

fn verdict_ink(verdict: RatioVerdict) -> Ink {
    match verdict {
        RatioVerdict::Faster => Ink::Green,
        RatioVerdict::Slower => Ink::Red,
        RatioVerdict::Inconclusive => Ink::Dim,
    }
}

fn closing(screen: &mut Screen, bench: &PagesBench) {
    const COLUMN: usize = 14;
    for (i, warning) in bench.warnings.iter().enumerate() {
        let label = if i == 0 { "Warnings" } else { "" };
        screen.labelled(label, COLUMN, Ink::Yellow, &warning.text, 3);
    }
    screen.labelled("Noise", COLUMN, Ink::Plain, &summary::noise(bench), 2);
    if let Some(calibration) = &bench.calibration {
        let costs = facts::penalties(calibration);
        let costs: Vec<_> = costs.iter().map(|(what, cost)| format!("{what}: {cost}")).collect();
        screen.segments("Costs here", COLUMN, Ink::Plain, &costs);
    }
    screen.segments("Trials", COLUMN, Ink::Plain, &summary::conditions(bench));
    // Older runs do not know.
    if !bench.idle.is_empty() {
        screen.labelled("Idle CPUs", COLUMN, Ink::Plain, &bench.idle, 2);
    }
    let host = [
        facts::short_model(&bench.cpu_model),
        format!("kernel{}{}", format::THIN, bench.kernel_release),
        format!("run {}", bench.run),
    ];
    screen.segments("Host", COLUMN, Ink::Dim, &host);
}
