//! Draws change points of one direction as steps and slopes: the pieces, flat or sloped, that fit best for the
//! number of their parameters.

use super::hunter::{SHORTEST, sides};
use super::noise::{AROUND, Noise, Noises, mean};

/// How a level changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// From one value to the next.
    Step,
    /// Bit by bit.
    Ramp,
}

/// A change of a level.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Change {
    /// How it changed.
    pub shape: Shape,
    /// The first value of the new level, or of the ramp.
    pub from: usize,
    /// The first value after a ramp; the same as `from` for a step.
    pub to: usize,
    /// The level before.
    pub before: f64,
    /// The level after.
    pub after: f64,
}

/// A flat level shows within so many values beside the outermost points.
const BESIDE: usize = 60;

/// So many values are drawn at most; of more, means of neighbours are.
const MOST: usize = 400;

/// A straight piece of a series.
#[derive(Debug, Clone, Copy)]
struct Piece {
    start: usize,
    end: usize,
    /// At its middle.
    level: f64,
    /// Per value.
    slope: f64,
}

impl Piece {
    fn at(&self, place: usize) -> f64 {
        let middle = (self.start + self.end - 1) as f64 / 2.0;
        self.level + self.slope * (place as f64 - middle)
    }

    fn first(&self) -> f64 {
        self.at(self.start)
    }

    fn last(&self) -> f64 {
        self.at(self.end - 1)
    }

    fn is_flat(&self) -> bool {
        self.slope == 0.0
    }

    /// Variance of the value at an end: that of a mean, and of a line four times as much.
    fn variance_at_end(&self, noise: &Noise) -> f64 {
        let mean = noise.variance_of_mean(self.end - self.start);
        if self.is_flat() { mean } else { 4.0 * mean }
    }
}

/// The steps and ramps of a run of points, of all points of a series.
pub(super) fn changes(
    values: &[f64],
    noises: &Noises,
    all: &[usize],
    run: &[usize],
) -> Vec<Change> {
    let Some((first, last)) = run.first().copied().zip(run.last().copied()) else {
        return Vec::new();
    };
    let start = sides(all, first, values.len()).0.max(first.saturating_sub(BESIDE));
    let end = sides(all, last, values.len()).1.min(last + BESIDE);
    let each = (end - start).div_ceil(MOST);
    let whole = start + (end - start) / each * each;
    let values_drawn: Vec<f64> = values[start..whole].chunks(each).map(mean).collect();
    let Some(noise) = noises.at(usize::midpoint(first, last)) else { return Vec::new() };
    let noise = Noise { deviation: noise.variance_of_mean(each).sqrt(), ..noise };
    let pieces = pieces(&values_drawn, &noise);
    let mut found = between(&pieces, &noise);
    for change in &mut found {
        (change.from, change.to) = (start + change.from * each, start + change.to * each);
    }
    found
}

/// What happens between pieces, and along them.
fn between(pieces: &[Piece], noise: &Noise) -> Vec<Change> {
    let mut found: Vec<Change> = Vec::new();
    for (at, piece) in pieces.iter().enumerate() {
        let before = at.checked_sub(1).map(|before| &pieces[before]);
        if let Some(before) = before.filter(|before| is_step(before, piece, noise)) {
            let (from, level) = (piece.start, before.last());
            let after = piece.first();
            found.push(Change { shape: Shape::Step, from, to: from, before: level, after });
        }
        if piece.is_flat() {
            continue;
        }
        let ramp = Change {
            shape: Shape::Ramp,
            from: piece.start,
            to: piece.end,
            before: piece.first(),
            after: piece.last(),
        };
        match found.last_mut() {
            // A curve is several slopes.
            Some(last) if last.shape == Shape::Ramp && last.to == ramp.from => {
                (last.to, last.after) = (ramp.to, ramp.after);
            }
            _ => found.push(ramp),
        }
    }
    let mut found = joined(found);
    // A ramp goes from one level to the other, where these are known.
    for change in found.iter_mut().filter(|change| change.shape == Shape::Ramp) {
        let flat = |ends: &dyn Fn(&Piece) -> bool| {
            pieces.iter().find(|piece| piece.is_flat() && ends(piece)).map(|piece| piece.level)
        };
        let (from, to) = (change.from, change.to);
        let is_near = |one: f64, other: f64| (one - other).abs() <= 3.0 * noise.deviation;
        let before =
            flat(&|piece| piece.end == from).filter(|level| is_near(*level, change.before));
        let after = flat(&|piece| piece.start == to).filter(|level| is_near(*level, change.after));
        change.before = before.unwrap_or(change.before);
        change.after = after.unwrap_or(change.after);
    }
    found
}

