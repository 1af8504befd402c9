//! What removing a cause can bring, by the laws of queues: one closed network of clients, CPUs and delays.
//!
//! All seconds are sums over the threads that serve requests, over one window. Requests are not counted: what
//! they take after the removal is compared with what the same requests take now.

mod closed;
pub mod fitted;
#[cfg(test)]
mod simulated;

use closed::Closed;
use fitted::{CACHE_COST_OF_NEIGHBOURS, CHEAPER_WITHOUT_IDLING, DEARER_WITH_IDLING};
use untax_core::{Ceiling, Gain, Interval};

/// What a database was asked and what that took.
#[derive(Debug, Clone, Copy)]
pub struct Load {
    /// The length of the window.
    pub window_s: f64,
    /// Its threads' computing.
    pub computing_s: f64,
    /// Their waiting for CPUs that others had.
    pub queueing_s: f64,
    /// Their waiting because of a CPU limit.
    pub throttled_s: f64,
    /// All their other waiting inside requests.
    pub waiting_s: f64,
    /// Their waiting for the next request.
    pub thinking_s: f64,
    /// The computing of clients on the same CPUs.
    pub asking_s: f64,
    /// What of the waiting for the next request is that clients wait for these CPUs.
    pub asking_queue_s: f64,
    /// By what factor clients can ask for more until all their threads compute.
    pub asking_room: f64,
    /// What the CPUs that it may use could do, and for how long anybody used them.
    pub cpus_s: f64,
    pub busy_s: f64,
    /// For how long neighbours used them.
    pub neighbours_s: f64,
    /// What its control group may use of them.
    pub limit_s: Option<f64>,
    /// Whether CPUs that fall idle sleep.
    pub cpus_sleep: bool,
}

/// What becomes of a CPU limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Limit {
    /// It stays as it is.
    Stays,
    /// Nothing limits CPUs any more.
    Gone,
    /// The next one limits them.
    Next(f64),
}

impl Limit {
    /// Whether the present one ends.
    pub fn is_lifted(self) -> bool {
        self != Self::Stays
    }

    /// The same in another unit.
    #[must_use]
    pub fn scale(self, by: f64) -> Self {
        if let Self::Next(next) = self { Self::Next(next * by) } else { self }
    }
}

/// What ends with a cause.
#[derive(Debug, Clone, Copy)]
pub struct Removal {
    /// The database's own computing.
    pub computing_s: Interval,
    /// Waiting inside requests, but for CPUs.
    pub waiting_s: Interval,
    /// Computing of neighbours.
    pub freed_s: f64,
    /// The CPU limit.
    pub limit: Limit,
    /// Computing of clients, and their waiting between requests.
    pub asking_s: f64,
    pub asking_wait_s: f64,
    /// By what factor the rate of what is done one by one (requests of a disk) can grow.
    pub serial: Option<f64>,
}

impl Removal {
    /// Nothing.
    #[cfg(test)]
    pub const NOTHING: Self = Self {
        computing_s: Interval { low: 0.0, mid: 0.0, high: 0.0 },
        waiting_s: Interval { low: 0.0, mid: 0.0, high: 0.0 },
        freed_s: 0.0,
        limit: Limit::Stays,
        asking_s: 0.0,
        asking_wait_s: 0.0,
        serial: None,
    };

    /// Whether waiting for CPUs is a part of it.
    fn is_of_cpus(&self) -> bool {
        self.freed_s > 0.0 || self.limit.is_lifted()
    }
}

/// What a removal brings: of throughput and of latency.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gains {
    /// Requests done in the same time.
    pub throughput: Gain,
    /// Time of a request in the database, now over then.
    pub latency: Gain,
}

/// The same requests after a removal: how long they and their clients take, and how long they are in the database.
#[derive(Debug, Clone, Copy)]
struct After {
    cycle_s: f64,
    response_s: f64,
}

/// Threads that are without a request for a smaller part of their time are what limits requests.
const LEAST_PACED: f64 = 0.1;

/// Each round halves what is left of the difference to the fixed point.
const ROUNDS: u32 = 40;

impl Load {
    /// The time of its requests in the database.
    pub fn response_s(&self) -> f64 {
        self.computing_s + self.queueing_s + self.throttled_s + self.waiting_s
    }

