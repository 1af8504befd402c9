//! Results made by hand: rich ones, and ones with names meant to do harm.
#![allow(dead_code, reason = "every test file uses its own part")]

pub mod host;

use std::collections::BTreeMap;
use untax_core::Reading::{Absent, Denied, Present};
use untax_core::activity::Piece;
use untax_core::calibration::{Calibration, TouchPenalty};
use untax_core::check::{Check, Checked, OwnCost, SCHEMA, TimeShares};
use untax_core::database::{Container, DatabaseMemory, HugePageUse, Model, Pod, Segment, Settings};
use untax_core::evidence::Value;
use untax_core::io::{Bucket, Device, Direction, Flow, Role, Spread};
use untax_core::pressure::Pressure;
use untax_core::{
    Bytes, Database, Evidence, EvidenceKind, Finding, Gain, Interval, Io, Scope, Seconds, Severity,
    Tax, Unmeasured,
};

/// A name that clears the screen, breaks lines, reverses text and closes tags.
pub const HOSTILE: &str =
    "evil\u{1b}[2J\u{1b}]0;owned\u{7}\nname\r\u{202e}</script><script>alert(1)</script>&\"'\u{9b}";

pub fn rich() -> Check {
    Check {
        schema: SCHEMA.into(),
        run: "20260301-101500-7f3a".into(),
        taken_at: "2026-03-01T10:15:10.25Z".parse().unwrap(),
        window_s: 10.0,
        own: Present(OwnCost {
            cpu_s: Seconds(0.184),
            tracing_s: Present(Seconds(0.061)),
            rss_bytes: Bytes::from_mib(21),
        }),
        host: host::host(),
        io: Absent("not watched".to_owned()),
        calibration: Present(calibration()),
        databases: vec![redis(), postgres()],
        findings: vec![idle_pool()],
        unmeasured: vec![unmeasured("vm-steal", "the hypervisor reports no steal time")],
    }
}

/// A disk with one flow of a database whose name is hostile.
pub fn with_disk() -> Check {
    let bucket = |from: f64, count| Bucket { from, to: from * 2.0, count };
    let times = Spread { mean_s: Seconds(0.000_4), max_s: Seconds(0.02), ..Spread::default() };
    let flow = Flow {
        device: "nvme0n1".into(),
        database: Some(HOSTILE.into()),
        role: Role::Log,
        direction: Direction::Write,
        requests: 21_000,
        bytes: Bytes(21_000 << 13),
        sequential: 0.98,
        latency: times,
        queued_s: Seconds(0.0),
        latencies: vec![bucket(1e-4, 20_000), bucket(2e-4, 0), bucket(4e-4, 1000)],
        sizes: vec![bucket(8192.0, 21_000)],
        burst: 3.5,
        seconds: None,
    };
    let device = Device {
        rotational: Present(false),
        scheduler: Present("none".into()),
        model: Present(HOSTILE.into()),
        ..Device::unknown("nvme0n1", "259:0", "not read")
    };
    let io = Io {
        flows: Present(vec![flow]),
        devices: vec![device],
        ..Io::unseen(Seconds(10.0), "not read")
    };
    Check { io: Present(io), ..single() }
}

/// One database, three causes: what a first check usually shows.
pub fn single() -> Check {
    let mut db = postgres();
    db.findings.retain(|f| f.rule != "thp-mode");
    Check { databases: vec![db], findings: vec![], ..rich() }
}

pub fn empty() -> Check {
    Check { databases: vec![], findings: vec![], unmeasured: vec![], ..rich() }
}

/// A database without a finding, and one whose every text is hostile.
pub fn hostile() -> Check {
    let mut check = rich();
    let db = &mut check.databases[0];
    db.product = HOSTILE.into();
    db.version = Present(HOSTILE.into());
    db.id = HOSTILE.into();
    db.container = Some(Container { id: HOSTILE.into(), runtime: HOSTILE.into() });
    db.pod = Some(Pod { uid: HOSTILE.into(), qos: HOSTILE.into() });
    db.settings = Denied(HOSTILE.into());
    db.memory.segments = Present(vec![segment(HOSTILE)]);
    db.unmeasured = vec![unmeasured(HOSTILE, HOSTILE)];
    for f in db.findings.iter_mut().chain(&mut check.findings) {
        f.rule = HOSTILE.into();
        f.summary = HOSTILE.into();
        f.fix = HOSTILE.into();
        f.evidence = vec![evidence(HOSTILE, HOSTILE, HOSTILE, HOSTILE)];
    }
    check.run = HOSTILE.into();
    check.host.virtualization = Present(HOSTILE.into());
    check
}

pub fn tax(share: f64, low: f64, high: f64, method: &str) -> Tax {
    Tax::new(Interval::new(low, share, high), method)
}

/// Evidence of a kind that no rule gives.
fn evidence(
    name: &'static str,
    value: impl Into<Value>,
    unit: &'static str,
    source: &str,
) -> Evidence {
    Evidence::new(&EvidenceKind { id: "a-kind", name, unit, meaning: "" }, value, source)
}

