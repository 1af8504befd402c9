//! Figures as inline SVG. Colours come from the page's style sheet by class, so that one file
//! suits light, dark and paper.

use crate::format;
use maud::{Markup, html};
use untax_core::Tax;
use untax_core::bench::Estimate;
use untax_core::io::Bucket;

/// A bar with its interval, for a share of `scale`; as wide as its place on the page.
pub fn bar(tax: &Tax, scale: f64, class: &str) -> Markup {
    let estimate = Estimate { median: tax.share, low: tax.low, high: tax.high };
    interval_bar(estimate, scale, class, &format::tax(tax))
}

/// A bar with its interval, for any value of which `scale` is the most; `said` is its text for those who
/// do not see it.
pub fn interval_bar(value: Estimate, scale: f64, class: &str, said: &str) -> Markup {
    let at = |value: f64| format!("{:.2}%", (value / scale).clamp(0.0, 1.0) * 100.0);
    let (low, high) = (at(value.low), at(value.high));
    html! {
        svg.bar width="100%" height="24" role="img" aria-label=(said) {
            rect.track width="100%" height="14" y="5" rx="2" {}
            rect class={ "fill " (class) } width=(at(value.median)) height="14" y="5" rx="2" {}
            line.whisker x1=(low) x2=(high) y1="12" y2="12" {}
            line.whisker x1=(low) x2=(low) y1="8" y2="16" {}
            line.whisker x1=(high) x2=(high) y1="8" y2="16" {}
        }
    }
}

/// Colours that a stacked bar has.
const COLOURS: usize = 8;

/// Shares of one whole as a bar with a legend; nothing where there are none.
pub fn stacked(title: &str, shares: &[(String, f64)]) -> Markup {
    let percent = |share: f64| format!("{:.2}%", share.clamp(0.0, 1.0) * 100.0);
    let mut from = 0.0;
    let placed = shares.iter().enumerate().map(|(n, (name, share))| {
        let at = from;
        from += share;
        (n % COLOURS, name, *share, at)
    });
    let placed: Vec<_> = placed.collect();
    let said =
        placed.iter().map(|(_, name, share, _)| format!("{} {name}", format::percent(*share)));
    let said = format!("{title}: {}", said.collect::<Vec<_>>().join(", "));
    html! {
        @if !placed.is_empty() {
            figure.whole {
                figcaption { (title) }
                svg width="100%" height="18" role="img" aria-label=(said) {
                    rect.track width="100%" height="18" rx="2" {}
                    @for (n, _, share, at) in &placed {
                        rect class={ "part p" (n) } x=(percent(*at)) width=(percent(*share)) height="18" {}
                    }
                }
                p.legend aria-hidden="true" {
                    @for (n, name, share, _) in &placed {
                        span { i class={ "p" (n) } {} (format::percent(*share)) " " (name) } " "
                    }
                }
            }
        }
    }
}

/// A column of a strip.
pub struct Column {
    /// Its part of the width, in any unit.
    pub wide: f64,
    /// Its parts from the bottom up.
    pub parts: Vec<f64>,
}

/// Columns of stacked parts side by side, in the colours of [`stacked`]; nothing for fewer than two.
pub fn strip(title: &str, columns: &[Column]) -> Markup {
    const HIGH: f64 = 48.0;
    let sum = |column: &Column| column.parts.iter().sum::<f64>();
    let most = columns.iter().map(sum).fold(0.0, f64::max);
    let width: f64 = columns.iter().map(|column| column.wide).sum();
    if columns.len() < 2 || most <= 0.0 || width <= 0.0 {
        return html! {};
    }
    let said = format!("{title}: from 0 to {}", format::number(most));
    let percent = |part: f64| format!("{:.2}%", part * 100.0);
    let mut from = 0.0;
    let placed = columns.iter().map(|column| {
        let left = from;
        from += column.wide;
        (left, column)
    });
    let placed: Vec<(f64, &Column)> = placed.collect();
    html! {
        figure.whole {
            figcaption { (said) }
            svg width="100%" height=(HIGH) role="img" aria-label=(said) {
                rect.track width="100%" height=(HIGH) {}
                @for (left, column) in placed {
                    g {
                        title { (format::number(sum(column))) }
                        @for (n, top, part) in tops(&column.parts) {
                            rect class={ "part p" (n % COLOURS) } x=(percent(left / width))
                                width=(percent(column.wide / width))
                                y=(self::n(HIGH * (1.0 - top / most))) height=(self::n(HIGH * part / most)) {}
                        }
                    }
                }
            }
        }
    }
}

