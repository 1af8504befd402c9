//! `hugepages-short`: huge pages were asked for and are not there.

use crate::evidence;
use crate::model::huge_pages::{on_base_pages, pool, size_for, switch_on, unreserved_pages};
use crate::model::hugetlb_limits::is_limited;
use crate::rule::{Rule, Scope, TaxBase};
use untax_core::boot::{Arguments, huge_page_words};
use untax_core::finding::Says;
use untax_core::host::Pool;
use untax_core::window::Pair;
use untax_core::{
    Bytes, Database, Diagnosis, Evidence, Finding, Severity, Unmeasured, Window, page_size,
};

pub const RULE: Rule = Rule {
    id: "hugepages-short",
    summary: "huge pages were asked for, but the pool is too small",
    what: "A pool that is smaller than the need is worse than none. PostgreSQL with huge_pages = \
           try and MySQL with large-pages fall back to small pages, with at most a line in the \
           log. The reserved memory stays idle. When memory is fragmented, at boot or later, the \
           kernel reserves fewer pages than you asked for, without an error. On its command line, \
           the kernel ignores a hugepages= that does not follow a hugepagesz= of its own.",
    method: "The rule compares the huge pages that the database asks for with the free pages of \
             the pool. It has no tax of its own.",
    measured: "The rule looks at each database that asks for huge pages but runs on small ones. \
               The rule compares the pages that the database needs with the pool's free pages that \
               are not reserved. The rule also compares the numbers on the kernel's command line, \
               as the kernel reads them, with the pool. Where a control group keeps the pages from \
               the database, only hugepage-limit reports it: a restart may kill the database. \
               Where the database tries huge pages by default and others use most of the pool, the \
               finding is info. The cost is the tax of small-pages.",
    fix: "Grow the pool to the need with vm.nr_hugepages; when memory is fragmented, reserve it at \
          boot. Set huge_pages = on, so that a shortage is an error and not a surprise. Then \
          restart the database.",
    sources: &[
        "kernel.org: admin-guide/mm/hugetlbpage",
        "postgresql.org: huge_pages, shared_memory_size_in_huge_pages",
        "openshift-kni/performance-addon-operators#279",
    ],
    privilege: "none for the pools; the database's user or root for what it asks for",
    minimum_kernel: "2.6.27 (sysfs pools)",
    cost: "four small files for each pool",
    tax_base: TaxBase::ActiveTime,
    scope: Scope::Platform,
    evaluate,
};

fn evaluate(window: &Window) -> Vec<Diagnosis> {
    let databases = window.databases().filter_map(|pair| evaluate_one(window, &pair));
    databases.chain(boot_shortages(window)).collect()
}

fn evaluate_one(window: &Window, pair: &Pair) -> Option<Diagnosis> {
    let database = pair.end;
    let says = |says| Some(Diagnosis { database: Some(database.id.clone()), says });
    let asked = database.huge_pages.value().filter(|asked| asked.asked != "off")?;
    if !on_base_pages(&window.end.host, database)? {
        return None;
    }
    if is_limited(&window.end.host, database) {
        return None;
    }
    let size = size_for(&window.end, database)?;
    let pool = pool(&window.end.host, size)?;
    // "try" is PostgreSQL's default: with no pool at all nobody was promised anything.
    if asked.asked == "try" && pool.total.value() == Some(&0) {
        return None;
    }
    let (Some(&needed), Some(free)) = (asked.needed_pages.value(), unreserved_pages(pool)) else {
        let why = asked.needed_pages.why().unwrap_or("the pool could not be read".to_owned());
        return says(Says::Unmeasured(Unmeasured::new(RULE.id, why)));
    };
    let short = needed.saturating_sub(free);
    let (summary, fix) = if short > 0 {
        (
            format!(
                "asked for {needed} pages of {size}; {free} are free and not reserved: {short} \
                 too few"
            ),
            format!("grow the {size} pool by {short} pages, restart the database"),
        )
    } else {
        (
            format!(
                "asked for huge pages and is on small ones, though {free} are free and not \
                 reserved now"
            ),
            why_small(database),
        )
    };
    says(Says::Found(Finding {
        evidence: vec![
            Evidence::new(&evidence::HUGE_PAGES_NEEDED, needed, asked.source.clone()),
            Evidence::new(&evidence::HUGE_PAGES_FREE, free, "/sys/kernel/mm/hugepages"),
            Evidence::new(&evidence::HUGE_PAGES_ASKED, asked.asked.clone(), asked.source.clone()),
        ],
        remedy: Some("hugepage-pool".to_owned()),
        ..Finding::new(
            RULE.id,
            if asked.asked == "try" && is_taken_by_others(pool, free) {
                Severity::Info
            } else {
                Severity::Medium
            },
            summary,
            fix,
        )
    }))
}

/// Whether most of the pool is in use or promised: by others then, whom it may have been made for.
fn is_taken_by_others(pool: &Pool, free: u64) -> bool {
    pool.total.value().is_some_and(|total| free < total / 2)
}

/// What to do about a database that sits beside enough free pages.
fn why_small(database: &Database) -> String {
    format!(
        "restart the database: the pool was too small when it started; if that changes nothing, {}",
        switch_on(database)
    )
}

