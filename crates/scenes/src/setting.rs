//! Settings of the host, which a guard puts back however this process ends.
//!
//! Settings of the whole machine are changed as all else that untax changes: `untax_changes` keeps
//! their prior values, and its guard puts them back. So a program that uses them calls
//! `untax_changes::guard::main` first of all. A [`Setting`] of something that a scene makes (a limit
//! of a control group or of a disk) has a shell, like the thing itself (see `shell.rs`): a line for
//! one device is written, and cannot be read back as it was written.

use crate::account::is_root;
use crate::program::host_text;
use crate::shell::Shell;
use crate::{SceneError, error::at};
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::path::Path;
use untax_changes::{Pool, Program, Temporary, Tree, recover, target};
use untax_core::Bytes;
use untax_core::plan::Target;

const SETTINGS: &str = "/sys/kernel/mm";
const THP: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
const SHARED_THP: &str = "/sys/kernel/mm/transparent_hugepage/shmem_enabled";

/// Where prior values are kept: only root may write there, and a boot, which resets the settings,
/// empties it.
const PRIOR_VALUES: &str = "/run/untax";

/// A lock for the whole machine: its owner alone changes settings or measures. One program or test at a
/// time holds it, until dropped. If the owner is killed, the lock stays until every guard and shell that
/// the owner started has cleaned up.
pub struct Turn {
    locked: OwnedFd,
}

impl Turn {
    /// Waits for the lock, however long another process holds it. Then it puts back the settings of an
    /// owner that was killed together with its guard.
    pub fn wait() -> Result<Self, SceneError> {
        // It locks the directory of the settings itself, which needs no privilege and no file. Children
        // inherit it: when this process is killed, the guards and shells that put settings back hold the
        // lock until they end. An `untax_changes::Lock` is not inherited: a guard has it only if it is
        // handed one.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let failed = |errno: Errno| at(SETTINGS)(errno.into());
        let directory = rustix::fs::open(SETTINGS, flags, Mode::empty()).map_err(failed)?;
        rustix::fs::flock(&directory, FlockOperation::LockExclusive).map_err(failed)?;
        let turn = Self { locked: directory };
        recover(Path::new(PRIOR_VALUES), &Tree::live())?;
        Ok(turn)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        // Closing it is not enough: a child that lives on, such as that of another test, has it open too.
        let _ = rustix::fs::flock(&self.locked, FlockOperation::Unlock);
    }
}

/// One file of the kernel's settings; its prior value comes back when this is dropped.
pub struct Setting {
    _guard: Shell,
    path: String,
    value: String,
}

/// Another value of a setting; the first one comes back when this is dropped. If this
/// process is killed, the guard of the [`Setting`] puts back the value from before that.
pub struct Override {
    path: String,
    value: String,
}

impl Drop for Override {
    fn drop(&mut self) {
        // What the setting belongs to may be gone by now.
        let _ = std::fs::write(&self.path, &self.value);
    }
}

impl Setting {
    pub(crate) fn set(path: &str, prior: &str, value: &str) -> Result<Self, SceneError> {
        // What the setting belongs to, such as a control group, may be gone by then.
        let restore = r#"{ printf %s "$2" >"$1"; } 2>/dev/null"#;
        let guard = Shell::guard("echo", restore, &[path, prior])?;
        std::fs::write(path, value).map_err(at(path))?;
        Ok(Self { _guard: guard, path: path.to_owned(), value: value.to_owned() })
    }

    /// Writes what this makes of its value until that is dropped.
    pub(crate) fn replace_value(
        &self,
        other: impl Fn(&str) -> String,
    ) -> Result<Override, SceneError> {
        let guard = Override { path: self.path.clone(), value: self.value.clone() };
        std::fs::write(&self.path, other(&self.value)).map_err(at(&self.path))?;
        Ok(guard)
    }
}

/// A pool of huge pages of one size, given back when dropped.
///
/// Two at the same time would put back each other's numbers: take a [`Turn`] first.
pub struct HugePages {
    _changes: Temporary,
    tree: Tree,
    pool: Pool,
    prior: Idle,
}

/// Pages of a pool, without surplus pages: a write to the pool's size sets the number of the others.
#[derive(Clone, Copy)]
struct Idle {
    pages: u64,
    /// How many of them no process has allocated or reserved.
    idle: u64,
}

impl Idle {
    fn of(pool: &Pool, tree: &Tree) -> Result<Self, SceneError> {
        Ok(Self { pages: pool.pages(tree)?, idle: pool.free(tree)? })
    }

    /// The size of the pool without the pages that have become idle since `prior`. Pages that were idle
    /// before stay: they are meant for another program, such as a database that is to start.
    fn pages_to_keep(self, prior: Self) -> u64 {
        self.pages.saturating_sub(self.idle.saturating_sub(prior.idle)).max(prior.pages)
    }
}

impl HugePages {
    /// Grows the pool of 2 MiB by `pages`. Fails, and gives all back, when the kernel finds fewer within
    /// a minute.
    pub fn reserve(pages: u64) -> Result<Self, SceneError> {
        Self::reserve_of(Bytes::MIB_2, pages)
    }

