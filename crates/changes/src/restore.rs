//! Putting back what a receipt holds: values that were set again and again.

use crate::pool;
use crate::receipt::{Holding, Receipt, ReceiptError};
use crate::target;
use crate::tree::Tree;
use std::io;
use std::time::{Duration, Instant};
use untax_core::plan::Target;

/// How long to try to put everything back. A dying process gives its pages back within a second, and a
/// server gets a minute to shut down.
pub const PATIENCE: Duration = Duration::from_secs(90);
/// Between two attempts.
const PAUSE: Duration = Duration::from_millis(10);

/// Why a value is not what it was.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// It could not be put back.
    #[error("not restored: {left}; write the values by hand")]
    Left {
        /// The files, with the values to write and why it failed.
        left: String,
    },
    /// All is put back, but the receipt cannot be removed.
    #[error(transparent)]
    Receipt(#[from] ReceiptError),
}

/// Puts back everything that a receipt holds, then removes the receipt; the files that were put back.
/// Tries again until `patience` ends, and keeps the receipt when something is left.
pub fn undo(
    tree: &Tree,
    receipt: Receipt,
    patience: Duration,
) -> Result<Vec<String>, RestoreError> {
    let left = put_back(tree, &receipt, patience);
    if !left.is_empty() {
        return Err(RestoreError::Left { left: left.join(", ") });
    }
    let files = of_this_boot(&receipt).filter_map(|held| target::file(held.target)).collect();
    receipt.remove()?;
    Ok(files)
}

/// Puts every value back, trying again until `patience` ends: pages that a dying process still has
/// come back only when it is gone. Gives what could not be put back, in words.
pub fn put_back(tree: &Tree, receipt: &Receipt, patience: Duration) -> Vec<String> {
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
    // A cpuset that has none of a thread's CPUs hides its mask, and the kernel uses that again later.
    let may_hide = matches!(held.target, Target::Affinity { .. });
    if !may_hide && is_back()? {
        return Ok(true);
    }
    target::write(tree, held.target, held.prior)?;
    is_back()
}

/// The kernel's name for this boot: what it set in itself holds until the next one. Empty where it has
/// none, so that values then always hold.
pub fn boot_id() -> String {
    Tree::live().text("/proc/sys/kernel/random/boot_id").unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::receipt::header;
    use untax_core::receipt::Record;

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
