//! From windows to a timeline: pure.

use crate::changed::{facts, near};
use crate::explain::explain;
use crate::history::{History, Track};
use crate::memory_moves;
use crate::scene::{Scene, account};
use crate::series::series;
use crate::storage::storage;
use crate::stretches::Times;
use std::ops::{Range, RangeInclusive};
use untax_core::stats::changes::{self, Shape};
use untax_core::timeline::{Change, Comparison, Database, Kind, Note, SCHEMA, Timeline};
use untax_core::{Reading, stats, storage as disks};

/// Throughput that changes by a smaller share is left out: hardly anybody acts on it.
const LEAST: f64 = 0.05;

/// What is compared are so many windows on either side at most: what was long before says little of a change.
const BESIDE: usize = 30;

/// And so many at least.
const FEWEST: usize = 3;

/// How throughput went, and why it changed. `source` says where the windows come from.
pub fn timeline(history: &History, source: &str) -> Timeline {
    let times = Times::of(history);
    let of = |(name, track): (&String, &Track)| database(history, &times, name, track);
    let mut databases: Vec<Database> = history.databases.iter().map(of).collect();
    let most = |database: &Database| {
        database.changes.iter().map(|change| change.gained_per_s().abs()).fold(0.0, f64::max)
    };
    databases.sort_by(|a, b| most(b).total_cmp(&most(a)).then_with(|| a.name.cmp(&b.name)));
    Timeline {
        schema: SCHEMA.to_owned(),
        source: source.to_owned(),
        from: times.start(0),
        to: times.end(times.end_s.len()),
        windows: times.end_s.len() as u64,
        window_s: stats::median(&times.window_s).unwrap_or(0.0),
        notes: times.notes.clone(),
        databases,
    }
}

fn database(history: &History, times: &Times, name: &str, track: &Track) -> Database {
    let mut found: Vec<Found> = Vec::new();
    let mut last: Option<Found> = None;
    for stretch in &times.stretches {
        let levels = levels(track, stretch);
        if let (Some(before), Some(after)) = (&last, levels.first()) {
            found.extend(across(track, before, after));
        }
        found.extend(within(&levels));
        last = levels.last().cloned().or(last);
    }
    let mut changes: Vec<Change> =
        found.iter().map(|found| change(history, times, name, track, found)).collect();
    rank(&mut changes);
    let rows = storage(track);
    let last_window = times.end_s.len().saturating_sub(1);
    Database {
        name: name.to_owned(),
        engine: track.fact("engine", last_window).unwrap_or_default().to_owned(),
        untold: untold(track),
        changes,
        notes: notes(track, times),
        series: series(track, times),
        storage_in_words: disks::in_words(&rows, None),
        storage: rows,
    }
}

/// Why nothing is said of a database's throughput.
fn untold(track: &Track) -> Option<String> {
    let known = track.column("requests").iter().filter(|value| value.is_finite()).count();
    match known {
        0 => Some("the server told no count of its requests".to_owned()),
        few if few < 2 * FEWEST => Some(format!("{few} windows are too few to compare")),
        _ => None,
    }
}

/// Windows of one level of throughput, or of one way from level to level.
#[derive(Debug, Clone)]
struct Found {
    kind: Kind,
    /// Windows that show what was before, and after.
    before: Range<usize>,
    after: Range<usize>,
    /// The first window of the change, and the first one after it.
    first: usize,
    last: usize,
    levels: [f64; 2],
}

/// The changes of a stretch, with a piece without change before and after each: at least one where throughput is
/// known at all.
fn levels(track: &Track, stretch: &Range<usize>) -> Vec<Found> {
    let rate = |at: usize| {
        let per_s = track.number("requests", at)? / track.number("window_s", at)?;
        per_s.is_finite().then_some((at, per_s))
    };
    let (windows, rates): (Vec<usize>, Vec<f64>) = stretch.clone().filter_map(rate).unzip();
    let Some((first, last)) = windows.first().zip(windows.last()) else { return Vec::new() };
    let all = changes::changes(&rates, LEAST);
    let window = |place: usize| windows.get(place).copied().unwrap_or(last + 1);
    let unchanged = all.first().map_or(last + 1, |first| window(first.from));
    let mut found = vec![plain(*first..unchanged, &rates)];
    for (at, one) in all.iter().enumerate() {
        let begin = if at > 0 { all[at - 1].to } else { 0 };
        let end = all.get(at + 1).map_or(rates.len(), |next| next.from);
        let (before, after) = sides(begin, one.from, one.to, end);
        found.push(Found {
            kind: if one.shape == Shape::Step { Kind::Step } else { Kind::Ramp },
            before: window(before.start)..window(before.end),
            after: window(after.start)..window(after.end),
            first: window(one.from),
            last: window(one.to),
            levels: [one.before, one.after],
        });
    }
    found
}

/// A stretch as a whole: what a gap before or after it is compared with.
fn plain(windows: Range<usize>, rates: &[f64]) -> Found {
    let begin = stats::mean(&rates[..rates.len().min(FEWEST)]).unwrap_or(0.0);
    let end = stats::mean(&rates[rates.len().saturating_sub(FEWEST)..]).unwrap_or(0.0);
    let (first, last) = (windows.start, windows.end);
    Found {
        kind: Kind::Gap,
        before: windows.clone(),
        after: windows,
        first,
        last,
        levels: [begin, end],
    }
}

