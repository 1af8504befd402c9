//! What the threads of a database did during a window, as the kernel's scheduler saw it.

use crate::database::Model;
use crate::{Interval, Seconds, stats};
use serde::{Deserialize, Serialize};
use std::ops::Add;

mod connecting;
mod hangs;
mod sampled;
mod weights;

pub use connecting::MANY_CONNECTIONS_PER_S;
pub use hangs::HANG_S;
pub use sampled::{Call, Sampled};

/// What a thread is doing; it is always doing exactly one of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Doing {
    /// Running.
    OnCpu,
    /// Running, to free memory for itself (direct reclaim).
    ReclaimOnCpu,
    /// Waiting for a CPU that others have.
    Contended,
    /// Held back by a CPU limit.
    Throttled,
    /// Waiting for a block device.
    Disk,
    /// Waiting inside a file's system call, but not for a block device: for the journal, for a
    /// frozen filesystem, for another that writes the same file.
    Filesystem,
    /// Held back for having dirtied too many pages.
    DirtyThrottled,
    /// Waiting for memory: reclaim, `memory.high`, pages that were evicted too early.
    ReclaimStalled,
    /// Waiting in `futex` or a semaphore.
    Futex,
    /// The same, but only while another thread of the database that serves a client waits for the
    /// device that it writes to: who is next in the log's queue.
    FutexDisk,
    /// The same, behind one that waits for the filesystem.
    FutexFilesystem,
    /// The same, behind one that has dirtied too many pages.
    FutexDirtyThrottled,
    /// The same, behind one that frees memory, or waits for it.
    FutexReclaim,
    /// Waiting in a page fault that reads nothing, or to change its mappings.
    Fault,
    /// Waiting until the network takes data.
    Send,
    /// Waiting for data.
    Receive,
    /// Waiting in `epoll`, `poll` or `select`, and woken from outside.
    Poll,
    /// The same, but woken by a signal of another thread of this database.
    PollPeer,
    /// Waiting for events all through a slice: nobody asked anything of the thread.
    Dormant,
    /// Waiting for asynchronous I/O to complete.
    AsyncIo,
    /// Waiting for a timer, a signal or a child.
    Sleep,
    /// Waiting for anything else.
    Other,
}

impl Doing {
    /// All of them, in the order in which the probe numbers them.
    pub const ALL: [Self; 22] = [
        Self::OnCpu,
        Self::ReclaimOnCpu,
        Self::Contended,
        Self::Throttled,
        Self::Disk,
        Self::Filesystem,
        Self::DirtyThrottled,
        Self::ReclaimStalled,
        Self::Futex,
        Self::FutexDisk,
        Self::FutexFilesystem,
        Self::FutexDirtyThrottled,
        Self::FutexReclaim,
        Self::Fault,
        Self::Send,
        Self::Receive,
        Self::Poll,
        Self::PollPeer,
        Self::Dormant,
        Self::AsyncIo,
        Self::Sleep,
        Self::Other,
    ];

    /// Which part of the database's time this is.
    ///
    /// What a thread waits for follows from how its engine serves clients. Processes share
    /// nothing but locks, so their futexes are locks; the latches of other processes (`PollPeer`)
    /// end a wait for a row lock when a client is being served, and a nap otherwise. Threads that
    /// have served a client wait in a futex for a lock, the others for something to do.
    pub fn part(self, polling: Polling, model: Model) -> Part {
        match self {
            Self::OnCpu => Part::OnCpu,
            Self::ReclaimOnCpu | Self::ReclaimStalled => Part::Reclaim,
            Self::Contended => Part::Contended,
            Self::Throttled => Part::Throttled,
            Self::Disk | Self::Filesystem | Self::DirtyThrottled => Part::Disk,
            Self::Fault => Part::Lock,
            Self::Send => Part::Network,
            Self::Futex => match (model, polling) {
                (Model::Loop, _) | (Model::Thread, Polling::Never) => Part::Idle,
                _ => Part::Lock,
            },
            Self::FutexDisk
            | Self::FutexFilesystem
            | Self::FutexDirtyThrottled
            | Self::FutexReclaim => match Self::Futex.part(polling, model) {
                Part::Lock if self == Self::FutexReclaim => Part::Reclaim,
                Part::Lock => Part::Disk,
                other => other,
            },
            Self::PollPeer if polling == Polling::Forever && model == Model::Process => Part::Lock,
            // A parallel worker of PostgreSQL polls for nobody, and reads for its leader.
            Self::AsyncIo if polling == Polling::Forever => Part::Disk,
            Self::AsyncIo if polling == Polling::Never && model == Model::Process => Part::Disk,
            Self::Poll
            | Self::PollPeer
            | Self::Dormant
            | Self::Receive
            | Self::AsyncIo
            | Self::Sleep => Part::Idle,
            Self::Other => Part::Unaccounted,
        }
    }
}

