//! Where a database's time went, and what a share of it is worth.

use crate::model::cpus;
use std::ops::Add;
use untax_core::activity::{Doing, Part, Spent};
use untax_core::check::TimeShares;
use untax_core::database::Model;
use untax_core::window::{Other, Pair};
use untax_core::{Activity, Ceiling, Interval, Reading, Seconds, Window};

/// What a database wanted of the machine, and what it shared with others.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Demand {
    /// The time on CPU of its threads that serve requests, that to free memory included.
    pub on_cpu_s: f64,
    /// Their time waiting for a CPU that others had.
    pub contended_s: f64,
    /// All of their time but idle; without tracing, time on CPU or runnable.
    pub active_s: f64,
    /// Their waits of unknown meaning, any part of which may be active time.
    pub unknown_s: f64,
    /// The time on CPU, of anybody, of the machine's CPUs; here and below of those alone that the
    /// database may use.
    pub busy_s: f64,
    /// What the hypervisor took of them while they were wanted.
    pub stolen_s: f64,
    /// What they could have done: busy and idle time.
    pub capacity_s: f64,
}

impl Demand {
    /// The demand of one database over a window.
    pub fn of(window: &Window, pair: &Pair) -> Reading<Self> {
        let demand = || {
            let [on_cpu_s, contended_s, active_s, unknown_s] = match pair.activity.value() {
                Some(activity) => traced_times(activity, pair.end.model),
                None => counted_times(pair).into_result()?,
            };
            let [start, end] = cpus::times(window, pair).into_result()?;
            let stolen_s = (end.steal_s - start.steal_s).0.max(0.0);
            // The machine cannot have been busy for less than one of its databases was: the two
            // are counted by different clocks, that of the trace goes on while a CPU is stolen.
            let busy_s = (end.busy_s - start.busy_s).0.max(on_cpu_s - stolen_s);
            let idle_s = (end.idle_s - start.idle_s).0.max(0.0);
            let capacity_s = busy_s + idle_s;
            Ok(Self { on_cpu_s, contended_s, active_s, unknown_s, busy_s, stolen_s, capacity_s })
        };
        Reading::from(demand()).and_then(|demand| {
            if demand.on_cpu_s > 0.0 {
                Reading::Present(demand)
            } else {
                Reading::Absent("the database used no CPU during the window".to_owned())
            }
        })
    }

    /// For how long CPUs were occupied, by whomever: by other guests of the hypervisor too.
    pub fn occupied_s(&self) -> f64 {
        self.busy_s + self.stolen_s
    }

    /// The part (0..1) of the occupied time that this machine had. The hypervisor took the rest, which
    /// `vm-steal` charges.
    pub fn unstolen_part(&self) -> f64 {
        self.busy_s / self.occupied_s()
    }

    /// The share of the database's active time that `taken_s` seconds on CPU account for. Waiting
    /// for a CPU is charged to what occupied the CPUs, in proportion: of every second that one was
    /// occupied, `taken_s / occupied_s` was this cause, but for what the hypervisor took of it.
    pub fn share_of(&self, taken_s: Interval) -> Interval {
        self.bound(taken_s.map(|taken| self.unstolen_part() * self.share_of_cpus(taken)))
    }

    /// A share of active time that is no wait of unknown meaning. It is smaller if such waits were
    /// active time.
    pub fn bound(&self, share: Interval) -> Interval {
        let known = self.active_s / (self.active_s + self.unknown_s);
        Interval::new(share.low * known, share.mid, share.high)
    }

    fn share_of_cpus(&self, taken_s: f64) -> f64 {
        let taken_s = taken_s.min(self.on_cpu_s);
        (taken_s + self.contended_s * taken_s / self.occupied_s()) / self.active_s
    }

    /// The share of the database's active time in which it waited for CPUs that somebody else had for
    /// `taken_s` seconds, in the same proportion.
    pub fn waited_for(&self, taken_s: Interval) -> Interval {
        let part = |taken: f64| (taken / self.occupied_s()).min(1.0);
        self.bound(taken_s.map(|taken| self.contended_s * part(taken) / self.active_s))
    }
}

/// The processes that used CPUs beside those of a database, the busiest first.
pub fn others<'a>(window: &'a Window, pair: &Pair) -> impl Iterator<Item = &'a Other> {
    window.others.iter().filter(|other| !pair.end.pids.contains(&other.pid))
}

/// The processes that took CPUs from a database, neither its own nor its clients', and for how long (s),
/// the busiest first.
pub fn neighbours<'a>(window: &'a Window, pair: &Pair) -> Vec<(&'a Other, f64)> {
    let clients = pair.activity.value().map_or(&[][..], |activity| &activity.clients);
    let neighbours = others(window, pair).filter(|other| !clients.contains(&other.pid));
    let taken =
        neighbours.map(|other| (other, other.cpu_s.0 * cpus::overlap_part(window, pair, other)));
    let mut taken: Vec<(&Other, f64)> = taken.filter(|(_, taken_s)| *taken_s > 0.0).collect();
    taken.sort_by(|a, b| b.1.total_cmp(&a.1));
    taken
}