/// A level that holds for fewer values between a ramp and a step is none.
const LASTING: usize = 12;

/// A step behind a ramp, in its direction, that is less than this part of it and has no level of its own before it, is
/// the steep end of a curve: of throughput, where the time of a request falls evenly.
const END_OF_CURVE: f64 = 0.5;

/// Joins ramps with what belongs to them.
fn joined(all: Vec<Change>) -> Vec<Change> {
    let mut joined: Vec<Change> = Vec::new();
    let height = |change: &Change| change.after - change.before;
    for one in all {
        match joined.last_mut() {
            Some(ramp)
                if ramp.shape == Shape::Ramp
                    && one.from - ramp.to < LASTING
                    && (0.0..END_OF_CURVE).contains(&(height(&one) / height(ramp))) =>
            {
                (ramp.to, ramp.after) = (one.to, one.after);
            }
            _ => joined.push(one),
        }
    }
    joined
}

/// Whether two pieces do not just meet.
fn is_step(before: &Piece, after: &Piece, noise: &Noise) -> bool {
    let jump = after.first() - before.last();
    let error = (before.variance_at_end(noise) + after.variance_at_end(noise)).sqrt();
    // A slope passes on by itself from one value to the next, and one more for where it begins.
    let passes = 2.0 * before.slope.abs().max(after.slope.abs());
    jump.abs() > 4.0 * error + passes
}

/// Prefix sums, so that the best line through any stretch is found at once.
struct Sums(Vec<[f64; 3]>);

impl Sums {
    fn of(values: &[f64]) -> Self {
        let mut all = vec![[0.0; 3]];
        let mut sum = [0.0; 3];
        for (at, value) in values.iter().enumerate() {
            sum = [sum[0] + value, sum[1] + value * value, sum[2] + at as f64 * value];
            all.push(sum);
        }
        Self(all)
    }

    /// The flat and the sloped line through a stretch, each with its sum of squares.
    fn lines(&self, start: usize, end: usize) -> [(Piece, f64); 2] {
        let n = (end - start) as f64;
        let [sum, squares, moments] = [0, 1, 2].map(|of| self.0[end][of] - self.0[start][of]);
        let level = sum / n;
        let flat = (squares - sum * level).max(0.0);
        let middle = (start + end - 1) as f64 / 2.0;
        let spread = n * (n * n - 1.0) / 12.0;
        let slope = if spread > 0.0 { (moments - middle * sum) / spread } else { 0.0 };
        let sloped = (flat - slope * slope * spread).max(0.0);
        let piece = |slope| Piece { start, end, level, slope };
        [(piece(0.0), flat), (piece(slope), sloped)]
    }
}

/// The pieces with the least sum of squares, each parameter charged with the logarithm of the number of values
/// (Schwarz's criterion): a level, both ends of a slope and that it is one, and where each piece begins. So a step and a
/// slope are charged alike, and what fits better is drawn.
fn pieces(values: &[f64], noise: &Noise) -> Vec<Piece> {
    let count = values.len();
    let scaled: Vec<f64> = {
        let level = mean(values);
        values.iter().map(|value| value - level).collect()
    };
    let level = mean(values);
    let sums = Sums::of(&scaled);
    let unit = (noise.deviation.powi(2) * noise.per_sample()).max(f64::MIN_POSITIVE);
    let charge = (count.max(AROUND / 4) as f64).ln();
    let mut best: Vec<Option<(f64, Piece)>> = vec![None; count + 1];
    for end in SHORTEST..=count {
        for start in 0..=end - SHORTEST {
            let before = match (start, best[start]) {
                (0, _) => 0.0,
                (_, Some((cost, _))) => cost + charge,
                (_, None) => continue,
            };
            let [flat, sloped] = sums.lines(start, end);
            for ((piece, squares), parameters) in [(flat, 1.0), (sloped, 3.0)] {
                if parameters > 1.0 && end - start < SHORTEST + 1 {
                    continue;
                }
                let cost = before + squares / unit + charge * parameters;
                if best[end].is_none_or(|(least, _)| cost < least) {
                    best[end] = Some((cost, piece));
                }
            }
        }
    }
    let mut found = Vec::new();
    let mut end = count;
    while let Some((_, piece)) = best[end] {
        found.push(Piece { level: piece.level + level, ..piece });
        end = piece.start;
    }
    found.reverse();
    found
}
