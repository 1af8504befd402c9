//! How much of a window is traced, so that tracing keeps its budget.

use std::time::Duration;

/// What tracing may take of a CPU in a window, with its pauses, to see enough of it (s); beyond that, only
/// parts of the window are traced.
const ENOUGH_S: f64 = 0.05;

/// The share of one CPU that tracing may take in long windows and in short ones. With what this process
/// takes beside it, a watch of ten seconds stays below one percent of two CPUs, with its servers' answers.
const BUDGETS: [f64; 2] = [0.005, 0.01];

/// What tracing is taken to cost of a CPU where the kernel does not count it. Not measured: it is to be
/// more than most servers make it cost, so that their budget holds.
const UNCOUNTED: f64 = 0.05;

/// How long slices are, and how long the pauses between them must be.
pub(super) struct SliceBudget {
    least: Duration,
    most: Duration,
    /// Pauses that ended early with a window: they are made up for, up to a window's length.
    owed: Duration,
    window: Duration,
    /// The share of one CPU that tracing may take.
    share: f64,
    rng: fastrand::Rng,
}

impl SliceBudget {
    /// Some forty slices in a window, or up to a hundred of those that cost more than the budget: what
    /// comes and goes is in some of them.
    pub fn new(window: Duration) -> Self {
        let slice = |count, least_ms| {
            (window / count).clamp(Duration::from_millis(least_ms), Duration::from_secs(1))
        };
        let (least, most) = (slice(100, 50), slice(40, 200));
        let [of_long, of_short] = BUDGETS;
        let share = (ENOUGH_S / window.as_secs_f64()).clamp(of_long, of_short);
        Self { least, most, owed: Duration::ZERO, window, share, rng: fastrand::Rng::new() }
    }

    /// Whether a slice is long enough that cost so much of a CPU so far, where a pause costs `pausing_s`
    /// of it. One that costs little goes on: who asks seldom is to be seen asking. And most of the
    /// budget is for what is seen.
    pub fn is_over(&self, traced: Duration, cost_s: Option<f64>, pausing_s: f64) -> bool {
        let traced_s = traced.as_secs_f64();
        let cost_s = cost_s.unwrap_or(UNCOUNTED * traced_s);
        let dear = cost_s > self.share * traced_s && cost_s > 2.0 * pausing_s;
        traced >= self.most || traced >= self.least && dear
    }

    /// Whether it can go on for ever what cost so much in a slice.
    pub fn bears(&self, traced_s: f64, cost_s: Option<f64>) -> bool {
        cost_s.is_some_and(|cost_s| cost_s < self.share * traced_s)
    }

    /// For how long after a window the ends of its waits are seen at most, and what that may cost of a CPU (s): a
    /// tenth of the window, and no more than a history of a thread reaches back.
    pub fn beyond_the_window(&self) -> (Duration, f64) {
        let most = (self.window / 10).min(Duration::from_secs(1));
        (most, self.share * self.window.as_secs_f64() / 10.0)
    }

    /// So much of a CPU was spent without a slice.
    pub fn charge(&mut self, cost_s: f64) {
        self.owe(Duration::try_from_secs_f64(cost_s / self.share).unwrap_or_default());
    }

    /// A pause was cut short by so much.
    pub fn owe(&mut self, short: Duration) {
        self.owed = (self.owed + short).min(self.window);
    }

    /// After a slice of `traced_s` that cost `cost_s` of a CPU, where a pause costs `pausing_s` of it.
    /// Random, so as not to fall into step with anything periodic.
    pub fn pause_ns(&mut self, traced_s: f64, cost_s: Option<f64>, pausing_s: f64) -> u64 {
        let cost_s = cost_s.unwrap_or(UNCOUNTED * traced_s);
        let owed = std::mem::take(&mut self.owed);
        let needed_s = cost_s / self.share - traced_s + owed.as_secs_f64();
        if needed_s <= 0.0 {
            return 0;
        }
        ((needed_s + pausing_s / self.share) * (0.5 + self.rng.f64()) * 1e9) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_needs_enough_but_not_more() {
        let per_million =
            |seconds| (1e6 * SliceBudget::new(Duration::from_secs(seconds)).share).round() as u32;
        assert_eq!([1, 5, 8, 10, 60].map(per_million), [10_000, 10_000, 6_250, 5_000, 5_000]);
    }

    #[test]
    fn pauses_keep_the_budget() {
        let mut budget = SliceBudget::new(Duration::from_secs(10));
        let over = |ms, cost_s, pausing_s| {
            budget.is_over(Duration::from_millis(ms), Some(cost_s), pausing_s)
        };
        assert!(!over(99, 1.0, 0.0) && over(100, 0.002, 0.0), "not too short");
        assert!(!over(249, 0.001, 0.0) && over(250, 0.0, 0.0), "not too long");
        assert!(!over(150, 0.003, 0.002) && over(150, 0.005, 0.002), "for more than its pause");
        assert_eq!(
            budget.pause_ns(0.25, Some(0.25 * budget.share), 0.1),
            0,
            "no pause costs nothing"
        );
        // Three times the budget, and as much for the pause as for a third of that: three quarters of
        // the time are pauses.
        let mut pause = || budget.pause_ns(0.25, Some(0.75 * budget.share), 0.25 * budget.share);
        let pauses: Vec<u64> = (0..1000).map(|_| pause()).collect();
        let mean = pauses.iter().sum::<u64>() as f64 / 1000.0;
        assert!((mean / 0.75e9 - 1.0).abs() < 0.05, "{mean}");
        assert!(pauses.iter().all(|pause| (374_000_000..=1_126_000_000).contains(pause)));
        assert!(budget.pause_ns(0.25, None, 0.0) > 0, "what is not counted is not free");
    }

    #[test]
    fn what_costs_less_than_the_budget_can_go_on() {
        let budget = SliceBudget::new(Duration::from_secs(10));
        let bears = |cost_s| budget.bears(0.2, cost_s);
        assert!(bears(Some(0.000_9)) && !bears(Some(0.001_1)) && !bears(None));
    }

    #[test]
    fn a_window_waits_no_longer_than_a_tenth_for_the_ends_of_its_waits() {
        let beyond = |seconds| SliceBudget::new(Duration::from_secs(seconds)).beyond_the_window();
        assert_eq!(beyond(4).0, Duration::from_millis(400));
        assert_eq!(beyond(60).0, Duration::from_secs(1));
        assert!(beyond(10).1 <= 0.005 + 1e-9, "a tenth of the budget");
    }

    #[test]
    fn a_pause_cut_short_is_made_up_for() {
        let mut budget = SliceBudget::new(Duration::from_secs(2));
        budget.owe(Duration::from_millis(800));
        assert!(budget.pause_ns(0.2, Some(0.2 * budget.share), 0.0) >= 400_000_000);
        assert_eq!(budget.pause_ns(0.2, Some(0.2 * budget.share), 0.0), 0, "once");
        budget.charge(0.8 * budget.share);
        assert!(
            budget.pause_ns(0.2, Some(0.2 * budget.share), 0.0) >= 400_000_000,
            "as much as a slice"
        );
        budget.owe(Duration::from_secs(60));
        assert!(
            budget.pause_ns(0.2, Some(0.2 * budget.share), 0.0) <= 3_000_000_000,
            "an old debt lapses"
        );
    }
}
