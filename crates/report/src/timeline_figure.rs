//! The figure of a timeline: throughput with its changes marked, below it the time of a request part by part, and
//! the disks. One axis of time for all. A page has it twice, for wide and for narrow windows, and its style sheet shows
//! one: letters that shrink with the window could not be read on a telephone.

use crate::format;
use crate::svg::{from_zero, ticks};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use maud::{Markup, PreEscaped, html};
use untax_core::timeline::{Change, Database, Kind, Line, part_in_words};
use untax_core::{Bytes, Seconds};

/// How wide a figure is.
struct Width {
    class: &'static str,
    whole: f64,
    /// Where the plots begin, and end.
    left: f64,
    right: f64,
    /// Times that have room below the axis.
    most_times: f64,
}

const WIDE: Width =
    Width { class: "timeline wide", whole: 860.0, left: 74.0, right: 846.0, most_times: 8.0 };
const NARROW: Width =
    Width { class: "timeline narrow", whole: 368.0, left: 62.0, right: 358.0, most_times: 4.0 };

const ABOVE: f64 = 26.0;

/// Heights of the plots.
const THROUGHPUT: f64 = 190.0;
const TIME: f64 = 150.0;
const DISKS: f64 = 110.0;
const BETWEEN: f64 = 46.0;

/// Lines of disks that can be told apart.
const MOST_FLOWS: usize = 4;

/// A figure that stands in a page, whose style sheet colours it.
pub fn figure(database: &Database) -> Markup {
    html! { (drawn(database, &WIDE)) (drawn(database, &NARROW)) }
}

fn drawn(database: &Database, width: &Width) -> Markup {
    let Some(axis) = Axis::of(database, width) else { return html! {} };
    let disks = busiest(&database.series.disk_bytes_per_s);
    let has_parts = !database.series.parts.is_empty();
    let mut plots = vec![throughput(database, &axis, ABOVE)];
    let mut bottom = ABOVE + THROUGHPUT;
    if has_parts {
        plots.push(parts(database, &axis, bottom + BETWEEN));
        bottom += BETWEEN + TIME;
    }
    if !disks.is_empty() {
        plots.push(lines(&disks, &axis, bottom + BETWEEN));
        bottom += BETWEEN + DISKS;
    }
    let said = format!("Throughput of {} over time, and what it was made of", database.name);
    html! {
        svg class=(width.class) viewBox={ "0 0 " (width.whole) " " (bottom + 30.0) } role="img"
            aria-label=(said) xmlns="http://www.w3.org/2000/svg" {
            @for plot in &plots { (plot) }
            (marks(database, &axis, ABOVE - 12.0, bottom))
            (axis.labels(bottom))
        }
    }
}

/// A figure that is a file of its own.
pub fn file(database: &Database) -> String {
    let style = concat!(
        include_str!("html/style.css"),
        "\nsvg { background: var(--paper); font: 12px sans-serif; }\n"
    );
    let svg = drawn(database, &WIDE).into_string();
    let Some((head, rest)) = svg.split_once('>') else { return svg };
    let style = html! { style { (PreEscaped(style)) } }.into_string();
    let text = format!("{head} width=\"{}\">{style}{rest}\n", WIDE.whole);
    // Line breaks are the figure's own; any other control character came with somebody's name.
    text.split('\n').map(format::clean).collect::<Vec<_>>().join("\n")
}

/// The kinds of requests that moved most.
fn busiest(all: &[Line]) -> Vec<&Line> {
    let sum = |line: &Line| line.values.iter().flatten().sum::<f64>();
    let mut busiest: Vec<&Line> = all.iter().filter(|line| sum(line) > 0.0).collect();
    busiest.sort_by(|a, b| sum(b).total_cmp(&sum(a)));
    busiest.truncate(MOST_FLOWS);
    busiest
}

/// The axis of time.
struct Axis<'a> {
    width: &'a Width,
    points: &'a [f64],
    from_s: f64,
    to_s: f64,
}

impl<'a> Axis<'a> {
    /// `None` where there is no time to draw.
    fn of(database: &'a Database, width: &'a Width) -> Option<Self> {
        let at_s = &database.series.at_s[..];
        let (from_s, to_s) = (*at_s.first()?, *at_s.last()?);
        (to_s > from_s).then_some(Self { width, points: at_s, from_s, to_s })
    }

