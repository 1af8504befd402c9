//! What every thread of the databases does, nanosecond by nanosecond: a BPF program at the
//! scheduler's tracepoints.
//!
//! It keeps one total for each database in the kernel; nothing is copied for an event. Where it
//! cannot be loaded, what schedstat and the control groups count has to do.

mod budget;
mod clients;
mod clock;
mod frequent_events;
mod holders;
mod kernel_types;
mod open_waits;
mod retransmits;
mod samples;
mod socket_messages;
mod state;
mod syscalls;
mod totals;
mod watched_database;
mod watched_threads;

use crate::bpf::Program;
use crate::slots::Slots;
use budget::SliceBudget;
use clock::{now, own_cpu_s};
use frequent_events::{MESSAGES, Runs};
use kernel_types::MAX_STRANGERS;
use libbpf_rs::{MapCore, MapFlags, OpenMapMut, ProgramMut};
use retransmits::{ByPort, RETRANSMITS};
use samples::{Places, Sampling};
pub use state::Threads;
use state::{Messages, Slice};
use std::collections::BTreeMap;
use std::time::Duration;
use totals::{
    CONNECTING, FIRST, LOST, STARTED, growth, hang_time, longest_waits, numbers, samples_between,
    times_behind, times_spent, unknown_call, wake_ups,
};
use untax_core::activity::{self, Activity};
use untax_core::{Database, Reading, Seconds};
use untax_host::Host;
use watched_database::WatchedDatabase;

static PROGRAM: Program = Program {
    object: include_bytes!(concat!(env!("OUT_DIR"), "/threads.bpf.o")),
    // Some kernels lack these; what they tell apart is then part of time on CPU or of disk waits.
    optional: &[
        "on_reclaim_begin",
        "on_reclaim_end",
        "on_dirty",
        MESSAGES[0],
        MESSAGES[1],
        samples::ADDRESSES,
        RETRANSMITS,
    ],
    later: &MESSAGES,
    twins: &[
        ("on_reclaim_begin", "mm_vmscan_memcg_reclaim_begin"),
        ("on_reclaim_end", "mm_vmscan_memcg_reclaim_end"),
    ],
};

/// Room for threads: what is there now may become four times as many.
const FEWEST_THREADS: u32 = 1024;
const MOST_THREADS: u32 = 65536;

/// Threads beyond these that others wait for take each other's history over, in turn.
const MOST_HISTORIES: u32 = 4096;

/// `enum moment` of threads.bpf.c.
const RESUMED: u32 = 0;
const SETTLED: u32 = 1;
const WAITING: u32 = 2;

impl Threads {
    /// Opens a window of about this length. The gap says why that is not possible here.
    pub fn watch(databases: &[Database], window: Duration) -> Reading<Self> {
        let room = room_for(databases);
        let host = Host::live();
        PROGRAM.run(&host, |map| configure(map, room)).and_then(|mut bpf| {
            // Without them, what page faults took is calculated, and calls have no price.
            let samples = samples::resume(&mut bpf, &host, Sampling::Throughout);
            let places = samples::prepare(&bpf).unwrap_or_default();
            let mut threads = Self {
                bpf,
                host,
                slots: Slots::default(),
                watched: BTreeMap::new(),
                room,
                budget: SliceBudget::new(window),
                resuming_s: frequent_events::PAUSING_S / 2.0,
                pausing_s: frequent_events::PAUSING_S,
                begun_ns: now(),
                slice: Slice::Unopened,
                taken_ns: 0,
                messages: Messages::default(),
                samples,
                sampling: Some(Sampling::Throughout),
                places,
                failed: None,
            };
            match threads.open(databases) {
                Ok(()) => Reading::Present(threads),
                Err(error) => Reading::Failed(format!("its threads cannot be watched: {error}")),
            }
        })
    }

    /// Whether the table has room for the threads of these databases and some more.
    pub fn has_room_for(&self, databases: &[Database]) -> bool {
        self.room >= MOST_THREADS || threads_of(databases).saturating_mul(2) <= self.room
    }

    /// Opens the next window, over the databases that there are now. It begins with a slice that
    /// is traced: a window that is all pause would know nothing.
    pub fn open(&mut self, databases: &[Database]) -> libbpf_rs::Result<()> {
        self.choose_messages(databases)?;
        self.follow(databases)?;
        match self.slice {
            Slice::Unopened => self.begin_slice()?,
            Slice::Pause { until_ns, .. } => {
                self.budget.owe(Duration::from_nanos(until_ns.saturating_sub(now())));
                self.resume()?;
            }
            Slice::Traced { .. } => {
                // What was added meanwhile may have ended before it was: that is seen on resuming.
                self.bpf.call("settle_all")?;
                self.bpf.call("pause")?;
                self.begin_slice()?;
            }
        }
        self.begin_window()
    }

