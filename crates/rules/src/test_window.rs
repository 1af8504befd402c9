//! Windows for the tests of rules: one where nothing was read, and one with a busy PostgreSQL
//! whose readings a test then changes.

use crate::rule::Rule;
use Reading::Present;
use jiff::Timestamp;
use untax_core::activity::{Call, Cause, Doing, Polling, Sampled, Slice, Spent};
use untax_core::calibration::TouchPenalty;
use untax_core::database::{
    Accesses, Cgroup, Counters, DatabaseMemory, HugePageUse, HugetlbLimit, IoLimit, Limited, Model,
    Segment,
};
use untax_core::finding::Says;
use untax_core::host::{Cpu, CpuTime, HostFacts, Memory, NumaNode, Pool, Thp};
use untax_core::{
    Activity, Bytes, Calibration, Database, Diagnosis, Finding, Interval, Reading, Seconds,
    Snapshot, Window,
};

/// Why nothing is known that a test does not set.
const WHY: &str = "not read";

fn gap<T>() -> Reading<T> {
    Reading::absent(WHY)
}

/// Makes a database one of another engine.
pub fn make(database: &mut Database, engine: &str) {
    database.engine = engine.to_owned();
    database.traits = untax_engines::traits(engine).expect("an engine has traits");
}

fn unread_database() -> Database {
    Database {
        product: "PostgreSQL".to_owned(),
        traits: untax_engines::traits("postgres").expect("an engine has traits"),
        model: Model::Process,
        pids: vec![4012],
        ..Database::unknown("postgres", 7, WHY)
    }
}

fn snapshot(uptime_s: f64, host: HostFacts, databases: Vec<Database>) -> Snapshot {
    Snapshot { databases, ..Snapshot::of_host(Timestamp::UNIX_EPOCH, uptime_s, host) }
}

/// A window of ten seconds over a database of which nothing could be read.
pub fn unread() -> Window {
    let at = |uptime| snapshot(uptime, HostFacts::unknown(WHY), vec![unread_database()]);
    window(at(100.0), at(110.0))
}

/// A window in which the kernel's workers used no CPU, and nothing else was seen.
fn window(start: Snapshot, end: Snapshot) -> Window {
    Window { kernel_workers_s: Some(Seconds(0.0)), ..Window::unseen(start, end, WHY) }
}

fn host(busy_s: f64) -> HostFacts {
    HostFacts {
        base_page_bytes: Present(Bytes::KIB_4),
        hugepages: Present(vec![pool(0, 0, 0)]),
        thp: Present(Thp { pmd_bytes: Present(Bytes::MIB_2), ..Thp::unknown("madvise", WHY) }),
        memory: Present(Memory::unknown(Bytes(24 << 30), WHY)),
        cpu_time: Present(CpuTime {
            busy_s: Seconds(busy_s),
            interrupts_s: Some(Seconds(0.0)),
            idle_s: Seconds(50.0),
            steal_s: Seconds(0.0),
        }),
        ..HostFacts::unknown(WHY)
    }
}

/// The 2 MiB pool of a host.
pub fn pool(total: u64, free: u64, reserved: u64) -> Pool {
    Pool {
        size_bytes: Bytes::MIB_2,
        node: None,
        total: Present(total),
        free: Present(free),
        reserved: Present(reserved),
        surplus: Present(0),
    }
}

fn database(scale: f64) -> Database {
    let blank = unread_database();
    Database {
        started_ticks: Present(1),
        pids: (4012..4082).collect(),
        memory: DatabaseMemory {
            shared_bytes: Present(Bytes(6 << 30)),
            page_size_bytes: Present(Bytes::KIB_4),
            page_table_bytes: Present(Bytes::from_mib(522)),
            mapped_shared_bytes: Present(Bytes(64 << 30)),
            segments: Present(vec![segment(Bytes(6 << 30), Bytes::KIB_4)]),
            ..blank.memory
        },
        huge_pages: Present(HugePageUse {
            asked: "try".to_owned(),
            size_bytes: Present(Bytes::MIB_2),
            needed_pages: Present(3170),

            lengths_bytes: Vec::new(),
            source: "shared_memory_size_in_huge_pages".to_owned(),
        }),
        counters: Counters {
            on_cpu_s: Present(Seconds(12.0 * scale)),
            runnable_s: Present(Seconds(300.0 * scale)),
            system_s: Present(Seconds(6.0 * scale)),
            minor_faults: Present((2e6 * scale) as u64),
            minor_faults_living: Present(1 << 20),
            major_faults: Present(0),
            accesses: Present(Accesses {
                count: (4e6 * scale) as u64,
                counter: "pg_stat_database.blks_hit".to_owned(),
                pages_each: Interval::new(1.0, 2.0, 4.0),
                by_key: None,
            }),
            ..blank.counters
        },
        ..blank
    }
}

