//! How much a series strays by itself, steps and slopes left out.

use super::quantile;

/// Noise in which each value follows the one before it to a part (an autoregression of first order).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Noise {
    /// Standard deviation of a value.
    pub deviation: f64,
    /// How much of a value's distance the next one has (0..1).
    pub correlation: f64,
    /// Degrees of freedom that the deviation is known with.
    pub freedom: f64,
}

/// 80 % of a normal distribution's distances from its median are below so many standard deviations. Values that a
/// step parts are fewer than the other 20 %.
const SHARE: f64 = 0.8;
const SHARE_DEVIATIONS: f64 = 1.281_6;

/// Values are compared with others so far away at most. Noise that comes back within so many windows is seen whole.
const FARTHEST: usize = 12;

/// The noise around a moment is that of so many values on either side.
pub(super) const AROUND: usize = 240;

/// A correlation above this leaves no sample to test with.
const MOST_CORRELATION: f64 = 0.95;

impl Noise {
    /// The noise of some values in a row, from how far each is from the middle of two others, equally far before and
    /// behind it: a slope is none of it, and a step is in few. `None` for fewer than eight.
    pub fn of(values: &[f64]) -> Option<Self> {
        let count = values.len();
        if count < 8 {
            return None;
        }
        let farthest = (count / 32).clamp(2, FARTHEST);
        let each: Option<Vec<f64>> = (1..=farthest).map(|apart| variance(values, apart)).collect();
        let (variance, seen) = fit(&each?);
        // A correlation that is read off so few values is uncertain by this much.
        let uncertain = 1.0 / (count as f64).sqrt();
        let correlation = (seen + uncertain).min(MOST_CORRELATION);
        let of = Self { deviation: variance.sqrt(), correlation, freedom: 0.0 };
        // A quantile of such distances says about a third of what all values would.
        let freedom = (count as f64 / of.per_sample() / 3.0).max(1.0);
        Some(Self { freedom, ..of })
    }

    /// The noise of values that lie about two levels, by their distances from these: more certain, where these are
    /// the only levels. `None` where too few are left to tell.
    pub fn about_levels(left: &[f64], right: &[f64]) -> Option<Self> {
        let count = (left.len() + right.len()) as f64;
        let distances = |side: &[f64]| -> Vec<f64> {
            let level = mean(side);
            side.iter().map(|value| value - level).collect()
        };
        let sides = [distances(left), distances(right)];
        let sum = |of: &dyn Fn(&Vec<f64>) -> f64| sides.iter().map(of).sum::<f64>();
        let squares = sum(&|side| side.iter().map(|d| d * d).sum());
        let products = sum(&|side| side.iter().zip(&side[1..]).map(|(a, b)| a * b).sum());
        let seen = if squares > 0.0 { products / squares } else { 0.0 };
        // Distances from means that were made of the values themselves correlate by so much less (Marriott and Pope,
        // 1954), for each of the two sides.
        let correlation = (seen + 2.0 * (1.0 + 3.0 * seen) / count).clamp(0.0, MOST_CORRELATION);
        let of = Self { deviation: 0.0, correlation, freedom: 0.0 };
        let freedom = count / of.per_sample() - 2.0;
        // Each mean took the variance of one independent sample away.
        let left = count - 2.0 * of.per_sample();
        (freedom >= 1.0 && left > 0.0).then(|| Self {
            deviation: (squares / left).sqrt(),
            correlation,
            freedom,
        })
    }

    /// So many values in a row say of a mean as much as one that is independent.
    pub fn per_sample(&self) -> f64 {
        (1.0 + self.correlation) / (1.0 - self.correlation)
    }

    /// The variance of the mean of so many values in a row: Σ over all pairs of r^distance.
    pub fn variance_of_mean(&self, count: usize) -> f64 {
        let (n, r) = (count.max(1) as f64, self.correlation);
        let pairs = (n * (1.0 - r * r) - 2.0 * r * (1.0 - r.powf(n))) / (1.0 - r).powi(2);
        self.deviation.powi(2) * (pairs / (n * n)).clamp(0.0, 1.0)
    }

    /// The larger of two noises, with what is known of the less certain one.
    #[must_use]
    pub fn or_larger(self, other: Self) -> Self {
        Self {
            deviation: self.deviation.max(other.deviation),
            correlation: self.correlation.max(other.correlation),
            freedom: self.freedom.min(other.freedom),
        }
    }
}

/// The variance of values less the middle of their neighbours so far away, doubled: x(-k) - 2x + x(k).
fn variance(values: &[f64], apart: usize) -> Option<f64> {
    let triples = values.iter().zip(&values[apart..]).zip(&values[2 * apart..]);
    let bends: Vec<f64> =
        triples.map(|((before, mid), after)| before - 2.0 * mid + after).collect();
    let middle = quantile(&bends, 0.5)?;
    let distances: Vec<f64> = bends.iter().map(|bend| (bend - middle).abs()).collect();
    Some((quantile(&distances, SHARE)? / SHARE_DEVIATIONS).powi(2))
}

