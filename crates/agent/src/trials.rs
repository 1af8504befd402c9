//! Trials of untax beside a window: its databases are then slow on purpose.

use std::collections::BTreeSet;
use untax_core::{Snapshot, Window};
use untax_host::Host;
use untax_host::trials::{Trial, all};

/// The trials that ran when the last window ended. One that is killed leaves no time of its end.
#[derive(Debug, Default)]
pub(crate) struct Trials(BTreeSet<(u32, u64)>);

impl Trials {
    /// The commands whose trials overlap the window that has just ended.
    pub fn beside(&mut self, host: &Host, window: &Window) -> BTreeSet<String> {
        let at_s = |at: &Snapshot| at.taken_at.as_millisecond() as f64 / 1e3;
        let (start_s, end_s) = (at_s(&window.start), at_s(&window.end));
        let trials = all(host).into_iter().map(|trial| (trial.runs(host), trial));
        self.overlapping(&trials.collect::<Vec<_>>(), start_s, end_s)
    }

    /// Of trials, each with whether it runs now, those that overlap a window.
    fn overlapping(
        &mut self,
        trials: &[(bool, Trial)],
        start_s: f64,
        end_s: f64,
    ) -> BTreeSet<String> {
        let key = |trial: &Trial| (trial.pid, trial.started_ticks);
        let overlaps = |(runs, trial): &&(bool, Trial)| {
            let last_seen_s = trial.ended_s.unwrap_or(trial.begun_s);
            let ran = *runs || self.0.contains(&key(trial)) || last_seen_s >= start_s;
            ran && trial.begun_s <= end_s
        };
        let found = trials.iter().filter(overlaps).map(|(_, trial)| trial.what.clone()).collect();
        self.0 = trials.iter().filter(|(runs, _)| *runs).map(|(_, trial)| key(trial)).collect();
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trial(begun_s: f64, ended_s: Option<f64>) -> Trial {
        Trial { pid: 7, what: "bench".to_owned(), started_ticks: 11, begun_s, ended_s }
    }

    /// Whether a trial overlaps each of three windows of ten seconds from 100 on; `runs` is at their ends.
    fn overlaps(looks: [(bool, Trial); 3]) -> [bool; 3] {
        let mut trials = Trials::default();
        let mut start_s = 90.0;
        looks.map(|look| {
            start_s += 10.0;
            !trials.overlapping(&[look], start_s, start_s + 10.0).is_empty()
        })
    }

    #[test]
    fn a_window_is_beside_a_trial_that_any_part_of_it_saw() {
        let inside = trial(102.0, Some(103.0));
        let look = (false, inside);
        assert_eq!(overlaps([look.clone(), look.clone(), look]), [true, false, false]);
        let running = (true, trial(105.0, None));
        let ended = (false, trial(105.0, Some(121.0)));
        assert_eq!(overlaps([running.clone(), running, ended]), [true, true, true]);
        let later = (true, trial(110.5, None));
        assert_eq!(overlaps([later.clone(), later.clone(), later]), [false, true, true]);
    }

    #[test]
    fn a_trial_that_was_killed_is_beside_the_window_in_which_it_was() {
        let (running, killed) = ((true, trial(50.0, None)), (false, trial(50.0, None)));
        assert_eq!(overlaps([running, killed.clone(), killed.clone()]), [true, true, false]);
        let begun_and_killed = (false, trial(104.0, None));
        assert_eq!(overlaps([begun_and_killed, killed.clone(), killed]), [true, false, false]);
    }
}
