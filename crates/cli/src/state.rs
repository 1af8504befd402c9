//! The state directory: saved runs and calibrations.

use crate::run_names::{self, Named};
use anyhow::{Context, bail};
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use untax_core::format::{self, NewerFormat};

/// Where the superuser's state is kept.
const ROOT_DIRECTORY: &str = "/var/lib/untax";

/// How many runs are kept: at some 50 KiB each they stay below 10 MiB.
const KEPT_RUNS: usize = 200;

/// The state directory; made when something is first saved.
pub struct State {
    directory: PathBuf,
}

impl State {
    /// The given directory, or the user's own.
    pub fn new(directory: Option<PathBuf>) -> Self {
        Self { directory: directory.unwrap_or_else(default_directory) }
    }

    /// The directory itself, made if need be.
    pub fn directory(&self) -> anyhow::Result<&Path> {
        fs::create_dir_all(&self.directory).with_context(|| {
            format!("cannot make {}; choose another with --state-dir", self.directory.display())
        })?;
        Ok(&self.directory)
    }

    /// A new run's id: what was done, and when.
    pub fn new_run(kind: &str) -> String {
        let now = Timestamp::now().strftime("%Y%m%dT%H%M%S%.3fZ").to_string();
        format!("{kind}-{}", now.replace('.', ""))
    }

    /// Saves a run, whole or not at all.
    pub fn save_run<T: Serialize>(&self, run: &str, value: &T) -> anyhow::Result<PathBuf> {
        self.save_json(run, &serde_json::to_string(value)?)
    }

    /// Saves a run that is JSON already.
    pub fn save_json(&self, run: &str, json: &str) -> anyhow::Result<PathBuf> {
        self.directory()?;
        let runs = self.directory.join("runs");
        fs::create_dir_all(&runs).with_context(|| runs.display().to_string())?;
        let path = runs.join(format!("{run}.json"));
        save(&path, json)?;
        prune(&runs);
        Ok(path)
    }

    /// Reads a saved run by its name, or the file of one. A name is the whole id, the beginning of one, `@last`
    /// or `@-1`; of the latter two, the run is of that kind, where one is given.
    pub fn load_run<T: DeserializeOwned>(
        &self,
        run: &str,
        kind: Option<&str>,
    ) -> anyhow::Result<T> {
        load(&self.find_run(run, kind)?).map_err(|error| {
            if error.is::<NewerFormat>() {
                return error;
            }
            error.context(format!(
                "{run} is neither a saved run, nor a file of one, nor a capture; see untax runs"
            ))
        })
    }

    /// The file of a saved run.
    pub fn find_run(&self, run: &str, kind: Option<&str>) -> anyhow::Result<PathBuf> {
        let runs = self.runs();
        match run_names::find(&runs, run, kind) {
            Named::Run(id) => Ok(self.directory.join("runs").join(format!("{id}.json"))),
            Named::None => Ok(PathBuf::from(run)),
            Named::Several(ids) => bail!("{run} may be {}; write more of it", ids.join(" or ")),
            Named::TooFew(0) => {
                let kind = kind.unwrap_or("check");
                let command = kind.replace('-', " ");
                bail!("no {kind} is saved in {}; run untax {command}", self.directory.display())
            }
            Named::TooFew(saved) => bail!("{run}: only {saved} are saved; see untax runs"),
        }
    }

    /// The ids of all saved runs, the latest first.
    #[expect(clippy::disallowed_methods, reason = "lists our own saved state, not the host")]
    pub fn runs(&self) -> Vec<String> {
        let entries = fs::read_dir(self.directory.join("runs")).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let mut ids: Vec<String> =
            names.filter_map(|name| Some(name.strip_suffix(".json")?.to_owned())).collect();
        run_names::sort(&mut ids);
        ids
    }

    /// The ids of the saved runs of one kind, the latest first.
    pub fn runs_of(&self, kind: &str) -> Vec<String> {
        let mut ids = self.runs();
        ids.retain(|id| run_names::kind(id) == kind);
        ids
    }

    /// Where receipts are kept; made if need be.
    pub fn receipts(&self) -> anyhow::Result<PathBuf> {
        Ok(self.directory()?.join("receipts"))
    }

    /// Saves something under a fixed name.
    pub fn save<T: Serialize>(&self, name: &str, value: &T) -> anyhow::Result<()> {
        let json = serde_json::to_string(value)?;
        save(&self.path(name)?, &json)
    }

    /// Where something is saved under a fixed name.
    pub fn path(&self, name: &str) -> anyhow::Result<PathBuf> {
        Ok(self.directory()?.join(format!("{name}.json")))
    }

