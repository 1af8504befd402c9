//! `hugepage-limit`: a cgroup allows fewer huge pages than the database will touch.

use crate::evidence;
use crate::model::huge_pages::switch_off;
use crate::model::hugetlb_limits::{Broken, Harm, Need};
use crate::rule::{Rule, Scope, TaxBase};
use untax_core::finding::Says;
use untax_core::host::HostFacts;
use untax_core::window::Pair;
use untax_core::{
    Database, Diagnosis, Evidence, Finding, Reading, Severity, Unmeasured, Window, page_size,
};

pub const RULE: Rule = Rule {
    id: "hugepage-limit",
    summary: "a control group allows fewer huge pages than the database will touch",
    what: "The kernel enforces hugetlb.<size>.max of a control group when a page is first touched, \
           long after the mapping succeeded. The kernel then kills the process with SIGBUS (Bus \
           error). So a database starts well and dies under load, when it touches more of its \
           buffers. A database that was started before the pool was made runs on small pages and \
           dies after its next restart. The kernel enforces hugetlb.<size>.rsvd.max when the \
           memory is mapped: the server does not start, or falls back to small pages.",
    method: "The rule compares the huge pages that the database needs with the limits of its \
             control group and of each group above it. It has no tax.",
    measured: "The number of huge pages that a database needs is its own number, or follows from \
               the length of its mappings. The rule compares the need with max and rsvd.max of the \
               database's group and of every group above it. Huge pages that others below the same \
               limit already use count too. The rule finds the limit before the Bus error. The \
               limit takes no time until then, so it has no tax. Where this host has no pool of \
               that page size, the limit keeps nothing from the database, and the finding is info. \
               Every pod without a request has such a limit.",
    fix: "Before you restart the database, raise hugetlb.<size>.max of the named group above the \
          need, or set huge_pages = off. In Kubernetes, set request and limit of hugepages-2Mi for \
          the container.",
    sources: &[
        "kernel.org: admin-guide/cgroup-v2, HugeTLB",
        "kubernetes/kubernetes#71233",
        "docker-library/postgres#946",
        "CrunchyData/crunchy-containers#1518",
    ],
    privilege: "none, unless the control group's files are hidden",
    minimum_kernel: "4.5 (cgroup v2: 5.6; rsvd: 5.7)",
    cost: "a few small files for each group above the database",
    tax_base: TaxBase::ActiveTime,
    scope: Scope::Platform,
    evaluate,
};

fn evaluate(window: &Window) -> Vec<Diagnosis> {
    let host = &window.end.host;
    window.databases().filter_map(|pair| evaluate_one(host, &pair)).collect()
}

fn evaluate_one(host: &HostFacts, pair: &Pair) -> Option<Diagnosis> {
    let database = pair.end;
    let says = |says| Some(Diagnosis { database: Some(database.id.clone()), says });
    let unmeasured = |why: String| {
        let why = format!("limits on huge pages: {why}");
        says(Says::Unmeasured(Unmeasured::new(RULE.id, why)))
    };
    let need = Need::of(host, database)?;
    let limits = match database.cgroup.as_ref().and_then(|cgroup| cgroup.hugetlb.clone()) {
        Reading::Present(limits) => limits,
        // Without the controller there is no limit.
        Reading::Absent(_) => return None,
        gap => return unmeasured(gap.why().unwrap_or_default()),
    };
    match need.broken(&limits) {
        Some(broken) => {
            let harm = need.harm(host, database, &broken);
            says(Says::Found(finding(database, &need, &broken, harm)))
        }
        None => need.unknown(&limits).and_then(unmeasured),
    }
}

fn finding(database: &Database, need: &Need, broken: &Broken, harm: Harm) -> Finding {
    let Broken { cgroup, file, limit, usage } = broken;
    let page = page_size::group_word(need.size);
    let mut evidence = vec![
        Evidence::new(&evidence::HUGETLB_NEEDED, need.bytes.0, need.source.clone()),
        Evidence::new(
            &evidence::HUGETLB_LIMIT,
            limit.0,
            format!("hugetlb.{page}.{file} of {cgroup}"),
        ),
    ];
    evidence.extend(usage.map(|usage| {
        Evidence::new(&evidence::HUGETLB_USED, usage.0, format!("usage of {cgroup}"))
    }));
    let (severity, end) = match harm {
        Harm::Killed => (Severity::High, "it will be killed by a Bus error when it touches more"),
        Harm::KilledAtNextStart => {
            (Severity::High, "at its next start it maps huge pages and is killed by a Bus error")
        }
        Harm::StaysSmall => (Severity::Medium, "it cannot use huge pages here"),
        Harm::None => (Severity::Info, "it does not matter while this host has no pool of them"),
    };
    Finding {
        evidence,
        remedy: (harm != Harm::None).then(|| "cgroup-hugetlb-limit".to_owned()),
        ..Finding::new(
            RULE.id,
            severity,
            format!(
                "needs {} of huge pages, and the limit is {limit}: {end} ({cgroup})",
                need.bytes
            ),
            fix(database, need, broken, harm),
        )
    }
}

