//! What another runtime, network path or volume would cost a database: from what the platform benches
//! measured on its host, and what a check says that the database needs.
//!
//! Pure. A price is over the alternative that the database has now, where that was measured, else over the
//! baseline of the bench. It comes from the nearest measured cell of the same engine; where there is none,
//! from a count of the database's own times the measured cost of each; and where that is unknown too, there
//! is none, with the command that measures it.

mod basis;
mod choices;
mod kept;
mod layer;
mod nearest;
mod needs;
mod network;
mod paired;
mod runtime;
mod says;
mod storage;
#[cfg(test)]
mod test_results;

pub use kept::Kept;
pub use layer::Layer;

use basis::Basis;
use untax_core::advice::{Advice, DatabaseAdvice, SCHEMA};
use untax_core::window::Pair;
use untax_core::{Check, Reading, Window};

/// The alternatives of one layer for all databases of a check.
pub fn advise(layer: Layer, check: &Check, window: &Window, kept: &Kept) -> Advice {
    let databases = window.databases().map(|pair| one(layer, check, window, kept, &pair));
    Advice {
        schema: SCHEMA.to_owned(),
        layer: layer.id().to_owned(),
        check: check.run.clone(),
        benches: kept.results.iter().map(|bench| bench.run.clone()).collect(),
        not_measured: kept.why_none(layer),
        databases: databases.collect(),
    }
}

fn one(layer: Layer, check: &Check, window: &Window, kept: &Kept, pair: &Pair) -> DatabaseAdvice {
    let checked = check.databases.iter().find(|checked| checked.id == pair.end.id);
    let needs = needs::of(pair, checked);
    let now = match layer {
        Layer::Runtime => runtime::now(window, pair.end),
        Layer::Network => network::now(window, pair, kept),
        Layer::Storage => storage::now(pair.end, kept),
    };
    let basis = match layer {
        Layer::Runtime => runtime::basis(kept, pair, &needs),
        Layer::Network => network::basis(kept, pair, checked, &needs),
        Layer::Storage => storage::basis(kept, window, pair, &needs, &now),
    };
    let basis = kept.why_none(layer).map_or(basis, Basis::Unknown);
    let over = over(kept, &basis, &now);
    let choices = choices::all(kept, &basis, over.as_deref());
    let mut advice = DatabaseAdvice {
        id: pair.end.id.clone(),
        engine: pair.end.engine.clone(),
        product: pair.end.product.clone(),
        needs,
        now,
        over,
        choices,
        says: Vec::new(),
    };
    advice.says = says::all(layer, &advice, &basis);
    advice
}

/// What prices are over: the alternative that the database has now, where the basis was measured with it.
fn over(kept: &Kept, basis: &Basis, now: &Reading<String>) -> Option<String> {
    let has = |arm: &&String| basis.is_measured_with(kept, arm);
    let now = now.value().filter(has).cloned();
    now.or_else(|| kept.baseline().map(str::to_owned))
}

#[cfg(test)]
#[path = "advise/tests.rs"]
mod tests;
