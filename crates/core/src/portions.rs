//! The taxes of one database as portions of one whole: each second is charged once.

use crate::Interval;
use crate::finding::Scope;

/// What causes take of one whole, the active time of a database.
///
/// Rules claim; this allots. However much the causes claim, the portions of all of them together are
/// never more than the whole, and no portion's upper bound leaves less to the others than their lower
/// bounds. So neither do the totals of the two scopes.
#[derive(Debug, Clone, PartialEq)]
pub struct Portions {
    each: Vec<(Scope, Interval)>,
    excess: f64,
}

impl Portions {
    /// Allots the whole to causes that claim these shares (0..1) of it.
    ///
    /// Where they claim more than there is, some seconds are claimed twice. Nobody knows by which
    /// causes, so all give in proportion, and each lower bound gives up the whole excess.
    pub fn of(claims: impl IntoIterator<Item = (Scope, Interval)>) -> Self {
        let claims: Vec<(Scope, Interval)> =
            claims.into_iter().map(|(scope, claim)| (scope, claim.map(within_the_whole))).collect();
        let claimed = sum(claims.iter().map(|(_, claim)| claim.mid));
        let excess = (claimed - 1.0).max(0.0);
        let allotted = |claim: Interval| {
            let mid = claim.mid / claimed.max(1.0);
            ((claim.low - excess).clamp(0.0, mid), mid, claim.high)
        };
        let least = sum(claims.iter().map(|(_, claim)| allotted(*claim).0));
        let portion = |(scope, claim): (Scope, Interval)| {
            let (low, mid, high) = allotted(claim);
            // What the others take at least is not left for this one.
            (scope, Interval::new(low, mid, high.min(1.0 - (least - low)).max(mid)))
        };
        Self { each: claims.into_iter().map(portion).collect(), excess }
    }

    /// The portion of each cause, in the order of the claims.
    pub fn each(&self) -> impl Iterator<Item = Interval> {
        self.each.iter().map(|(_, portion)| *portion)
    }

    /// By how much the causes claimed more than the whole.
    pub fn excess(&self) -> f64 {
        self.excess
    }

    /// What the causes of one scope take together; `None` when there are none.
    pub fn of_scope(&self, scope: Scope) -> Option<Interval> {
        let total = |of: Scope| {
            let own = self.each.iter().filter(move |(its, _)| *its == of);
            own.map(|(_, portion)| *portion).reduce(Interval::plus)
        };
        let others = match scope {
            Scope::Platform => Scope::Database,
            Scope::Database => Scope::Platform,
        };
        let taken = total(others).unwrap_or(Interval::exact(0.0));
        let own = total(scope)?;
        let mid = own.mid.min(1.0 - taken.mid).max(0.0);
        let high = own.high.min(1.0 - taken.low);
        Some(Interval::new(own.low.min(mid), mid, high.max(mid)))
    }
}

/// What is not a number claims nothing.
fn within_the_whole(share: f64) -> f64 {
    if share > 0.0 { share.min(1.0) } else { 0.0 }
}

