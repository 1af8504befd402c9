//! What throughput gains without a stall: the model of a closed loop.

use super::Stall;
use crate::model::accounting::{Demand, MOST_SAVED, factor};
use untax_core::{Gain, Interval};

/// The most that a request's time on CPU shrinks by when its server no longer stops: threads that
/// find work waiting need not be woken on idle CPUs. The lab saw factors of 1.2 to 1.8 on two
/// virtual CPUs, larger the longer these were idle: about half of the idle time.
const FEWER_WAKEUPS: f64 = 2.0;

/// The most that neighbours raise a request's time on CPU by: they evict its data from the CPU caches,
/// and it loads the data again. That takes no longer than they had a CPU. The lab saw factors of 1.0 to
/// 1.2 beside neighbours that read and write memory.
const CACHE_COST_OF_NEIGHBOURS: f64 = 1.25;

impl Stall {
    /// Seconds on CPU of the database without the cause and of its clients on this machine. The trace's
    /// clock goes on while a CPU is stolen; the machine's clock does not.
    pub(super) fn own_s(&self, demand: &Demand, saved_s: f64) -> f64 {
        (demand.on_cpu_s - saved_s).max(0.0) * demand.unstolen_part() + self.clients.here_s
    }

    /// Busy seconds of the CPUs without the cause, before other threads use the freed time.
    fn remaining_busy_s(&self, demand: &Demand) -> f64 {
        let left_s = demand.busy_s - self.freed_s - self.saved_s * demand.unstolen_part();
        left_s.max(self.own_s(demand, self.saved_s))
    }

    /// Seconds that CPUs were idle because of the cause: of all idle time the part that the ended waits are
    /// of all waits but those for CPUs. `ended` is the share of active time that ends.
    fn idle_for_cause_s(&self, demand: &Demand, ended: f64) -> f64 {
        let computing = demand.share_of(Interval::exact(self.saved_s)).mid
            + self.waited_for(Interval::exact(self.freed_s)).mid;
        let idle_s = demand.capacity_s - demand.busy_s;
        let waiting = (demand.active_s - demand.on_cpu_s - demand.contended_s) / demand.active_s;
        let all = waiting + self.idle_between;
        if all > 0.0 { idle_s * ((ended - computing) / all).clamp(0.0, 1.0) } else { 0.0 }
    }

    /// The largest share of active time that the database saves on CPU caches once neighbours leave.
    fn most_cache_saving(&self) -> f64 {
        self.demand.value().map_or(0.0, |demand| {
            let own_s = (demand.on_cpu_s - self.saved_most_s).max(0.0);
            (own_s * (1.0 - 1.0 / CACHE_COST_OF_NEIGHBOURS)).min(self.freed_s) / demand.active_s
        })
    }

    /// The likely factor by which own work takes less CPU time once CPUs are no longer idle.
    fn wakeup_saving(&self, demand: &Demand, ended: f64) -> f64 {
        1.0 + (FEWER_WAKEUPS - 1.0) / 2.0 * self.idle_for_cause_s(demand, ended) / demand.capacity_s
    }

    /// The factor by which throughput can grow without the cause, until the database and its clients
    /// use all CPUs, or as many as their threads can use.
    pub fn room(&self) -> f64 {
        self.room_of(|_| 1.0)
    }

    /// The same, if their work takes less CPU time by that factor.
    fn room_of(&self, cheaper: impl Fn(&Demand) -> f64) -> f64 {
        let of_machine = |demand: &Demand| {
            demand.capacity_s / self.own_s(demand, self.saved_s) * cheaper(demand)
        };
        self.demand.value().map_or(f64::INFINITY, of_machine).min(self.clients.room())
    }

    /// The throughput factor without the cause where threads queue for CPUs: they use the freed time. Where
    /// more than one thread waits for each CPU, they use the idle time too.
    fn factor_with_queue(
        &self,
        demand: &Demand,
        ended: f64,
        loop_factor: impl Fn(f64) -> f64,
    ) -> f64 {
        let own_s = self.own_s(demand, self.saved_s);
        let left_s = self.remaining_busy_s(demand);
        let waits = demand.contended_s / demand.active_s;
        let waits_less =
            demand.waited_for(Interval::exact(self.saved_s * demand.unstolen_part())).mid
                + self.waited_for(Interval::exact(self.freed_s)).mid;
        let still_waits = (waits - waits_less).max(0.0);
        let most = if demand.contended_s > demand.capacity_s {
            let left_s = left_s - own_s + own_s / self.wakeup_saving(demand, ended);
            (demand.busy_s + self.idle_for_cause_s(demand, ended)) / left_s
        } else {
            demand.busy_s / left_s
        };
        loop_factor(ended + still_waits).min(most)
    }

