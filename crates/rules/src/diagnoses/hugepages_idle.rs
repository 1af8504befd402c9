//! `hugepages-idle`: memory reserved for huge pages that nobody uses.

use crate::evidence;
use crate::model::huge_pages::{on_base_pages, size_for, unreserved_pages};
use crate::model::hugetlb_limits::is_limited;
use crate::rule::{Rule, Scope, TaxBase};
use untax_core::finding::Says;
use untax_core::host::Pool;
use untax_core::{
    Bytes, Database, Diagnosis, Evidence, EvidenceKind, Finding, Reading, Severity, Unmeasured,
    Window,
};

pub const RULE: Rule = Rule {
    id: "hugepages-idle",
    summary: "memory is reserved for huge pages that nobody uses",
    what: "The rest of the machine cannot use the pages of a huge-page pool, whether they are \
           mapped or not. No page cache, no process and no reclaim ever gets them. A pool that is \
           larger than the need, or that no database asks for, wastes memory.",
    method: "The rule counts the free pages of each pool that are not reserved for a mapping. It \
             has no tax.",
    measured: "The rule counts the free pages of each pool that are not reserved for a mapping \
               (free - reserved). The rule reports free pages from 64 MiB and 1 % of the memory \
               on. Idle pages cost the page cache that this memory could hold; untax does not \
               measure this cost.",
    fix: "Let the database use the huge pages: set huge_pages = on, then restart it. Before you \
          shrink a pool, find the program that it was made for. A database that is stopped, or \
          that fell back to small pages, needs the pool at its next start. For that reason untax \
          never plans to shrink a pool.",
    sources: &["kernel.org: admin-guide/mm/hugetlbpage, HugePages_Free and HugePages_Rsvd"],
    privilege: "none",
    minimum_kernel: "2.6.27 (sysfs pools)",
    cost: "four small files for each pool",
    tax_base: TaxBase::ActiveTime,
    scope: Scope::Platform,
    evaluate,
};

/// Less than this is a margin, not a loss.
const WORTH_BYTES: Bytes = Bytes::from_mib(64);

/// A pool is rarely sized to the page: up to this share of the memory is a margin.
const WORTH_SHARE: f64 = 0.01;

/// From this share of the memory on, it is missed elsewhere.
const LARGE_SHARE: f64 = 0.1;

fn evaluate(window: &Window) -> Vec<Diagnosis> {
    let host = &window.end.host;
    let pools = match &host.hugepages {
        Reading::Present(pools) => pools,
        Reading::Absent(_) => return Vec::new(),
        gap => {
            let why = gap.why().unwrap_or_default();
            let says = Says::Unmeasured(Unmeasured::new(RULE.id, why));
            return vec![Diagnosis { database: None, says }];
        }
    };
    let total = host.memory.value().map(|memory| memory.total_bytes);
    pools
        .iter()
        .filter(|pool| pool.node.is_none())
        .filter_map(|pool| idle_finding(window, pool, total))
        .map(|finding| Diagnosis { database: None, says: Says::Found(finding) })
        .collect()
}

fn idle_finding(window: &Window, pool: &Pool, memory: Option<Bytes>) -> Option<Finding> {
    let idle_pages = unreserved_pages(pool)?;
    let idle = Bytes(idle_pages.saturating_mul(pool.size_bytes.0));
    let share = memory.map(|memory| idle.0 as f64 / memory.0.max(1) as f64);
    if idle < WORTH_BYTES || share.is_some_and(|share| share < WORTH_SHARE) {
        return None;
    }
    let is_large = share.is_some_and(|share| share >= LARGE_SHARE);
    let page = pool.size_bytes;
    let source = format!("/sys/kernel/mm/hugepages/hugepages-{}kB", pool.size_bytes.0 >> 10);
    let count = |kind: &EvidenceKind, value: &Reading<u64>| {
        value.value().map(|n| Evidence::new(kind, *n, source.clone()))
    };
    let mut evidence = vec![Evidence::new(&evidence::POOL_IDLE, idle.0, source.clone())];
    evidence.extend(
        [
            (&evidence::POOL_PAGES, &pool.total),
            (&evidence::POOL_FREE, &pool.free),
            (&evidence::POOL_PROMISED, &pool.reserved),
        ]
        .into_iter()
        .filter_map(|(kind, value)| count(kind, value)),
    );
    Some(Finding {
        evidence,
        ..Finding::new(
            RULE.id,
            if is_large { Severity::Medium } else { Severity::Low },
            format!("{idle} reserved in {idle_pages} pages of {page} that nobody uses"),
            fix(window, pool, idle_pages),
        )
    })
}

/// Nobody knows all programs that may want a pool: one that was made for a database is none to shrink.
fn fix(window: &Window, pool: &Pool, idle_pages: u64) -> String {
    let host = &window.end.host;
    let could = |database: &&Database| {
        size_for(&window.end, database) == Some(pool.size_bytes)
            && database.huge_pages.is_present()
            && on_base_pages(host, database) == Some(true)
    };
    let candidates = || window.end.databases.iter().filter(could);
    if let Some(database) = candidates().find(|database| !is_limited(host, database)) {
        return format!("let {} use them: its data is on small pages", database.id);
    }
    if let Some(database) = candidates().next() {
        return format!("keep them until the limit of {} is raised (hugepage-limit)", database.id);
    }
    let size = pool.size_bytes;
    format!(
        "find the program that the {size} pool was made for before you shrink it by {idle_pages} pages"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_window::{cgroup, found, limit, pool, postgres};

    #[test]
    fn idle_pages_are_found_with_who_could_use_them() {
        let mut window = postgres();
        window.end.host.hugepages = Reading::Present(vec![pool(4000, 4000, 100)]);
        let findings = found(evaluate(&window));
        assert_eq!(findings[0].severity, Severity::Medium);
        assert_eq!(findings[0].fix, "let postgres:7 use them: its data is on small pages");
        assert_eq!(findings[0].remedy, None, "a pool that somebody may want is not shrunk");
        assert!(findings[0].summary.contains("3900 pages"));
        window.end.host.memory = Reading::Absent("not read".to_owned());
        assert_eq!(found(evaluate(&window))[0].severity, Severity::Low, "of an unknown whole");
    }

    #[test]
    fn pages_that_a_limit_keeps_from_a_database_are_not_offered_to_it() {
        let mut window = postgres();
        window.end.host.hugepages = Reading::Present(vec![pool(4000, 4000, 0)]);
        window.end.databases[0].cgroup = cgroup(vec![limit("/pod", Bytes(0), Bytes(0))]);
        let fix = &found(evaluate(&window))[0].fix;
        assert!(fix.contains("until the limit of postgres:7 is raised"), "{fix}");
        window.end.databases.clear();
        window.start.databases.clear();
        let fix = &found(evaluate(&window))[0].fix;
        assert!(fix.starts_with("find the program that the 2 MiB pool was made for"), "{fix}");
    }

    #[test]
    fn promised_and_used_pages_are_not_idle() {
        let mut window = postgres();
        window.end.host.hugepages = Reading::Present(vec![pool(4000, 3000, 3000)]);
        assert!(evaluate(&window).is_empty());
    }
}