/// Each part that is there, with its place and its upper end.
fn tops(parts: &[f64]) -> Vec<(usize, f64, f64)> {
    let mut top = 0.0;
    let placed = parts.iter().enumerate().map(|(n, part)| {
        top += part;
        (n, top, *part)
    });
    placed.filter(|(_, _, part)| *part > 0.0).collect()
}

/// The least and the most of some histograms: pictures on one axis can be compared.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Range {
    least: f64,
    most: f64,
}

impl Range {
    /// Of all that counted something.
    pub fn of<'a>(buckets: impl Iterator<Item = &'a Bucket>) -> Self {
        let counted = buckets.filter(|bucket| bucket.count > 0);
        let none = Self { least: f64::INFINITY, most: 0.0 };
        counted.fold(none, |range, bucket| Self {
            least: range.least.min(least_of(bucket)),
            most: range.most.max(bucket.to),
        })
    }

    /// Where a value lies between both (0..1), by its logarithm.
    fn at(self, value: f64) -> f64 {
        let part = (value / self.least).log2() / (self.most / self.least).log2();
        if part.is_finite() { part.clamp(0.0, 1.0) } else { 0.0 }
    }
}

/// Buckets double, or less; the first one may begin at nothing.
fn least_of(bucket: &Bucket) -> f64 {
    bucket.from.max(bucket.to / 2.0)
}

/// A histogram as a row of bars, the highest as high as there is room.
pub fn histogram(
    buckets: &[Bucket],
    range: Range,
    label: &str,
    write: impl Fn(f64) -> String,
) -> Markup {
    const WIDE: f64 = 120.0;
    const HIGH: f64 = 26.0;
    let most = buckets.iter().map(|bucket| bucket.count).max().unwrap_or(0).max(1) as f64;
    html! {
        svg.histogram viewBox={ "0 0 " (WIDE) " " (HIGH) } width=(WIDE) height=(HIGH) role="img"
            aria-label=(label) {
            @for bucket in buckets.iter().filter(|bucket| bucket.count > 0) {
                // What is there at all is seen.
                @let high = (bucket.count as f64 / most * HIGH).max(1.0);
                @let [from, to] = [least_of(bucket), bucket.to].map(|value| range.at(value) * WIDE);
                rect x=(n(from)) y=(n(HIGH - high)) width=(n((to - from - 0.6).max(0.6)))
                    height=(n(high)) {
                    title { (write(bucket.from)) "–" (write(bucket.to)) ": " (bucket.count) }
                }
            }
            line.base x1="0" x2=(WIDE) y1=(HIGH) y2=(HIGH) {}
        }
    }
}

/// Seconds in a row as bars, the highest as high as there is room.
pub fn each_second(values: &[f64], label: &str, write: impl Fn(f64) -> String) -> Markup {
    const WIDE: f64 = 120.0;
    const HIGH: f64 = 26.0;
    let most = values.iter().copied().fold(0.0, f64::max).max(f64::MIN_POSITIVE);
    let each = WIDE / values.len().max(1) as f64;
    html! {
        svg.histogram viewBox={ "0 0 " (WIDE) " " (HIGH) } width=(WIDE) height=(HIGH) role="img"
            aria-label=(label) {
            @for (at, value) in values.iter().enumerate().filter(|(_, value)| **value > 0.0) {
                @let high = (value / most * HIGH).max(1.0);
                rect x=(n(at as f64 * each)) y=(n(HIGH - high)) width=(n((each - 0.6).max(0.3)))
                    height=(n(high)) { title { (write(*value)) } }
            }
            line.base x1="0" x2=(WIDE) y1=(HIGH) y2=(HIGH) {}
        }
    }
}

