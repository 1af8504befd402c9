//! The ledger of a change: what a request's time was spent on before and after.
//!
//! Threads that serve requests are busy with one, or wait for the next, at any moment. So of N of them in T seconds
//! each of n requests took R = N·T/n seconds, and throughput is X = N/R. R is the sum of its parts, and
//! nothing else is recorded of it: a part cannot be missing from the sum.
//!
//! The change of X is shared out by logarithmic means, which leave no rest: with L(a, b) = (b − a)/ln(b/a),
//! X₂ − X₁ = L(X₁, X₂)·ln(N₂/N₁) − L(X₁, X₂)/L(R₁, R₂)·Σ(r₂ − r₁). Source: B. W. Ang, Decomposition analysis for
//! policymaking in energy, Energy Policy 32 (2004), the additive form of LMDI-I.

use super::parts::PARTS;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What threads that serve requests did over some windows.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Account {
    seconds: f64,
    requests: f64,
    parts: BTreeMap<String, f64>,
}

impl Account {
    /// Adds a window of that many seconds: the requests, and the threads' seconds by part.
    pub fn add(
        &mut self,
        seconds: f64,
        requests: f64,
        parts: impl IntoIterator<Item = (String, f64)>,
    ) {
        self.seconds += seconds;
        self.requests += requests;
        for (part, time_s) in parts {
            *self.parts.entry(part).or_insert(0.0) += time_s.max(0.0);
        }
    }

    /// Requests a second.
    pub fn per_s(&self) -> f64 {
        self.requests / self.seconds
    }

    /// How many requests there were.
    pub fn requests(&self) -> f64 {
        self.requests
    }

    /// Seconds of a part in one request.
    fn part_s(&self, part: &str) -> f64 {
        self.parts.get(part).copied().unwrap_or(0.0) / self.requests
    }

    fn all_s(&self) -> f64 {
        self.parts.values().sum::<f64>() / self.requests
    }

    fn at_once(&self) -> f64 {
        self.parts.values().sum::<f64>() / self.seconds
    }

    /// Whether anything was done, and by threads of which something is known.
    fn is_told(&self) -> bool {
        let known: f64 = self.parts.values().sum();
        [self.seconds, self.requests, known].iter().all(|value| *value > 0.0 && value.is_finite())
    }
}

/// The seconds of a request before and after a change. Its parts add up to the change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Comparison {
    /// What throughput changed by, requests a second: the sum of what follows.
    pub gained_per_s: f64,
    /// Threads that serve requests.
    pub at_once: AtOnce,
    /// The parts of a request's time, in the order of output.
    pub parts: Vec<PartChange>,
}

/// How many threads served requests, or waited for one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct AtOnce {
    /// Before.
    pub before: f64,
    /// After.
    pub after: f64,
    /// What more or fewer of them brought, requests a second.
    pub gained_per_s: f64,
}

/// A part of a request's time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PartChange {
    /// The part's id.
    pub part: String,
    /// Seconds of a request before.
    pub before_s: f64,
    /// And after.
    pub after_s: f64,
    /// What its change brought, requests a second.
    pub gained_per_s: f64,
}

impl Comparison {
    /// Compares two stretches; the error says why that cannot be done.
    pub fn of(before: &Account, after: &Account) -> Result<Self, String> {
        for (account, which) in [(before, "before"), (after, "after")] {
            if !account.is_told() {
                return Err(format!("no request and its time was seen {which} the change"));
            }
        }
        let throughput = logarithmic_mean(before.per_s(), after.per_s());
        let of_a_second = throughput / logarithmic_mean(before.all_s(), after.all_s());
        let at_once = AtOnce {
            before: before.at_once(),
            after: after.at_once(),
            gained_per_s: throughput * (after.at_once() / before.at_once()).ln(),
        };
        let mut ids: Vec<&String> = before.parts.keys().chain(after.parts.keys()).collect();
        let order = |id: &str| PARTS.iter().position(|(listed, _)| *listed == id);
        ids.sort_by_key(|id| (order(id).unwrap_or(PARTS.len()), (*id).clone()));
        ids.dedup();
        let part = |id: &String| {
            let (before_s, after_s) = (before.part_s(id), after.part_s(id));
            let gained_per_s = -of_a_second * (after_s - before_s);
            PartChange { part: id.clone(), before_s, after_s, gained_per_s }
        };
        let parts: Vec<PartChange> = ids.into_iter().map(part).collect();
        let of_parts: f64 = parts.iter().map(|part| part.gained_per_s).sum();
        Ok(Self { gained_per_s: at_once.gained_per_s + of_parts, at_once, parts })
    }

