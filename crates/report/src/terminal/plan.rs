//! The screens of `untax plan`, `apply` and `undo`.

use super::Style;
use super::screen::{Ink, Screen, span};
use crate::format;
use std::collections::BTreeSet;
use untax_core::advice::Advice;
use untax_core::plan::{Effect, Plan, Sizing, Step, Target};
use untax_core::{Bytes, Reading};

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
        for (number, task) in (1..).zip(&plan.tasks) {
            let file = task.file.as_ref().map(|(name, _)| format!(" [{name}]")).unwrap_or_default();
            screen.labelled(
                &format!("  {number}"),
                5,
                Ink::Plain,
                &format!("{}{file}", task.summary),
                usize::MAX,
            );
        }
    }
    for warning in &plan.warnings {
        screen.blank();
        let (label, ink) =
            if warning.refuses { ("refused", Ink::Red) } else { ("note", Ink::Yellow) };
        screen.labelled(label, COLUMN, ink, &warning.text, usize::MAX);
    }
    for advice in &plan.alternatives {
        alternatives(&mut screen, advice);
    }
    review(&mut screen, plan);
    screen.blank();
    sizes(&mut screen, &plan.sizing);
    screen.finish()
}

/// What somebody asks who has to agree to the change.
fn review(screen: &mut Screen, plan: &Plan) {
    if plan.steps.is_empty() && plan.tasks.is_empty() {
        return;
    }
    screen.blank();
    screen.line(&[span(Ink::Bold, "For a change review")]);
    let mut say =
        |label: &str, text: &str| screen.labelled(label, COLUMN, Ink::Plain, text, usize::MAX);
    for one in &plan.expected {
        let gain = format::gain(&one.gain);
        say("  Gain", &format!("{}, {} alone: {gain}", one.database, one.rule));
    }
    if plan.expected.is_empty() {
        say("  Gain", format::NOT_MEASURED);
    }
    let taken = pool_bytes(&plan.steps);
    if taken != 0 {
        let what = if taken > 0 { "taken for" } else { "given back by" };
        let size = format::bytes(Bytes(taken.unsigned_abs()));
        say("  Memory", &format!("{size} {what} huge-page pools"));
    }
    let of = |effect: Effect| plan.steps.iter().filter(move |step| step.effect == effect);
    let restarted: BTreeSet<&str> =
        of(Effect::Restart).flat_map(|step| step.databases.iter().map(String::as_str)).collect();
    let restarted = restarted.into_iter().collect::<Vec<_>>().join(", ");
    let reboot = if of(Effect::Reboot).next().is_some() { "; a reboot of the host" } else { "" };
    let none = if restarted.is_empty() { "no database" } else { &*restarted };
    say("  Restarts", &format!("{none}{reboot}; apply itself restarts nothing"));
    let is_of_host = |step: &Step| {
        matches!(
            &step.target,
            Target::Pool { .. }
                | Target::Word { .. }
                | Target::Dirty { .. }
                | Target::Grubby
                | Target::Block { .. }
                | Target::File { .. }
        ) || matches!(&step.target, Target::Value { file } if file.starts_with("/proc/sys/"))
    };
    let shared: Vec<&str> =
        plan.steps.iter().filter(|step| is_of_host(step)).map(|step| &*step.id).collect();
    let affected = match &*shared.join(", ") {
        "" => "nothing but the databases named".to_owned(),
        steps => format!("every program of this host, by the steps {steps}"),
    };
    if !plan.steps.is_empty() {
        say("  Affects", &affected);
        say(
            "  Undo",
            "untax undo, with the receipt that apply prints: each value as it was before",
        );
    }
}

/// What the steps add to huge-page pools, bytes; negative where they take away more.
fn pool_bytes(steps: &[Step]) -> i64 {
    let of = |step: &Step| {
        let Target::Pool { directory } = &step.target else { return None };
        let size = directory.rsplit("hugepages-").next()?.strip_suffix("kB")?;
        let pages = |value: &Option<String>| value.as_deref().unwrap_or("0").parse::<i64>().ok();
        let added = pages(&step.to)?.checked_sub(pages(&step.from)?)?;
        size.parse::<i64>().ok()?.checked_mul(1024)?.checked_mul(added)
    };
    steps.iter().filter_map(of).fold(0, i64::saturating_add)
}

/// What another runtime, network or volume would cost.
fn alternatives(screen: &mut Screen, advice: &Advice) {
    screen.blank();
    screen.line(&[span(Ink::Bold, format!("Another {}", advice.layer))]);
    for database in &advice.databases {
        for said in &database.says {
            screen.labelled("", 2, Ink::Plain, &format!("{}: {said}", database.id), usize::MAX);
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
    screen.labelled(&step.id, COLUMN.max(step.id.len() + 2), Ink::Plain, &step.summary, usize::MAX);
    let side = |screen: &mut Screen, mark: &str, ink: Ink, value: Option<&str>| {
        let value = value.unwrap_or_default();
        for line in value.lines() {
            screen.labelled(&format!("  {mark}"), 4, ink, line, usize::MAX);
        }
    };
    screen.labelled("", 2, Ink::Dim, &place(&step.target), usize::MAX);
    side(screen, "-", Ink::Red, step.from.as_deref());
    side(screen, "+", Ink::Green, step.to.as_deref());
    let then = if step.refresh.is_empty() {
        String::new()
    } else {
        format!(", then {}", step.refresh.join(" "))
    };
    let whom = step.databases.join(", ");
    screen.labelled("", 2, Ink::Dim, &format!("{when}{then}; for {whom}"), usize::MAX);
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
        screen.labelled(
            "Huge pages",
            COLUMN,
            Ink::Plain,
            &format!("{}: {text}", database.id),
            usize::MAX,
        );
    }
    if sizing.node.huge_pages.values().any(|pages| *pages > 0) {
        let remaining = format::value_or_why(&sizing.node.remaining_bytes, ToString::to_string);
        let text = format!(
            "this host: {}; with {} the rest of the machine keeps {remaining}: {}",
            pages(&sizing.node.huge_pages),
            sizing.node.advice.page,
            sizing.node.advice.why
        );
        screen.labelled("", COLUMN, Ink::Plain, &text, usize::MAX);
    }
}