/// The axis below a group of bars.
pub fn bar_axis(scale: f64) -> Markup {
    let label = |share: f64| format!("{}{}%", format::number(share * 100.0), format::THIN);
    html! {
        svg.axis width="100%" height="18" aria-hidden="true" {
            text x="0" y="13" { (label(0.0)) }
            text.mid x="50%" y="13" { (label(scale / 2.0)) }
            text.end x="100%" y="13" { (label(scale)) }
        }
    }
}

/// One point of a line, with its interval.
pub struct Point {
    /// Where it stands on the horizontal axis: a number of connections.
    pub x: u32,
    /// Its value.
    pub mid: f64,
    /// The lower bound of its interval.
    pub low: f64,
    /// The upper bound.
    pub high: f64,
    /// Drawn hollow: nothing may be concluded from it.
    pub hollow: bool,
}

impl Point {
    /// Whether it can be drawn at all.
    pub fn is_finite(&self) -> bool {
        [self.mid, self.low, self.high].iter().all(|v| v.is_finite())
    }
}

/// One line of a panel.
pub struct Line {
    /// Chooses colour and marker.
    pub kind: usize,
    /// The name beside its last point.
    pub label: String,
    /// Its points from left to right.
    pub points: Vec<Point>,
}

/// One panel: lines over the number of connections.
pub struct Panel {
    /// What stands above it.
    pub title: String,
    /// What is drawn.
    pub lines: Vec<Line>,
    /// The range of the vertical axis.
    pub range: (f64, f64),
    /// A band around 1 in which nothing may be concluded.
    pub band: Option<(f64, f64)>,
    /// How values are written.
    pub write: fn(f64) -> String,
}

const WIDTH: f64 = 420.0;
const HEIGHT: f64 = 270.0;
const LEFT: f64 = 48.0;
const RIGHT: f64 = WIDTH - 58.0;
const TOP: f64 = 14.0;
const BOTTOM: f64 = HEIGHT - 42.0;

/// Where data lands on the panel.
struct Frame {
    columns: Vec<u32>,
    range: (f64, f64),
}

impl Frame {
    /// Connections double from step to step in a sweep, so columns are spaced by logarithm.
    fn x(&self, connections: u32) -> f64 {
        let log = |c: u32| f64::from(c.max(1)).log2();
        let first = self.columns.first().map_or(0.0, |c| log(*c));
        let last = self.columns.last().map_or(0.0, |c| log(*c));
        let share = if last > first { (log(connections) - first) / (last - first) } else { 0.5 };
        // Room at both ends keeps whiskers off the axes.
        LEFT + 14.0 + share * (RIGHT - LEFT - 28.0)
    }

    fn y(&self, value: f64) -> f64 {
        let (low, high) = self.range;
        let share = ((value - low) / (high - low)).clamp(0.0, 1.0);
        BOTTOM - share * (BOTTOM - TOP)
    }
}

/// Draws a panel.
pub fn panel(panel: &Panel) -> Markup {
    let mut columns: Vec<u32> =
        panel.lines.iter().flat_map(|l| l.points.iter().map(|p| p.x)).collect();
    columns.sort_unstable();
    columns.dedup();
    let frame = Frame { columns, range: panel.range };
    html! {
        figure.panel {
            figcaption { (panel.title) }
            svg viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } role="img" aria-label=(panel.title) {
                (axes(panel, &frame))
                @for (i, line) in panel.lines.iter().enumerate() {
                    (series(line, &frame, dodge(i, panel.lines.len()), panel.write))
                }
                (end_labels(panel, &frame))
            }
        }
    }
}

/// Moves lines apart by a few pixels so that their whiskers do not hide each other.
fn dodge(index: usize, lines: usize) -> f64 {
    (index as f64 - (lines as f64 - 1.0) / 2.0) * 4.0
}

