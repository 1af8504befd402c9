//! At which moments the level of a series changes by more than its own noise: steps and ramps.

use super::hunter::{candidates, sides, strong};
use super::median;
use super::noise::{Noises, mean};
use super::shapes;
pub use super::shapes::{Change, Shape};

/// The changes of a series by at least `least` (a share of the larger level), in order. All values are finite.
pub fn changes(values: &[f64], least: f64) -> Vec<Change> {
    let Some(scale) = Scale::of(values) else { return Vec::new() };
    let logarithms: Vec<f64> = values.iter().map(|value| scale.logarithm(*value)).collect();
    let mut all = of_logarithms(&logarithms);
    for change in &mut all {
        (change.before, change.after) = (scale.value(change.before), scale.value(change.after));
    }
    all.retain(|change| {
        let larger = change.before.abs().max(change.after.abs());
        (change.after - change.before).abs() >= least * larger
    });
    all
}

/// The middle value, of which all are parts. Their logarithms are compared, because the noise of a load grows with the
/// load: of logarithms it is the same at every level.
struct Scale(f64);

/// A value below this part of the middle one counts as this part: nothing has no logarithm.
const NOTHING: f64 = 0.01;

impl Scale {
    /// `None` where all values are nothing.
    fn of(values: &[f64]) -> Option<Self> {
        let positive: Vec<f64> = values.iter().copied().filter(|value| *value > 0.0).collect();
        median(&positive).map(Self)
    }

    fn logarithm(&self, value: f64) -> f64 {
        (value / self.0).max(NOTHING).ln()
    }

    fn value(&self, logarithm: f64) -> f64 {
        self.0 * logarithm.exp()
    }
}

/// Other changes of a series are not its noise. So candidates are looked for twice, the second time with the noise that
/// is left without the levels between the first ones, and those that are strong are drawn with the noise without theirs.
fn of_logarithms(values: &[f64]) -> Vec<Change> {
    let noise_without = |points: &[usize]| Noises::of(&without_levels(values, points));
    let first = candidates(values, &Noises::of(values));
    let noises = noise_without(&first);
    let points = strong(values, &noises, candidates(values, &noises));
    let noises = noise_without(&points);
    let mut all = Vec::new();
    let mut rest = &points[..];
    while let Some(run) = same_direction(values, rest, &points) {
        all.extend(shapes::changes(values, &noises, &points, run));
        rest = &rest[run.len()..];
    }
    all
}

/// Each value less the mean of the values between the same two points.
fn without_levels(values: &[f64], points: &[usize]) -> Vec<f64> {
    let ends = points.iter().copied().chain([values.len()]);
    let mut start = 0;
    let mut rest = Vec::with_capacity(values.len());
    for end in ends {
        let level = mean(&values[start..end]);
        rest.extend(values[start..end].iter().map(|value| value - level));
        start = end;
    }
    rest
}

/// The first of the points whose levels change in one direction.
fn same_direction<'a>(values: &[f64], rest: &'a [usize], all: &[usize]) -> Option<&'a [usize]> {
    let rises = |point: usize| {
        let (left, right) = sides(all, point, values.len());
        mean(&values[point..right]) > mean(&values[left..point])
    };
    let first = rises(*rest.first()?);
    let count = rest.iter().take_while(|point| rises(**point) == first).count();
    Some(&rest[..count])
}

#[cfg(test)]
mod tests {
    use super::super::noise::tests::{correlated, normal};
    use super::*;
    use proptest::prelude::*;

    /// What a database of the article did: 15,000 transactions a second, 20,000 after it was moved, and 30,000 over
    /// ten minutes as its data became local; windows of ten seconds, noise of 3 % whose neighbours correlate.
    fn article(seed: u64) -> Vec<f64> {
        let mut rng = fastrand::Rng::with_seed(seed);
        let noise = correlated(&mut rng, 0.3, 240);
        let level = |at: usize| match at {
            0..60 => 15e3,
            60..150 => 20e3,
            150..210 => 20e3 + (at - 150) as f64 / 60.0 * 10e3,
            _ => 30e3,
        };
        noise.iter().enumerate().map(|(at, noise)| level(at) * (1.0 + 0.03 * noise)).collect()
    }

    fn shapes(changes: &[Change]) -> Vec<Shape> {
        changes.iter().map(|change| change.shape).collect()
    }

    /// Whether the article is told as one step and one ramp, where and as large as they are.
    fn is_told(seed: u64) -> bool {
        let all = changes(&article(seed), 0.05);
        let [step, ramp] = all[..] else { return false };
        shapes(&all) == [Shape::Step, Shape::Ramp]
            && step.from.abs_diff(60) <= 2
            && ramp.from.abs_diff(150) <= 12
            && ramp.to.abs_diff(210) <= 12
            && (step.before / 15e3 - 1.0).abs() < 0.02
            && (step.after / 20e3 - 1.0).abs() < 0.02
            && (ramp.after / 30e3 - 1.0).abs() < 0.03
    }

    /// The same without the level between both.
    fn is_told_at_once(seed: u64) -> bool {
        let mut series = article(seed);
        series.drain(60..150);
        let all = changes(&series, 0.05);
        shapes(&all) == [Shape::Step, Shape::Ramp] && all[0].from.abs_diff(60) <= 2
    }

    #[test]
    fn the_article_is_a_step_and_a_ramp() {
        let told = (0..20).filter(|seed| is_told(*seed)).count();
        assert!(told >= 18, "{told} of 20");
    }

