//! For each rule a traced window in which it finds something.

use crate::test_clients::{connect, connection};
use crate::test_frequency::{self, policy, sampled};
use crate::test_io::{flow, io};
use crate::test_window::{self, cgroup, limit, make, pool, postgres, sample, segment, trace};
use untax_core::Reading::{self, Absent, Present};
use untax_core::activity::{Call, Doing, WakeUps};
use untax_core::database::{Cgroup, Container, CpuLimit, MemoryGroup, Model, TcpCounts};
use untax_core::host::CpuTime;
use untax_core::idle::HaltPoll;
use untax_core::io::{Direction, Role};
use untax_core::network::{Conntrack, ConntrackLimit, DatabaseNetwork, Links, Refused, Way};
use untax_core::placement::{Balancing, OnNode, Placement};
use untax_core::pressure::{GroupMemory, GroupStalls, Stalled, Stalls};
use untax_core::snapshot::Sandbox;
use untax_core::window::Other;
use untax_core::{Bytes, Database, Seconds, Window};

/// Makes such a window.
pub type Example = fn() -> Window;

/// Every rule's id with one.
pub static EXAMPLES: &[(&str, Example)] = &[
    ("small-pages", small_pages),
    ("page-table-bloat", busy),
    ("hugepage-limit", hugepage_limit),
    ("hugepages-idle", || with_pool(4000, 4000)),
    ("hugepages-short", || with_pool(3000, 3000)),
    ("thp-mode", thp_mode),
    ("cpu-throttled", cpu_throttled),
    ("cpu-contended", cpu_contended),
    ("vm-steal", vm_steal),
    ("idle-wakeup", idle_wakeup),
    ("cpu-frequency", slow_cpus),
    ("numa-remote", numa_remote),
    ("numa-churn", numa_churn),
    ("reclaim-stall", || short_of_memory("/pod/db", "/pod/db")),
    ("lock-contended", || doing(&[(Doing::OnCpu, 5.0), (Doing::PollPeer, 5.0)])),
    ("oom-near", oom_near),
    ("neighbour-reclaim", || short_of_memory("/pod/db", "/pod")),
    ("tcp-retransmit", tcp_retransmit),
    ("short-connections", short_connections),
    ("conntrack-pressure", conntrack_pressure),
    ("cni-path", cni_path),
    ("far-clients", far_clients),
    ("too-many-connections", too_many_connections),
    ("sandboxed-runtime", sandboxed_runtime),
    ("redis-network-bound", redis_network_bound),
    ("disk-slow", || on_disks(&[flow(MINE, Role::Log, Direction::Write, 900, 0.005)])),
    ("storage-remote", storage_remote),
    ("shared-filesystem", shared_filesystem),
    ("dirty-burst", dirty_burst),
    ("io-hang", io_hang),
    ("mysql-temp-files", mysql_temp_files),
    ("postgres-full-page-writes", postgres_full_page_writes),
    ("duplicate-machine-id", duplicate_machine_id),
];

const MINE: Option<&str> = Some("postgres:7");

/// The test window with this time of its threads, and with what the kernel counts of it.
fn doing(times: &[(Doing, f64)]) -> Window {
    let mut window = postgres();
    trace(&mut window, times);
    let on_cpu = |doing| matches!(doing, Doing::OnCpu | Doing::ReclaimOnCpu);
    let on_cpu_s: f64 = times.iter().filter(|(doing, _)| on_cpu(*doing)).map(|(_, s)| s).sum();
    at_both(&mut window, |database, by| {
        database.counters.on_cpu_s = Present(Seconds(on_cpu_s * by as f64));
    });
    window
}

fn busy() -> Window {
    doing(&[(Doing::OnCpu, 12.0), (Doing::Contended, 300.0)])
}

/// Changes the database at both ends; the number says how far counters went: 0 or 1.
fn at_both(window: &mut Window, change: impl Fn(&mut Database, u64)) {
    for (snapshot, by) in [(&mut window.start, 0), (&mut window.end, 1)] {
        change(&mut snapshot.databases[0], by);
    }
}

fn told(window: &mut Window, counts: &[(&str, u64)]) {
    at_both(window, |database, by| {
        let counts = counts.iter().map(|(name, count)| ((*name).to_owned(), by * count));
        database.counters.told = Present(counts.collect());
    });
}

