//! The record of a bench, and what may be said of its pairs.

use anyhow::Context;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::{fs, io};
use untax_core::guards::Guard;
use untax_core::{Interval, stats};
use untax_trials::Trial;

/// All trials of one bench, in the order in which they were made.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Record {
    /// The command that made them.
    pub command: String,
    /// The machine: processor, kernel, CPUs.
    pub machine: String,
    /// Each trial.
    #[serde(rename = "trials")]
    pub made: Vec<Entry>,
}

/// What was measured of one load in one arm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// The load, such as `-c 64`.
    pub load: String,
    /// The arm: `A` or `B`.
    pub arm: String,
    /// Transactions per second; in the bench of overhead bytes per second.
    pub tps: f64,
    /// What a check said during the trial.
    pub check: Option<serde_json::Value>,
}

/// The same, and its place in the order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Which pair it belongs to.
    pub pair: u32,
    /// What was measured.
    #[serde(flatten)]
    pub measured: Measured,
    /// The guards that were exceeded: such a trial counts for nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spoiled: Vec<Guard>,
}

impl Record {
    /// Reads the record of an earlier bench; without a file it is empty.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let text = match fs::read_to_string(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            text => text.with_context(|| path.display().to_string())?,
        };
        serde_json::from_str(&text).with_context(|| path.display().to_string())
    }

    /// Adds trials, in place of earlier ones of the same loads.
    pub fn replace(&mut self, trials: &[Trial<Vec<Measured>>]) {
        let entries = |trial: &Trial<Vec<Measured>>| {
            let (pair, spoiled) = (trial.slot.block, trial.spoiled().cloned().collect::<Vec<_>>());
            let entry = move |measured| Entry { pair, measured, spoiled: spoiled.clone() };
            trial.outcome.clone().into_iter().map(entry)
        };
        let new: Vec<Entry> = trials.iter().flat_map(entries).collect();
        let is_old = |load: &str| new.iter().all(|entry| entry.measured.load != load);
        self.made.retain(|entry| is_old(&entry.measured.load));
        self.made.extend(new);
    }

    /// The throughputs of one load in two arms, pair by pair.
    pub fn pairs(&self, load: &str, of: &str, over: &str) -> Vec<(f64, f64)> {
        let mut others = self.of(load, over);
        let pair = |one: &Entry| {
            let place = others.iter().position(|other| other.pair == one.pair)?;
            Some((one.measured.tps, others.remove(place).measured.tps))
        };
        self.of(load, of).into_iter().filter_map(pair).collect()
    }

    /// The median of the pairs' ratios.
    pub fn ratio(&self, load: &str, of: &str, over: &str) -> Option<Interval> {
        let (of, over): (Vec<f64>, Vec<f64>) = self.pairs(load, of, over).into_iter().unzip();
        stats::paired_ratio(&of, &over)
    }

    /// The ratio of what two arms did over all pairs: what is rare but dear counts as it should, where a
    /// median would leave it out.
    pub fn ratio_of_sums(&self, load: &str, of: &str, over: &str) -> Option<Interval> {
        stats::bootstrap_ratio(&self.pairs(load, of, over))
    }

    /// How far apart neighbours in time of one arm and load are: what noise alone does. Blocks
    /// alternate AB, BA, so that every second trial of an arm is next to one of the same arm.
    pub fn floor(&self, load: &str) -> Option<f64> {
        let ratios = |arm: &&str| {
            let of_arm = self.of(load, arm);
            let ratio = |two: &[&Entry]| two[0].measured.tps / two[1].measured.tps;
            of_arm.windows(2).map(ratio).collect::<Vec<_>>()
        };
        stats::noise_floor(&["A", "B"].iter().flat_map(ratios).collect::<Vec<_>>())
    }

    /// What checks said during the trials of an arm.
    pub fn checks(&self, load: &str, arm: &str) -> impl Iterator<Item = &serde_json::Value> {
        self.of(load, arm).into_iter().filter_map(|entry| entry.measured.check.as_ref())
    }

    /// The trials of one load in one arm that count, by pair.
    fn of(&self, load: &str, arm: &str) -> Vec<&Entry> {
        let is_it = |Entry { measured, spoiled, .. }: &&Entry| {
            measured.load == load && measured.arm == arm && spoiled.is_empty()
        };
        let mut chosen: Vec<&Entry> = self.made.iter().filter(is_it).collect();
        chosen.sort_by_key(|entry| entry.pair);
        chosen
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use untax_core::Reading;
    use untax_core::guards::GuardId;
    use untax_trials::Slot;

    fn measured(load: &str, arm: &str, tps: f64) -> Measured {
        Measured { load: load.to_owned(), arm: arm.to_owned(), tps, check: None }
    }

    fn record(trials: &[(u32, &str, f64)]) -> Record {
        let entry = |&(pair, arm, tps): &(u32, &str, f64)| {
            let measured = measured("-c 2", arm, tps);
            Entry { pair, measured, spoiled: Vec::new() }
        };
        Record { made: trials.iter().map(entry).collect(), ..Record::default() }
    }

    fn steal() -> Guard {
        let value = Reading::Present(0.5);
        Guard { id: GuardId::Steal, subject: None, value, threshold: 0.1 }
    }

    #[test]
    fn pairs_and_floor_come_from_the_right_trials() {
        let record = record(&[
            (0, "A", 100.0),
            (0, "B", 150.0),
            (1, "B", 150.0),
            (1, "A", 100.0),
            (2, "A", 110.0),
            (2, "B", 165.0),
        ]);
        assert!((record.ratio("-c 2", "B", "A").unwrap().mid - 1.5).abs() < 1e-9);
        let of_sums = record.ratio_of_sums("-c 2", "B", "A").unwrap();
        assert!((of_sums.mid - 465.0 / 310.0).abs() < 1e-9);
        assert!((record.floor("-c 2").unwrap() - 0.1).abs() < 1e-9);
        assert!(record.ratio("-c 64", "B", "A").is_none());
    }

    #[test]
    fn a_spoiled_trial_takes_its_pair_with_it_and_no_other() {
        let mut record = record(&[(0, "A", 9.0), (0, "B", 10.0), (1, "A", 2.0), (1, "B", 3.0)]);
        record.made[0].spoiled = vec![steal()];
        assert_eq!(record.pairs("-c 2", "B", "A"), [(3.0, 2.0)]);
        // It was made once more.
        record.made.push(Entry { spoiled: Vec::new(), ..record.made[0].clone() });
        record.made[4].measured.tps = 5.0;
        assert_eq!(record.pairs("-c 2", "B", "A"), [(10.0, 5.0), (3.0, 2.0)]);
    }

    #[test]
    fn loads_that_are_measured_anew_replace_their_trials_alone() {
        let mut record = record(&[(0, "A", 1.0), (7, "B", 1.0)]);
        record.made[1].measured.load = "-c 64".to_owned();
        let slot = Slot { block: 3, arm: 0, cell: 0, repeat: false };
        let outcome = vec![measured("-c 2", "A", 2.0), measured("-c 2", "B", 3.0)];
        record.replace(&[Trial {
            slot,
            outcome,
            took_s: 1.0,
            guards: vec![steal()],
            sleeps: None,
        }]);
        let places: Vec<(u32, &str, usize)> = record
            .made
            .iter()
            .map(|entry| (entry.pair, entry.measured.load.as_str(), entry.spoiled.len()))
            .collect();
        assert_eq!(places, [(7, "-c 64", 0), (3, "-c 2", 1), (3, "-c 2", 1)]);
    }
}