/// How a thread has waited for events so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Polling {
    /// Not at all: it serves no client.
    Never,
    /// With a time-out only.
    Timed,
    /// At least once without one, as who serves a client does.
    Forever,
}

impl Polling {
    /// All of them, in the order in which the probe numbers them.
    pub const ALL: [Self; 3] = [Self::Never, Self::Timed, Self::Forever];
}

/// A part of a database's time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// On a CPU, minor faults included.
    OnCpu,
    /// Waiting for a CPU that others have.
    Contended,
    /// Held back by a CPU limit.
    Throttled,
    /// Waiting for a disk or the filesystem.
    Disk,
    /// Reclaiming memory, or waiting for it.
    Reclaim,
    /// Waiting for a lock.
    Lock,
    /// Waiting for the network to take data.
    Network,
    /// Waiting for a client or a timer.
    Idle,
    /// Not accounted for.
    Unaccounted,
}

/// What the threads of one database did during a window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Activity {
    /// The database's id.
    pub database: String,
    /// The length of the window, for which what was traced stands.
    pub window_s: Seconds,
    /// Its threads when watching began.
    pub threads: u32,
    /// Whether requests were told from each other by what processes and threads received, and not by
    /// when they waited for one.
    #[serde(default)]
    pub requests_seen: bool,
    /// How many threads (of processes that fork: processes) were started meanwhile.
    pub started: u64,
    /// Processes of this host that sent to it and who started these, the busiest first.
    pub clients: Vec<u32>,
    /// The longest single waits of their kinds that are worth knowing one by one.
    #[serde(default)]
    pub longest: Vec<Longest>,
    /// TCP segments that were sent again from ports that it listens on, where these are known and the
    /// kernel tells of each; not known of older runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retransmits: Option<u64>,
    /// Their time on a CPU as the slices should hold it: by what the kernel counted, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted_s: Option<Seconds>,
    /// When they were watched: the whole window piece by piece, or, where that would cost too
    /// much, parts of it.
    pub slices: Vec<Slice>,
}

impl Activity {
    /// What slices of a window saw of a database whose threads, clients and requests are not known.
    pub fn traced(database: &str, window_s: Seconds, slices: Vec<Slice>) -> Self {
        Self {
            database: database.to_owned(),
            window_s,
            threads: 0,
            requests_seen: false,
            started: 0,
            clients: Vec::new(),
            longest: Vec::new(),
            retransmits: None,
            counted_s: None,
            slices,
        }
    }
}

/// What the threads of a database did for a while, those that were started meanwhile included.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Slice {
    /// For how long.
    pub traced_s: Seconds,
    /// How much of the window is nearer to it than to another slice; none where nothing else was.
    /// Pauses follow what costs much to trace: counted alike, slices would tell of quiet times most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stands_for_s: Option<Seconds>,
    /// What they did.
    pub spent: Vec<Spent>,
    /// The time on a CPU of new server processes until they waited for their first request, and after
    /// their last one, and of the main process while it started them.
    pub connecting_s: Seconds,
    /// The time on a CPU of the first requests of new server processes.
    #[serde(default)]
    pub first_s: Seconds,
    /// How much of their waits inside file calls was in waits of [`HANG_S`] and more; background
    /// processes left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hung_s: Option<Seconds>,
    /// Where those on a CPU were; none where stacks cannot be sampled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampled: Option<Sampled>,
}

/// The longest single wait of one kind; one that goes on counts as far as it went.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Longest {
    /// What the thread did.
    pub doing: Doing,
    /// For how long.
    pub time_s: Seconds,
}

/// Time that threads of one kind spent in one way.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Spent {
    /// The kind of thread.
    pub polling: Polling,
    /// What it did.
    pub doing: Doing,
    /// For how long, summed over threads.
    pub time_s: Seconds,
}

impl Slice {
    /// A slice in which threads did this, without a sample and without a new connection.
    pub fn traced(traced_s: Seconds, spent: Vec<Spent>) -> Self {
        Self {
            traced_s,
            stands_for_s: None,
            spent,
            connecting_s: Seconds(0.0),
            first_s: Seconds(0.0),
            hung_s: None,
            sampled: None,
        }
    }

    /// Time of some kind, summed over threads.
    fn sum(&self, counts: impl Fn(&Spent) -> bool) -> f64 {
        self.spent.iter().filter(|s| counts(s)).map(|s| s.time_s.0).fold(0.0, f64::add)
    }

    /// How much of the window it stands for, itself included.
    fn stands_for_s(&self) -> f64 {
        self.stands_for_s.unwrap_or(self.traced_s).0
    }

