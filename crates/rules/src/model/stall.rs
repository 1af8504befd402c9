//! Time that threads of a database spent waiting for the platform: what its rules share.

pub mod gain;

use crate::model::accounting::{Demand, neighbours};
use crate::model::clients::Clients;
use crate::model::idle_cpus::Idle;
use crate::model::idleness::is_idle;
use crate::model::laws::Limit;
use crate::model::sandbox::is_sandbox;
use untax_core::activity::{Cause, Doing, Part, Spent};
use untax_core::database::Model;
use untax_core::finding::Says;
use untax_core::window::Pair;
use untax_core::{
    Activity, Diagnosis, Evidence, Finding, Interval, Reading, Seconds, Severity, Tax, Unmeasured,
    Window,
};

/// Below this share of active time a cause is worth knowing and no more: paired trials on a quiet
/// machine cannot tell it from noise either (1.4 to 2 points between quartiles on dedicated ones).
pub const WORTH: f64 = 0.02;

/// The lower bounds of shares of active time from which a finding has severity medium and high.
const MEDIUM: f64 = 0.05;
const HIGH: f64 = 0.2;

/// Up to this many runnable threads for each CPU count as uncontended.
const UNCONTENDED_THREADS_PER_CPU: f64 = 1.1;

/// From so many serving threads for each CPU on, one that was woken hardly ever finds a CPU that sleeps:
/// polling gained 25 % with two clients on two virtual CPUs, 6 % with four and nothing with eight.
const THREADS_THAT_KEEP_A_CPU_AWAKE: f64 = 2.0;

/// Waiting of one kind.
pub struct Stall {
    /// Its share of the database's active time.
    pub share: Interval,
    demand: Reading<Demand>,
    /// Whether the database hardly worked at all.
    idle: bool,
    clients: Clients,
    /// The share of active time that ends with the cause and is not charged to it: as expected, and at
    /// most.
    ends_too: f64,
    ends_too_most: f64,
    /// Seconds on CPU, of others, that end with the cause.
    freed_s: f64,
    /// Its own seconds on CPU that end with the cause.
    saved_s: Interval,
    /// What becomes of its CPU limit without the cause, CPUs.
    limit: Limit,
    /// The shares of active time in which a CPU limit held its threads back, and in which they were behind threads
    /// that waited for a CPU.
    throttled: f64,
    behind_queue: f64,
    /// The lowest CPU limit on its control groups, CPUs.
    limit_cpus: Option<f64>,
    /// For how long neighbours used the CPUs that it may use, s.
    neighbours_s: f64,
    /// The time of serving threads between requests, over the active time.
    idle_between: f64,
    /// The part (0..1) of what clients compute that ends with the cause, and the waiting for clients that does, over
    /// the active time.
    asking_saved: f64,
    asking_waits: f64,
    /// By what factor the rate of requests may grow that a limit holds back, and the share of active
    /// time that may end with it at most.
    held: Option<(f64, f64)>,
    /// The length of the window, s.
    window_s: f64,
    model: Model,
    /// Whether CPUs that fall idle sleep, so that each request then waits for one to wake up.
    cpus_sleep: bool,
}

