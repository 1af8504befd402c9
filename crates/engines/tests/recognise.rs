//! Databases are recognised through odd names, and only databases are.

mod made;

use made::{Made, Process, ids};
use untax_core::Reading::{self, Absent, Present};
use untax_core::database::Model;
use untax_core::snapshot::ProcessTime;
use untax_engines::Selection;

const POSTGRES: &str = "/usr/lib/postgresql/15/bin/postgres";

#[test]
fn clusters_keep_their_own_processes() {
    let databases = Made::new()
        .postmaster(100, 1, "/srv/a")
        .backend(101, 100, "postgres: a: checkpointer ")
        .backend(102, 100, "postgres: a: shop shop [local] idle")
        .backend(103, 100, "postgres: a: shop shop 10.0.0.1(4711) SELECT")
        .backend(104, 100, "postgres: a: walsender repl 10.0.0.2(4444) streaming 0/3000148")
        .postmaster(200, 1, "/srv/b")
        .backend(201, 200, "postgres: walwriter ")
        .all();
    assert_eq!(ids(&databases), ["postgres:100", "postgres:200"]);
    let (a, b) = (&databases[0], &databases[1]);
    assert_eq!((a.processes(), b.processes()), (5, 2));
    assert_eq!((&a.connections, &b.connections), (&Present(2), &Present(0)));
    assert_eq!(a.model, Model::Process);
    assert_eq!(a.memory.page_table_bytes, Present(untax_core::Bytes::from_kib(500)));
    assert_eq!(a.version, Present("15".to_owned()), "from the path of the program");
}

#[test]
fn a_server_started_from_inside_another_is_its_own() {
    let shell = Process { pid: 110, parent: 102, comm: "sh", exe: "/bin/dash", command: "sh|-c|x" };
    let databases = Made::new()
        .postmaster(100, 1, "/srv/a")
        .backend(102, 100, "postgres: shop shop [local] COPY")
        .process(&shell)
        .postmaster(111, 110, "/srv/inner")
        .backend(112, 111, "postgres: walwriter ")
        .postmaster(120, 102, "/srv/started-without-a-shell")
        .all();
    assert_eq!(ids(&databases), ["postgres:100", "postgres:111", "postgres:120"]);
    assert_eq!(databases[0].processes(), 3, "postmaster, backend and shell");
    assert_eq!(databases[1].processes(), 2);
}

#[test]
fn a_backend_without_a_title_yet_is_no_server() {
    let young = format!("{POSTGRES}|-D|/srv/a");
    let database = Made::new().postmaster(100, 1, "/srv/a").backend(101, 100, &young).only();
    assert_eq!(database.processes(), 2);
}

#[test]
fn runs_that_serve_nobody_are_left_out() {
    let run = |pid, command: &str| {
        let command = format!("{POSTGRES}|{command}");
        Made::new().backend(pid, 1, &command).all()
    };
    for command in ["-C|shared_memory_size|-D|/d", "--single|-D|/d", "--boot|-x", "--version"] {
        assert!(run(100, command).is_empty(), "{command}");
    }
    let orphan = Made::new().backend(100, 1, "postgres: shop shop [local] idle").all();
    assert!(orphan.is_empty(), "its postmaster is gone");
}

#[test]
fn a_replaced_program_is_still_itself() {
    let exe = format!("{POSTGRES} (deleted)");
    let command = format!("{POSTGRES}|-D|/srv/a");
    let server = Process { pid: 100, parent: 1, comm: "postgres", exe: &exe, command: &command };
    let child = Process { pid: 101, parent: 100, command: "postgres: walwriter ", ..server };
    let database = Made::new().process(&server).process(&child).only();
    assert_eq!(database.executable, Present(POSTGRES.to_owned()));
    assert_eq!(database.executable_deleted, Present(true));
    assert_eq!(database.processes(), 2);
    assert_eq!(Made::new().postmaster(1, 0, "/d").only().executable_deleted, Present(false));
}

#[test]
fn names_of_any_spelling_lead_to_the_program() {
    let comm = "pg) R 1 (x\ny z";
    let server =
        Process { pid: 100, parent: 1, comm, exe: POSTGRES, command: "my database|-D|/srv/a" };
    let child = Process { pid: 101, parent: 100, command: "postgres: walwriter ", ..server };
    let database = Made::new().process(&server).process(&child).only();
    assert_eq!((database.id.as_str(), database.processes()), ("postgres:100", 2));
}