fn within(levels: &[Found]) -> Vec<Found> {
    levels.iter().filter(|found| found.kind != Kind::Gap).cloned().collect()
}

/// The places before and after a change that show it: not the one that it began in, where there are others.
fn sides(begin: usize, from: usize, to: usize, end: usize) -> (Range<usize>, Range<usize>) {
    let before = begin.max(from.saturating_sub(BESIDE))..from;
    let after = to..end.min(to + BESIDE);
    let (mut before, mut after) = (before, after);
    if before.len() > FEWEST {
        before.end -= 1;
    }
    if after.len() > FEWEST {
        after.start += 1;
    }
    // A slope that begins or ends without a level shows the change by its own ends.
    let is_slope = to > from;
    if before.is_empty() {
        before = if is_slope {
            from..(from + FEWEST).min(to)
        } else {
            from.saturating_sub(FEWEST)..from
        };
    }
    if after.is_empty() {
        after = if is_slope { to.saturating_sub(FEWEST).max(from)..to } else { to..to + FEWEST };
    }
    (before, after)
}

/// What changed while nothing was recorded, if throughput did.
fn across(track: &Track, before: &Found, after: &Found) -> Option<Found> {
    // Of each stretch the windows next to the gap.
    let before = before.after.end.saturating_sub(BESIDE).max(before.after.start)..before.after.end;
    let after = after.before.start..after.before.end.min(after.before.start + BESIDE);
    let rates = |windows: &Range<usize>| -> Vec<f64> {
        let rate = |at: usize| Some(track.number("requests", at)? / track.number("window_s", at)?);
        windows.clone().filter_map(rate).collect()
    };
    let (early, late) = (rates(&before), rates(&after));
    let mid = |rates: &[f64]| stats::median(rates).filter(|_| rates.len() >= FEWEST);
    let levels = [mid(&early)?, mid(&late)?];
    let larger = levels[0].max(levels[1]);
    let apart = (levels[1] - levels[0]).abs();
    // Beyond what both sides stray by themselves.
    let strays = |rates: &[f64], level: f64| {
        let distances: Vec<f64> = rates.iter().map(|rate| (rate - level).abs()).collect();
        stats::quantile(&distances, 0.9).unwrap_or(0.0)
    };
    let strays = strays(&early, levels[0]).max(strays(&late, levels[1]));
    let (first, last) = (before.end, after.start);
    (apart >= LEAST * larger && apart > strays).then_some(Found {
        kind: Kind::Gap,
        before,
        after,
        first,
        last,
        levels,
    })
}

fn change(history: &History, times: &Times, name: &str, track: &Track, found: &Found) -> Change {
    let about: RangeInclusive<usize> = match found.kind {
        Kind::Gap => found.first.saturating_sub(1)..=found.last,
        _ => near(found.first, found.last.max(found.first)),
    };
    let mut changed = facts(track, times, &about);
    changed.extend(facts(&history.host, times, &about));
    let (before, after) =
        (account(track, found.before.clone()), account(track, found.after.clone()));
    let seconds = match Comparison::of(&before, &after) {
        Ok(compared) => Reading::Present(compared),
        Err(why) => Reading::Absent(why),
    };
    // What is compared is what is said: both are of the same windows.
    let [before_per_s, after_per_s] = match seconds {
        Reading::Present(_) => [before.per_s(), after.per_s()],
        _ => found.levels,
    };
    let scene = Scene {
        history,
        times,
        name,
        track,
        before: found.before.clone(),
        after: found.after.clone(),
        facts: changed,
        seconds,
    };
    let explained = explain(&scene, after_per_s - before_per_s);
    Change {
        kind: found.kind,
        from: times.start(found.first),
        to: if found.kind == Kind::Step {
            times.start(found.first)
        } else {
            times.start(found.last)
        },
        rank: 0,
        before_per_s,
        after_per_s,
        causes: explained.causes,
        unexplained_per_s: explained.unexplained_per_s,
        offset_per_s: explained.offset_per_s,
        also: explained.also,
        seconds: scene.seconds,
    }
}

/// Numbers the changes, the largest first.
fn rank(changes: &mut [Change]) {
    let mut order: Vec<usize> = (0..changes.len()).collect();
    order.sort_by(|a, b| {
        let size = |at: &usize| changes[*at].gained_per_s().abs();
        size(b).total_cmp(&size(a))
    });
    for (place, at) in order.into_iter().enumerate() {
        changes[at].rank = place as u32 + 1;
    }
}

/// What is said of a database whether its throughput changed or not.
fn notes(track: &Track, times: &Times) -> Vec<Note> {
    let mut notes = Vec::new();
    for (id, all) in track.facts().filter(|(id, _)| ["instance", "version", "role"].contains(id)) {
        for both in all.windows(2) {
            let [(_, Some(before)), (at, Some(after))] = both else { continue };
            let text = match id {
                "instance" => "the server was started again".to_owned(),
                "version" => format!("the server's version changed from {before} to {after}"),
                _ => format!("its role changed from {before} to {after}"),
            };
            let at = Some(times.end(*at));
            let id = if id == "instance" { "restarted" } else { id };
            notes.push(Note { id: id.to_owned(), at, text });
        }
    }
    notes.extend(memory_moves::notes(track, times));
    notes.sort_by_key(|note| note.at);
    notes
}
