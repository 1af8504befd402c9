//! What the journal says of a steering that runs or that was killed, and ending it.

use crate::steering::{folder, put_back_rest};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::Serialize;
use std::path::Path;
use std::time::Duration;
use untax_changes::{Lock, LockError, Receipt, TemporaryError, affinity, class};
use untax_core::cpus::Cpus;
use untax_core::plan::Target;
use untax_host::{Host, process};

/// How long a steering has to put its threads back.
const PATIENCE: Duration = Duration::from_secs(100);

/// What the journal and the threads say.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Status {
    /// The process that steers, where one does.
    pub pid: Option<u32>,
    /// The run's id; none where nothing is left to be put back.
    pub run: Option<String>,
    /// Masks that were given to threads.
    pub masks: Vec<Left>,
}

/// A mask in the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Left {
    /// The main process whose threads got it.
    pub pid: u32,
    /// The CPUs; none where a program in the kernel places the threads.
    pub cpus: Option<Cpus>,
    /// Threads that have it now, or that the program places.
    pub threads: u64,
}

/// Why steering was not ended.
#[derive(Debug, thiserror::Error)]
pub enum StopError {
    /// It cannot be signalled.
    #[error("process {pid} steers databases and cannot be ended; run as its user, or as root")]
    Signal {
        /// The process.
        pid: u32,
        /// Why.
        source: std::io::Error,
    },
    /// It goes on.
    #[error("process {pid} has not ended within {} s; look at untax steer status", PATIENCE.as_secs())]
    GoesOn {
        /// The process.
        pid: u32,
    },
    /// What a killed one left cannot be put back.
    #[error(transparent)]
    Rest(#[from] TemporaryError),
    /// Who steers is not known.
    #[error(transparent)]
    Lock(#[from] LockError),
}

/// What the journal and the threads of a state directory say.
pub fn status(state: &Path) -> Result<Status, StopError> {
    let pid = match steerer(state)? {
        Some(Owner::Process(pid)) => pid,
        _ => None,
    };
    let (receipts, damaged) = Receipt::all(&folder(state));
    if let Some(error) = damaged.into_iter().next() {
        return Err(TemporaryError::from(error).into());
    }
    let held = receipts.iter().flat_map(Receipt::holdings);
    let masks = held.filter_map(|held| match held.target {
        Target::Affinity { family, cpus } => Some(Left {
            pid: family.root,
            cpus: Some(cpus.clone()),
            threads: affinity::narrowed(family, cpus).unwrap_or(0),
        }),
        Target::Class { family } => {
            Some(Left { pid: family.root, cpus: None, threads: class::count(family).unwrap_or(0) })
        }
        _ => None,
    });
    let masks = masks.collect();
    Ok(Status { pid, run: receipts.first().map(|receipt| receipt.id().to_owned()), masks })
}

/// Ends steering and waits until all is put back: whether there was one, and what a killed one had left.
pub fn stop(state: &Path) -> Result<(bool, Vec<String>), StopError> {
    let pid = match steerer(state)? {
        None => return Ok((false, Vec::new())),
        // Nobody steers, so nobody but this process puts back what was left.
        Some(Owner::Nobody(_lock)) => return Ok((false, put_back_rest(state)?)),
        Some(Owner::Process(pid)) => pid,
    };
    if let Some(pid) = pid {
        end(state, pid)?;
    }
    // The guard has the lock for as long as it is at work.
    let _lock = Lock::to_steer(state)?;
    Ok((true, put_back_rest(state)?))
}

/// Who has the right to steer.
enum Owner {
    /// A process, or its guard; the number where it can be told.
    Process(Option<u32>),
    /// Nobody but this one.
    Nobody(Lock),
}

/// Who has the right to steer; `None` where there is no such state directory.
fn steerer(state: &Path) -> Result<Option<Owner>, StopError> {
    if !state.is_dir() {
        return Ok(None);
    }
    match Lock::to_steer_now(state) {
        Ok(lock) => Ok(Some(Owner::Nobody(lock))),
        Err(LockError::Steering { pid }) => {
            Ok(Some(Owner::Process(pid.and_then(|pid| pid.trim().parse().ok()))))
        }
        Err(error) => Err(error.into()),
    }
}

/// Tells a process to end, and waits for that. One that was started at another moment has only its number: the
/// steering was killed, and its guard is at work.
fn end(state: &Path, pid: u32) -> Result<(), StopError> {
    let failed = |errno: Errno| StopError::Signal { pid, source: errno.into() };
    let Some(raw) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return Ok(()) };
    let process = match pidfd_open(raw, PidfdFlags::empty()) {
        Err(Errno::SRCH) => return Ok(()),
        opened => opened.map_err(failed)?,
    };
    // Read after it was opened: the descriptor means this process from then on.
    let stat = process::stat(&Host::live(), pid).into_value();
    let now = stat.map(|stat| (pid, stat.started_ticks));
    if now.is_none() || now != Lock::steering_process(state) {
        return Ok(());
    }
    match pidfd_send_signal(&process, Signal::TERM) {
        Err(Errno::SRCH) => return Ok(()),
        sent => sent.map_err(failed)?,
    }
    let timeout = Timespec::try_from(PATIENCE).ok();
    let ended = poll(&mut [PollFd::new(&process, PollFlags::IN)], timeout.as_ref());
    if ended.map_err(failed)? == 0 { Err(StopError::GoesOn { pid }) } else { Ok(()) }
}