impl Stall {
    /// The share of active time for which `counts` is true, or why it is not known; `None` inside when
    /// the database was never active.
    pub fn of(
        window: &Window,
        pair: &Pair,
        counts: impl Fn(&Spent) -> bool,
    ) -> Reading<Option<Self>> {
        if is_sandbox(pair) {
            let why = "the threads that are seen are its sandbox's, and so are their waits";
            return Reading::Absent(why.to_owned());
        }
        let demand = Demand::of(window, pair);
        pair.activity.clone().map(|activity| {
            let share = activity.share(pair.end.model, &counts)?;
            let idle_between = idle_between(pair, activity);
            let active = activity.active(pair.end.model).0;
            let clients = Clients::of(window, pair, activity);
            let part_of = |time_s: Seconds| if active > 0.0 { time_s.0 / active } else { 0.0 };
            let throttled = part_of(activity.part(Part::Throttled, pair.end.model));
            let in_queue = |spent: &Spent| spent.behind == Some(Cause::RunQueue);
            let behind_queue = |spent: &Spent| in_queue(spent) && is_behind_lock(spent, pair);
            let behind_queue = part_of(activity.sum(behind_queue));
            let limits = pair.end.cgroup.value().and_then(|cgroup| cgroup.cpu.value());
            let limits = limits.into_iter().flatten().map(|limit| limit.cpus);
            Some(Self {
                share,
                demand,
                idle: is_idle(pair).value().is_some_and(|idle| *idle),
                clients,
                ends_too: 0.0,
                ends_too_most: 0.0,
                freed_s: 0.0,
                saved_s: Interval::exact(0.0),
                limit: Limit::Stays,
                throttled,
                behind_queue,
                limit_cpus: limits.min_by(f64::total_cmp),
                neighbours_s: neighbours(window, pair).iter().map(|(_, taken_s)| taken_s).sum(),
                idle_between,
                asking_saved: 0.0,
                asking_waits: 0.0,
                held: None,
                window_s: pair.seconds,
                model: pair.end.model,
                cpus_sleep: Idle::of(&window.end.host).is_some_and(Idle::sleeps),
            })
        })
    }

    /// The time that new connections took beside their requests. `filling` is the part (0..1) of their
    /// first requests that fills the caches of new processes: the likely part and the largest possible
    /// one. `serving` is the part (0..1) of started processes that serves clients.
    pub fn of_connections(
        window: &Window,
        pair: &Pair,
        filling: [f64; 2],
        serving: f64,
    ) -> Reading<Option<Self>> {
        let model = pair.end.model;
        Self::of(window, pair, |_| false).and_then(|stall| {
            pair.activity.clone().map(|activity| {
                let part = activity.part_connecting(filling)?.scale(serving);
                // A long computation waits for a CPU as seldom as a short one, so waiting for CPUs is
                // charged in proportion to time on CPU.
                let wants =
                    |spent: &Spent| matches!(spent.part(model), Part::OnCpu | Part::Contended);
                let stall = stall?;
                let taken = part.scale(activity.share(model, wants)?.mid);
                // `vm-steal` charges the stolen part of it, which ends with this cause too.
                let taken = match stall.demand.value() {
                    Some(demand) => demand.bound(taken),
                    None => taken,
                };
                let share = taken.scale(stall.demand.value().map_or(1.0, Demand::unstolen_part));
                let ends_too = taken.mid - share.mid;
                let saved_s = part.scale(activity.part(Part::OnCpu, model).0);
                let ends_too_most = ends_too;
                let stall = Self { share, ends_too, ends_too_most, saved_s, ..stall };
                Some(stall.with_clients_part(part.mid))
            })
        })
    }

    /// Lets clients save that part (0..1) of their time on CPU with the cause, and the server that part of
    /// its waiting for them.
    pub fn with_clients_part(mut self, part: f64) -> Self {
        self.asking_saved = part;
        let computing = self.demand.value().map_or(0.0, |d| self.clients.cpu_s / d.active_s);
        self.asking_waits = part * (self.idle_between - computing).max(0.0);
        self
    }

    /// Lets clients on this machine be woken without waiting for CPUs that sleep, as the server is: for a
    /// closed loop they wait as often as it does. What they compute remains.
    pub fn with_clients_woken(mut self, waiting: f64) -> Self {
        let computing = self.demand.value().map_or(0.0, |d| self.clients.cpu_s / d.active_s);
        if self.clients.cpu_s > 0.0 {
            self.asking_waits = waiting.min((self.idle_between - computing).max(0.0));
        }
        self
    }