fn groups() -> Cgroup {
    cgroup(vec![limit("/pod/db", Bytes(1), Bytes(0))]).into_value().unwrap()
}

fn small_pages() -> Window {
    let mut window = doing(&[(Doing::OnCpu, 12.0)]);
    at_both(&mut window, |database, _| database.counters.runnable_s = Present(Seconds(0.0)));
    window
}

fn hugepage_limit() -> Window {
    let mut window = busy();
    let database = &mut window.end.databases[0];
    database.memory.segments = Present(vec![segment(Bytes(6 << 30), Bytes::MIB_2)]);
    database.cgroup = cgroup(vec![limit("/db", Bytes(4 << 30), Bytes(1 << 30))]);
    window
}

fn with_pool(total: u64, free: u64) -> Window {
    let mut window = busy();
    window.end.host.hugepages = Present(vec![pool(total, free, 0)]);
    window
}

fn thp_mode() -> Window {
    let mut window = busy();
    if let Present(thp) = &mut window.end.host.thp {
        thp.enabled = "always".to_owned();
    }
    at_both(&mut window, |database, _| make(database, "redis"));
    window.end.databases[0].version = Present("7.0.15".to_owned());
    window
}

/// All of the group's tasks that had work were held up for six of ten seconds, for a CPU and for memory.
fn held_up(cgroup: &str, by: u64) -> GroupStalls {
    let time = |seconds: f64| Seconds(seconds * by as f64);
    let stalled = || Stalled { some_s: time(8.0), full_s: Present(time(6.0)) };
    let stalls = Stalls {
        cpu: Present(stalled()),
        io: Absent("no disk".to_owned()),
        memory: Present(stalled()),
    };
    GroupStalls { cgroup: cgroup.to_owned(), stalls }
}

fn cpu_throttled() -> Window {
    let mut window = doing(&[(Doing::OnCpu, 5.0), (Doing::Throttled, 15.0)]);
    at_both(&mut window, |database, by| {
        let limit = CpuLimit {
            cgroup: "/pod/db".to_owned(),
            cpus: 0.5,
            period_s: Seconds(0.1),
            periods: Present(3 + 100 * by),
            throttled_periods: Present(2 + 80 * by),
        };
        let pressure = Present(held_up("/pod/db", by));
        database.cgroup = Present(Cgroup { cpu: Present(vec![limit]), pressure, ..groups() });
    });
    window
}

fn cpu_contended() -> Window {
    let mut window = doing(&[(Doing::OnCpu, 5.0), (Doing::Contended, 15.0)]);
    window.others = vec![Other::unknown(50, "stress-ng", Seconds(10.0), "not read")];
    window
}

fn vm_steal() -> Window {
    let mut window = busy();
    if let Present(time) = &mut window.end.host.cpu_time {
        time.steal_s = Seconds(5.0);
    }
    window
}

fn slow_cpus() -> Window {
    let policies = [0, 1].map(|cpu| policy(cpu, "powersave", 3_600_000));
    let mut window = test_frequency::on(doing(&[(Doing::OnCpu, 10.0)]), &policies, 0.5);
    at_both(&mut window, |database, _| database.counters.runnable_s = Present(Seconds(0.0)));
    sampled(&mut window, &[1_200_000, 1_800_000]);
    window
}

fn idle_wakeup() -> Window {
    let mut window = doing(&[(Doing::OnCpu, 4.0), (Doing::WakeUp, 3.0), (Doing::Poll, 3.0)]);
    if let Present(activities) = &mut window.activity {
        activities[0].clients = vec![77];
        activities[0].wake_ups = Some(WakeUps { all: 100_000, asleep: 100_000 });
    }
    window.others = vec![Other::unknown(77, "pgbench", Seconds(1.5), "not read")];
    window.end.host.cpu_time = Present(CpuTime {
        busy_s: Seconds(10.0),
        interrupts_s: Some(Seconds(0.0)),
        idle_s: Seconds(60.0),
        steal_s: Seconds(0.0),
    });
    window.end.host.haltpoll = Present(HaltPoll {
        poll_ns: 0,
        grow_start_ns: Reading::absent("not read"),
        allow_shrink: Reading::absent("not read"),
    });
    window
}

