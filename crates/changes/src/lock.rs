//! Who may change a host, and who may bench: one process at a time.
//!
//! They are two rights, because one lasts longer than the other. A plan is done or undone in a moment,
//! and two of them may follow each other while a bench runs. A bench has its right until its guard
//! has put everything back, so the guard inherits it.

use crate::tree::Tree;
use rustix::fs::{FlockOperation, Mode, OFlags};
use std::fs::{self, File};
use std::io::{self, Read, Seek, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use untax_host::{Host, process};

/// What the lock of the running machine lies on; gone when that starts anew.
const HOST: &str = "/run/untax.lock";

/// What the lock of a bench lies on, in the state directory.
const BENCH: &str = "bench.lock";

/// The file in the state directory that a running steerer locks.
const STEER: &str = "steer.lock";

/// How long a process that is ending is waited for.
const CHANGE_PATIENCE: Duration = Duration::from_secs(2);
/// How long the guard of the last bench is waited for.
const BENCH_PATIENCE: Duration = Duration::from_secs(3);

/// Why a right was not to be had.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process is at work.
    #[error("another untax is changing this host; wait until it has ended")]
    Changing,
    /// Another bench runs, or its guard is at work.
    #[error(
        "another bench is running{}; wait for it, or end it and try again",
        pid.as_ref().map(|pid| format!(" (pid {pid})")).unwrap_or_default()
    )]
    Benching {
        /// Its process, when it can be told.
        pid: Option<String>,
    },
    /// Databases are steered already, or the guard of the last steering is at work.
    #[error(
        "databases are steered already{}; end that by untax steer stop",
        pid.as_ref().map(|pid| format!(" by process {pid}")).unwrap_or_default()
    )]
    Steering {
        /// Its process, when it can be told.
        pid: Option<String>,
    },
    /// What the lock lies on cannot be opened.
    #[error("cannot lock {}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What went wrong.
        source: io::Error,
    },
}

/// A right, held until the last process that has this descriptor closes it.
#[derive(Debug)]
pub struct Lock(File);

impl Lock {
    /// The right to change a host: for one do, or one undo, of a plan. It lies on a file that nobody
    /// but root can open; those who are not root, and a directory in place of `/`, have one on the
    /// root directory.
    pub fn to_change(tree: &Tree) -> Result<Self, LockError> {
        let lock = if tree.is_live() && rustix::process::geteuid().is_root() {
            open(Path::new(HOST), OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW)?
        } else {
            open(tree.root(), OFlags::RDONLY)?
        };
        if lock.is_had_within(CHANGE_PATIENCE) { Ok(lock) } else { Err(LockError::Changing) }
    }

    /// The right to bench: one at a time per state directory.
    pub fn to_bench(state: &Path) -> Result<Self, LockError> {
        Self::of_state(state, BENCH, BENCH_PATIENCE, |pid| LockError::Benching { pid })
    }

    /// The right to steer databases: one process at a time per state directory.
    pub fn to_steer(state: &Path) -> Result<Self, LockError> {
        Self::of_state(state, STEER, BENCH_PATIENCE, |pid| LockError::Steering { pid })
    }

    /// The same, without waiting for a guard that is at work.
    pub fn to_steer_now(state: &Path) -> Result<Self, LockError> {
        Self::of_state(state, STEER, Duration::ZERO, |pid| LockError::Steering { pid })
    }

    fn of_state(
        state: &Path,
        name: &str,
        patience: Duration,
        refusal: impl FnOnce(Option<String>) -> LockError,
    ) -> Result<Self, LockError> {
        let failed = |source| LockError::File { path: state.to_owned(), source };
        fs::create_dir_all(state).map_err(failed)?;
        let mut lock = open(&state.join(name), OFlags::RDWR | OFlags::CREATE)?;
        if !lock.is_had_within(patience) {
            let mut owner = String::new();
            let read = lock.0.read_to_string(&mut owner).is_ok();
            let pid = owner.split(' ').next().filter(|pid| read && !pid.is_empty());
            return Err(refusal(pid.map(str::to_owned)));
        }
        // The numbers are for people, and for those who end the owner; the lock holds without them.
        let _ = lock.0.set_len(0).and_then(|()| lock.0.rewind());
        let own = std::process::id();
        let started = process::stat(&Host::live(), own).into_value().map(|stat| stat.started_ticks);
        let _ = write!(lock.0, "{own} {}", started.unwrap_or_default());
        Ok(lock)
    }

    /// The process that steers, by its number and by when it started, clock ticks since boot: a number may be
    /// used again once its owner was killed and only the guard has the lock.
    pub fn steering_process(state: &Path) -> Option<(u32, u64)> {
        let text = Tree::live().whole(&state.join(STEER).to_string_lossy()).ok()??;
        let (pid, started) = text.split_once(' ')?;
        Some((pid.parse().ok()?, started.trim().parse().ok()?))
    }

    fn is_had_within(&self, patience: Duration) -> bool {
        let began = Instant::now();
        while rustix::fs::flock(&self.0, FlockOperation::NonBlockingLockExclusive).is_err() {
            if began.elapsed() > patience {
                return false;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        true
    }

    /// A descriptor for another process that is to have the right as well.
    pub(crate) fn descriptor(&self) -> io::Result<OwnedFd> {
        Ok(self.0.try_clone()?.into())
    }
}

fn open(path: &Path, flags: OFlags) -> Result<Lock, LockError> {
    let opened = rustix::fs::open(path, flags | OFlags::CLOEXEC, Mode::RUSR | Mode::WUSR);
    opened
        .map(|file| Lock(file.into()))
        .map_err(|errno| LockError::File { path: path.to_owned(), source: errno.into() })
}
