//! What the threads of one database did during a window: all its slices together.

use super::causes::Cause;
use super::holders::Holder;
use super::kinds::{Doing, Part};
use super::slice::{Longest, Slice, Spent};
use super::wake_ups::WakeUps;
use crate::database::Model;
use crate::{Interval, Seconds, stats};
use serde::{Deserialize, Serialize};
use std::ops::Add;

/// Why a run of an older version does not say what threads waited for.
pub const NOT_FOLLOWED: &str =
    "the version that made this run did not follow whom threads wait for";

/// What the threads of one database did during a window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
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
    /// The system call of the longest wait of unknown meaning; none where there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown_call: Option<String>,
    /// How often threads that were woken got a CPU while they were traced; not known of older runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wake_ups: Option<WakeUps>,
    /// TCP segments that were sent again from ports that it listens on, where these are known and the
    /// kernel tells of each; not known of older runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retransmits: Option<u64>,
    /// Neighbours that held what any thread waited for in the kernel, the longest ones first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub holders: Vec<Holder>,
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
            unknown_call: None,
            wake_ups: None,
            retransmits: None,
            holders: Vec::new(),
            counted_s: None,
            slices,
        }
    }
}

impl Activity {
    /// Time of some kind in the whole window, going by the slices that were traced.
    pub fn sum(&self, counts: impl Fn(&Spent) -> bool) -> Seconds {
        let watched = self.watched_s().0;
        let seen = self.slices.iter().map(|slice| slice.weight() * slice.sum(&counts));
        let seen = seen.fold(0.0, f64::add);
        Seconds(if watched > 0.0 { seen * self.window_s.0 / watched } else { 0.0 })
    }

    /// Whether it was followed whom its threads waited for.
    pub fn is_followed(&self) -> bool {
        self.slices.iter().all(|slice| slice.followed)
    }

