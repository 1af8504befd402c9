//! Changes that do not stay: a bench or the lab sets values again and again, and all of them are as
//! before afterwards, whatever ends it.

use crate::guard::{Duty, Guard, GuardError, Program};
use crate::lock::Lock;
use crate::pool;
use crate::receipt::{Receipt, ReceiptError, header};
use crate::restore::{self, RestoreError};
use crate::target;
use crate::tree::Tree;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use untax_core::plan::Target;
use untax_core::receipt::{Header, Record, Status};

/// How long a drop tries to put everything back before it leaves that to the guard. Values come back
/// at once, and so do the pages of a server that has ended.
const PATIENCE_OF_DROP: Duration = Duration::from_secs(1);

/// Why changes that do not stay were not made, or not put back.
#[derive(Debug, thiserror::Error)]
pub enum TemporaryError {
    /// Nobody would put them back.
    #[error(transparent)]
    Guard(#[from] GuardError),
    /// A prior value cannot be saved, or read again.
    #[error(transparent)]
    Receipt(#[from] ReceiptError),
    /// A prior value cannot be read.
    #[error("cannot read {file}; nothing more is changed")]
    Read {
        /// The file.
        file: String,
        /// What went wrong.
        source: io::Error,
    },
    /// Something could not be put back.
    #[error(transparent)]
    Restore(#[from] RestoreError),
}

/// Where the receipts of a bench are, in a state directory. They have a folder of their own, because
/// nobody may undo them while their bench runs.
pub fn folder(state: &Path) -> PathBuf {
    state.join("temporary")
}

/// Targets that are changed, and put back when this is dropped or its process ends. Pages that a
/// server still has when this is dropped are given back by the guard once the server ends.
#[derive(Debug)]
pub struct Temporary {
    tree: Tree,
    receipt: Receipt,
    duty: Duty,
    /// `None` once everything is back.
    guard: Option<Guard>,
}

impl Temporary {
    /// Starts a receipt in a folder, by the name of the run, and the guard, which has the lock as
    /// well. Nothing is held yet.
    pub fn begin(
        program: &Program,
        receipts: &Path,
        lock: Option<&Lock>,
        tree: &Tree,
        run: &str,
    ) -> Result<Self, TemporaryError> {
        let header = Header { receipt: run.to_owned(), ..header(run, Vec::new(), true) };
        let receipt = Receipt::begin(receipts, header)?;
        let duty = Duty {
            root: tree.root().to_owned(),
            receipts: receipts.to_owned(),
            plan: run.to_owned(),
            again: Vec::new(),
            restart: None,
            clean: None,
        };
        match Guard::start(program, &duty, lock) {
            Ok(guard) => Ok(Self { tree: tree.clone(), receipt, duty, guard: Some(guard) }),
            Err(error) => {
                receipt.remove()?;
                Err(error.into())
            }
        }
    }

    /// Saves the value of a target, which may be changed from now on. The first value counts.
    pub fn hold(&mut self, target: &Target) -> Result<(), TemporaryError> {
        if self.receipt.holdings().iter().any(|held| held.target == target) {
            return Ok(());
        }
        let read = || -> io::Result<(Option<String>, u64)> {
            let surplus = match target {
                Target::Pool { directory } => pool::surplus(&self.tree, directory)?,
                _ => 0,
            };
            Ok((target::read(&self.tree, target)?, surplus))
        };
        let file = || target::file(target).unwrap_or_default();
        let (prior, surplus) =
            read().map_err(|source| TemporaryError::Read { file: file(), source })?;
        if let Some(guard) = &mut self.guard {
            guard.changing()?;
        }
        let target = target.clone();
        self.receipt.add(Record::Holding { target, prior, surplus, boot: restore::boot_id() })?;
        Ok(())
    }

    /// Starts another guard when the one there was has ended; whether it had.
    pub fn renew_guard(
        &mut self,
        program: &Program,
        lock: Option<&Lock>,
    ) -> Result<bool, TemporaryError> {
        if !self.guard.as_mut().is_some_and(Guard::has_ended) {
            return Ok(false);
        }
        let mut guard = Guard::start(program, &self.duty, lock)?;
        guard.changing()?;
        self.guard = Some(guard);
        Ok(true)
    }

    /// The guard's process.
    pub fn guard_pid(&self) -> Option<u32> {
        self.guard.as_ref().map(Guard::pid)
    }

    /// Puts all back for now, to be changed again. What does not come back in this time is tried
    /// again in the end.
    pub fn put_back(&self, patience: Duration) {
        restore::put_back(&self.tree, &self.receipt, patience);
    }

    /// Puts everything back, and waits for pages that are still in use.
    pub fn release(mut self) -> Result<(), TemporaryError> {
        let Some(mut guard) = self.guard.take() else { return Ok(()) };
        let restored = restore::undo(&self.tree, self.receipt.clone(), restore::PATIENCE);
        // Where that failed, the guard would fail as well. The receipt stays for the next start.
        guard.done();
        restored?;
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let Some(mut guard) = self.guard.take() else { return };
        match restore::undo(&self.tree, self.receipt.clone(), PATIENCE_OF_DROP) {
            Ok(_) => guard.done(),
            Err(_) => guard.leave(),
        }
    }
}

/// Puts back the changes of an earlier bench or lab that was killed together with its guard, by the
/// receipts in a folder: the files that were put back, usually none. Take the lock under which such
/// changes are made first.
pub fn recover(receipts: &Path, tree: &Tree) -> Result<Vec<String>, TemporaryError> {
    let (receipts, damaged) = Receipt::all(receipts);
    if let Some(error) = damaged.into_iter().next() {
        return Err(error.into());
    }
    let mut files = Vec::new();
    for receipt in receipts {
        let is_left = receipt.status() != Status::Reverted;
        let restored = restore::undo(tree, receipt, restore::PATIENCE)?;
        files.extend(restored.into_iter().filter(|_| is_left));
    }
    Ok(files)
}
