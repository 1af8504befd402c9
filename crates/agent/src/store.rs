//! What is told: the values of all series, kept within bounds.

use crate::catalogue::{BUILD, DATABASES, LEFT_OUT, SERIES, SERIES_LEFT_OUT, UP, WINDOWS};
use crate::identity::Identity;
use crate::metric::{Kind, Metric};
use crate::sample::{Sample, Samples};
use std::collections::BTreeMap;

/// Databases of a node whose series are told.
pub(crate) const MOST_DATABASES: usize = 50;

/// Series of one database: 60 of what it is and does, 95 of what it pays.
pub(crate) const MOST_SERIES: usize = 60 + 95;

/// Databases that ended whose counters are kept, should they come back.
const MOST_GONE: usize = 50;

/// One series: a metric and the values of its own labels.
type Series = (&'static Metric, Vec<String>);

/// A database, with what one window saw of it.
pub(crate) struct Seen {
    pub identity: Identity,
    /// For how long it has run; `None` where that is not known.
    pub age_s: Option<f64>,
    pub samples: Vec<Sample>,
}

/// All series.
#[derive(Debug, Default)]
pub(crate) struct Store {
    node: Values,
    agent: Values,
    databases: BTreeMap<Identity, Values>,
    /// The counters of databases that ended, with the window in which they did.
    gone: BTreeMap<Identity, (u64, Values)>,
    windows: u64,
    youngest_s: f64,
}

/// The series of one thing.
#[derive(Debug, Default)]
struct Values {
    values: BTreeMap<Series, f64>,
    left_out: usize,
}

/// A database must be older than this, seconds: most that end sooner are tests and jobs, and would leave
/// series behind.
pub(crate) const YOUNGEST_S: f64 = 30.0;

impl Store {
    /// A store that tells of nothing but the agent.
    pub fn new(version: &str) -> Self {
        let mut samples = Samples::default();
        samples.add(&BUILD, &[version], 1.0);
        samples.add(&UP, &[], 0.0);
        for result in ["checked", "beside-trial", "skipped"] {
            samples.add(&WINDOWS, &[result], 0.0);
        }
        let mut store = Self { youngest_s: YOUNGEST_S, ..Self::default() };
        store.agent.take(samples.0, usize::MAX);
        store
    }

    /// The same, that leaves out no database for its age: for one window alone.
    pub fn of_any_age(self) -> Self {
        Self { youngest_s: 0.0, ..self }
    }

    /// Takes a window in.
    pub fn window(&mut self, node: Vec<Sample>, mut agent: Vec<Sample>, seen: Vec<Seen>) {
        self.windows += 1;
        let left_out = self.databases(seen);
        self.node.take(node, usize::MAX);
        let mut samples = Samples::default();
        samples.add(&UP, &[], 1.0);
        samples.add(&DATABASES, &[], self.databases.len() as f64);
        samples.add(&LEFT_OUT, &["too-young"], left_out[0] as f64);
        samples.add(&LEFT_OUT, &["too-many"], left_out[1] as f64);
        let all = || self.databases.values();
        let series = all().map(|of| of.values.len()).sum::<usize>() + self.node.values.len();
        samples.add(&SERIES, &[], series as f64);
        let series_left_out: usize = all().map(|of| of.left_out).sum();
        samples.add(&SERIES_LEFT_OUT, &[], series_left_out as f64);
        agent.extend(samples.0);
        self.agent.take(agent, usize::MAX);
    }

    /// Counts a window of which nothing is known: no database has values of an earlier one.
    pub fn skipped(&mut self, is_up: bool) {
        self.windows += 1;
        self.databases(Vec::new());
        self.agent.add(Sample { metric: &WINDOWS, labels: vec!["skipped".to_owned()], value: 1.0 });
        self.agent.add(Sample { metric: &UP, labels: Vec::new(), value: f64::from(is_up) });
    }

    /// The series of a metric, with the identity of each where it is of a database.
    pub fn series_of<'a>(
        &'a self,
        metric: &'a Metric,
    ) -> impl Iterator<Item = (Option<&'a Identity>, &'a [String], f64)> {
        let shared = [&self.agent, &self.node].into_iter().map(|values| (None, values));
        let own = self.databases.iter().map(|(identity, values)| (Some(identity), values));
        shared.chain(own).flat_map(move |(identity, values)| {
            let of_metric = values.values.iter().filter(move |((of, _), _)| *of == metric);
            of_metric.map(move |((_, labels), value)| (identity, &labels[..], *value))
        })
    }

    /// Takes the databases of a window in, and gives how many are left out: too young, too many. A database
    /// that was told before keeps its place.
    fn databases(&mut self, seen: Vec<Seen>) -> [usize; 2] {
        let all = seen.len();
        let is_grown = |seen: &Seen| seen.age_s.is_none_or(|age_s| age_s >= self.youngest_s);
        let mut seen: Vec<Seen> = seen.into_iter().filter(is_grown).collect();
        let too_young = all - seen.len();
        seen.sort_by_key(|seen| !self.databases.contains_key(&seen.identity));
        let too_many = seen.len().saturating_sub(MOST_DATABASES);
        seen.truncate(MOST_DATABASES);
        let mut before = std::mem::take(&mut self.databases);
        for Seen { identity, samples, .. } in seen {
            let back = || self.gone.remove(&identity).map(|(_, values)| values);
            let mut values = before.remove(&identity).or_else(back).unwrap_or_default();
            values.take(samples, MOST_SERIES);
            self.databases.insert(identity, values);
        }
        for (identity, values) in before {
            self.gone.insert(identity, (self.windows, values));
        }
        while self.gone.len() > MOST_GONE {
            let oldest = self.gone.iter().min_by_key(|(_, (at, _))| *at);
            let Some(oldest) = oldest.map(|(identity, _)| identity.clone()) else { break };
            self.gone.remove(&oldest);
        }
        [too_young, too_many]
    }
}