fn fix(database: &Database, need: &Need, broken: &Broken, harm: Harm) -> String {
    let Broken { cgroup, file, .. } = broken;
    let size = need.size;
    let more = match &database.pod {
        Some(_) => format!(
            "request hugepages-{}: {}Mi for its container",
            page_size::kubernetes_word(size),
            need.bytes.0.div_ceil(1 << 20)
        ),
        None => format!(
            "raise hugetlb.{}.{file} of {cgroup} to at least {} bytes",
            page_size::group_word(size),
            need.bytes.0
        ),
    };
    match harm {
        Harm::KilledAtNextStart => {
            format!("{more}, or {}, before any restart", switch_off(database))
        }
        Harm::Killed | Harm::StaysSmall | Harm::None => more,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_window::{cgroup, found, gaps, limit, pool, postgres, segment};
    use untax_core::Bytes;
    use untax_core::database::{HugetlbLimit, Pod};

    fn on_huge_pages(limits: Vec<HugetlbLimit>) -> Window {
        let mut window = postgres();
        let database = &mut window.end.databases[0];
        database.memory.segments = Reading::Present(vec![segment(Bytes(6 << 30), Bytes::MIB_2)]);
        database.cgroup = cgroup(limits);
        window
    }

    #[test]
    fn a_limit_below_the_mapping_is_found_before_the_bus_error() {
        let own = limit("/db", Bytes(4 << 30), Bytes(1 << 30));
        let findings = found(evaluate(&on_huge_pages(vec![own])));
        assert_eq!(findings[0].severity, Severity::High);
        assert!(findings[0].summary.contains("/db"));
    }

    #[test]
    fn enough_is_enough() {
        let own = limit("/db", Bytes(6 << 30), Bytes(1 << 30));
        assert!(evaluate(&on_huge_pages(vec![own])).is_empty());
    }

    #[test]
    fn what_others_use_below_a_shared_limit_counts() {
        let own = limit("/all/db", Bytes(8 << 30), Bytes(1 << 30));
        let above = limit("/all", Bytes(8 << 30), Bytes(4 << 30));
        let findings = found(evaluate(&on_huge_pages(vec![own, above])));
        assert!(findings[0].summary.contains("(/all)"), "{}", findings[0].summary);
    }

    #[test]
    fn usage_that_is_not_known_is_neither_nothing_nor_all() {
        let mut own = limit("/all/db", Bytes(8 << 30), Bytes(0));
        own.usage_bytes = Reading::Denied("hugetlb.2MB.current".to_owned());
        let mut above = limit("/all", Bytes(8 << 30), Bytes(4 << 30));
        let shared = evaluate(&on_huge_pages(vec![own.clone(), above.clone()]));
        assert!(found(shared.clone()).is_empty());
        assert!(gaps(shared)[0].contains("permission denied: hugetlb.2MB.current"));
        above.max_bytes = Reading::Absent("unlimited".to_owned());
        assert!(evaluate(&on_huge_pages(vec![own.clone(), above])).is_empty());
        own.max_bytes = Reading::Present(Bytes(4 << 30));
        assert_eq!(found(evaluate(&on_huge_pages(vec![own]))).len(), 1, "too much alone");
    }

    #[test]
    fn a_reservation_limit_stops_a_server_that_has_not_mapped_yet() {
        let mut own = limit("/db", Bytes(8 << 30), Bytes(0));
        own.rsvd_max_bytes = Reading::Present(Bytes(1 << 30));
        let finding = about_to_start(4000, own);
        assert_eq!(finding.severity, Severity::Medium);
        assert_eq!(finding.fix, "request hugepages-2Mi: 6340Mi for its container");
        assert!(finding.evidence.iter().any(|of| of.source == "hugetlb.2MB.rsvd.max of /db"));
    }

    /// What is found of a database on small pages that tries to get huge ones, in a pod with this limit,
    /// beside a pool of so many free pages. It needs 3170.
    fn about_to_start(free: u64, limit: HugetlbLimit) -> Finding {
        let mut window = postgres();
        window.end.host.hugepages = Reading::Present(vec![pool(free, free, 0)]);
        let database = &mut window.end.databases[0];
        database.cgroup = cgroup(vec![limit]);
        database.pod = Some(Pod { uid: "a-uid".to_owned(), qos: "burstable".to_owned() });
        found(evaluate(&window)).remove(0)
    }

    #[test]
    fn without_a_pool_a_limit_keeps_nobody_from_anything() {
        let finding = about_to_start(0, limit("/pod", Bytes(0), Bytes(0)));
        assert_eq!((finding.severity, finding.remedy), (Severity::Info, None));
        let scarce = about_to_start(100, limit("/pod", Bytes(0), Bytes(0)));
        assert_eq!(scarce.severity, Severity::Medium, "a pool is there, and may grow");
    }

    #[test]
    fn a_restart_into_a_pool_that_is_not_allowed_is_a_bus_error() {
        let finding = about_to_start(4000, limit("/pod", Bytes(0), Bytes(0)));
        assert_eq!(finding.severity, Severity::High);
        assert!(finding.summary.contains("at its next start"), "{}", finding.summary);
        let fix = "request hugepages-2Mi: 6340Mi for its container, or set huge_pages = off, \
                   before any restart";
        assert_eq!(finding.fix, fix);
        let mut refused = limit("/pod", Bytes(0), Bytes(0));
        refused.rsvd_max_bytes = Reading::Present(Bytes(0));
        assert_eq!(about_to_start(4000, refused).severity, Severity::Medium, "it falls back");
    }

    #[test]
    fn transparent_huge_pages_count_in_no_limit() {
        let mut window = on_huge_pages(vec![limit("/db", Bytes(0), Bytes(0))]);
        window.end.databases[0].memory.hugetlb_bytes = Reading::Present(Bytes(0));
        assert_eq!(found(evaluate(&window))[0].severity, Severity::Info, "by what it asks for");
    }
}
