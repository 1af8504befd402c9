//! All alternatives of a layer, with prices or the reasons why there are none.

use super::basis::Basis;
use super::kept::Kept;
use crate::platform::{Arm, ArmResult, CellState};
use untax_core::advice::{Choice, Price};

/// The alternatives, those with a price first, the cheapest of them first.
pub(super) fn all(kept: &Kept, basis: &Basis, over: Option<&str>) -> Vec<Choice> {
    let mut arms: Vec<&Arm> = Vec::new();
    for arm in kept.results.iter().flat_map(|bench| &bench.arms) {
        if arms.iter().all(|known| known.id != arm.id) {
            arms.push(arm);
        }
    }
    let others = arms.into_iter().filter(|arm| over != Some(arm.id.as_str()));
    let mut choices: Vec<Choice> = others.map(|arm| choice(kept, basis, over, arm)).collect();
    let factor = |choice: &Choice| choice.price.as_ref().map_or(f64::INFINITY, |p| p.factor.median);
    choices.sort_by(|a, b| factor(a).total_cmp(&factor(b)));
    choices
}

fn choice(kept: &Kept, basis: &Basis, over: Option<&str>, arm: &Arm) -> Choice {
    let price: Option<Price> = over.and_then(|over| basis.price(kept, &arm.id, over));
    let why = price.is_none().then(|| why(kept, basis, arm));
    Choice {
        id: arm.id.clone(),
        summary: arm.summary.clone(),
        isolation: arm.isolation.clone(),
        separates_kernel: arm.separates_kernel,
        price,
        why,
    }
}

/// Why an arm has no price.
fn why(kept: &Kept, basis: &Basis, arm: &Arm) -> String {
    if let Basis::Unknown(why) | Basis::Unneeded(why) = basis {
        return why.clone();
    }
    let results = kept.results.iter().filter_map(|bench| basis.key()?.cell(bench)?.arm(&arm.id));
    let state = |result: &ArmResult| match result.state {
        CellState::NotReached => None,
        state => Some(format!("{}: {}", state.id(), result.why.as_deref().unwrap_or("no pair"))),
    };
    let latest = results.into_iter().find_map(state);
    latest.or_else(|| arm.cannot.clone()).unwrap_or_else(|| "not measured in this cell".to_owned())
}