    /// The throughput factor of a closed loop without the waiting.
    ///
    /// Clients take the same time between requests, and the machine has the same CPUs. Requests take less
    /// CPU time, because CPUs are idle for less. A thread that holds a lock loses as much of its time
    /// to the cause as others, so without the cause it holds the lock for less. The middle gives the
    /// database and its clients all CPUs. The lower bound leaves to others the CPUs that they use now. The
    /// upper bound lets requests take less CPU time, and less again where neighbours leave the caches.
    pub fn gain(&self) -> Gain {
        let [least, unhurried] = self.demand.value().map_or([f64::INFINITY; 2], |demand| {
            let times = |left_s: f64| demand.capacity_s / left_s;
            [
                times(self.remaining_busy_s(demand)),
                FEWER_WAKEUPS * times(self.own_s(demand, self.saved_most_s)),
            ]
        });
        let least = least.min(self.clients.room()).min(self.least_gain);
        let loop_factor = |share: f64, added: f64| {
            let serving = 1.0 - self.background;
            let left = serving - share.min(serving * MOST_SAVED);
            if serving > 0.0 {
                (serving + self.idle_between) / (left + added + self.idle_without)
            } else {
                1.0
            }
        };
        let ends = |share: f64, ends_too: f64| {
            let ended = share + ends_too;
            let holding = 1.0 - self.queued + self.idle_between;
            ended + if holding > 0.0 { self.queued * (ended / holding).min(1.0) } else { 0.0 }
        };
        let high = ends(self.share.high, self.ends_too_most) + self.most_cache_saving();
        let low = loop_factor(self.share.low, self.added_most).min(least).max(1.0);
        let ended = ends(self.share.mid, self.ends_too);
        let most = self.room_of(|demand| self.wakeup_saving(demand, ended));
        let with_queue = self.demand.value().map_or(1.0, |demand| {
            self.factor_with_queue(demand, ended, |share| loop_factor(share, 0.0))
        });
        let mid = loop_factor(ended, 0.0).max(with_queue).min(most).max(1.0);
        let high = factor(high).max(loop_factor(high, 0.0)).min(unhurried).max(1.0);
        // A thread waits for the next request of a limit for as long as others ask for requests. So the
        // requests decide the gain, and not how long each thread waits.
        let mid = self.held.map_or(mid, |(factor, waiting)| {
            loop_factor(ends(waiting, self.ends_too), 0.0).min(factor).min(most).max(1.0)
        });
        Gain::from(Interval::new(low.min(mid), mid, high.max(mid)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_window;
    use untax_core::Reading;
    use untax_core::activity::Doing;
    use untax_core::window::Other;
    use untax_core::{Seconds, Window};

    /// Of ten seconds that somebody is active, so long each.
    fn gain(times: &[(Doing, f64)], client_s: Option<f64>) -> f64 {
        gain_beside(times, client_s, 77)
    }

    fn gain_beside(times: &[(Doing, f64)], client_s: Option<f64>, client: u32) -> f64 {
        let mut window = test_window::postgres();
        test_window::trace(&mut window, times);
        if let (Some(cpu_s), Reading::Present(activities)) = (client_s, &mut window.activity) {
            activities[0].clients = vec![client];
            window.others = vec![Other::unknown(client, "client", Seconds(cpu_s), "not read")];
        }
        let pair = window.databases().next().unwrap();
        let stall = Stall::of(&window, &pair, |spent| spent.doing == Doing::Disk);
        stall.into_value().flatten().unwrap().gain().factor
    }

    #[test]
    fn who_holds_a_lock_waits_for_disks_as_others_do() {
        let gain = gain(&[(Doing::OnCpu, 1.0), (Doing::Disk, 6.0), (Doing::Futex, 3.0)], None);
        // Of the 3 s behind locks 6 / 7 were for the disk too.
        assert!((gain - 7.0).abs() < 1e-9, "{gain}");
    }

    #[test]
    fn what_comes_back_of_connections_holds_what_was_stolen_of_them() {
        let mut window = test_window::postgres();
        test_window::trace(&mut window, &[(Doing::OnCpu, 10.0)]);
        if let Reading::Present(activities) = &mut window.activity {
            activities[0].slices[0].connecting_s = Seconds(6.0);
        }
        let gain = |window: &Window| {
            let pair = window.databases().next().unwrap();
            let stall = Stall::of_connections(window, &pair, [0.0; 2], 1.0);
            stall.into_value().flatten().unwrap().gain().high
        };
        let without = gain(&window);
        if let Reading::Present(time) = &mut window.end.host.cpu_time {
            time.steal_s = Seconds(20.0);
        }
        assert!((gain(&window) - without).abs() < 1e-9, "{} and {without}", gain(&window));
    }

    /// Ten seconds of a database on a machine whose CPUs are busy for 20 s, when what had them for that
    /// long ends.
    fn gain_without(freed_s: f64, times: &[(Doing, f64)]) -> Gain {
        let mut window = test_window::postgres();
        test_window::trace(&mut window, times);
        let pair = window.databases().next().unwrap();
        let stall = Stall::of(&window, &pair, |_| false).into_value().flatten().unwrap();
        stall.with_neighbours_cpu_time(freed_s).gain()
    }

    #[test]
    fn who_waits_for_cpus_takes_up_what_others_leave() {
        let times = [(Doing::OnCpu, 1.0), (Doing::Contended, 8.0), (Doing::Disk, 1.0)];
        let many = gain_without(10.0, &times).factor;
        assert!((many - 2.0).abs() < 1e-9, "the rest has twice the CPUs: {many}");
        let times = [(Doing::OnCpu, 4.0), (Doing::Contended, 1.0), (Doing::Disk, 5.0)];
        let few = gain_without(10.0, &times).factor;
        assert!((few - 10.0 / 9.0).abs() < 1e-9, "no more than it waited for: {few}");
    }

    /// What a faster disk brings where CPUs stood idle for so long, or were stolen.
    fn gain_of_disks(idle_s: f64, stolen_s: f64, times: &[(Doing, f64)]) -> f64 {
        let mut window = test_window::postgres();
        test_window::trace(&mut window, times);
        if let Reading::Present(time) = &mut window.end.host.cpu_time {
            time.idle_s = time.idle_s + Seconds(idle_s);
            time.steal_s = time.steal_s + Seconds(stolen_s);
        }
        let pair = window.databases().next().unwrap();
        let stall = Stall::of(&window, &pair, |spent| spent.doing == Doing::Disk);
        stall.into_value().flatten().unwrap().gain().factor
    }

    #[test]
    fn where_many_wait_for_cpus_those_that_stood_idle_are_taken_up() {
        // Of 40 s that there are others keep 10, and who is woken less often takes 8 instead of 10.
        let times = [(Doing::OnCpu, 10.0), (Doing::Contended, 60.0), (Doing::Disk, 30.0)];
        let many = gain_of_disks(20.0, 0.0, &times);
        assert!((many - 40.0 / 18.0).abs() < 1e-9, "{many}");
        let times = [(Doing::OnCpu, 10.0), (Doing::Contended, 30.0), (Doing::Disk, 60.0)];
        let few = gain_of_disks(20.0, 0.0, &times);
        assert!((few - 2.5).abs() < 1e-9, "less than one for each CPU: {few}");
    }

    #[test]
    fn what_was_stolen_of_own_time_leaves_as_much_room() {
        let times = [(Doing::OnCpu, 20.0), (Doing::Disk, 80.0)];
        let gain = gain_of_disks(0.0, 20.0, &times);
        assert!((gain - 2.0).abs() < 1e-9, "of 20 s that were not it computed half: {gain}");
    }

    #[test]
    fn own_work_may_be_cheaper_without_others_by_no_more_than_they_computed() {
        let high = |freed_s| gain_without(freed_s, &[(Doing::OnCpu, 10.0)]).high;
        assert!((high(0.0) - 1.0).abs() < 1e-9);
        assert!((high(1.0) - 10.0 / 9.0).abs() < 1e-9, "{}", high(1.0));
        assert!((high(8.0) - CACHE_COST_OF_NEIGHBOURS).abs() < 1e-9, "{}", high(8.0));
    }

    #[test]
    fn a_client_of_one_thread_has_one_cpu() {
        let times = [(Doing::OnCpu, 2.0), (Doing::Disk, 8.0)];
        assert!((gain(&times, Some(0.1)) - 5.0).abs() < 1e-9);
        assert!((gain(&times, Some(8.0)) - 1.25).abs() < 1e-9);
        let own = gain_beside(&times, Some(8.0), 4012);
        assert!((own - 5.0).abs() < 1e-9, "a process that its own processes wake: {own}");
    }
}
