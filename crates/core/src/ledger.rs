//! Where each second of a database's threads went: allocated once, in one place.

use crate::activity::{self, Activity, Cause, Spent};
use crate::database::Model;
use crate::{Reading, Seconds};
use serde::{Deserialize, Serialize};

/// Each active second of the threads of a database, allocated once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Ledger {
    /// Of threads that serve requests.
    pub serving: Account,
    /// Of all others: what they do reaches requests by the waits of those above, and enters no share.
    pub background: Account,
}

/// The active seconds of some threads. The entries and what remains add up to them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Account {
    /// All of them.
    pub active_s: Seconds,
    /// What they went to, in the order of [`Cause::ALL`]; no entry where nothing did.
    pub entries: Vec<Entry>,
    /// Those in waits for other threads of which it is not known what these did: waits that had not ended,
    /// or began before anybody looked.
    pub remains_s: Seconds,
}

/// What went to one cause.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Entry {
    /// The cause.
    pub cause: Cause,
    /// In which threads did this themselves.
    pub own_s: Seconds,
    /// In which they waited for threads that did this.
    pub behind_s: Seconds,
}

impl Ledger {
    /// The ledger of what was traced, or why there is none.
    pub fn of(activity: &Activity, model: Model) -> Reading<Self> {
        if !activity.is_followed() {
            return Reading::absent(activity::NOT_FOLLOWED);
        }
        let account = |serving: bool| {
            Account::of(activity, |spent: &Spent| {
                spent.part(model).is_active() && spent.in_background(model) != serving
            })
        };
        Reading::Present(Self { serving: account(true), background: account(false) })
    }
}

impl Account {
    fn of(activity: &Activity, counts: impl Fn(&Spent) -> bool) -> Self {
        let mut book = Book::default();
        for slice in &activity.slices {
            let stands_for = activity.stands_for(slice);
            for spent in slice.spent.iter().filter(|spent| counts(spent)) {
                book.add(spent, stands_for * spent.time_s.0);
            }
        }
        book.closed()
    }

    /// Seconds charged to one cause: its own, and those spent behind other threads. Zero if there are none.
    pub fn entry(&self, cause: Cause) -> Entry {
        let none = Entry { cause, own_s: Seconds(0.0), behind_s: Seconds(0.0) };
        self.entries.iter().find(|entry| entry.cause == cause).copied().unwrap_or(none)
    }
}

/// Seconds by cause, own and behind, and those that remain.
#[derive(Default)]
struct Book {
    own: [f64; Cause::ALL.len()],
    behind: [f64; Cause::ALL.len()],
    remains: f64,
}

impl Book {
    fn add(&mut self, spent: &Spent, time_s: f64) {
        let side = if spent.behind.is_some() { &mut self.behind } else { &mut self.own };
        match spent.cause() {
            Cause::Unresolved => self.remains += time_s,
            cause => side[cause as usize] += time_s,
        }
    }

