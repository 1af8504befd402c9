//! CPUs that are kept awake while nothing is to be done, or that sleep.

use crate::SceneError;
use crate::program;
use crate::program::{host_text, words};
use crate::setting::change;
use crate::shell::Shell;
use std::path::Path;
use untax_changes::Temporary;
use untax_core::host::cpus;
use untax_core::idle::HALT_POLL_NS;
use untax_core::plan::Target;

const HALT_POLL: &str = "/sys/module/haltpoll/parameters/guest_halt_poll_ns";
const GOVERNOR: &str = "/sys/devices/system/cpu/cpuidle/current_governor";

/// Does nothing on each of the CPUs `$@`, and gives way to everybody: a CPU with it is never idle.
const SPIN: &str = r#"
for cpu in "$@"; do
    setpriv --pdeathsig=KILL -- taskset -c "$cpu" chrt --idle 0 /bin/sh -c 'while :; do :; done' &
done
wait
"#;

/// How idle CPUs of this machine are treated, until this is dropped. Take a [`crate::Turn`] first.
pub struct IdleCpus {
    _how: How,
}

enum How {
    /// The guest polls before it halts, or does not: the setting is put back.
    Set(#[expect(dead_code, reason = "dropped to put it back")] Box<Temporary>),
    /// A program of the lowest class keeps each CPU awake.
    Spinning(#[expect(dead_code, reason = "dropped to end it")] Shell),
    /// They sleep as they do on this machine.
    AsFound,
}

impl IdleCpus {
    /// They stay awake: by polling where the guest can, otherwise by a program on each.
    pub fn awake() -> Result<Self, SceneError> {
        if can_poll() {
            return halt_poll(HALT_POLL_NS);
        }
        for tool in ["setpriv", "taskset", "chrt"] {
            program::find(tool, "util-linux")?;
        }
        let online = host_text("/sys/devices/system/cpu/online")?;
        let shell = words(["/bin/sh", "-c", SPIN, "untax-lab-awake"]);
        let line = [shell, cpus(&online).map(|cpu| cpu.to_string()).collect()].concat();
        Shell::run(&line, "KILL", Path::new("/dev/null"), Path::new("/"))
            .map(|shell| Self { _how: How::Spinning(shell) })
    }

    /// They sleep as soon as they are idle.
    pub fn asleep() -> Result<Self, SceneError> {
        if can_poll() { halt_poll(0) } else { Ok(Self { _how: How::AsFound }) }
    }

    /// What is done to them, in words.
    pub fn treatment() -> String {
        if can_poll() {
            return format!("guest_halt_poll_ns is 0 with it, and {HALT_POLL_NS} without");
        }
        "a spinner of class SCHED_IDLE on each CPU keeps it awake without it, in place of the setting \
         that this kernel does not have"
            .to_owned()
    }
}

/// Whether this machine is a guest that can poll before it halts.
fn can_poll() -> bool {
    host_text(GOVERNOR).is_ok_and(|governor| governor.trim() == "haltpoll")
        && host_text(HALT_POLL).is_ok()
}

fn halt_poll(ns: u64) -> Result<IdleCpus, SceneError> {
    let target = Target::Value { file: HALT_POLL.to_owned() };
    Ok(IdleCpus { _how: How::Set(Box::new(change([(target, ns.to_string())])?)) })
}
