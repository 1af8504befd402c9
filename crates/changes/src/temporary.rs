//! Changes that do not stay: a bench or the lab sets values again and again, and all of them are as
//! before afterwards, whatever ends it.

use crate::guard::{Duty, Guard, GuardError, Program};
use crate::lock::Lock;
use crate::pool;
use crate::receipt::{Holding, Receipt, ReceiptError, header};
use crate::target;
use crate::tree::Tree;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use untax_core::plan::Target;
use untax_core::receipt::{Header, Record, Status};

/// How long it is tried to put all back. A process that is dying gives its pages back within a second,
/// and a server is given a minute to end in good order.
const PATIENCE: Duration = Duration::from_secs(90);
/// Between two attempts.
const PAUSE: Duration = Duration::from_millis(10);

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
    #[error("not restored: {left}; write the values by hand")]
    Left {
        /// The files, with the values to write and why it failed.
        left: String,
    },
}

/// Where the receipts of a bench are, in a state directory. Their own folder, as
/// nobody may undo them while their bench runs.
pub fn folder(state: &Path) -> PathBuf {
    state.join("temporary")
}

/// Targets that are changed, and put back when this is dropped or its process ends.
#[derive(Debug)]
pub struct Temporary {
    tree: Tree,
    receipt: Receipt,
    guard: Guard,
    is_released: bool,
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
            Ok(guard) => Ok(Self { tree: tree.clone(), receipt, guard, is_released: false }),
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
        self.guard.changing()?;
        let target = target.clone();
        self.receipt.add(Record::Holding { target, prior, surplus, boot: boot_id() })?;
        Ok(())
    }

    /// The guard's process.
    pub fn guard_pid(&self) -> u32 {
        self.guard.pid()
    }

    /// Puts all back for now, to be changed again. What does not come back in this time is tried
    /// again in the end.
    pub fn put_back(&self, patience: Duration) {
        put_back(&self.tree, &self.receipt, patience);
    }

    /// Puts all back.
    pub fn release(mut self) -> Result<(), TemporaryError> {
        self.end()
    }

    fn end(&mut self) -> Result<(), TemporaryError> {
        if std::mem::replace(&mut self.is_released, true) {
            return Ok(());
        }
        // Where this fails the guard tries once more.
        undo(&self.tree, self.receipt.clone())?;
        self.guard.done();
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if let Err(error) = self.end() {
            eprintln!("untax: {error}");
        }
    }
}

/// Puts back what an earlier bench and its guard left, both killed: the files that were put back; none
/// is the rule.
pub fn recover(_lock: &Lock, state: &Path, tree: &Tree) -> Result<Vec<String>, TemporaryError> {
    let (receipts, damaged) = Receipt::all(&folder(state));
    if let Some(error) = damaged.into_iter().next() {
        return Err(error.into());
    }
    let mut files = Vec::new();
    for receipt in receipts {
        let is_left = receipt.status() != Status::Reverted;
        let restored = undo(tree, receipt)?;
        files.extend(restored.into_iter().filter(|_| is_left));
    }
    Ok(files)
}

/// Puts all back that a receipt holds, and removes it; the files that were put back.
pub(crate) fn undo(tree: &Tree, receipt: Receipt) -> Result<Vec<String>, TemporaryError> {
    let left = put_back(tree, &receipt, PATIENCE);
    if !left.is_empty() {
        return Err(TemporaryError::Left { left: left.join(", ") });
    }
    let files = of_this_boot(&receipt).filter_map(|held| target::file(held.target)).collect();
    receipt.remove()?;
    Ok(files)
}

/// Puts every value back, trying again until `patience` ends: pages that a dying process still has
/// come back only when it is gone. Gives what could not be put back, in words.
fn put_back(tree: &Tree, receipt: &Receipt, patience: Duration) -> Vec<String> {
    let began = Instant::now();
    loop {
        // The last one first, as with all that is undone.
        let held: Vec<Holding> = of_this_boot(receipt).collect();
        let left = held.iter().rev().filter_map(|held| {
            let why = match put_one_back(tree, held) {
                Ok(true) => return None,
                Ok(false) => "still in use".to_owned(),
                Err(error) => error.to_string(),
            };
            let file = target::file(held.target).unwrap_or_default();
            Some(format!("{file} = {} ({why})", held.prior.unwrap_or_default()))
        });
        let left: Vec<String> = left.collect();
        if left.is_empty() || began.elapsed() >= patience {
            return left;
        }
        std::thread::sleep(PAUSE);
    }
}

fn of_this_boot(receipt: &Receipt) -> impl Iterator<Item = Holding<'_>> {
    let boot = boot_id();
    receipt.holdings().into_iter().filter(move |held| held.boot == boot)
}

/// Writes the prior value unless it is there; whether it is now.
fn put_one_back(tree: &Tree, held: &Holding) -> io::Result<bool> {
    if let (Target::Pool { directory }, Some(prior)) = (held.target, held.prior) {
        let pages = prior.parse().map_err(|_| io::ErrorKind::InvalidData)?;
        return pool::give_back(tree, directory, pages, held.surplus);
    }
    let is_back = || -> io::Result<bool> {
        let now = target::read(tree, held.target)?;
        // The kernel removes its files with what they are about.
        let is_gone = now.is_none() && target::is_of_kernel(held.target);
        Ok(is_gone || now.as_deref() == held.prior)
    };
    if is_back()? {
        return Ok(true);
    }
    target::write(tree, held.target, held.prior)?;
    is_back()
}

/// The kernel's name for this boot: what it set in itself holds until the next one. Empty where it has
/// none, so that values then always hold.
fn boot_id() -> String {
    Tree::live().text("/proc/sys/kernel/random/boot_id").unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const POOL: &str = "/sys/kernel/mm/hugepages/hugepages-2048kB";

    fn left_of(tree: &Tree, target: Target, prior: &str) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        let mut receipt = Receipt::begin(folder.path(), header("a-run", Vec::new(), true)).unwrap();
        let prior = Some(prior.to_owned());
        receipt.add(Record::Holding { target, prior, surplus: 0, boot: boot_id() }).unwrap();
        put_back(tree, &receipt, Duration::ZERO)
    }

    #[test]
    fn what_cannot_be_restored_is_named() {
        let root = tempfile::tempdir().unwrap();
        let tree = Tree::at(root.path());
        let pool = || Target::Pool { directory: POOL.to_owned() };
        tree.replace(&format!("{POOL}/nr_hugepages"), "13\n").unwrap();
        tree.replace(&format!("{POOL}/surplus_hugepages"), "3\n").unwrap();
        let left = left_of(&tree, pool(), "10");
        assert_eq!(left, [format!("{POOL}/nr_hugepages = 10 (still in use)")]);
        tree.remove(&format!("{POOL}/surplus_hugepages")).unwrap();
        assert_eq!(left_of(&tree, pool(), "10").len(), 1);
    }

    #[test]
    fn a_file_that_the_kernel_removed_needs_no_value() {
        let root = tempfile::tempdir().unwrap();
        let limit = Target::Value { file: "/sys/fs/cgroup/a/cpu.max".to_owned() };
        assert_eq!(left_of(&Tree::at(root.path()), limit, "max"), Vec::<String>::new());
    }
}
