//! Waits inside file calls that are too long for a filesystem at work.

use super::{Activity, Cause, Doing, Part, Spent};
use crate::Interval;
use crate::database::Model;

/// From this length on a wait inside a file call is a hang. In shorter ones threads hand a file's
/// lock to each other, or wait for the journal, which takes as long as a few writes: the filesystem
/// at work.
pub const HANG_S: f64 = 0.02;

/// Whether it is a wait inside a file call, or behind a thread in one.
pub fn is_in_files(spent: &Spent, model: Model) -> bool {
    let in_files = spent.doing == Doing::Filesystem || spent.behind.is_some();
    in_files
        && spent.cause() == Cause::Kernel
        && spent.part(model) == Part::Disk
        && !spent.in_background(model)
}

impl Activity {
    /// The share of its active time in hangs and behind them: of what threads waited inside file
    /// calls, and behind such threads, the part of the former that was in waits of [`HANG_S`] and
    /// more, each slice for itself. One that does not tell counts whole.
    pub fn share_hung(&self, model: Model) -> Option<Interval> {
        let inside = |s: &Spent| s.doing == Doing::Filesystem && !s.in_background(model);
        let share = self.share_of(model, |slice| {
            let part = match (slice.hung_s, slice.sum(inside)) {
                (Some(hung), inside) if inside > 0.0 => (hung.0 / inside).min(1.0),
                (Some(_), _) => 0.0,
                (None, _) => 1.0,
            };
            part * slice.sum(|spent| is_in_files(spent, model))
        })?;
        // A wait of unknown meaning is inside no file call, but may be active. One for another thread may be behind a
        // hang, where there was one.
        let known = 1.0 - self.unknown_part(model);
        let behind = self.unresolved_part(model, |spent| is_in_files(spent, model));
        let most = if share.mid > 0.0 { (share.high + behind).min(1.0) } else { share.high };
        Some(Interval::new(share.low * known, share.mid, most))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Seconds;
    use crate::activity::window::tests::activity;

    #[test]
    fn a_hang_is_in_the_slice_that_saw_it() {
        let mut activity = activity();
        let share = |activity: &Activity| activity.share_hung(Model::Thread).unwrap();
        let older = share(&activity);
        for (slice, hung_s) in activity.slices.iter_mut().zip([0.0, 4.0]) {
            slice.hung_s = Some(Seconds(hung_s));
        }
        let hangs = share(&activity);
        assert!((hangs.mid - older.mid / 2.0).abs() < 1e-9);
        assert_eq!((hangs.low, hangs.high), (0.0, older.high), "in one of two, so maybe in none");
        assert!(
            older.high > older.mid,
            "some waited for threads of which nobody knows what they did"
        );
        for spent in &mut activity.slices[1].spent {
            spent.time_s = Seconds(if spent.doing == Doing::OnCpu { 1.0 } else { 0.0 });
        }
        assert!(share(&activity).high <= 0.0, "nobody waits inside a file call");
    }
}