#[test]
fn a_renamed_program_is_known_by_what_it_exports() {
    let exe = "/srv/bin/db-prod";
    let server =
        Process { pid: 100, parent: 1, comm: "db-prod", exe, command: "db-prod|-D|/srv/a" };
    let child = Process { pid: 101, parent: 100, command: "postgres: walwriter ", ..server };
    let other = Process { pid: 102, exe: "/srv/bin/other", ..server };
    let exported = |symbols: &[(u32, &[&str])]| {
        let made = Made::new().process(&server).process(&child).process(&other);
        made.answer("exported-symbols", &Present(symbols.to_vec())).all()
    };
    let main = ["PostmasterMain"];
    let databases = exported(&[(100, &main), (101, &main), (102, &["serverCron"])]);
    assert_eq!(ids(&databases), ["postgres:100"], "half of what an engine exports is not enough");
    assert_eq!(databases[0].processes(), 2);
    assert!(exported(&[]).is_empty());
}

#[test]
fn a_program_of_the_loader_is_the_one_that_it_loads() {
    let exe = "/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2";
    let command =
        "/lib64/ld-linux-x86-64.so.2|--library-path|/srv/lib|/srv/17/bin/postgres|-D|/srv/a";
    let server = Process { pid: 100, parent: 1, comm: "ld-linux-x86-64", exe, command };
    let title = "/lib64/ld-linux-x86-64.so.2|--library-path|/srv/lib|postgres: walwriter ";
    let child = Process { pid: 101, parent: 100, command: title, ..server };
    let other = Process { pid: 102, command: "ld.so|/bin/psql|-c|SECRET", ..server };
    let databases = || Made::new().process(&server).process(&child).process(&other);
    let found = databases().link("/proc/100/cwd", "/srv/a").all();
    assert_eq!(ids(&found), ["postgres:100"]);
    assert_eq!(found[0].processes(), 2);
    assert_eq!(found[0].executable, Present("/srv/17/bin/postgres".to_owned()));
    assert_eq!(found[0].version, Present("17".to_owned()));
    let denied = |made: Made, pid: u32| made.denied(&format!("/proc/{pid}/exe"));
    let hidden = denied(denied(denied(databases(), 100), 101), 102).all();
    assert_eq!(ids(&hidden), ["postgres:100"], "of another user");
}

#[test]
fn a_redis_of_any_title_is_a_server() {
    let exe = "/usr/bin/redis-check-rdb";
    let titled = |command| {
        let server = Process { pid: 100, parent: 1, comm: "redis-server", exe, command };
        Made::new().process(&server).all().len()
    };
    for server in ["redis-cache *:6379", "sessions 127.0.0.1:1 [cluster]", "valkey-prod *:6379"] {
        assert_eq!(titled(server), 1, "{server}");
    }
    for other in ["redis-sentinel *:26379 [sentinel]", "redis-check-rdb|dump.rdb"] {
        assert_eq!(titled(other), 0, "{other}");
    }
    let server = Process { pid: 100, parent: 1, comm: "redis-server", exe, command: "cache *:1" };
    let child = Process { pid: 101, parent: 100, command: "redis-rdb-bgsave *:1", ..server };
    assert_eq!(Made::new().process(&server).process(&child).only().processes(), 2);
}

#[test]
fn other_users_programs_are_known_by_name_and_command_line() {
    let hidden = |comm, command| {
        let process = Process { pid: 100, parent: 1, comm, exe: "", command };
        Made::new().process(&process).denied("/proc/100/exe").all()
    };
    let postgres = hidden("renamed", "/usr/lib/postgresql/15/bin/postgres|-D|/srv/a");
    assert_eq!(ids(&postgres), ["postgres:100"]);
    assert!(matches!(postgres[0].executable, Reading::Denied(_)));
    assert!(matches!(postgres[0].executable_deleted, Reading::Denied(_)));
    assert_eq!(ids(&hidden("mariadbd", "renamed")), ["mysql:100"]);
    assert_eq!(ids(&hidden("redis-server", "redis-server *:6379")), ["redis:100"]);
    assert_eq!(ids(&hidden("ora_pmon_ORCL", "ora_pmon_ORCL")), ["oracle:100"]);
    assert!(hidden("postgres", "/bin/bash|/usr/local/bin/postgres").is_empty(), "a script");
    assert!(hidden("mysqld_safe", "/bin/sh|/usr/bin/mysqld_safe").is_empty());
}

