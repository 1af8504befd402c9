//! What connections took.

use super::{Activity, Doing, Slice};
use crate::Interval;

/// Fewer connections than this each second are nobody's trouble.
pub const MANY_CONNECTIONS_PER_S: f64 = 20.0;

impl Activity {
    /// The part (0..1) of its time on a CPU that connections took beside what they were for. `filling` is
    /// the part (0..1) of their first requests that filled caches: as is likely, and at most. The lower
    /// bound leaves these out.
    pub fn part_connecting(&self, filling: [f64; 2]) -> Option<Interval> {
        let Interval { low, mid, high } = self.part_of_cpu(|slice| slice.connecting_s.0)?;
        let first = self.part_of_cpu(|slice| slice.first_s.0)?;
        let [likely, most] = [first.mid * filling[0], first.high * filling[1]];
        Some(Interval::new(low, mid + likely, (high + most).min(1.0)))
    }

    fn part_of_cpu(&self, part: impl Fn(&Slice) -> f64) -> Option<Interval> {
        self.ratio(part, |slice| slice.sum(|spent| spent.doing == Doing::OnCpu))
    }
}