/// How long those of its neighbours had CPUs (s) that are in such control groups.
pub fn cpu_s_in_groups(window: &Window, pair: &Pair, is_of: impl Fn(&str) -> bool) -> f64 {
    let neighbours = neighbours(window, pair);
    let of = neighbours.iter().filter(|(other, _)| other.cgroup.value().is_some_and(|g| is_of(g)));
    of.map(|(_, taken_s)| taken_s).sum()
}

/// Their part of the time that CPUs were occupied, and so of what the database waited for CPUs.
pub fn neighbours_part(window: &Window, pair: &Pair, demand: &Demand) -> f64 {
    let taken_s: f64 = neighbours(window, pair).iter().map(|(_, taken_s)| taken_s).sum();
    // Where it is on few CPUs of many, who may use all is elsewhere, most likely. What the trace has
    // on a CPU holds what was stolen of it.
    let ran_s = demand.on_cpu_s * demand.unstolen_part();
    let is_pinned = cpus::own_part(window, pair) < 1.0;
    let most_s = if is_pinned { (demand.busy_s - ran_s).max(0.0) } else { f64::INFINITY };
    (taken_s.min(most_s) / demand.occupied_s()).min(1.0)
}

/// The most that a closed loop's throughput grows by when this share of its time is saved.
pub fn factor(share: f64) -> f64 {
    Ceiling::of_share(share).factor()
}

fn traced_times(activity: &Activity, model: Model) -> [f64; 4] {
    let on_cpu = |spent: &Spent| matches!(spent.doing, Doing::OnCpu | Doing::ReclaimOnCpu);
    let on_cpu_s = activity.sum(|spent| on_cpu(spent) && !spent.in_background(model)).0;
    let contended_s = activity.part(Part::Contended, model).0;
    [on_cpu_s, contended_s, activity.active(model).0, activity.unknown(model).0]
}

fn counted_times(pair: &Pair) -> Reading<[f64; 4]> {
    on_cpu(pair).and_then(|on_cpu| {
        runnable(pair).map(|runnable| [on_cpu, runnable, on_cpu + runnable, 0.0])
    })
}

/// What counts as active where nothing is traced: time on CPU and runnable, s.
pub fn counted_active_s(pair: &Pair) -> Reading<f64> {
    counted_times(pair).map(|[_, _, active_s, _]| active_s)
}

/// By the kernel's clock, as user and kernel time are: that of the trace goes on while a CPU is stolen.
pub fn on_cpu(pair: &Pair) -> Reading<f64> {
    pair.growth("time on CPU", |d| d.counters.on_cpu_s.clone().map(|s| s.0))
}

fn runnable(pair: &Pair) -> Reading<f64> {
    // Threads that ended took their waiting with them, so the sum over the living may shrink.
    pair.growth("time runnable", |d| d.counters.runnable_s.clone().map(|s| s.0))
}

/// Where the time of a database's threads went.
pub fn time_shares(pair: &Pair) -> TimeShares {
    let part = |parts: &[Part]| {
        let part = |a: &Activity| {
            parts.iter().map(|p| a.part(*p, pair.end.model)).fold(Seconds(0.0), Add::add)
        };
        pair.activity.clone().map(part)
    };
    TimeShares {
        active_s: pair.activity.clone().map(|activity| activity.active(pair.end.model)),
        on_cpu_s: part(&[Part::OnCpu]).or_else(|| on_cpu(pair).map(Seconds)),
        minor_faults_s: minor_faults(pair),
        runnable_s: part(&[Part::Contended, Part::Throttled, Part::WakeUp])
            .or_else(|| runnable(pair).map(Seconds)),
        throttled_s: part(&[Part::Throttled]),
        wake_up_s: part(&[Part::WakeUp]),
        disk_s: part(&[Part::Disk]),
        reclaim_s: part(&[Part::Reclaim]),
        lock_s: part(&[Part::Lock]),
        network_s: part(&[Part::Network]),
        idle_s: part(&[Part::Idle]),
        unaccounted_s: part(&[Part::Unaccounted]),
        unaccounted_call: pair.activity.clone().and_then(|activity| {
            let none = || Reading::absent("no wait was in a system call of unknown meaning");
            activity.unknown_call.clone().map_or_else(none, Reading::Present)
        }),
    }
}

