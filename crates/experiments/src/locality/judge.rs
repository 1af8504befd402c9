//! Which change of the timeline belongs to which step: pure.

use super::schema::{Levels, Seen, Step};
use jiff::Timestamp;
use std::time::Duration;
use untax_core::timeline::{Change, Timeline};

/// A change belongs to a step if no more than so many windows lie between them.
pub(super) const NEAR: f64 = 2.0;

/// A step that was made.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Made {
    pub(super) id: String,
    pub(super) text: String,
    pub(super) from: Timestamp,
    pub(super) to: Timestamp,
    pub(super) expected: Vec<String>,
    pub(super) client: Option<Levels>,
}

/// What the timeline says of each step, and the changes that belong to none. Each change belongs to one step at most.
pub(super) fn judge(
    made: Vec<Made>,
    timeline: &Timeline,
    window: Duration,
) -> (Vec<Step>, Vec<Seen>) {
    let changes = timeline.databases.iter().flat_map(|database| &database.changes);
    let mut left: Vec<&Change> = changes.collect();
    let step = |made: Made| {
        let off = |change: &Change| windows_off(&made, change, window);
        let near = left.iter().enumerate().map(|(at, change)| (at, off(change)));
        let nearest = near.filter(|(_, off)| *off <= NEAR).min_by(|a, b| a.1.total_cmp(&b.1));
        let seen = nearest.map(|(at, off)| seen(left.remove(at), Some(off), &made.expected));
        let first = seen.as_ref().and_then(|seen| seen.causes.first());
        let named = first.is_some_and(|cause| made.expected.contains(cause));
        let Made { id, text, from, to, expected, client } = made;
        Step { id, text, from, to, expected, client, seen, named }
    };
    let steps = made.into_iter().map(step).collect();
    let others = left.into_iter().map(|change| seen(change, None, &[])).collect();
    (steps, others)
}

/// Windows between a step and a change; none where it began while the step was made.
fn windows_off(made: &Made, change: &Change, window: Duration) -> f64 {
    let between = |early: Timestamp, late: Timestamp| late.duration_since(early).as_secs_f64();
    let off_s = between(change.from, made.from).max(between(made.to, change.from)).max(0.0);
    off_s / window.as_secs_f64()
}

fn seen(change: &Change, windows_off: Option<f64>, expected: &[String]) -> Seen {
    let named = change.causes.iter().filter(|cause| expected.contains(&cause.id));
    let brought: Vec<f64> = named.filter_map(|cause| cause.gained_per_s).collect();
    let share = brought.iter().sum::<f64>() / change.gained_per_s();
    Seen {
        rank: change.rank,
        kind: change.kind,
        from: change.from,
        to: change.to,
        windows_off,
        levels: Levels { before_per_s: change.before_per_s, after_per_s: change.after_per_s },
        causes: change.causes.iter().map(|cause| cause.id.clone()).collect(),
        expected_share: (!brought.is_empty() && share.is_finite()).then_some(share),
    }
}

/// Seconds after a step in which its effect settles.
const SETTLE: usize = 2;

/// Seconds from which a level can be told.
const FEWEST: usize = 3;

/// What clients counted before and after each step, by second. Each step has the seconds that were counted when it was
/// begun and done; levels begin with second `first`.
pub(super) fn client_levels(
    steps: &[[usize; 2]],
    first: usize,
    each: &[f64],
) -> Vec<Option<Levels>> {
    let level = |from: usize, to: usize| {
        let seconds = each.get(from..to.min(each.len()))?;
        if seconds.len() < FEWEST { None } else { untax_core::stats::mean(seconds) }
    };
    let levels = |at: usize| {
        let [begun, done] = steps[at];
        let before = at.checked_sub(1).map_or(first, |before| steps[before][1] + SETTLE);
        let next = steps.get(at + 1).map_or(each.len(), |next| next[0]);
        let (before_per_s, after_per_s) = (level(before, begun)?, level(done + SETTLE, next)?);
        Some(Levels { before_per_s, after_per_s })
    };
    (0..steps.len()).map(levels).collect()
}

#[cfg(test)]
mod tests {
    use super::super::example;
    use super::*;

    const WINDOW: Duration = Duration::from_secs(5);

    fn made(at_s: i64, expected: &str) -> Made {
        let from = example::at(at_s);
        let to = example::at(at_s + 2);
        let (id, text) = (format!("at-{at_s}"), String::new());
        Made { id, text, from, to, expected: vec![expected.to_owned()], client: None }
    }

    #[test]
    fn a_change_belongs_to_the_step_that_is_near_and_to_no_other() {
        let timeline = example::timeline(&[
            (95, "cpu-limit", 100.0),
            (214, "cache", 50.0),
            (300, "data-moved", 70.0),
        ]);
        let all = vec![made(100, "cpu-limit"), made(202, "data-moved"), made(280, "data-moved")];
        let (steps, others) = judge(all, &timeline, WINDOW);
        let off: Vec<Option<f64>> =
            steps.iter().map(|step| step.seen.as_ref().and_then(|seen| seen.windows_off)).collect();
        assert_eq!(off, [Some(1.0), Some(2.0), None]);
        assert_eq!([0, 1, 2].map(|at: usize| steps[at].named), [true, false, false]);
        assert_eq!(others.len(), 1);
        assert_eq!((others[0].from, others[0].windows_off), (example::at(300), None));
    }

    #[test]
    fn two_steps_do_not_share_a_change() {
        let timeline = example::timeline(&[(101, "cpu-limit", 100.0)]);
        let (steps, others) =
            judge(vec![made(100, "cpu-limit"), made(104, "cpu-limit")], &timeline, WINDOW);
        assert_eq!([0, 1].map(|at: usize| steps[at].seen.is_some()), [true, false]);
        assert!(others.is_empty());
        assert!((steps[0].seen.as_ref().unwrap().expected_share.unwrap() - 1.0).abs() < 1e-9);
    }

    #[test]
    fn levels_of_clients_leave_out_what_settles_and_what_is_too_short() {
        let mut each = vec![9.0; 4];
        each.extend([1.0; 6]);
        // While it is done, and while it settles.
        each.extend([0.0; 4]);
        each.extend([3.0; 5]);
        each.extend([0.0; 3]);
        let levels = client_levels(&[[10, 12], [19, 21]], 4, &each);
        assert_eq!(levels, [Some(Levels { before_per_s: 1.0, after_per_s: 3.0 }), None]);
        assert_eq!(client_levels(&[[40, 50]], 4, &each), [None]);
    }
}