    /// What one second of it stands for.
    fn weight(&self) -> f64 {
        if self.traced_s.0 > 0.0 { self.stands_for_s() / self.traced_s.0 } else { 1.0 }
    }
}

/// So many requests of a new server process are told from its later ones ([`Slice::first_s`]).
pub const FIRST_REQUESTS: f64 = 4.0;

impl Activity {
    /// Time of some kind in the whole window, going by the slices that were traced.
    pub fn sum(&self, counts: impl Fn(&Spent) -> bool) -> Seconds {
        let watched = self.watched_s().0;
        let seen = self.slices.iter().map(|slice| slice.weight() * slice.sum(&counts));
        let seen = seen.fold(0.0, f64::add);
        Seconds(if watched > 0.0 { seen * self.window_s.0 / watched } else { 0.0 })
    }

    /// From the beginning of the first slice to the end of the last one.
    pub fn watched_s(&self) -> Seconds {
        Seconds(self.slices.iter().map(Slice::stands_for_s).fold(0.0, f64::add))
    }

    /// For how long the threads were traced.
    pub fn traced_s(&self) -> Seconds {
        self.slices.iter().map(|slice| slice.traced_s).fold(Seconds(0.0), Add::add)
    }

    /// Time spent in some ways, summed over all threads.
    pub fn doing(&self, any: &[Doing]) -> Seconds {
        self.sum(|spent| any.contains(&spent.doing))
    }

    /// The longest single wait of a kind; zero when there was none.
    pub fn longest(&self, doing: Doing) -> Seconds {
        let found = self.longest.iter().find(|longest| longest.doing == doing);
        found.map_or(Seconds(0.0), |longest| longest.time_s)
    }

    /// How many threads did anything at all, on average.
    pub fn awake(&self) -> f64 {
        self.sum(|spent| spent.doing != Doing::Dormant).0 / self.window_s.0.max(f64::MIN_POSITIVE)
    }

    /// One part of the database's time.
    pub fn part(&self, part: Part, model: Model) -> Seconds {
        self.sum(|spent| spent.part(model) == part)
    }

    /// Everything but idle.
    pub fn active(&self, model: Model) -> Seconds {
        self.sum(|spent| spent.part(model) != Part::Idle)
    }

    /// The share of its active time that the threads spent in some ways, with the interval that
    /// the differences between slices give, and what none of them was like. `None` when they were never
    /// active.
    pub fn share(&self, model: Model, counts: impl Fn(&Spent) -> bool) -> Option<Interval> {
        self.share_of(model, |slice| slice.sum(&counts))
    }

    fn share_of(&self, model: Model, part: impl Fn(&Slice) -> f64) -> Option<Interval> {
        self.ratio(part, |slice| slice.sum(|spent| spent.part(model) != Part::Idle))
    }

    fn ratio(&self, a: impl Fn(&Slice) -> f64, b: impl Fn(&Slice) -> f64) -> Option<Interval> {
        let pair = |slice: &Slice| (slice.weight() * a(slice), slice.weight() * b(slice));
        let pairs: Vec<(f64, f64)> = self.slices.iter().map(pair).collect();
        let share = stats::bootstrap_ratio(&pairs)?;
        // Of what nobody saw, none may be of this kind, or all.
        let (Interval { low, mid, high }, unseen) = (share, self.unseen());
        let wider = Interval::new(low * (1.0 - unseen), mid, high * (1.0 - unseen) + unseen);
        Some(if high > 0.0 { wider } else { share })
    }
}

impl Spent {
    /// Which part of the database's time this is.
    pub fn part(&self, model: Model) -> Part {
        self.doing.part(self.polling, model)
    }

    /// Whether it is a wait for a file of this kind, or behind another thread's, by a thread that
    /// somebody waits for in turn.
    ///
    /// A process that wakes by a timer, and never for a client, writes behind the backs of those
    /// that serve one. (Threads may wait for their clients with a time-out.)
    pub fn held_by(&self, wait: Doing, model: Model) -> bool {
        let kind = match self.doing {
            Doing::FutexDisk | Doing::AsyncIo => Doing::Disk,
            Doing::FutexFilesystem => Doing::Filesystem,
            Doing::FutexDirtyThrottled => Doing::DirtyThrottled,
            itself => itself,
        };
        kind == wait && self.part(model) == Part::Disk && !self.in_background(model)
    }

    /// Whether it is of a thread that serves clients.
    pub fn serves(&self, model: Model) -> bool {
        self.polling != Polling::Never && !self.in_background(model)
    }