    /// The same of pages of another size.
    pub fn reserve_of(size: Bytes, pages: u64) -> Result<Self, SceneError> {
        let tree = Tree::live();
        let pool = Pool::find(&tree, size).ok_or_else(|| SceneError::Host {
            why: format!("this kernel has no huge pages of {size}"),
        })?;
        let prior = Idle::of(&pool, &tree)?;
        let changes = hold(&tree, pool.targets())?;
        let wanted = prior.idle + pages;
        let free = pool.obtain(&tree, wanted, |pause| {
            std::thread::sleep(pause);
            true
        })?;
        if free < wanted {
            let got = free.saturating_sub(prior.idle);
            return Err(SceneError::Pool { size, wanted: pages, got });
        }
        Ok(Self { _changes: changes, tree, pool, prior })
    }

    /// Memory in pages that were allocated or reserved by processes since.
    pub fn used(&self) -> Result<Bytes, SceneError> {
        let now = Idle::of(&self.pool, &self.tree)?;
        let used = |idle: Idle| idle.pages.saturating_sub(idle.idle);
        Ok(Bytes(used(now).saturating_sub(used(self.prior)) * self.pool.size().0))
    }

    /// Gives back the pages that no process has allocated or reserved.
    pub fn trim(&self) -> Result<(), SceneError> {
        let kept = Idle::of(&self.pool, &self.tree)?.pages_to_keep(self.prior);
        Ok(self.pool.resize(&self.tree, kept)?)
    }
}

/// The mode of transparent huge pages, put back when dropped. Take a [`Turn`] first.
pub struct Thp {
    _changes: Temporary,
}

impl Thp {
    /// Sets `always`, `madvise` or `never`.
    pub fn set(mode: &str) -> Result<Self, SceneError> {
        let word = Target::Word { file: THP.to_owned() };
        Ok(Self { _changes: change([(word, mode.to_owned())])? })
    }

    /// The same for memory of processes' own and for shared memory, which servers map when they start.
    pub fn set_both(own: &str, shared: &str) -> Result<Self, SceneError> {
        let word = |file: &str| Target::Word { file: file.to_owned() };
        let both = [(word(THP), own.to_owned()), (word(SHARED_THP), shared.to_owned())];
        Ok(Self { _changes: change(both)? })
    }
}

/// Whether the kernel moves memory to the threads that use it (`kernel.numa_balancing`), put back when dropped.
/// Take a [`Turn`] first.
pub struct NumaBalancing {
    _changes: Temporary,
}

impl NumaBalancing {
    /// Switches it on or off; an error where this kernel does not have it.
    pub fn set(on: bool) -> Result<Self, SceneError> {
        let value = Target::Value { file: "/proc/sys/kernel/numa_balancing".to_owned() };
        Ok(Self { _changes: change([(value, u8::from(on).to_string())])? })
    }
}

/// How much of memory changed pages may fill, put back when dropped. Take a [`Turn`] first.
pub struct DirtyLimits {
    _changes: Temporary,
}

impl DirtyLimits {
    /// Sets from how many bytes on the kernel writes in the background, and from how many it holds
    /// writers back.
    pub fn set(background: Bytes, foreground: Bytes) -> Result<Self, SceneError> {
        let limit = |name: &str, wanted: Bytes| {
            let what = format!("/proc/sys/vm/{name}");
            (Target::Dirty { what }, wanted.0.to_string())
        };
        let limits = [limit("dirty_background", background), limit("dirty", foreground)];
        Ok(Self { _changes: change(limits)? })
    }
}

/// Gives targets other values until this is dropped.
pub(crate) fn change<const N: usize>(
    values: [(Target, String); N],
) -> Result<Temporary, SceneError> {
    let tree = Tree::live();
    let changes = hold(&tree, values.iter().map(|(target, _)| target.clone()))?;
    for (target, value) in values {
        let file = target::file(&target).unwrap_or_default();
        target::write(&tree, &target, Some(&value)).map_err(at(file))?;
    }
    Ok(changes)
}

/// Holds targets, which may be changed until this is dropped. The guard that puts them back inherits
/// the lock of a [`Turn`], so other programs wait for it.
fn hold(tree: &Tree, targets: impl Iterator<Item = Target>) -> Result<Temporary, SceneError> {
    if !is_root() {
        return Err(SceneError::NeedsRoot { what: "a setting of this host" });
    }
    // Two guards never undo each other's: a process id may come again.
    let run = format!("scene-{}", host_text("/proc/sys/kernel/random/uuid")?.trim());
    let program = Program::this();
    let mut changes = Temporary::begin(&program, Path::new(PRIOR_VALUES), None, tree, &run)?;
    for target in targets {
        changes.hold(&target)?;
    }
    Ok(changes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_that_were_idle_before_stay() {
        let pool = |pages, idle| Idle { pages, idle };
        assert_eq!(pool(160, 30).pages_to_keep(pool(0, 0)), 130);
        assert_eq!(pool(260, 130).pages_to_keep(pool(100, 100)), 230, "100 are idle as before");
        assert_eq!(
            pool(260, 200).pages_to_keep(pool(100, 0)),
            100,
            "others gave some back meanwhile"
        );
        assert_eq!(pool(260, 20).pages_to_keep(pool(100, 50)), 260, "others took some meanwhile");
    }
}