    /// From now on it counts.
    fn begin_window(&mut self) -> libbpf_rs::Result<()> {
        self.bpf.call("forget_longest")?;
        self.read_totals()?;
        ByPort::drain(&self.bpf);
        self.messages.seen_in_window = self.messages.seen;
        for watched in self.watched.values_mut() {
            watched.opened_ns.clone_from(&watched.total_ns);
            watched.slices.clear();
        }
        self.begun_ns = now();
        Ok(())
    }

    fn read_totals(&mut self) -> libbpf_rs::Result<()> {
        let totals = self.bpf.map("totals")?;
        for (index, watched) in &mut self.watched {
            let total = totals.lookup(&index.to_ne_bytes(), MapFlags::ANY)?.unwrap_or_default();
            watched.total_ns = numbers(&total);
        }
        Ok(())
    }

    /// Goes on with the next slice when this one is over. To be called every 50 to 100 ms.
    pub fn tick(&mut self) {
        let now = now();
        let result = match self.slice {
            Slice::Traced { since_ns, cost_s, .. } => {
                let traced = Duration::from_nanos(now.saturating_sub(since_ns));
                let over =
                    self.budget.is_over(traced, grown_by(cost_s, self.cost_s()), self.pausing_s);
                if over { self.end_slice(true) } else { Ok(()) }
            }
            Slice::Pause { until_ns, .. } if now >= until_ns => self.resume(),
            Slice::Pause { .. } => self.follow_open_waits(),
            Slice::Unopened => Ok(()),
        };
        if let Err(error) = result {
            self.failed = Some(error);
        }
    }

    /// Closes the window: what the threads did in it, and the processor time that tracing took in
    /// the kernel since it was asked last. Where it is the last one, nothing else tells how its waits end.
    pub fn finish(&mut self, is_last: bool) -> Reading<(Vec<Activity>, Reading<Seconds>)> {
        let mut ended = self.end_slice(false);
        if let Slice::Pause { .. } = self.slice {
            // What started and ended in the pause was counted too.
            ended = ended.and(self.end_open_waits());
            let paused_s = Seconds::from_ns(now().saturating_sub(self.taken_ns));
            for watched in self.watched.values_mut() {
                watched.add_pause(paused_s);
            }
        } else if is_last {
            ended = ended.and_then(|()| self.follow_beyond_the_window());
        }
        if let Some(error) = self.failed.take().or(ended.err()) {
            return Reading::Failed(format!("what the threads did: {error}"));
        }
        // What the others did is not all that its threads did.
        let lost = |watched: &WatchedDatabase| growth(LOST, &watched.total_ns, &watched.opened_ns);
        if let Some(watched) = self.watched.values().find(|watched| lost(watched) > 0) {
            return Reading::Failed(format!(
                "there was no room for {} new threads of {}; check it again with these there",
                lost(watched),
                watched.database
            ));
        }
        let cost = self.bpf.cost_since_last();
        let window_s = Seconds::from_ns(now() - self.begun_ns);
        let clients = match clients::drain(&self.bpf) {
            Ok(clients) => clients,
            Err(error) => return Reading::Failed(format!("who its clients are: {error}")),
        };
        let holders = match holders::drain(&self.bpf, &self.host) {
            Ok(holders) => holders,
            Err(error) => return Reading::Failed(format!("who held locks of the kernel: {error}")),
        };
        let sent_again = ByPort::drain(&self.bpf);
        let retransmits = |pid| sent_again.as_ref().and_then(|again| again.of(&self.host, pid));
        let activity = |(index, watched): (&u32, &mut WatchedDatabase)| Activity {
            database: watched.database.clone(),
            window_s,
            threads: watched.threads,
            requests_seen: self.messages.seen_in_window,
            started: growth(STARTED, &watched.total_ns, &watched.opened_ns),
            longest: longest_waits(&watched.total_ns),
            unknown_call: unknown_call(&watched.total_ns),
            wake_ups: Some(wake_ups(&watched.total_ns, &watched.opened_ns)),
            clients: clients.iter().filter(|c| c.database == *index).map(|c| c.pid).collect(),
            retransmits: retransmits(watched.pid),
            holders: holders.clone(),
            counted_s: None,
            slices: watched.slices.drain(..).map(activity::Unsettled::settled).collect(),
        };
        Reading::Present((self.watched.iter_mut().map(activity).collect(), cost))
    }

