//! How throughput grows with the number of requests that are worked on at once: the universal
//! scalability law.
//!
//! X(N) = λN / (1 + σ(N − 1) + κN(N − 1)): λ is what one alone gets done, σ the share of the work
//! that only one can do at a time (contention), and κ what each pair takes to agree (coherency).
//! N / X is linear in what is not known, 1/λ, σ/λ and κ/λ, so that least squares find it.
//!
//! Source: N. J. Gunther, Guerrilla Capacity Planning, Springer 2007, chapters 4 to 6.

use crate::Interval;
use crate::stats;
use serde::{Deserialize, Serialize};

/// What was done at once, and what got done, for a while.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Load {
    /// Requests that were worked on at once, mean.
    pub at_once: f64,
    /// Requests that were done, 1/s.
    pub per_s: f64,
}

/// What was fitted, with 95 % bootstrap intervals.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scalability {
    /// Requests a second that one at a time gets done: λ.
    pub alone_per_s: f64,
    /// The share (0..1) of the work that one at a time does: σ.
    pub contention: Interval,
    /// What each pair takes to agree, over the work: κ.
    pub coherency: Interval,
    /// From how many at once on more get less done; `None` when the fit has no such number.
    pub peak: Option<f64>,
}

/// Fewer loads than this do not tell three unknowns from noise: twice as many as there are.
const FEWEST: usize = 6;

/// The largest number at once over the smallest. Over less than this the three terms grow nearly
/// alike: their design matrix has a condition number beyond 100.
const SPREAD: f64 = 4.0;

/// Loads that lie this far from the law, relative and in the root mean square, follow something else.
const NOISE: f64 = 0.2;

/// Beyond this width of its interval the share that only one can do is not known.
const WIDTH: f64 = 0.5;

impl Scalability {
    /// Fits the law, or says why these loads do not carry it.
    pub fn fit(loads: &[Load]) -> Result<Self, String> {
        let points: Vec<(f64, f64)> = loads
            .iter()
            .filter(|load| load.at_once > 0.0 && load.per_s > 0.0)
            .map(|load| (load.at_once, load.per_s))
            .collect();
        if points.len() < FEWEST {
            let (count, few) = (points.len(), FEWEST);
            return Err(format!("{few} loads or more are needed, there are {count}"));
        }
        let all = || points.iter().map(|(at_once, _)| *at_once);
        let (least, most) = (all().fold(f64::INFINITY, f64::min), all().fold(0.0, f64::max));
        if most < SPREAD * least {
            return Err(format!(
                "the loads are too alike: {least:.1} to {most:.1} requests at once, and the \
                 largest must be {SPREAD} times the smallest"
            ));
        }
        let law = Law::of(&points).ok_or("the loads determine no curve")?;
        let off = law.distance(&points);
        if off > NOISE {
            return Err(format!("the loads lie {:.0} % off the law", off * 100.0));
        }
        Self::with_intervals(&law, &points)
    }

    fn with_intervals(law: &Law, points: &[(f64, f64)]) -> Result<Self, String> {
        let laws = stats::resampled(points, Law::of);
        let of = |mid: f64, value: fn(&Law) -> f64| {
            let values: Vec<f64> = laws.iter().map(value).collect();
            let bound = |q| stats::quantile(&values, q).unwrap_or(mid);
            Interval::new(bound(0.025).min(mid), mid, bound(0.975).max(mid))
        };
        let contention = of(law.contention, |law| law.contention);
        if contention.high - contention.low > WIDTH {
            let (low, high) = (contention.low * 100.0, contention.high * 100.0);
            return Err(format!("the loads leave {low:.0} to {high:.0} % of contention open"));
        }
        Ok(Self {
            alone_per_s: law.alone_per_s,
            contention,
            coherency: of(law.coherency, |law| law.coherency),
            peak: law.peak(),
        })
    }
}

/// The law with numbers.
#[derive(Debug, Clone, Copy)]
struct Law {
    alone_per_s: f64,
    contention: f64,
    coherency: f64,
}

impl Law {
    /// The law that lies nearest, by relative distance; none of its terms is negative.
    fn of(points: &[(f64, f64)]) -> Option<Self> {
        // Which of the two terms are there: the full law, or what is left when one is negative.
        const TERMS: [[bool; 2]; 4] = [[true, true], [true, false], [false, true], [false, false]];
        let laws = TERMS.iter().filter_map(|terms| Self::with(points, *terms));
        laws.min_by(|a, b| a.distance(points).total_cmp(&b.distance(points)))
    }

    fn with(points: &[(f64, f64)], terms: [bool; 2]) -> Option<Self> {
        // Weighted by N / X, so that relative errors count: rows of (1, N - 1, N (N - 1)) X / N = 1.
        let mut normal = [[0.0; 4]; 3];
        for (n, x) in points {
            let on = |term: bool, value: f64| if term { value * x / n } else { 0.0 };
            let row = [x / n, on(terms[0], n - 1.0), on(terms[1], n * (n - 1.0)), 1.0];
            for (i, line) in normal.iter_mut().enumerate() {
                for (cell, value) in line.iter_mut().zip(row) {
                    *cell += row[i] * value;
                }
            }
        }
        for (i, there) in [true, terms[0], terms[1]].into_iter().enumerate() {
            if !there {
                normal[i][i] = 1.0;
            }
        }
        let [a, b, c] = solve(normal)?;
        (a > 0.0 && b >= 0.0 && c >= 0.0).then(|| Self {
            alone_per_s: 1.0 / a,
            contention: b / a,
            coherency: c / a,
        })
    }