fn sum(of: impl Iterator<Item = f64>) -> f64 {
    of.fold(0.0, |sum, share| sum + share)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn share(low: f64, mid: f64, high: f64) -> Interval {
        Interval::new(low, mid, high)
    }

    fn about(left: Interval, right: [f64; 3]) {
        let left = [left.low, left.mid, left.high];
        let close = left.iter().zip(right).all(|(left, right)| (left - right).abs() < 1e-9);
        assert!(close, "{left:?} is not {right:?}");
    }

    #[test]
    fn claims_within_the_whole_are_allotted_as_they_are() {
        let claims = [
            (Scope::Platform, share(0.1, 0.2, 0.3)),
            (Scope::Database, share(0.3, 0.4, 0.5)),
            (Scope::Platform, share(0.0, 0.1, 0.2)),
        ];
        let portions = Portions::of(claims);
        assert!(portions.each().eq(claims.iter().map(|(_, claim)| *claim)));
        about(portions.of_scope(Scope::Platform).unwrap(), [0.1, 0.3, 0.5]);
        about(portions.of_scope(Scope::Database).unwrap(), [0.3, 0.4, 0.5]);
        assert!(portions.excess() <= 0.0);
        assert_eq!(Portions::of([claims[0]]).of_scope(Scope::Database), None);
    }

    #[test]
    fn causes_that_claim_more_than_everything_share_it() {
        // 87 + 16 + 2 are no 100.
        let portions = Portions::of([
            (Scope::Database, share(0.8, 0.87, 0.9)),
            (Scope::Database, share(0.1, 0.16, 0.2)),
            (Scope::Platform, share(0.01, 0.02, 0.03)),
        ]);
        let each: Vec<Interval> = portions.each().collect();
        about(each[0], [0.75, 0.87 / 1.05, 0.9]);
        about(each[1], [0.05, 0.16 / 1.05, 0.2]);
        about(each[2], [0.0, 0.02 / 1.05, 0.03]);
        let mids = sum(each.iter().map(|portion| portion.mid));
        assert!((mids - 1.0).abs() < 1e-9, "the parts on the screen add up: {mids}");
        assert!((portions.excess() - 0.05).abs() < 1e-9);
    }

    #[test]
    fn an_upper_bound_leaves_what_the_others_take_at_least() {
        let claims =
            [(Scope::Platform, share(0.1, 0.3, 0.9)), (Scope::Database, share(0.45, 0.5, 0.55))];
        let portions = Portions::of(claims);
        about(portions.of_scope(Scope::Platform).unwrap(), [0.1, 0.3, 0.55]);
        about(portions.of_scope(Scope::Database).unwrap(), [0.45, 0.5, 0.55]);
    }

    fn claim() -> impl Strategy<Value = (Scope, Interval)> {
        // Out of order and beyond the whole, as a rule with a fault would claim.
        let number = -0.5..2.0_f64;
        (any::<bool>(), number.clone(), number.clone(), number).prop_map(|(scope, a, b, c)| {
            let scope = if scope { Scope::Platform } else { Scope::Database };
            (scope, Interval { low: a, mid: b, high: c })
        })
    }

    proptest! {
        #[test]
        fn together_they_are_never_more_than_everything(
            claims in proptest::collection::vec(claim(), 0..12),
        ) {
            const ROUNDING: f64 = 1e-9;
            let portions = Portions::of(claims.clone());
            let each: Vec<Interval> = portions.each().collect();
            prop_assert_eq!(each.len(), claims.len());
            for portion in &each {
                prop_assert!(portion.low >= 0.0 && portion.high <= 1.0 + ROUNDING);
                prop_assert!(portion.low <= portion.mid && portion.mid <= portion.high);
            }
            let sum_of = |of: fn(&Interval) -> f64| sum(each.iter().map(of));
            prop_assert!(sum_of(|portion| portion.mid) <= 1.0 + ROUNDING);
            let least = sum_of(|portion| portion.low);
            for portion in &each {
                prop_assert!(portion.high + least - portion.low <= 1.0 + ROUNDING);
            }
            let [platform, database] = Scope::ALL.map(|scope| {
                portions.of_scope(scope).unwrap_or(Interval::exact(0.0))
            });
            prop_assert!(platform.low <= platform.mid && platform.mid <= platform.high);
            prop_assert!(database.low <= database.mid && database.mid <= database.high);
            // The totals hold it to the last bit.
            prop_assert!(platform.mid + database.mid <= 1.0);
            prop_assert!(platform.high <= 1.0 + ROUNDING && database.high <= 1.0 + ROUNDING);
            prop_assert!(platform.high + database.low <= 1.0 + ROUNDING);
            prop_assert!(platform.low + database.high <= 1.0 + ROUNDING);
        }
    }
}
