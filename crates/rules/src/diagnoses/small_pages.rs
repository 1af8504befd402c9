//! `small-pages`: the data of a database sits on base pages.

use crate::evidence;
use crate::model::base_pages::{Cost, Data};
use crate::model::huge_pages::{pool, size_for, switch_on, unreserved_pages};
use crate::model::hugetlb_limits::{Harm, harm_of_limit, is_limited};
use crate::model::idleness::IDLE_SHARE;
use crate::model::stall::gain::gains_of_cpu_time;
use crate::rule::{Rule, Scope, TaxBase};
use untax_core::finding::Says;
use untax_core::host::tlb_reach;
use untax_core::window::Pair;
use untax_core::{Bytes, Diagnosis, Evidence, Finding, Severity, Tax, Unmeasured, Window};

pub const RULE: Rule = Rule {
    id: "small-pages",
    summary: "the database's memory is mapped with base pages instead of huge pages",
    what: "Every access to memory goes through the TLB, a small cache of page addresses. With 4 \
           KiB pages the TLB covers a few MiB. So random reads of a buffer pool miss it, and the \
           processor walks the page tables. With 2 MiB pages the same entries cover GiB. Each new \
           server process also faults the shared memory into its own page tables again, at best 64 \
           KiB for each fault.",
    method: "The tax is the time in page faults on shared memory, plus random accesses times the \
             calibrated cost of a page walk, as a share of active time.",
    measured: "The rule finds a database whose data is on base pages and is larger than the TLB \
               reaches. Tax = time in page faults on shared memory + random accesses x penalty of \
               an access on small pages. Stacks sampled on each CPU give the time in faults. \
               Without samples, this time is minor faults x the penalty of one fault, calibrated \
               on this host. /proc/PID/stat counts the faults, ended connections included. \
               RssShmem and the kernel's 64 KiB fault-around give the part that shared memory \
               caused. A process that stays pays for each page once. Of its first touches, the tax \
               holds only those that go on for the next hour. The rule estimates them from the \
               memory left to touch and the pace late in the window; the rest is reported as a \
               warm-up. The time in which ended connections unmapped memory is added. Random \
               accesses are rows found by a key (counted by the engine) x blocks x pages of a \
               block. Rows that are written or read in sequence count in the upper bound only. The \
               penalty of an access is calibrated on this host, for one process or for many that \
               take turns on a CPU. The calibration uses page tables as large as those of the \
               database's processes together. Waiting for a CPU is charged in proportion. Where \
               one part cannot be measured, the tax is a lower bound and says so. No hardware \
               counters are used.",
    fix: "Reserve a pool of huge pages for the whole shared memory. In PostgreSQL, SHOW \
          shared_memory_size_in_huge_pages gives its size; vm.nr_hugepages sets the pool of the \
          default page size (Hugepagesize in /proc/meminfo). Then set huge_pages = on (PostgreSQL) \
          or large-pages (MySQL, MariaDB), and restart the database. Without a pool, PostgreSQL \
          uses transparent huge pages where shmem_enabled is always: untax plan --page thp.",
    sources: &[
        "kernel.org: admin-guide/mm/hugetlbpage",
        "postgresql.org: 19.4.5 Linux Huge Pages",
        "mariadb.com: System Variables for Large Pages",
        "kernel.org: filesystems/proc, RssShmem; mm/memory.c, fault_around_bytes",
    ],
    privilege: "root, or the database's own user: maps and status of its processes",
    minimum_kernel: "4.5 (RssShmem)",
    cost: "one status and one stat per process, maps of one process; no smaps",
    tax_base: TaxBase::ActiveTime,
    scope: Scope::Platform,
    evaluate,
};

fn evaluate(window: &Window) -> Vec<Diagnosis> {
    window.databases().flat_map(|pair| evaluate_one(window, &pair)).collect()
}