    /// Keeps what was traced, and pauses if that cost too much.
    fn end_slice(&mut self, go_on: bool) -> libbpf_rs::Result<()> {
        let Slice::Traced { since_ns, cost_s, samples_s, runs } = self.slice else { return Ok(()) };
        let begun_s = own_cpu_s();
        let [cost_now_s, samples_now_s] = self.costs_s();
        let runs_now = Runs::of(&self.bpf);
        let end_ns = self.settle()?;
        let traced_s = (end_ns - since_ns) as f64 / 1e9;
        let cost_s = grown_by(cost_s, cost_now_s);
        // Waits that a pause cuts have no end: where the samples alone are too dear, these pause.
        let samples_s = grown_by(samples_s, samples_now_s);
        let goes_on = self.budget.bears(traced_s, grown_by(samples_s, cost_s));
        let pausing_s = if goes_on { 0.0 } else { self.pausing_s };
        let pause = self.budget.pause_ns(traced_s, cost_s, pausing_s);
        let pauses = go_on && pause > 0 && !goes_on;
        if pauses {
            // At once: what happens until then is in no slice.
            self.bpf.call("pause")?;
        }
        self.keep(since_ns, end_ns)?;
        self.slice = Slice::Traced {
            since_ns: end_ns,
            cost_s: cost_now_s,
            samples_s: samples_now_s,
            runs: runs_now,
        };
        if !go_on || self.restart_window()? {
            self.budget.owe(Duration::from_nanos(pause));
            if pauses {
                self.begin_slice()?;
            }
        } else if pause > 0 && goes_on {
            self.budget.owe(Duration::from_nanos(pause));
            self.bpf.detach(&[samples::SAMPLER]);
            self.sampling = None;
        } else if pauses {
            self.pause(pause, &runs_now.ran_often(runs, traced_s), cost_s)?;
            self.pausing_s = self.resuming_s + own_cpu_s() - begun_s;
        } else if self.sampling != Some(Sampling::Throughout) {
            self.bpf.detach(&[samples::SAMPLER]);
            self.sample(Sampling::Throughout);
        }
        Ok(())
    }

    /// Samples from here on, if that is possible.
    fn sample(&mut self, sampling: Sampling) {
        self.sampling = Some(sampling);
        self.samples =
            self.samples.and_then(|_| samples::resume(&mut self.bpf, &self.host, sampling));
    }