fn numa_remote() -> Window {
    let mut window = busy();
    window.end.host.numa = Present(test_window::two_nodes());
    window.end.databases[0].allowed_cpus = Present("0-1".to_owned());
    let on = |node, mib| OnNode { node, bytes: Bytes::from_mib(mib) };
    let placement = Placement {
        memory: Present(vec![on(0, 10), on(1, 990)]),
        source: "/proc/7/numa_maps".to_owned(),
        tasks: Vec::new(),
        balancing: Reading::absent("not read"),
    };
    at_both(&mut window, |database, _| database.placement = Present(placement.clone()));
    window
}

fn numa_churn() -> Window {
    let mut window = busy();
    window.end.host.numa = Present(test_window::two_nodes());
    at_both(&mut window, |database, by| {
        database.placement = Present(Placement {
            memory: Reading::absent("not read"),
            source: String::new(),
            tasks: Vec::new(),
            balancing: Present(Balancing { hint_faults: 3000 * by, pages_migrated: 3000 * by }),
        });
    });
    window
}

/// A group that met its limit while a neighbour below `limited` took most of the memory.
fn short_of_memory(own: &str, limited: &str) -> Window {
    let mut window = doing(&[(Doing::OnCpu, 6.0), (Doing::ReclaimStalled, 4.0)]);
    at_both(&mut window, |database, by| {
        database.cgroup = Present(Cgroup { pressure: Present(held_up(own, by)), ..groups() });
    });
    let group = |cgroup: &str, mib: u64| GroupMemory {
        cgroup: cgroup.to_owned(),
        at_limit: if cgroup == limited { 500 } else { 0 },
        taken_pages: mib * 256,
        pages_each: 1.0,
        read_again_pages: Present(0),
        stalled_s: Reading::absent("not read"),
    };
    window.groups =
        Present(vec![group("/pod", 0), group("/pod/db", 100), group("/pod/backup", 300)]);
    window
}

fn oom_near() -> Window {
    let mut window = busy();
    at_both(&mut window, |database, by| {
        let bytes = |mib| Present(Bytes::from_mib(mib));
        let group = MemoryGroup {
            max_bytes: bytes(1000),
            usage_bytes: bytes(500 + 100 * by),
            file_bytes: bytes(150),
            shmem_bytes: bytes(50),
            at_limit: Present(0),
            ..MemoryGroup::unknown("/pod/db", "max")
        };
        database.cgroup = Present(Cgroup { memory: Present(vec![group]), ..groups() });
    });
    window
}

fn tcp_retransmit() -> Window {
    let mut window = doing(&[(Doing::OnCpu, 5.0), (Doing::Poll, 75.0)]);
    at_both(&mut window, |database, by| {
        database.counters.tcp = Present(TcpCounts {
            sent_segments: by * 10_000,
            retransmitted_segments: by * 200,
            timeouts: by * 100,
            listen_overflows: 0,
        });
    });
    window
}

fn short_connections() -> Window {
    let mut window = doing(&[(Doing::OnCpu, 10.0)]);
    window.calibration = Reading::absent("not measured");
    if let Present(activities) = &mut window.activity {
        activities[0].slices[0].connecting_s = Seconds(6.0);
        activities[0].started = 2000;
        activities[0].requests_seen = true;
    }
    window
}

fn network(by: u64) -> DatabaseNetwork {
    let way =
        Way { device: "eth0".to_owned(), index: Present(3), packets: 20_000 * by, dropped: 0 };
    DatabaseNetwork {
        own_namespace: true,
        way: Present(way),
        conntrack: Reading::absent("not read"),
        clients: Reading::absent("not read"),
    }
}

fn conntrack_pressure() -> Window {
    let mut window = busy();
    for (snapshot, by) in [(&mut window.start, 0), (&mut window.end, 1)] {
        let refused = Refused { dropped: 40 * by, dropped_early: 0, insert_failed: 0 };
        let table = Conntrack { entries: 900, refused: Some(refused) };
        snapshot.host.conntrack = Present(ConntrackLimit { most: 1000, table });
        let network = DatabaseNetwork { conntrack: Present(table), ..network(by) };
        snapshot.databases[0].network = Present(network);
    }
    window
}

fn cni_path() -> Window {
    let mut window = busy();
    for (snapshot, by) in [(&mut window.start, 0), (&mut window.end, 1)] {
        let links = Links { overlays: Vec::new(), veth_peers: vec![3] };
        snapshot.host.links = Present(links);
        snapshot.databases[0].network = Present(network(by));
    }
    window
}

