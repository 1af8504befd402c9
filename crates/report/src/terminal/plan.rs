//! The screens of `untax plan`, `apply` and `undo`.

use super::Style;
use super::screen::{Ink, Screen, span};
use crate::format;
use untax_core::Reading;
use untax_core::advice::Advice;
use untax_core::plan::{Effect, Plan, Sizing, Step, Target};

/// Where labels end.
const COLUMN: usize = 14;

/// A plan, as a person reads it before it is applied.
pub fn plan(plan: &Plan, style: Style) -> String {
    let mut screen = Screen::new(style);
    screen.line(&[span(Ink::Bold, headline(plan))]);
    for step in &plan.steps {
        screen.blank();
        draw(&mut screen, step);
    }
    if !plan.tasks.is_empty() {
        screen.blank();
        screen.line(&[span(Ink::Bold, "For you to do")]);
        for task in &plan.tasks {
            let file = task.file.as_ref().map(|(name, _)| format!(" [{name}]")).unwrap_or_default();
            screen.labelled("", 2, Ink::Plain, &format!("{}{file}", task.summary), 4);
        }
    }
    for warning in &plan.warnings {
        screen.blank();
        let (label, ink) =
            if warning.refuses { ("refused", Ink::Red) } else { ("note", Ink::Yellow) };
        screen.labelled(label, COLUMN, ink, &warning.text, 4);
    }
    for advice in &plan.alternatives {
        alternatives(&mut screen, advice);
    }
    screen.blank();
    sizes(&mut screen, &plan.sizing);
    screen.finish()
}

/// What another runtime, network or volume would cost.
fn alternatives(screen: &mut Screen, advice: &Advice) {
    screen.blank();
    screen.line(&[span(Ink::Bold, format!("Another {}", advice.layer))]);
    for database in &advice.databases {
        for said in &database.says {
            screen.labelled("", 2, Ink::Plain, &format!("{}: {said}", database.id), 6);
        }
    }
}

fn headline(plan: &Plan) -> String {
    let count = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    match (plan.steps.len(), plan.tasks.len()) {
        (0, 0) => "Nothing to change.".to_owned(),
        (steps, tasks) => {
            format!("{}, {} for you to do.", count(steps, "step"), count(tasks, "task"))
        }
    }
}

fn draw(screen: &mut Screen, step: &Step) {
    let when = match step.effect {
        Effect::Now => "at once",
        Effect::Restart => "when the database is restarted",
        Effect::Reboot => "at the next boot",
    };
    screen.labelled(&step.id, COLUMN.max(step.id.len() + 2), Ink::Plain, &step.summary, 3);
    let side = |screen: &mut Screen, mark: &str, ink: Ink, value: Option<&str>| {
        let value = value.unwrap_or_default();
        for line in value.lines() {
            screen.line(&[span(ink, format!("  {mark} {line}"))]);
        }
    };
    screen.line(&[span(Ink::Dim, format!("  {}", place(&step.target)))]);
    side(screen, "-", Ink::Red, step.from.as_deref());
    side(screen, "+", Ink::Green, step.to.as_deref());
    let then = if step.refresh.is_empty() {
        String::new()
    } else {
        format!(", then {}", step.refresh.join(" "))
    };
    let whom = step.databases.join(", ");
    screen.line(&[span(Ink::Dim, format!("  {when}{then}; for {whom}"))]);
}

/// Where a step's value is.
fn place(target: &Target) -> String {
    match target {
        Target::Pool { directory } => format!("{directory}/nr_hugepages"),
        Target::Word { file } | Target::Value { file } | Target::File { file } => file.clone(),
        Target::DeviceLimit { file, device } => format!("{file}, of device {device}"),
        Target::Block { file } => format!("{file}, lines of its own at the end"),
        Target::Dirty { what } => format!("{what}_bytes, {what}_ratio"),
        Target::Service { unit } => format!("systemd unit {unit}"),
        Target::Grubby => "grubby: the arguments of every kernel".to_owned(),
        Target::Affinity { family, cpus } => {
            format!("threads of process {} that are narrowed to CPUs {cpus}", family.root)
        }
        Target::Class { family } => {
            format!("scheduling class of threads of process {}", family.root)
        }
    }
}

fn sizes(screen: &mut Screen, sizing: &Sizing) {
    let pages = |pages: &std::collections::BTreeMap<String, u64>| {
        let each = pages.iter().map(|(size, count)| format!("{count} x {size}"));
        each.collect::<Vec<_>>().join(" or ")
    };
    for database in &sizing.databases {
        let text = match &database.huge_pages {
            Reading::Present(found) => pages(found),
            gap => gap.why().unwrap_or_default(),
        };
        screen.labelled("Huge pages", COLUMN, Ink::Plain, &format!("{}: {text}", database.id), 2);
    }
    if sizing.node.huge_pages.values().any(|pages| *pages > 0) {
        let remaining = format::value_or_why(&sizing.node.remaining_bytes, ToString::to_string);
        let text = format!(
            "this host: {}; with {} the rest of the machine keeps {remaining}: {}",
            pages(&sizing.node.huge_pages),
            sizing.node.advice.page,
            sizing.node.advice.why
        );
        screen.labelled("", COLUMN, Ink::Plain, &text, 5);
    }
}
