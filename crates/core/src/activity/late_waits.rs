//! Waits that end in a later slice than they were in.

use super::causes::Behind;
use super::slice::{Slice, Spent};
use crate::Seconds;
use std::ops::Add;

impl Behind {
    /// Whether both are of the same waits of the same kind of thread.
    fn is_beside(&self, other: &Self) -> bool {
        self.polling == other.polling && self.doing.wait() == other.doing.wait()
    }
}

impl Slice {
    /// The part (0..1) of such waits, which ended in this slice, that was in it; the rest was before it.
    fn part_within(&self, of: &Behind) -> f64 {
        let is_of =
            |spent: &Spent| spent.polling == of.polling && spent.doing.wait() == of.doing.wait();
        let all = self.behind.iter().flatten().filter(|one| one.is_beside(of));
        let part = self.sum(is_of) / all.map(|one| one.time_s.0).fold(0.0, f64::add);
        if part.is_finite() { part.min(1.0) } else { 1.0 }
    }

    /// Adds a part of waits that ended when it was over.
    pub fn add_behind(&mut self, more: Behind) {
        let all = self.behind.get_or_insert_default();
        let same = |one: &&mut Behind| one.is_beside(&more) && one.cause == more.cause;
        match all.iter_mut().find(same) {
            Some(one) => one.time_s = one.time_s + more.time_s,
            None => all.push(more),
        }
    }
}

/// Gives slices their part of waits that ended in a later one, where the probe saw what the other thread did
/// in all of them.
pub fn settle_across(slices: &mut [Slice]) {
    for late in (1..slices.len()).rev() {
        let (before, rest) = slices.split_at_mut(late);
        let (Some(earlier), Some(slice)) = (before.last_mut(), rest.first_mut()) else { continue };
        let within: Vec<f64> =
            slice.behind.iter().flatten().map(|one| slice.part_within(one)).collect();
        for (one, part) in slice.behind.iter_mut().flatten().zip(within) {
            let all = *one;
            one.time_s = Seconds(all.time_s.0 * part);
            if part < 1.0 {
                earlier.add_behind(Behind { time_s: all.time_s - one.time_s, ..all });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::activity::{Cause, Doing, Polling};

    fn behind(cause: Cause, time_s: f64) -> Behind {
        Behind { polling: Polling::Forever, doing: Doing::Futex, cause, time_s: Seconds(time_s) }
    }

    /// A slice of a second in which a thread waited in a futex for so long.
    fn slice(futex_s: f64, behind: Vec<Behind>) -> Slice {
        let spent = [(Doing::Futex, futex_s - 0.25), (Doing::FutexDisk, 0.25)];
        let spent = spent.map(|(doing, time_s)| Spent {
            polling: Polling::Forever,
            doing,
            time_s: Seconds(time_s),
        });
        Slice { behind: Some(behind), ..Slice::traced(Seconds(1.0), spent.to_vec()) }
    }

    fn times(slice: &Slice) -> Vec<(Cause, f64)> {
        slice.behind.iter().flatten().map(|one| (one.cause, one.time_s.0)).collect()
    }

    #[test]
    fn a_wait_of_three_slices_is_in_all_of_them() {
        let ended = vec![behind(Cause::Disk, 1.5), behind(Cause::Cpu, 0.5)];
        let mut slices =
            [slice(0.5, vec![behind(Cause::Cpu, 0.1)]), slice(1.0, Vec::new()), slice(0.75, ended)];
        settle_across(&mut slices);
        assert_eq!(times(&slices[2]), [(Cause::Disk, 0.5625), (Cause::Cpu, 0.1875)]);
        assert_eq!(times(&slices[1]), [(Cause::Disk, 0.75), (Cause::Cpu, 0.25)]);
        let first = times(&slices[0]);
        assert_eq!(first.len(), 2, "{first:?}");
        assert!(
            (first[0].1 - 0.1625).abs() < 1e-9 && (first[1].1 - 0.1875).abs() < 1e-9,
            "{first:?}"
        );
    }

    #[test]
    fn what_was_within_a_slice_stays_there() {
        let mut slices = [slice(0.5, Vec::new()), slice(1.0, vec![behind(Cause::Disk, 1.0)])];
        let before = slices.clone();
        settle_across(&mut slices);
        assert_eq!(slices, before);
    }
}