    fn cycle_s(&self) -> f64 {
        self.response_s() + self.thinking_s
    }

    /// What comes of a removal.
    pub fn gains(&self, removal: &Removal) -> Gains {
        let now = After { cycle_s: self.cycle_s(), response_s: self.response_s() };
        let saved_s = self.most_saved_s(removal);
        let asking_s = self.most_asking_saved_s(removal);
        let most = Ceiling::of_loop(now.response_s, self.thinking_s, saved_s + asking_s)
            .and(self.most_of_cpus(removal))
            .and(Ceiling::of_capacity(self.asking_room, 1.0));
        let best =
            After { cycle_s: now.cycle_s / most.factor(), response_s: now.response_s - saved_s };
        let thinking_s = self.thinking_s - asking_s;
        let best = After { response_s: best.response_s.max(best.cycle_s - thinking_s), ..best };
        let likely = self.likely(removal);
        let worst = self.worst(removal);
        let serial = removal.serial.unwrap_or(f64::INFINITY);
        let throughput = |after: After| now.cycle_s / after.cycle_s;
        let latency = |after: After| now.response_s / after.response_s;
        let likely = After { cycle_s: likely.cycle_s.max(now.cycle_s / serial), ..likely };
        let likely = After { response_s: likely.response_s.max(now.response_s / serial), ..likely };
        let all = |of: &dyn Fn(After) -> f64| {
            let [low, mid, high] = [worst, likely, best].map(of);
            let mid = if mid.is_nan() { 1.0 } else { mid.clamp(1.0, high.max(1.0)) };
            Interval::new(low.min(mid), mid, high)
        };
        let most_latency = Ceiling::of_loop(now.response_s, 0.0, saved_s);
        let throughput = all(&throughput);
        let throughput =
            if self.may_be_paced() { Interval { low: 1.0, ..throughput } } else { throughput };
        Gains {
            throughput: Gain::predicted(throughput, most),
            latency: Gain::predicted(all(&latency), most_latency),
        }
    }

    /// Whether requests may come at the pace of clients that wait for no answer, as far as anybody here knows: then
    /// no more of them are done, however fast.
    fn may_be_paced(&self) -> bool {
        let explained_s = self.asking_s + self.asking_queue_s;
        let unexplained_s = self.thinking_s - explained_s;
        unexplained_s > explained_s && unexplained_s > LEAST_PACED * self.cycle_s()
    }

    /// What the CPUs could do for the database without the cause: beside others that keep what they use,
    /// beside neighbours that do, and at most.
    fn capacity_s(&self, removal: &Removal) -> [f64; 3] {
        let own_s = self.computing_s + self.asking_s;
        let others_s = (self.busy_s - own_s - removal.freed_s).max(0.0);
        let neighbours_s = (self.neighbours_s - removal.freed_s).clamp(0.0, others_s);
        let limit_s = match removal.limit {
            Limit::Stays => self.limit_s,
            Limit::Gone => None,
            Limit::Next(next_s) => Some(next_s),
        };
        // Its clients compute outside of its limit.
        let limited_s = |saved_s: f64| {
            let demand_s = (self.computing_s - saved_s).max(f64::MIN_POSITIVE);
            limit_s.map_or(f64::INFINITY, |s| s * (1.0 + self.asking_s / demand_s))
        };
        let least_s = own_s.min(self.cpus_s);
        let of = |others_s: f64, saved_s: f64| {
            (self.cpus_s - others_s).max(least_s).min(limited_s(saved_s))
        };
        let Interval { low, mid, high } = removal.computing_s;
        [of(others_s, low), of(neighbours_s, mid), of(0.0, high)]
    }

    /// The law of utilisation, for requests that take as little of CPUs as they can.
    fn most_of_cpus(&self, removal: &Removal) -> Ceiling {
        let [_, _, capacity_s] = self.capacity_s(removal);
        let own_s = (self.computing_s - removal.computing_s.high).max(0.0) - self.cached_s(removal);
        let asking_s = (self.asking_s - removal.asking_s).max(0.0);
        let cheaper = self.cheaper(capacity_s, CHEAPER_WITHOUT_IDLING[1]);
        Ceiling::of_capacity(capacity_s, (own_s + asking_s) / cheaper)
    }

