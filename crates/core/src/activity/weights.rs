//! For how much of a window each of its slices stands.

use super::{Activity, Doing, Slice};
use crate::Seconds;
use std::ops::Add;

/// So many times as much as one second of a pause another one may count at most: what hardly any slice saw
/// is not made up.
const MOST: f64 = 30.0;

/// Halvings of what the tilt may be: to less than any count is known to.
const HALVINGS: u32 = 50;

impl Activity {
    /// Lets the slices hold together as much time on a CPU as the kernel counted in the window, which
    /// is known to these bounds.
    ///
    /// Tracing pauses after what costs it much, and a pause may hide another kind of time than the
    /// slices next to it: busy threads that then hang, again and again. How much of the pauses each
    /// slice stands for is changed by a factor that is exponential in its time on a CPU, as raking
    /// does (Deville and Särndal, 1992), and no further than by [`MOST`].
    pub(crate) fn weigh(&mut self, [least_s, most_s]: [Seconds; 2]) {
        let counted_s = Seconds(self.held_s().max(least_s.0).min(most_s.0));
        self.counted_s = Some(counted_s);
        let traced = self.slices.iter().map(|slice| slice.traced_s.0 * slice.cpus());
        let watched_s = counted_s.0 * self.watched_s().0 / self.window_s.0;
        let missed_s = watched_s - traced.fold(0.0, f64::add);
        let pauses: Vec<Pause> = self.slices.iter().map(Slice::pause).collect();
        let wanted = missed_s / pauses.iter().map(|pause| pause.time_s).fold(0.0, f64::add);
        let cpus = pauses.iter().filter(|pause| pause.time_s > 0.0).map(|pause| pause.cpus);
        let range = cpus.clone().fold(f64::MIN, f64::max) - cpus.fold(f64::MAX, f64::min);
        // No pauses, or slices that are all alike.
        if !wanted.is_finite() || range <= 0.0 {
            return;
        }
        let (mut low, mut high) = (-MOST.ln() / range, MOST.ln() / range);
        for _ in 0..HALVINGS {
            let tilt = f64::midpoint(low, high);
            let is_low = cpus_of(&tilted(&pauses, tilt)) < wanted;
            *if is_low { &mut low } else { &mut high } = tilt;
        }
        for (slice, pause) in self.slices.iter_mut().zip(tilted(&pauses, low)) {
            slice.stands_for_s = Some(slice.traced_s + Seconds(pause.time_s));
        }
    }

    /// The part (0..1) of the window that was unlike any slice: where they cannot hold what the kernel
    /// counted, however they are weighed. What was traced is known, so all of it was in pauses.
    pub(super) fn unseen(&self) -> f64 {
        let Some(counted) = self.counted_s else { return 0.0 };
        let (held_s, watched_s) = (self.held_s(), self.watched_s().0);
        let traced = self.slices.iter().map(|slice| slice.traced_s.0 * slice.cpus());
        let traced_s = traced.fold(0.0, f64::add) * self.window_s.0 / watched_s;
        let unlike = (held_s - counted.0).abs() / (held_s.max(counted.0) - traced_s);
        let paused = 1.0 - self.traced_s().0 / watched_s;
        if unlike.is_finite() { unlike.clamp(0.0, 1.0) * paused.max(0.0) } else { 0.0 }
    }

    fn held_s(&self) -> f64 {
        self.doing(&[Doing::OnCpu, Doing::ReclaimOnCpu]).0
    }
}

/// What a slice stands for beside itself.
#[derive(Debug, Clone, Copy)]
struct Pause {
    time_s: f64,
    /// How many CPUs the threads had in the slice.
    cpus: f64,
}

/// The same pauses, as long together, of which those with more time on a CPU count for more.
fn tilted(pauses: &[Pause], tilt: f64) -> Vec<Pause> {
    let all_s = |pauses: &[Pause]| pauses.iter().map(|pause| pause.time_s).fold(0.0, f64::add);
    let mean = cpus_of(pauses);
    let scaled = |pause: &Pause, by: f64| Pause { time_s: pause.time_s * by, ..*pause };
    // A slice without a pause may be far from all others.
    let factor = |cpus: f64| (tilt * (cpus - mean)).clamp(-MOST.ln(), MOST.ln()).exp();
    let tilted: Vec<Pause> = pauses.iter().map(|pause| scaled(pause, factor(pause.cpus))).collect();
    let scale = all_s(pauses) / all_s(&tilted);
    tilted.iter().map(|pause| scaled(pause, scale)).collect()
}

/// How many CPUs the threads had in pauses.
fn cpus_of(pauses: &[Pause]) -> f64 {
    let sum = |of: fn(&Pause) -> f64| pauses.iter().map(of).fold(0.0, f64::add);
    sum(|pause| pause.time_s * pause.cpus) / sum(|pause| pause.time_s)
}

impl Slice {
    fn pause(&self) -> Pause {
        Pause { time_s: (self.stands_for_s() - self.traced_s.0).max(0.0), cpus: self.cpus() }
    }

