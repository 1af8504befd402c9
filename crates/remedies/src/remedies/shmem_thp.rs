//! `shmem-thp`: transparent huge pages for shared memory, where a pool cannot be had or nobody wants to
//! reserve one. PostgreSQL's shared memory takes them when it is mapped: the setting is for the next start.
//! A server that runs cannot be mended: its mapping is not aligned to a huge page.
//!
//! Nothing is reserved and no control group forbids them, so that no pod ends by a Bus error. They bring
//! less than a pool where memory is fragmented, count as memory of the group, and the setting is for every
//! shared anonymous mapping, memfd and System V segment of the host. Sources: kernel.org,
//! admin-guide/mm/transhuge, `shmem_enabled`; mm/shmem.c.

use crate::case::Case;
use crate::pool_plan::PoolPlan;
use crate::remedy::{Draft, Remedy, told};
use untax_core::plan::{Effect, Step, Target, Task, Warning};
use untax_core::{Bytes, Database};

pub const REMEDY: Remedy = Remedy {
    id: "shmem-thp",
    summary: "transparent huge pages for PostgreSQL's shared memory, without a pool",
    answers: &["shmem-thp", "hugepage-pool"],
    plan,
};

const FILE: &str = "/sys/kernel/mm/transparent_hugepage/shmem_enabled";

/// Read at every boot by systemd-tmpfiles.
const DROP_IN: &str = "/etc/tmpfiles.d/untax-shmem-thp.conf";

/// PostgreSQL gives the kernel no advice on its memory, so `advise` is not enough.
const WORD: &str = "always";

/// What each word brings a mapping that says nothing: whole huge pages, where these are there.
const ENOUGH: [&str; 2] = [WORD, "force"];

fn plan(case: &Case) -> Draft {
    let concerned: Vec<&Database> = case.concerned().filter(|d| is_for(d)).collect();
    let thp = case.snapshot.host.thp.value();
    let now = thp.and_then(|thp| thp.shmem_enabled.value());
    let Some(now) = now.filter(|now| !concerned.is_empty() && !ENOUGH.contains(&now.as_str()))
    else {
        return Draft::default();
    };
    if case.wants_no_pool() || case.concerned().any(|d| case.asks(d, REMEDY.id)) {
        return changes(&concerned, now);
    }
    if !has_memory(case, &concerned) {
        return Draft::default();
    }
    let warning = match PoolPlan::of(case) {
        PoolPlan::Wanted(_) => "they need no pool and no boot, and bring PostgreSQL less than it",
        _ => "no pool can be planned here; these need none",
    };
    Draft { warnings: vec![offer(warning)], ..Draft::default() }
}

/// The engine whose shared memory is one anonymous mapping that such pages are worth.
fn is_for(database: &Database) -> bool {
    database.engine == "postgres" && database.memory.thp_allowed.value() != Some(&false)
}

/// Whether there is memory to be in such pages.
fn has_memory(case: &Case, concerned: &[&Database]) -> bool {
    let base = case.snapshot.host.base_page_bytes.value().copied().unwrap_or(Bytes::KIB_4);
    let on_base = |database: &&Database| {
        database.memory.page_size_bytes.value().is_some_and(|page| *page <= base)
    };
    concerned.iter().any(on_base)
}

/// The choice and its price.
fn offer(why: &str) -> Warning {
    Warning {
        id: "shmem-thp".to_owned(),
        refuses: false,
        text: format!(
            "or transparent huge pages, by untax plan --page thp: {why}; they count as memory, may be \
             few where memory is fragmented, and are for all shared memory of the host"
        ),
    }
}

fn changes(concerned: &[&Database], now: &str) -> Draft {
    let databases: Vec<String> = concerned.iter().map(|database| database.id.clone()).collect();
    let step = |id: &str, summary: String, target, from, to: String, effect| Step {
        id: id.to_owned(),
        remedy: REMEDY.id.to_owned(),
        summary,
        databases: databases.clone(),
        target,
        from,
        to: Some(to),
        refresh: Vec::new(),
        effect,
    };
    let steps = vec![
        step(
            REMEDY.id,
            format!("transparent huge pages of shared memory: {now} -> {WORD}"),
            Target::Word { file: FILE.to_owned() },
            Some(now.to_owned()),
            WORD.to_owned(),
            Effect::Restart,
        ),
        step(
            "shmem-thp-boot",
            format!("{DROP_IN}: the same after every boot"),
            Target::File { file: DROP_IN.to_owned() },
            None,
            format!("# Made by untax.\nw {FILE} - - - - {WORD}\n"),
            Effect::Reboot,
        ),
    ];
    let restart = |database: &&Database| Task {
        remedy: REMEDY.id.to_owned(),
        summary: format!(
            "{}: restart it: a mapping keeps the pages it was made with",
            told(database)
        ),
        databases: vec![database.id.clone()],
        file: None,
    };
    Draft { steps, tasks: concerned.iter().map(restart).collect(), ..Draft::default() }
}