    /// Reads what was saved under a fixed name; `None` if there is nothing of that form.
    pub fn load<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        load(&self.directory.join(format!("{name}.json"))).ok()
    }
}

fn default_directory() -> PathBuf {
    if rustix::process::geteuid().is_root() {
        return PathBuf::from(ROOT_DIRECTORY);
    }
    let home = std::env::home_dir().unwrap_or_else(std::env::temp_dir);
    home.join(".local/state/untax")
}

fn save(path: &Path, json: &str) -> anyhow::Result<()> {
    let write = || -> anyhow::Result<()> {
        let folder = path.parent().unwrap_or(Path::new("."));
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        file.write_all(json.as_bytes())?;
        file.persist(path)?;
        Ok(())
    };
    write().with_context(|| format!("cannot save {}", path.display()))
}

#[expect(clippy::disallowed_methods, reason = "reads our own saved state, not the host")]
fn load<T: DeserializeOwned>(path: &Path) -> anyhow::Result<T> {
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    if let Some(schema) = Stamp::of(&text) {
        format::is_readable(&schema).with_context(|| path.display().to_string())?;
    }
    serde_json::from_str(&text).with_context(|| path.display().to_string())
}

/// What a saved result says of its format, also where the rest of it is of another one. A check is saved
/// with its window.
#[derive(Deserialize)]
struct Stamp {
    schema: Option<String>,
    check: Option<Box<Stamp>>,
}

impl Stamp {
    fn of(text: &str) -> Option<String> {
        let stamp: Self = serde_json::from_str(text).ok()?;
        stamp.schema.or_else(|| stamp.check?.schema)
    }
}

/// How many results of each bench are kept beyond those: a bench takes ten minutes and a check ten seconds,
/// and advice stands on benches long after.
const KEPT_BENCHES: usize = 10;

/// The beginning of the name of a bench's run.
const BENCH: &str = "bench-";

/// Removes the oldest runs beyond those kept. Whatever cannot be removed is tried again next time.
#[expect(clippy::disallowed_methods, reason = "lists our own saved state, not the host")]
fn prune(runs: &Path) {
    let Ok(entries) = fs::read_dir(runs) else { return };
    let mut dated: Vec<_> = entries
        .flatten()
        .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
        .collect();
    dated.sort();
    dated.reverse();
    let mut benches: BTreeMap<String, usize> = BTreeMap::new();
    for (place, (_, path)) in dated.iter().enumerate() {
        let id = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        let kind = id.as_deref().map(run_names::kind).filter(|kind| kind.starts_with(BENCH));
        let is_kept_bench = kind.is_some_and(|kind| {
            let seen = benches.entry(kind.to_owned()).or_default();
            *seen += 1;
            *seen <= KEPT_BENCHES
        });
        if place >= KEPT_RUNS && !is_kept_bench {
            let _ = fs::remove_file(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_found_by_id_and_by_path() {
        let folder = tempfile::tempdir().unwrap();
        let state = State::new(Some(folder.path().to_owned()));
        let path = state.save_run("check-1", &vec![1, 2]).unwrap();
        assert_eq!(state.load_run::<Vec<u8>>("check-1", None).unwrap(), [1, 2]);
        assert_eq!(state.load_run::<Vec<u8>>(path.to_str().unwrap(), None).unwrap(), [1, 2]);
        assert!(state.load_run::<Vec<u8>>("check-2", None).is_err());
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "lists our own saved state, not the host")]
    fn old_runs_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let state = State::new(Some(folder.path().to_owned()));
        for n in 0..KEPT_RUNS + 3 {
            state.save_run(&format!("check-{n:04}"), &n).unwrap();
        }
        let kept = fs::read_dir(folder.path().join("runs")).unwrap().count();
        assert_eq!(kept, KEPT_RUNS);
    }

    #[test]
    fn checks_do_not_push_out_the_results_of_benches() {
        let folder = tempfile::tempdir().unwrap();
        let state = State::new(Some(folder.path().to_owned()));
        for n in 0..=KEPT_BENCHES {
            state.save_run(&format!("bench-runtime-{n:04}"), &n).unwrap();
        }
        for n in 0..KEPT_RUNS {
            state.save_run(&format!("check-{n:04}"), &n).unwrap();
        }
        let benches = state.runs_of("bench-runtime");
        assert_eq!(benches.len(), KEPT_BENCHES);
        assert!(!benches.contains(&"bench-runtime-0000".to_owned()), "the oldest goes first");
    }
}
