//! Windows of any length: what a rule finds depends on rates and shares, not on the length of a window.

use crate::catalogue::RULES;
use crate::test_io::{flow, io};
use crate::test_window;
use Reading::Present;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use untax_core::activity::{Call, Doing, Longest, Sampled};
use untax_core::database::{CpuLimit, MemoryGroup, Model, TcpCounts};
use untax_core::finding::Says;
use untax_core::io::{Direction, Role};
use untax_core::network::{Conntrack, ConntrackLimit, DatabaseNetwork, Links, Refused, Way};
use untax_core::pressure::{GroupMemory, VmCounts};
use untax_core::snapshot::Sandbox;
use untax_core::window::{Other, Sent};
use untax_core::{Bytes, Database, Reading, Seconds, Severity, Snapshot, Window};

const ID: &str = "postgres:7";
const WHY: &str = "not read";

/// What each server counts in ten seconds.
const TOLD: [(&str, f64); 14] = [
    ("transactions", 40_000.0),
    ("sessions", 2_000.0),
    ("wal_fpi", 20_000.0),
    ("wal_bytes", 200e6),
    ("Connections", 4_000.0),
    ("Questions", 8_000.0),
    ("Created_tmp_disk_tables", 400.0),
    ("Aria_pagecache_reads", 40_000.0),
    ("Aria_pagecache_writes", 40_000.0),
    ("Innodb_data_reads", 40_000.0),
    ("Innodb_data_writes", 40_000.0),
    ("total_connections_received", 4_000.0),
    ("total_commands_processed", 8_000.0),
    ("total_reads_processed", 12_000.0),
];

/// Sets what a database, its group and its network had counted, `by` times ten seconds after the start. The
/// window ends `left` times ten seconds later.
fn count(snapshot: &mut Snapshot, by: f64, left: f64) {
    let times = |each: f64| (each * by).round() as u64;
    let database = &mut snapshot.databases[0];
    database.counters.tcp = Present(TcpCounts {
        sent_segments: 1_000 + times(10_000.0),
        retransmitted_segments: 20 + times(400.0),
        timeouts: times(60.0),
        listen_overflows: 0,
    });
    let refused = Refused { dropped: times(100.0), dropped_early: 0, insert_failed: 0 };
    let table = Conntrack { entries: 1_000, refused: Some(refused) };
    database.network = Present(DatabaseNetwork {
        own_namespace: true,
        way: Present(Way {
            device: "eth0".to_owned(),
            index: Present(2),
            packets: times(20_000.0),
            dropped: times(100.0),
        }),
        conntrack: Present(table),
        clients: Reading::absent("not read"),
    });
    snapshot.host.conntrack = Present(ConntrackLimit { most: 1_000, table });
    snapshot.host.numa = Present(test_window::two_nodes());
    snapshot.host.links = Present(Links { overlays: Vec::new(), veth_peers: vec![2] });
    snapshot.host.vm_counts = Present(VmCounts {
        allocation_stalls: Present(times(200.0)),
        numa_hint_faults: Present(times(40_000.0)),
        numa_hint_faults_local: Present(0),
        numa_pages_migrated: Present(times(20_000.0)),
    });
    let used = |bytes: f64| Present(Bytes(bytes as u64));
    let limited = MemoryGroup {
        cgroup: "/db".to_owned(),
        max_bytes: used(1e9),
        high_bytes: Reading::absent("max"),
        // It grows by a hundredth of the limit in ten seconds.
        usage_bytes: used(6e8 - 1e7 * left),
        file_bytes: used(0.0),
        shmem_bytes: used(0.0),
        at_limit: Present(times(20.0)),
    };
    let limit = test_window::limit("/db", Bytes(1), Bytes(0));
    database.cgroup = test_window::cgroup(vec![limit]).map(|groups| untax_core::database::Cgroup {
        memory: Present(vec![limited]),
        cpu: Present(vec![CpuLimit {
            cgroup: "/db".to_owned(),
            cpus: 2.0,
            period_s: Seconds(0.1),
            periods: Present(times(100.0)),
            throttled_periods: Present(times(40.0)),
        }]),
        ..groups
    });
    let told = TOLD.map(|(name, each)| (name.to_owned(), 1_000_000 + times(each)));
    database.counters.told = Present(told.into());
}