    /// How many seconds of the window one second of a slice stands for.
    pub fn stands_for(&self, slice: &Slice) -> f64 {
        let watched = self.watched_s().0;
        if watched > 0.0 { slice.weight() * self.window_s.0 / watched } else { 0.0 }
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

    /// How long a thread waited for a CPU that slept, on average.
    pub fn mean_wake_up(&self) -> Option<Seconds> {
        let asleep = self.wake_ups?.asleep;
        let waits = self.slices.iter().map(|slice| slice.sum(|spent| spent.doing == Doing::WakeUp));
        (asleep > 0).then(|| Seconds(waits.sum::<f64>() / asleep as f64))
    }

    /// How many threads did anything at all, on average.
    pub fn awake(&self) -> f64 {
        self.sum(|spent| spent.doing != Doing::Dormant).0 / self.window_s.0.max(f64::MIN_POSITIVE)
    }

    /// One part of the time of threads that serve requests.
    pub fn part(&self, part: Part, model: Model) -> Seconds {
        self.sum(|spent| spent.part(model) == part && !spent.in_background(model))
    }

    /// Everything of that but idle and what is of unknown meaning. What others do reaches requests by waits for these.
    pub fn active(&self, model: Model) -> Seconds {
        self.sum(|spent| spent.is_active(model))
    }

    /// Waits of unknown meaning: any part of them may be active time.
    pub fn unknown(&self, model: Model) -> Seconds {
        self.part(Part::Unaccounted, model)
    }

    /// The share of its active time that the threads spent in some ways, with the interval that
    /// the differences between slices give, what none of them was like, and waits of unknown meaning.
    /// `None` when they were never active.
    pub fn share(&self, model: Model, counts: impl Fn(&Spent) -> bool) -> Option<Interval> {
        let share = self.share_of(model, |slice| slice.sum(&counts))?;
        let is_told = |spent: &Spent| counts(spent) && spent.part(model).is_told_by_call();
        let (unknown, may_be_this) = (self.unknown_part(model), self.sum(is_told).0 > 0.0);
        let share_most = (share.high + self.unresolved_part(model, &counts)).min(1.0);
        let most = share_most + if may_be_this { unknown * (1.0 - share_most) } else { 0.0 };
        Some(Interval::new(share.low * (1.0 - unknown), share.mid, most))
    }

    /// The part (0..1) that waits of unknown meaning are of these and active time.
    pub fn unknown_part(&self, model: Model) -> f64 {
        let (unknown, active) = (self.unknown(model).0, self.active(model).0);
        if unknown > 0.0 { unknown / (unknown + active) } else { 0.0 }
    }

    /// The part (0..1) of active time in waits for others of which nobody knows what these did: it may be what is
    /// counted, where any of that was met and these waits are no part of it.
    pub(super) fn unresolved_part(&self, model: Model, counts: impl Fn(&Spent) -> bool) -> f64 {
        let unresolved = |spent: &Spent| {
            spent.cause() == Cause::Unresolved && spent.is_active(model) && !counts(spent)
        };
        let (all, met) = (self.active(model).0, self.sum(&counts).0 > 0.0);
        if met && all > 0.0 { self.sum(unresolved).0 / all } else { 0.0 }
    }

    pub(super) fn share_of(&self, model: Model, part: impl Fn(&Slice) -> f64) -> Option<Interval> {
        self.ratio(part, |slice| slice.sum(|spent| spent.is_active(model)))
    }

    pub(super) fn ratio(
        &self,
        a: impl Fn(&Slice) -> f64,
        b: impl Fn(&Slice) -> f64,
    ) -> Option<Interval> {
        let pair = |slice: &Slice| (slice.weight() * a(slice), slice.weight() * b(slice));
        let pairs: Vec<(f64, f64)> = self.slices.iter().map(pair).collect();
        let share = stats::bootstrap_ratio(&pairs)?;
        // Of what nobody saw, none may be of this kind, or all.
        let (Interval { low, mid, high }, unseen) = (share, self.unseen());
        let wider = Interval::new(low * (1.0 - unseen), mid, high * (1.0 - unseen) + unseen);
        Some(if high > 0.0 { wider } else { share })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::activity::Polling;

    /// A second of each kind in each of two slices of half a second.
    pub(in crate::activity) fn activity() -> Activity {
        let spent = Polling::ALL.into_iter().flat_map(|polling| {
            Doing::ALL.into_iter().map(move |doing| Spent::own(polling, doing, Seconds(1.0)))
        });
        let slice = Slice::traced(Seconds(0.5), spent.collect());
        Activity::traced("postgres:1", Seconds(2.0), vec![slice.clone(), slice])
    }

    #[test]
    fn a_slice_stands_for_the_pause_after_it_too() {
        let mut activity = activity();
        let on_cpu = |activity: &Activity| activity.part(Part::OnCpu, Model::Process).0;
        // Both ways of polling of processes that serve clients half a second of two.
        assert!((on_cpu(&activity) - 2.0 * 4.0).abs() < 1e-9);
        for spent in &mut activity.slices[1].spent {
            spent.time_s = Seconds(0.0);
        }
        activity.slices[0].stands_for_s = Some(Seconds(1.5));
        assert!((on_cpu(&activity) - 3.0 * 2.0).abs() < 1e-9);
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
        const PARTS: [Part; 10] = [
            Part::OnCpu,
            Part::Contended,
            Part::Throttled,
            Part::WakeUp,
            Part::Disk,
            Part::Reclaim,
            Part::Lock,
            Part::Network,
            Part::Idle,
            Part::Unaccounted,
        ];
        for model in [Model::Process, Model::Thread, Model::Loop, Model::Unknown] {
            let sum: f64 = PARTS.iter().map(|part| activity().part(*part, model).0).sum();
            let serving =
                |p: &&Polling| !Spent::own(**p, Doing::OnCpu, Seconds(1.0)).in_background(model);
            let ways = Polling::ALL.iter().filter(serving).count();
            // A second of each way in each slice, of which half of the window is traced.
            let all = 4.0 * (ways * Doing::ALL.len()) as f64;
            assert!((sum - all).abs() < 1e-9, "{model:?}");
            let [idle, unknown] =
                [Part::Idle, Part::Unaccounted].map(|part| activity().part(part, model).0);
            assert!((activity().active(model).0 - (all - idle - unknown)).abs() < 1e-9);
        }
    }

    /// One slice of ten seconds in which threads of one kind did this.
    fn doing(polling: Polling, spent: &[(Doing, f64)]) -> Activity {
        let spent =
            spent.iter().map(|(doing, time_s)| Spent::own(polling, *doing, Seconds(*time_s)));
        let slice = Slice::traced(Seconds(10.0), spent.collect());
        Activity::traced("postgres:1", Seconds(10.0), vec![slice])
    }

    #[test]
    fn waits_of_unknown_meaning_are_not_active_and_bound_each_share() {
        let spent = [(Doing::OnCpu, 6.0), (Doing::Disk, 4.0), (Doing::Other, 30.0)];
        let activity = doing(Polling::Forever, &spent);
        assert_eq!(activity.active(Model::Process), Seconds(10.0));
        assert_eq!(activity.unknown(Model::Process), Seconds(30.0));
        let share = |of| activity.share(Model::Process, |spent| spent.doing == of).unwrap();
        // If all of them were active: 4 s of 40 for the disk, and 34 if they were its, too.
        let disk = share(Doing::Disk);
        for (is, expected) in [(disk.low, 0.1), (disk.mid, 0.4), (disk.high, 0.85)] {
            assert!((is - expected).abs() < 1e-9, "{disk:?}");
        }
        // They were on no CPU.
        let on_cpu = share(Doing::OnCpu);
        assert_eq!(on_cpu, Interval { low: on_cpu.low, ..Interval::exact(0.6) });
        assert!((on_cpu.low - 0.15).abs() < 1e-9, "{on_cpu:?}");
        assert_eq!(share(Doing::Send), Interval::exact(0.0), "nobody saw a thread send");
    }

    #[test]
    fn a_futex_of_a_program_of_unknown_model_is_not_judged() {
        let part = |polling, behind| {
            let spent = Spent { behind, ..Spent::own(polling, Doing::Futex, Seconds(1.0)) };
            spent.part(Model::Unknown)
        };
        for polling in Polling::ALL {
            assert_eq!(part(polling, Some(Cause::Cpu)), Part::Unaccounted, "a lock, or work");
            assert_eq!(part(polling, Some(Cause::Idle)), Part::Idle, "nobody worked meanwhile");
            assert_eq!(part(polling, None), Part::Idle);
        }
        // A pool of twenty threads that wait for work, beside one that computes.
        let spent = [(Doing::OnCpu, 5.0), (Doing::Futex, 200.0)];
        let pool = doing(Polling::Never, &spent);
        assert_eq!(pool.active(Model::Unknown), Seconds(5.0));
        assert_eq!(pool.unknown(Model::Unknown), Seconds(0.0));
    }

    #[test]
    fn the_same_wait_means_other_things_in_other_engines() {
        let futex = |polling, model| Doing::Futex.part(polling, model);
        assert_eq!(futex(Polling::Never, Model::Process), Part::Lock);
        assert_eq!(futex(Polling::Never, Model::Thread), Part::Idle);
        assert_eq!(futex(Polling::Helper, Model::Thread), Part::Idle, "for something to do");
        assert_eq!(futex(Polling::Timed, Model::Thread), Part::Lock);
        assert_eq!(futex(Polling::Forever, Model::Loop), Part::Idle);
        let behind = |cause| {
            move |polling, model| {
                let spent = Spent::own(polling, Doing::Futex, Seconds(1.0));
                Spent { behind: Some(cause), ..spent }.part(model)
            }
        };
        assert_eq!(behind(Cause::Disk)(Polling::Forever, Model::Process), Part::Disk);
        assert_eq!(behind(Cause::Disk)(Polling::Never, Model::Thread), Part::Idle);
        assert_eq!(behind(Cause::Memory)(Polling::Forever, Model::Process), Part::Reclaim);
        assert_eq!(behind(Cause::Memory)(Polling::Never, Model::Thread), Part::Idle);
        assert_eq!(behind(Cause::Throttled)(Polling::Forever, Model::Process), Part::Lock);
        let goes = |polling, doing, behind, cause, model| {
            let spent = Spent { behind, ..Spent::own(polling, doing, Seconds(1.0)) };
            spent.goes_to(cause, model)
        };
        let (forever, timed) = (Polling::Forever, Polling::Timed);
        let (kernel, disk) = (Cause::Kernel, Cause::Disk);
        assert!(goes(forever, Doing::Futex, Some(kernel), kernel, Model::Process));
        assert!(!goes(forever, Doing::Futex, Some(kernel), disk, Model::Process));
        assert!(!goes(timed, Doing::Disk, None, disk, Model::Process), "in the background");
        assert!(goes(timed, Doing::Disk, None, disk, Model::Thread));
        assert!(goes(timed, Doing::Disk, None, disk, Model::Loop));
        assert!(!goes(Polling::Never, Doing::Disk, None, disk, Model::Loop), "it saves");
        let asynchronous = |model| Doing::AsyncIo.part(Polling::Never, model);
        assert_eq!([Model::Process, Model::Thread].map(asynchronous), [Part::Disk, Part::Idle]);
        assert_eq!(Doing::PollPeer.part(Polling::Timed, Model::Process), Part::Idle);
        assert_eq!(Doing::PollPeer.part(Polling::Forever, Model::Process), Part::Lock);
    }

    #[test]
    fn what_others_did_meanwhile_may_be_any_cause_where_it_is_not_known() {
        let spent = [(Doing::OnCpu, 5.0), (Doing::Disk, 3.0), (Doing::Futex, 2.0)];
        let activity = doing(Polling::Forever, &spent);
        let model = Model::Process;
        let disk = activity.share(model, |spent| spent.goes_to(Cause::Disk, model)).unwrap();
        assert!((disk.mid - 0.3).abs() < 1e-9 && (disk.high - 0.5).abs() < 1e-9, "{disk:?}");
        let send = activity.share(model, |spent| spent.goes_to(Cause::Network, model)).unwrap();
        assert_eq!(send, Interval::exact(0.0), "nobody saw a thread send");
    }
}