fn n(value: f64) -> String {
    format!("{value:.1}")
}

fn axes(panel: &Panel, frame: &Frame) -> Markup {
    html! {
        @if let Some((low, high)) = panel.band {
            @let (top, bottom) = (frame.y(high), frame.y(low));
            rect.band x=(n(LEFT)) y=(n(top)) width=(n(RIGHT - LEFT)) height=(n(bottom - top)) {}
        }
        @for tick in ticks(panel.range) {
            line.grid x1=(n(LEFT)) x2=(n(RIGHT)) y1=(n(frame.y(tick))) y2=(n(frame.y(tick))) {}
            text.end x=(n(LEFT - 7.0)) y=(n(frame.y(tick) + 4.0)) { ((panel.write)(tick)) }
        }
        @if panel.band.is_some() {
            line.unity x1=(n(LEFT)) x2=(n(RIGHT)) y1=(n(frame.y(1.0))) y2=(n(frame.y(1.0))) {}
        }
        line.base x1=(n(LEFT)) x2=(n(RIGHT)) y1=(n(BOTTOM)) y2=(n(BOTTOM)) {}
        @for column in spaced(frame) {
            text.mid x=(n(frame.x(column))) y=(n(BOTTOM + 17.0)) { (column) }
        }
        text.mid x=(n(f64::midpoint(LEFT, RIGHT))) y=(n(BOTTOM + 35.0)) { "connections" }
    }
}

/// The columns that have room for a label.
fn spaced(frame: &Frame) -> Vec<u32> {
    let mut shown: Vec<u32> = Vec::new();
    for column in &frame.columns {
        if shown.last().is_none_or(|last| frame.x(*column) - frame.x(*last) >= 24.0) {
            shown.push(*column);
        }
    }
    shown
}

fn series(line: &Line, frame: &Frame, shift: f64, write: fn(f64) -> String) -> Markup {
    let place = |p: &Point| (frame.x(p.x) + shift, frame.y(p.mid));
    let path: Vec<String> =
        line.points.iter().map(place).map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    html! {
        g class={ "series s" (line.kind) } {
            polyline points=(path.join(" ")) {}
            @for point in &line.points {
                @let (x, y) = place(point);
                g class=[point.hollow.then_some("hollow")] {
                    title {
                        (line.label) ", " (format::count_of(point.x.into(), "connection")) ": "
                        (write(point.mid)) " (" (write(point.low)) "–" (write(point.high)) ")"
                    }
                    line x1=(n(x)) x2=(n(x)) y1=(n(frame.y(point.low))) y2=(n(frame.y(point.high))) {}
                    @for end in [point.low, point.high] {
                        line x1=(n(x - 3.0)) x2=(n(x + 3.0)) y1=(n(frame.y(end))) y2=(n(frame.y(end))) {}
                    }
                    path.mark d=(marker(line.kind, x, y)) {}
                }
            }
        }
    }
}

/// A marker of its own for each kind of line, so that figures survive a grey printer.
fn marker(kind: usize, x: f64, y: f64) -> String {
    match kind {
        0 => format!("M{:.1} {y:.1}a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z", x - 4.0),
        1 => format!("M{:.1} {:.1}h7v7h-7z", x - 3.5, y - 3.5),
        2 => format!("M{x:.1} {:.1}l4.5 8h-9z", y - 5.0),
        _ => format!("M{x:.1} {:.1}l5 5l-5 5l-5 -5z", y - 5.0),
    }
}

/// Each line's name at its right end, pushed apart where ends meet.
fn end_labels(panel: &Panel, frame: &Frame) -> Markup {
    let mut ends: Vec<(f64, &Line)> =
        panel.lines.iter().filter_map(|l| Some((frame.y(l.points.last()?.mid), l))).collect();
    ends.sort_by(|a, b| a.0.total_cmp(&b.0));
    spread(&mut ends, TOP, BOTTOM);
    html! {
        @for (y, line) in ends {
            text class={ "name s" (line.kind) } x=(n(RIGHT + 6.0)) y=(n(y + 4.0)) { (line.label) }
        }
    }
}

