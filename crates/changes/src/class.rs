//! The scheduling class of threads: that of a `sched_ext` program, and back.
//!
//! A thread keeps that class when its program is gone; the kernel schedules it by default then, until another
//! program is loaded. So it is put back like a mask.

use crate::affinity::{Processes, threads, until_clean};
use std::io;
use untax_core::plan::Family;
use untax_host::{Host, process};
use untax_probes::scheduling_class;

/// How a thread is scheduled; `None` when it ended.
pub fn of_thread(host: &Host, pid: u32, thread: u32) -> Option<process::Scheduling> {
    let path = format!("/proc/{pid}/task/{thread}/stat");
    host.text(&path).parse(&path, |text| process::parse_scheduling(text)).into_value()
}

/// Gives a thread the class of the loaded program; false when it ended.
pub fn enter(thread: u32) -> io::Result<bool> {
    scheduling_class::enter_ext(thread)
}

/// How many threads of a family have the class of a `sched_ext` program.
pub fn count(family: &Family) -> io::Result<u64> {
    each(family, |_| Ok(true))
}

/// Gives all threads of a family the default class again. Nobody else gives threads that class while its
/// program is loaded: there can be one program only.
pub fn leave(family: &Family) -> io::Result<()> {
    until_clean(|_| each(family, scheduling_class::leave_ext))
}

/// Acts on each thread of a family, and of orphans that may be of it, that has the class: on how many.
fn each(family: &Family, act: impl Fn(u32) -> io::Result<bool>) -> io::Result<u64> {
    let (host, mut processes) = (Host::live(), Processes::default());
    if let Some(why) = processes.look_anew(&host).why() {
        return Err(io::Error::other(format!("/proc: {why}")));
    }
    let tree = processes.descendants(family, |_| false);
    let orphans = processes.orphans(&host, family, &tree);
    let mut all = 0;
    for pid in tree.into_iter().chain(orphans) {
        for thread in threads(&host, pid) {
            let now = of_thread(&host, pid, thread);
            if now.is_some_and(|now| now.policy == process::Scheduling::EXT) {
                all += u64::from(act(thread)?);
            }
        }
    }
    Ok(all)
}