/// A mapping shared by server processes.
pub fn segment(bytes: Bytes, page: Bytes) -> Segment {
    Segment {
        name: "/dev/zero (deleted)".into(),
        bytes,
        shared: true,
        page_size_bytes: Present(page),
    }
}

/// A limit of the group `cgroup` on 2 MiB pages.
pub fn limit(cgroup: &str, max: Bytes, usage: Bytes) -> HugetlbLimit {
    HugetlbLimit {
        cgroup: cgroup.to_owned(),
        size_bytes: Bytes::MIB_2,
        max_bytes: Present(max),
        rsvd_max_bytes: gap(),
        usage_bytes: Present(usage),
    }
}

/// Groups with those limits, nearest first.
pub fn cgroup(limits: Vec<HugetlbLimit>) -> Reading<Cgroup> {
    let path = limits[0].cgroup.clone();
    Present(Cgroup {
        hugetlb: Present(limits),
        ..Cgroup::unknown([("unified".to_owned(), path)].into(), WHY)
    })
}

/// A window of ten seconds over a saturated PostgreSQL with 6 GiB on 4 KiB pages.
pub fn postgres() -> Window {
    Window {
        calibration: Present(Calibration {
            taken_at: Timestamp::UNIX_EPOCH,
            cpu_model: "test".to_owned(),
            kernel_release: "6.1".to_owned(),
            source: "check".to_owned(),
            write_fault_ns: None,
            unmap_ns: None,
            touches_missing: None,
            minor_fault_ns: Interval::new(800.0, 1000.0, 1200.0),
            touches: vec![TouchPenalty {
                working_set_bytes: Bytes::GIB_1,
                taking_turns: false,
                extra_ns: Interval::new(20.0, 30.0, 40.0),
            }],
        }),
        ..window(
            snapshot(100.0, host(0.0), vec![database(0.0)]),
            snapshot(110.0, host(20.0), vec![database(1.0)]),
        )
    }
}

/// The findings among the diagnoses.
pub fn found(diagnoses: Vec<Diagnosis>) -> Vec<Finding> {
    let finding = |diagnosis: Diagnosis| match diagnosis.says {
        Says::Found(finding) => Some(finding),
        Says::Unmeasured(_) => None,
    };
    diagnoses.into_iter().filter_map(finding).collect()
}

/// The reasons of what was not measured, among the diagnoses.
pub fn gaps(diagnoses: Vec<Diagnosis>) -> Vec<String> {
    let gap = |diagnosis: Diagnosis| match diagnosis.says {
        Says::Unmeasured(gap) => Some(gap.why),
        Says::Found(_) => None,
    };
    diagnoses.into_iter().filter_map(gap).collect()
}

/// Lets the test window's database do this in one slice, all of threads that serve clients. Those that they wait for
/// compute meanwhile.
pub fn trace(window: &mut Window, times: &[(Doing, f64)]) {
    let spent = times.iter().map(|(doing, time_s)| {
        let is_for_others = matches!(doing, Doing::Futex | Doing::PollPeer);
        let behind = is_for_others.then_some(Cause::Cpu);
        Spent { behind, ..Spent::own(Polling::Forever, *doing, Seconds(*time_s)) }
    });
    trace_spent(window, spent.collect());
}