    /// Lets requests take that part (0..1) less of CPUs without the cause, in the database and in its clients
    /// on this machine. Nothing of it is charged, and the lower bound of the gain is without it.
    pub fn with_cheaper_work(mut self, part: Interval) -> Self {
        let Some(demand) = self.demand.value() else { return self };
        let own_s = part.scale((demand.on_cpu_s - self.saved_s.mid).max(0.0));
        let share = demand.share_of(own_s);
        self.ends_too += share.mid;
        self.ends_too_most += share.high;
        self.saved_s = self.saved_s.plus(own_s);
        self.asking_saved = part.mid;
        self
    }

    /// The share `sampled` of time on CPU, with its part of waiting for a CPU; `None` inside when there
    /// were too few samples.
    pub fn of_calls(
        window: &Window,
        pair: &Pair,
        sampled: Option<Interval>,
    ) -> Reading<Option<Self>> {
        Self::of(window, pair, |_| false).and_then(|stall| match stall.zip(sampled) {
            Some((stall, sampled)) => stall.with_cpu_share(sampled).map(Some),
            None => Reading::Present(None),
        })
    }

    /// Adds that share of the database's time on CPU.
    pub fn with_cpu_share(self, share: Interval) -> Reading<Self> {
        let taken_s = self.demand.as_ref().map(|demand| share.scale(demand.on_cpu_s));
        taken_s.and_then(|taken_s| self.with_cpu_time(taken_s))
    }

    /// Adds so many seconds on CPU, with their part of waiting for a CPU.
    pub fn with_cpu_time(mut self, taken_s: Interval) -> Reading<Self> {
        if taken_s.high <= 0.0 {
            return Reading::Present(self);
        }
        self.demand.clone().map(|demand| {
            self.share = self.share.plus(demand.share_of(taken_s)).clamp(0.0, 1.0);
            self.saved_s = self.saved_s.plus(taken_s);
            self
        })
    }

    /// Adds the waiting for CPUs while workers of the kernel used them for the cause, for `taken_s` seconds.
    pub fn with_worker_time(mut self, taken_s: Interval) -> Self {
        self.share = self.share.plus(self.waited_for(taken_s)).clamp(0.0, 1.0);
        self.freed_s += taken_s.mid;
        self
    }

    /// The share of active time in which the database waited for CPUs that others had for `taken_s`
    /// seconds. Where its threads are no more than the CPUs, they never wait for each other, so all of the
    /// waiting is for others.
    fn waited_for(&self, taken_s: Interval) -> Interval {
        let Some(demand) = self.demand.value() else { return Interval::exact(0.0) };
        let all = demand.waited_for(taken_s);
        let threads_s = (1.0 + self.idle_between) * demand.active_s;
        let cpus_s = demand.capacity_s + demand.stolen_s;
        let own_s = demand.on_cpu_s * demand.unstolen_part() + self.clients.here_s;
        let others_s = demand.occupied_s() - own_s;
        if threads_s > UNCONTENDED_THREADS_PER_CPU * cpus_s || others_s <= 0.0 {
            return all;
        }
        let waits = demand.contended_s / demand.active_s;
        all.map(|share| (share * demand.occupied_s() / others_s).min(waits))
    }

    /// Charges the cause with only that part (0..1) of the waiting.
    pub fn times(mut self, part: f64) -> Self {
        self.share = self.share.map(|share| share * part);
        self.ends_too *= part;
        self.ends_too_most *= part;
        self.freed_s *= part;
        self.saved_s = self.saved_s.scale(part);
        self
    }

    /// Sets the bounds of the share, where the stall is time on CPU and waiting for one.
    pub fn with_bounds(mut self, low: f64, high: f64) -> Self {
        let share = self.share.clamp(low, high);
        let of = |one: f64, other: f64| if other > 0.0 { one / other } else { 1.0 };
        let saved_s = self.saved_s.mid * of(share.mid, self.share.mid);
        let bounds = [low, high].map(|bound| saved_s * of(bound, share.mid));
        self.saved_s = Interval::new(bounds[0], saved_s, bounds[1]);
        self.share = Interval::new(low, share.mid, high);
        self
    }

