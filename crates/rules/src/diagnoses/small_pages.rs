//! `small-pages`: the data of a database sits on base pages.

mod walks;

use crate::model::accounting::Demand;
use crate::model::huge_pages::on_base_pages;
use crate::model::stall::IDLE_SHARE;
use crate::rule::Rule;
use untax_core::database::Model;
use untax_core::finding::Says;
use untax_core::host::tlb_reach;
use untax_core::reading::Gap;
use untax_core::window::Pair;
use untax_core::{
    Bytes, Database, Diagnosis, Evidence, Finding, Interval, Reading, Severity, Tax, Unmeasured,
    Window,
};

pub const RULE: Rule = Rule {
    id: "small-pages",
    summary: "the database's memory is mapped with base pages instead of huge pages",
    what: "Every access to memory goes through the TLB, a small cache of page addresses. With \
           4 KiB pages its reach is a few MiB, so random reads of a buffer pool miss it and the \
           processor walks the page tables; with 2 MiB pages the same entries reach GiB. And every \
           new server process faults the shared memory into its own page tables again, one fault \
           for 64 KiB at best.",
    measured: "Found when the mapping that holds the data is on base pages and is larger than the \
               TLB reaches. Tax = time in page faults on shared memory + accesses to cached data x \
               pages touched per access x penalty of a touch on small pages. The time in faults \
               comes from stacks sampled on each CPU. Without samples it is minor faults x the \
               penalty of one, calibrated on this host: faults from /proc/PID/stat, ended \
               connections included; the part that shared memory caused, from RssShmem and the \
               kernel's 64 KiB fault-around. Unmapping by connections that ended is added. \
               Accesses come from the engine's own counter. The penalty of a touch is calibrated \
               on this host, for one process or for many that take turns on a CPU, with page \
               tables as large as theirs together. Waiting for a CPU is charged in proportion. \
               Where one part cannot be measured, the tax is a lower bound and says so. No \
               hardware counters are used.",
    fix: "Reserve a pool of huge pages for the whole shared memory (PostgreSQL: SHOW \
          shared_memory_size_in_huge_pages) with vm.nr_hugepages, set huge_pages = on \
          (PostgreSQL) or large-pages (MySQL, MariaDB), restart the database.",
    sources: &[
        "kernel.org: admin-guide/mm/hugetlbpage",
        "postgresql.org: 19.4.5 Linux Huge Pages",
        "mariadb.com: System Variables for Large Pages",
        "kernel.org: filesystems/proc, RssShmem; mm/memory.c, fault_around_bytes",
    ],
    privilege: "root, or the database's own user: maps and status of its processes",
    minimum_kernel: "4.5 (RssShmem)",
    cost: "one status and one stat per process, maps of one process; no smaps",
    evaluate,
};

/// Shared memory smaller than this gains nothing that could be told from noise: the second-level
/// TLB of any current server processor reaches 4 to 12 MiB with 4 KiB pages.
const WORTH_BYTES: Bytes = Bytes::from_mib(64);

/// `fault_around_bytes` of mm/memory.c: a read fault on shared memory maps this much at once.
const FAULT_AROUND: Bytes = Bytes(64 << 10);

/// How far the estimate of the shared part of the faults may be off, down and up: `RssShmem`
/// counts 64 KiB for a read fault, but 4 KiB for a write fault.
const SHARED_FAULTS_OFF: (f64, f64) = (0.8, 1.25);

fn evaluate(window: &Window) -> Vec<Diagnosis> {
    window.databases().flat_map(|pair| evaluate_one(window, &pair)).collect()
}

/// Redis takes no huge pages from a pool and MongoDB none either: `thp-mode` speaks for them.
fn uses_pools(engine: &str) -> bool {
    !matches!(engine, "redis" | "mongodb")
}

