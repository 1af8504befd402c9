//! What a database gains without a stall: what ends with it, for the laws of queues.

use super::Stall;
use crate::model::accounting::Demand;
use crate::model::laws::{Gains, Load, Removal};
use untax_core::database::Model;
use untax_core::window::Pair;
use untax_core::{Ceiling, Gain, Interval, Reading, Window};

/// What requests gain that take so many seconds less of CPUs. Where nothing is traced nobody knows whether clients
/// think: throughput may not gain at all.
pub fn gains_of_cpu_time(
    window: &Window,
    pair: &Pair,
    demand: &Demand,
    taken_s: Interval,
) -> Gains {
    let all = Stall::of(window, pair, |_| false).into_value().flatten();
    let traced = all.and_then(|all| all.with_cpu_time(taken_s).into_value());
    let share = demand.share_of(taken_s);
    traced.map_or_else(
        || {
            let most = Ceiling::of_share(share.high);
            let mid = Ceiling::of_share(taken_s.mid / demand.occupied_s()).factor();
            let gain = |low: f64| Gain::predicted(Interval::new(low, mid, most.factor()), most);
            Gains { throughput: gain(1.0), latency: gain(1.0) }
        },
        |stall| stall.gains(),
    )
}

/// What requests gain that take that share less of active time, and throughput by these factors where clients do not
/// think.
pub fn gains_of_share(window: &Window, pair: &Pair, share: Interval, factor: Interval) -> Gains {
    let all = Stall::of(window, pair, |_| false).into_value().flatten();
    let thinking = all.map_or(0.0, |all| all.idle_between);
    let within = |thinking: f64, saved: f64| Ceiling::of_loop(1.0, thinking, saved);
    let bounded = |factor: f64, saved: f64| factor.min(within(thinking, saved).factor());
    let throughput = Interval::new(
        bounded(factor.low, share.low),
        bounded(factor.mid, share.mid),
        bounded(factor.high, share.high),
    );
    let latency = share.map(|saved| within(0.0, saved).factor());
    Gains {
        throughput: Gain::predicted(throughput, within(thinking, share.high)),
        latency: Gain::predicted(latency, within(0.0, share.high)),
    }
}

impl Stall {
    /// What removing the cause brings.
    pub fn gains(&self) -> Gains {
        match &self.demand {
            Reading::Present(demand) if demand.active_s > 0.0 => {
                self.load(demand).gains(&self.removal(demand))
            }
            _ => self.of_the_loop(),
        }
    }

    /// The factor by which throughput can grow, until the database and its clients use all CPUs, or as many as
    /// their threads can use.
    pub fn room(&self) -> Ceiling {
        let of_clients = Ceiling::of_capacity(self.clients.room(), 1.0);
        self.demand.value().map_or(of_clients, |demand| {
            let own_s = demand.on_cpu_s * demand.unstolen_part() + self.clients.here_s;
            Ceiling::of_capacity(demand.capacity_s, own_s).and(of_clients)
        })
    }

    /// Where nobody knows what CPUs there are: no more than the waits that end.
    fn of_the_loop(&self) -> Gains {
        let gain = |thinking: f64| {
            let ceiling = |share: f64| Ceiling::of_loop(1.0, thinking, share);
            let factors = self.share.map(|share| ceiling(share).factor());
            Gain::predicted(factors, ceiling(self.share.high))
        };
        Gains { throughput: gain(self.idle_between), latency: gain(0.0) }
    }

    /// What the database was asked, and what that took.
    fn load(&self, demand: &Demand) -> Load {
        let active_s = demand.active_s;
        let computing_s = demand.on_cpu_s * demand.unstolen_part();
        let throttled_s = self.throttled * active_s;
        let waiting_s = active_s - computing_s - demand.contended_s - throttled_s;
        let thinking_s = self.idle_between * active_s;
        let left_s = (thinking_s - self.clients.here_s).max(0.0);
        let asking_queue_s = match (self.clients.waited, self.model) {
            // Whenever a loop has nothing to do, its clients have.
            (Some(waited), Model::Loop) => left_s.min(thinking_s * waited),
            // While a thread of a client waits, so do all its connections.
            (Some(waited), _) if waited < 1.0 => {
                let room_s = self.clients.room_s.filter(|room_s| *room_s > 0.0);
                let each = room_s.map_or(1.0, |room_s| (active_s + thinking_s) / room_s).max(1.0);
                left_s.min(each * self.clients.cpu_s * waited / (1.0 - waited))
            }
            _ => 0.0,
        };
        Load {
            window_s: self.window_s,
            computing_s,
            queueing_s: demand.contended_s,
            throttled_s,
            waiting_s: waiting_s.max(0.0),
            thinking_s,
            asking_s: self.clients.here_s,
            asking_queue_s,
            asking_room: self.clients.room(),
            cpus_s: demand.capacity_s,
            busy_s: demand.busy_s,
            neighbours_s: self.neighbours_s,
            limit_s: self.limit_cpus.map(|cpus| cpus * self.window_s),
            cpus_sleep: self.cpus_sleep,
        }
    }