pub fn unmeasured(rule: &str, why: &str) -> Unmeasured {
    Unmeasured::new(rule, why)
}

fn postgres() -> Checked {
    Checked {
        product: "PostgreSQL".into(),
        version: Present("15.20".into()),
        model: Model::Process,
        processes: 71,
        connections: Present(64),
        data_directory: Present("/var/lib/postgresql/15/main".into()),
        memory: postgres_memory(),
        huge_pages: Present(HugePageUse {
            asked: "try".into(),
            size_bytes: Present(Bytes::MIB_2),
            needed_pages: Present(3170),

            lengths_bytes: Vec::new(),
            source: "shared_memory_size_in_huge_pages".into(),
        }),
        settings: Present(postgres_settings()),
        time: postgres_time(),
        time_pieces: postgres_pieces(),
        pressure: Present(pressure()),
        tax: Some(tax(0.142, 0.092, 0.208, "sum of the measured causes").with_model(true)),
        database_tax: Some(tax(0.08, 0.06, 0.11, "sum of the measured causes")),
        findings: vec![no_reservation(), page_tables(), small_pages(), thp(), locks()],
        unmeasured: vec![
            unmeasured("hugepage-limit", "hugepage accounting is off in this cgroup hierarchy"),
            unmeasured("thp-mode", "a mode has no time of its own; its cost shows in small-pages"),
        ],
        ..Checked::of(&Database::unknown("postgres", 4012, "not read"), "not read")
    }
}

fn postgres_memory() -> DatabaseMemory {
    DatabaseMemory {
        shared_bytes: Present(Bytes::from_mib(6339)),
        page_size_bytes: Present(Bytes::KIB_4),
        page_table_bytes: Present(Bytes::from_mib(522)),
        mapped_shared_bytes: Present(Bytes::from_mib(66_000)),
        thp_allowed: Present(true),
        resident_bytes: Present(Bytes::from_mib(142)),
        hugetlb_bytes: Present(Bytes(0)),
        anon_huge_bytes: Denied("/proc/4012/smaps_rollup".into()),
        segments: Present(vec![segment("/dev/zero (deleted)")]),
    }
}

fn segment(name: &str) -> Segment {
    Segment {
        name: name.into(),
        bytes: Bytes::from_mib(6339),
        shared: true,
        page_size_bytes: Present(Bytes::KIB_4),
    }
}

fn postgres_settings() -> Settings {
    let values = [
        ("huge_pages", "try"),
        ("huge_page_size", "0"),
        ("shared_buffers", "6GB"),
        ("max_connections", "200"),
        ("shared_memory_type", "mmap"),
    ];
    Settings {
        source: "files".into(),
        instead_of: "the socket refused user root".into(),
        values: values.map(|(k, v)| (k.to_owned(), v.to_owned())).into(),
    }
}

fn pressure() -> Pressure {
    Pressure {
        scope: "group /db".into(),
        cpu_some: Present(0.31),
        cpu_full: Present(0.02),
        io_some: Present(0.0),
        io_full: Present(0.0),
        memory_some: Absent("not there".into()),
        memory_full: Absent("not there".into()),
    }
}

fn postgres_time() -> TimeShares {
    TimeShares {
        active_s: Present(Seconds(19.1)),
        on_cpu_s: Present(Seconds(15.6)),
        minor_faults_s: Present(Seconds(7.8)),
        runnable_s: Present(Seconds(3.5)),
        throttled_s: Absent("no CPU limit".into()),
        unaccounted_s: Present(Seconds(4.2)),
        unaccounted_call: Present("io_pgetevents".into()),
        ..TimeShares::unknown("off-CPU time is not traced by this check")
    }
}

/// They add up to [`postgres_time`]; one piece is idle.
fn postgres_pieces() -> Vec<Piece> {
    let piece = |(length_s, on_cpu_s, contended_s): (f64, f64, f64)| Piece {
        length_s: Seconds(length_s),
        on_cpu_s: Seconds(on_cpu_s),
        contended_s: Seconds(contended_s),
        ..Piece::default()
    };
    [(4.0, 5.6, 0.5), (2.0, 0.0, 0.0), (4.0, 10.0, 3.0)].into_iter().map(piece).collect()
}

fn small_pages() -> Finding {
    Finding {
        evidence: vec![
            evidence("minor faults", 18_240.0, "1/s", "/proc/PID/stat"),
            evidence("cost of one", 6.3e-6, "s", "calibration of this host"),
            evidence("cache accesses", 412_000.0, "1/s", "pg_stat_database.blks_hit"),
            evidence("pages needed", 3170_u64, "pages", "shared_memory_size_in_huge_pages"),
        ],
        tax: Some(tax(
            0.111,
            0.072,
            0.158,
            "minor faults × cost of a fault (6.0 %) + cache accesses × 2–5 cold pages × extra cost \
             of a touch on 4 KiB pages (5.1 %), both calibrated on this host",
        )
        .with_model(true)),
        gain: Some(Gain::measured(Interval::new(1.08, 1.12, 1.19))),
        remedy: Some("hugepages".into()),
        ..Finding::new(
            "small-pages",
            Severity::High,
            "6.2 GiB of shared memory on 4 KiB pages; the TLB reaches 8 MiB of it",
            "set huge_pages = on and reserve 3170 pages of 2 MiB",
        )
    }
}

