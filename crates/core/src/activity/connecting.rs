//! What connections took.

use super::{Activity, Doing, Slice};
use crate::Interval;

impl Activity {
    /// The part (0..1) of its time on a CPU that connections took beside what they were for.
    pub fn part_connecting(&self) -> Option<Interval> {
        self.part_of_cpu(|slice| slice.connecting_s.0)
    }

    /// The part (0..1) of its time on a CPU that the first requests of new connections took.
    pub fn part_first(&self) -> Option<Interval> {
        self.part_of_cpu(|slice| slice.first_s.0)
    }

    fn part_of_cpu(&self, part: impl Fn(&Slice) -> f64) -> Option<Interval> {
        self.ratio(part, |slice| slice.sum(|spent| spent.doing == Doing::OnCpu))
    }
}
