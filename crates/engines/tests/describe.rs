//! What is read of a database once it is recognised: memory, settings, counters.

mod made;

use made::{Made, Process, setting};
use untax_core::Reading::{self, Absent, Denied, Present};
use untax_core::database::Database;
use untax_core::host::Thp;
use untax_core::{Bytes, Seconds};
use untax_engines::Selection;

/// 6 GiB shared, 64 MiB private, and the small segment that every PostgreSQL keeps.
const SHARED: &str = "7f0000000000-7f0180000000 rw-s 00000000 00:01 1024   /dev/zero (deleted)\n\
                      7f0200000000-7f0204000000 rw-p 00000000 00:00 0 \n\
                      7f0300000000-7f0310000000 r--p 00000000 08:01 7  /usr/lib/locale/archive\n\
                      7f0400000000-7f0400001000 rw-s 00000000 00:01 9  /SYSV0052e2c1 (deleted)\n";

/// The same on pages of a pool.
const POOLED: &str =
    "7f0000000000-7f0180000000 rw-s 00000000 00:0f 55   /anon_hugepage (deleted)\n";

fn cluster(maps: &str, conf: &str) -> Made {
    Made::new()
        .file("/proc/100/maps", maps)
        .postmaster(100, 1, "/srv/a")
        .file("/proc/100/root/srv/a/postgresql.conf", conf)
        .file("/proc/100/root/srv/a/PG_VERSION", "16\n")
}

#[test]
fn counters_are_those_of_the_living_and_of_the_waited_for() {
    let database =
        Made::new().postmaster(100, 1, "/srv/a").backend(101, 100, "postgres: walwriter ").only();
    let counters = &database.counters;
    // Each has 2.5 s of its own and 5 s of children, of which 2 s in the kernel.
    assert_eq!(counters.on_cpu_s, Present(Seconds(15.0)));
    assert_eq!(counters.runnable_s, Present(Seconds(1.4)));
    assert_eq!(counters.system_s, Present(Seconds(5.0)));
    assert_eq!(counters.minor_faults, Present(2400));
    assert_eq!(counters.minor_faults_living, Present(2000));
    assert_eq!(counters.major_faults, Present(14));
    assert_eq!(database.memory.mapped_shared_bytes, Present(Bytes(2 << 20)));
    assert_eq!(database.started_ticks, Present(1000));
}

#[test]
fn what_may_not_be_read_is_not_zero() {
    let database = Made::new()
        .postmaster(100, 1, "/srv/a")
        .backend(101, 100, "postgres: walwriter ")
        .denied("/proc/100/maps")
        .denied("/proc/100/cwd")
        .only();
    assert!(matches!(database.memory.shared_bytes, Denied(_)));
    assert!(matches!(database.memory.segments, Denied(_)));
    assert!(matches!(database.data_directory, Denied(_)));
    let hidden = Made::new()
        .postmaster(100, 1, "/srv/a")
        .backend(101, 100, "postgres: walwriter ")
        .denied("/proc/101/status")
        .only();
    assert!(matches!(hidden.memory.page_table_bytes, Denied(_)));
}

#[test]
fn shared_memory_on_base_pages() {
    let database = cluster(SHARED, "huge_pages = off\n").only();
    let memory = &database.memory;
    assert_eq!(memory.shared_bytes, Present(Bytes(6 << 30)));
    assert_eq!(memory.page_size_bytes, Present(Bytes::KIB_4));
    let segments = memory.segments.value().unwrap();
    assert_eq!(segments.len(), 2, "read-only and small mappings are left out");
    assert!(segments[0].shared && !segments[1].shared);
    let huge = database.huge_pages.value().unwrap();
    assert_eq!(huge.asked, "off");
    assert_eq!(huge.size_bytes, Present(Bytes::MIB_2));
    assert_eq!(huge.needed_pages, Present(3072));
    assert!(huge.source.contains("mapping"));
}

#[test]
fn shared_memory_that_may_be_transparent_huge_is_not_called_small() {
    let shmem = |word: &str| {
        let word = word.to_owned();
        let database = cluster(SHARED, "").select_with(&Selection::All, |facts| {
            facts.thp = Present(Thp {
                shmem_enabled: Present(word),
                pmd_bytes: Present(Bytes::MIB_2),
                ..Thp::unknown("never", "not read")
            });
        });
        database.into_value().unwrap().remove(0).memory.page_size_bytes
    };
    assert!(matches!(shmem("always"), Absent(_)));
    assert_eq!(shmem("never"), Present(Bytes::KIB_4));
    assert_eq!(shmem("advise"), Present(Bytes::KIB_4), "no server advises");
}