fn far_clients() -> Window {
    let mut window = busy();
    connect(&mut window, &[connection(1, 4000, 9)], &[connection(1, 4000, 909)], 900);
    window
}

fn too_many_connections() -> Window {
    let mut window = doing(&[(Doing::OnCpu, 15.0), (Doing::Contended, 2000.0)]);
    window.end.host.cpu = Present(test_window::cpus(2));
    window
}

fn sandboxed_runtime() -> Window {
    let mut window = doing(&[(Doing::OnCpu, 10.0)]);
    let sandbox = |programs_s| Sandbox {
        runtime: "gvisor".to_owned(),
        pid: 7,
        programs_s: Some(Seconds(programs_s)),
    };
    window.start.sandboxes = vec![sandbox(5.0)];
    window.end.sandboxes = vec![sandbox(6.0)];
    window.end.databases[0].executable = Present("/usr/bin/runsc".to_owned());
    window
}

fn redis_network_bound() -> Window {
    let mut window = doing(&[(Doing::OnCpu, 9.5)]);
    at_both(&mut window, |database, by| {
        make(database, "redis");
        database.model = Model::Loop;
        database.counters.on_cpu_s = Present(Seconds(9.5 * by as f64));
        database.counters.runnable_s = Present(Seconds(0.0));
        database.counters.system_s = Present(Seconds(6.65 * by as f64));
    });
    for (snapshot, by) in [(&mut window.start, 0.0), (&mut window.end, 1.0)] {
        snapshot.host.cpu_time = Present(CpuTime {
            busy_s: Seconds(9.5 * by),
            interrupts_s: Some(Seconds(0.0)),
            idle_s: Seconds(10.5 * by),
            steal_s: Seconds(0.0),
        });
    }
    window
}

/// Half of its time waiting for a disk that did this.
fn on_disks(flows: &[untax_core::io::Flow]) -> Window {
    let mut window = doing(&[(Doing::OnCpu, 5.0), (Doing::Disk, 5.0)]);
    window.io = io(flows.to_vec());
    window
}

fn storage_remote() -> Window {
    let mut window = on_disks(&[flow(MINE, Role::Log, Direction::Write, 900, 0.001)]);
    if let Present(io) = &mut window.io
        && let Present(filesystem) = &mut io.places[1].filesystem
    {
        filesystem.network = Some("iSCSI".to_owned());
    }
    window
}

fn shared_filesystem() -> Window {
    let mine = flow(MINE, Role::Log, Direction::Write, 100, 0.005);
    on_disks(&[mine, flow(None, Role::Other, Direction::Write, 300, 0.005)])
}

fn dirty_burst() -> Window {
    let mut window = doing(&[(Doing::OnCpu, 5.0), (Doing::DirtyThrottled, 5.0)]);
    window.io = io(Vec::new());
    window
}

fn io_hang() -> Window {
    let mut window = doing(&[(Doing::OnCpu, 2.0), (Doing::Filesystem, 8.0)]);
    if let Present(activities) = &mut window.activity {
        activities[0].slices[0].hung_s = Some(Seconds(8.0));
    }
    window.io = io(vec![flow(None, Role::Other, Direction::Write, 10, 0.001)]);
    window
}

fn mysql_temp_files() -> Window {
    let mut window = on_disks(&[
        flow(MINE, Role::Temp, Direction::Read, 3000, 0.001),
        flow(MINE, Role::Data, Direction::Read, 9000, 0.001),
    ]);
    told(&mut window, &[("Created_tmp_disk_tables", 100)]);
    at_both(&mut window, |database, _| make(database, "mysql"));
    sample(&mut window, Call::Pages, 0);
    window
}

fn postgres_full_page_writes() -> Window {
    let mut window = on_disks(&[flow(MINE, Role::Log, Direction::Write, 900, 0.001)]);
    told(&mut window, &[("wal_fpi", 10_240), ("wal_bytes", 100 << 20)]);
    window
}

fn duplicate_machine_id() -> Window {
    let mut window = busy();
    window.end.host.machine_id = Present("c0de".to_owned());
    let database = &mut window.end.databases[0];
    database.container = Some(Container { id: "a".to_owned(), runtime: "runc".to_owned() });
    database.machine_id = Present("c0de".to_owned());
    window
}
