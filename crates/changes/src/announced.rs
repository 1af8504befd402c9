//! Says on this machine that a trial runs: an agent beside it would take what the trial does to databases for what
//! the platform takes.

use crate::tree::Tree;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use untax_host::trials::{self, FOLDER, Trial};
use untax_host::{Host, process};

/// Files of trials that ended longer ago are removed: no window of an agent is longer.
const KEPT: Duration = Duration::from_secs(24 * 3600);

/// A trial that runs until this is dropped. A process has one at a time.
#[derive(Debug)]
pub struct Announced {
    tree: Tree,
    /// `None` where this process may not say it.
    trial: Option<Trial>,
}

impl Announced {
    /// Says that this process begins a trial; `what` is its command. Only root can say so: nobody else may silence
    /// the alerts of a host.
    pub fn begin(what: &str) -> Self {
        if rustix::process::geteuid().is_root() {
            Self::below(Tree::live(), what)
        } else {
            Self { tree: Tree::live(), trial: None }
        }
    }

    fn below(tree: Tree, what: &str) -> Self {
        clear(&tree);
        let pid = std::process::id();
        let started = process::stat(&Host::live(), pid).into_value().map(|stat| stat.started_ticks);
        let trial = started.map(|started_ticks| Trial {
            pid,
            what: what.to_owned(),
            started_ticks,
            begun_s: now_s(),
            ended_s: None,
        });
        // A trial is worth more than its mark.
        let trial = trial.filter(|trial| tree.replace(&file(trial), &trial.line()).is_ok());
        Self { tree, trial }
    }
}

impl Drop for Announced {
    fn drop(&mut self) {
        if let Some(trial) = self.trial.take() {
            let ended = Trial { ended_s: Some(now_s()), ..trial };
            let _ = self.tree.replace(&file(&ended), &ended.line());
        }
    }
}

fn file(trial: &Trial) -> String {
    format!("{FOLDER}/{}", trial.pid)
}

fn now_s() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

/// Removes the files of trials that ended long ago.
fn clear(tree: &Tree) {
    let host = Host::live();
    let latest_s = now_s() - KEPT.as_secs_f64();
    let names = tree.names(FOLDER);
    let trials = names.iter().filter_map(|name| {
        let text = tree.whole(&format!("{FOLDER}/{name}")).ok()??;
        trials::parse(name, &text)
    });
    for trial in trials {
        if trial.ended_s.unwrap_or(trial.begun_s) < latest_s && !trial.runs(&host) {
            let _ = tree.remove(&file(&trial));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trials(tree: &Tree) -> Vec<Trial> {
        let read = |name: &String| {
            let text = tree.whole(&format!("{FOLDER}/{name}")).unwrap().unwrap();
            trials::parse(name, &text).unwrap()
        };
        tree.names(FOLDER).iter().map(read).collect()
    }

    #[test]
    fn a_trial_is_announced_while_it_runs_and_has_an_end_afterwards() {
        let folder = tempfile::tempdir().unwrap();
        let tree = Tree::at(folder.path());
        let host = Host::live();
        let announced = Announced::below(tree.clone(), "bench");
        let of = trials(&tree);
        assert!(of.len() == 1 && of[0].runs(&host) && of[0].what == "bench", "{of:?}");
        drop(announced);
        let of = trials(&tree);
        let lasted_s = of[0].ended_s.unwrap() - of[0].begun_s;
        assert!(of.len() == 1 && !of[0].runs(&host) && lasted_s >= 0.0, "{of:?}");
    }

    #[test]
    fn files_of_trials_that_ended_long_ago_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let tree = Tree::at(folder.path());
        let late_s = now_s() - 2.0 * KEPT.as_secs_f64();
        // Process 1 runs, and started at another time.
        let old = |pid| Trial {
            pid,
            what: "lab".to_owned(),
            started_ticks: u64::MAX,
            begun_s: late_s,
            ended_s: None,
        };
        let recent = Trial { ended_s: Some(now_s()), ..old(2) };
        for trial in [old(1), recent] {
            tree.replace(&file(&trial), &trial.line()).unwrap();
        }
        drop(Announced::below(tree.clone(), "verify"));
        let left: Vec<u32> = trials(&tree).iter().map(|trial| trial.pid).collect();
        assert!(!left.contains(&1) && left.contains(&2), "{left:?}");
    }
}
