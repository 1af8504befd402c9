//! Whether it is seen what threads send and receive, which tells requests that nobody waited for.

use super::clock::now;
use super::frequent_events::MESSAGES;
use super::state::{Slice, Threads};
use super::totals::{STARTED, growth};
use crate::bpf::Running;
use libbpf_rs::ProgramMut;
use untax_core::Database;
use untax_core::activity::MANY_CONNECTIONS_PER_S;
use untax_core::database::Model;

/// Fewer than this are chance, whatever the length of the window: the rate is a threshold of its own.
const LEAST: u64 = 3;

impl Threads {
    /// When a window begins: it is worth it where each client is served by a thread, and where clients came
    /// and went in the window before.
    pub(super) fn choose_messages(&mut self, databases: &[Database]) -> libbpf_rs::Result<()> {
        let threaded = databases.iter().any(|database| database.model == Model::Thread);
        let wanted = threaded || self.is_connected_to_often();
        if wanted && !self.messages.seen {
            self.see_messages()?;
        } else if !wanted && self.messages.seen {
            detach(&mut self.bpf)?;
            self.messages.seen = false;
        }
        Ok(())
    }

    /// When a slice has ended, and it was not worth it so far; gives whether the window begins anew
    /// with it, as it does after its first slice.
    pub(super) fn restart_window(&mut self) -> libbpf_rs::Result<bool> {
        if self.messages.seen || !self.is_connected_to_often() {
            return Ok(false);
        }
        self.see_messages()?;
        let anew =
            self.messages.seen && self.watched.values().all(|watched| watched.slices.len() == 1);
        if anew {
            self.begin_window()?;
        }
        Ok(anew)
    }

    fn see_messages(&mut self) -> libbpf_rs::Result<()> {
        if !self.messages.unknown {
            self.messages.seen = attach(&mut self.bpf)?;
            self.messages.unknown = !self.messages.seen;
        }
        Ok(())
    }

    fn is_connected_to_often(&self) -> bool {
        if matches!(self.slice, Slice::Unopened) {
            return false;
        }
        let seconds = now().saturating_sub(self.begun_ns) as f64 / 1e9;
        self.watched.values().any(|watched| {
            let started = growth(STARTED, &watched.total_ns, &watched.opened_ns);
            started >= LEAST && started as f64 >= MANY_CONNECTIONS_PER_S * seconds
        })
    }
}

/// Gives whether this kernel has both.
fn attach(bpf: &mut Running) -> libbpf_rs::Result<bool> {
    let is_one = |program: &ProgramMut| MESSAGES.iter().any(|name| program.name() == *name);
    bpf.attach(is_one, &MESSAGES)?;
    let both = MESSAGES.iter().all(|name| bpf.has(name));
    if both {
        bpf.call("begin_messages")?;
    } else {
        bpf.detach(&MESSAGES);
    }
    Ok(both)
}

fn detach(bpf: &mut Running) -> libbpf_rs::Result<()> {
    bpf.call("end_messages")?;
    bpf.detach(&MESSAGES);
    Ok(())
}
