//! What all forms of a result say in the same words.

use super::cell::Better;
use super::measured::Extra;
use super::schema::{ArmResult, CellResult, CellState, Line, PlatformBench, Ratio};
use untax_core::bench::RatioVerdict;
use untax_report::format;

/// The family's name: `runtime`.
pub(super) fn family(bench: &PlatformBench) -> &str {
    let name = bench.schema.strip_prefix("untax.bench.").unwrap_or(&bench.schema);
    name.split('/').next().unwrap_or(name)
}

/// What stands above all: the largest loss that is sure, and the largest gain.
pub(super) fn headline(bench: &PlatformBench) -> String {
    let ratios = bench
        .measured()
        .flat_map(|cell| cell.arms.iter().filter_map(move |arm| Some((cell, arm, arm.ratio?))));
    let ratios: Vec<_> = ratios.collect();
    let sure = |verdict| ratios.iter().filter(move |(.., ratio)| ratio.verdict == verdict);
    let by_factor = |a: &&(&CellResult, &ArmResult, Ratio), b: &&(_, _, Ratio)| {
        a.2.factor.total_cmp(&b.2.factor)
    };
    let say = |(cell, arm, ratio): &(&CellResult, &ArmResult, Ratio)| {
        let factor = format::ratio(ratio.factor, ratio.low, ratio.high);
        format!("{} of {} is {factor} that of {}", cell.workload, arm.arm, bench.baseline)
    };
    let slower = sure(RatioVerdict::Slower).min_by(by_factor).map(say);
    let faster = sure(RatioVerdict::Faster).max_by(by_factor).map(say);
    match (slower, faster, ratios.is_empty()) {
        (Some(slower), Some(faster), _) => format!("{slower}; {faster}"),
        (Some(one), None, _) | (None, Some(one), _) => one,
        (None, None, true) => "no arm was compared with another".to_owned(),
        (None, None, false) => format!("no arm differs from {} by more than noise", bench.baseline),
    }
}

/// The unit of a cell's values, and which of them are the good ones.
pub(super) fn unit(cell: &CellResult) -> String {
    let better = if cell.better == Better::Lower { ", less is better" } else { "" };
    format!("{}{better}", cell.unit)
}

/// A value, or the word for none.
pub(super) fn value(arm: &ArmResult) -> String {
    arm.value.map_or_else(|| arm.state.id().to_owned(), format::estimate)
}

/// A ratio, or the reason why there is none.
pub(super) fn ratio(arm: &ArmResult) -> String {
    arm.ratio.map_or_else(String::new, |r| format::ratio(r.factor, r.low, r.high))
}

/// A verdict in a word; a saturated arm has none.
pub(super) fn verdict(arm: &ArmResult) -> &'static str {
    match (arm.state, &arm.ratio) {
        (CellState::Saturated, _) => "saturated",
        (_, Some(ratio)) => ratio.verdict.id(),
        (_, None) => "",
    }
}

/// What else was measured, in one line.
pub(super) fn extras(arm: &ArmResult) -> String {
    let extra =
        |extra: &Extra| format!("{} {} {}", extra.id, format::number(extra.value), extra.unit);
    arm.extras.iter().map(extra).collect::<Vec<_>>().join(", ")
}

/// What system calls explain of an arm's ratio, in words; nothing where they explain less than noise does.
pub(super) fn explained(cell: &CellResult, arm: &ArmResult) -> Option<String> {
    let (explained, ratio) = (arm.explained?, arm.ratio?);
    (ratio.verdict == RatioVerdict::Slower).then(|| {
        format!(
            "{} of {}: {} system calls cost {} ns more each, of {} us an operation: {}x by these alone, {} measured",
            cell.workload,
            arm.arm,
            format::number(explained.calls),
            format::number(explained.more_ns_each),
            format::number(explained.operation_ns / 1e3),
            format::number(explained.factor),
            format::ratio(ratio.factor, ratio.low, ratio.high)
        )
    })
}

/// The noise of a cell, in words.
pub(super) fn noise(cell: &CellResult) -> String {
    match (&cell.noise, &cell.aa) {
        (Some(noise), Some(aa)) => format!(
            "noise floor {}, baseline over itself {}",
            format::percent(noise.floor),
            format::ratio(aa.median, aa.low, aa.high)
        ),
        _ => "no noise floor: no pair of the baseline".to_owned(),
    }
}

/// How it was measured, in short segments.
pub(super) fn conditions(bench: &PlatformBench) -> Vec<String> {
    let blocks = bench.cells.iter().map(|cell| cell.blocks);
    let measured = || blocks.clone().filter(|blocks| *blocks > 0);
    let (least, most) = (measured().min().unwrap_or(0), measured().max().unwrap_or(0));
    let mut conditions = vec![
        format!("{least}–{most} blocks a cell, arms in random order, restarted for each trial"),
        format!("seed {}", bench.seed),
        format!(
            "{} of {} s spent",
            format::number(bench.spent_s.round()),
            format::number(bench.budget_s)
        ),
    ];
    if bench.aa.cells > 0 {
        conditions.push(format!(
            "baseline differs from itself in {} of {} cells",
            bench.aa.differ, bench.aa.cells
        ));
    }
    if !bench.beside.is_empty() {
        conditions.push(format!("beside {}, as --beside allowed", bench.beside.join(", ")));
    }
    conditions
}

/// How a cost grows.
pub(super) fn line(line: &Line) -> String {
    let Line { workload, placement, series, counts, unit, at_none, per_thousand, .. } = line;
    let [least, most] = line.numbers;
    let number = format::number;
    format!(
        "{series}, {workload} @ {}: {} {unit}, and {} {unit} ({} to {}) for each 1000 {counts} \
         ({least} to {most}, {} blocks; values lie up to {} from this line)",
        placement.id(),
        number(at_none.median),
        number(per_thousand.median),
        number(per_thousand.low),
        number(per_thousand.high),
        line.blocks,
        format::percent(line.most_apart),
    )
}