/// What its threads do in ten seconds, s.
const DOING: [(Doing, f64); 10] = [
    (Doing::OnCpu, 9.0),
    (Doing::Contended, 6.0),
    (Doing::Throttled, 2.0),
    (Doing::Futex, 4.0),
    (Doing::Disk, 6.0),
    (Doing::Filesystem, 3.0),
    (Doing::DirtyThrottled, 2.0),
    (Doing::ReclaimStalled, 2.0),
    (Doing::ReclaimOnCpu, 1.0),
    (Doing::Poll, 30.0),
];

/// Sets what was traced in a window of `seconds`.
fn trace(window: &mut Window, model: Model, seconds: f64) {
    let by = seconds / 10.0;
    let times = |each: f64| (each * by).round() as u64;
    let doing = DOING.map(|(doing, each_s)| (doing, each_s * by));
    test_window::trace(window, &doing);
    let Present(activities) = &mut window.activity else { unreachable!("it was traced") };
    let activity = &mut activities[0];
    activity.window_s = Seconds(seconds);
    activity.started = times(2_000.0);
    activity.retransmits = Some(times(400.0));
    activity.longest = vec![Longest { doing: Doing::Filesystem, time_s: Seconds(0.3) }];
    let slice = &mut activity.slices[0];
    slice.traced_s = Seconds(seconds);
    (slice.connecting_s, slice.first_s) = (Seconds(2.0 * by), Seconds(by));
    slice.hung_s = Some(Seconds(2.0 * by));
    if model != Model::Process {
        let mut calling = [0; Call::ALL.len()];
        calling[Call::Connection as usize] = times(150.0);
        calling[Call::Pages as usize] = times(200.0);
        let sampled = Sampled::unknown(times(1_000.0));
        slice.sampled = Some(Sampled { calling: Some(calling), ..sampled });
    }
}

/// A window of `seconds` over a database with many causes at once, at the same rates in any length.
fn window(engine: &str, model: Model, seconds: f64) -> Window {
    let by = seconds / 10.0;
    let times = |each: f64| (each * by).round() as u64;
    let mut window = test_window::postgres();
    window.end.uptime_s = window.start.uptime_s + seconds;
    for (snapshot, by, left) in [(&mut window.start, 0.0, by), (&mut window.end, by, 0.0)] {
        count(snapshot, by, left);
        let database: &mut Database = &mut snapshot.databases[0];
        test_window::make(database, engine);
        database.model = model;
        database.counters.system_s = Present(Seconds(8.0 * by));
        database.counters.minor_faults = Present(7 + (2e6 * by) as u64);
        if let Present(accesses) = &mut database.counters.accesses {
            accesses.count = (4e6 * by) as u64;
        }
        if let Present(time) = &mut snapshot.host.cpu_time {
            time.busy_s = Seconds(18.0 * by);
            time.idle_s = Seconds(by);
            time.steal_s = Seconds(2.0 * by);
        }
        snapshot.sandboxes = vec![Sandbox {
            runtime: "gvisor".to_owned(),
            pid: 9,
            programs_s: Some(Seconds(4.0 * by)),
        }];
    }
    trace(&mut window, model, seconds);
    window.io = disks(by);
    let other = Other::unknown(77, "backup", Seconds(6.0 * by), WHY);
    window.others = vec![Other { cgroup: Present("/batch".to_owned()), ..other }];
    window.kernel_workers_s = Some(Seconds(0.4 * by));
    // The machine is short of memory, and no limit is met.
    let group = |cgroup: &str, taken: f64| GroupMemory {
        cgroup: cgroup.to_owned(),
        at_limit: 0,
        taken_pages: times(taken),
        pages_each: 1.0,
        read_again_pages: Present(times(2_000.0)),
        stalled_s: Present(Seconds(2.0 * by)),
    };
    window.groups = Present(vec![group("/db", 20_000.0), group("/batch", 40_000.0)]);
    window.sent = vec![Sent { database: ID.to_owned(), segments_per_s: vec![1_000.0; 100] }];
    window
}

fn disks(by: f64) -> Reading<untax_core::Io> {
    let requests = |each: f64| (each * by).round() as u64;
    let own = |role, direction, each| flow(Some(ID), role, direction, requests(each), 0.004);
    io(vec![
        own(Role::Log, Direction::Write, 500.0),
        own(Role::Data, Direction::Read, 1_000.0),
        own(Role::Temp, Direction::Write, 1_000.0),
        flow(None, Role::Other, Direction::Write, requests(4_000.0), 0.004),
    ])
    .map(|mut io| {
        io.window_s = Seconds(10.0 * by);
        for writer in io.writers.as_mut().into_value().into_iter().flatten() {
            writer.written_bytes = Bytes(requests(500.0 * f64::from(1 << 20)));
            writer.limits.clear();
        }
        io
    })
}

