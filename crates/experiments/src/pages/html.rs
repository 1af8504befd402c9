//! The page of `untax bench pages`.

use super::schema::{Cell, PagesBench};
use super::summary;
use maud::{Markup, html};
use untax_core::Bytes;
use untax_core::bench::RatioVerdict;
use untax_report::facts;
use untax_report::format::{self, page};
use untax_report::html::part::{Part, head, line, moment, penalties};
use untax_report::svg::{self, Line, Panel, Point};

/// What the page says.
pub(super) fn part(bench: &PagesBench) -> Part {
    let title = summary::headline(bench);
    let conditions = [
        moment(&bench.taken_at.to_string()),
        facts::short_model(&bench.cpu_model),
        format!("kernel {}", bench.kernel_release),
    ];
    let body = html! {
        (head("untax bench pages", &title, &conditions))
        (line(&summary::conditions(bench)))
        @if !bench.idle.is_empty() { (line(&[format!("idle CPUs: {}", bench.idle)])) }
        ul.lede { @for summary in summary::page_sizes(bench) { li { (summary) } } }
        @if !bench.complete { p.warning { "Interrupted: the trials done so far are shown." } }
        @for warning in &bench.warnings { p.warning { (warning.text) } }
        (throughput(bench))
        (worth(bench))
        (numbers(bench))
        @if let Some(calibration) = &bench.calibration { (penalties(calibration)) }
        (method(bench))
        footer { p { "Run " code { (bench.run) } ". Noise floor: " (summary::noise(bench)) "." } }
    };
    Part::new(title, body, bench)
}

/// Row widths in order of appearance.
fn row_widths(bench: &PagesBench) -> Vec<Bytes> {
    let mut widths: Vec<Bytes> = Vec::new();
    for cell in &bench.cells {
        if !widths.contains(&cell.row_bytes) {
            widths.push(cell.row_bytes);
        }
    }
    widths
}

/// The colour and marker of a page size: the same in every figure.
fn kind(token: &str) -> usize {
    ["4k", "2m", "1g", "thp"].iter().position(|known| *known == token).unwrap_or(4)
}

/// Lines by page size, in order of appearance, each from left to right.
fn lines(points: impl Iterator<Item = (String, Point)>) -> Vec<Line> {
    let mut lines: Vec<(String, Line)> = Vec::new();
    for (token, point) in points.filter(|(_, point)| point.is_finite()) {
        if let Some((_, line)) = lines.iter_mut().find(|(known, _)| *known == token) {
            line.points.push(point);
        } else {
            let line = Line { kind: kind(&token), label: page(&token), points: vec![point] };
            lines.push((token, line));
        }
    }
    let mut lines: Vec<Line> = lines.into_iter().map(|(_, line)| line).collect();
    for line in &mut lines {
        line.points.sort_by_key(|p| p.x);
    }
    lines
}

fn throughput(bench: &PagesBench) -> Markup {
    let panels: Vec<Panel> = row_widths(bench)
        .into_iter()
        .map(|width| {
            let cells = bench.cells.iter().filter(|c| c.row_bytes == width);
            let lines = lines(cells.map(|c| {
                let e = c.reads_per_s;
                let (x, mid, low, high) = (c.connections, e.median, e.low, e.high);
                (c.page.clone(), Point { x, mid, low, high, hollow: false })
            }));
            let highest = lines.iter().flat_map(|l| &l.points).map(|p| p.high).fold(0.0, f64::max);
            let title = format!("Rows of {}", format::bytes(width));
            Panel { title, lines, range: svg::from_zero(highest), band: None, write: reads }
        })
        .collect();
    html! {
        section {
            h2 { "Reads per second" }
            div.panels { @for panel in &panels { (svg::panel(panel)) } }
            @if panels.is_empty() { p.unknown { "No trial was completed." } }
        }
    }
}

fn reads(value: f64) -> String {
    let (scale, letter) = format::magnitude(value);
    let gap = if letter.is_empty() { String::new() } else { format!("{}{letter}", format::THIN) };
    format!("{}{gap}", format::number(value / scale))
}