    fn closed(self) -> Account {
        let entries = Cause::ALL.into_iter().map(|cause| Entry {
            cause,
            own_s: Seconds(self.own[cause as usize]),
            behind_s: Seconds(self.behind[cause as usize]),
        });
        let entries: Vec<Entry> =
            entries.filter(|entry| entry.own_s.0 > 0.0 || entry.behind_s.0 > 0.0).collect();
        let all_s = entries.iter().map(|entry| entry.own_s.0 + entry.behind_s.0).sum::<f64>();
        let (active_s, remains_s) = (Seconds(all_s + self.remains), Seconds(self.remains));
        Account { active_s, entries, remains_s }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::activity::{Doing, Polling, Slice};
    use proptest::prelude::*;

    fn spent(polling: Polling, doing: Doing, time_s: f64) -> Spent {
        Spent::own(polling, doing, Seconds(time_s))
    }

    fn behind(polling: Polling, doing: Doing, cause: Cause, time_s: f64) -> Spent {
        Spent { behind: Some(cause), ..spent(polling, doing, time_s) }
    }

    fn activity(slices: Vec<Slice>) -> Activity {
        Activity::traced("postgres:1", Seconds(10.0), slices)
    }

    /// One slice of the whole window.
    fn ledger(spent: Vec<Spent>, model: Model) -> Ledger {
        let slice = Slice::traced(Seconds(10.0), spent);
        Ledger::of(&activity(vec![slice]), model).into_value().expect("it was followed")
    }

    /// Own and behind.
    fn seconds(account: &Account, cause: Cause) -> [Seconds; 2] {
        let entry = account.entry(cause);
        [entry.own_s, entry.behind_s]
    }

    #[test]
    fn a_wait_for_another_is_what_that_one_did_and_the_rest_of_it_remains() {
        let forever = Polling::Forever;
        let all = vec![
            spent(forever, Doing::OnCpu, 1.0),
            spent(forever, Doing::Futex, 1.5),
            behind(forever, Doing::Futex, Cause::Disk, 2.0),
            behind(forever, Doing::Futex, Cause::Unresolved, 0.5),
            behind(forever, Doing::Poll, Cause::Cpu, 5.0),
            spent(Polling::Timed, Doing::Disk, 7.0),
        ];
        let Ledger { serving, background } = ledger(all, Model::Process);
        assert_eq!(
            seconds(&serving, Cause::Cpu),
            [1.0, 0.0].map(Seconds),
            "its client is no part of it"
        );
        assert_eq!(seconds(&serving, Cause::Disk), [0.0, 2.0].map(Seconds));
        assert_eq!((serving.remains_s, serving.active_s), (Seconds(2.0), Seconds(5.0)));
        assert_eq!(seconds(&background, Cause::Disk), [7.0, 0.0].map(Seconds));
        assert_eq!(background.active_s, Seconds(7.0));
    }

    #[test]
    fn a_holder_that_waits_for_its_client_is_idle_and_who_waits_for_it_is_not() {
        let all = vec![behind(Polling::Forever, Doing::PollPeer, Cause::Idle, 4.0)];
        let serving = ledger(all.clone(), Model::Process).serving;
        assert_eq!(seconds(&serving, Cause::Idle), [0.0, 4.0].map(Seconds));
        let thread = ledger(all, Model::Thread).serving;
        assert_eq!(thread.active_s, Seconds(0.0), "it waits for something to do");
    }

    #[test]
    fn a_wait_in_the_kernel_that_no_thread_ended_is_its_own() {
        let never = Polling::Never;
        let all = vec![
            spent(never, Doing::Filesystem, 1.0),
            behind(never, Doing::Filesystem, Cause::Throttled, 2.0),
            spent(never, Doing::Fault, 1.0),
        ];
        let serving = ledger(all, Model::Process).serving;
        assert_eq!(seconds(&serving, Cause::Kernel), [2.0, 0.0].map(Seconds));
        assert_eq!(seconds(&serving, Cause::Throttled), [0.0, 2.0].map(Seconds));
        assert_eq!(serving.remains_s, Seconds(0.0));
    }

    #[test]
    fn what_nobody_followed_is_a_gap() {
        let spent = vec![spent(Polling::Forever, Doing::OnCpu, 1.0)];
        let slice = Slice { followed: false, ..Slice::traced(Seconds(1.0), spent) };
        assert!(!Ledger::of(&activity(vec![slice]), Model::Process).is_present());
    }

    fn any_slice() -> impl Strategy<Value = Slice> {
        let polling = prop::sample::select(Polling::ALL.to_vec());
        let doing = prop::sample::select(Doing::ALL.to_vec());
        let cause = prop::option::of(prop::sample::select(Cause::ALL.to_vec()));
        let spends = (polling, doing, cause, 0.0..10.0_f64);
        let spends =
            spends.prop_map(|(p, d, behind, time_s)| Spent { behind, ..spent(p, d, time_s) });
        let all = (prop::collection::vec(spends, 0..60), 0.1..2.0_f64, 0.0..3.0_f64);
        all.prop_map(|(spent, traced_s, paused_s)| Slice {
            stands_for_s: Some(Seconds(traced_s + paused_s)),
            ..Slice::traced(Seconds(traced_s), spent)
        })
    }

    proptest! {
        /// Whatever was seen, the entries and what remains are the active time: no second twice, none lost.
        #[test]
        fn every_active_second_is_allocated_once(
            slices in prop::collection::vec(any_slice(), 0..5),
            model in prop::sample::select(vec![
                Model::Process, Model::Thread, Model::Loop, Model::Unknown,
            ]),
        ) {
            let activity = activity(slices);
            let ledger = Ledger::of(&activity, model).into_value().expect("it was followed");
            for (account, serving) in [(&ledger.serving, true), (&ledger.background, false)] {
                let of = |entry: &Entry| entry.own_s.0 + entry.behind_s.0;
                let all_s = account.entries.iter().map(of).sum::<f64>() + account.remains_s.0;
                let active = activity.sum(|spent| {
                    spent.part(model).is_active() && spent.in_background(model) != serving
                });
                prop_assert!((all_s - active.0).abs() < 1e-6 * (1.0 + active.0));
                prop_assert!((account.active_s.0 - active.0).abs() < 1e-6 * (1.0 + active.0));
                let parts = account.entries.iter().flat_map(|e| [e.own_s.0, e.behind_s.0]);
                prop_assert!(parts.chain([account.remains_s.0]).all(|s| s >= -1e-9));
            }
        }
    }
}
