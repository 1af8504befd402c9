//! A result in words, for the screen and the page alike.

use super::schema::{GuardResult, Levels, LocalityBench, Scene, Seen, Step};
use jiff::Timestamp;
use untax_core::timeline::Kind;
use untax_report::format;

/// The answer.
pub(super) fn headline(bench: &LocalityBench) -> String {
    let steps = bench.steps.len();
    let others = match bench.others.len() {
        0 => "no other change was found".to_owned(),
        1 => "1 other change was found, which nobody made".to_owned(),
        more => format!("{more} other changes were found, which nobody made"),
    };
    let (found, named) = (bench.found(), bench.named());
    format!("untax timeline found {found} of {steps} steps and named {named} rightly; {others}")
}

/// A time of day, UTC.
pub(super) fn clock(at: Timestamp) -> String {
    at.strftime("%H:%M:%S").to_string()
}

/// `250 → 512`.
pub(super) fn levels(levels: &Levels) -> String {
    let [before, after] = [levels.before_per_s, levels.after_per_s].map(format::number);
    format!("{before} → {after}")
}

/// What the timeline says of a step.
pub(super) fn verdict(step: &Step) -> String {
    let Some(seen) = &step.seen else {
        return "nothing within two windows".to_owned();
    };
    let right = if step.named { "" } else { ", which is wrong" };
    format!("{}{right}", change(seen))
}

/// A change, and its causes.
pub(super) fn change(seen: &Seen) -> String {
    let kind = match seen.kind {
        Kind::Step => "a step",
        Kind::Ramp => "a ramp",
        Kind::Gap => "a gap",
    };
    let off = seen.windows_off.map_or(String::new(), |off| match off {
        0.0 => ", at once".to_owned(),
        off => format!(", {off:.1} windows off"),
    });
    let share = seen
        .expected_share
        .map_or(String::new(), |share| format!(" ({} of the change)", format::percent(share)));
    let causes = match &seen.causes[..] {
        [] => "unexplained".to_owned(),
        causes => causes.join(", "),
    };
    format!("{kind}{off}: {causes}{share}")
}

/// What was set up.
pub(super) fn scene(scene: &Scene) -> Vec<String> {
    vec![
        format!("{} clients", scene.clients),
        format!("{} tables of {} together", scene.tables, scene.data_bytes),
        format!("memory limit {}", scene.memory_limit_bytes),
        format!("without limits {} requests/s", format::number(scene.unlimited_per_s)),
        format!("{} reads of a request", format::number(scene.reads_of_request)),
        format!("slow disk: {} reads/s", scene.slow_reads_per_s),
    ]
}

/// How long it was watched.
pub(super) fn schedule(bench: &LocalityBench) -> String {
    let [window, level] = [bench.window_s, bench.level_s].map(format::number);
    format!("windows of {window} s, {level} s before each step and after the last one")
}

/// What became of a guard.
pub(super) fn guard(guard: &GuardResult) -> String {
    let word = if guard.failed { "failed" } else { "passed" };
    format!("{}: {word}, counted {}", guard.asked, guard.value)
}