fn factor(value: f64) -> String {
    format!("{}×", format::number(value))
}

/// The ratios of every page size over the one that most are compared with.
fn worth(bench: &PagesBench) -> Markup {
    let floor = bench.noise.floor.max(0.0);
    let band = (1.0 / (1.0 + floor), 1.0 + floor);
    let bounds = bench.ratios.iter().flat_map(|r| [r.low, r.high]);
    let Some(range) = svg::around(bounds.chain([band.0, band.1, 0.95, 1.05])) else {
        return html! {};
    };
    let Some(over) = bench.ratios.first().map(|r| r.over.as_str()) else { return html! {} };
    let panels = row_widths(bench).into_iter().map(|width| {
        let ratios = bench.ratios.iter().filter(|r| r.row_bytes == width && r.over == over);
        let lines = lines(ratios.map(|r| {
            let hollow = r.verdict == RatioVerdict::Inconclusive;
            let point = Point { x: r.connections, mid: r.factor, low: r.low, high: r.high, hollow };
            (r.of.clone(), point)
        }));
        let title = format!("Rows of {}", format::bytes(width));
        Panel { title, lines, range, band: Some(band), write: factor }
    });
    html! {
        section {
            h2 { "Times as fast as " (page(over)) " pages" }
            div.panels { @for panel in panels { (svg::panel(&panel)) } }
            p.quiet {
                "Whiskers are 95 % intervals of paired trials. The band is the noise "
                "floor (" (summary::noise(bench)) "); hollow points touch it and prove nothing."
            }
        }
    }
}

fn numbers(bench: &PagesBench) -> Markup {
    html! {
        section {
            h2 { "The numbers" }
            div.scroll { (cells(bench)) }
            @if !bench.ratios.is_empty() { div.scroll { (ratios(bench)) } }
        }
    }
}

fn cells(bench: &PagesBench) -> Markup {
    html! {
        table {
            thead {
                tr {
                    th.number { "Row" } th { "Page" } th.number { "Connections" }
                    th.number { "Reads/s (95 %)" } th.number { "Table" } th.number { "Page tables" }
                    th.number { "Trials" }
                }
            }
            tbody {
                @for c in &bench.cells {
                    tr {
                        td.number { (format::bytes(c.row_bytes)) }
                        td { (page(&c.page)) }
                        td.number { (c.connections) }
                        td.number { (format::estimate(c.reads_per_s)) }
                        td.number { (table_size(c)) }
                        td.number { (format::bytes(c.page_table_bytes)) }
                        td.number { (c.trials.len()) }
                    }
                }
            }
        }
    }
}

/// The memory of a cell's table; results of older versions do not have it.
fn table_size(cell: &Cell) -> String {
    if cell.table_bytes > Bytes(0) { format::bytes(cell.table_bytes) } else { "not known".into() }
}

fn ratios(bench: &PagesBench) -> Markup {
    html! {
        table {
            thead {
                tr {
                    th.number { "Row" } th { "Pages" } th.number { "Connections" }
                    th.number { "Factor (95 %)" } th { "Verdict" }
                }
            }
            tbody {
                @for r in &bench.ratios {
                    @let verdict = r.verdict.id();
                    tr class=(verdict) {
                        td.number { (format::bytes(r.row_bytes)) }
                        td { (page(&r.of)) " over " (page(&r.over)) }
                        td.number { (r.connections) }
                        td.number { (format::ratio(r.factor, r.low, r.high)) }
                        td.verdict { (verdict) }
                    }
                }
            }
        }
    }
}

fn method(bench: &PagesBench) -> Markup {
    html! {
        @if !bench.method.is_empty() {
            section {
                h2 { "How it was measured" }
                ul { @for sentence in &bench.method { li { (sentence) } } }
                p.quiet { "Seed " (bench.seed) ": the same seed gives the same order and keys." }
            }
        }
    }
}