    /// Charges the cause with that share of active time instead.
    pub fn with_share(mut self, share: Interval) -> Self {
        self.share = share;
        self
    }

    /// Adds that share of active time.
    pub fn plus_share(mut self, share: Interval) -> Self {
        self.share = self.share.plus(share).clamp(0.0, 1.0);
        self
    }

    /// Lets that share of active time end with the cause, without charging it.
    pub fn with_ended_share(mut self, share: f64) -> Self {
        self.ends_too += share;
        self.ends_too_most += share;
        self
    }

    /// Lets neighbours stop computing with the cause, who had CPUs for `taken_s` seconds.
    pub fn with_neighbours_cpu_time(mut self, taken_s: f64) -> Self {
        self.freed_s += taken_s;
        let share = self.waited_for(Interval::exact(taken_s)).mid;
        self.with_ended_share(share)
    }

    /// Lets others free CPUs with the cause that they had for `taken_s` seconds, which are charged already.
    pub fn with_freed_time(mut self, taken_s: f64) -> Self {
        self.freed_s += taken_s;
        self
    }

    /// The waiting is for a limit on requests. Without the cause the limit leaves room for `factor` times
    /// as many requests, and at most the share `waiting` of active time ends.
    pub fn with_limit(mut self, factor: f64, waiting: f64) -> Self {
        self.held = Some((factor, waiting));
        self
    }

    /// Whether CPUs that others had would sleep between requests without these: few requests at once leave
    /// them idle, and to wake them may take longer than others held them.
    fn lets_cpus_sleep(&self) -> bool {
        let few = |demand: &Demand| {
            let threads_s = (1.0 + self.idle_between) * demand.active_s;
            threads_s < THREADS_THAT_KEEP_A_CPU_AWAKE * demand.capacity_s
        };
        self.cpus_sleep && self.freed_s > 0.0 && self.demand.value().is_some_and(few)
    }

    /// Whether there is a CPU for the thread of a loop and one for each of its clients'.
    pub fn has_cpu_for_each_client(&self, pair: &Pair) -> bool {
        let cpus_s = self.demand.value().map(|demand| demand.capacity_s);
        pair.end.model == Model::Loop
            && self.clients.cpu_s > 0.0
            && self.clients.room_s.zip(cpus_s).is_some_and(|(room_s, cpus_s)| {
                room_s + pair.seconds <= cpus_s + 0.1 * pair.seconds
            })
    }

    /// The waiting is for a CPU limit that ends. The next one, if any, leaves so many CPUs.
    pub fn with_limit_lifted(mut self, next: Option<f64>) -> Self {
        self.limit = next.map_or(Limit::Gone, Limit::Next);
        // Its waits for CPUs may end, and so may those of threads behind it.
        self.ends_too_most += self.behind_queue;
        self
    }

    /// How much it matters: nothing to a database that hardly does anything.
    pub fn severity(&self) -> Severity {
        if self.idle { Severity::Info } else { severity(self.share) }
    }

    /// The tax.
    pub fn tax(&self, method: impl Into<String>) -> Tax {
        Tax::new(self.share, method)
    }
}

/// How much a share of a database's time matters: as much as it is at least.
pub fn severity(share: Interval) -> Severity {
    match share.low {
        share if share < WORTH => Severity::Info,
        share if share < MEDIUM => Severity::Low,
        share if share < HIGH => Severity::Medium,
        _ => Severity::High,
    }
}

/// The time that serving threads waited for their clients between requests, over the active time.
fn idle_between(pair: &Pair, activity: &Activity) -> f64 {
    let model = pair.end.model;
    let waits = |s: &Spent| s.serves(model) && matches!(s.doing, Doing::Poll | Doing::Receive);
    let active = activity.active(model).0;
    if active > 0.0 { activity.sum(waits).0 / active } else { 0.0 }
}