fn evaluate_one(window: &Window, pair: &Pair) -> Vec<Diagnosis> {
    let says = |says| Diagnosis { database: Some(pair.end.id.clone()), says };
    let unmeasured = |why: String| says(Says::Unmeasured(Unmeasured::new(RULE.id, why)));
    let data = match Data::of(window, pair) {
        Ok(Some(data)) => data,
        Ok(None) => return Vec::new(),
        Err(why) => {
            return vec![unmeasured(format!("which pages the data is on is not known: {why}"))];
        }
    };
    let cost = Cost::of(window, pair);
    let gaps = cost.gaps().into_iter().map(unmeasured);
    let finding = says(Says::Found(finding(&cost, window, pair, &data)));
    std::iter::once(finding).chain(gaps).collect()
}

fn finding(cost: &Cost, window: &Window, pair: &Pair, data: &Data) -> Finding {
    let &Data { bytes, page } = data;
    let demand = cost.demand.value();
    let idle = demand.is_some_and(|demand| demand.on_cpu_s < IDLE_SHARE * pair.seconds);
    let priced = demand.zip(cost.taken_s());
    let method = || {
        let methods: Vec<&str> = cost.parts().map(|part| part.method.as_str()).collect();
        let bound = if cost.is_whole() { "" } else { "; a lower bound, see unmeasured" };
        let active =
            if pair.activity.is_present() { "active time" } else { "time on CPU or runnable" };
        format!("{}, over {active}{bound}", methods.join(" + "))
    };
    let modelled = cost.parts().any(|part| part.modelled);
    let tax = priced
        .map(|(demand, taken_s)| Tax::new(demand.share_of(taken_s), method()).with_model(modelled));
    let gains = priced.map(|(demand, taken_s)| gains_of_cpu_time(window, pair, demand, taken_s));
    // What was measured first: a screen has room for the beginning alone.
    let mut evidence: Vec<Evidence> = cost.parts().flat_map(|part| part.evidence.clone()).collect();
    evidence.extend(memory_evidence(pair, bytes, page));
    evidence.extend(reach(window, page));
    // The group of every pod that asks for no huge pages has a limit of none.
    let is_default = harm_of_limit(&window.end.host, pair.end) == Some(Harm::None);
    let severity = match &tax {
        _ if idle => Severity::Info,
        None if is_default => Severity::Info,
        tax => severity(tax.as_ref(), bytes),
    };
    Finding {
        evidence,
        tax,
        gain: gains.map(|gains| gains.throughput),
        latency_gain: gains.map(|gains| gains.latency),
        remedy: Some("hugepage-pool".to_owned()),
        ..Finding::new(
            RULE.id,
            severity,
            cost.warm_ups()
                .fold(format!("{bytes} of data on pages of {page}"), |summary, warm_up| {
                    format!("{summary}; {warm_up}")
                }),
            fix(window, pair, bytes),
        )
    }
}

fn severity(tax: Option<&Tax>, bytes: Bytes) -> Severity {
    match tax {
        Some(tax) if tax.low >= 0.15 => Severity::High,
        Some(tax) if tax.low >= 0.05 => Severity::Medium,
        Some(tax) if tax.low >= 0.01 => Severity::Low,
        None if bytes >= Bytes::GIB_1 => Severity::Low,
        Some(_) | None => Severity::Info,
    }
}

fn fix(window: &Window, pair: &Pair, bytes: Bytes) -> String {
    let database = pair.end;
    let host = &window.end.host;
    let limited = is_limited(host, database);
    let first = if limited { "first raise its limit on huge pages (hugepage-limit); " } else { "" };
    let then = switch_on(database);
    let Some(size) = size_for(&window.end, database) else {
        return format!("{first}reserve {bytes} of huge pages, {then}, restart the database");
    };
    let asked = database.huge_pages.value();
    let needed = asked.and_then(|asked| asked.needed_pages.value().copied());
    let pages = needed.or(bytes.pages_of(size)).unwrap_or_default();
    let free = pool(host, size).and_then(unreserved_pages).unwrap_or_default();
    if free >= pages {
        return format!(
            "{first}let it use the {free} free huge pages of {size}: {then}, restart the database"
        );
    }
    format!("{first}reserve {pages} huge pages of {size}, {then}, restart the database")
}

