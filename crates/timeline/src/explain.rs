//! The causes of a change: pure.

use crate::causes::{AT_ONCE, CAUSES, Parts, Sign};
use crate::scene::Scene;
use std::collections::BTreeSet;
use untax_core::timeline::{Cause, Comparison, FactChange};

/// The causes of a change.
pub(crate) struct Explained {
    pub causes: Vec<Cause>,
    pub unexplained_per_s: Option<f64>,
    pub offset_per_s: Option<f64>,
    pub also: Vec<FactChange>,
}

/// A cause has this share of a change at least, or it is one of the facts beside.
const LEAST_SHARE: f64 = 0.1;

/// The causes for which there is evidence. Each part of a request's time is charged to one of them.
pub(crate) fn explain(scene: &Scene, gained_per_s: f64) -> Explained {
    let compared = scene.seconds.value();
    // Every part that there is, so that whatever no cause takes is left.
    let known = compared.into_iter().flat_map(|compared| &compared.parts);
    let mut free: BTreeSet<&str> = known.map(|part| part.part.as_str()).collect();
    free.insert(AT_ONCE);
    let gained = |compared: &Comparison, parts: &[&str]| {
        let at_once = if parts.contains(&AT_ONCE) { compared.at_once.gained_per_s } else { 0.0 };
        compared.gained_by(parts) + at_once
    };
    let (mut causes, mut also) = (Vec::new(), scene.facts.clone());
    for listed in CAUSES {
        let Some(Sign { text, facts, shortens }) = (listed.look)(scene) else { continue };
        let acts_on = |part: &&str| match listed.parts {
            Parts::All => true,
            Parts::These(these) => these.contains(part),
        };
        // What makes requests slower explains none that got faster.
        let agrees = |part: &&str| match (shortens, compared) {
            (Some(shortens), Some(compared)) => (gained(compared, &[part]) > 0.0) == shortens,
            _ => true,
        };
        let parts: Vec<&str> = free.iter().copied().filter(acts_on).filter(agrees).collect();
        let brought = compared.map(|compared| gained(compared, &parts));
        let matters = match brought {
            Some(brought) => brought * gained_per_s.signum() >= LEAST_SHARE * gained_per_s.abs(),
            // Without time by part, a fact that changed is all that is known.
            None => !facts.is_empty() && facts.iter().all(|fact| fact.at.is_some()),
        };
        if !matters {
            continue;
        }
        free.retain(|part| !parts.contains(part));
        also.retain(|fact| !facts.contains(fact));
        let parts = parts.iter().map(|part| (*part).to_owned()).collect();
        let id = listed.id.to_owned();
        causes.push(Cause { id, text, gained_per_s: brought, parts, facts });
    }
    causes.sort_by(|a, b| {
        let size = |cause: &Cause| cause.gained_per_s.unwrap_or(0.0).abs();
        size(b).total_cmp(&size(a))
    });
    let rest = |way: f64| {
        compared.map(|compared| {
            let of = |part: &&str| {
                let one = gained(compared, &[part]);
                if one * way > 0.0 { one } else { 0.0 }
            };
            free.iter().map(of).sum::<f64>()
        })
    };
    let way = gained_per_s.signum();
    Explained { causes, unexplained_per_s: rest(way), offset_per_s: rest(-way), also }
}