impl Values {
    /// Adds to counters and replaces gauges, of so many series at most: the first ones have their places.
    /// Counters that were told keep theirs: they would seem to begin anew.
    fn take(&mut self, samples: Vec<Sample>, most: usize) {
        self.values.retain(|(metric, _), _| metric.kind == Kind::Counter || *metric == &BUILD);
        self.left_out = 0;
        for sample in samples {
            let series = (sample.metric, sample.labels.clone());
            if self.values.len() >= most && !self.values.contains_key(&series) {
                self.left_out += 1;
            } else {
                self.add(sample);
            }
        }
    }

    fn add(&mut self, sample: Sample) {
        let value = self.values.entry((sample.metric, sample.labels)).or_insert(0.0);
        match sample.metric.kind {
            Kind::Counter => *value += sample.value.max(0.0),
            Kind::Gauge | Kind::Info => *value = sample.value,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::{ACTIVE, CONNECTIONS, TAX, UNMEASURED};
    use proptest::prelude::*;

    fn seen(name: &str, age_s: f64, samples: Vec<Sample>) -> Seen {
        let identity = Identity { database: name.to_owned(), ..Identity::default() };
        Seen { identity, age_s: Some(age_s), samples }
    }

    fn active(seconds: f64) -> Vec<Sample> {
        let mut samples = Samples::default();
        samples.add(&ACTIVE, &[], seconds);
        samples.0
    }

    fn told(store: &Store, metric: &'static Metric, name: &str) -> Option<f64> {
        let named = |of: Option<&Identity>| of.is_some_and(|identity| identity.database == name);
        store.series_of(metric).find(|(of, ..)| named(*of)).map(|(.., value)| value)
    }

    #[test]
    fn the_counters_of_a_database_that_comes_back_go_on() {
        let mut store = Store::new("1");
        let mut window = |seen| {
            store.window(Vec::new(), Vec::new(), seen);
            told(&store, &ACTIVE, "a")
        };
        assert_eq!(window(vec![seen("a", 60.0, active(2.0))]), Some(2.0));
        assert_eq!(window(Vec::new()), None, "it ended");
        assert_eq!(window(vec![seen("a", 60.0, active(3.0))]), Some(5.0));
    }

    #[test]
    fn a_skipped_window_leaves_no_value_of_an_earlier_one() {
        let mut store = Store::new("1");
        store.window(Vec::new(), Vec::new(), vec![seen("a", 60.0, active(2.0))]);
        store.skipped(true);
        assert_eq!(told(&store, &ACTIVE, "a"), None);
        let skipped = store.series_of(&WINDOWS).find(|(_, labels, _)| labels[0] == "skipped");
        assert!(skipped.is_some_and(|(.., value)| value > 0.5));
    }

    #[test]
    fn databases_beyond_the_bounds_are_counted_and_those_that_were_told_stay() {
        let mut store = Store::new("1");
        store.window(Vec::new(), Vec::new(), vec![seen("z", 60.0, active(1.0))]);
        let many = (0..MOST_DATABASES).map(|n| seen(&format!("a{n}"), 60.0, active(1.0)));
        let young = seen("young", YOUNGEST_S - 1.0, active(1.0));
        let all = many.chain([seen("z", 60.0, active(1.0)), young]).collect();
        store.window(Vec::new(), Vec::new(), all);
        assert_eq!(told(&store, &ACTIVE, "z"), Some(2.0));
        assert_eq!(told(&store, &ACTIVE, "young"), None);
        assert_eq!(store.databases.len(), MOST_DATABASES);
        let mut left_out: Vec<f64> = store.series_of(&LEFT_OUT).map(|(.., value)| value).collect();
        left_out.dedup();
        assert_eq!(left_out, [1.0], "one too young, one too many");
    }

    #[test]
    fn series_beyond_the_bound_are_counted() {
        let mut samples = Samples::default();
        for n in 0..MOST_SERIES + 7 {
            samples.add(&UNMEASURED, &[&n.to_string(), "no-bpf"], 1.0);
        }
        let mut store = Store::new("1");
        store.window(Vec::new(), Vec::new(), vec![seen("a", 60.0, samples.0)]);
        assert_eq!(store.series_of(&UNMEASURED).count(), MOST_SERIES);
        let left_out: Vec<f64> = store.series_of(&SERIES_LEFT_OUT).map(|(.., n)| n).collect();
        assert_eq!(left_out, [7.0]);
    }

    proptest! {
        #[test]
        fn counters_never_fall_and_gauges_are_of_the_last_window(
            windows in prop::collection::vec(
                (prop::collection::vec((0..3_u8, -1e3..1e6_f64), 0..6), any::<bool>()), 1..12)
        ) {
            let mut store = Store::new("1");
            let mut before: BTreeMap<String, f64> = BTreeMap::new();
            for (databases, skips) in windows {
                if skips {
                    store.skipped(true);
                    continue;
                }
                let now: BTreeMap<u8, f64> = databases.into_iter().collect();
                let seen = now.iter().map(|(name, value)| {
                    let mut samples = Samples::default();
                    samples.add(&TAX, &["disk-slow", "platform"], *value);
                    samples.add(&CONNECTIONS, &[], *value);
                    seen(&name.to_string(), 60.0, samples.0)
                });
                store.window(Vec::new(), Vec::new(), seen.collect());
                for (name, value) in &now {
                    let name = name.to_string();
                    prop_assert_eq!(told(&store, &CONNECTIONS, &name), Some(*value));
                    let counted = told(&store, &TAX, &name).unwrap_or(0.0);
                    prop_assert!(counted >= before.get(&name).copied().unwrap_or(0.0));
                    before.insert(name, counted);
                }
            }
        }
    }
}