fn page_size(made: Made) -> Reading<Bytes> {
    made.only().memory.page_size_bytes
}

#[test]
fn the_size_of_pooled_pages() {
    let key = "filesystem:/proc/100/map_files/7f0000000000-7f0180000000";
    let told = serde_json::json!({"HugePages": Bytes::GIB_1});
    let by_filesystem = cluster(POOLED, "").answer(key, &Present(told));
    assert_eq!(page_size(by_filesystem), Present(Bytes::GIB_1), "as the kernel says");
    let by_setting = cluster(POOLED, "huge_page_size = 1GB\n");
    assert_eq!(page_size(by_setting), Present(Bytes::GIB_1), "as the server was told");
    assert_eq!(page_size(cluster(POOLED, "")), Present(Bytes::MIB_2), "the default");
}

#[test]
fn settings_from_files_say_so() {
    let conf = "huge_pages = try\nport = 5433\nprimary_conninfo = 'password=hunter2'\n\
                include_dir 'conf.d'\ninclude_if_exists 'none.conf'\n";
    let database = Made::new()
        .answer("ask:postgres:100", &Denied::<()>("the server says: no".to_owned()))
        .process(&Process {
            pid: 100,
            parent: 1,
            comm: "postgres",
            exe: "/usr/lib/postgresql/15/bin/postgres",
            command: "postgres|-D|/srv/a|-c|config_file=/etc/postgresql/15/main/postgresql.conf|-c|max_connections=7",
        })
        .link("/proc/100/cwd", "/srv/a")
        .file("/proc/100/root/etc/postgresql/15/main/postgresql.conf", conf)
        .file("/proc/100/root/etc/postgresql/15/main/conf.d/10.conf", "work_mem = 8MB\nport=1\n")
        .file("/proc/100/root/etc/postgresql/15/main/conf.d/20.conf", "port = 5434\n")
        .file("/proc/100/root/etc/postgresql/15/main/conf.d/30.txt", "port = 2\n")
        .file("/proc/100/root/srv/a/postgresql.auto.conf", "huge_pages = 'on'\n")
        .only();
    let settings = database.settings.value().unwrap();
    assert_eq!(settings.source, "files");
    assert!(settings.instead_of.contains("the server says: no"));
    assert_eq!(setting(&database, "port"), Some("5434"));
    assert_eq!(setting(&database, "work_mem"), Some("8MB"));
    assert_eq!(setting(&database, "huge_pages"), Some("on"), "ALTER SYSTEM wins");
    assert_eq!(setting(&database, "max_connections"), Some("7"), "the command line wins");
    assert_eq!(settings.values.len(), 5, "only what rules read: {settings:?}");
    assert_eq!(database.huge_pages.value().unwrap().asked, "on");
}

#[test]
fn files_that_include_each_other_end() {
    let database = cluster(SHARED, "include 'postgresql.conf'\nport = 1\n").only();
    assert_eq!(setting(&database, "port"), Some("1"));
    assert!(database.settings.value().unwrap().instead_of.contains("include each other"));
}

#[test]
fn a_configuration_that_may_not_be_read_is_not_a_default() {
    let database = Made::new()
        .postmaster(100, 1, "/srv/a")
        .denied("/proc/100/root/srv/a/postgresql.conf")
        .denied("/proc/100/root/srv/a/postgresql.auto.conf")
        .only();
    assert!(matches!(database.settings, Denied(_)));
    assert!(matches!(database.huge_pages, Denied(_)));
}

#[test]
fn the_server_is_believed_before_its_files() {
    let told = serde_json::json!({
        "version": "15.14", "product": null, "connections": null, "accesses": 12345,
        "settings": {"huge_pages": "try", "huge_page_size": "0",
                     "shared_memory_size_in_huge_pages": "3200"},
    });
    let database =
        cluster(SHARED, "huge_pages = off\n").answer("ask:postgres:100", &Present(told)).only();
    assert_eq!(database.settings.value().unwrap().source, "socket");
    assert_eq!(database.version, Present("15.14".to_owned()));
    let huge = database.huge_pages.value().unwrap();
    assert_eq!((huge.asked.as_str(), &huge.needed_pages), ("try", &Present(3200)));
    assert!(huge.source.contains("shared_memory_size_in_huge_pages"));
    let accesses = database.counters.accesses.value().unwrap();
    assert_eq!((accesses.count, accesses.counter.as_str()), (12345, "pg_stat_database.blks_hit"));
    assert!(accesses.pages_each.low < 1.0 && accesses.pages_each.high > accesses.pages_each.mid);
}