    fn x(&self, at_s: f64) -> f64 {
        let share = ((at_s - self.from_s) / (self.to_s - self.from_s)).clamp(0.0, 1.0);
        self.width.left + share * (self.width.right - self.width.left)
    }

    fn x_of(&self, at: Timestamp) -> f64 {
        self.x(at.as_millisecond() as f64 / 1e3)
    }

    fn labels(&self, bottom: f64) -> Markup {
        html! {
            @for (at_s, label) in self.ticks() {
                line.base x1=(n(self.x(at_s))) x2=(n(self.x(at_s))) y1=(n(bottom)) y2=(n(bottom + 4.0)) {}
                text.mid x=(n(self.x(at_s))) y=(n(bottom + 18.0)) { (label) }
            }
        }
    }

    /// Round times of day, UTC.
    fn ticks(&self) -> Vec<(f64, String)> {
        const STEPS_S: [f64; 14] = [
            1.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 7200.0, 14_400.0,
            43_200.0, 86_400.0,
        ];
        let span = self.to_s - self.from_s;
        let step = STEPS_S
            .into_iter()
            .find(|step| span / step <= self.width.most_times)
            .unwrap_or(span / 6.0);
        let form = match step {
            s if s < 60.0 => "%H:%M:%S",
            s if s < 43_200.0 => "%H:%M",
            _ => "%m-%d %H:%M",
        };
        let first = (self.from_s / step).ceil() as i64;
        let last = (self.to_s / step).floor() as i64;
        let label = |at_s: f64| {
            let at = Timestamp::from_millisecond((at_s * 1e3) as i64).unwrap_or_default();
            at.to_zoned(TimeZone::UTC).strftime(form).to_string()
        };
        (first..=last).map(|i| i as f64 * step).map(|at_s| (at_s, label(at_s))).collect()
    }
}

/// Where values of one plot are.
struct Plot {
    top: f64,
    bottom: f64,
    most: f64,
}

impl Plot {
    fn new(top: f64, height: f64, highest: f64) -> Self {
        Self { top, bottom: top + height, most: from_zero(highest).1 }
    }

    fn y(&self, value: f64) -> f64 {
        self.bottom - (value / self.most).clamp(0.0, 1.0) * (self.bottom - self.top)
    }

    /// The frame, with what stands above it.
    fn frame(&self, width: &Width, title: &str, write: impl Fn(f64) -> String) -> Markup {
        let (left, right) = (n(width.left), n(width.right));
        html! {
            text.title x=(left) y=(n(self.top - 8.0)) { (title) }
            @for tick in ticks((0.0, self.most)) {
                line.grid x1=(left) x2=(right) y1=(n(self.y(tick))) y2=(n(self.y(tick))) {}
                text.end x=(n(width.left - 7.0)) y=(n(self.y(tick) + 4.0)) { (write(tick)) }
            }
            line.base x1=(left) x2=(right) y1=(n(self.bottom)) y2=(n(self.bottom)) {}
        }
    }
}

fn n(value: f64) -> String {
    format!("{value:.1}")
}

fn highest<'a>(values: impl Iterator<Item = &'a Option<f64>>) -> f64 {
    values.flatten().copied().filter(|value| value.is_finite()).fold(0.0, f64::max)
}

/// Points in a row, apart where a value is not known.
fn runs(axis: &Axis, values: &[Option<f64>], y: impl Fn(f64) -> f64) -> Vec<Vec<(f64, f64)>> {
    let mut runs = vec![Vec::new()];
    for (at_s, value) in axis.points.iter().zip(values) {
        match (value, runs.last_mut()) {
            (Some(value), Some(run)) => run.push((axis.x(*at_s), y(*value))),
            _ => runs.push(Vec::new()),
        }
    }
    runs.retain(|run| !run.is_empty());
    runs
}

fn points(run: &[(f64, f64)]) -> String {
    run.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect::<Vec<_>>().join(" ")
}

fn throughput(database: &Database, axis: &Axis, top: f64) -> Markup {
    let values = &database.series.per_s;
    let plot = Plot::new(top, THROUGHPUT, highest(values.iter()));
    html! {
        (plot.frame(axis.width, "Requests a second", format::number))
        @for run in runs(axis, values, |value| plot.y(value)) {
            polyline.throughput points=(points(&run)) {}
        }
    }
}

