//! Slices as a probe sees them: waits end in a later slice than they were in, and what others did during a wait
//! is told when it ends.

use super::causes::Behind;
use super::slice::{Slice, Spent};
use crate::Seconds;
use std::ops::Add;

/// A slice, and what others did during waits that ended in it.
#[derive(Debug, Clone, PartialEq)]
pub struct Unsettled {
    /// What its threads did, whoever they waited for.
    pub slice: Slice,
    /// What those did that they waited for: of each kind of wait a part, or more where it began in a slice before.
    pub behind: Vec<Behind>,
}

impl Behind {
    fn is_of(&self, spent: &Spent) -> bool {
        self.polling == spent.polling && self.doing == spent.doing
    }

    /// Whether both are of the same waits of the same kind of thread.
    fn is_beside(&self, other: &Self) -> bool {
        self.polling == other.polling && self.doing == other.doing
    }
}

impl Unsettled {
    /// Adds a part of waits that ended when it was over.
    pub fn add_behind(&mut self, more: Behind) {
        let same = |one: &&mut Behind| one.is_beside(&more) && one.cause == more.cause;
        match self.behind.iter_mut().find(same) {
            Some(one) => one.time_s = one.time_s + more.time_s,
            None => self.behind.push(more),
        }
    }

    /// The part (0..1) of such waits, which ended in this slice, that was in it; the rest was before it.
    fn part_within(&self, of: &Behind) -> f64 {
        let all = self.behind.iter().filter(|one| one.is_beside(of));
        let all_s = all.map(|one| one.time_s.0).fold(0.0, f64::add);
        let part = self.slice.sum(|spent| of.is_of(spent)) / all_s;
        if part.is_finite() { part.min(1.0) } else { 1.0 }
    }

    /// Each second once: a wait is what the other thread did meanwhile, as far as that is known.
    pub fn settled(mut self) -> Slice {
        let within: Vec<f64> = self.behind.iter().map(|one| self.part_within(one)).collect();
        for (one, part) in self.behind.iter_mut().zip(within) {
            one.time_s = Seconds(part * one.time_s.0);
        }
        let spent = self.slice.spent.iter().flat_map(|spent| self.divided(spent)).collect();
        Slice { spent, followed: true, ..self.slice }
    }

    /// A wait in its parts.
    fn divided(&self, spent: &Spent) -> Vec<Spent> {
        let behind = self.behind.iter().filter(|one| one.is_of(spent) && one.time_s.0 > 0.0);
        let mut parts: Vec<Spent> = behind
            .map(|one| Spent { behind: Some(one.cause), time_s: one.time_s, ..*spent })
            .collect();
        let known_s = parts.iter().map(|part| part.time_s.0).fold(0.0, f64::add);
        // What is left is no more than an error of rounding where all is known.
        let rest_s = spent.time_s.0 - known_s;
        if parts.is_empty() || rest_s > 1e-9 * spent.time_s.0 {
            parts.push(Spent { time_s: Seconds(rest_s), ..*spent });
        }
        parts
    }
}

/// Gives slices their part of waits that ended in a later one, where the probe saw what the other thread did
/// in all of them.
pub fn settle_across(slices: &mut [Unsettled]) {
    for late in (1..slices.len()).rev() {
        let (before, rest) = slices.split_at_mut(late);
        let (Some(earlier), Some(slice)) = (before.last_mut(), rest.first_mut()) else { continue };
        let within: Vec<f64> = slice.behind.iter().map(|one| slice.part_within(one)).collect();
        for (one, part) in slice.behind.iter_mut().zip(within) {
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
    use proptest::prelude::*;

    fn behind(cause: Cause, time_s: f64) -> Behind {
        Behind { polling: Polling::Forever, doing: Doing::Futex, cause, time_s: Seconds(time_s) }
    }

    /// A slice of a second in which a thread waited in a futex for so long.
    fn slice(futex_s: f64, behind: Vec<Behind>) -> Unsettled {
        let spent = vec![Spent::own(Polling::Forever, Doing::Futex, Seconds(futex_s))];
        Unsettled { slice: Slice::traced(Seconds(1.0), spent), behind }
    }

    fn times(slice: &Unsettled) -> Vec<(Cause, f64)> {
        slice.behind.iter().map(|one| (one.cause, one.time_s.0)).collect()
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

    #[test]
    fn a_wait_is_what_the_other_did_and_the_rest_is_not_known() {
        let settled = slice(2.0, vec![behind(Cause::Disk, 1.5)]).settled();
        let parts: Vec<_> = settled.spent.iter().map(|s| (s.cause(), s.time_s.0)).collect();
        assert_eq!(parts, [(Cause::Disk, 1.5), (Cause::Unresolved, 0.5)]);
    }

    proptest! {
        /// Whatever ended when: no second twice, none lost.
        #[test]
        fn a_settled_slice_is_as_long_as_before(
            futex_s in 0.0..10.0_f64,
            waits in prop::collection::vec(
                (prop::sample::select(Cause::ALL.to_vec()), 0.0..10.0_f64), 0..20),
        ) {
            let behind = waits.into_iter().map(|(cause, time_s)| behind(cause, time_s)).collect();
            let settled = slice(futex_s, behind).settled();
            prop_assert!((settled.sum(|_| true) - futex_s).abs() < 1e-9 * (1.0 + futex_s));
            prop_assert!(settled.spent.iter().all(|spent| spent.time_s.0 >= 0.0));
        }
    }
}