fn evaluate_one(window: &Window, pair: &Pair) -> Vec<Diagnosis> {
    let database = pair.end;
    if !uses_pools(&database.engine) {
        return Vec::new();
    }
    let says = |says| Diagnosis { database: Some(database.id.clone()), says };
    let unmeasured =
        |why: String| says(Says::Unmeasured(Unmeasured { rule: RULE.id.to_owned(), why }));
    let memory = &database.memory;
    let (Some(bytes), Some(page), Some(base)) = (
        memory.shared_bytes.value().copied(),
        memory.page_size_bytes.value().copied(),
        on_base_pages(&window.end.host, database),
    ) else {
        let why = memory.shared_bytes.why().or(memory.page_size_bytes.why()).unwrap_or_default();
        return vec![unmeasured(format!("which pages the data is on is not known: {why}"))];
    };
    if !base || bytes < WORTH_BYTES {
        return Vec::new();
    }
    let cost = Cost::of(window, pair);
    let mut gaps: Vec<Diagnosis> = cost.gaps().into_iter().map(unmeasured).collect();
    gaps.insert(0, says(Says::Found(cost.finding(window, pair, bytes, page))));
    gaps
}

/// The two parts of the tax in seconds on CPU, and what they are shares of.
struct Cost {
    demand: Reading<Demand>,
    /// None for an engine of one process: it faults its memory in once, not for each client.
    faults: Option<Reading<Part>>,
    walks: Reading<Part>,
}

/// One part of the tax with its evidence.
struct Part {
    taken_s: Interval,
    how: String,
    evidence: Vec<Evidence>,
}

impl Cost {
    fn of(window: &Window, pair: &Pair) -> Self {
        Self {
            demand: Demand::of(window, pair),
            faults: (pair.end.model == Model::Process).then(|| fault_part(window, pair)),
            walks: walks::part(window, pair),
        }
    }

    fn gaps(&self) -> Vec<String> {
        if let Some(why) = self.demand.why() {
            return vec![format!("tax: {why}")];
        }
        let part = |name: &str, part: &Reading<Part>| Some(format!("{name}: {}", part.why()?));
        let faults = self.faults.as_ref().and_then(|faults| part("minor faults", faults));
        faults.into_iter().chain(part("page walks", &self.walks)).collect()
    }

    fn finding(self, window: &Window, pair: &Pair, bytes: Bytes, page: Bytes) -> Finding {
        let all: Vec<Reading<Part>> = self.faults.into_iter().chain([self.walks]).collect();
        let whole = all.iter().all(Reading::is_present);
        let parts: Vec<Part> = all.into_iter().filter_map(Reading::into_value).collect();
        let taken = parts.iter().map(|part| part.taken_s).reduce(Interval::plus);
        let demand = self.demand.into_value();
        let idle = demand.is_some_and(|demand| demand.on_cpu_s < IDLE_SHARE * pair.seconds);
        let priced = demand.zip(taken);
        let method = || {
            let hows: Vec<&str> = parts.iter().map(|part| part.how.as_str()).collect();
            let bound = if whole { "" } else { "; a lower bound, see unmeasured" };
            let active =
                if pair.activity.is_present() { "active time" } else { "time on CPU or runnable" };
            format!("{}, over {active}{bound}", hows.join(" + "))
        };
        let tax = priced.map(|(demand, taken)| Tax::new(demand.share_of(taken), method()));
        let gain = priced.map(|(demand, taken)| demand.gain_of(taken).into());
        // What was measured first: a screen has room for the beginning alone.
        let mut evidence: Vec<Evidence> =
            parts.into_iter().flat_map(|part| part.evidence).collect();
        evidence.extend(memory_evidence(pair, bytes, page));
        evidence.extend(reach(window, page));
        Finding {
            rule: RULE.id.to_owned(),
            severity: if idle { Severity::Info } else { severity(tax.as_ref(), bytes) },
            summary: format!("{bytes} of data on pages of {page}"),
            fix: fix(pair, bytes),
            evidence,
            tax,
            gain,
            remedy: Some("hugepage-pool".to_owned()),
        }
    }
}

/// The share of active time that this rule charges for faults of new server processes: what
/// starting them costs is not to be charged for it again.
pub fn share_of_faults(window: &Window, pair: &Pair) -> f64 {
    let charged = charges(window, pair) && pair.end.model == Model::Process;
    let part = || {
        let demand = Demand::of(window, pair).into_value()?;
        Some(demand.share_of(fault_part(window, pair).into_value()?.taken_s).mid)
    };
    if charged { part().unwrap_or(0.0) } else { 0.0 }
}

/// Whether this rule charges anything: what it only names is left to who else may.
fn charges(window: &Window, pair: &Pair) -> bool {
    let is_charge = |says: &Says| matches!(says, Says::Found(found) if found.tax.is_some());
    evaluate_one(window, pair).iter().any(|diagnosis| is_charge(&diagnosis.says))
}

