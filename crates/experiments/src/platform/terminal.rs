//! The screen of a platform bench.

use super::phrases;
use super::schema::{ArmResult, CellResult, CellState, PlatformBench};
use crate::text_table::{Table, column};
use untax_core::bench::RatioVerdict;
use untax_report::terminal::Style;
use untax_report::terminal::screen::{Ink, Screen, span};
use untax_report::{facts, format};

/// Where the text behind a label begins.
const COLUMN: usize = 14;

/// Columns from which there is room for what stands beside a value: CPU time and sleeps of CPUs for each
/// operation.
const WIDE: usize = 100;

/// The whole result.
pub(super) fn screen(bench: &PlatformBench, style: Style) -> String {
    let mut screen = Screen::new(style);
    screen.line(&[span(Ink::Bold, format!("{}.", phrases::headline(bench)))]);
    if !bench.complete {
        let note = "Interrupted: the trials done so far are shown.";
        screen.labelled("", 2, Ink::Yellow, note, 1);
    }
    screen.blank();
    arms(&mut screen, bench);
    let compared: Vec<&CellResult> =
        bench.cells.iter().filter(|c| is_shown(c) && !c.explains).collect();
    let explaining: Vec<&CellResult> =
        bench.cells.iter().filter(|c| is_shown(c) && c.explains).collect();
    let is_wide = style.width >= WIDE;
    if compared.is_empty() {
        screen.line(&[span(Ink::Yellow, "  No cell was measured.")]);
        screen.blank();
    }
    cells(&mut screen, bench, &compared, is_wide);
    cells(&mut screen, bench, &explaining, is_wide);
    for (i, line) in bench.lines.iter().enumerate() {
        let label = if i == 0 { "Growth" } else { "" };
        screen.labelled(label, COLUMN, Ink::Plain, &phrases::line(line), 2);
    }
    guards(&mut screen, bench);
    closing(&mut screen, bench);
    screen.finish()
}

/// What could be measured: arms and work, and why some cannot be measured here.
pub(super) fn list(bench: &PlatformBench, style: Style) -> String {
    let mut screen = Screen::new(style);
    screen.line(&[span(Ink::Bold, "Arms")]);
    arms(&mut screen, bench);
    screen.line(&[span(Ink::Bold, "Work")]);
    let widest = bench.cells.iter().map(|cell| cell.workload.len()).max().unwrap_or(0);
    for cell in &bench.cells {
        let (ink, text) = match &cell.why {
            Some(why) => (Ink::Dim, format!("cannot be measured here: {why}")),
            None => (Ink::Plain, format!("{} ({})", cell.summary, cell.placement.id())),
        };
        screen.labelled(&cell.workload, widest + 2, ink, &text, 2);
    }
    screen.finish()
}

fn is_shown(cell: &CellResult) -> bool {
    cell.state != CellState::NotReached
}

fn arms(screen: &mut Screen, bench: &PlatformBench) {
    let widest = bench.arms.iter().map(|arm| arm.id.len()).max().unwrap_or(0);
    for arm in &bench.arms {
        let emulated = if arm.is_emulated { " (emulated: not to be compared)" } else { "" };
        let line = arm.configuration_line();
        let gap = if line.is_empty() { "" } else { ": " };
        let runs = || (Ink::Plain, format!("{}{emulated}{gap}{line}", arm.summary));
        let cannot = |why: &String| (Ink::Dim, format!("cannot run here: {why}"));
        let (ink, text) = arm.cannot.as_ref().map_or_else(runs, cannot);
        screen.labelled(&arm.id, (COLUMN + 6).max(widest + 2), ink, &text, 2);
    }
    screen.blank();
}

