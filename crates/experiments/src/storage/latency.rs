//! How long operations took.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Operations from which a quantile is told: one of them lies beyond it.
pub(crate) const FOR_P99: usize = 100;
const FOR_P999: usize = 1000;

/// How long the operations of one trial took, in us.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Latencies {
    /// How many operations.
    pub(crate) count: u64,
    pub(crate) mean_us: f64,
    pub(crate) p50_us: f64,
    /// None below 100 operations.
    pub(crate) p99_us: Option<f64>,
    /// None below 1,000 operations.
    pub(crate) p999_us: Option<f64>,
    pub(crate) max_us: f64,
}

impl Latencies {
    /// Of these operations; none of none.
    pub(crate) fn of(mut each: Vec<Duration>) -> Option<Self> {
        each.sort_unstable();
        let us = |duration: Duration| duration.as_nanos() as f64 / 1e3;
        // The nearest rank: a latency that was seen.
        let rank =
            |q: f64| us(each[((each.len() as f64 * q).ceil() as usize).clamp(1, each.len()) - 1]);
        let (max, count) = (us(*each.last()?), each.len());
        let told = |least: usize, q: f64| (count >= least).then(|| rank(q));
        Some(Self {
            count: count as u64,
            mean_us: us(each.iter().sum()) / count as f64,
            p50_us: rank(0.5),
            p99_us: told(FOR_P99, 0.99),
            p999_us: told(FOR_P999, 0.999),
            max_us: max,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_latencies_that_were_seen() {
        let all = Latencies::of((1..=1000).rev().map(Duration::from_micros).collect()).unwrap();
        assert_eq!((all.count, all.p50_us, all.max_us), (1000, 500.0, 1000.0));
        assert_eq!((all.p99_us, all.p999_us), (Some(990.0), Some(999.0)));
        assert!((all.mean_us - 500.5).abs() < 1e-6);
    }

    #[test]
    fn too_few_operations_tell_no_tail() {
        let few = Latencies::of(vec![Duration::from_micros(7); 99]).unwrap();
        assert_eq!((few.p50_us, few.p99_us, few.p999_us), (7.0, None, None));
        assert_eq!(Latencies::of(Vec::new()), None);
    }
}