#[test]
fn the_version_is_in_the_data_directory() {
    assert_eq!(cluster(SHARED, "").only().version, Present("16".to_owned()));
}

fn mariadb(command: &str) -> Made {
    let maps = "7f0000000000-7f0020800000 rw-p 00000000 00:00 0 \n";
    Made::new()
        .file("/proc/100/maps", maps)
        .process(&Process {
            pid: 100,
            parent: 1,
            comm: "mariadbd",
            exe: "/usr/sbin/mariadbd",
            command,
        })
        .link("/proc/100/cwd", "/srv/my")
        .file("/proc/100/root/srv/my/mariadb_upgrade_info", "10.11.14-MariaDB")
}

fn options(made: Made) -> Made {
    made.file(
        "/proc/100/root/etc/mysql/my.cnf",
        "[client]\nport=1\n!includedir /etc/mysql/conf.d/\n",
    )
    .file(
        "/proc/100/root/etc/mysql/conf.d/50.cnf",
        "[mysqld]\ninnodb-buffer-pool-size = 512M\n[mariadb-10.11]\nlarge_pages\n\
             [mariadb-11.4]\nport=2\n[mysqldump]\nport=3\n",
    )
}

#[test]
fn mysql_settings_by_group_and_command_line() {
    let database = options(mariadb("mariadbd|--port=3307")).only();
    assert_eq!(setting(&database, "innodb_buffer_pool_size"), Some("512M"));
    assert_eq!(setting(&database, "large_pages"), Some("ON"));
    assert_eq!(setting(&database, "port"), Some("3307"));
    assert_eq!(database.version, Present("10.11.14".to_owned()));
    assert_eq!(database.data_directory, Present("/srv/my".to_owned()));
    assert_eq!(database.memory.shared_bytes, Present(Bytes(0x2080_0000)));
    let huge = database.huge_pages.value().unwrap();
    assert_eq!((huge.asked.as_str(), &huge.needed_pages), ("try", &Present(260)));
    assert!(matches!(database.connections, Absent(_)));
}

#[test]
fn mysql_on_pooled_pages_needs_all_that_it_mapped() {
    // As MariaDB 10.11 maps 512 MiB of buffer pool with its descriptors, log buffer and key cache.
    let maps = "7f3d53000000-7f3d73000000 rw-p 00000000 00:11 5   /anon_hugepage (deleted)\n\
                7f3d73000000-7f3d73600000 rw-p 20000000 00:11 5   /anon_hugepage (deleted)\n\
                7f3d50600000-7f3d51600000 rw-p 00000000 00:11 6   /anon_hugepage (deleted)\n\
                7f3d78400000-7f3d80000000 rw-p 00000000 00:11 7   /anon_hugepage (deleted)\n\
                7f3d84c7e000-7f3d8ac7e000 rw-p 00000000 00:00 0 \n";
    let database = Made::new().file("/proc/100/maps", maps);
    let database = database.process(&Process {
        pid: 100,
        parent: 1,
        comm: "mariadbd",
        exe: "/usr/sbin/mariadbd",
        command: "mariadbd|--no-defaults|--large-pages",
    });
    let database = database.only();
    assert_eq!(database.huge_pages.value().unwrap().needed_pages, Present(256 + 3 + 8 + 62));
    assert_eq!(database.memory.page_size_bytes, Present(Bytes::MIB_2));
}

#[test]
fn the_buffer_pool_of_mysql_is_told_from_its_other_memory() {
    // As MySQL 9.7 maps a buffer pool of 32 MiB, beside private memory of its own.
    let pool = "7f3d53000000-7f3d55200000 rw-p 00000000 00:11 5   /anon_hugepage (deleted)\n";
    let others = "7f3d78400000-7f3d87600000 rw-p 00000000 00:00 0 \n";
    let page = |maps: &str| {
        let database = Made::new().file("/proc/100/maps", maps);
        let database = database.process(&Process {
            pid: 100,
            parent: 1,
            comm: "mysqld",
            exe: "/usr/sbin/mysqld",
            command: "mysqld|--no-defaults|--large-pages|--innodb-buffer-pool-size=32M",
        });
        database.only().memory.page_size_bytes
    };
    assert_eq!(page(&format!("{others}{pool}")), Present(Bytes::MIB_2));
    assert_ne!(page(others), Present(Bytes::MIB_2), "it fell back");
}