fn page_tables() -> Finding {
    Finding {
        evidence: vec![
            evidence("page tables", Bytes::from_mib(522).0, "bytes", "VmPTE of 71 processes"),
            evidence("share of shared memory", 0.082, "share", "computed"),
            evidence("expected on huge pages", 3_145_728_u64, "bytes", "computed"),
        ],
        tax: Some(tax(0.031, 0.02, 0.05, "time of the faults that fill new page tables")),
        gain: Some(Gain::measured(Interval::new(1.02, 1.03, 1.05))),
        remedy: Some("hugepages".into()),
        ..Finding::new(
            "page-table-bloat",
            Severity::Medium,
            "522 MiB of page tables: 8 MiB for each connection",
            "huge pages bring it to about 3 MiB; a pool of connections helps as well",
        )
    }
}

fn locks() -> Finding {
    Finding {
        scope: Scope::Database,
        tax: Some(tax(0.08, 0.06, 0.11, "time asleep in futexes, traced")),
        gain: Some(Gain::measured(Interval::new(1.02, 1.08, 1.12))),
        ..Finding::new(
            "lock-contended",
            Severity::Medium,
            "8.0 % of its time waiting for locks of its own",
            "shorten what holds the hot rows or pages",
        )
    }
}

fn no_reservation() -> Finding {
    Finding {
        evidence: vec![
            evidence("free", 512_u64, "pages", "/sys/kernel/mm/hugepages"),
            evidence("needed", 3170_u64, "pages", "shared_memory_size_in_huge_pages"),
        ],
        remedy: Some("hugepages".into()),
        ..Finding::new(
            "hugepages-short",
            Severity::Medium,
            "the pool of 2 MiB pages has 512 free, 3170 are needed; huge_pages = try fell \
                  back to 4 KiB without a word",
            "reserve 2658 more pages of 2 MiB, then restart",
        )
    }
}

fn thp() -> Finding {
    Finding {
        evidence: vec![evidence("THP", "always", "", "/sys/kernel/mm/transparent_hugepage")],
        ..Finding::new(
            "thp-mode",
            Severity::Info,
            "THP is always; PostgreSQL 15 gains nothing from it for shared memory",
            "madvise suits every database on this host",
        )
    }
}

fn idle_pool() -> Finding {
    Finding {
        evidence: vec![evidence("idle", Bytes::GIB_1.0, "bytes", "/sys/kernel/mm/hugepages")],
        ..Finding::new(
            "hugepages-idle",
            Severity::Low,
            "512 pages of 2 MiB (1 GiB) are reserved and nobody uses them",
            "let the database use them, or give them back",
        )
    }
}

fn redis() -> Checked {
    let mut db = postgres();
    let no_pmu = "no hardware counters in this virtual machine; INFO counts commands, not touches";
    db.id = "redis:3020".into();
    db.engine = "redis".into();
    db.product = "Redis".into();
    db.version = Present("7.0.15".into());
    db.pid = 3020;
    db.model = Model::Loop;
    db.processes = 1;
    db.connections = Denied("NOAUTH from the local socket".into());
    db.container = Some(Container {
        id: "9c1185a5c5e9fc54612808977ee8f548b2258d31".into(),
        runtime: "containerd".into(),
    });
    db.pod = Some(Pod { uid: "0e5f6c1a-9f3b".into(), qos: "burstable".into() });
    db.memory.page_table_bytes = Present(Bytes::from_mib(3));
    db.huge_pages = Absent("Redis uses no pool of huge pages".into());
    db.settings = Present(Settings {
        source: "command line".into(),
        instead_of: String::new(),
        values: BTreeMap::new(),
    });
    db.tax = None;
    db.database_tax = None;
    let cow = "THP is always: a fork copies 2 MiB for each page that is written";
    db.findings = vec![Finding { severity: Severity::Medium, summary: cow.into(), ..thp() }];
    db.unmeasured = vec![unmeasured("small-pages", no_pmu), unmeasured("thp-mode", no_pmu)];
    db
}

pub fn calibration() -> Calibration {
    let touch = |gib: u64, ns: f64| TouchPenalty {
        working_set_bytes: Bytes(gib << 30),
        taking_turns: false,
        extra_ns: Interval::new(ns * 0.9, ns, ns * 1.1),
    };
    Calibration {
        taken_at: "2026-03-01T11:30:00Z".parse().unwrap(),
        cpu_model: "Intel(R) Xeon(R) Platinum 8370C CPU @ 2.80GHz".into(),
        kernel_release: "6.1.0-18-amd64".into(),
        source: "bench pages".into(),
        minor_fault_ns: Interval::new(5900.0, 6300.0, 7100.0),
        write_fault_ns: Some(Interval::new(700.0, 800.0, 950.0)),
        unmap_ns: Some(Interval::new(180.0, 200.0, 240.0)),
        touches_missing: None,
        touches: vec![touch(1, 38.0), touch(8, 74.0)],
    }
}
