//! The functions at events that may be frequent: a pause is without those that are.

use super::samples::ADDRESSES;
use crate::bpf::Running;

/// The program's functions for what threads send and receive.
pub(super) const MESSAGES: [&str; 2] = ["on_send", "on_receive"];

/// The program's function that sees which thread ends the wait of another.
pub(super) const WAKING: &str = "on_waking";

pub(super) const FREQUENT: [&str; 6] =
    ["on_switch", WAKING, "on_wakeup", MESSAGES[0], MESSAGES[1], ADDRESSES];

/// What it takes of a CPU to detach one and to attach it again, about: the kernel rewrites its code.
const ATTACHING_S: f64 = 0.000_6;

/// What a pause takes of a CPU before one was measured.
pub(super) const PAUSING_S: f64 = ATTACHING_S * (FREQUENT.len() - MESSAGES.len()) as f64;

/// One that runs no more often than this (a second) stays in a pause: it takes some 0.13 us each time,
/// less than `ATTACHING_S` in a pause of two seconds.
const SELDOM_PER_S: f64 = 2000.0;

/// How often each of them had run at a moment, where that is counted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Runs([Option<u64>; FREQUENT.len()]);

impl Runs {
    /// So far.
    pub fn of(bpf: &Running) -> Self {
        Self(FREQUENT.map(|name| bpf.runs(name)))
    }

    /// Those that ran often in so many seconds since `before`, or may have.
    pub fn ran_often(self, before: Self, seconds: f64) -> Vec<&'static str> {
        let seldom = |(now, before): (Option<u64>, Option<u64>)| {
            let ran = now.zip(before).map(|(now, before)| now.saturating_sub(before) as f64);
            ran.is_some_and(|ran| ran <= SELDOM_PER_S * seconds)
        };
        let each = FREQUENT.into_iter().zip(self.0.into_iter().zip(before.0));
        each.filter(|(_, runs)| !seldom(*runs)).map(|(name, _)| name).collect()
    }
}

/// Those that are not attached, and can be.
pub(super) fn detached_functions(bpf: &Running) -> Vec<&'static str> {
    FREQUENT.into_iter().filter(|name| !bpf.has(name) && !bpf.lacks(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_runs_seldom_is_not_worth_detaching() {
        let before = Runs([Some(100); FREQUENT.len()]);
        let mut after = [Some(100); FREQUENT.len()];
        after[..3].copy_from_slice(&[Some(100 + 2000), Some(100 + 201), Some(100 + 200)]);
        let after = Runs(after);
        assert_eq!(after.ran_often(before, 0.1), ["on_switch", "on_waking"]);
        let uncounted = Runs([None; FREQUENT.len()]);
        assert_eq!(uncounted.ran_often(uncounted, 0.1), FREQUENT);
    }
}
