//! `hugepage-limit`: a cgroup allows fewer huge pages than the database will touch.

use crate::evidence;
use crate::rule::{Rule, TaxBase};
use untax_core::database::{HugetlbLimit, Segment};
use untax_core::finding::Says;
use untax_core::window::Pair;
use untax_core::{
    Bytes, Database, Diagnosis, Evidence, Finding, Reading, Severity, Unmeasured, Window,
};

pub const RULE: Rule = Rule {
    id: "hugepage-limit",
    summary: "a control group allows fewer huge pages than the database will touch",
    what: "hugetlb.<size>.max of a control group is enforced when a page is first touched, long \
           after the mapping succeeded: the process is then killed with SIGBUS (Bus error). A \
           database that starts well dies under load, when it touches more of its buffers. \
           hugetlb.<size>.rsvd.max is enforced when the memory is mapped: the server does not \
           start, or falls back to small pages.",
    measured: "The huge pages that the database needs (its own number, or the length of its \
               mappings) against max and rsvd.max of its group and of every group above, with \
               what others below the same limit use already. It is found before the Bus error, \
               and costs no time until then: it has no tax.",
    fix: "Raise hugetlb.<size>.max of the named group above the need (in Kubernetes: request and \
          limit hugepages-2Mi for the container), or set huge_pages = off.",
    sources: &[
        "kernel.org: admin-guide/cgroup-v2, HugeTLB",
        "kubernetes/kubernetes#71233",
        "docker-library/postgres#946",
    ],
    privilege: "none, unless the control group's files are hidden",
    minimum_kernel: "4.5 (cgroup v2: 5.6; rsvd: 5.7)",
    cost: "a few small files for each group above the database",
    tax_base: TaxBase::ActiveTime,
    evaluate,
};

fn evaluate(window: &Window) -> Vec<Diagnosis> {
    window.databases().filter_map(|pair| evaluate_one(&pair)).collect()
}

fn evaluate_one(pair: &Pair) -> Option<Diagnosis> {
    let database = pair.end;
    let says = |says| Some(Diagnosis { database: Some(database.id.clone()), says });
    let unmeasured = |why: String| {
        let why = format!("limits on huge pages: {why}");
        says(Says::Unmeasured(Unmeasured::new(RULE.id, why)))
    };
    let need = need(database)?;
    let limits = match database.cgroup.as_ref().and_then(|cgroup| cgroup.hugetlb.clone()) {
        Reading::Present(limits) => limits,
        // Without the controller there is no limit.
        Reading::Absent(_) => return None,
        gap => return unmeasured(gap.why().unwrap_or_default()),
    };
    let limits: Vec<&HugetlbLimit> = limits.iter().filter(|l| l.size_bytes == need.size).collect();
    let own = limits.first()?;
    match limits.iter().find_map(|limit| need.exceeds(limit, own)) {
        Some(broken) => says(Says::Found(need.finding(database, &broken))),
        None => limits.iter().find_map(|limit| need.unknown(limit, own)).and_then(unmeasured),
    }
}

/// What others below a limit have touched. What the database's own group has is part of the need, and
/// of the usage of every group above.
fn others(limit: &HugetlbLimit, own: &HugetlbLimit) -> Reading<Bytes> {
    if limit.cgroup == own.cgroup {
        return Reading::Present(Bytes(0));
    }
    limit.usage_bytes.clone().and_then(|usage| own.usage_bytes.clone().map(|own| usage - own))
}

/// The huge pages that a database has mapped or will map.
struct Need {
    size: Bytes,
    bytes: Bytes,
    mapped: bool,
    source: String,
}

/// A limit that is too low.
struct Broken {
    cgroup: String,
    file: &'static str,
    limit: Bytes,
    usage: Option<Bytes>,
    fatal: bool,
}

fn need(database: &Database) -> Option<Need> {
    let mapped = mapped(database);
    if mapped.is_some() {
        return mapped;
    }
    let asked = database.huge_pages.value().filter(|asked| asked.asked != "off")?;
    let size = *asked.size_bytes.value()?;
    let bytes = Bytes(asked.needed_pages.value()?.saturating_mul(size.0));
    Some(Need { size, bytes, mapped: false, source: asked.source.clone() })
}

