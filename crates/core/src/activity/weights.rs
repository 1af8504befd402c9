//! For how much of a window each of its slices stands.

use super::{Activity, Doing, Slice};
use crate::Seconds;
use std::ops::Add;

impl Activity {
    /// Lets the slices hold together as much time on a CPU as the kernel counted in the window.
    ///
    /// Tracing pauses after what costs it much, and a pause may hide another kind of time than the
    /// slices next to it: busy threads that then hang, again and again. How much of the pauses each
    /// slice stands for is changed in proportion to how far it is from the mean, as calibration
    /// estimators of surveys do (Deville and Särndal, 1992), and no further than to nothing.
    pub(crate) fn weigh(&mut self, counted_s: Seconds) {
        let paused_s = |slice: &Slice| (slice.stands_for_s() - slice.traced_s.0).max(0.0);
        let all_paused_s = self.slices.iter().map(paused_s).fold(0.0, f64::add);
        let mean = |of: &dyn Fn(f64) -> f64| {
            let each = self.slices.iter().map(|slice| paused_s(slice) * of(slice.cpus()));
            each.fold(0.0, f64::add) / all_paused_s
        };
        let cpus = mean(&|cpus| cpus);
        let variance = mean(&|c| (c - cpus).powi(2));
        let furthest = self.slices.iter().map(|s| (s.cpus() - cpus).abs()).fold(0.0, f64::max);
        let traced = self.slices.iter().map(|slice| slice.traced_s.0 * slice.cpus());
        let missed_s = counted_s.0 * self.watched_s().0 / self.window_s.0
            - traced.fold(0.0, f64::add)
            - all_paused_s * cpus;
        let tilt = missed_s / all_paused_s / variance;
        // No pauses, or slices that are all alike.
        if !tilt.is_finite() || furthest <= 0.0 {
            return;
        }
        let tilt = tilt.clamp(-1.0 / furthest, 1.0 / furthest);
        for slice in &mut self.slices {
            let paused_s = paused_s(slice) * (1.0 + tilt * (slice.cpus() - cpus));
            slice.stands_for_s = Some(slice.traced_s + Seconds(paused_s));
        }
    }
}

impl Slice {
    /// How many CPUs the threads had.
    fn cpus(&self) -> f64 {
        let on_cpu_s = self.sum(|spent| matches!(spent.doing, Doing::OnCpu | Doing::ReclaimOnCpu));
        if self.traced_s.0 > 0.0 { on_cpu_s / self.traced_s.0 } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::activity::{Polling, Spent};

    /// Slices of a second each, with so much time on a CPU, that stand for so much.
    fn activity(slices: &[(f64, f64)]) -> Activity {
        let slice = |(on_cpu_s, stands_for_s): &(f64, f64)| {
            let spent =
                |doing, time_s| Spent { polling: Polling::Forever, doing, time_s: Seconds(time_s) };
            Slice {
                traced_s: Seconds(1.0),
                stands_for_s: Some(Seconds(*stands_for_s)),
                spent: vec![
                    spent(Doing::OnCpu, *on_cpu_s),
                    spent(Doing::Filesystem, 1.0 - on_cpu_s),
                ],
                connecting_s: Seconds(0.0),
                first_s: Seconds(0.0),
                hung_s: None,
                sampled: None,
            }
        };
        Activity {
            database: "redis:1".into(),
            window_s: Seconds(slices.iter().map(|slice| slice.1).sum()),
            threads: 1,
            requests_seen: false,
            started: 0,
            clients: Vec::new(),
            longest: Vec::new(),
            retransmits: None,
            slices: slices.iter().map(slice).collect(),
        }
    }

    fn on_cpu_and_hung(activity: &Activity) -> [f64; 2] {
        [Doing::OnCpu, Doing::Filesystem].map(|doing| activity.doing(&[doing]).0)
    }

    #[test]
    fn pauses_hold_what_the_kernel_counted() {
        // Half the window hangs; most pauses follow the other half.
        let mut activity = activity(&[(0.8, 4.0), (0.0, 1.5), (0.8, 4.0), (0.0, 2.5)]);
        let watched = activity.watched_s();
        assert!((on_cpu_and_hung(&activity)[0] - 6.4).abs() < 1e-9);
        activity.weigh(Seconds(4.8));
        let [on_cpu, hung] = on_cpu_and_hung(&activity);
        assert!((on_cpu - 4.8).abs() < 1e-9 && (hung - 7.2).abs() < 1e-9, "{on_cpu} {hung}");
        assert!((activity.watched_s().0 - watched.0).abs() < 1e-9);
        let whole = activity.clone();
        activity.weigh(Seconds(4.8));
        let same = activity
            .slices
            .iter()
            .zip(&whole.slices)
            .all(|(a, b)| (a.stands_for_s() - b.stands_for_s()).abs() < 1e-9);
        assert!(same, "it is done once and for all");
    }

    #[test]
    fn what_was_traced_stays_and_what_nobody_saw_is_not_made_up() {
        let mut far = activity(&[(0.8, 4.0), (0.4, 4.0)]);
        far.weigh(Seconds(0.1));
        let [first, second] = [0, 1].map(|at: usize| far.slices[at].stands_for_s());
        assert!((first - 1.0).abs() < 1e-9 && (second - 7.0).abs() < 1e-9, "{first} {second}");
        for unchanged in [&[(0.8, 1.0), (0.2, 1.0)][..], &[(0.5, 2.0), (0.5, 3.0)], &[]] {
            let mut activity = activity(unchanged);
            let before = activity.clone();
            activity.weigh(Seconds(0.1));
            assert_eq!(activity, before);
        }
    }
}