/// The variance of a value and the correlation of neighbours that explain these variances at distances from 1 on best:
/// of such noise they are 2s²(1 - r^k)(3 - r^k). Least squares of logarithms.
fn fit(each: &[f64]) -> (f64, f64) {
    const STEPS: u32 = 95;
    if each.iter().any(|variance| *variance <= 0.0) {
        return (each.iter().copied().fold(0.0, f64::max) / 6.0, 0.0);
    }
    let distances = |r: f64| -> Vec<f64> {
        let of = |(variance, k): (&f64, i32)| {
            (variance / (2.0 * (1.0 - r.powi(k)) * (3.0 - r.powi(k)))).ln()
        };
        each.iter().zip(1..).map(of).collect()
    };
    let fitted = (0..STEPS).map(|step| {
        let r = f64::from(step) / 100.0;
        let all = distances(r);
        let level = mean(&all);
        (all.iter().map(|one| (one - level).powi(2)).sum::<f64>(), level.exp(), r)
    });
    let best = fitted.min_by(|a, b| a.0.total_cmp(&b.0));
    best.map_or((0.0, 0.0), |(_, variance, r)| (variance, r))
}

/// The noise of a series from place to place: load may be calm at night.
pub(super) struct Noises(Vec<Option<Noise>>);

/// Places this near have one noise.
const NEAR: usize = AROUND / 4;

impl Noises {
    pub fn of(values: &[f64]) -> Self {
        Self((0..=values.len() / NEAR).map(|at| around(values, at * NEAR + NEAR / 2)).collect())
    }

    /// The noise about a place; `None` where there are too few values.
    pub fn at(&self, place: usize) -> Option<Noise> {
        self.0.get(place / NEAR).copied().flatten()
    }
}

/// Of both sides, or of the noisier one where each is long enough to tell.
fn around(values: &[f64], place: usize) -> Option<Noise> {
    let place = place.min(values.len());
    let (start, end) = (place.saturating_sub(AROUND), (place + AROUND).min(values.len()));
    let both = Noise::of(&values[start..end])?;
    let side = |from: usize, to: usize| {
        if to - from >= AROUND / 2 { Noise::of(&values[from..to]) } else { None }
    };
    let sides = [side(start, place), side(place, end)];
    Some(sides.into_iter().flatten().fold(both, Noise::or_larger))
}

pub(super) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A normal deviate, by the sum of twelve even ones.
    pub fn normal(rng: &mut fastrand::Rng) -> f64 {
        (0..12).map(|_| rng.f64()).sum::<f64>() - 6.0
    }

    /// Noise of deviation 1.
    pub fn correlated(rng: &mut fastrand::Rng, correlation: f64, count: usize) -> Vec<f64> {
        let mut value = normal(rng);
        let fresh = (1.0 - correlation * correlation).sqrt();
        (0..count)
            .map(|_| {
                value = correlation * value + fresh * normal(rng);
                value
            })
            .collect()
    }

    #[test]
    fn a_step_and_a_slope_are_no_noise() {
        let mut rng = fastrand::Rng::with_seed(1);
        for correlation in [0.0, 0.3, 0.6] {
            let plain = correlated(&mut rng, correlation, 240);
            let shaped = plain.iter().enumerate().map(|(at, value)| {
                value + if at < 100 { 0.0 } else { 20.0 + (at as f64 - 100.0) * 0.1 }
            });
            let (plain, shaped) =
                (Noise::of(&plain).unwrap(), Noise::of(&shaped.collect::<Vec<_>>()).unwrap());
            for noise in [plain, shaped] {
                assert!((noise.deviation - 1.0).abs() < 0.4, "{correlation}: {noise:?}");
                assert!((noise.correlation - correlation).abs() < 0.3, "{correlation}: {noise:?}");
            }
        }
        assert_eq!(Noise::of(&[1.0; 7]), None);
        assert!(Noise::of(&[1.0; 50]).unwrap().deviation.abs() < 1e-12);
    }

    #[test]
    fn means_of_correlated_values_stray_more() {
        let noise = |correlation| Noise { deviation: 1.0, correlation, freedom: 50.0 };
        assert!((noise(0.0).variance_of_mean(10) - 0.1).abs() < 1e-9);
        // Of two values: (1 + 1 + 2r) / 4.
        assert!((noise(0.5).variance_of_mean(2) - 0.75).abs() < 1e-9);
        assert!((noise(0.5).variance_of_mean(1) - 1.0).abs() < 1e-9);
        let many = noise(0.5).variance_of_mean(3000) * 3000.0;
        assert!((many - noise(0.5).per_sample()).abs() < 0.01, "{many}");
    }
}
