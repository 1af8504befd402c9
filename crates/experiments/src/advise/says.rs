//! The advice in sentences.

use super::basis::Basis;
use super::layer::Layer;
use untax_core::advice::{Choice, DatabaseAdvice, Price};
use untax_core::bench::RatioVerdict;
use untax_core::verdict::LEAST_PAIRS;
use untax_report::format;

/// What to choose, a sentence each: never more than prices and needs allow.
pub(super) fn all(layer: Layer, advice: &DatabaseAdvice, basis: &Basis) -> Vec<String> {
    if let Basis::Unknown(why) = basis {
        return vec![format!("Not measured for this database: {why}.")];
    }
    if let Basis::Unneeded(why) = basis {
        return vec![why.clone()];
    }
    let Some(over) = advice.over.as_deref() else {
        return vec![format!("Not measured for this database: run {}.", layer.command())];
    };
    let priced: Vec<(&Choice, &Price)> =
        advice.choices.iter().filter_map(|choice| Some((choice, choice.price.as_ref()?))).collect();
    if priced.is_empty() {
        let of = basis.key().map(|key| key.workload.clone()).unwrap_or_default();
        let command = layer.command();
        return vec![format!("Not measured for this database: run {command} --workloads {of}.")];
    }
    let mut says = vec![cheaper(advice, over, &priced)];
    says.extend(level(layer, &priced));
    says.extend(dearest(advice, layer, &priced));
    says.extend(isolating(advice, layer, &priced));
    says
}

/// `8.12× (7.40–8.90)`; with the pairs where they are too few for a verdict.
fn times(price: &Price) -> String {
    let factor = price.factor;
    let times = format::ratio(factor.median, factor.low, factor.high);
    if is_decided(price) {
        return times;
    }
    format!("{times} from {} alone", format::count_of(price.pairs.into(), "pair"))
}

/// Whether there are pairs enough to tell a price from noise.
fn is_decided(price: &Price) -> bool {
    price.pairs >= LEAST_PAIRS
}

/// The cheapest of those that are surely cheaper than what it has.
fn cheaper(advice: &DatabaseAdvice, over: &str, priced: &[(&Choice, &Price)]) -> String {
    let is_now = advice.now.value().is_some_and(|now| now == over);
    let faster = priced.iter().find(|(_, price)| price.verdict == RatioVerdict::Faster);
    match faster {
        Some((choice, price)) => format!(
            "{} would give back {}: a request takes {} the time that it takes in {over}.",
            choice.id,
            format::percent(1.0 - price.factor.median),
            times(price)
        ),
        None if !priced.iter().any(|(_, price)| is_decided(price)) => {
            format!("Nothing can be said of {over} yet.")
        }
        None if is_now => {
            format!("Keep {over}: nothing measured here is faster by more than noise.")
        }
        None => format!("Nothing measured here is faster than {over} by more than noise."),
    }
}

/// Those that cost nothing beyond noise, and those of which that cannot be told yet.
fn level(layer: Layer, priced: &[(&Choice, &Price)]) -> Vec<String> {
    let named = |is_meant: &dyn Fn(&Price) -> bool| {
        let meant = priced.iter().filter(|(_, price)| is_meant(price));
        let names = meant.map(|(choice, price)| format!("{} {}", choice.id, times(price)));
        Some(names.collect::<Vec<_>>().join(", ")).filter(|names| !names.is_empty())
    };
    let is_level = |price: &Price| price.verdict == RatioVerdict::Inconclusive && is_decided(price);
    let level = named(&is_level).map(|names| format!("No price beyond noise: {names}."));
    let open = named(&|price| !is_decided(price)).map(|names| {
        format!(
            "Too few pairs to tell from noise: {names}; give {} more --budget.",
            layer.command()
        )
    });
    level.into_iter().chain(open).collect()
}

/// The dearest, which is what a wrong choice costs.
fn dearest(advice: &DatabaseAdvice, layer: Layer, priced: &[(&Choice, &Price)]) -> Option<String> {
    let slower = priced.iter().rev().find(|(_, price)| price.verdict == RatioVerdict::Slower);
    let (choice, price) = slower?;
    let is_said_below = layer == Layer::Runtime && choice.separates_kernel == Some(true);
    (!is_said_below).then(|| {
        format!(
            "{} would cost this {} {} the time of a request.",
            choice.id,
            advice.product,
            times(price)
        )
    })
}

/// Isolation beside speed: what it costs to separate the kernel.
fn isolating(
    advice: &DatabaseAdvice,
    layer: Layer,
    priced: &[(&Choice, &Price)],
) -> Option<String> {
    if layer != Layer::Runtime {
        return None;
    }
    let separate = |choice: &Choice| choice.separates_kernel == Some(true);
    let each: Vec<String> = priced
        .iter()
        .filter(|(choice, _)| separate(choice))
        .map(|(choice, price)| format!("{} {}", choice.id, times(price)))
        .collect();
    let sharing: Vec<&str> = priced
        .iter()
        .filter(|(choice, _)| choice.separates_kernel == Some(false))
        .map(|(choice, _)| choice.id.as_str())
        .collect();
    let sharing = match &sharing[..] {
        [] => String::new(),
        all => format!(" {} share the host's kernel.", all.join(", ")),
    };
    Some(match &each[..] {
        [] => format!("No runtime with a kernel of its own was measured with it.{sharing}"),
        [cheapest, others @ ..] => format!(
            "A kernel of its own would cost this {}: {cheapest}{}{} the time of a request.{sharing}",
            advice.product,
            if others.is_empty() { "" } else { ", " },
            others.join(", ")
        ),
    })
}
