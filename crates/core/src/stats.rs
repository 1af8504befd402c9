//! Medians, ratios and their intervals.
//!
//! Written here because no well-kept crate has the bootstrap of a ratio; see `docs/statistics.md` for
//! the reasons behind the choices.

pub mod changes;
mod hunter;
mod noise;
mod shapes;
mod student;

use crate::Interval;

/// Resamples of a bootstrap: enough that the 2.5 % quantile moves less than the trials' noise.
const RESAMPLES: usize = 4000;

/// The quantiles between which 95 % of them lie.
const BOUNDS: [f64; 2] = [0.025, 0.975];

/// The seed of every bootstrap, so that the same trials always give the same interval.
const SEED: u64 = 0x5eed_0f0e_71a7_1e57;

/// The quantile `q` (0..=1) of the values, linear between neighbours; `None` when there are none.
pub fn quantile(values: &[f64], q: f64) -> Option<f64> {
    quantiles(values, [q]).map(|[quantile]| quantile)
}

/// Several of them.
pub fn quantiles<const N: usize>(values: &[f64], each: [f64; N]) -> Option<[f64; N]> {
    let sorted = sorted(values);
    let last = sorted.len().checked_sub(1)?;
    Some(each.map(|q| {
        let place = q.clamp(0.0, 1.0) * last as f64;
        let (below, above) = (place.floor() as usize, place.ceil() as usize);
        sorted[below] + (sorted[above] - sorted[below]) * place.fract()
    }))
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted: Vec<f64> = values.iter().copied().filter(|v| v.is_finite()).collect();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted
}

/// The median; `None` when there are no values.
pub fn median(values: &[f64]) -> Option<f64> {
    quantile(values, 0.5)
}

/// The median with a 95 % interval between two of the values, whatever their distribution: each of them is
/// below the true median as often as above it. Of fewer than six values the smallest and the largest hold it
/// less often: 94 times in 100 of five, 88 of four, 75 of three.
pub fn median_interval(values: &[f64]) -> Option<Interval> {
    let sorted = sorted(values);
    let mid = median(&sorted)?;
    let beyond = beyond_interval(sorted.len());
    Some(Interval::new(sorted[beyond], mid, sorted[sorted.len() - 1 - beyond]))
}

/// How many of so many values may be left out at either end: the most for which the true median is beyond
/// the rest in no more than 2.5 % of all samples, by the binomial distribution.
fn beyond_interval(count: usize) -> usize {
    let count = count as f64;
    // Logarithms, as the chance that none is below the median is too small for a number from 1075 on.
    let mut chance_ln = -count * std::f64::consts::LN_2;
    let mut tail = chance_ln.exp();
    let mut beyond = 0;
    loop {
        chance_ln += ((count - f64::from(beyond)) / f64::from(beyond + 1)).ln();
        tail += chance_ln.exp();
        if tail > BOUNDS[0] {
            return beyond as usize;
        }
        beyond += 1;
    }
}

/// The arithmetic mean; `None` when there are no values.
pub fn mean(values: &[f64]) -> Option<f64> {
    if values.is_empty() { None } else { Some(values.iter().sum::<f64>() / values.len() as f64) }
}

/// The mean with the interval that the differences between the values give.
pub fn mean_interval(values: &[f64]) -> Option<Interval> {
    bootstrap_ratio(&values.iter().map(|value| (*value, 1.0)).collect::<Vec<_>>())
}

/// What an estimate is of samples drawn anew from the same pieces, as often as intervals take.
pub fn resampled<P: Copy, E>(pieces: &[P], estimate: impl Fn(&[P]) -> Option<E>) -> Vec<E> {
    let mut rng = fastrand::Rng::with_seed(SEED);
    let mut resample = pieces.to_vec();
    (0..RESAMPLES)
        .filter_map(|_| {
            resample.fill_with(|| pieces[rng.usize(..pieces.len())]);
            estimate(&resample)
        })
        .collect()
}

/// The ratio of two sums over the same pieces (such as the slices of a window), with the interval
/// that the differences between pieces give; `None` when the second sum is not positive. Fewer
/// than three pieces give the smallest and the largest ratio of a piece as bounds.
pub fn bootstrap_ratio(pieces: &[(f64, f64)]) -> Option<Interval> {
    let ratio = |of: &mut dyn Iterator<Item = (f64, f64)>| {
        let (part, whole) = of.fold((0.0, 0.0), |sum, p| (sum.0 + p.0, sum.1 + p.1));
        (whole > 0.0).then(|| part / whole)
    };
    let mid = ratio(&mut pieces.iter().copied())?;
    // Most causes are not there: what no piece has, no sample of them has.
    if pieces.iter().all(|(part, _)| *part == 0.0) {
        return Some(Interval::exact(0.0));
    }
    let mut rng = fastrand::Rng::with_seed(SEED);
    let [low, high] = if pieces.len() < 3 {
        let each = pieces.iter().filter_map(|piece| ratio(&mut std::iter::once(*piece)));
        quantiles(&each.collect::<Vec<_>>(), [0.0, 1.0])?
    } else {
        let resample = |rng: &mut fastrand::Rng| {
            ratio(&mut pieces.iter().map(|_| pieces[rng.usize(..pieces.len())]))
        };
        let each = (0..RESAMPLES).filter_map(|_| resample(&mut rng));
        quantiles(&each.collect::<Vec<_>>(), BOUNDS)?
    };
    Some(Interval::new(low.min(mid), mid, high.max(mid)))
}