/// What a rule says of a database or of the host.
#[derive(Debug, Clone, PartialEq)]
struct Verdict {
    severity: Severity,
    tax: Option<f64>,
}

/// The verdicts of all rules.
fn verdicts(window: &Window) -> BTreeMap<String, Verdict> {
    let diagnoses = RULES.iter().flat_map(|rule| (rule.evaluate)(window));
    let verdict = |says| match says {
        Says::Found(finding) => {
            let tax = finding.tax.map(|tax| tax.share);
            Some((finding.rule, Verdict { severity: finding.severity, tax }))
        }
        Says::Unmeasured(_) => None,
    };
    diagnoses
        .filter_map(|diagnosis| {
            let whose = diagnosis.database.unwrap_or_else(|| "host".to_owned());
            verdict(diagnosis.says).map(|(rule, verdict)| (format!("{rule} of {whose}"), verdict))
        })
        .collect()
}

/// The gaps of one rule.
fn gaps(window: &Window, rule: &str) -> usize {
    let rule = RULES.iter().find(|known| known.id == rule).unwrap();
    test_window::gaps((rule.evaluate)(window)).len()
}

/// The engines, and the rules that need more samples than half a second gives: fewer than a hundred say
/// nothing of a share (the rule of three), so the rule says that its tax is unmeasured.
const ENGINES: [(&str, Model, &[&str]); 3] = [
    ("postgres", Model::Process, &[]),
    ("mysql", Model::Thread, &[]),
    ("redis", Model::Loop, &["short-connections", "redis-network-bound"]),
];

#[test]
fn a_window_of_any_length_gives_the_same_findings() {
    let mut found = Vec::new();
    for (engine, model, sampled) in ENGINES {
        let standard = verdicts(&window(engine, model, 10.0));
        found.extend(standard.keys().map(|key| key.split(' ').next().unwrap().to_owned()));
        for seconds in [0.5, 600.0] {
            let window = window(engine, model, seconds);
            let verdicts = verdicts(&window);
            let is_sampled =
                |key: &str| seconds < 1.0 && sampled.iter().any(|rule| key.starts_with(rule));
            for (key, expected) in standard.iter().filter(|(key, _)| !is_sampled(key)) {
                let what = format!("{engine}, {seconds} s: {key}");
                let verdict = verdicts.get(key).unwrap_or_else(|| panic!("{what} is missing"));
                // What is known to ticks and samples is known better the longer it is watched.
                let order = verdict.severity.cmp(&expected.severity);
                let surer = if seconds < 10.0 { Ordering::Less } else { Ordering::Greater };
                assert!(order.is_eq() || order == surer, "{what}: {verdict:?}, not {expected:?}");
                let difference = verdict.tax.unwrap_or(-1.0) - expected.tax.unwrap_or(-1.0);
                assert!(difference.abs() < 1e-6, "{what}: {verdict:?}, not {expected:?}");
            }
            let added: Vec<_> =
                verdicts.keys().filter(|key| !standard.contains_key(*key)).collect();
            assert!(added.is_empty(), "{engine}, {seconds} s: {added:?}");
            for rule in sampled.iter().filter(|_| seconds < 1.0) {
                let key = format!("{rule} of {ID}");
                let tax = verdicts.get(&key).and_then(|verdict| verdict.tax);
                assert!(tax.is_none() && gaps(&window, rule) > 0, "{engine}: {key} has {tax:?}");
            }
        }
    }
    // The windows have something to lose: nearly every rule that measures a rate finds it.
    let expected = [
        "cni-path",
        "conntrack-pressure",
        "cpu-contended",
        "cpu-throttled",
        "dirty-burst",
        "disk-slow",
        "io-hang",
        "lock-contended",
        "mysql-temp-files",
        "neighbour-reclaim",
        "numa-churn",
        "oom-near",
        "postgres-full-page-writes",
        "reclaim-stall",
        "shared-filesystem",
        "short-connections",
        "small-pages",
        "tcp-retransmit",
        "vm-steal",
    ];
    let missing: Vec<_> = expected.iter().filter(|id| !found.iter().any(|f| f == *id)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
