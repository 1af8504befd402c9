//! `database-config`: what the database itself must be told, written beside the plan, or, when
//! asked for, added to its configuration file.

use crate::case::Case;
use crate::pool_plan::PoolPlan;
use crate::remedies::directives::knows;
use crate::remedy::{Draft, Remedy, file_name, told};
use untax_core::plan::{Effect, Step, Target, Task};
use untax_core::{Database, page_size};

pub const REMEDY: Remedy = Remedy {
    id: "database-config",
    summary: "the settings of the database that a change of the platform needs",
    answers: &["hugepage-pool", "thp"],
    plan,
};

fn plan(case: &Case) -> Draft {
    let mut draft = Draft::default();
    for database in case.concerned() {
        draft.tasks.extend(oracle(case, database));
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
                format!("{}: add {name} to its configuration, {}", told(database), then(database)),
                Some((name, format!("# Made by untax.\n{}{lines}", section(database)))),
            )),
        }
    }
    draft
}

/// A restart in a pod that was not granted huge pages yet ends by a Bus error.
fn then(database: &Database) -> &'static str {
    match database.pod {
        Some(_) => "and restart it by the patch of its pod alone",
        None => "restart it",
    }
}

/// The lines, without a section; empty when the database need not be told anything.
fn lines(case: &Case, database: &Database) -> String {
    let pool = case.asks(database, "hugepage-pool") && has_pool(case);
    match database.engine.as_str() {
        // `try`, the default, falls back to small pages without a word.
        "postgres" if pool => format!("huge_pages = on\n{}", page_size(case, database)),
        "mysql" if pool => "large_pages = ON\n".to_owned(),
        "redis" if case.asks(database, "thp") && knows(database, "disable-thp") => {
            "disable-thp yes\n".to_owned()
        }
        _ => String::new(),
    }
}

/// What keeps an instance from pages that are there. It insists on them (ONLY) where there are enough:
/// otherwise it would not start.
fn oracle(case: &Case, database: &Database) -> Option<Task> {
    if database.engine != "oracle" || case.wants_no_pool() || !case.asks(database, "hugepage-pool")
    {
        return None;
    }
    let insists = has_pool(case) && knows(database, "use_large_pages");
    let only = "ALTER SYSTEM SET use_large_pages = ONLY SCOPE = SPFILE;\n";
    let text = format!(
        "-- Made by untax. Before: memlock of its user in /etc/security/limits.conf, at least the SGA;\n\
         -- no automatic memory management (memory_target = 0), which takes no huge pages.\n{}\
         -- Then: SHUTDOWN IMMEDIATE, STARTUP; the alert log tells the pages that it got.\n",
        if insists { only } else { "" }
    );
    Some(Task {
        remedy: REMEDY.id.to_owned(),
        summary: format!(
            "{}: memlock for its user, no AMM, USE_LARGE_PAGES, restart it; keep the pool that is there",
            told(database)
        ),
        databases: vec![database.id.clone()],
        file: Some((file_name(database, "untax.sql"), text)),
    })
}

/// Whether the plan makes a pool, or finds one that is large enough: a database that insists on huge
/// pages and gets none does not start.
fn has_pool(case: &Case) -> bool {
    !case.wants_no_pool() && matches!(PoolPlan::of(case), PoolPlan::Wanted(_))
}

/// Without this line PostgreSQL takes pages of the kernel's default size.
fn page_size(case: &Case, database: &Database) -> String {
    let used = database.huge_pages.value().and_then(|use_of| use_of.size_bytes.value().copied());
    match case.page().filter(|page| used != Some(*page) && knows(database, "huge_page_size")) {
        Some(page) => {
            let size = page_size::group_word(page).replace("KB", "kB");
            format!("huge_page_size = {size}\n")
        }
        None => String::new(),
    }
}

fn section(database: &Database) -> &'static str {
    if database.engine == "mysql" { "[mysqld]\n" } else { "" }
}