/// Whether the thread waits for a lock of the database, and a client waits for the thread: another one computes
/// meanwhile, or waits for its own client. What is behind anything else goes to that. Older runs do not tell.
pub fn is_lock_wait(spent: &Spent, pair: &Pair) -> bool {
    let computes = match spent.behind {
        Some(behind) => matches!(behind, Cause::Cpu | Cause::Idle),
        None => spent.doing == Doing::Fault || !is_followed(pair),
    };
    computes && is_behind_lock(spent, pair)
}

/// Whether it waits for a lock whose holder waits for a CPU.
pub fn is_behind_cpus(spent: &Spent, pair: &Pair) -> bool {
    let waits = matches!(spent.behind, Some(Cause::RunQueue | Cause::Throttled | Cause::WakeUp));
    waits && is_behind_lock(spent, pair)
}

fn is_behind_lock(spent: &Spent, pair: &Pair) -> bool {
    let model = pair.end.model;
    spent.part(model) == Part::Lock && !spent.in_background(model)
}

fn is_followed(pair: &Pair) -> bool {
    pair.activity.value().is_some_and(|activity| activity.is_followed())
}

/// The parts of a finding that each rule fills in.
pub struct Words {
    /// One line: what is the case.
    pub summary: String,
    /// One line: what to change.
    pub fix: String,
    /// What it stands on.
    pub evidence: Vec<Evidence>,
    /// How the tax was measured.
    pub method: String,
    /// The remedy's id.
    pub remedy: Option<&'static str>,
}

/// The finding of a stall.
pub fn finding(rule: &str, stall: &Stall, words: Words) -> Says {
    // Requests may be slower once CPUs sleep between them: nothing is promised.
    let gains = (!stall.lets_cpus_sleep()).then(|| stall.gains());
    Says::Found(Finding {
        evidence: words.evidence,
        tax: Some(stall.tax(words.method)),
        gain: gains.map(|gains| gains.throughput),
        latency_gain: gains.map(|gains| gains.latency),
        remedy: words.remedy.map(str::to_owned),
        ..Finding::new(rule, stall.severity(), words.summary, words.fix)
    })
}

/// The same of a stall that is modelled in part: no event and no sample tells how long it took.
pub fn modelled_finding(rule: &str, stall: &Stall, words: Words) -> Says {
    match finding(rule, stall, words) {
        Says::Found(found) => {
            let tax = found.tax.map(|tax| tax.with_model(true));
            Says::Found(Finding { tax, ..found })
        }
        gap @ Says::Unmeasured(_) => gap,
    }
}

/// Applies a rule to every database. For each that it could not measure there is one gap.
pub fn per_database(
    window: &Window,
    rule: &str,
    evaluate: impl Fn(&Pair) -> Reading<Option<Says>>,
) -> Vec<Diagnosis> {
    let diagnosis = |pair: Pair| {
        let reading = evaluate(&pair);
        let why = reading.why();
        let says = reading
            .into_value()
            .flatten()
            .or_else(|| why.map(|why| Says::Unmeasured(Unmeasured::new(rule, why))))?;
        Some(Diagnosis { database: Some(pair.end.id.clone()), says })
    };
    window.databases().filter_map(diagnosis).collect()
}

/// A share as evidence and summaries word it.
pub fn percent(share: f64) -> String {
    if share < 0.1 { format!("{:.1} %", share * 100.0) } else { format!("{:.0} %", share * 100.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn severity_follows_from_the_lower_bound() {
        let of = |low| severity(Interval::new(low, 0.66, 0.87));
        let severities = [0.009, 0.02, 0.05, 0.2].map(of);
        assert_eq!(severities, [Severity::Info, Severity::Low, Severity::Medium, Severity::High]);
    }
}