#[test]
fn mysql_reads_no_default_files_when_told_so() {
    let huge = |command: &str| options(mariadb(command)).only();
    let none = huge("mariadbd|--no-defaults|--skip-large-pages");
    assert_eq!(none.settings.value().unwrap().source, "command line");
    assert_eq!(none.huge_pages.value().unwrap().asked, "off");
    let missing = huge("mariadbd|--defaults-file=/gone.cnf|--port=1");
    assert!(missing.settings.value().unwrap().instead_of.contains("/gone.cnf"));
    assert!(!missing.huge_pages.is_present(), "the file would say");
}

#[test]
fn redis_finds_the_file_of_its_port() {
    let redis = |port: &str| {
        let command = format!("redis-server 127.0.0.1:{port}");
        let exe = "/usr/bin/redis-server";
        let process = Process { pid: 100, parent: 1, comm: "redis-server", exe, command: &command };
        let conf = "port 6379\nmaxmemory 4gb\nrequirepass hunter2\n";
        Made::new().process(&process).file("/proc/100/root/etc/redis/redis.conf", conf).only()
    };
    assert_eq!(setting(&redis("6379"), "maxmemory"), Some("4gb"));
    assert!(
        matches!(redis("6380").settings, Absent(_)),
        "another server's file is worse than none"
    );
}

#[test]
fn a_heap_in_transparent_huge_pages_is_not_called_small() {
    let redis = |rollup: &str| -> Database {
        let exe = "/usr/bin/redis-server";
        let process =
            Process { pid: 100, parent: 1, comm: "redis-server", exe, command: "redis-server *:1" };
        let maps = "7f0000000000-7f0010000000 rw-p 00000000 00:00 0 \n";
        let made = Made::new().file("/proc/100/maps", maps);
        let made = made.process(&process).file("/proc/100/smaps_rollup", rollup);
        let all = made.select_with(&Selection::All, |facts| {
            facts.thp = facts.thp.clone().or_else(|| {
                Present(Thp {
                    pmd_bytes: Present(Bytes::MIB_2),
                    ..Thp::unknown("always", "not read")
                })
            });
        });
        all.into_value().unwrap().remove(0)
    };
    let huge = redis("AnonHugePages:      4096 kB\n");
    assert_eq!(huge.memory.page_size_bytes, Present(Bytes::MIB_2));
    assert_eq!(huge.memory.anon_huge_bytes, Present(Bytes(4 << 20)));
    let small = redis("AnonHugePages:         0 kB\n");
    assert_eq!(small.memory.page_size_bytes, Present(Bytes::KIB_4));
    let page = |db: &Database| db.memory.segments.value().unwrap()[0].page_size_bytes.clone();
    assert_eq!(page(&small), Present(Bytes::KIB_4));
    assert!(matches!(page(&huge), Absent(_)), "some of it may be on base pages");
    assert!(matches!(page(&redis("garbage")), Reading::Failed(_)), "nothing tells");
    assert!(matches!(small.huge_pages, Absent(_)));
}

#[test]
fn a_large_heap_is_not_walked() {
    let exe = "/usr/bin/redis-server";
    let process =
        Process { pid: 100, parent: 1, comm: "redis-server", exe, command: "redis-server *:1" };
    let status = "VmRSS:\t104857600 kB\nRssAnon:\t104857600 kB\nVmPTE:\t1 kB\n";
    let made = Made::new().file("/proc/100/status", status).process(&process);
    let database = made.file("/proc/100/smaps_rollup", "AnonHugePages: 0 kB\n").only();
    assert!(matches!(&database.memory.anon_huge_bytes, Absent(why) if why.contains("600 ms")));
}

#[test]
fn the_control_group_counts_what_is_too_large_to_walk() {
    let exe = "/usr/bin/redis-server";
    let process =
        Process { pid: 100, parent: 1, comm: "redis-server", exe, command: "redis-server *:1" };
    let status = "VmRSS:\t104857600 kB\nRssAnon:\t104857600 kB\nVmPTE:\t1 kB\n";
    let redis = |processes: &str| {
        let made = Made::new().file("/proc/100/status", status).process(&process);
        made.file("/proc/100/cgroup", "0::/redis\n")
            .file("/proc/self/mountinfo", "35 24 0:30 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n")
            .file("/sys/fs/cgroup/redis/cgroup.procs", processes)
            .file("/sys/fs/cgroup/redis/memory.stat", "anon 5\nanon_thp 107374182400\n")
            .only()
    };
    assert_eq!(redis("100\n").memory.anon_huge_bytes, Present(Bytes(100 << 30)));
    assert!(matches!(redis("1\n100\n").memory.anon_huge_bytes, Absent(_)), "not alone in it");
}