    /// Pauses for so long, without what runs often; `slice_cost_s` may be spent on waits that go on.
    fn pause(
        &mut self,
        pause_ns: u64,
        often: &[&'static str],
        slice_cost_s: Option<f64>,
    ) -> libbpf_rs::Result<()> {
        self.bpf.call("pause")?;
        let (often, waits_s) = self.beside_open_waits(often, slice_cost_s)?;
        self.bpf.detach(&often);
        self.bpf.detach(&[samples::SAMPLER]);
        let (until_ns, cost_s) = (now() + pause_ns, self.cost_s());
        self.slice = Slice::Pause { until_ns, cost_s, waits_s };
        Ok(())
    }

    /// Pauses at once, until [`resume_after`](Self::resume_after) is called.
    pub fn suspend(&mut self) {
        let ended = self.end_slice(false);
        let paused = match self.slice {
            Slice::Traced { .. } => self.pause(0, &frequent_events::FREQUENT, None),
            Slice::Unopened | Slice::Pause { .. } => {
                // What ran seldom so far may run often by and by.
                self.bpf.detach(&frequent_events::FREQUENT);
                Ok(())
            }
        };
        self.failed = ended.and(paused).err().or(self.failed.take());
    }

    /// A pause that was longer by so much is over when it would have been.
    pub fn resume_after(&mut self, slept: Duration) {
        if let Slice::Pause { until_ns, .. } = &mut self.slice {
            *until_ns += slept.as_nanos() as u64;
        }
    }

    fn resume(&mut self) -> libbpf_rs::Result<()> {
        let begun_s = own_cpu_s();
        self.end_open_waits()?;
        // What ran in the pause was to be seldom, but nobody looked.
        if let Slice::Pause { cost_s, .. } = self.slice {
            self.budget.charge(grown_by(cost_s, self.cost_s()).unwrap_or_default());
        }
        let mut detached = frequent_events::detached_functions(&self.bpf);
        detached.retain(|name| self.messages.seen || !MESSAGES.contains(name));
        let again = |program: &ProgramMut| detached.iter().any(|name| program.name() == *name);
        self.bpf.attach(again, PROGRAM.optional)?;
        self.sample(Sampling::BetweenPauses);
        let begun = self.begin_slice();
        self.resuming_s = own_cpu_s() - begun_s;
        begun
    }

    fn begin_slice(&mut self) -> libbpf_rs::Result<()> {
        self.bpf.call("resume")?;
        let ([cost_s, samples_s], runs) = (self.costs_s(), Runs::of(&self.bpf));
        self.slice = Slice::Traced { since_ns: self.moment(RESUMED)?, cost_s, samples_s, runs };
        Ok(())
    }

    /// What tracing has cost so far, and what of that is for samples.
    fn costs_s(&self) -> [Option<f64>; 2] {
        [self.cost_s(), self.bpf.cost_of(samples::SAMPLER).map(|cost| cost.0)]
    }

    fn cost_s(&self) -> Option<f64> {
        self.bpf.cost().into_value().map(|cost| cost.0)
    }

    /// When something was done to all threads: the program's own word, because this process may
    /// have waited for a CPU since.
    fn moment(&self, index: u32) -> libbpf_rs::Result<u64> {
        let moments = self.bpf.map("moments")?;
        let moment = moments.lookup(&index.to_ne_bytes(), MapFlags::ANY)?;
        Ok(moment.and_then(|bytes| numbers(&bytes).first().copied()).unwrap_or_default())
    }

    /// Brings the totals up to the present, and says when that was.
    fn settle(&self) -> libbpf_rs::Result<u64> {
        self.bpf.call("settle_all")?;
        self.moment(SETTLED)
    }

    /// Keeps what every database's threads did from then to then.
    fn keep(&mut self, since_ns: u64, end_ns: u64) -> libbpf_rs::Result<()> {
        let traced_s = Seconds::from_ns(end_ns - since_ns);
        // A pause is as what is nearer to it.
        let half_s = Seconds::from_ns(since_ns.saturating_sub(self.taken_ns) / 2);
        let totals = self.bpf.map("totals")?;
        for (index, watched) in &mut self.watched {
            let total = totals.lookup(&index.to_ne_bytes(), MapFlags::ANY)?.unwrap_or_default();
            let total = numbers(&total);
            let paused_s = watched.add_pause(half_s);
            let before = &watched.total_ns;
            let slice = activity::Slice {
                traced_s,
                stands_for_s: Some(traced_s + paused_s),
                spent: times_spent(&total, before),
                followed: true,
                connecting_s: Seconds::from_ns(growth(CONNECTING, &total, before)),
                first_s: Seconds::from_ns(growth(FIRST, &total, before)),
                hung_s: Some(hang_time(&total, before)),
                sampled: self.samples.filter(|_| self.sampling.is_some()).map(|per_s| {
                    let data = self.places.data && watched.data_known;
                    samples_between(&total, before, per_s, Places { data, ..self.places })
                }),
            };
            let behind = times_behind(&total, before);
            watched.slices.push(activity::Unsettled { slice, behind });
            activity::settle_across(&mut watched.slices);
            watched.total_ns = total;
        }
        self.taken_ns = end_ns;
        Ok(())
    }
}

fn grown_by(before: Option<f64>, now: Option<f64>) -> Option<f64> {
    now.zip(before).map(|(now, before)| now - before)
}

/// How many threads these databases have.
fn threads_of(databases: &[Database]) -> u32 {
    databases.iter().filter_map(|database| database.threads.value()).sum()
}

/// For how many threads there is to be room; small tables are faster.
fn room_for(databases: &[Database]) -> u32 {
    threads_of(databases).saturating_mul(4).clamp(FEWEST_THREADS, MOST_THREADS)
}

/// How many threads may have a history of 3 KB, that others have waited for: as many as there are now, which
/// `room` is four times as large as.
fn histories_for(room: u32) -> u32 {
    (room / 4).min(MOST_HISTORIES)
}

/// Sizes the tables of threads, and says what system calls mean.
fn configure(map: &mut OpenMapMut, room: u32) -> libbpf_rs::Result<()> {
    let name = map.name().to_string_lossy().into_owned();
    if name == "threads" {
        map.set_max_entries(room + MAX_STRANGERS)?;
    } else if name == "histories" {
        map.set_max_entries(histories_for(room))?;
    } else if name.ends_with(".rodata") {
        map.set_initial_value(&syscalls::meanings(histories_for(room)))?;
    }
    Ok(())
}
