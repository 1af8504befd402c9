//! Trials saved one by one, and what may be said of them.

use anyhow::Context;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};
use untax_core::{Interval, stats};

/// All trials of one bench, in the order in which they were made.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Trials {
    /// The command that made them.
    pub command: String,
    /// The machine: processor, kernel, CPUs.
    pub machine: String,
    /// Each trial.
    #[serde(rename = "trials")]
    pub made: Vec<Trial>,
}

/// One run of one load in one arm.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Trial {
    /// Which pair it belongs to.
    pub pair: u32,
    /// The load, such as `-c 64`.
    pub load: String,
    /// The arm: `A` or `B`.
    pub arm: String,
    /// Transactions per second; in the bench of overhead bytes per second.
    pub tps: f64,
    /// What a check said during the trial.
    pub check: Option<serde_json::Value>,
}

/// Where trials are while some are missing.
fn unfinished(path: &Path) -> PathBuf {
    path.with_extension("json.part")
}

impl Trials {
    /// Goes on with the trials of a bench that was interrupted, or begins anew; those of loads that are
    /// not `chosen` stay as an earlier bench left them.
    pub fn open(path: &Path, chosen: impl Fn(&str) -> bool) -> anyhow::Result<Self> {
        if unfinished(path).exists() {
            return Self::read(&unfinished(path));
        }
        let mut made = if path.exists() { Self::read(path)?.made } else { Vec::new() };
        made.retain(|trial| !chosen(&trial.load));
        Ok(Self { command: command(), machine: machine(), made })
    }

    fn read(path: &Path) -> anyhow::Result<Self> {
        let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
        serde_json::from_str(&text).with_context(|| path.display().to_string())
    }

    /// Whether a trial was made already.
    pub fn has(&self, pair: u32, load: &str, arm: &str) -> bool {
        self.made.iter().any(|t| t.pair == pair && t.load == load && t.arm == arm)
    }

    /// Adds a trial and saves all of them.
    pub fn add(&mut self, trial: Trial, path: &Path) -> anyhow::Result<()> {
        self.add_all([trial], path)
    }

    /// Adds trials that mean something together alone.
    pub fn add_all<const N: usize>(
        &mut self,
        trials: [Trial; N],
        path: &Path,
    ) -> anyhow::Result<()> {
        for trial in &trials {
            eprintln!("pair {} {} {}: {:.0} tps", trial.pair, trial.load, trial.arm, trial.tps);
        }
        self.made.extend(trials);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let saved: PathBuf = path.with_extension("json.new");
        fs::write(&saved, serde_json::to_string_pretty(self)? + "\n")?;
        fs::rename(&saved, unfinished(path)).with_context(|| path.display().to_string())
    }

    /// Gives the trials, now whole, the place of those of an earlier bench.
    pub fn finish(path: &Path) -> anyhow::Result<()> {
        fs::rename(unfinished(path), path).with_context(|| path.display().to_string())
    }

    /// How many pairs there are of one load.
    pub fn pairs(&self, load: &str) -> usize {
        self.of(load, "A").len().min(self.of(load, "B").len())
    }

    /// Pairs of throughputs of one load: the n-th of arm `of` with the n-th of arm `over`.
    pub fn ratio(&self, load: &str, of: &str, over: &str) -> Option<Interval> {
        stats::paired_ratio(&self.of(load, of), &self.of(load, over))
    }

    /// The ratio of what two arms did over all trials: what is rare but dear counts as it should, where a
    /// median would leave it out.
    pub fn ratio_of_sums(&self, load: &str, of: &str, over: &str) -> Option<Interval> {
        let pieces: Vec<(f64, f64)> =
            self.of(load, of).into_iter().zip(self.of(load, over)).collect();
        stats::bootstrap_ratio(&pieces)
    }

    /// How far apart neighbours in time of one arm and load are: what noise alone does. Blocks
    /// alternate AB, BA, so that every second trial of an arm is next to one of the same arm.
    pub fn floor(&self, load: &str) -> Option<f64> {
        let ratios: Vec<f64> = ["A", "B"]
            .iter()
            .flat_map(|arm| {
                let tps = self.of(load, arm);
                tps.windows(2).map(|pair| pair[0] / pair[1]).collect::<Vec<_>>()
            })
            .collect();
        stats::noise_floor(&ratios)
    }

    /// What checks said during the trials of an arm.
    pub fn checks(&self, load: &str, arm: &str) -> impl Iterator<Item = &serde_json::Value> {
        let of_arm = move |t: &&Trial| t.load == load && t.arm == arm;
        self.made.iter().filter(of_arm).filter_map(|trial| trial.check.as_ref())
    }

    fn of(&self, load: &str, arm: &str) -> Vec<f64> {
        let mut chosen: Vec<&Trial> =
            self.made.iter().filter(|t| t.load == load && t.arm == arm).collect();
        chosen.sort_by_key(|t| t.pair);
        chosen.iter().map(|t| t.tps).collect()
    }
}

/// The arms of a pair in the order of an ABBA design.
pub fn order(pair: u32) -> [&'static str; 2] {
    if pair.is_multiple_of(2) { ["A", "B"] } else { ["B", "A"] }
}

/// The command that this program was started with.
pub fn command() -> String {
    format!("cargo xtask {}", std::env::args().skip(1).collect::<Vec<_>>().join(" "))
}

/// The machine: processor, kernel, CPUs.
pub fn machine() -> String {
    let facts = untax_host::facts::read_all(&untax_host::Host::live());
    let cpu = facts.cpu.value().map(|cpu| format!("{}, {} CPUs", cpu.model, cpu.logical));
    let kernel = facts.kernel.value().map(|kernel| format!("kernel {}", kernel.release));
    let virtualization = facts.virtualization.value().cloned();
    [cpu, kernel, virtualization].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_and_floor_come_from_the_right_trials() {
        let mut trials = Trials::default();
        for (pair, a, b) in [(0, 100.0, 150.0), (1, 100.0, 150.0), (2, 110.0, 165.0)] {
            for (arm, tps) in [("A", a), ("B", b)] {
                let load = "-c 2".to_owned();
                trials.made.push(Trial { pair, load, arm: arm.into(), tps, check: None });
            }
        }
        assert!((trials.ratio("-c 2", "B", "A").unwrap().mid - 1.5).abs() < 1e-9);
        let of_sums = trials.ratio_of_sums("-c 2", "B", "A").unwrap();
        assert!((of_sums.mid - 465.0 / 310.0).abs() < 1e-9);
        assert!((trials.floor("-c 2").unwrap() - 0.1).abs() < 1e-9);
        assert!(trials.ratio("-c 64", "B", "A").is_none());
    }
}