    /// The most that is saved on caches once neighbours leave these to the database.
    fn cached_s(&self, removal: &Removal) -> f64 {
        let own_s = (self.computing_s - removal.computing_s.high).max(0.0);
        (own_s * (1.0 - 1.0 / CACHE_COST_OF_NEIGHBOURS)).min(removal.freed_s)
    }

    /// By what factor requests take less of CPUs, where so much of them is used that is idle now.
    fn cheaper(&self, used_s: f64, by: f64) -> f64 {
        let others_s = (self.busy_s - self.computing_s - self.asking_s).max(0.0);
        let idle_now = (1.0 - self.busy_s / self.cpus_s).clamp(0.0, 1.0);
        let idle_then = (1.0 - (used_s + others_s) / self.cpus_s).clamp(0.0, idle_now);
        1.0 + by * (idle_now - idle_then)
    }

    /// The part (0..1) of its waiting for CPUs that can end with so much less on these, as one queue that all
    /// share has it: it grows with busy / idle.
    fn unqueued_part(&self, ended_s: f64) -> f64 {
        let load = |busy_s: f64| busy_s / (self.cpus_s - busy_s).max(f64::MIN_POSITIVE);
        let busy_s = self.busy_s.min(self.cpus_s);
        1.0 - (load((busy_s - ended_s).max(0.0)) / load(busy_s)).clamp(0.0, 1.0)
    }

    /// The part (0..1) of the time for which CPUs are used that is others', and does not end.
    fn others_part(&self, removal: &Removal) -> f64 {
        let others_s = self.busy_s - self.computing_s - self.asking_s - removal.freed_s;
        (others_s / self.busy_s).clamp(0.0, 1.0)
    }

    fn ended_on_cpus_s(removal: &Removal) -> f64 {
        removal.freed_s + removal.computing_s.high + removal.asking_s
    }

    /// The most that can end of requests' time: where the cause is no CPU's, no waiting for CPUs.
    fn most_saved_s(&self, removal: &Removal) -> f64 {
        let unqueued = self.unqueued_part(Self::ended_on_cpus_s(removal)) * self.queueing_s;
        let cpu_s = if removal.limit.is_lifted() {
            self.throttled_s + self.queueing_s
        } else if removal.computing_s.high > 0.0 {
            unqueued + self.throttled_s
        } else if removal.freed_s > 0.0 {
            unqueued
        } else {
            0.0
        };
        let [_, _, capacity_s] = self.capacity_s(removal);
        let cheaper = self.cheaper(capacity_s, CHEAPER_WITHOUT_IDLING[1]);
        let warmer_s =
            if removal.is_of_cpus() { self.computing_s * (1.0 - 1.0 / cheaper) } else { 0.0 };
        let warmer_s = warmer_s + self.cached_s(removal);
        let saved_s = removal.waiting_s.high + removal.computing_s.high + cpu_s + warmer_s;
        // A request takes what it computes.
        let computes_s = (self.computing_s - removal.computing_s.high) / cheaper;
        saved_s.min(self.response_s() - (computes_s - self.cached_s(removal)).max(0.0))
    }

    /// The most that can end of the time between requests.
    fn most_asking_saved_s(&self, removal: &Removal) -> f64 {
        let ended_s = Self::ended_on_cpus_s(removal);
        let unqueued_s = if removal.limit.is_lifted() { 0.0 } else { self.unqueued_part(ended_s) };
        let queue_s = unqueued_s * self.asking_queue_s;
        (queue_s + removal.asking_s + removal.asking_wait_s).min(self.thinking_s)
    }

