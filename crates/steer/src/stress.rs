//! Masks that change as fast as they can be set: for tests that kill the process that sets them.

use crate::order::SteerError;
use crate::steering::{folder, put_back_rest};
use crate::threads::{Machine, Threads};
use std::path::Path;
use std::time::Duration;
use untax_changes::{Lock, Program, Temporary, Tree};
use untax_core::cpus::Cpus;

/// Gives the threads of a process these CPUs by turns, for ever. Prints the guard's process first.
pub fn flip(state: &Path, pid: u32, masks: &[Cpus], pause: Duration) -> Result<(), SteerError> {
    let lock = Lock::to_steer(state)?;
    put_back_rest(state)?;
    let mut machine = Machine::live();
    let name = pid.to_string();
    let ended = SteerError::Ended { name: name.clone(), pid };
    let Some(mut threads) = Threads::of(&machine.host, pid).into_value() else { return Err(ended) };
    let mut journal = Temporary::begin(
        &Program::this(),
        &folder(state),
        Some(&lock),
        &Tree::live(),
        "steer-test",
    )?;
    eprintln!("{}", journal.guard_pid().unwrap_or_default());
    for mask in masks.iter().cycle() {
        let given = threads.give(&mut machine, &[pid], &mut journal, mask);
        given.map_err(|source| SteerError::Refused { name: name.clone(), source })?;
        std::thread::sleep(pause);
    }
    Ok(())
}