    /// What ends with the cause.
    fn removal(&self, demand: &Demand) -> Removal {
        let own_s = self.saved_s.scale(demand.unstolen_part());
        let freed = self.waited_for(Interval::exact(self.freed_s)).mid;
        // What is behind others that wait for a CPU or for the limit is waiting like any other.
        let throttled = if self.limit.is_lifted() { self.throttled } else { 0.0 };
        let waiting = |share: f64, ends_too: f64, saved_s: f64| {
            let computing = demand.share_of(Interval::exact(saved_s)).mid;
            let waits = share + ends_too - computing - freed - throttled;
            waits.max(0.0) * demand.active_s
        };
        let Interval { low, mid, high } = self.share;
        let likely = self.held.map_or(mid, |(_, waiting)| waiting);
        let waiting_s = Interval::new(
            waiting(low, 0.0, self.saved_s.low),
            waiting(likely, self.ends_too, self.saved_s.mid),
            waiting(high, self.ends_too_most, self.saved_s.high),
        );
        Removal {
            computing_s: own_s,
            waiting_s,
            freed_s: self.freed_s.min(demand.busy_s),
            limit: self.limit.scale(self.window_s),
            asking_s: self.asking_saved * self.clients.here_s,
            asking_wait_s: self.asking_waits * demand.active_s,
            serial: self.held.map(|(factor, _)| factor),
        }
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
        stall.into_value().flatten().unwrap().gains().throughput.factor
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
            stall.into_value().flatten().unwrap().gains().throughput.high
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
        stall.with_neighbours_cpu_time(freed_s).gains().throughput
    }

    #[test]
    fn cpus_that_others_leave_end_the_waits_for_them_and_no_others() {
        let times = [(Doing::OnCpu, 1.0), (Doing::Contended, 8.0), (Doing::Disk, 1.0)];
        let many = gain_without(10.0, &times).factor;
        // Others go on using 9 of 20 s: as much of its waiting stays.
        assert!((many - 10.0 / 5.6).abs() < 1e-9, "{many}");
        let times = [(Doing::OnCpu, 4.0), (Doing::Contended, 1.0), (Doing::Disk, 5.0)];
        let few = gain_without(10.0, &times);
        assert!(few.factor > 1.05 && few.high <= 10.0 / 8.2 + 1e-9, "{few:?}");
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
        stall.into_value().flatten().unwrap().gains().throughput.factor
    }

    #[test]
    fn waits_for_cpus_do_not_end_with_waits_for_disks() {
        let times = [(Doing::OnCpu, 10.0), (Doing::Contended, 60.0), (Doing::Disk, 30.0)];
        let many = gain_of_disks(20.0, 0.0, &times);
        assert!(many > 1.2 && many <= 100.0 / 70.0 + 1e-9, "{many}");
        let times = [(Doing::OnCpu, 10.0), (Doing::Contended, 30.0), (Doing::Disk, 60.0)];
        let few = gain_of_disks(20.0, 0.0, &times);
        assert!(few > 2.0 && few <= 2.5 + 1e-9, "{few}");
    }

    #[test]
    fn what_was_stolen_of_own_time_leaves_as_much_room() {
        let times = [(Doing::OnCpu, 20.0), (Doing::Disk, 80.0)];
        let gain = gain_of_disks(0.0, 20.0, &times);
        assert!((gain - 2.0).abs() < 0.01, "of 20 s that were not it computed half: {gain}");
    }

    #[test]
    fn own_work_may_be_cheaper_without_others_by_no_more_than_they_computed() {
        let high = |freed_s| gain_without(freed_s, &[(Doing::OnCpu, 10.0)]).high;
        assert!((high(0.0) - 1.0).abs() < 1e-9);
        assert!((high(1.0) - 10.0 / 9.0).abs() < 1e-9, "{}", high(1.0));
        assert!((high(8.0) - 1.25).abs() < 1e-9, "{}", high(8.0));
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