    /// Whether it is of a process that nobody waits for, or, where one thread serves all clients, of
    /// another: one that saves what it holds, say.
    pub fn in_background(&self, model: Model) -> bool {
        match model {
            Model::Process => self.polling == Polling::Timed,
            Model::Loop => self.polling == Polling::Never,
            Model::Thread | Model::Unknown => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A second of each kind in each of two slices of half a second.
    pub(super) fn activity() -> Activity {
        let spent = Polling::ALL.into_iter().flat_map(|polling| {
            Doing::ALL.into_iter().map(move |doing| Spent { polling, doing, time_s: Seconds(1.0) })
        });
        let slice = Slice::traced(Seconds(0.5), spent.collect());
        Activity::traced("postgres:1", Seconds(2.0), vec![slice.clone(), slice])
    }

    #[test]
    fn a_slice_stands_for_the_pause_after_it_too() {
        let mut activity = activity();
        let on_cpu = |activity: &Activity| activity.part(Part::OnCpu, Model::Process).0;
        // Each way of polling half a second of two.
        assert!((on_cpu(&activity) - 2.0 * 3.0 * 2.0).abs() < 1e-9);
        for spent in &mut activity.slices[1].spent {
            spent.time_s = Seconds(0.0);
        }
        activity.slices[0].stands_for_s = Some(Seconds(1.5));
        assert!((on_cpu(&activity) - 3.0 * 3.0).abs() < 1e-9);
        assert_eq!((activity.watched_s(), activity.traced_s()), (Seconds(2.0), Seconds(1.0)));
    }

    #[test]
    fn who_was_dormant_all_the_while_is_not_awake() {
        let ways = Polling::ALL.len() * (Doing::ALL.len() - 1);
        // Of each way one second in half a second.
        assert!((activity().awake() - 2.0 * ways as f64).abs() < 1e-9);
    }

    #[test]
    fn every_second_is_in_one_part() {
        const PARTS: [Part; 9] = [
            Part::OnCpu,
            Part::Contended,
            Part::Throttled,
            Part::Disk,
            Part::Reclaim,
            Part::Lock,
            Part::Network,
            Part::Idle,
            Part::Unaccounted,
        ];
        for model in [Model::Process, Model::Thread, Model::Loop, Model::Unknown] {
            let sum: f64 = PARTS.iter().map(|part| activity().part(*part, model).0).sum();
            // A second of each way in each slice, of which half of the window is traced.
            let all = 4.0 * (Polling::ALL.len() * Doing::ALL.len()) as f64;
            assert!((sum - all).abs() < 1e-9, "{model:?}");
            let idle = activity().part(Part::Idle, model).0;
            assert!((activity().active(model).0 - (all - idle)).abs() < 1e-9);
        }
    }

    #[test]
    fn the_same_wait_means_other_things_in_other_engines() {
        let futex = |polling, model| Doing::Futex.part(polling, model);
        assert_eq!(futex(Polling::Never, Model::Process), Part::Lock);
        assert_eq!(futex(Polling::Never, Model::Thread), Part::Idle);
        assert_eq!(futex(Polling::Timed, Model::Thread), Part::Lock);
        assert_eq!(futex(Polling::Forever, Model::Loop), Part::Idle);
        let behind = |polling, model| Doing::FutexDisk.part(polling, model);
        assert_eq!(behind(Polling::Forever, Model::Process), Part::Disk);
        assert_eq!(behind(Polling::Never, Model::Thread), Part::Idle);
        let freeing = |polling, model| Doing::FutexReclaim.part(polling, model);
        assert_eq!(freeing(Polling::Forever, Model::Process), Part::Reclaim);
        assert_eq!(freeing(Polling::Never, Model::Thread), Part::Idle);
        let held = |polling, doing, wait, model| {
            Spent { polling, doing, time_s: Seconds(1.0) }.held_by(wait, model)
        };
        let (forever, timed) = (Polling::Forever, Polling::Timed);
        assert!(held(forever, Doing::FutexFilesystem, Doing::Filesystem, Model::Process));
        assert!(!held(forever, Doing::FutexFilesystem, Doing::Disk, Model::Process));
        assert!(!held(timed, Doing::Disk, Doing::Disk, Model::Process), "in the background");
        assert!(held(timed, Doing::Disk, Doing::Disk, Model::Thread));
        assert!(held(timed, Doing::Disk, Doing::Disk, Model::Loop));
        assert!(!held(Polling::Never, Doing::Disk, Doing::Disk, Model::Loop), "it saves");
        let asynchronous = |model| Doing::AsyncIo.part(Polling::Never, model);
        assert_eq!([Model::Process, Model::Thread].map(asynchronous), [Part::Disk, Part::Idle]);
        assert_eq!(Doing::PollPeer.part(Polling::Timed, Model::Process), Part::Idle);
        assert_eq!(Doing::PollPeer.part(Polling::Forever, Model::Process), Part::Lock);
    }
}
