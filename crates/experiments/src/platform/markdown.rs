//! The result as Markdown, for a pull request.

use super::phrases;
use super::schema::{CellResult, CellState, PlatformBench};
use untax_report::format::clean;

/// The whole result.
pub(super) fn text(bench: &PlatformBench) -> String {
    let mut text = format!(
        "### untax bench {}\n\n{}.\n\n",
        phrases::family(bench),
        cell_of(&phrases::headline(bench))
    );
    for guard in &bench.guards {
        let mark = if guard.failed { "failed" } else { "passed" };
        let cell = guard.cell.as_deref().unwrap_or("no cell");
        text += &format!("- `{}` {mark} in {cell}: {}\n", guard.asked, cell_of(&guard.said));
    }
    if !bench.guards.is_empty() {
        text.push('\n');
    }
    text +=
        &format!("| cell | arm | value (95 %) | over {} | verdict | beside it |\n", bench.baseline);
    text += "| --- | --- | ---: | ---: | --- | --- |\n";
    for cell in bench.cells.iter().filter(|cell| cell.state != CellState::NotReached) {
        text += &rows(cell);
    }
    text.push('\n');
    for line in &bench.lines {
        text += &format!("- {}\n", cell_of(&phrases::line(line)));
    }
    for arm in bench.arms.iter().filter(|arm| arm.cannot.is_some()) {
        let why = arm.cannot.as_deref().unwrap_or_default();
        text += &format!("- {} cannot run here: {}\n", arm.id, cell_of(why));
    }
    let explained = bench
        .measured()
        .flat_map(|cell| cell.arms.iter().filter_map(|arm| phrases::explained(cell, arm)));
    text.extend(explained.map(|line| format!("- {}\n", cell_of(&line))));
    for warning in &bench.warnings {
        text += &format!("- {}\n", cell_of(&warning.text));
    }
    text += &format!(
        "\n{} · kernel {} · {} · idle CPUs: {} · run `{}`\n",
        cell_of(&bench.cpu_model),
        cell_of(&bench.kernel_release),
        phrases::conditions(bench).join(" · "),
        cell_of(&bench.idle),
        bench.run
    );
    text
}

fn rows(cell: &CellResult) -> String {
    let row = |(place, arm): (usize, &super::ArmResult)| {
        let name = match place {
            0 => format!("{}, {}", cell.name(), phrases::unit(cell)),
            _ => String::new(),
        };
        let fields = [
            name,
            arm.arm.clone(),
            phrases::value(arm),
            phrases::ratio(arm),
            phrases::verdict(arm).to_owned(),
            arm.why.clone().unwrap_or_else(|| phrases::extras(arm)),
        ];
        format!("| {} |\n", fields.map(|field| cell_of(&field)).join(" | "))
    };
    cell.arms.iter().enumerate().map(row).collect()
}

/// Text that stays in its cell.
fn cell_of(text: &str) -> String {
    clean(text).replace('|', "\\|").replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use crate::platform::fake;

    #[test]
    fn every_arm_of_a_measured_cell_has_a_row_and_what_cannot_run_is_named() {
        let text = super::text(&fake::result());
        for expected in [
            "| work @ one-cpu, operations/s | base |",
            "| slow |",
            "slower",
            "- absent cannot run here: no such program",
            "failed in work @ one-cpu",
        ] {
            assert!(text.contains(expected), "{expected}: {text}");
        }
    }
}
