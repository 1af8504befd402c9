//! Change points as Hunter finds them: the split of a stretch at which the energy distance of both sides is largest
//! (E-divisive), kept where a t-test tells both means apart, then merged from the weakest on.
//!
//! Source: Fleming et al., Hunter: using change point detection to hunt for performance regressions, ICPE 2023.
//! Beyond that, the sample size of the test is corrected for the correlation of neighbours, and its level for the
//! number of moments that are tried.

use super::noise::{AROUND, Noise, Noises, mean};
use super::student;
use std::ops::Range;

/// In one of so many series without a change one is reported, however long they are.
pub(super) const FALSE_ALARMS: f64 = 0.01;

/// Candidates are kept up to so many times the final level: the paper's first pass.
const FIRST_PASS: f64 = 10.0;

/// A level holds for so many values at least.
pub(super) const SHORTEST: usize = 3;

/// Stretches of these lengths are looked at, each begun at the middle of the one before: in short ones a pause
/// stands out, in long ones a small change does.
const STRETCHES: [usize; 3] = [24, 96, 384];

/// Where the segment before a point begins, and the one after it ends.
pub(super) fn sides(all: &[usize], point: usize, end: usize) -> (usize, usize) {
    let at = all.partition_point(|other| *other < point);
    let left = if at > 0 { all[at - 1] } else { 0 };
    (left, all.get(at + 1).copied().unwrap_or(end))
}

/// How unlikely a change must be of a series of so many values.
fn level(count: usize) -> f64 {
    FALSE_ALARMS / count.max(1) as f64
}

/// Where the series may change, ascending.
pub(super) fn candidates(values: &[f64], noises: &Noises) -> Vec<usize> {
    let level = level(values.len()) * FIRST_PASS;
    let mut points = Vec::new();
    for length in STRETCHES {
        let mut start = 0;
        loop {
            let end = (start + length).min(values.len());
            split(values, noises, start..end, (level, DEEPEST), &mut points);
            if end == values.len() {
                break;
            }
            start += length / 2;
        }
        if length >= values.len() {
            break;
        }
    }
    points.sort_unstable();
    points.dedup();
    points
}

/// A stretch is split so often, one part within the other: into 64 parts.
const DEEPEST: u32 = 5;

/// Adds the points of a stretch. Two sides cannot be told apart while they have changes of their own, which look like
/// their noise. So a point with others on its sides is a candidate whatever the test says of it.
fn split(
    values: &[f64],
    noises: &Noises,
    stretch: Range<usize>,
    (level, depth): (f64, u32),
    points: &mut Vec<usize>,
) {
    let Range { start, end } = stretch;
    let Some(point) = farthest_apart(&values[start..end]).map(|at| start + at) else { return };
    let before = points.len();
    if let Some(depth) = depth.checked_sub(1) {
        split(values, noises, start..point, (level, depth), points);
        split(values, noises, point..end, (level, depth), points);
    }
    if points.len() > before || chance(values, noises, start, point, end) < level {
        points.push(point);
    }
}

/// The strong ones of some points: removes the weakest until all are strong, and moves each to where both sides are
/// farthest apart.
pub(super) fn strong(values: &[f64], noises: &Noises, mut points: Vec<usize>) -> Vec<usize> {
    let level = level(values.len());
    loop {
        let chance_of = |at: usize| {
            let (left, right) = sides(&points, points[at], values.len());
            chance(values, noises, left, points[at], right)
        };
        let weakest = (0..points.len()).map(|at| (at, chance_of(at)));
        match weakest.max_by(|a, b| a.1.total_cmp(&b.1)) {
            Some((at, chance)) if chance >= level => {
                points.remove(at);
            }
            _ => break,
        }
    }
    for at in 0..points.len() {
        let (left, right) = sides(&points, points[at], values.len());
        let left = left.max(points[at].saturating_sub(AROUND));
        let right = right.min(points[at] + AROUND);
        if let Some(point) = farthest_apart(&values[left..right]) {
            points[at] = left + point;
        }
    }
    points
}

/// How likely the means of both sides differ as much by chance; 1 where a side is too short to say.
fn chance(values: &[f64], noises: &Noises, start: usize, point: usize, end: usize) -> f64 {
    if point - start < SHORTEST || end - point < SHORTEST {
        return 1.0;
    }
    let start = start.max(point.saturating_sub(AROUND));
    let end = end.min(point + AROUND);
    let (left, right) = (&values[start..point], &values[point..end]);
    let apart = mean(right) - mean(left);
    if apart == 0.0 {
        return 1.0;
    }
    let chance = |noise: Noise| {
        let error = noise.variance_of_mean(left.len()) + noise.variance_of_mean(right.len());
        student::two_sided(apart / error.sqrt(), noise.freedom)
    };
    // Each of two estimates of the noise is good where the other one is not: beside other changes, and in few values.
    // Two tests are twice as likely to err.
    let noises = [noises.at(point), Noise::about_levels(left, right)];
    let least = noises.into_iter().flatten().map(chance).fold(1.0, f64::min);
    (2.0 * least).min(1.0)
}

/// The place in a stretch at which the energy distance of both sides, weighed by their lengths, is largest.
fn farthest_apart(values: &[f64]) -> Option<usize> {
    let count = values.len();
    if count < 2 * SHORTEST {
        return None;
    }
    // Sums of distances: between both sides, and within each.
    let (mut between, mut within_left) = (0.0, 0.0);
    let mut within_right: f64 = (0..count)
        .map(|i| values[i + 1..].iter().map(|v| (v - values[i]).abs()).sum::<f64>())
        .sum();
    let mut best: Option<(usize, f64)> = None;
    for at in 0..count - SHORTEST {
        // This value goes from the right to the left.
        let to = |others: &[f64]| others.iter().map(|v| (v - values[at]).abs()).sum::<f64>();
        let (to_left, to_right) = (to(&values[..at]), to(&values[at + 1..]));
        between += to_right - to_left;
        within_left += to_left;
        within_right -= to_right;
        let point = at + 1;
        if point < SHORTEST {
            continue;
        }
        let (left, right) = (point as f64, (count - point) as f64);
        let energy = 2.0 * between / (left * right)
            - 2.0 * within_left / (left * left)
            - 2.0 * within_right / (right * right);
        let weighed = energy * left * right / (left + right);
        if best.is_none_or(|(_, most)| weighed > most) {
            best = Some((point, weighed));
        }
    }
    best.map(|(point, _)| point)
}
