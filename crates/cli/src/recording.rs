//! Recordings of windows that are watched.

use crate::state::State;
use std::path::{Path, PathBuf};
use untax_core::{Check, Window};
use untax_timeline::{Recorder, moment};

/// A recording that windows are added to.
pub struct Recording {
    recorder: Recorder,
    /// Whether the last window was not written: it is said once, and not for each window.
    fails: bool,
}

/// The least and the most MiB that a recording may be limited to.
pub const LIMITS: std::ops::RangeInclusive<i64> = 1..=1 << 20;

impl Recording {
    /// Opens a recording of so many MiB at most, or goes on with one.
    pub fn open(path: &Path, limit_mib: u32) -> anyhow::Result<Self> {
        let recorder = Recorder::open(path, u64::from(limit_mib) << 20)?;
        Ok(Self { recorder, fails: false })
    }

    /// Adds a window; gives what a person should know of it.
    pub fn add(&mut self, window: &Window, check: &Check, names: &[String]) -> Option<String> {
        match self.recorder.add(moment(window, check, names)) {
            Ok(()) => {
                self.fails = false;
                None
            }
            Err(_) if self.fails => None,
            Err(error) => {
                self.fails = true;
                let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}"));
                Some(format!("a minute is not recorded: {error}{}", cause.unwrap_or_default()))
            }
        }
    }
}

/// Where the agent of this host records.
pub fn of_agent(state: &State) -> anyhow::Result<PathBuf> {
    Ok(state.directory()?.join("agent.recording"))
}