/// The time on CPU that this rule charges, s: what else makes a process find its memory in no cache is
/// not to charge it again.
pub fn charged_s(window: &Window, pair: &Pair) -> f64 {
    if !charges(window, pair) {
        return 0.0;
    }
    let Cost { faults, walks, .. } = Cost::of(window, pair);
    let parts = faults.into_iter().chain([walks]).filter_map(Reading::into_value);
    parts.map(|part| part.taken_s.mid).sum()
}

fn severity(tax: Option<&Tax>, bytes: Bytes) -> Severity {
    match tax {
        Some(tax) if tax.share >= 0.15 => Severity::High,
        Some(tax) if tax.share >= 0.05 => Severity::Medium,
        Some(tax) if tax.share >= 0.01 => Severity::Low,
        None if bytes >= Bytes::GIB_1 => Severity::Low,
        Some(_) | None => Severity::Info,
    }
}

fn fix(pair: &Pair, bytes: Bytes) -> String {
    let database = pair.end;
    let needed = database.huge_pages.value().and_then(|asked| asked.needed_pages.value().copied());
    let pages = needed.or(bytes.pages_of(Bytes::MIB_2)).unwrap_or_default();
    let setting = match database.engine.as_str() {
        "postgres" => "huge_pages = on",
        "mysql" => "large_pages = ON",
        "oracle" => "USE_LARGE_PAGES = ONLY",
        _ => "its setting for huge pages",
    };
    format!("reserve {pages} huge pages of 2 MiB, set {setting}, restart the database")
}

fn memory_evidence(pair: &Pair, bytes: Bytes, page: Bytes) -> Vec<Evidence> {
    let maps = format!("/proc/{}/maps", pair.end.pid);
    vec![
        Evidence::new("memory that holds the data", bytes.0, "bytes", maps.clone()),
        Evidence::new("page size behind it", page.0, "bytes", maps),
    ]
}

/// How much memory the data TLB covers with pages of that size.
fn reach(window: &Window, page: Bytes) -> Option<Evidence> {
    let tlbs = window.end.host.tlb.value()?;
    let reach = tlb_reach(tlbs, page)?;
    Some(Evidence::new("TLB reach at that page size", reach.0, "bytes", "CPUID"))
}

/// What page faults on the shared memory took: sampled where stacks can be, otherwise calculated;
/// and what unmapping it again took when processes ended.
fn fault_part(window: &Window, pair: &Pair) -> Reading<Part> {
    let part = || {
        let faults = pair
            .growth("minor faults", |d| d.counters.minor_faults.clone().map(|n| n as f64))
            .into_result()?;
        let shared = shared_share(window, pair).into_result()?;
        let demand = Demand::of(window, pair).into_value();
        let share = pair.activity.value().and_then(|activity| activity.share_faulting_on_data());
        let sampled = share.zip(demand.map(|demand| demand.on_cpu_s));
        let counted = fault_evidence(pair, faults, shared.mid);
        let (faulting_s, how, evidence) = if let Some((share, on_cpu_s)) = sampled {
            (share.scale(on_cpu_s), SAMPLED, [sampled_evidence(share), counted].concat())
        } else {
            let (faulting_s, penalty) = calculated(window, pair, faults, shared)?;
            (faulting_s, CALCULATED, [counted, penalty].concat())
        };
        // What a process mapped is unmapped again when it ends: connections that stay never pay.
        let unmap_ns = window.calibration.value().and_then(|calibration| calibration.unmap_ns);
        let ended =
            pair.growth("faults of ended processes", ended_faults).into_value().unwrap_or_default();
        let unmapping_s = unmap_ns.unwrap_or(Interval::exact(0.0)).times(shared).scale(ended / 1e9);
        Ok(Part { taken_s: faulting_s.plus(unmapping_s), how: how.to_owned(), evidence })
    };
    part().into()
}

const SAMPLED: &str = "sampled time in page faults on shared memory";
const CALCULATED: &str = "minor faults on shared memory x calibrated penalty";