/// The parts of a request's time, one on the other: their upper edges as areas, the last one first.
fn parts(database: &Database, axis: &Axis, top: f64) -> Markup {
    let all = &database.series.parts;
    let count = axis.points.len();
    let mut sums: Vec<Vec<Option<f64>>> = Vec::new();
    for part in all {
        let below = |at: usize| sums.last().map_or(Some(0.0), |last: &Vec<Option<f64>>| last[at]);
        let sum = |at: usize| {
            let value = part.values.get(at).copied().flatten();
            // A part that a window knows nothing of took nothing in it, if others are known.
            let known = all.iter().any(|part| part.values.get(at).copied().flatten().is_some());
            known.then(|| below(at).unwrap_or(0.0) + value.unwrap_or(0.0))
        };
        let edge: Vec<Option<f64>> = (0..count).map(sum).collect();
        sums.push(edge);
    }
    let plot = Plot::new(top, TIME, highest(sums.iter().flatten()));
    html! {
        (plot.frame(axis.width, "Time of a request, by what it is spent on", |s| format::seconds(Seconds(s))))
        @for (part, edge) in all.iter().zip(&sums).rev() {
            @for run in runs(axis, edge, |value| plot.y(value)) {
                polygon class={ "time-part " (part.id) } points=(area(&run, plot.bottom)) {
                    title { (part_in_words(&part.id)) }
                }
            }
        }
    }
}

/// A run of points with the ground below it.
fn area(run: &[(f64, f64)], bottom: f64) -> String {
    let [(first, _), .., (last, _)] = *run else { return points(run) };
    format!("{first:.1},{bottom:.1} {} {last:.1},{bottom:.1}", points(run))
}

fn lines(disks: &[&Line], axis: &Axis, top: f64) -> Markup {
    let plot = Plot::new(top, DISKS, highest(disks.iter().flat_map(|line| &line.values)));
    html! {
        (plot.frame(axis.width, "Disks, bytes a second", |value| format::bytes(Bytes(value as u64))))
        @for (kind, line) in disks.iter().enumerate() {
            g class={ "series s" (kind) } {
                @for run in runs(axis, &line.values, |value| plot.y(value)) {
                    polyline points=(points(&run)) { title { (line.id) } }
                }
            }
        }
    }
}

/// The changes, numbered as in the list of them.
fn marks(database: &Database, axis: &Axis, top: f64, bottom: f64) -> Markup {
    html! {
        @for change in &database.changes {
            @let (from, to) = (axis.x_of(change.from), axis.x_of(change.to));
            g class={ "change " (kind(change)) } {
                title { (causes(change)) }
                @if change.kind != Kind::Step {
                    rect x=(n(from)) y=(n(top + 9.0)) width=(n((to - from).max(1.0))) height=(n(bottom - top - 9.0)) {}
                }
                line x1=(n(from)) x2=(n(from)) y1=(n(top + 9.0)) y2=(n(bottom)) {}
                circle cx=(n(from)) cy=(n(top)) r="9" {}
                text.mid x=(n(from)) y=(n(top + 4.0)) { (change.rank) }
            }
        }
    }
}

fn kind(change: &Change) -> &'static str {
    if change.gained_per_s() < 0.0 { "lost" } else { "gained" }
}

/// The causes of a change in a line.
pub(crate) fn causes(change: &Change) -> String {
    let texts: Vec<&str> = change.causes.iter().map(|cause| cause.text.as_str()).collect();
    if texts.is_empty() { "unexplained".to_owned() } else { texts.join("; ") }
}

/// What the colours of the figure mean.
pub fn legend(database: &Database) -> Markup {
    let series = &database.series;
    html! {
        @if !series.parts.is_empty() {
            ul.legend {
                @for part in &series.parts {
                    li { span class={ "key time-part " (part.id) } {} (part_in_words(&part.id)) }
                }
            }
        }
        ul.legend {
            @for (kind, line) in busiest(&series.disk_bytes_per_s).iter().enumerate() {
                li { span class={ "key s" (kind) } {} (line.id) }
            }
        }
    }
}
