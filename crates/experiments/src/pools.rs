//! Pools of huge pages: how many there are, getting more, and giving them back whatever happens.

pub mod guard;
mod journal;
mod tree;

pub use guard::{BenchLock, Guard, GuardError, recover};
pub use journal::{Journal, Setting};
pub use tree::Tree;

use crate::interrupt::{Interrupt, Interrupted};
use std::io;
use std::time::{Duration, Instant};
use untax_core::Bytes;

/// How long the kernel is asked again for pages that it did not find at once: it migrates and
/// compacts meanwhile.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long it is asked again without a single page more.
const PATIENCE_IN_VAIN: Duration = Duration::from_secs(10);
/// Between two askings.
const PAUSE: Duration = Duration::from_millis(500);

/// The mode in which shared memory gets transparent huge pages where a program asks for them.
const ADVISE: &str = "advise";
const SHMEM: &str = "/sys/kernel/mm/transparent_hugepage/shmem_enabled";
const SHMEM_2M: &str = "/sys/kernel/mm/transparent_hugepage/hugepages-2048kB/shmem_enabled";

/// The pool of one page size, on every node that has one.
#[derive(Debug, Clone)]
pub struct Pool {
    size: Bytes,
    /// The host's directory of the pool, for what the kernel counts only there.
    whole: String,
    /// Directories with a `nr_hugepages` to write: one per node, or the host's.
    nodes: Vec<String>,
}

impl Pool {
    /// The pool of a size; `None` when this host has no such pages.
    pub fn find(tree: &Tree, size: Bytes) -> Option<Self> {
        const NODES: &str = "/sys/devices/system/node";
        let name = format!("hugepages/hugepages-{}kB", size.0 >> 10);
        let whole = format!("/sys/kernel/mm/{name}");
        tree.number(&format!("{whole}/nr_hugepages")).ok()?;
        let mut nodes: Vec<String> = tree
            .names(NODES)
            .into_iter()
            .map(|node| format!("{NODES}/{node}/{name}"))
            .filter(|pool| tree.number(&format!("{pool}/nr_hugepages")).is_ok())
            .collect();
        if nodes.is_empty() {
            nodes.push(whole.clone());
        }
        Some(Self { size, whole, nodes })
    }

    /// Pages that nobody has and nobody was promised.
    pub fn free(&self, tree: &Tree) -> io::Result<u64> {
        let free = tree.number(&format!("{}/free_hugepages", self.whole))?;
        let promised = tree.number(&format!("{}/resv_hugepages", self.whole))?;
        Ok(free.saturating_sub(promised))
    }

    /// The pool as it is, to be restored.
    pub fn settings(&self, tree: &Tree) -> io::Result<Vec<Setting>> {
        self.nodes.iter().map(|node| Setting::pool(tree, node)).collect()
    }

    /// Tries to have `pages` free, and says how many are in the end: fewer where memory is
    /// fragmented or short. Never fewer than before.
    pub fn obtain(&self, tree: &Tree, pages: u64, interrupt: &Interrupt) -> Result<u64, PoolError> {
        let began = Instant::now();
        let (mut grew, mut free) = (began, self.free_of(tree)?);
        while free < pages && began.elapsed() < PATIENCE && grew.elapsed() < PATIENCE_IN_VAIN {
            self.grow(tree, pages - free)?;
            let now = self.free_of(tree)?;
            if now > free {
                grew = Instant::now();
            } else {
                // Without this file (kernels without compaction) the retries must do.
                let _ = tree.write("/proc/sys/vm/compact_memory", "1");
            }
            free = now;
            if free < pages {
                interrupt.sleep(PAUSE)?;
            }
        }
        Ok(free)
    }

    /// Asks every node for its share of `more` pages. A node that has no room left gives fewer,
    /// and the next call asks all of them for the rest.
    fn grow(&self, tree: &Tree, more: u64) -> Result<(), PoolError> {
        let nodes = self.nodes.len() as u64;
        for (place, node) in (0..).zip(&self.nodes) {
            let share = more / nodes + u64::from(place < more % nodes);
            if share == 0 {
                continue;
            }
            let now = journal::persistent(tree, node).map_err(at(node))?;
            let file = format!("{node}/nr_hugepages");
            tree.write(&file, &(now + share).to_string()).map_err(at(&file))?;
        }
        Ok(())
    }

    fn free_of(&self, tree: &Tree) -> Result<u64, PoolError> {
        self.free(tree).map_err(at(&self.whole))
    }

    /// The size of its pages.
    pub fn size(&self) -> Bytes {
        self.size
    }
}

/// Why a pool could not be changed.
#[derive(Debug, thiserror::Error)]
pub enum PoolError {
    /// A file could not be read or written.
    #[error("{file}")]
    Io {
        /// The file.
        file: String,
        /// What went wrong.
        source: io::Error,
    },
    /// It was interrupted.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
}

fn at(file: &str) -> impl FnOnce(io::Error) -> PoolError {
    move |source| PoolError::Io { file: file.to_owned(), source }
}

/// The settings that must change for shared memory to get transparent huge pages on request;
/// empty when it does already; `None` when this kernel cannot.
pub fn shared_transparent_settings(tree: &Tree) -> Option<Vec<Setting>> {
    let off = |word: &str| matches!(word, "never" | "deny");
    let host = tree.word(SHMEM).ok()?;
    let mut change = Vec::new();
    if off(&host) {
        change.push(Setting::Word { file: SHMEM.to_owned(), word: host });
    }
    // Kernels before 6.8 have no setting per size.
    if let Ok(word) = tree.word(SHMEM_2M)
        && off(&word)
    {
        change.push(Setting::Word { file: SHMEM_2M.to_owned(), word });
    }
    Some(change)
}

/// Turns transparent huge pages for shared memory on where programs ask for them.
pub fn allow_shared_transparent(tree: &Tree, change: &[Setting]) -> Result<(), PoolError> {
    change.iter().try_for_each(|setting| {
        let file = setting.file();
        tree.write(&file, ADVISE).map_err(at(&file))
    })
}

#[cfg(test)]
mod tests;
