//! Whether a spill pays: throughput with more CPUs, then at home, by a count of work.
//!
//! The spill comes first, because most pay. Then the instance goes home for a while, and the better of the
//! two stays. That it stays is tried again after 30 s, and later each time that it shows the same.

use super::sample::{Why, Work};
use super::state::{State, Verdict};
use super::trial::{Rate, Trial};
use super::tunables::WORTH;
use super::view::View;
use untax_core::Reading;

impl View<'_> {
    /// Begins a trial of a spill, unless what an earlier one showed still holds.
    pub(super) fn begin_trial(&self, state: &mut State) {
        if self.now_s() >= state.next_trial_s {
            state.trial = Trial::Away { since_s: self.now_s() };
        }
    }

    /// Goes on with a trial: why its CPUs changed, if they did, and whether its work is to be read.
    pub(super) fn judge(&self, state: &mut State, is_full: bool) -> (Option<Why>, bool) {
        match state.trial.clone() {
            Trial::None => {
                if state.is_grown && state.cpus != *self.home {
                    self.begin_trial(state);
                }
                (None, false)
            }
            Trial::Away { since_s } => (None, self.count_away(state, since_s)),
            Trial::AwayCounted { first } => match self.rate_since(first) {
                Ok(per_s) => {
                    let away = Rate { per_s, cpus: state.cpus.clone() };
                    state.shrink(self.home.clone(), self.now_s());
                    state.trial = Trial::Home { since_s: self.now_s(), away };
                    (Some(Why::Trial), false)
                }
                Err(ask) => (None, ask),
            },
            Trial::Home { .. } | Trial::HomeCounted { .. } if self.is_over(state, is_full) => {
                state.trial = Trial::None;
                (None, false)
            }
            Trial::Home { since_s, away } => match self.work_since(since_s + self.hold_s()) {
                Counted::Work(first) => {
                    state.trial = Trial::HomeCounted { first, away };
                    (None, false)
                }
                counted => (None, counted == Counted::Soon),
            },
            Trial::HomeCounted { first, away } => match self.rate_since(first) {
                Ok(per_s) => (self.settle(state, &away, per_s), false),
                Err(ask) => (None, ask),
            },
        }
    }

    /// Whether its work is to be read; the first count after the load settled.
    fn count_away(&self, state: &mut State, since_s: f64) -> bool {
        match self.work_since(since_s + self.hold_s()) {
            Counted::No => return false,
            Counted::Soon => return true,
            Counted::Never => {
                state.conclude(Verdict { gain: None, is_worth: true }, self.now_s());
            }
            Counted::Work(first) => state.trial = Trial::AwayCounted { first },
        }
        false
    }

    /// Whether its home has not been full for a while, so that what was measured away was another load, or
    /// its work is counted no more.
    fn is_over(&self, state: &mut State, is_full: bool) -> bool {
        if is_full {
            state.calm_since_s = None;
        }
        let calm_s = if is_full {
            0.0
        } else {
            self.now_s() - *state.calm_since_s.get_or_insert(self.now_s())
        };
        calm_s > self.hold_s() || !self.seen.work.is_present()
    }

    /// Keeps the better of the two.
    fn settle(&self, state: &mut State, away: &Rate, home_per_s: f64) -> Option<Why> {
        let gain = away.per_s / home_per_s;
        let is_worth = !gain.is_finite() || gain >= WORTH;
        let gain = Some(gain).filter(|gain| gain.is_finite());
        state.conclude(Verdict { gain, is_worth }, self.now_s());
        if !is_worth {
            return None;
        }
        let back = away.cpus.and(&self.seen.allowed).without(&self.reserved).without(self.given);
        let cpus = back.or(self.home);
        if cpus == state.cpus {
            return None;
        }
        state.grow(cpus, self.now_s());
        Some(Why::Worth)
    }

    /// The work so far, when it was read at or after a moment.
    fn work_since(&self, moment_s: f64) -> Counted {
        match &self.seen.work {
            _ if self.now_s() < moment_s => Counted::No,
            Reading::Present(Some(work)) if work.at_s >= moment_s => Counted::Work(*work),
            Reading::Present(_) => Counted::Soon,
            _ => Counted::Never,
        }
    }

    /// Work per second since an earlier count, over the length of a trial at least; otherwise whether to read it now.
    fn rate_since(&self, first: Work) -> Result<f64, bool> {
        match self.work_since(first.at_s + self.instance.tunables.judge.as_secs_f64()) {
            Counted::Work(last) => Ok((last.count - first.count) / (last.at_s - first.at_s)),
            counted => Err(counted == Counted::Soon),
        }
    }
}

/// A count of work that was asked for.
#[derive(Debug, PartialEq)]
enum Counted {
    /// It is too early.
    No,
    /// It is time to read it.
    Soon,
    /// Nothing counts it.
    Never,
    /// It was read.
    Work(Work),
}