    /// How many CPUs the threads had.
    fn cpus(&self) -> f64 {
        let on_cpu_s = self.sum(|spent| matches!(spent.doing, Doing::OnCpu | Doing::ReclaimOnCpu));
        if self.traced_s.0 > 0.0 { on_cpu_s / self.traced_s.0 } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Interval;
    use crate::activity::{Polling, Spent};
    use crate::database::Model;

    /// Slices of a second each, with so much time on a CPU, that stand for so much.
    fn activity(slices: &[(f64, f64)]) -> Activity {
        let slice = |(on_cpu_s, stands_for_s): &(f64, f64)| {
            let spent = |doing, time_s| Spent::own(Polling::Forever, doing, Seconds(time_s));
            let spent =
                vec![spent(Doing::OnCpu, *on_cpu_s), spent(Doing::Filesystem, 1.0 - on_cpu_s)];
            Slice {
                stands_for_s: Some(Seconds(*stands_for_s)),
                ..Slice::traced(Seconds(1.0), spent)
            }
        };
        let window_s = Seconds(slices.iter().map(|slice| slice.1).sum());
        Activity::traced("redis:1", window_s, slices.iter().map(slice).collect())
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
        activity.weigh([Seconds(4.8); 2]);
        let [on_cpu, hung] = on_cpu_and_hung(&activity);
        assert!((on_cpu - 4.8).abs() < 1e-9 && (hung - 7.2).abs() < 1e-9, "{on_cpu} {hung}");
        assert!((activity.watched_s().0 - watched.0).abs() < 1e-9);
        let whole = activity.clone();
        activity.weigh([Seconds(4.8); 2]);
        let same = activity
            .slices
            .iter()
            .zip(&whole.slices)
            .all(|(a, b)| (a.stands_for_s() - b.stands_for_s()).abs() < 1e-9);
        assert!(same, "it is done once and for all");
    }

    #[test]
    fn one_quiet_slice_among_many_stands_for_the_quiet_half() {
        let mut activity = activity(&[&[(0.8, 2.0); 9][..], &[(0.0, 2.0)]].concat());
        activity.weigh([Seconds(10.0); 2]);
        let [on_cpu, hung] = on_cpu_and_hung(&activity);
        assert!((on_cpu - 10.0).abs() < 1e-9 && (hung - 10.0).abs() < 1e-9, "{on_cpu} {hung}");
    }

    #[test]
    fn what_was_traced_stays_and_what_nobody_saw_is_not_made_up() {
        let mut far = activity(&[(0.8, 4.0), (0.4, 4.0)]);
        far.weigh([Seconds(0.1); 2]);
        let [first, second] = [0, 1].map(|at: usize| far.slices[at].stands_for_s());
        let [least, most] = [6.0 / (1.0 + MOST), 6.0 * MOST / (1.0 + MOST)];
        let are = (first - 1.0 - least).abs() < 1e-9 && (second - 1.0 - most).abs() < 1e-9;
        assert!(are, "{first} {second}");
        for unchanged in [&[(0.8, 1.0), (0.2, 1.0)][..], &[(0.5, 2.0), (0.5, 3.0)], &[]] {
            let mut activity = activity(unchanged);
            let before = activity.clone();
            activity.weigh([Seconds(0.1); 2]);
            assert_eq!(activity.slices, before.slices);
        }
    }

    #[test]
    fn where_slices_cannot_hold_what_was_counted_intervals_say_so() {
        let mut activity = activity(&[(0.8, 4.0), (0.4, 4.0)]);
        let hung = |activity: &Activity| {
            let waits = |spent: &Spent| spent.doing == Doing::Filesystem;
            activity.share(Model::Loop, waits).unwrap()
        };
        activity.weigh([Seconds(4.2); 2]);
        let known = hung(&activity);
        assert!((known.low - 0.2).abs() < 1e-9 && (known.high - 0.6).abs() < 1e-9, "{known:?}");
        // Nobody was on a CPU in the pauses, though somebody was in each slice.
        activity.weigh([Seconds(1.2); 2]);
        let unseen = activity.unseen();
        assert!((unseen - 0.75).abs() < 1e-9, "all of the pauses: {unseen}");
        let (wide, left) = (hung(&activity), 1.0 - unseen);
        assert!((wide.low - 0.2 * left).abs() < 1e-9, "{wide:?}");
        assert!((wide.high - (0.6 * left + unseen)).abs() < 1e-9, "{wide:?}");
        let never = activity.share(Model::Loop, |spent| spent.doing == Doing::Disk).unwrap();
        assert_eq!(never, Interval::exact(0.0), "what nobody saw is not made up");
    }

    #[test]
    fn what_is_known_to_bounds_is_weighed_to_the_nearer_one() {
        let held_s = |bounds: [f64; 2]| {
            let mut activity = activity(&[(0.8, 4.0), (0.4, 4.0)]);
            activity.weigh(bounds.map(Seconds));
            on_cpu_and_hung(&activity)[0]
        };
        assert!((held_s([4.5, 5.0]) - 4.8).abs() < 1e-9);
        assert!((held_s([3.9, 4.2]) - 4.2).abs() < 1e-9);
        assert!((held_s([5.0, 5.2]) - 5.0).abs() < 1e-9);
    }

    #[test]
    fn a_slice_without_a_pause_may_be_far_from_all_others() {
        let mut activity = activity(&[(0.999, 4.0), (1.0, 4.0), (0.0, 1.0)]);
        activity.weigh([Seconds(7.9); 2]);
        let watched_s = activity.watched_s().0;
        assert!((watched_s - 9.0).abs() < 1e-9, "{watched_s}");
    }
}