    fn per_s(&self, n: f64) -> f64 {
        let slower = 1.0 + self.contention * (n - 1.0) + self.coherency * n * (n - 1.0);
        self.alone_per_s * n / slower
    }

    /// Root mean square of the relative distances.
    fn distance(&self, points: &[(f64, f64)]) -> f64 {
        let squares = points.iter().map(|(n, x)| (x / self.per_s(*n) - 1.0).powi(2));
        (squares.sum::<f64>() / points.len() as f64).sqrt()
    }

    fn peak(&self) -> Option<f64> {
        let free = 1.0 - self.contention;
        (self.coherency > 0.0 && free > 0.0).then(|| (free / self.coherency).sqrt())
    }
}

/// Solves three linear equations by elimination with pivots; `None` when they are not independent.
fn solve(mut lines: [[f64; 4]; 3]) -> Option<[f64; 3]> {
    for at in 0..3 {
        let largest = (at..3).max_by(|a, b| lines[*a][at].abs().total_cmp(&lines[*b][at].abs()))?;
        lines.swap(at, largest);
        let pivot = lines[at];
        if pivot[at].abs() < 1e-12 * pivot[3].abs().max(f64::MIN_POSITIVE) {
            return None;
        }
        for (_, line) in lines.iter_mut().enumerate().filter(|(i, _)| *i != at) {
            let times = line[at] / pivot[at];
            line.iter_mut().zip(pivot).for_each(|(cell, value)| *cell -= times * value);
        }
    }
    Some([0, 1, 2].map(|i| lines[i][3] / lines[i][i]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Loads of a law, `noise` being the largest relative error.
    fn loads(law: &Law, at_once: &[f64], noise: f64, seed: u64) -> Vec<Load> {
        let mut rng = fastrand::Rng::with_seed(seed);
        let load = |n: &f64| Load {
            at_once: *n,
            per_s: law.per_s(*n) * (1.0 + noise * (2.0 * rng.f64() - 1.0)),
        };
        at_once.iter().map(load).collect()
    }

    /// From 1 to `most`, evenly on a scale of ratios.
    fn spread(most: f64, count: usize) -> Vec<f64> {
        (0..count).map(|i| most.powf(i as f64 / (count - 1) as f64)).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn a_law_is_recovered(
            alone_per_s in 10.0..1e6,
            contention in 0.0..0.5,
            coherency in 0.0..0.01,
            most in 16.0..200.0,
        ) {
            let law = Law { alone_per_s, contention, coherency };
            let fit = Scalability::fit(&loads(&law, &spread(most, 12), 0.0, 1)).unwrap();
            prop_assert!((fit.alone_per_s / alone_per_s - 1.0).abs() < 1e-6);
            prop_assert!((fit.contention.mid - contention).abs() < 1e-6);
            prop_assert!((fit.coherency.mid - coherency).abs() < 1e-7);
        }

        #[test]
        fn it_is_recovered_from_noise(
            contention in 0.02..0.4,
            coherency in 0.0005..0.01,
            seed in 0_u64..1000,
        ) {
            let law = Law { alone_per_s: 5000.0, contention, coherency };
            let fit = Scalability::fit(&loads(&law, &spread(64.0, 40), 0.05, seed)).unwrap();
            prop_assert!((fit.contention.mid - contention).abs() < 0.06, "{fit:?}");
            prop_assert!((fit.coherency.mid / coherency - 1.0).abs() < 0.5 + 0.001 / coherency, "{fit:?}");
            prop_assert!(fit.contention.low <= fit.contention.mid);
            prop_assert!(fit.contention.mid <= fit.contention.high);
        }

        #[test]
        fn too_little_spread_is_refused(
            least in 1.0..50.0,
            ratio in 1.0..3.9,
            count in 6_usize..40,
        ) {
            let law = Law { alone_per_s: 100.0, contention: 0.1, coherency: 0.001 };
            let at_once: Vec<f64> =
                (0..count).map(|i| least * (1.0 + (ratio - 1.0) * i as f64 / count as f64)).collect();
            prop_assert!(Scalability::fit(&loads(&law, &at_once, 0.02, 1)).is_err());
        }

        #[test]
        fn whatever_the_loads_there_is_an_answer(
            points in prop::collection::vec((-1.0..1e3_f64, -1.0..1e9_f64), 0..20)
        ) {
            let load = |(at_once, per_s)| Load { at_once, per_s };
            let loads: Vec<Load> = points.into_iter().map(load).collect();
            if let Ok(fit) = Scalability::fit(&loads) {
                prop_assert!(fit.alone_per_s > 0.0 && fit.contention.low >= 0.0);
                prop_assert!(fit.coherency.low >= 0.0);
            }
        }
    }

    #[test]
    fn few_loads_and_loads_of_another_law_are_refused() {
        let law = Law { alone_per_s: 100.0, contention: 0.1, coherency: 0.001 };
        assert!(Scalability::fit(&loads(&law, &spread(64.0, 5), 0.0, 1)).is_err());
        assert!(Scalability::fit(&loads(&law, &spread(64.0, 20), 0.9, 3)).is_err());
    }

    #[test]
    fn more_than_the_peak_gets_less_done() {
        let law = Law { alone_per_s: 100.0, contention: 0.04, coherency: 0.001 };
        let peak = Scalability::fit(&loads(&law, &spread(128.0, 20), 0.0, 1)).unwrap().peak;
        assert!((peak.unwrap() - 31.0).abs() < 0.1, "{peak:?}");
    }
}
