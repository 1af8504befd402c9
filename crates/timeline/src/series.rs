//! What is drawn of a database: means over equal numbers of windows.

use crate::history::Track;
use crate::stretches::Times;
use std::collections::BTreeSet;
use std::ops::Range;
use untax_core::timeline::{Line, PARTS, Series};

/// A figure is no wider than so many points.
const MOST_POINTS: usize = 360;

/// The series of a database.
pub(crate) fn series(track: &Track, times: &Times) -> Series {
    let count = times.end_s.len();
    let each = count.div_ceil(MOST_POINTS).max(1);
    // Points do not reach over gaps.
    let groups: Vec<Range<usize>> = times
        .stretches
        .iter()
        .flat_map(|stretch| {
            let end = stretch.end;
            stretch.clone().step_by(each).map(move |start| start..(start + each).min(end))
        })
        .collect();
    let line =
        |id: String, number: &dyn Fn(usize) -> Option<f64>, over: &dyn Fn(usize) -> Option<f64>| {
            let value = |group: &Range<usize>| {
                let both = group.clone().filter_map(|at| Some((number(at)?, over(at)?)));
                let (sum, whole) = both.fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
                (whole > 0.0).then(|| sum / whole)
            };
            Line { id, values: groups.iter().map(value).collect() }
        };
    let middle = |group: &Range<usize>| {
        let begin = times.end_s[group.start] - times.window_s[group.start];
        f64::midpoint(begin, times.end_s[group.end - 1])
    };
    let requests = |at: usize| track.number("requests", at);
    let seconds = |at: usize| track.number("window_s", at);
    let parts = parts(track).into_iter().map(|part| {
        let id = format!("time.{part}_s");
        line(part, &|at| track.number(&id, at), &requests)
    });
    let flows = flows(track);
    let disks = |of: &str, over: &str| -> Vec<Line> {
        let one = |flow: &String| {
            let begin = format!("disk.{flow}");
            let number = |at: usize| track.number(&format!("{begin}.{of}"), at);
            let whole = |at: usize| match over {
                "" => seconds(at),
                other => track.number(&format!("{begin}.{other}"), at),
            };
            // A kind of request that a window has none of moved nothing in it.
            let or_none = |at: usize| number(at).or_else(|| seconds(at).map(|_| 0.0));
            let value: &dyn Fn(usize) -> Option<f64> =
                if over.is_empty() { &or_none } else { &number };
            line(flow.replace('.', " "), value, &whole)
        };
        flows.iter().map(one).collect()
    };
    Series {
        at_s: groups.iter().map(middle).collect(),
        per_s: line(String::new(), &requests, &seconds).values,
        parts: parts.collect(),
        disk_bytes_per_s: disks("bytes", ""),
        disk_latency_s: disks("service_s", "requests"),
    }
}

/// The parts that are known of a database, in the order of output.
fn parts(track: &Track) -> Vec<String> {
    let known = track.columns("time.").filter_map(|(id, _)| id.strip_suffix("_s"));
    let mut parts: Vec<String> = known.map(str::to_owned).collect();
    let place = |part: &String| PARTS.iter().position(|(id, _)| id == part).unwrap_or(PARTS.len());
    parts.sort_by_key(|part| (place(part), part.clone()));
    parts
}

/// `DEVICE.ROLE.DIRECTION` of all requests that moved something.
pub(crate) fn flows(track: &Track) -> Vec<String> {
    let flow = |(id, column): (&str, &[f64])| {
        let flow = id.strip_suffix(".bytes")?;
        column.iter().any(|bytes| *bytes > 0.0).then(|| flow.to_owned())
    };
    track.columns("disk.").filter_map(flow).collect::<BTreeSet<_>>().into_iter().collect()
}
