//! Pools of huge pages: how many there are, getting more, and giving them back.

use crate::tree::Tree;
use std::io;
use std::time::{Duration, Instant};
use untax_core::Bytes;
use untax_core::plan::Target;

/// How long the kernel is asked again for pages that it did not find at once: it migrates and
/// compacts meanwhile.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long it is asked again without a single page more.
const PATIENCE_IN_VAIN: Duration = Duration::from_secs(10);
/// Between two askings.
const PAUSE: Duration = Duration::from_millis(500);

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

    /// The size of its pages.
    pub fn size(&self) -> Bytes {
        self.size
    }

    /// What is changed when it grows: to be held before.
    pub fn targets(&self) -> impl Iterator<Item = Target> {
        self.nodes.iter().map(|node| Target::Pool { directory: node.clone() })
    }

    /// Pages that were configured, whether free or in use.
    pub fn pages(&self, tree: &Tree) -> Result<u64, PoolError> {
        configured(tree, &self.whole).map_err(|source| self.error(source))
    }

    /// Makes it have so many pages on all nodes together, wherever they are.
    pub fn resize(&self, tree: &Tree, pages: u64) -> Result<(), PoolError> {
        resize(tree, &self.whole, pages).map_err(|source| self.error(source))
    }

    /// Pages that nobody has and nobody was promised.
    pub fn free(&self, tree: &Tree) -> Result<u64, PoolError> {
        self.count_free(tree).map_err(|source| self.error(source))
    }

    fn count_free(&self, tree: &Tree) -> io::Result<u64> {
        let free = tree.number(&format!("{}/free_hugepages", self.whole))?;
        let promised = tree.number(&format!("{}/resv_hugepages", self.whole))?;
        Ok(free.saturating_sub(promised))
    }

    /// Tries to have `pages` free, and gives how many are in the end: fewer where memory is
    /// fragmented or short, or `pause` said to stop. Never fewer than before.
    pub fn obtain(
        &self,
        tree: &Tree,
        pages: u64,
        pause: impl Fn(Duration) -> bool,
    ) -> Result<u64, PoolError> {
        let grow = |free| self.grow(tree, pages - free);
        ask(tree, || self.count_free(tree), |free| free >= pages, grow, pause)
            .map_err(|source| self.error(source))
    }

    fn error(&self, source: io::Error) -> PoolError {
        PoolError { directory: self.whole.clone(), source }
    }

    /// Asks every node for its share of `more` pages. A node that has no room left gives fewer,
    /// and the next call asks all of them for the rest.
    fn grow(&self, tree: &Tree, more: u64) -> io::Result<()> {
        let nodes = self.nodes.len() as u64;
        for (place, node) in (0..).zip(&self.nodes) {
            let share = more / nodes + u64::from(place < more % nodes);
            if share > 0 {
                set(tree, node, configured(tree, node)? + share)?;
            }
        }
        Ok(())
    }
}

/// A pool could not be read or set.
#[derive(Debug, thiserror::Error)]
#[error("{directory}")]
pub struct PoolError {
    /// Its directory.
    pub directory: String,
    /// What went wrong.
    pub source: io::Error,
}

/// Pages of a pool that were configured: `nr_hugepages` counts surplus ones, too.
pub fn configured(tree: &Tree, directory: &str) -> io::Result<u64> {
    Ok(total(tree, directory)?.saturating_sub(surplus(tree, directory)?))
}

/// Pages beyond those configured: they are in use, and go when they become free.
pub fn surplus(tree: &Tree, directory: &str) -> io::Result<u64> {
    tree.number(&format!("{directory}/surplus_hugepages"))
}

fn total(tree: &Tree, directory: &str) -> io::Result<u64> {
    tree.number(&format!("{directory}/nr_hugepages"))
}

fn set(tree: &Tree, directory: &str, pages: u64) -> io::Result<()> {
    tree.write(&format!("{directory}/nr_hugepages"), &pages.to_string())
}

/// Makes a pool have so many pages configured; an error when the kernel does not find as many.
/// Pages beyond those that are in use become surplus.
pub fn resize(tree: &Tree, directory: &str, pages: u64) -> io::Result<()> {
    set(tree, directory, pages)?;
    let now = ask(
        tree,
        || configured(tree, directory),
        |now| now == pages,
        |_| set(tree, directory, pages),
        |pause| {
            std::thread::sleep(pause);
            true
        },
    )?;
    if now == pages {
        return Ok(());
    }
    Err(io::Error::other(format!(
        "asked for {pages} huge pages, got {now}: memory is too fragmented or in use; reserve them \
         at boot, or free memory and try again"
    )))
}

/// Asks the kernel until there is enough, until it finds no more for a while, or until `pause` says
/// to stop; gives what there is then.
fn ask(
    tree: &Tree,
    count: impl Fn() -> io::Result<u64>,
    is_enough: impl Fn(u64) -> bool,
    ask: impl Fn(u64) -> io::Result<()>,
    pause: impl Fn(Duration) -> bool,
) -> io::Result<u64> {
    let (began, mut now) = (Instant::now(), count()?);
    let mut grew = began;
    while !is_enough(now) && began.elapsed() < PATIENCE && grew.elapsed() < PATIENCE_IN_VAIN {
        ask(now)?;
        let before = std::mem::replace(&mut now, count()?);
        if now > before {
            grew = Instant::now();
        } else {
            // Without this file (kernels without compaction) asking again must do.
            let _ = tree.write("/proc/sys/vm/compact_memory", "1");
        }
        if !is_enough(now) && !pause(PAUSE) {
            break;
        }
    }
    Ok(now)
}

/// Gives the pages back that a pool got since it had so many configured and so many surplus ones.
/// Whether all came back: those that are in use do when their user ends, and this is to be called
/// again then.
pub fn give_back(tree: &Tree, directory: &str, pages: u64, surplus_then: u64) -> io::Result<bool> {
    let is_back = || -> io::Result<bool> {
        Ok(configured(tree, directory)? == pages && surplus(tree, directory)? <= surplus_then)
    };
    if is_back()? {
        return Ok(true);
    }
    // Pages whose user ended while their pool shrank are free and stay surplus: the kernel gives
    // them back only after they have become ordinary ones, as all that are asked for are.
    set(tree, directory, total(tree, directory)?)?;
    set(tree, directory, pages)?;
    is_back()
}

#[cfg(test)]
#[path = "pool_tests.rs"]
mod tests;