    #[test]
    fn a_ramp_that_begins_with_a_step_is_both() {
        let told = (0..20).filter(|seed| is_told_at_once(*seed)).count();
        assert!(told >= 18, "{told} of 20");
    }

    /// Seeds that no constant was chosen by.
    #[test]
    fn of_seeds_that_no_constant_was_chosen_by_seven_in_ten_are_told() {
        const FRESH: std::ops::Range<u64> = 500_000..500_200;
        let count = |is_told: fn(u64) -> bool| FRESH.filter(|seed| is_told(*seed)).count();
        let told = [count(is_told), count(is_told_at_once)];
        // 148 and 181 when this was written.
        assert!(told[0] >= 136 && told[1] >= 170, "{told:?} of 200");
    }

    #[test]
    fn noise_alone_is_hardly_ever_a_change() {
        for (correlation, count) in [(0.0, 180), (0.3, 180), (0.6, 180), (0.0, 720), (0.6, 720)] {
            let is_changed = |seed: &u64| {
                let mut rng = fastrand::Rng::with_seed(1000 + seed);
                let noise = correlated(&mut rng, correlation, count);
                let series: Vec<f64> = noise.iter().map(|noise| 100.0 + 5.0 * noise).collect();
                !changes(&series, 0.0).is_empty()
            };
            let changed = (0..200).filter(is_changed).count();
            // 2 of 200 are promised; chance makes 7 of it in one of a thousand such tests.
            assert!(changed <= 7, "{changed} of 200 with {correlation}, {count} values");
        }
    }

    #[test]
    fn a_step_is_found_within_two_windows() {
        for (correlation, height) in [(0.0, 4.0), (0.3, 6.0), (0.6, 12.0)] {
            let is_found = |seed: &u64| {
                let mut rng = fastrand::Rng::with_seed(2000 + seed);
                let noise = correlated(&mut rng, correlation, 120);
                // A tenth of the level.
                let step = |at: usize| if at < 70 { 0.0 } else { 10.0 };
                let series: Vec<f64> = noise
                    .iter()
                    .enumerate()
                    .map(|(at, noise)| 100.0 + noise * 10.0 / height + step(at))
                    .collect();
                let all = changes(&series, 0.05);
                matches!(all[..], [only] if only.shape == Shape::Step && only.from.abs_diff(70) <= 2)
            };
            let found = (0..50).filter(is_found).count();
            assert!(found >= 47, "{found} of 50 with {correlation}");
        }
    }

    /// What `untax bench locality` did to a PostgreSQL, noise of 5 % added: each step is most of the noise of the others.
    #[test]
    fn several_steps_do_not_hide_each_other() {
        let is_found = |seed: &u64| {
            let mut rng = fastrand::Rng::with_seed(4000 + seed);
            let noise = correlated(&mut rng, 0.3, 70);
            let level = |at: usize| [108.0, 445.0, 680.0, 1347.0, 2291.0][at / 14];
            let series: Vec<f64> =
                noise.iter().enumerate().map(|(at, n)| level(at) * (1.0 + 0.05 * n)).collect();
            let all = changes(&series, 0.05);
            let is_told = |at: usize| all.iter().any(|change| change.from.abs_diff(at) <= 2);
            [14, 28, 42, 56].into_iter().all(is_told)
        };
        let found = (0..50).filter(is_found).count();
        // 41 when this was written, and 1 when other steps counted as noise.
        assert!(found >= 34, "{found} of 50");
    }

    #[test]
    fn a_pause_is_two_steps_and_small_changes_are_left_out() {
        let mut rng = fastrand::Rng::with_seed(5);
        let mut series: Vec<f64> = (0..400).map(|_| 100.0 + normal(&mut rng)).collect();
        for value in &mut series[200..208] {
            *value -= 40.0;
        }
        let all = changes(&series, 0.05);
        assert_eq!(shapes(&all), [Shape::Step, Shape::Step], "{all:?}");
        assert!(all[0].after < all[0].before && all[1].after > all[1].before);
        for value in &mut series[208..] {
            *value += 4.0;
        }
        let larger = changes(&series, 0.05);
        assert_eq!(larger.len(), 2);
        assert!((larger[1].after - 104.0).abs() < 0.5, "{larger:?}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn whatever_the_values_changes_are_in_order(
            values in prop::collection::vec(prop_oneof![0.0..1e6_f64, Just(0.0), Just(7.0)], 0..300),
            least in 0.0..0.5_f64,
        ) {
            let all = changes(&values, least);
            for change in &all {
                prop_assert!(change.from <= change.to && change.to <= values.len());
                prop_assert!(change.before.is_finite() && change.after.is_finite());
                prop_assert_eq!(change.shape == Shape::Step, change.from == change.to);
            }
            prop_assert!(all.windows(2).all(|pair| pair[0].to <= pair[1].from));
        }

        #[test]
        fn neither_unit_nor_level_matters(seed in 0..40_u64, factor in 1e-3..1e3_f64) {
            let series = article(seed);
            let other: Vec<f64> = series.iter().map(|value| value * factor).collect();
            let places = |values: &[f64]| -> Vec<(usize, usize)> {
                changes(values, 0.05).iter().map(|change| (change.from, change.to)).collect()
            };
            prop_assert_eq!(places(&series), places(&other));
        }
    }
}