    /// What some parts brought together, requests a second.
    pub fn gained_by(&self, parts: &[&str]) -> f64 {
        let of = self.parts.iter().filter(|part| parts.contains(&part.part.as_str()));
        of.map(|part| part.gained_per_s).sum()
    }
}

/// (b − a)/ln(b/a), and a where both are the same.
fn logarithmic_mean(a: f64, b: f64) -> f64 {
    let logarithm = (b / a).ln();
    // Below this the series of the logarithm is exact to the last digit, and the division is not.
    if logarithm.abs() < 1e-6 { f64::midpoint(a, b) } else { (b - a) / logarithm }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn account(seconds: f64, requests: f64, parts: &[(&str, f64)]) -> Account {
        let mut account = Account::default();
        account.add(seconds, requests, parts.iter().map(|(id, s)| ((*id).to_owned(), *s)));
        account
    }

    #[test]
    fn what_ended_gains_what_it_took() {
        // Eight clients: of 4 ms each 3 ms were throttled.
        let before = account(10.0, 20_000.0, &[("cpu", 20.0), ("throttled", 60.0)]);
        let after = account(10.0, 80_000.0, &[("cpu", 80.0)]);
        let compared = Comparison::of(&before, &after).unwrap();
        assert!((compared.gained_per_s - 6_000.0).abs() < 1e-6);
        assert!((compared.gained_by(&["throttled"]) - 6_000.0).abs() < 1e-6);
        assert!(compared.at_once.gained_per_s.abs() < 1e-9);
        assert!((compared.at_once.before - 8.0).abs() < 1e-9);
        let order: Vec<&str> = compared.parts.iter().map(|part| part.part.as_str()).collect();
        assert_eq!(order, ["cpu", "throttled"]);
    }

    #[test]
    fn twice_as_many_clients_gain_all_of_it() {
        let before = account(10.0, 1_000.0, &[("cpu", 10.0), ("client", 30.0)]);
        let after = account(10.0, 2_000.0, &[("cpu", 20.0), ("client", 60.0)]);
        let compared = Comparison::of(&before, &after).unwrap();
        assert!((compared.at_once.gained_per_s - 100.0).abs() < 1e-9);
        assert!(compared.parts.iter().all(|part| part.gained_per_s.abs() < 1e-9));
    }

    #[test]
    fn without_a_request_there_is_nothing_to_compare() {
        let busy = account(10.0, 100.0, &[("cpu", 10.0)]);
        for empty in [account(10.0, 0.0, &[("cpu", 1.0)]), account(10.0, 5.0, &[])] {
            assert!(Comparison::of(&busy, &empty).unwrap_err().contains("after the change"));
            Comparison::of(&empty, &busy).unwrap_err();
        }
    }

    fn any_account() -> impl Strategy<Value = Account> {
        let ids = ["cpu", "disk", "throttled", "client", "new-kind"];
        let parts = prop::collection::vec(prop_oneof![Just(0.0), 1e-6..1e4_f64], ids.len());
        (1.0..1e4_f64, 1.0..1e9_f64, parts).prop_map(move |(seconds, requests, parts)| {
            let mut account = Account::default();
            account.add(seconds, requests, ids.iter().map(|id| (*id).to_owned()).zip(parts));
            account
        })
    }

    proptest! {
        #[test]
        fn parts_add_up_to_the_change(before in any_account(), after in any_account()) {
            let Ok(compared) = Comparison::of(&before, &after) else { return Ok(()) };
            let change = after.per_s() - before.per_s();
            let scale = 1e-9 * (before.per_s() + after.per_s());
            // The means cancel; what is left are last digits of the largest term.
            let terms = compared.parts.iter().map(|part| part.gained_per_s.abs());
            let largest = terms.fold(compared.at_once.gained_per_s.abs(), f64::max);
            prop_assert!((compared.gained_per_s - change).abs() <= scale + 1e-8 * largest);
            let sum_s: f64 = compared.parts.iter().map(|part| part.after_s - part.before_s).sum();
            let all_s = after.all_s() - before.all_s();
            prop_assert!((sum_s - all_s).abs() <= 1e-9 * (before.all_s() + after.all_s()));
        }
    }
}