fn memory_evidence(pair: &Pair, bytes: Bytes, page: Bytes) -> Vec<Evidence> {
    let maps = format!("/proc/{}/maps", pair.end.pid);
    vec![
        Evidence::new(&evidence::DATA_BYTES, bytes.0, maps.clone()),
        Evidence::new(&evidence::PAGE_SIZE, page.0, maps),
    ]
}

/// How much memory the data TLB covers with pages of that size.
fn reach(window: &Window, page: Bytes) -> Option<Evidence> {
    let tlbs = window.end.host.tlb.value()?;
    let reach = tlb_reach(tlbs, page)?;
    Some(Evidence::new(&evidence::TLB_REACH, reach.0, "CPUID"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_window::{self, found, postgres};
    use untax_core::Reading;
    use untax_core::activity::{Doing, Sampled};

    #[test]
    fn the_tax_is_faults_and_walks_over_what_the_cpus_did() {
        let findings = found(evaluate(&postgres()));
        let tax = findings[0].tax.as_ref().unwrap();
        // 2e6 faults, all of them shared (64 GiB / 64 KiB = 2^20 of 2^20 living ones), 1 us each;
        // 4e6 accesses x 2 pages x 30 ns: 2.0 s + 0.24 s of 20 busy seconds.
        let expected = (2.24 + 300.0 * 2.24 / 20.0) / 312.0;
        assert!((tax.share - expected).abs() < 1e-9, "{} against {expected}", tax.share);
        assert!(tax.low < tax.share && tax.share < tax.high);
        let gain = findings[0].gain.unwrap();
        assert!((gain.factor - 1.0 / (1.0 - 2.24 / 20.0)).abs() < 1e-9);
    }

    #[test]
    fn faults_cannot_take_more_than_the_system_time() {
        let mut window = postgres();
        window.end.databases[0].counters.system_s = Reading::Present(untax_core::Seconds(0.5));
        window.end.databases[0].counters.accesses = Reading::Absent("not asked".to_owned());
        let findings = found(evaluate(&window));
        let tax = findings[0].tax.as_ref().unwrap();
        assert!(tax.high <= (0.5 + 300.0 * 0.5 / 20.0) / 312.0 + 1e-9);
        assert!(tax.method.contains("lower bound"));
    }

    #[test]
    fn sampled_time_in_faults_goes_before_calculated() {
        let mut window = postgres();
        test_window::trace(&mut window, &[(Doing::OnCpu, 20.0)]);
        let Reading::Present(activities) = &mut window.activity else { panic!("it was traced") };
        activities[0].slices[0].sampled =
            Some(Sampled { faulting_on_data: Some(250), ..Sampled::unknown(1000) });
        window.end.databases[0].counters.accesses = Reading::Absent("not asked".to_owned());
        let findings = found(evaluate(&window));
        let tax = findings[0].tax.as_ref().unwrap();
        // A quarter of 20 s, whatever faults were calibrated to cost.
        assert!((tax.share - 0.25).abs() < 1e-9, "{}", tax.share);
        assert!(tax.method.starts_with("sampled time in page faults"), "{}", tax.method);
    }

    #[test]
    fn a_warm_up_is_no_tax_and_is_said_to_be_one() {
        let mut window = postgres();
        test_window::trace(&mut window, &[(Doing::OnCpu, 20.0)]);
        let Reading::Present(activities) = &mut window.activity else { panic!("it was traced") };
        activities[0].slices[0].sampled =
            Some(Sampled { faulting_on_data: Some(400), ..Sampled::unknown(1000) });
        window.end.databases[0].counters.accesses = Reading::Absent("not asked".to_owned());
        // Its 70 processes stay, and mapped half of what 6 GiB each are.
        for (snapshot, gib) in [(&mut window.start, 0), (&mut window.end, 210)] {
            let database = &mut snapshot.databases[0];
            database.memory.mapped_shared_bytes = Reading::Present(Bytes(gib << 30));
            database.counters.minor_faults_living = database.counters.minor_faults.clone();
        }
        let findings = found(evaluate(&window));
        let tax = findings[0].tax.as_ref().unwrap();
        // Ten seconds of the hour to come, of the 40 % of the time on CPU.
        assert!((tax.share - 0.4 * 10.0 / 3600.0).abs() < 1e-9, "{}", tax.share);
        assert_eq!(findings[0].severity, Severity::Info);
        let said = "; warm-up: processes touch the data for the first time, for 10 s at most";
        assert!(findings[0].summary.ends_with(said), "{}", findings[0].summary);
        assert!(findings[0].gain.is_some_and(|gain| gain.high < 1.01));
    }

    #[test]
    fn huge_pages_and_small_databases_are_clean() {
        let mut window = postgres();
        window.end.databases[0].memory.page_size_bytes = Reading::Present(Bytes::MIB_2);
        assert!(evaluate(&window).is_empty());
        let mut window = postgres();
        window.end.databases[0].memory.shared_bytes = Reading::Present(Bytes::from_mib(32));
        assert!(evaluate(&window).is_empty());
    }

    #[test]
    fn the_fix_counts_pages_of_the_size_that_the_database_takes() {
        let fix = |window: &Window| found(evaluate(window)).remove(0).fix;
        let mut window = postgres();
        let two = "reserve 3170 huge pages of 2 MiB, set huge_pages = on, restart the database";
        assert_eq!(fix(&window), two);
        let Reading::Present(asked) = &mut window.end.databases[0].huge_pages else { panic!() };
        asked.size_bytes = Reading::Present(Bytes::from_mib(512));
        asked.needed_pages = Reading::Present(13);
        assert!(fix(&window).starts_with("reserve 13 huge pages of 512 MiB"), "{}", fix(&window));
        window.end.databases[0].huge_pages = Reading::Absent("not asked".to_owned());
        assert!(fix(&window).starts_with("reserve 6 GiB of huge pages"), "{}", fix(&window));
        let Reading::Present(memory) = &mut window.end.host.memory else { panic!() };
        memory.default_huge_page_bytes = Reading::Present(Bytes::GIB_1);
        assert!(fix(&window).starts_with("reserve 6 huge pages of 1 GiB"), "{}", fix(&window));
    }

    #[test]
    fn free_pages_are_used_and_not_reserved_again() {
        let mut window = postgres();
        window.end.host.hugepages = Reading::Present(vec![test_window::pool(3200, 3200, 0)]);
        let fix = found(evaluate(&window)).remove(0).fix;
        assert!(fix.starts_with("let it use the 3200 free huge pages of 2 MiB"), "{fix}");
    }

    #[test]
    fn a_pod_without_a_pool_on_its_node_is_healthy_until_a_tax_is_measured() {
        let mut window = postgres();
        window.end.host.hugepages = Reading::Present(vec![test_window::pool(0, 0, 0)]);
        let limit = test_window::limit("/pod", Bytes(0), Bytes(0));
        window.end.databases[0].cgroup = test_window::cgroup(vec![limit]);
        let severity = |window: &Window| found(evaluate(window))[0].severity;
        assert_ne!(severity(&window), Severity::Info, "what was measured counts");
        window.calibration = Reading::absent("not calibrated");
        assert_eq!(severity(&window), Severity::Info);
        window.end.host.hugepages = Reading::Present(vec![test_window::pool(4000, 4000, 0)]);
        assert_eq!(severity(&window), Severity::Low, "somebody reserved pages for it");
    }

    #[test]
    fn without_calibration_the_finding_stands_but_its_tax_is_unmeasured() {
        let mut window = postgres();
        window.calibration = Reading::Denied("no memory for it".to_owned());
        let diagnoses = evaluate(&window);
        assert_eq!(diagnoses.len(), 3, "a finding and a reason for each part");
        let findings = found(diagnoses);
        assert!(findings[0].tax.is_none() && findings[0].gain.is_none());
    }
}
