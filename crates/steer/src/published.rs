//! How steering stands now, for other programs: `untax watch` shows it.
//!
//! A file in the state directory, written once a second by the process that steers. What a killed one left
//! there counts for nothing: readers look whether its process still has the right to steer.

use crate::event::{Event, Line, Standing};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};
use untax_changes::{Lock, Tree};
use untax_host::{Host, process};

/// The file in the state directory.
const FILE: &str = "steer-now.json";

/// An instance with its main process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Steered {
    /// Its main process.
    pub pid: u32,
    /// The share of one CPU that steering takes for all instances.
    pub own_share: f64,
    /// How it stands.
    #[serde(flatten)]
    pub standing: Standing,
}

#[derive(Serialize, Deserialize)]
struct Now {
    /// The process that steers, and when it started, clock ticks since boot.
    process: (u32, u64),
    instances: Vec<Steered>,
}

/// Writes what others may read.
#[derive(Debug)]
pub(crate) struct Publisher {
    path: PathBuf,
    process: Option<(u32, u64)>,
    roots: Vec<(String, u32)>,
}

impl Publisher {
    pub(crate) fn new(state: &Path) -> Self {
        let path = state.join(FILE);
        Self { path, process: Lock::steering_process(state), roots: Vec::new() }
    }

    /// Takes up a line of the stream. A file that cannot be written is no reason not to steer.
    pub(crate) fn hear(&mut self, line: &Line) {
        match &line.event {
            Event::Started { instances, .. } => {
                self.roots =
                    instances.iter().map(|begun| (begun.name.clone(), begun.pid)).collect();
            }
            Event::State { instances, own } => {
                let pid = |name: &str| self.roots.iter().find(|(known, _)| known == name);
                let steered = |standing: &Standing| {
                    let pid = pid(&standing.name)?.1;
                    Some(Steered { pid, own_share: own.share, standing: standing.clone() })
                };
                let instances = instances.iter().filter_map(steered).collect();
                let Some(process) = self.process else { return };
                let _ = self.write(&Now { process, instances });
            }
            _ => {}
        }
    }

    /// Whole or not at all: a reader may look at any moment.
    fn write(&self, now: &Now) -> std::io::Result<()> {
        let new = self.path.with_extension("new");
        fs::write(&new, serde_json::to_string(now)?)?;
        fs::rename(new, &self.path)
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// The instances that are steered now; none where nobody steers.
pub fn steered_now(state: &Path) -> Vec<Steered> {
    let text = Tree::live().whole(&state.join(FILE).to_string_lossy()).ok().flatten();
    let now = text.and_then(|text| serde_json::from_str::<Now>(&text).ok());
    let is_alive = |(pid, started): (u32, u64)| {
        let stat = process::stat(&Host::live(), pid).into_value();
        Lock::steering_process(state) == Some((pid, started))
            && stat.is_some_and(|stat| stat.started_ticks == started)
    };
    now.filter(|now| is_alive(now.process)).map(|now| now.instances).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Begun, OwnCost, SCHEMA};

    fn line(event: Event) -> Line {
        Line { schema: SCHEMA.to_owned(), at_s: 1.0, event }
    }

    fn started() -> Event {
        let cpus: untax_core::cpus::Cpus = (0..2).collect();
        let begun = Begun {
            name: "a@1".to_owned(),
            pid: 7,
            preferred: cpus.clone(),
            allowed: cpus,
            own_threads: 0,
            usage: "threads".to_owned(),
        };
        let (run, backend, guard_pid) = ("steer-1".to_owned(), "user".to_owned(), None);
        Event::Started { run, backend, guard_pid, instances: vec![begun], warnings: Vec::new() }
    }

    fn state() -> Event {
        let standing = Standing {
            name: "a@1".to_owned(),
            cpus: (0..1).collect(),
            preferred: (0..1).collect(),
            used_cpus: 0.5,
            preferred_busy_share: 0.5,
            allowed_busy_share: 0.25,
            threads: 3,
            own_threads: 0,
            verdict: None,
        };
        let own = OwnCost { cpu_s: 0.1, share: 0.004, period_s: 0.1, slowest_sample_s: 0.001 };
        Event::State { instances: vec![standing], own }
    }

    #[test]
    fn what_is_steered_is_read_while_its_process_has_the_right_to() {
        let folder = tempfile::tempdir().unwrap();
        let lock = Lock::to_steer(folder.path()).unwrap();
        let mut publisher = Publisher::new(folder.path());
        publisher.hear(&line(started()));
        assert!(steered_now(folder.path()).is_empty(), "nothing is known yet");
        publisher.hear(&line(state()));
        let now = steered_now(folder.path());
        assert_eq!((now[0].pid, now[0].standing.threads), (7, 3));
        // A killed one leaves its file; the next has another process.
        let left = publisher.path.with_extension("left");
        fs::copy(&publisher.path, &left).unwrap();
        drop(publisher);
        assert!(steered_now(folder.path()).is_empty());
        fs::copy(&left, left.with_extension("json")).unwrap();
        assert_eq!(steered_now(folder.path()).len(), 1);
        fs::write(folder.path().join("steer.lock"), "1 1").unwrap();
        assert!(steered_now(folder.path()).is_empty(), "another process has the right now");
        drop(lock);
    }
}