/// Keeps neighbours at least a text line apart and all of them within the frame.
fn spread<T>(ends: &mut [(f64, T)], top: f64, bottom: f64) {
    const APART: f64 = 15.0;
    let mut floor = top;
    for end in ends.iter_mut() {
        end.0 = end.0.max(floor);
        floor = end.0 + APART;
    }
    let mut ceiling = bottom;
    for end in ends.iter_mut().rev() {
        end.0 = end.0.min(ceiling);
        ceiling = end.0 - APART;
    }
}

/// Round values inside a range, about five of them.
pub(crate) fn ticks((low, high): (f64, f64)) -> Vec<f64> {
    let Some(step) = step(high - low) else { return Vec::new() };
    let first = (low / step).ceil() as i64;
    let last = (high / step + 1e-9).floor() as i64;
    (first..=last).map(|i| i as f64 * step).collect()
}

/// A step of 1, 2 or 5 times a power of ten that divides a span into four to eight.
fn step(span: f64) -> Option<f64> {
    if !span.is_finite() || span <= 0.0 {
        return None;
    }
    let power = 10_f64.powf((span / 5.0).log10().floor());
    [1.0, 2.0, 5.0, 10.0].into_iter().map(|m| m * power).find(|step| span / step <= 6.0)
}

/// The range from zero to a round value above `highest`.
pub fn from_zero(highest: f64) -> (f64, f64) {
    match step(highest) {
        Some(step) => (0.0, (highest / step).ceil() * step),
        None => (0.0, 1.0),
    }
}

/// A range of round values around all that is given; `None` without finite values.
pub fn around(values: impl Iterator<Item = f64> + Clone) -> Option<(f64, f64)> {
    let finite = values.filter(|v| v.is_finite());
    let (low, high) =
        (finite.clone().fold(f64::INFINITY, f64::min), finite.fold(f64::NEG_INFINITY, f64::max));
    let step = step(high - low)?;
    Some(((low / step).floor() * step, (high / step).ceil() * step))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_inside() {
        assert_eq!(ticks((0.0, 5.0)), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!(ticks((0.0, 0.0)), [0.0; 0]);
        assert_eq!(ticks((f64::NAN, 1.0)), [0.0; 0]);
        assert_eq!(from_zero(4.41e6), (0.0, 5e6));
        assert_eq!(from_zero(0.0), (0.0, 1.0));
        let (low, high) = around([0.97, 1.52].into_iter()).unwrap();
        assert!(low <= 0.97 && high >= 1.52 && high - low < 0.8, "{low} {high}");
        assert_eq!(around(std::iter::empty()), None);
    }

    #[test]
    fn bars_of_several_histograms_are_on_one_axis() {
        let bucket = |from: f64| Bucket { from, to: from * 2.0, count: 5 };
        let [small, large] = [[bucket(512.0)], [bucket(524_288.0)]];
        let range = Range::of(small.iter().chain(&large));
        let x = |buckets: &[Bucket]| {
            let svg = histogram(buckets, range, "sizes", format::number).into_string();
            svg.split("rect x=\"").nth(1).unwrap().split('"').next().unwrap().to_owned()
        };
        assert_eq!((x(&small).as_str(), x(&large).as_str()), ("0.0", "109.1"));
        let first = Bucket { from: 0.0, ..bucket(1.0) };
        assert!(Range::of([first].iter()).at(1.5).is_finite());
        assert!(Range::of([].iter()).at(1.0).abs() < 1e-9, "of nothing");
    }

    #[test]
    fn names_at_line_ends_never_overlap() {
        let mut ends = [(100.0, ()), (101.0, ()), (102.0, ()), (228.0, ())];
        spread(&mut ends, 14.0, 228.0);
        assert!(ends.windows(2).all(|w| w[1].0 - w[0].0 >= 15.0), "{ends:?}");
        assert!(ends.iter().all(|e| (14.0..=228.0).contains(&e.0)), "{ends:?}");
    }
}
