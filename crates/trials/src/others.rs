//! What programs use that this process did not start: a neighbour on the CPUs of a trial.

use std::collections::{BTreeMap, BTreeSet};
use untax_core::Reading;
use untax_host::Host;
use untax_host::process::{self, Stat};

/// The parent of all threads of the kernel.
const KERNEL_THREADS: u32 = 2;

/// CPU time so far of each process that is neither this one, nor descends from it, nor is the kernel's.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Others {
    /// Seconds of each, by its pid and the moment of its start.
    each_s: BTreeMap<(u32, u64), f64>,
}

impl Others {
    pub(crate) fn read(host: &Host) -> Reading<Self> {
        let own = std::process::id();
        process::ticks_per_second(host)
            .and_then(|ticks| process::all(host).map(|all| Self::of(&all, own, ticks)))
    }

    fn of(all: &[Stat], own: u32, ticks_per_second: u64) -> Self {
        let mut left_out = BTreeSet::from([own, KERNEL_THREADS]);
        // A parent may have a larger number than its child, once numbers are used again.
        loop {
            let known = left_out.len();
            let children = all.iter().filter(|stat| left_out.contains(&stat.parent));
            let children: Vec<u32> = children.map(|stat| stat.pid).collect();
            left_out.extend(children);
            if left_out.len() == known {
                break;
            }
        }
        let seconds = |stat: &Stat| {
            (stat.user_ticks + stat.system_ticks) as f64 / ticks_per_second.max(1) as f64
        };
        // A load that was killed with its parent is a child of init until that has waited for it.
        let is_dead = |stat: &Stat| matches!(stat.state, 'Z' | 'X');
        let others = all.iter().filter(|stat| !left_out.contains(&stat.pid) && !is_dead(stat));
        let each_s = others.map(|stat| ((stat.pid, stat.started_ticks), seconds(stat))).collect();
        Self { each_s }
    }

    /// Seconds that they used since an earlier moment. What ended meanwhile is not counted.
    pub(crate) fn since(&self, earlier: &Self) -> f64 {
        let used = |(who, now): (&(u32, u64), &f64)| {
            (now - earlier.each_s.get(who).copied().unwrap_or(0.0)).max(0.0)
        };
        self.each_s.iter().map(used).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stat(pid: u32, parent: u32, ticks: u64) -> Stat {
        let text = format!(
            "{pid} (x) R {parent} 1 1 0 -1 0 0 0 0 0 {ticks} 0 0 0 20 0 1 0 {pid} 0 0 0 0 0"
        );
        process::parse_stat(&text).unwrap()
    }

    #[test]
    fn only_what_others_used_counts() {
        // 10 is this process, 11 its child, 9 a grandchild; 3 is the kernel's, 5 and 12 are others.
        let all = |ticks: u64| {
            [stat(2, 0, 0), stat(3, 2, ticks), stat(5, 1, ticks), stat(9, 11, ticks)]
                .into_iter()
                .chain([stat(10, 1, ticks), stat(11, 10, ticks)])
                .collect::<Vec<_>>()
        };
        let before = Others::of(&all(100), 10, 100);
        let mut later = all(150);
        later.push(stat(12, 1, 25));
        let later = Others::of(&later, 10, 100);
        assert!((later.since(&before) - 0.75).abs() < 1e-9, "{later:?}");
        // Another process with the number of one that ended did not use what that one did.
        let mut again = all(100);
        again[2].started_ticks += 1;
        assert!((Others::of(&again, 10, 100).since(&before) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_load_that_was_killed_with_its_parent_is_no_neighbour() {
        let before = Others::of(&[stat(10, 1, 0)], 10, 100);
        let mut dead = stat(12, 1, 500);
        dead.state = 'Z';
        assert!(Others::of(&[stat(10, 1, 0), dead], 10, 100).since(&before).abs() < 1e-9);
    }
}