/// Without samples: the faults, each at the penalty that was calibrated.
fn calculated(
    window: &Window,
    pair: &Pair,
    faults: f64,
    shared: Interval,
) -> Result<(Interval, Vec<Evidence>), Gap> {
    let penalty = window.calibration.as_ref().map(|c| c.minor_fault_ns).into_result()?;
    let system_s =
        pair.growth("system time", |d| d.counters.system_s.clone().map(|s| s.0)).into_result()?;
    // Faults are served in the kernel: they cannot have taken more than the system time.
    let taken_s = shared.times(penalty).scale(faults / 1e9).clamp(0.0, system_s);
    let evidence =
        Evidence::new("penalty of one minor fault", penalty.mid / 1e9, "s", "calibrated here");
    Ok((taken_s, vec![evidence]))
}

fn sampled_evidence(share: Interval) -> Vec<Evidence> {
    let name = "page faults on shared memory, of its time on CPU";
    vec![Evidence::new(name, share.mid, "share", "stacks, sampled")]
}

fn ended_faults(database: &Database) -> Reading<f64> {
    let counters = &database.counters;
    counters.minor_faults.as_ref().and_then(|all| {
        counters.minor_faults_living.clone().map(|living| all.saturating_sub(living) as f64)
    })
}

fn fault_evidence(pair: &Pair, faults: f64, shared: f64) -> Vec<Evidence> {
    let per_second = faults / pair.seconds;
    vec![
        Evidence::new("minor faults", per_second, "1/s", "/proc/PID/stat, ended ones included"),
        Evidence::new("of them on shared memory", shared, "share", "RssShmem of the processes"),
    ]
}

/// The share of a database's minor faults that mapping the shared memory caused, over all samples
/// of its processes: those inside the window saw clients that came and went.
fn shared_share(window: &Window, pair: &Pair) -> Reading<Interval> {
    let database = pair.end;
    let at_end = || {
        let mapped = database.memory.mapped_shared_bytes.clone().into_result()?;
        Ok((mapped, database.counters.minor_faults_living.clone().into_result()?))
    };
    Reading::from(at_end()).and_then(|at_end| {
        let inside = window.samples.iter().filter(|sample| sample.database == database.id);
        let inside = inside.map(|sample| (sample.mapped_shared_bytes, sample.minor_faults));
        let (mapped, faults) = inside
            .chain([at_end])
            .fold((0.0, 0.0), |(mapped, faults), (m, f)| (mapped + m.0 as f64, faults + f as f64));
        if faults == 0.0 {
            return Reading::Absent("its living processes had no minor faults".to_owned());
        }
        let shared = mapped / FAULT_AROUND.0 as f64 / faults;
        let (down, up) = SHARED_FAULTS_OFF;
        Reading::Present(Interval::new(shared * down, shared, shared * up).clamp(0.0, 1.0))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_window::{self, found, postgres};
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
        activities[0].slices[0].sampled = Some(Sampled {
            per_s: None,
            on_cpu: 1000,
            faulting: None,
            faulting_on_data: Some(250),
            reading: None,
            completing: None,
            calling: None,
        });
        window.end.databases[0].counters.accesses = Reading::Absent("not asked".to_owned());
        let findings = found(evaluate(&window));
        let tax = findings[0].tax.as_ref().unwrap();
        // A quarter of 20 s, whatever faults were calibrated to cost.
        assert!((tax.share - 0.25).abs() < 1e-9, "{}", tax.share);
        assert!(tax.method.starts_with("sampled time in page faults"), "{}", tax.method);
    }

    #[test]
    fn clients_that_came_and_went_are_known_from_samples() {
        let mut window = postgres();
        // At the end only processes without shared memory are left.
        window.end.databases[0].memory.mapped_shared_bytes = Reading::Present(Bytes(0));
        let share = |window: &Window| {
            let pair = window.databases().next().unwrap();
            shared_share(window, &pair).into_value().unwrap().mid
        };
        assert!(share(&window) < 1e-9);
        window.samples = vec![untax_core::window::FaultSample {
            database: "postgres:7".to_owned(),
            mapped_shared_bytes: Bytes(3 << 36),
            page_table_bytes: None,
            minor_faults: 3 << 20,
        }];
        assert!((share(&window) - 0.75).abs() < 1e-9);
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
    fn without_calibration_the_finding_stands_but_its_tax_is_unmeasured() {
        let mut window = postgres();
        window.calibration = Reading::Denied("no memory for it".to_owned());
        let diagnoses = evaluate(&window);
        assert_eq!(diagnoses.len(), 3, "a finding and a reason for each part");
        let findings = found(diagnoses);
        assert!(findings[0].tax.is_none() && findings[0].gain.is_none());
    }
}
