//! The scheduling class of threads: there is no call for it without unsafe code.

use std::io;
use untax_host::process::Scheduling;

/// Gives a thread the class of the loaded `sched_ext` program; false when the thread ended.
pub fn enter_ext(thread: u32) -> io::Result<bool> {
    set(thread, Scheduling::EXT)
}

/// Gives a thread the kernel's default class, with its nice value; false when the thread ended.
pub fn leave_ext(thread: u32) -> io::Result<bool> {
    set(thread, Scheduling::OTHER)
}

#[expect(unsafe_code, reason = "rustix has no call for it")]
fn set(thread: u32, policy: u32) -> io::Result<bool> {
    let (Ok(thread), Ok(policy)) = (libc::pid_t::try_from(thread), libc::c_int::try_from(policy))
    else {
        return Ok(false);
    };
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: the kernel reads the parameters during the call, and keeps no pointer to them.
    let set = unsafe { libc::sched_setscheduler(thread, policy, &raw const parameters) };
    if set == 0 {
        return Ok(true);
    }
    let error = io::Error::last_os_error();
    if error.raw_os_error() == Some(libc::ESRCH) { Ok(false) } else { Err(error) }
}