    /// What the model of the closed network expects.
    fn likely(&self, removal: &Removal) -> After {
        let [_, capacity_s, _] = self.capacity_s(removal);
        let computing_s = (self.computing_s - removal.computing_s.mid).max(0.0);
        let asking_s = (self.asking_s - removal.asking_s).max(0.0);
        let waiting_s = (self.waiting_s - removal.waiting_s.mid).max(0.0);
        // What it waits for CPUs that others go on using stays as it is.
        let waiting_s = waiting_s + self.queueing_s * self.others_part(removal);
        let queue_s = if removal.limit.is_lifted() { 0.0 } else { self.asking_queue_s };
        let mut after = After { cycle_s: self.cycle_s(), response_s: self.response_s() };
        // What it uses of CPUs follows from what it does, and what a request takes of one from that.
        for _ in 0..ROUNDS {
            let used_s = (computing_s + asking_s) * self.cycle_s() / after.cycle_s;
            let cheaper = self.cheaper(used_s.min(capacity_s), CHEAPER_WITHOUT_IDLING[0]);
            // What clients compute while others of them wait is no part of the cycle.
            let within_s = asking_s.min(self.thinking_s);
            let apart_s = (self.thinking_s - within_s - queue_s - removal.asking_wait_s).max(0.0);
            let demand_s = (computing_s + within_s) / cheaper;
            let at_cpus_s = self.closed(demand_s, capacity_s, waiting_s + apart_s).at_cpus_s();
            let most_s = (computing_s + asking_s) / cheaper * self.cycle_s() / capacity_s;
            let own = computing_s / (computing_s + within_s).max(f64::MIN_POSITIVE);
            let cycle_s = (at_cpus_s + waiting_s + apart_s).max(most_s);
            let response_s = own * (cycle_s - waiting_s - apart_s) + waiting_s;
            after = After { cycle_s: f64::midpoint(cycle_s, after.cycle_s), response_s };
        }
        after
    }

    /// All clients queue for the CPUs at once, and others keep what they use of these.
    fn worst(&self, removal: &Removal) -> After {
        let [capacity_s, ..] = self.capacity_s(removal);
        let idles = removal.freed_s > 0.0 && self.cpus_sleep;
        let dearer = if idles { DEARER_WITH_IDLING } else { 1.0 };
        let computing_s = (self.computing_s - removal.computing_s.low).max(0.0) * dearer;
        let within_s = self.asking_s.min(self.thinking_s) * dearer;
        let waiting_s = (self.waiting_s - removal.waiting_s.low).max(0.0);
        let apart_s = (self.thinking_s - within_s).max(0.0);
        let closed = self.closed(computing_s + within_s, capacity_s, waiting_s + apart_s);
        let beside_s = computing_s + within_s + self.queueing_s * self.others_part(removal);
        let at_cpus_s = closed.at_cpus_at_most_s().max(beside_s);
        let own = computing_s / (computing_s + within_s).max(f64::MIN_POSITIVE);
        After { cycle_s: at_cpus_s + waiting_s + apart_s, response_s: own * at_cpus_s + waiting_s }
    }

