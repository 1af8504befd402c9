//! `thp`: transparent huge pages as the engines of the host want them, now and after a boot.

use crate::case::Case;
use crate::remedy::{Draft, Remedy};
use untax_core::Database;
use untax_core::plan::{Effect, Step, Target, Warning};

pub const REMEDY: Remedy = Remedy {
    id: "thp",
    summary: "the mode of transparent huge pages, now and after a boot",
    answers: &["thp"],
    plan,
};

const ENABLED: &str = "/sys/kernel/mm/transparent_hugepage/enabled";

/// Read at every boot by systemd-tmpfiles.
const DROP_IN: &str = "/etc/tmpfiles.d/untax-thp.conf";

/// The mode that an engine wants; sources: the rule `thp-mode`.
pub fn wanted(database: &Database) -> Option<&'static str> {
    let major = || database.version.value()?.split('.').next()?.parse::<u32>().ok();
    match database.engine.as_str() {
        "mongodb" => Some(if major()? >= 8 { "always" } else { "never" }),
        "oracle" => Some("never"),
        "postgres" | "mysql" | "redis" => Some("madvise"),
        _ => None,
    }
}

fn plan(case: &Case) -> Draft {
    let Some(thp) = case.snapshot.host.thp.value() else { return Draft::default() };
    let mut wishes: Vec<&str> = case.concerned().filter_map(wanted).collect();
    wishes.sort_unstable();
    wishes.dedup();
    // `never` also suits who is content with madvise.
    if wishes == ["madvise", "never"] {
        wishes = vec!["never"];
    }
    let [mode] = wishes[..] else { return conflict(&wishes) };
    let step = |id: &str, target, from, to: String, summary: String| Step {
        id: id.to_owned(),
        remedy: REMEDY.id.to_owned(),
        summary,
        databases: case.databases(),
        target,
        from,
        to: Some(to),
        refresh: Vec::new(),
        effect: if id == "thp" { Effect::Restart } else { Effect::Reboot },
    };
    let mut steps = Vec::new();
    if thp.enabled != mode {
        let summary = format!("transparent huge pages: {} -> {mode}", thp.enabled);
        let target = Target::Word { file: ENABLED.to_owned() };
        steps.push(step("thp", target, Some(thp.enabled.clone()), mode.to_owned(), summary));
    }
    let line = format!("# Made by untax.\nw {ENABLED} - - - - {mode}\n");
    let summary = format!("{DROP_IN}: {mode} after every boot");
    let target = Target::File { file: DROP_IN.to_owned() };
    steps.push(step("thp-boot", target, None, line, summary));
    Draft { steps, ..Draft::default() }
}

fn conflict(wishes: &[&str]) -> Draft {
    if wishes.is_empty() {
        return Draft::default();
    }
    let text = format!(
        "the databases of this host want transparent huge pages {}: nothing suits all of them; \
         move some to another host",
        wishes.join(" and ")
    );
    let warning = Warning { id: "thp-conflict".to_owned(), refuses: false, text };
    Draft { warnings: vec![warning], ..Draft::default() }
}