/// The median of the paired ratios `a[i] / b[i]` with its interval, computed on logarithms so
/// that a ratio and its inverse are treated alike. Pairs with a value that is not positive are
/// left out; `None` when no pair is left.
pub fn paired_ratio(a: &[f64], b: &[f64]) -> Option<Interval> {
    let logs: Vec<f64> = a
        .iter()
        .zip(b)
        .filter(|(a, b)| **a > 0.0 && **b > 0.0)
        .map(|(a, b)| (a / b).ln())
        .collect();
    median_interval(&logs).map(|i| i.map(f64::exp))
}

/// The noise floor of a set of A/A ratios: the 95th percentile of their distance from 1, as a
/// share; `None` when there are none.
pub fn noise_floor(ratios: &[f64]) -> Option<f64> {
    let distances: Vec<f64> =
        ratios.iter().filter(|r| **r > 0.0).map(|r| r.ln().abs().exp_m1()).collect();
    quantile(&distances, 0.95)
}

/// How far the median of `pairs` A/A ratios strays from 1 by chance, as a share: the 95th
/// percentile over bootstrap samples of that size. It is to a median of pairs what
/// [`noise_floor`] is to a single pair. `None` when there are no ratios or no pairs.
pub fn noise_floor_of_median(ratios: &[f64], pairs: usize) -> Option<f64> {
    let logs: Vec<f64> = ratios.iter().filter(|r| **r > 0.0).map(|r| r.ln()).collect();
    if logs.is_empty() || pairs == 0 {
        return None;
    }
    let mut rng = fastrand::Rng::with_seed(SEED);
    let mut sample = vec![0.0; pairs];
    let distances: Vec<f64> = (0..RESAMPLES)
        .filter_map(|_| {
            sample.fill_with(|| logs[rng.usize(..logs.len())]);
            median(&sample).map(|middle| middle.abs().exp_m1())
        })
        .collect();
    quantile(&distances, 0.95)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_interpolate() {
        assert_eq!(quantile(&[], 0.5), None);
        assert_eq!(quantile(&[f64::NAN], 0.5), None);
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(quantile(&[1.0, 2.0], 0.25), Some(1.25));
    }

    #[test]
    fn the_interval_holds_the_true_median_95_times_in_100_at_least() {
        let mut rng = fastrand::Rng::with_seed(7);
        // Of waiting times, which are anything but symmetric.
        let median = std::f64::consts::LN_2;
        for count in [6, 7, 8, 9, 15, 30] {
            let held = |_: &i32| {
                let sample: Vec<f64> = (0..count).map(|_| -rng.f64().ln()).collect();
                let interval = median_interval(&sample).unwrap();
                interval.low <= median && median <= interval.high
            };
            let held = (0..2000).filter(held).count();
            // 1900, less three times what chance does.
            assert!(held >= 1870, "{held} of 2000 with {count}");
        }
    }

    #[test]
    fn few_values_give_wide_intervals_and_many_do_not() {
        let beyond = [1, 2, 5, 6, 8, 9, 15, 30, 1000].map(beyond_interval);
        assert_eq!(beyond, [0, 0, 0, 0, 0, 1, 3, 9, 468]);
        assert_eq!(median_interval(&[f64::NAN]), None);
    }

    #[test]
    fn medians_stray_less_than_single_pairs_and_never_beyond_them() {
        let ratios = [0.95, 0.57, 1.0, 1.55, 0.96, 1.2, 0.99];
        let single = noise_floor(&ratios).unwrap();
        let (of_one, of_seven) =
            (noise_floor_of_median(&ratios, 1), noise_floor_of_median(&ratios, 7));
        assert!(of_one.unwrap() >= single);
        assert!(of_seven.unwrap() < single && of_seven.unwrap() > 0.0);
        assert_eq!(noise_floor_of_median(&[1.1; 5], 7).map(|f| (f * 1e6).round()), Some(1e5));
        assert_eq!(noise_floor_of_median(&[], 7), None);
        assert_eq!(noise_floor_of_median(&ratios, 0), None);
    }

    #[test]
    fn a_ratio_of_sums_is_as_sure_as_its_pieces_agree() {
        let steady: Vec<(f64, f64)> = (0..10).map(|_| (1.0, 4.0)).collect();
        assert_eq!(bootstrap_ratio(&steady), Some(Interval::exact(0.25)));
        let bursts: Vec<(f64, f64)> =
            (0..10).map(|i| if i == 0 { (2.5, 4.0) } else { (0.0, 4.0) }).collect();
        let ratio = bootstrap_ratio(&bursts).unwrap();
        assert!((ratio.mid - 0.0625).abs() < 1e-9 && ratio.low < 0.01 && ratio.high > 0.1);
        assert_eq!(bootstrap_ratio(&[(0.0, 0.0)]), None);
        assert_eq!(bootstrap_ratio(&[(1.0, 2.0)]), Some(Interval::exact(0.5)));
    }

    #[test]
    fn a_ratio_and_its_inverse_agree() {
        let (a, b) = ([2.0, 2.2, 1.8, 2.1], [1.0, 1.0, 1.0, 1.0]);
        let (up, down) = (paired_ratio(&a, &b).unwrap(), paired_ratio(&b, &a).unwrap());
        assert!((up.mid * down.mid - 1.0).abs() < 1e-12);
        assert!(paired_ratio(&[0.0], &[1.0]).is_none());
    }
}