/// Pools that came out otherwise than the kernel's command line seems to ask for.
fn boot_shortages(window: &Window) -> Vec<Diagnosis> {
    let host = &window.end.host;
    let Some(kernel) = host.kernel.value() else { return Vec::new() };
    let Some(parameters) = kernel.parameters.value() else { return Vec::new() };
    let words = huge_page_words(parameters.iter().map(String::as_str));
    let default = window.end.default_huge_page();
    let arguments = Arguments::parse(&words, default);
    let short = arguments.pools().filter_map(|(size, asked)| {
        let got = *pool(host, size)?.total.value()?;
        (got < asked).then(|| boot_finding(size, asked, got))
    });
    let mut findings: Vec<Finding> = short.collect();
    // Without the default, a count that no size stands before may be of any size.
    if default.is_some() {
        findings.extend(ignored_finding(&arguments));
    }
    let says = |finding| Diagnosis { database: None, says: Says::Found(finding) };
    findings.into_iter().map(says).collect()
}

fn boot_finding(size: Bytes, asked: u64, got: u64) -> Finding {
    Finding {
        evidence: vec![
            Evidence::new(&evidence::HUGE_PAGES_AT_BOOT, asked, "/proc/cmdline"),
            Evidence::new(&evidence::POOL_PAGES, got, "/sys/kernel/mm/hugepages"),
        ],
        ..Finding::new(
            RULE.id,
            Severity::Medium,
            format!("{asked} pages of {size} were asked for at boot, the pool has {got}"),
            format!("check what shrank the {size} pool, or that the node has the memory for it"),
        )
    }
}

/// Words that the kernel passes over without more than a line in its log.
fn ignored_finding(arguments: &Arguments) -> Option<Finding> {
    let ignored = arguments.ignored.join(" ");
    let uncounted = arguments.uncounted.iter().map(|size| page_size::boot_word(*size));
    let uncounted = uncounted.map(|size| format!("hugepagesz={size} has no count"));
    let uncounted = uncounted.collect::<Vec<_>>().join(", ");
    let summary = match (ignored.as_str(), uncounted.as_str()) {
        ("", _) => return None,
        (ignored, "") => format!("the kernel ignores {ignored} on its command line"),
        (ignored, uncounted) => format!("the kernel ignores {ignored} at boot, and {uncounted}"),
    };
    Some(Finding {
        evidence: vec![Evidence::new(&evidence::BOOT_WORDS_IGNORED, ignored, "/proc/cmdline")],
        ..Finding::new(
            RULE.id,
            Severity::Medium,
            summary,
            "put each hugepages= right after the hugepagesz= that it counts, each size once",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_window::{cgroup, found, limit, pool, postgres};
    use untax_core::Reading;
    use untax_core::host::Kernel;

    #[test]
    fn a_pool_below_the_need_is_found() {
        let mut window = postgres();
        window.end.host.hugepages = Reading::Present(vec![pool(3000, 3000, 0)]);
        let findings = found(evaluate(&window));
        assert!(findings[0].summary.contains("170 too few"), "{}", findings[0].summary);
    }

    #[test]
    fn a_pool_that_others_fill_was_not_made_for_who_tries_by_default() {
        let severity = |asked: &str, free| {
            let mut window = postgres();
            window.end.host.hugepages = Reading::Present(vec![pool(3000, free, 0)]);
            if let Reading::Present(use_of) = &mut window.end.databases[0].huge_pages {
                use_of.asked = asked.to_owned();
            }
            found(evaluate(&window))[0].severity
        };
        assert_eq!(severity("try", 100), Severity::Info);
        assert_eq!(severity("try", 2900), Severity::Medium);
        assert_eq!(severity("on", 100), Severity::Medium);
    }

    #[test]
    fn nobody_was_promised_anything_by_the_default_of_postgres() {
        assert!(evaluate(&postgres()).is_empty());
    }

    #[test]
    fn a_database_that_a_limit_keeps_from_the_pool_is_not_told_to_restart() {
        let mut window = postgres();
        window.end.host.hugepages = Reading::Present(vec![pool(4000, 4000, 0)]);
        assert!(found(evaluate(&window))[0].fix.starts_with("restart the database"));
        window.end.databases[0].cgroup = cgroup(vec![limit("/pod", Bytes(0), Bytes(0))]);
        assert!(evaluate(&window).is_empty(), "it would be killed by a Bus error");
    }

    /// A host without databases that was booted with these words, on pages of 2 MiB by default.
    fn booted(line: &str) -> Vec<String> {
        let mut window = postgres();
        window.end.databases.clear();
        window.start.databases.clear();
        let Reading::Present(memory) = &mut window.end.host.memory else { unreachable!() };
        memory.default_huge_page_bytes = Reading::Present(Bytes::MIB_2);
        window.end.host.kernel = Reading::Present(Kernel {
            release: "6.1.0".to_owned(),
            arch: "x86_64".to_owned(),
            parameters: Reading::Present(line.split(' ').map(str::to_owned).collect()),
        });
        window.end.host.hugepages = Reading::Present(vec![pool(16, 16, 0)]);
        found(evaluate(&window)).into_iter().map(|finding| finding.summary).collect()
    }

    #[test]
    fn the_command_line_is_read_as_the_kernel_reads_it() {
        let asked = "20 pages of 2 MiB were asked for at boot, the pool has 16";
        assert_eq!(booted("default_hugepagesz=2M hugepages=0:12,1:8"), [asked]);
        assert_eq!(booted("hugepages=20"), [asked]);
        assert!(booted("hugepages=16 quiet").is_empty());
        assert_eq!(
            booted("hugepagesz=1G hugepagesz=2M hugepages=16 hugepages=4000"),
            ["the kernel ignores hugepages=4000 at boot, and hugepagesz=1G has no count"]
        );
    }
}
