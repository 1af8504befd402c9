//! `database-config`: what the database itself must be told, written beside the plan, or, when
//! asked for, added to its configuration file.

use super::hugepage_boot::names_its_size;
use crate::case::Case;
use crate::remedy::{Draft, Remedy, file_name, told};
use crate::sizing::size_of;
use untax_core::plan::{Effect, Step, Target, Task};
use untax_core::{Bytes, Database};

pub const REMEDY: Remedy = Remedy {
    id: "database-config",
    summary: "the settings of the database that a change of the platform needs",
    answers: &["hugepage-pool", "thp"],
    plan,
};

fn plan(case: &Case) -> Draft {
    let mut draft = Draft::default();
    for database in case.concerned() {
        let lines = lines(case, database);
        if lines.is_empty() {
            continue;
        }
        let restart = |summary: String, file| Task {
            remedy: REMEDY.id.to_owned(),
            summary,
            databases: vec![database.id.clone()],
            file,
        };
        let name = file_name(database, "untax.conf");
        // What a container calls its file may be another one of the host.
        let contained = database.container.is_some()
            || database.pod.is_some()
            || database.namespace_pid.is_some();
        let file = database.setting("config_file").into_value();
        let file = file.filter(|file| file.starts_with('/') && !contained);
        match file.filter(|_| case.wish.configure) {
            Some(file) => {
                draft.steps.push(Step {
                    id: format!("config-{}", database.pid),
                    remedy: REMEDY.id.to_owned(),
                    summary: format!("{file}: {}", lines.replace('\n', "; ")),
                    databases: vec![database.id.clone()],
                    target: Target::Block { file },
                    from: None,
                    to: Some(lines),
                    refresh: Vec::new(),
                    effect: Effect::Restart,
                });
                draft.tasks.push(restart(format!("{}: restart it", told(database)), None));
            }
            None => draft.tasks.push(restart(
                format!("{}: add {name} to its configuration, restart it", told(database)),
                Some((name, format!("# Made by untax.\n{}{lines}", section(database)))),
            )),
        }
    }
    draft
}

/// The lines, without a section; empty when the database need not be told anything.
fn lines(case: &Case, database: &Database) -> String {
    let answers = |remedy: &str| {
        case.findings.iter().any(|(of, finding)| {
            of.is_some_and(|of| of.id == database.id) && finding.remedy.as_deref() == Some(remedy)
        })
    };
    match database.engine.as_str() {
        // `try`, the default, falls back to small pages without a word.
        "postgres" if answers("hugepage-pool") => {
            format!("huge_pages = on\n{}", page_size(case, database))
        }
        "mysql" if answers("hugepage-pool") => "large_pages = ON\n".to_owned(),
        // Earlier versions end at a directive that they do not know.
        "redis" if answers("thp") && database.is_at_least(6, 2) == Some(true) => {
            "disable-thp yes\n".to_owned()
        }
        _ => String::new(),
    }
}

/// Without this line PostgreSQL takes pages of the kernel's default size.
fn page_size(case: &Case, database: &Database) -> &'static str {
    if !names_its_size(database) {
        return "";
    }
    let used = database.huge_pages.value().and_then(|use_of| use_of.size_bytes.value().copied());
    match size_of(&case.sizing.node.advice.page) {
        Bytes::GIB_1 if used != Some(Bytes::GIB_1) => "huge_page_size = 1GB\n",
        Bytes::MIB_2 if used == Some(Bytes::GIB_1) => "huge_page_size = 2MB\n",
        _ => "",
    }
}

fn section(database: &Database) -> &'static str {
    if database.engine == "mysql" { "[mysqld]\n" } else { "" }
}
