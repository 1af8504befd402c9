//! `--fail-if`: what a build asks of a ratio.

use super::results::Tally;
use super::schema::{GuardResult, Ratio};
use untax_core::verdict::LEAST_PAIRS;

/// `[WORKLOAD:]ARM/ARM < NUMBER` or `>`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Guard {
    asked: String,
    workload: Option<String>,
    of: String,
    over: String,
    fails_below: bool,
    bound: f64,
}

impl std::str::FromStr for Guard {
    type Err = String;

    fn from_str(asked: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "'{asked}' is no guard; write one like 'runc/host < 0.95' or 'redis-get:runc/host < 0.95'"
            )
        };
        let place = asked.find(['<', '>']).ok_or_else(wrong)?;
        let (left, right) = asked.split_at(place);
        let (workload, arms) = match left.trim().split_once(':') {
            Some((workload, arms)) => (Some(workload.trim().to_owned()), arms),
            None => (None, left),
        };
        let (of, over) = arms.trim().split_once('/').ok_or_else(wrong)?;
        let bound: f64 = right[1..].trim().parse().map_err(|_| wrong())?;
        let (of, over) = (of.trim().to_owned(), over.trim().to_owned());
        if of.is_empty() || over.is_empty() || !bound.is_finite() || bound <= 0.0 {
            return Err(wrong());
        }
        let fails_below = right.starts_with('<');
        Ok(Self { asked: asked.to_owned(), workload, of, over, fails_below, bound })
    }
}

impl Guard {
    /// The arms and the workload that it names.
    pub(crate) fn names(&self) -> ([&str; 2], Option<&str>) {
        ([&self.of, &self.over], self.workload.as_deref())
    }

    /// What comes of it in each cell that it is about. One that cannot be judged anywhere fails: a build must
    /// not pass because nothing was measured.
    pub(crate) fn judge(&self, tally: &Tally) -> Vec<GuardResult> {
        let place = |id: &str| tally.arms.iter().position(|arm| arm.id == id);
        let (of, over) = (place(&self.of), place(&self.over));
        let is_meant = |id: &str| self.workload.as_deref().is_none_or(|wanted| wanted == id);
        let cells = tally.cells.iter().enumerate();
        let cells =
            cells.filter(|(_, cell)| is_meant(&cell.workload.id) && !cell.workload.explains);
        let judged = cells.filter_map(|(cell, _)| {
            let ratio = tally.ratio(cell, of?, over?)?;
            Some(self.judge_ratio(tally.cells[cell].name(), &ratio))
        });
        let judged: Vec<GuardResult> = judged.collect();
        if judged.is_empty() {
            let said = "not measured in any cell".to_owned();
            return vec![GuardResult { asked: self.asked.clone(), cell: None, failed: true, said }];
        }
        judged
    }

    /// It fails where the whole interval does: what noise alone may have done fails no build.
    fn judge_ratio(&self, cell: String, ratio: &Ratio) -> GuardResult {
        let Ratio { factor, low, high, pairs, .. } = *ratio;
        let measured = format!("{factor:.3} ({low:.3}–{high:.3}, {pairs} pairs)");
        let is_beyond = if self.fails_below { high < self.bound } else { low > self.bound };
        let is_within = if self.fails_below { low >= self.bound } else { high <= self.bound };
        let (failed, said) = match (pairs < LEAST_PAIRS, is_beyond, is_within) {
            (true, ..) => (true, format!("{measured}: too few pairs to judge; raise --budget")),
            (_, true, _) => (true, measured),
            (.., true) => (false, measured),
            _ => (false, format!("{measured}: undecided, the interval holds {}", self.bound)),
        };
        GuardResult { asked: self.asked.clone(), cell: Some(cell), failed, said }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use untax_core::bench::RatioVerdict;

    fn ratio(low: f64, high: f64, pairs: u32) -> Ratio {
        let factor = f64::midpoint(low, high);
        Ratio { factor, low, high, pairs, verdict: RatioVerdict::Inconclusive }
    }

    #[test]
    fn a_guard_is_understood_with_and_without_a_workload() {
        let guard: Guard = "runc/host<0.95".parse().unwrap();
        assert_eq!(guard.names(), (["runc", "host"], None));
        let guard: Guard = " redis-get: runc / host > 1.5 ".parse().unwrap();
        assert_eq!(guard.names(), (["runc", "host"], Some("redis-get")));
        assert!(!guard.fails_below);
        for wrong in ["runc", "runc/host", "runc < 1", "runc/host < x", "/host < 1", "a/b < -1"] {
            assert!(wrong.parse::<Guard>().unwrap_err().contains("no guard"), "{wrong}");
        }
    }

    #[test]
    fn only_an_interval_wholly_beyond_the_bound_fails() {
        let guard: Guard = "runc/host < 0.95".parse().unwrap();
        let failed = |ratio| guard.judge_ratio(String::new(), &ratio).failed;
        assert!(failed(ratio(0.80, 0.94, 9)));
        assert!(!failed(ratio(0.90, 1.0, 9)));
        assert!(!failed(ratio(0.96, 1.0, 9)));
        let undecided = guard.judge_ratio(String::new(), &ratio(0.90, 1.0, 9));
        assert!(undecided.said.contains("undecided"), "{}", undecided.said);
        let guard: Guard = "runc/host > 1.2".parse().unwrap();
        assert!(guard.judge_ratio(String::new(), &ratio(1.3, 1.4, 9)).failed);
    }

    #[test]
    fn too_few_pairs_fail_and_say_so() {
        let guard: Guard = "runc/host < 0.95".parse().unwrap();
        let judged = guard.judge_ratio(String::new(), &ratio(0.99, 1.0, 3));
        assert!(judged.failed && judged.said.contains("too few pairs"), "{}", judged.said);
    }
}
