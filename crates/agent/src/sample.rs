//! A value of a metric, of one window.

use crate::metric::{Kind, Metric};
use untax_core::Reading;

/// The longest label value, characters: servers tell some of them.
const LONGEST: usize = 120;

/// What one window adds to a counter, or the value of a gauge.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Sample {
    pub metric: &'static Metric,
    /// The values of the metric's own labels, in their order.
    pub labels: Vec<String>,
    pub value: f64,
}

/// The samples of one database or of the node, in the order in which they are kept.
#[derive(Debug, Default)]
pub(crate) struct Samples(pub Vec<Sample>);

impl Samples {
    /// Adds a value.
    pub fn add(&mut self, metric: &'static Metric, labels: &[&str], value: f64) {
        debug_assert_eq!(labels.len(), metric.labels.len(), "{}", metric.base);
        // What is no number is not told, and a counter never falls.
        if !value.is_finite() || (metric.kind == Kind::Counter && value < 0.0) {
            return;
        }
        let labels = labels.iter().map(|label| label.chars().take(LONGEST).collect()).collect();
        self.0.push(Sample { metric, labels, value });
    }

    /// Adds a value that is there. One that is not is not told: it is never 0.
    pub fn add_reading(
        &mut self,
        metric: &'static Metric,
        labels: &[&str],
        value: Reading<impl Into<f64>>,
    ) {
        if let Some(value) = value.into_value() {
            self.add(metric, labels, value.into());
        }
    }
}
