//! A workload that people run: the servers that it takes, and what clients ask them.

use crate::SceneError;
use crate::load::Load;
use crate::release::Release;
use crate::setup::Setup;
use std::any::Any;

/// A workload that people run.
pub struct Workload {
    /// Its id on a command line and in results.
    pub id: &'static str,
    /// What it is, in half a line.
    pub summary: &'static str,
    /// The servers that it is run on.
    pub releases: &'static [Release],
    /// Starts its servers and fills them.
    pub prepare: fn(&Setup) -> Result<Prepared, SceneError>,
}

/// The servers of a workload, filled; all of them are stopped and removed when this is dropped.
pub struct Prepared {
    /// The databases, that which the clients ask first.
    pub databases: Vec<Watched>,
    /// What is stopped before the servers.
    _before: Box<dyn Any>,
    load: Box<dyn Fn(u32) -> Result<Load, SceneError>>,
}

/// A database of a workload.
#[derive(Debug, Clone)]
pub struct Watched {
    /// What it is there for: `server`, `standby` …
    pub role: &'static str,
    /// Its main process.
    pub pid: u32,
    /// Its data directory, which tells several of one kind apart.
    pub data_directory: String,
}

impl Prepared {
    /// Databases, and the load on them, which holds their servers.
    pub(crate) fn new(
        databases: Vec<Watched>,
        load: impl Fn(u32) -> Result<Load, SceneError> + 'static,
    ) -> Self {
        Self { databases, _before: Box::new(()), load: Box::new(load) }
    }

    /// The same, with what is stopped before the servers are.
    pub(crate) fn with(self, before: impl Any) -> Self {
        Self { _before: Box::new(before), ..self }
    }

    /// Starts its clients, for so many seconds.
    pub fn load(&self, seconds: u32) -> Result<Load, SceneError> {
        (self.load)(seconds)
    }
}