#[test]
fn mysql_without_its_watcher() {
    let watcher = Process {
        pid: 100,
        parent: 1,
        comm: "mysqld_safe",
        exe: "/bin/dash",
        command: "/bin/sh|/usr/bin/mysqld_safe",
    };
    let server = Process {
        pid: 101,
        parent: 100,
        comm: "mariadbd",
        exe: "/usr/sbin/mariadbd",
        command: "/usr/sbin/mariadbd|--datadir=/srv/my",
    };
    let bootstrap = Process { pid: 200, command: "/usr/sbin/mariadbd|--bootstrap", ..server };
    let database = Made::new().process(&watcher).process(&server).process(&bootstrap).only();
    assert_eq!((database.id.as_str(), database.product.as_str()), ("mysql:101", "MariaDB"));
    assert_eq!((database.model, database.processes()), (Model::Thread, 1));
}

#[test]
fn redis_with_its_saving_child_and_without_sentinels() {
    let exe = "/usr/bin/redis-check-rdb";
    let server = Process {
        pid: 100,
        parent: 1,
        comm: "redis-server",
        exe,
        command: "redis-server 127.0.0.1:6379",
    };
    let child =
        Process { pid: 101, parent: 100, command: "redis-rdb-bgsave 127.0.0.1:6379", ..server };
    let sentinel = Process { pid: 200, command: "redis-server *:26379 [sentinel]", ..server };
    let check = Process { pid: 300, command: "redis-check-rdb|/d/dump.rdb", ..server };
    let made = Made::new().process(&server).process(&child).process(&sentinel).process(&check);
    let database = made.only();
    assert_eq!((database.id.as_str(), database.processes()), ("redis:100", 2));
    assert_eq!(database.model, Model::Loop);
}

#[test]
fn mongodb_without_its_router() {
    let server = Process {
        pid: 100,
        parent: 1,
        comm: "mongod",
        exe: "/usr/bin/mongod",
        command: "/usr/bin/mongod|--config|/etc/mongod.conf",
    };
    let router = Process { pid: 101, comm: "mongos", exe: "/usr/bin/mongos", ..server };
    let conf = "storage:\n  dbPath: /srv/mongo\nnet:\n  port: 27018\n";
    let made = Made::new().process(&server).process(&router);
    let database = made.file("/proc/100/root/etc/mongod.conf", conf).only();
    assert_eq!(database.id, "mongodb:100");
    assert_eq!(database.data_directory, Present("/srv/mongo".to_owned()));
    assert_eq!(made::setting(&database, "net.port"), Some("27018"));
    assert!(matches!(database.version, Absent(_)));
    assert_eq!(database.memory.shared_bytes, Present(untax_core::Bytes::from_kib(4096)));
}

fn oracle(made: Made, pid: u32, name: &str, namespace: &str) -> Made {
    let exe = "/u01/app/oracle/product/19.3.0/dbhome_1/bin/oracle";
    made.process(&Process { pid, parent: 1, comm: &name[..name.len().min(15)], exe, command: name })
        .link(&format!("/proc/{pid}/ns/pid"), namespace)
}

