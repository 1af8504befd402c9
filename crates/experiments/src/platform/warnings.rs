//! What a result must be read with, each with the next action.

use super::placement::Placement;
use super::schema::{AaCount, CellResult, CellState};
use untax_core::bench::{Warning, WarningKind};
use untax_core::verdict::LEAST_PAIRS;

/// Every kind of warning, for documents and scripts.
pub static KINDS: &[WarningKind] = &[
    kind(
        "unpinned",
        "Servers and clients ran wherever the scheduler put them: ratios below a factor of two mean nothing.",
        "Leave out `--pin none`.",
    ),
    kind(
        "cells-not-reached",
        "The time did not suffice for all cells.",
        "Choose a longer `--budget`, or name cells with `--workloads`.",
    ),
    kind("cells-failed", "Cells could not be measured.", "Read the reasons in the text."),
    kind("arms-failed", "Arms failed in some cells.", "Read the reasons in the text."),
    kind(
        "few-pairs",
        "Some combinations of arm and work have too few pairs for a verdict.",
        "Choose a longer `--budget`.",
    ),
    kind(
        "spoiled-trials",
        "A guard was exceeded beside trials, which were made once more and do not count.",
        "Stop what else runs here.",
    ),
    kind(
        "saturated-arms",
        "Something else was used up, so the values tell of that.",
        "Read what in the text.",
    ),
    kind(
        "baseline-differs",
        "The baseline differs from itself in more cells than chance explains: verdicts are too sure.",
        "Stop what else runs here, and try again.",
    ),
];

const fn kind(id: &'static str, meaning: &'static str, action: &'static str) -> WarningKind {
    WarningKind { id, meaning, action }
}

/// The warnings of these cells.
pub(crate) fn of(cells: &[CellResult], aa: AaCount) -> Vec<Warning> {
    let reached = || cells.iter().filter(|cell| cell.state != CellState::NotReached);
    let named = |is: &dyn Fn(&&CellResult) -> bool| -> Vec<String> {
        cells.iter().filter(is).map(CellResult::name).collect()
    };
    let mut warnings = Vec::new();
    let mut warn = |id: &str, what: Vec<String>, separator: &str| {
        if let Some(kind) = KINDS.iter().find(|kind| kind.id == id)
            && !what.is_empty()
        {
            let what = what.join(separator);
            let text = format!("{} {} ({what})", kind.meaning, kind.action);
            warnings.push(Warning { id: id.to_owned(), text });
        }
    };
    let is_unpinned = |cell: &&CellResult| {
        cell.placement == Placement::None && cell.state != CellState::NotReached
    };
    warn("unpinned", named(&is_unpinned), ", ");
    warn("cells-not-reached", named(&|cell| cell.state == CellState::NotReached), ", ");
    let failed = reached().filter(|cell| cell.state == CellState::Failed);
    warn(
        "cells-failed",
        failed.map(|cell| reason(&cell.name(), cell.why.as_deref())).collect(),
        "; ",
    );
    let arms = || {
        reached()
            .filter(|cell| cell.state != CellState::Failed)
            .flat_map(|cell| cell.arms.iter().map(move |arm| (cell, arm)))
    };
    let in_state = |state: CellState| {
        arms().filter(move |(_, arm)| arm.state == state).map(|(cell, arm)| {
            reason(&format!("{} in {}", arm.arm, cell.name()), arm.why.as_deref())
        })
    };
    warn("arms-failed", in_state(CellState::Failed).collect(), "; ");
    warn("saturated-arms", in_state(CellState::Saturated).collect(), "; ");
    let few = |cell: &&CellResult| {
        cell.state == CellState::Measured && !cell.explains && cell.blocks < LEAST_PAIRS
    };
    warn("few-pairs", named(&few), ", ");
    let spoiled = |cell: &CellResult| {
        cell.arms.iter().flat_map(|arm| &arm.trials).filter(|t| !t.spoiled.is_empty()).count()
    };
    let spoiled = reached().map(|cell| (spoiled(cell), cell)).filter(|(count, _)| *count > 0);
    let spoiled = spoiled.map(|(count, cell)| format!("{count} in {}", cell.name()));
    warn("spoiled-trials", spoiled.collect(), ", ");
    // By chance one in 20 does, by the definition of the interval; a second one within 20 is no rarity.
    if aa.differ > 1 && f64::from(aa.differ) > 0.15 * f64::from(aa.cells) {
        let count = format!("{} of {} cells", aa.differ, aa.cells);
        warn("baseline-differs", vec![count], "");
    }
    warnings
}

fn reason(what: &str, why: Option<&str>) -> String {
    why.map_or_else(|| what.to_owned(), |why| format!("{what}: {why}"))
}