fn cells(screen: &mut Screen, bench: &PlatformBench, cells: &[&CellResult], is_wide: bool) {
    if cells.is_empty() {
        return;
    }
    let rows: Vec<(usize, &CellResult, usize, &ArmResult)> = cells
        .iter()
        .enumerate()
        .flat_map(|(group, cell)| {
            cell.arms.iter().enumerate().map(move |(place, arm)| (group, *cell, place, arm))
        })
        .collect();
    let name = |(_, cell, place, _): &(usize, &CellResult, usize, &ArmResult)| match place {
        0 => cell.workload.clone(),
        1 => format!("  {}", phrases::unit(cell)),
        2 => format!("  {}", cell.placement.id()),
        _ => String::new(),
    };
    let over: &str = &format!("over {}", bench.baseline);
    let mut columns = vec![
        column("cell", false, rows.iter().map(name)),
        column("arm", false, rows.iter().map(|row| row.3.arm.clone())),
        column("value (95 %)", true, rows.iter().map(|row| phrases::value(row.3))),
        column(over, true, rows.iter().map(|row| phrases::ratio(row.3))),
        column("verdict", false, rows.iter().map(|row| phrases::verdict(row.3).to_owned())),
    ];
    if is_wide {
        let extra = |id| rows.iter().map(move |row| extra(row.3, id));
        columns.push(column("CPU us", true, extra("machine-cpu")));
        columns.push(column("sleeps", true, extra("cpu-sleeps")));
    }
    let groups: Vec<u64> = rows.iter().map(|row| row.0 as u64).collect();
    let inks: Vec<Ink> = rows.iter().map(|row| ink(row.3)).collect();
    Table { columns: &columns, groups: &groups, inks: &inks, widest: 28 }.draw(screen);
}

fn extra(arm: &ArmResult, id: &str) -> String {
    let found = arm.extras.iter().find(|extra| extra.id == id);
    found.map_or_else(String::new, |extra| format::number(extra.value))
}

fn ink(arm: &ArmResult) -> Ink {
    match (arm.state, arm.ratio.map(|ratio| ratio.verdict)) {
        (CellState::Measured, Some(RatioVerdict::Faster)) => Ink::Green,
        (CellState::Measured, Some(RatioVerdict::Slower)) => Ink::Red,
        (CellState::Measured, None) => Ink::Plain,
        (CellState::Saturated | CellState::Spoiled | CellState::Failed, _) => Ink::Yellow,
        _ => Ink::Dim,
    }
}

fn guards(screen: &mut Screen, bench: &PlatformBench) {
    for guard in &bench.guards {
        let (ink, word) = if guard.failed { (Ink::Red, "failed") } else { (Ink::Green, "passed") };
        let cell = guard.cell.as_deref().unwrap_or("no cell");
        let text = format!("{word} in {cell}: {} ({})", guard.asked, guard.said);
        screen.labelled("Guard", COLUMN, ink, &text, 2);
    }
}

fn closing(screen: &mut Screen, bench: &PlatformBench) {
    for (i, warning) in bench.warnings.iter().enumerate() {
        let label = if i == 0 { "Warnings" } else { "" };
        screen.labelled(label, COLUMN, Ink::Yellow, &warning.text, 4);
    }
    for (i, cell) in bench.measured().enumerate() {
        let label = if i == 0 { "Noise" } else { "" };
        screen.labelled(
            label,
            COLUMN,
            Ink::Dim,
            &format!("{}: {}", cell.name(), phrases::noise(cell)),
            2,
        );
    }
    let explained = bench
        .measured()
        .flat_map(|cell| cell.arms.iter().filter_map(|arm| phrases::explained(cell, arm)));
    for (i, text) in explained.enumerate() {
        let label = if i == 0 { "Explained" } else { "" };
        screen.labelled(label, COLUMN, Ink::Plain, &text, 3);
    }
    screen.segments("Trials", COLUMN, Ink::Plain, &phrases::conditions(bench));
    screen.labelled("Idle CPUs", COLUMN, Ink::Plain, &bench.idle, 2);
    let host = [
        facts::short_model(&bench.cpu_model),
        format!("kernel{}{}", format::THIN, bench.kernel_release),
        format!("run {}", bench.run),
    ];
    screen.segments("Host", COLUMN, Ink::Dim, &host);
}

#[cfg(test)]
mod tests {
    use crate::platform::fake;
    use untax_report::terminal::Style;

    #[test]
    fn the_screen_names_arms_cells_and_what_cannot_run() {
        let screen = super::screen(&fake::result(), Style { colour: false, width: 100 });
        for expected in ["slow", "cannot run here: no such program", "slower", "noise floor"] {
            assert!(screen.contains(expected), "{expected}: {screen}");
        }
    }
}
