//! Waits that a pause begins upon, or the end of a window: what ends them is seen afterwards.

use super::clock::now;
use super::frequent_events::{FREQUENT, WAKING};
use super::state::{Slice, Threads};
use super::totals::{numbers, times_behind};
use super::{WAITING, grown_by};
use libbpf_rs::{MapCore, MapFlags};
use std::time::Duration;
use untax_core::activity;

/// How often it is seen whether any wait goes on.
const LOOK: Duration = Duration::from_millis(20);

impl Threads {
    /// What may be detached of `often` when a pause begins, and what it may cost to see the ends of waits in it:
    /// no more than the slice before it did. Nothing where no thread waits for another.
    pub(super) fn beside_open_waits(
        &self,
        often: &[&'static str],
        slice_cost_s: Option<f64>,
    ) -> libbpf_rs::Result<(Vec<&'static str>, Option<f64>)> {
        let most_s = slice_cost_s.filter(|_| often.contains(&WAKING));
        let most_s = if self.moment(WAITING)? > 0 { most_s } else { None };
        let detached = often.iter().copied().filter(|name| most_s.is_none() || *name != WAKING);
        Ok((detached.collect(), most_s))
    }

    /// Sees no more ends of waits in this pause once all have ended, or that has cost too much.
    pub(super) fn follow_open_waits(&mut self) -> libbpf_rs::Result<()> {
        let Slice::Pause { cost_s, waits_s: Some(most_s), .. } = self.slice else { return Ok(()) };
        let taken_s = grown_by(cost_s, self.cost_s());
        if self.moment(WAITING)? > 0 && taken_s.is_some_and(|taken_s| taken_s < most_s) {
            return Ok(());
        }
        self.bpf.detach(&[WAKING]);
        if let Slice::Pause { waits_s, .. } = &mut self.slice {
            *waits_s = None;
        }
        Ok(())
    }

    /// Sees what ends the waits that go on when a window ends, for no longer than its budget allows.
    pub(super) fn follow_beyond_the_window(&mut self) -> libbpf_rs::Result<()> {
        let Slice::Traced { .. } = self.slice else { return Ok(()) };
        if self.moment(WAITING)? == 0 || !self.bpf.has(WAKING) {
            return Ok(());
        }
        let (most, most_cost_s) = self.budget.beyond_the_window();
        self.pause(0, &FREQUENT, Some(most_cost_s))?;
        let until = now() + most.as_nanos() as u64;
        while now() < until && matches!(self.slice, Slice::Pause { waits_s: Some(_), .. }) {
            std::thread::sleep(LOOK);
            self.follow_open_waits()?;
        }
        self.end_open_waits()
    }

    /// Gives the slice before a pause the waits that ended in it.
    pub(super) fn end_open_waits(&mut self) -> libbpf_rs::Result<()> {
        let totals = self.bpf.map("totals")?;
        for (index, watched) in &mut self.watched {
            let total = totals.lookup(&index.to_ne_bytes(), MapFlags::ANY)?.unwrap_or_default();
            let total = numbers(&total);
            let ended = times_behind(&total, &watched.total_ns);
            if let Some(slice) = watched.slices.last_mut() {
                for one in ended {
                    slice.add_behind(one);
                }
                activity::settle_across(&mut watched.slices);
            }
            watched.total_ns = total;
        }
        Ok(())
    }
}
