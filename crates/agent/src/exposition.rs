//! All series as text of `OpenMetrics`.

use crate::METRICS;
use crate::label::Label;
use crate::metric::{IDENTITY, Kind, Metric, Of};
use crate::store::Store;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};
use std::borrow::Cow;
use std::sync::Arc;

/// The media type of the exposition.
pub(crate) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The text of all series, each with these labels.
pub(crate) fn text(store: Store, labels: &[Label]) -> (String, Store) {
    let told = Arc::new(Told(store));
    let pair = |label: &Label| (Cow::Owned(label.name.clone()), Cow::Owned(label.value.clone()));
    let mut registry = Registry::with_labels(labels.iter().map(pair));
    registry.register_collector(Box::new(Arc::clone(&told)));
    let mut text = String::new();
    // Appending to a String cannot fail.
    let _ = prometheus_client::encoding::text::encode(&mut text, &registry);
    drop(registry);
    let store = Arc::into_inner(told).map(|told| told.0).unwrap_or_default();
    (text, store)
}

#[derive(Debug)]
struct Told(Store);

impl Collector for Told {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), std::fmt::Error> {
        for metric in METRICS {
            self.encode_metric(&mut encoder, metric)?;
        }
        Ok(())
    }
}

impl Told {
    fn encode_metric(
        &self,
        encoder: &mut DescriptorEncoder,
        metric: &'static Metric,
    ) -> Result<(), std::fmt::Error> {
        let unit = metric.unit.suffix().map(|suffix| Unit::Other(suffix.to_owned()));
        let kind = match metric.kind {
            Kind::Counter => MetricType::Counter,
            Kind::Gauge => MetricType::Gauge,
            Kind::Info => MetricType::Info,
        };
        let mut family =
            encoder.encode_descriptor(metric.base, metric.help, unit.as_ref(), kind)?;
        for (identity, own, value) in self.0.series_of(metric) {
            let of = identity.map(|identity| IDENTITY.into_iter().zip(identity.values()));
            let own = metric.labels.iter().copied().zip(own.iter().map(String::as_str));
            let all = of.into_iter().flatten().chain(own);
            // An empty label and none are the same to Prometheus.
            let labels: Vec<(&str, &str)> = all.filter(|(_, value)| !value.is_empty()).collect();
            encode_series(&mut family, metric, &labels, value)?;
        }
        debug_assert!(metric.of != Of::Database || metric.base.starts_with("untax_"));
        Ok(())
    }
}

fn encode_series(
    family: &mut MetricEncoder,
    metric: &Metric,
    labels: &Vec<(&str, &str)>,
    value: f64,
) -> Result<(), std::fmt::Error> {
    use prometheus_client::encoding::NoLabelSet;
    match metric.kind {
        Kind::Info => family.encode_info(labels),
        Kind::Gauge => family.encode_family(labels)?.encode_gauge(&value),
        Kind::Counter => {
            family.encode_family(labels)?.encode_counter::<NoLabelSet, f64, f64>(&value, None)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::{ACTIVE, DATABASE};
    use crate::identity::Identity;
    use crate::sample::Samples;
    use crate::store::Seen;

    fn told(name: &str, version: &str) -> String {
        let mut samples = Samples::default();
        samples.add(&ACTIVE, &[], 1.5);
        samples.add(&DATABASE, &[version, "PostgreSQL", "process", ""], 1.0);
        let identity = Identity { database: name.to_owned(), ..Identity::default() };
        let mut store = Store::new("1");
        let seen = Seen { identity, age_s: None, samples: samples.0 };
        store.window(Vec::new(), Vec::new(), vec![seen]);
        text(store, &[Label::of_node("node-1"), Label::parse("cluster=a\"b").unwrap()]).0
    }

    #[test]
    fn the_text_is_openmetrics() {
        let text = told("postgres@5432", "15");
        let counter = r#"untax_database_active_seconds_total{node="node-1",cluster="a\"b",database="postgres@5432"} 1.5"#;
        assert!(text.lines().any(|line| line == counter), "{text}");
        assert!(text.contains("# TYPE untax_database_active_seconds counter\n"));
        assert!(text.contains("# UNIT untax_database_active_seconds seconds\n"));
        assert!(text.contains("untax_database_info{"), "{text}");
        assert!(text.ends_with("# EOF\n"));
    }

    #[test]
    fn hostile_names_stay_within_their_label() {
        let text = told("a\"} 1\nuntax_tax_seconds_total{x=\"\\é\u{202e}", "15\n# EOF\n");
        let of = |line: &&str| !line.starts_with('#');
        for line in text.lines().filter(of) {
            assert!(line.starts_with("untax_"), "{line}");
        }
        assert!(text.contains(r#"database="a\"} 1\nuntax_tax_seconds_total{x=\"\\é"#), "{text}");
        assert_eq!(text.matches("\n# EOF\n").count(), 1, "{text}");
    }
}
