//! Commits of a PostgreSQL, predicted from the disk and measured.
//!
//! A single client commits once for each flush of the log: the time of a commit is that of a flushed record
//! and that of all else. All else is measured once for each arm, with a server that flushes nothing.

use super::spec::Job;
use super::trial::{answer, rate, spawn};
use super::volumes::Made;
use crate::platform::{Measured, Running, Trouble};
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;
use untax_changes::Program;
use untax_scenes::{Database, Kind, Postgres, SceneError, Settings, Setup, Work};
use untax_trials::Interrupt;

/// Few rows, so that each page's first change after a checkpoint, which puts the whole page into the log,
/// happens while the server warms up.
const ROWS_MIB: u64 = 15;

/// Seconds of a run whose result is not used, and of one whose result is.
const WARM_UP_S: u32 = 2;
const RUN_S: u32 = 2;

/// How long records of a log are timed beside each run.
const RECORDS: Duration = Duration::from_secs(1);

/// As in production, but without a checkpoint in the middle of a trial, and with a log that is small enough
/// for the volume. Recycled segments were written in full when they were made.
const FLUSHED: Settings = &[
    ("fsync", "on"),
    ("synchronous_commit", "on"),
    ("wal_sync_method", "fdatasync"),
    ("max_wal_size", "256MB"),
    ("checkpoint_timeout", "1h"),
    ("shared_buffers", "64MB"),
];

/// The same without flushes.
const UNFLUSHED: Settings = &[
    ("fsync", "off"),
    ("synchronous_commit", "on"),
    ("max_wal_size", "256MB"),
    ("checkpoint_timeout", "1h"),
    ("shared_buffers", "64MB"),
];

/// Commits a second of one client, where a flushed record takes so long and all else that long.
fn predicted(record_s: f64, unflushed_per_s: f64) -> f64 {
    (record_s + unflushed_per_s.recip()).recip()
}

/// A PostgreSQL that runs, and the log beside it.
pub(crate) struct Commits {
    program: Program,
    job: Job,
    postgres: Rc<RefCell<Postgres>>,
    unflushed: f64,
}

impl Commits {
    /// Starts the server of a volume; makes it, and measures all but its flushes, the first time.
    pub(crate) fn start(program: Program, job: Job, made: &mut Made) -> Result<Self, Trouble> {
        let trouble = |error: SceneError| Trouble::of(&error);
        let postgres = if let Some(postgres) = &made.postgres {
            Rc::clone(postgres)
        } else {
            let postgres = make(made).map_err(trouble)?;
            Rc::clone(made.postgres.insert(Rc::new(RefCell::new(postgres))))
        };
        let unflushed = if let Some(unflushed) = made.unflushed {
            unflushed
        } else {
            let measured = without_flushes(&mut postgres.borrow_mut()).map_err(trouble)?;
            *made.unflushed.insert(measured)
        };
        let job = Job { length: RECORDS, ..job };
        let commits = Self { program, job, postgres, unflushed };
        commits.restart().map_err(trouble)?;
        Ok(commits)
    }

    fn restart(&self) -> Result<(), SceneError> {
        let mut postgres = self.postgres.borrow_mut();
        postgres.restart(FLUSHED)?;
        run(&postgres, WARM_UP_S).map(drop)
    }
}

impl Drop for Commits {
    fn drop(&mut self) {
        // Other cells of this arm are measured without it.
        self.postgres.borrow_mut().stop();
    }
}

fn make(made: &Made) -> Result<Postgres, SceneError> {
    let directory = made.directory().join("postgres");
    std::fs::create_dir(&directory)
        .map_err(|source| SceneError::File { path: directory.clone(), source })?;
    let setup =
        Setup { disk: Some(&directory), durable: true, settings: UNFLUSHED, ..Setup::default() };
    let postgres = Postgres::start_as(&setup)?;
    postgres.fill(ROWS_MIB)?;
    Ok(postgres)
}

fn without_flushes(postgres: &mut Postgres) -> Result<f64, SceneError> {
    postgres.restart(UNFLUSHED)?;
    run(postgres, WARM_UP_S)?;
    run(postgres, RUN_S)
}

fn run(postgres: &Postgres, seconds: u32) -> Result<f64, SceneError> {
    postgres.work(Work { kind: Kind::Writes, clients: 1 }, ROWS_MIB, seconds)?.finish()
}

impl Running for Commits {
    fn trial(&mut self, interrupt: &Interrupt) -> Result<Measured, Trouble> {
        let outcome = answer(spawn(&self.program, &self.job)?, interrupt)?;
        let records =
            outcome.log.ok_or_else(|| Trouble::Failed("no record was flushed".to_owned()))?;
        interrupt.check()?;
        let measured = run(&self.postgres.borrow(), RUN_S).map_err(|error| Trouble::of(&error))?;
        let predicted = predicted(rate(&records, 1.0).recip(), self.unflushed);
        Ok(Measured::of(measured)
            .counting(measured * f64::from(RUN_S))
            .with("predicted", predicted, "commits/s")
            .with("measured-over-predicted", measured / predicted, "")
            .with("without-flushes", self.unflushed, "commits/s")
            .with("record-mean", records.mean_us, "us"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_takes_a_record_and_all_else() {
        assert!((predicted(250e-6, 4000.0) - 2000.0).abs() < 1e-6);
        let free = predicted(0.0, 4000.0);
        assert!((free - 4000.0).abs() < 1e-6, "a log that costs nothing leaves the rest");
    }
}