/// Lets it wait for others, which do this meanwhile.
pub fn trace_behind(window: &mut Window, times: &[(Doing, f64)], behind: &[(Cause, f64)]) {
    let own =
        |(doing, time_s): &(Doing, f64)| Spent::own(Polling::Forever, *doing, Seconds(*time_s));
    let waits = behind.iter().map(|(cause, time_s)| Spent {
        behind: Some(*cause),
        ..Spent::own(Polling::Forever, Doing::Futex, Seconds(*time_s))
    });
    trace_spent(window, times.iter().map(own).chain(waits).collect());
}

/// The same of whatever threads.
pub fn trace_spent(window: &mut Window, spent: Vec<Spent>) {
    // What the kernel counts would have to agree with it.
    window.start.databases[0].counters.on_cpu_s = gap();
    let slice = Slice::traced(Seconds(10.0), spent);
    let activity = Activity::traced("postgres:7", Seconds(10.0), vec![slice]);
    window.activity = Present(vec![Activity { threads: 70, ..activity }]);
}

/// A rule's tax; the same and that of `vm-steal` where the hypervisor took half of the time for which
/// CPUs were occupied.
pub fn beside_steal(rule: &Rule, mut window: Window) -> [f64; 3] {
    let tax = |rule: &Rule, window: &Window| {
        found((rule.evaluate)(window)).first().and_then(|f| f.tax.as_ref()).map_or(0.0, |t| t.share)
    };
    let without = tax(rule, &window);
    let before = window.start.host.cpu_time.value().copied().unwrap();
    if let Present(time) = &mut window.end.host.cpu_time {
        time.steal_s = before.steal_s + (time.busy_s - before.busy_s);
    }
    [without, tax(rule, &window), tax(crate::catalogue::find("vm-steal").unwrap(), &window)]
}

/// Taxes are as expected.
pub fn about(expected: [f64; 3], taxes: [f64; 3]) {
    let near = expected.iter().zip(&taxes).all(|(expected, tax)| (expected - tax).abs() < 1e-9);
    assert!(near, "{taxes:?} rather than {expected:?}");
}

/// Puts the test window's database into a group with this limit.
pub fn limit_io(window: &mut Window, io: IoLimit) {
    let groups = cgroup(vec![limit("/db", Bytes(1), Bytes(0))]);
    window.end.databases[0].cgroup =
        groups.map(|groups| Cgroup { io: Present(vec![io]), ..groups });
}

/// A limit on `vda`.
pub fn io_limit(what: Limited, per_s: u64) -> IoLimit {
    IoLimit { cgroup: "/db".to_owned(), device: "254:0".to_owned(), what, per_s }
}

/// Of a thousand samples of the test window's database, which has to be traced, so many were in
/// system calls of this kind.
pub fn sample(window: &mut Window, call: Call, count: u64) {
    let mut calling = [0; Call::ALL.len()];
    calling[call as usize] = count;
    set_samples(window, Sampled { calling: Some(calling), ..SAMPLED });
}

/// And so many got pages of files that were not in the page cache.
pub fn sample_reading(window: &mut Window, count: u64) {
    set_samples(window, Sampled { reading: Some(count), completing: Some(0), ..SAMPLED });
}

/// And so many had just woken another thread.
pub fn sample_waking(window: &mut Window, count: u64) {
    set_samples(window, Sampled { waking: Some(count), ..SAMPLED });
}

/// And so many were in page faults.
pub fn sample_faulting(window: &mut Window, count: u64) {
    set_samples(window, Sampled { faulting: Some(count), ..SAMPLED });
}

const SAMPLED: Sampled = Sampled::unknown(1000);

fn set_samples(window: &mut Window, sampled: Sampled) {
    let Present(activities) = &mut window.activity else { panic!("it is not traced") };
    activities[0].slices[0].sampled = Some(sampled);
}

/// A processor with so many logical CPUs.
pub fn cpus(logical: u32) -> Cpu {
    Cpu::unknown(logical, WHY)
}

/// Two NUMA nodes with two CPUs each.
pub fn two_nodes() -> Vec<NumaNode> {
    let node = |(node, cpus): (u32, &str)| NumaNode {
        node,
        cpus: Present(cpus.to_owned()),
        total_bytes: Present(Bytes(12 << 30)),
        free_bytes: gap(),
        distances: gap(),
    };
    [(0, "0-1"), (1, "2-3")].map(node).into()
}