/// The time on a CPU that went into page faults: samples are of all of it, that to free memory included,
/// which none of these is.
fn minor_faults(pair: &Pair) -> Reading<Seconds> {
    pair.activity.clone().and_then(|activity| {
        let sampled_s = activity.doing(&[Doing::OnCpu, Doing::ReclaimOnCpu]).0;
        let on_cpu_s = activity.part(Part::OnCpu, pair.end.model).0;
        let faulting = |share: Interval| Seconds((share.mid * sampled_s).min(on_cpu_s));
        activity.share_faulting().map(faulting)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_window;
    use untax_core::activity::Doing;

    const SATURATED: Demand = Demand {
        on_cpu_s: 12.0,
        contended_s: 300.0,
        active_s: 312.0,
        unknown_s: 0.0,
        busy_s: 20.0,
        stolen_s: 0.0,
        capacity_s: 20.0,
    };

    #[test]
    fn waiting_is_charged_to_what_occupied_the_cpus() {
        // 4 of 20 busy seconds: about a fifth of all waiting, and of the demand.
        let share = SATURATED.share_of(Interval::exact(4.0));
        assert!((share.mid - (4.0 + 60.0) / 312.0).abs() < 1e-12);
        // Where other guests had the CPUs as long as this machine did, half of it is theirs.
        let stolen = Demand { stolen_s: 20.0, ..SATURATED };
        let share = stolen.share_of(Interval::exact(4.0));
        assert!((share.mid - (2.0 + 15.0) / 312.0).abs() < 1e-12);
    }

    #[test]
    fn waits_of_unknown_meaning_lower_the_lower_bound() {
        let unknown = Demand { unknown_s: 312.0, ..SATURATED };
        let [without, with] =
            [SATURATED, unknown].map(|demand| demand.share_of(Interval::exact(4.0)));
        assert!((with.low - without.low / 2.0).abs() < 1e-12, "{with:?}");
        assert_eq!(with, Interval { low: with.low, ..without });
        let mut window = test_window::postgres();
        test_window::trace(&mut window, &[(Doing::OnCpu, 5.0), (Doing::Other, 200.0)]);
        let time = time_shares(&window.databases().next().unwrap());
        assert_eq!(time.active_s, Reading::Present(Seconds(5.0)), "unknown is not active");
        assert_eq!(time.unaccounted_s, Reading::Present(Seconds(200.0)));
    }

    #[test]
    fn tracing_that_overlooked_threads_is_a_gap() {
        let active_s = |on_cpu_s: f64, looked: f64| {
            let mut window = test_window::postgres();
            let counted = window.start.databases[0].counters.on_cpu_s.clone();
            test_window::trace(&mut window, &[(Doing::OnCpu, on_cpu_s)]);
            window.start.databases[0].counters.on_cpu_s = counted;
            let activity = window.activity.as_mut().into_value().expect("it was traced");
            let slice = &mut activity[0].slices[0];
            slice.traced_s = Seconds(10.0 * looked);
            slice.stands_for_s = Some(Seconds(10.0));
            let pair = window.databases().next().expect("it has one database");
            time_shares(&pair).active_s
        };
        assert_eq!(active_s(12.0, 1.0), Reading::Present(Seconds(12.0)));
        let says = |gap, word| matches!(gap, Reading::Failed(why) if why.contains(word));
        assert!(says(active_s(0.5, 1.0), "saw 0.5 of"));
        assert!(says(active_s(0.5, 1.0), "were overlooked"));
        assert!(says(active_s(0.05, 0.1), "longer --window"));
    }

    #[test]
    fn page_faults_are_a_part_of_the_time_on_cpu() {
        let mut window = test_window::postgres();
        let time = |window: &Window| time_shares(&window.databases().next().unwrap());
        assert!(!time(&window).minor_faults_s.is_present(), "not traced: {:?}", time(&window));
        test_window::trace(&mut window, &[(Doing::OnCpu, 8.0), (Doing::ReclaimOnCpu, 2.0)]);
        let why = time(&window).minor_faults_s.why().unwrap();
        assert!(why.contains("cannot be sampled"), "{why}");
        // 200 of 1000 samples of all ten seconds.
        test_window::sample_faulting(&mut window, 200);
        assert_eq!(time(&window).minor_faults_s, Reading::Present(Seconds(2.0)));
        assert_eq!(time(&window).on_cpu_s, Reading::Present(Seconds(8.0)), "they are part of it");
        test_window::sample_faulting(&mut window, 900);
        assert_eq!(time(&window).minor_faults_s, Reading::Present(Seconds(8.0)));
        test_window::sample_faulting(&mut window, 0);
        assert_eq!(time(&window).minor_faults_s, Reading::Present(Seconds(0.0)), "measured");
    }

    #[test]
    fn a_cause_cannot_take_more_than_there_was() {
        let share = SATURATED.share_of(Interval::exact(1e9));
        assert!(share.high <= 1.0);
    }
}