#[test]
fn oracle_instances_by_name_and_namespace() {
    let host = "pid:[1]";
    let maps = "60000000-160000000 rw-s 00000000 00:0f 32768   /SYSV00000000 (deleted)\n";
    let mut made = Made::new().file("/proc/100/maps", maps);
    for (pid, name) in [
        (100, "ora_pmon_ORCL"),
        (101, "ora_dbw0_ORCL"),
        (102, "oracleORCL (LOCAL=NO)"),
        (103, "oracleORCL (DESCRIPTION=(LOCAL=YES)(ADDRESS=(PROTOCOL=beq)))"),
        (110, "ora_pmon_TEST"),
        (111, "oracleTEST (LOCAL=NO)"),
        (120, "asm_pmon_+ASM"),
    ] {
        made = oracle(made, pid, name, host);
    }
    made = oracle(made, 200, "ora_pmon_ORCL", "pid:[2]");
    made = oracle(made, 201, "ora_lgwr_ORCL", "pid:[2]");
    let databases = made.all();
    assert_eq!(ids(&databases), ["oracle:100", "oracle:110", "oracle:200"]);
    let counts: Vec<_> = databases.iter().map(|d| (d.processes(), d.connections.clone())).collect();
    assert_eq!(counts, [(4, Present(2)), (2, Present(1)), (2, Present(0))]);
    assert_eq!(databases[0].version, Present("19.3.0".to_owned()));
    assert_eq!(databases[0].memory.shared_bytes, Present(untax_core::Bytes(4 << 30)));
    assert!(matches!(databases[0].settings, Absent(_)));
}

#[test]
fn any_process_of_a_database_selects_it() {
    let made = || {
        let other =
            Process { pid: 300, parent: 1, comm: "java", exe: "/bin/java", command: "java" };
        let worker = Process { pid: 301, parent: 300, ..other };
        let made = Made::new().postmaster(100, 1, "/srv/a");
        made.backend(102, 100, "postgres: a b [local] idle").process(&other).process(&worker)
    };
    let select = |pid| made().select(&Selection::Pid(pid));
    assert_eq!(ids(&select(102).into_value().unwrap()), ["postgres:100"]);
    let generic = select(300).into_value().unwrap();
    assert_eq!(ids(&generic), ["generic:300"]);
    assert_eq!((generic[0].product.as_str(), generic[0].processes()), ("java", 2));
    assert_eq!(generic[0].model, Model::Unknown);
    assert!(matches!(generic[0].connections, Absent(_)));
    assert!(matches!(select(999), Absent(_)));
}

#[test]
fn a_container_is_selected_by_the_beginning_of_its_id() {
    let id = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    let made = || {
        let cgroup = format!("0::/system.slice/docker-{id}.scope\n");
        let mounts = "35 24 0:30 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
        let status = "Uid:\t999\t999\t999\t999\nNSpid:\t100\t1\nVmRSS:\t8 kB\n";
        Made::new()
            .file("/proc/100/status", status)
            .postmaster(100, 1, "/var/lib/postgresql/data")
            .postmaster(200, 1, "/srv/b")
            .file("/proc/100/cgroup", &cgroup)
            .file("/proc/200/cgroup", "0::/system.slice/postgresql.service\n")
            .file("/proc/self/mountinfo", mounts)
    };
    let select = |id: &str| made().select(&Selection::Container(id.to_owned()));
    let chosen = select("0123456").into_value().unwrap();
    assert_eq!(ids(&chosen), ["postgres:100"]);
    assert_eq!(chosen[0].namespace_pid, Some(1));
    assert_eq!(chosen[0].container.as_ref().unwrap().runtime, "docker");
    assert!(matches!(select("fff"), Absent(_)));
    let all = made().all();
    assert_eq!((all[1].namespace_pid, &all[1].container), (None, &None));
}

#[test]
fn kernel_threads_and_the_vanished_are_no_processes() {
    let kthreadd = Process { pid: 2, parent: 0, comm: "kthreadd", exe: "", command: "" };
    let thread = Process { pid: 3, parent: 2, comm: "postgres", exe: "", command: "" };
    let worker = Process { pid: 4, parent: 2, comm: "kworker/0:1-xfs", exe: "", command: "" };
    let user = Process { pid: 5, parent: 1, comm: "kworker/0:2", exe: "/tmp/x", command: "x" };
    let made = [kthreadd, thread, worker, user].iter().fold(Made::new(), Made::process);
    let made = made.denied("/proc/3/exe").file("/proc/77/cmdline", "postgres|-D|/d");
    let found = made.discovered(&Selection::All, |_| {}).into_value().unwrap();
    assert!(found.databases.is_empty());
    let pids = |all: &[ProcessTime]| all.iter().map(|one| one.pid).collect::<Vec<_>>();
    assert_eq!(pids(&found.processes), [1, 5], "anybody may call a program so");
    assert_eq!(pids(&found.kernel_workers), [4]);
}