fn mapped(database: &Database) -> Option<Need> {
    let segments = database.memory.segments.value()?;
    let huge = |s: &&Segment| s.page_size_bytes.value().is_some_and(|p| *p >= Bytes::MIB_2);
    let size = *segments.iter().find(huge)?.page_size_bytes.value()?;
    let bytes =
        segments.iter().filter(|s| s.page_size_bytes.value() == Some(&size)).map(|s| s.bytes).sum();
    Some(Need { size, bytes, mapped: true, source: format!("/proc/{}/maps", database.pid) })
}

impl Need {
    /// Whether a limit is broken when all of the need is touched. Where what others have touched is not
    /// known it may be nothing.
    fn exceeds(&self, limit: &HugetlbLimit, own: &HugetlbLimit) -> Option<Broken> {
        let usage = limit.usage_bytes.value().copied();
        let others = others(limit, own).into_value().unwrap_or_default();
        let broken = |file, max: Bytes, fatal| {
            (others + self.bytes > max).then(|| Broken {
                cgroup: limit.cgroup.clone(),
                file,
                limit: max,
                usage,
                fatal,
            })
        };
        let touched = limit.max_bytes.value().and_then(|max| broken("max", *max, true));
        let reserved = || limit.rsvd_max_bytes.value().filter(|_| !self.mapped);
        // A mapping that would be refused is never touched: the reservation limit speaks first.
        reserved().and_then(|max| broken("rsvd.max", *max, false)).or(touched)
    }

    /// Why it is not known whether a limit is broken; `None` where it is, or where there is none.
    fn unknown(&self, limit: &HugetlbLimit, own: &HugetlbLimit) -> Option<String> {
        let reserved = Some(&limit.rsvd_max_bytes).filter(|_| !self.mapped);
        let mut limits = std::iter::once(&limit.max_bytes).chain(reserved);
        let max = limits.find(|max| !matches!(max, Reading::Absent(_)))?;
        max.why().or_else(|| others(limit, own).why())
    }

    fn finding(&self, database: &Database, broken: &Broken) -> Finding {
        let Broken { cgroup, file, limit, usage, fatal } = broken;
        let fatal = *fatal && self.mapped;
        let page = kernel_name(self.size);
        let mut evidence = vec![
            Evidence::new(&evidence::HUGETLB_NEEDED, self.bytes.0, self.source.clone()),
            Evidence::new(
                &evidence::HUGETLB_LIMIT,
                limit.0,
                format!("hugetlb.{page}.{file} of {cgroup}"),
            ),
        ];
        evidence.extend(usage.map(|usage| {
            Evidence::new(&evidence::HUGETLB_USED, usage.0, format!("usage of {cgroup}"))
        }));
        let end = if fatal {
            "it will be killed by a Bus error when it touches more"
        } else {
            "it cannot use huge pages here"
        };
        Finding {
            evidence,
            remedy: Some("cgroup-hugetlb-limit".to_owned()),
            ..Finding::new(
                RULE.id,
                if fatal { Severity::High } else { Severity::Medium },
                format!("needs {} of huge pages, {cgroup} allows {limit}: {end}", self.bytes),
                format!(
                    "raise hugetlb.*.{file} of {cgroup} to at least {} bytes{}",
                    self.bytes.0,
                    if database.pod.is_some() {
                        " (request and limit hugepages of the container)"
                    } else {
                        ""
                    }
                ),
            )
        }
    }
}

/// A size as it is in the names of the kernel's files.
fn kernel_name(size: Bytes) -> String {
    match size.0 {
        s if s % (1 << 30) == 0 => format!("{}GB", s >> 30),
        s if s % (1 << 20) == 0 => format!("{}MB", s >> 20),
        s => format!("{}KB", s >> 10),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_window::{cgroup, found, gaps, limit, postgres, segment};

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
        assert!(findings[0].summary.contains("/all allows"), "{}", findings[0].summary);
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
        let mut window = postgres();
        let mut own = limit("/db", Bytes(8 << 30), Bytes(0));
        own.rsvd_max_bytes = Reading::Present(Bytes(1 << 30));
        window.end.databases[0].cgroup = cgroup(vec![own]);
        let findings = found(evaluate(&window));
        assert_eq!(findings[0].severity, Severity::Medium);
        assert!(findings[0].fix.contains("rsvd.max"));
    }
}
