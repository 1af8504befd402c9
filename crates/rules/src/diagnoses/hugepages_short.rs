//! `hugepages-short`: huge pages were asked for and are not there.

use crate::evidence;
use crate::model::huge_pages::{on_base_pages, pool, unreserved_pages};
use crate::rule::{Rule, TaxBase};
use untax_core::finding::Says;
use untax_core::host::Pool;
use untax_core::window::Pair;
use untax_core::{Bytes, Diagnosis, Evidence, Finding, Severity, Unmeasured, Window};

pub const RULE: Rule = Rule {
    id: "hugepages-short",
    summary: "huge pages were asked for, but the pool is too small",
    what: "A pool that is smaller than the need is worse than none: PostgreSQL with \
           huge_pages = try and MySQL with large-pages fall back to small pages with at most a \
           line in the log, while the reserved memory stays idle. The kernel also gives fewer \
           pages than asked for when memory is fragmented, at boot and later, without an error.",
    measured: "The pages that the database needs against the free and unpromised pages of the \
               pool of that size, for a database that asks for huge pages and sits on small \
               ones; and the number on the kernel's command line against the pool. One that tries \
               by default while others use most of the pool is told so, and no more. What it costs \
               is the tax of small-pages.",
    fix: "Grow the pool to the need (vm.nr_hugepages; at boot when memory is fragmented), restart \
          the database, and set huge_pages = on so that a shortage is an error, not a surprise.",
    sources: &[
        "kernel.org: admin-guide/mm/hugetlbpage",
        "postgresql.org: huge_pages, shared_memory_size_in_huge_pages",
        "openshift-kni/performance-addon-operators#279",
    ],
    privilege: "none for the pools; the database's user or root for what it asks for",
    minimum_kernel: "2.6.27 (sysfs pools)",
    cost: "four small files for each pool",
    tax_base: TaxBase::ActiveTime,
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
    let size = asked.size_bytes.value().copied().unwrap_or(Bytes::MIB_2);
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
                "asked for {needed} pages of {size}, {free} are free and not promised: {short} too few"
            ),
            format!("grow the {size} pool by {short} pages, restart the database"),
        )
    } else {
        (
            format!(
                "asked for huge pages and sits on small ones, though {free} are free and not promised now"
            ),
            "restart the database: the pool was too small when it started".to_owned(),
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

/// Pools that came out smaller than the kernel's command line asked for.
fn boot_shortages(window: &Window) -> Vec<Diagnosis> {
    let host = &window.end.host;
    let Some(kernel) = host.kernel.value() else { return Vec::new() };
    let Some(parameters) = kernel.parameters.value() else { return Vec::new() };
    boot_pools(parameters)
        .into_iter()
        .filter_map(|(size, asked)| {
            let got = *pool(host, size)?.total.value()?;
            (got < asked).then(|| Diagnosis {
                database: None,
                says: Says::Found(boot_finding(size, asked, got)),
            })
        })
        .collect()
}

fn boot_finding(size: Bytes, asked: u64, got: u64) -> Finding {
    Finding {
        evidence: vec![
            Evidence::new(&evidence::HUGE_PAGES_AT_BOOT, asked, "/proc/cmdline"),
            Evidence::new(&evidence::POOL_PAGES, got, "/sys/kernel/mm/hugepages"),
        ],
        remedy: Some("hugepage-pool".to_owned()),
        ..Finding::new(
            RULE.id,
            Severity::Medium,
            format!("{asked} pages of {size} were asked for at boot, the pool has {got}"),
            format!("check what shrank the {size} pool, or that the node has the memory for it"),
        )
    }
}

/// The pools on a kernel command line: each `hugepagesz=` is followed by its `hugepages=`. A
/// number per node (`0:8,1:8`) is summed; the default size is 2 MiB unless it says otherwise.
fn boot_pools(parameters: &[String]) -> Vec<(Bytes, u64)> {
    let default = parameters
        .iter()
        .find_map(|parameter| size(parameter.strip_prefix("default_hugepagesz=")?))
        .unwrap_or(Bytes::MIB_2);
    let mut current = default;
    let mut asked = Vec::new();
    for parameter in parameters {
        if let Some(text) = parameter.strip_prefix("hugepagesz=") {
            current = size(text).unwrap_or(default);
        } else if let Some(text) = parameter.strip_prefix("hugepages=") {
            asked.extend(pages(text).map(|pages| (current, pages)));
        }
    }
    asked
}

fn pages(text: &str) -> Option<u64> {
    text.split(',')
        .map(|part| part.rsplit_once(':').map_or(part, |(_, pages)| pages).parse::<u64>().ok())
        .sum()
}

fn size(text: &str) -> Option<Bytes> {
    let unit = text.chars().last()?.to_ascii_lowercase();
    let number: u64 = text.get(..text.len() - 1)?.parse().ok()?;
    let shift = match unit {
        'k' => 10,
        'm' => 20,
        'g' => 30,
        _ => return None,
    };
    Some(Bytes(number.checked_mul(1 << shift)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_window::{found, pool, postgres};
    use untax_core::Reading;

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
    fn boot_parameters_pair_sizes_with_numbers() {
        let parameters: Vec<String> =
            "default_hugepagesz=1G hugepagesz=1G hugepages=64 hugepagesz=2M hugepages=0:8,1:8"
                .split(' ')
                .map(str::to_owned)
                .collect();
        assert_eq!(boot_pools(&parameters), [(Bytes::GIB_1, 64), (Bytes::MIB_2, 16)]);
        assert_eq!(boot_pools(&["hugepages=4".to_owned()]), [(Bytes::MIB_2, 4)]);
        assert_eq!(boot_pools(&["hugepages=x".to_owned()]), []);
    }
}