    /// The closed network: each client's time is a part of the window's.
    fn closed(&self, demand_s: f64, capacity_s: f64, delay_s: f64) -> Closed {
        let clients = self.cycle_s() / self.window_s;
        Closed { clients, demand_s, cpus: capacity_s / self.window_s, delay_s }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Eight clients in ten seconds on two CPUs.
    const CLOSED: Load = Load {
        window_s: 10.0,
        computing_s: 8.0,
        queueing_s: 12.0,
        throttled_s: 0.0,
        waiting_s: 40.0,
        thinking_s: 20.0,
        asking_s: 4.0,
        asking_queue_s: 6.0,
        asking_room: f64::INFINITY,
        cpus_s: 20.0,
        busy_s: 12.0,
        neighbours_s: 0.0,
        limit_s: None,
        cpus_sleep: false,
    };

    fn waits(waiting_s: f64) -> Removal {
        Removal { waiting_s: Interval::exact(waiting_s), ..Removal::NOTHING }
    }

    #[test]
    fn nothing_removed_is_nothing_gained() {
        let Gains { throughput, latency } = CLOSED.gains(&Removal::NOTHING);
        assert!((throughput.high - 1.0).abs() < 1e-9 && (latency.high - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_wait_that_ends_leaves_the_waits_for_cpus_and_what_cpus_can_do() {
        let all = CLOSED.gains(&waits(40.0)).throughput;
        // 80 of 40 s by the loop, 20 of 12 of the CPUs, cheaper by the 8 of 20 that are idle.
        assert!(all.high <= 20.0 / 12.0 * 1.4 + 1e-9, "{all:?}");
        assert!(all.low > 1.2 && all.factor > 1.4, "{all:?}");
        let few = CLOSED.gains(&waits(8.0)).throughput;
        assert!(few.high <= 80.0 / 72.0 + 1e-9, "no more than its share: {few:?}");
    }

    #[test]
    fn clients_that_think_gain_latency_and_hardly_throughput() {
        // 30 clients with 20 ms of think time, and two neighbours that compute all the time.
        let thinking = Load {
            computing_s: 4.0,
            queueing_s: 12.0,
            waiting_s: 0.0,
            thinking_s: 284.0,
            asking_s: 2.0,
            asking_queue_s: 3.0,
            busy_s: 20.0,
            neighbours_s: 14.0,
            ..CLOSED
        };
        let Gains { throughput, latency } =
            thinking.gains(&Removal { freed_s: 14.0, ..Removal::NOTHING });
        assert!(throughput.high < 1.06, "measured 1.01: {throughput:?}");
        assert!(latency.factor > 1.5, "{latency:?}");
    }

    #[test]
    fn a_standby_that_keeps_up_gains_nothing() {
        // It applies what its primary sends, 4 ms behind, and waits for more nine tenths of its time.
        let standby = Load {
            computing_s: 0.4,
            queueing_s: 0.2,
            waiting_s: 0.4,
            thinking_s: 9.0,
            asking_s: 0.0,
            asking_queue_s: 0.0,
            busy_s: 8.0,
            neighbours_s: 7.0,
            ..CLOSED
        };
        let without_neighbours = Removal { freed_s: 7.0, ..Removal::NOTHING };
        for removal in [waits(0.4), without_neighbours] {
            let gain = standby.gains(&removal).throughput;
            assert!(gain.high < 1.1 && gain.low <= 1.0, "it was said to be 2.6: {gain:?}");
        }
    }

    #[test]
    fn a_neighbour_frees_what_it_had_and_no_more() {
        let beside = |taken_s: f64| {
            let busy_s = 19.7 + taken_s;
            let load = Load {
                computing_s: 13.0,
                asking_s: 6.7,
                queueing_s: 40.0,
                waiting_s: 0.0,
                thinking_s: 27.0,
                busy_s,
                neighbours_s: taken_s,
                ..CLOSED
            };
            load.gains(&Removal { freed_s: taken_s, ..Removal::NOTHING }).throughput
        };
        // 0.03 CPUs of a machine of two, which was said to cost a factor of 1.42.
        assert!(beside(0.3).factor < 1.03, "{:?}", beside(0.3));
    }

    #[test]
    fn a_limit_gives_way_to_the_cpus_or_to_the_next_limit() {
        let throttled = Load {
            computing_s: 3.0,
            queueing_s: 2.0,
            throttled_s: 70.0,
            waiting_s: 0.0,
            thinking_s: 5.0,
            asking_s: 1.0,
            asking_queue_s: 0.0,
            busy_s: 4.2,
            limit_s: Some(3.0),
            ..CLOSED
        };
        let lifted = |limit| throttled.gains(&Removal { limit, ..Removal::NOTHING }).throughput;
        let all = lifted(Limit::Gone);
        assert!(all.low > 3.0 && all.high < 10.0, "20 s of CPUs for 4: {all:?}");
        let next = lifted(Limit::Next(6.0));
        assert!(next.high <= 2.0 * 2.0 && next.factor < 2.5, "twice the limit: {next:?}");
        let waits = throttled.gains(&waits(0.0)).throughput;
        assert!(waits.high < 1.0 + 1e-9, "the limit stays: {waits:?}");
    }

    #[test]
    fn of_two_causes_each_alone_leaves_the_other() {
        // Of a request's 8 s at the limit, 4 are behind a hot row: without it the limit is still there.
        let both = Load {
            computing_s: 3.0,
            queueing_s: 1.0,
            throttled_s: 20.0,
            waiting_s: 52.0,
            thinking_s: 4.0,
            asking_s: 1.0,
            asking_queue_s: 0.0,
            busy_s: 4.2,
            limit_s: Some(3.0),
            ..CLOSED
        };
        let row = both.gains(&waits(50.0)).throughput;
        assert!(row.high < 1.01, "it is used up already: {row:?}");
        let saved = Removal { computing_s: Interval::new(0.0, 0.0, 1.5), ..waits(50.0) };
        let row = both.gains(&saved).throughput;
        assert!(
            (1.9..=2.1).contains(&row.high),
            "what it burns of the limit counts twice: {row:?}"
        );
        let limit = both.gains(&Removal { limit: Limit::Gone, ..Removal::NOTHING }).throughput;
        assert!(limit.high < 80.0 / 54.0, "the row is still there: {limit:?}");
    }
}
