//! Scratch servers, loads and settings on this machine. A server that is not installed is skipped
//! with a message; set `UNTAX_REQUIRE_REAL=1` to fail instead.

#![expect(
    clippy::disallowed_methods,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test looks at the machine by other ways than the code that it tests"
)]

use rustix::fs::{FallocateFlags, MemfdFlags, fallocate, memfd_create};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use untax_scenes::{
    HugePages, MariaDb, Pgbench, Postgres, Redis, RedisBenchmark, Runtime, SceneError, Sysbench,
    Thp, Turn,
};

const POOL: &str = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages";
const THP: &str = "/sys/kernel/mm/transparent_hugepage/enabled";

/// Is the guard of what a test changes, where this very program is started as one: see
/// `untax_changes::guard::main`.
#[test]
fn __guard() {
    let _ = untax_changes::guard::main(std::env::args_os());
}

/// The started server, or `None` when this machine lacks the program for it.
fn installed<T>(started: Result<T, SceneError>) -> Option<T> {
    let required = std::env::var_os("UNTAX_REQUIRE_REAL").is_some_and(|value| value == "1");
    match started {
        Ok(server) => Some(server),
        Err(error @ (SceneError::Missing { .. } | SceneError::NeedsRoot { .. })) if !required => {
            // Not with a macro: the test harness keeps what those print of a passing test.
            let mut stderr = std::io::stderr();
            writeln!(stderr, "SKIPPED: {error}").unwrap();
            None
        }
        Err(error) => panic!("{error}: {error:?}"),
    }
}

fn is_alive(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

fn eventually(what: &str, condition: impl Fn() -> bool) {
    let since = Instant::now();
    while !condition() {
        assert!(since.elapsed() < Duration::from_secs(60), "{what} did not come about");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn postgres_serves_a_load_restarts_with_other_settings_and_leaves_nothing() {
    let settings = [("shared_buffers", "64MB"), ("huge_pages", "off")];
    let Some(mut postgres) = installed(Postgres::start(Runtime::Host, &settings)) else { return };
    postgres.pgbench_fill(1, 100).unwrap();
    for reconnect in [false, true] {
        let load = Pgbench { clients: 4, seconds: 1, reconnect, ..Pgbench::default() };
        assert!(postgres.pgbench(&load).unwrap().finish().unwrap() > 0.0);
    }
    let before = postgres.pid().unwrap();
    postgres.restart(&[("shared_buffers", "96MB"), ("huge_pages", "off")]).unwrap();
    let pid = postgres.pid().unwrap();
    assert!(is_alive(pid) && !is_alive(before));
    assert_eq!(postgres.sql("SHOW shared_buffers").unwrap().trim(), "96MB");
    assert_eq!(postgres.sql("SELECT count(*) FROM pgbench_accounts").unwrap().trim(), "100000");
    let data = postgres.data_directory();
    drop(postgres);
    assert!(!is_alive(pid) && !Path::new(&data).exists());
}

#[test]
fn mariadb_serves_a_load_restarts_with_other_settings_and_leaves_nothing() {
    let settings = [("innodb_buffer_pool_size", "64M")];
    let Some(mut mariadb) = installed(MariaDb::start(Runtime::Host, &settings)) else { return };
    mariadb.sysbench_fill(1000).unwrap();
    let load = Sysbench { threads: 4, seconds: 1, rows: 1000 };
    assert!(mariadb.sysbench_run(&load).unwrap().finish().unwrap() > 0.0);
    mariadb.restart(&[("innodb_buffer_pool_size", "96M")]).unwrap();
    let size = mariadb.sql("SELECT @@innodb_buffer_pool_size").unwrap();
    assert_eq!(size.trim(), (96 << 20).to_string());
    assert_eq!(mariadb.sql("SELECT count(*) FROM sbtest.sbtest1").unwrap().trim(), "1000");
    let (pid, data) = (mariadb.pid().unwrap(), mariadb.data_directory());
    drop(mariadb);
    assert!(!is_alive(pid) && !Path::new(&data).exists());
}

#[test]
fn redis_serves_a_load_with_a_password_and_leaves_nothing() {
    let settings = [("requirepass", "scratch-password")];
    let Some(redis) = installed(Redis::start(Runtime::Host, &settings)) else { return };
    for writes in [true, false] {
        let load =
            RedisBenchmark { clients: 4, requests: 20_000, keys: 1000, value_bytes: 100, writes };
        assert!(redis.benchmark(&load).unwrap().finish().unwrap() > 0.0);
    }
    let keys: u64 = redis.command(["dbsize"]).unwrap().trim().parse().unwrap();
    assert!((900..=1000).contains(&keys), "{keys} keys");
    let (pid, data) = (redis.pid().unwrap(), redis.data_directory());
    drop(redis);
    assert!(!is_alive(pid) && !Path::new(&data).exists());
}

#[test]
fn a_container_is_a_container_and_leaves_nothing() {
    let Some(mut redis) = installed(Redis::start(Runtime::Runc, &[])) else { return };
    let (id, first) = (redis.container_id().unwrap().to_owned(), redis.pid().unwrap());
    let cgroup = fs::read_to_string(format!("/proc/{first}/cgroup")).unwrap();
    assert!(cgroup.contains(&id), "{cgroup}");
    assert_eq!(redis.command(["ping"]).unwrap().trim(), "PONG");
    redis.restart(&[]).unwrap();
    let pid = redis.pid().unwrap();
    assert!(is_alive(pid) && !is_alive(first));
    drop(redis);
    assert!(!is_alive(pid));
    assert!(!Path::new("/run/runc").join(&id).exists());
    assert!(!cgroup_exists(&id), "the control group of {id} is still there");
}

#[test]
fn a_sandbox_is_a_sandbox_and_leaves_nothing() {
    let Some(redis) = installed(Redis::start(Runtime::Gvisor, &[])) else { return };
    let pid = redis.pid().unwrap();
    let data = redis.data_directory();
    // The sandbox has no process of the server's own.
    let program = fs::read_link(format!("/proc/{pid}/exe")).unwrap();
    assert!(program.ends_with("runsc"), "{}", program.display());
    assert_eq!(redis.command(["ping"]).unwrap().trim(), "PONG");
    drop(redis);
    assert!(!is_alive(pid) && !Path::new(&data).exists());
}

fn cgroup_exists(id: &str) -> bool {
    let find = Command::new("find").args(["/sys/fs/cgroup", "-name", id]).output().unwrap();
    !find.stdout.is_empty()
}

#[test]
fn a_server_that_cannot_start_says_why() {
    let refused = Postgres::start(Runtime::Host, &[("shared_buffers", "plenty")]);
    if let Some(SceneError::Missing { .. }) = refused.as_ref().err() {
        installed(refused);
        return;
    }
    let error = refused.err().expect("no such size").to_string();
    assert!(error.contains("postgres failed") && error.contains("shared_buffers"), "{error}");
}

/// The part that is killed: a process of its own, which the test below starts and which says what
/// it started.
#[test]
fn victim() {
    let place = match std::env::var("UNTAX_LAB_PLACE").as_deref() {
        Ok("host") => Runtime::Host,
        Ok(_) => Runtime::Runc,
        Err(_) => return,
    };
    let postgres = Postgres::start(place, &[("shared_buffers", "16MB")]).unwrap();
    postgres.pgbench_fill(1, 100).unwrap();
    let _load = postgres.pgbench(&Pgbench { seconds: 600, ..Pgbench::default() }).unwrap();
    let _settings = other_settings();
    println!("STARTED {} {}", postgres.pid().unwrap(), postgres.socket_directory());
    std::thread::sleep(Duration::from_secs(600));
}

/// Other settings than the present ones, where we may set them.
fn other_settings() -> Option<(HugePages, Thp)> {
    let never = fs::read_to_string(THP).unwrap().contains("[never]");
    let other = if never { "madvise" } else { "never" };
    Some((HugePages::reserve(3).ok()?, Thp::set(other).ok()?))
}

fn host_settings() -> [String; 2] {
    [POOL, THP].map(|path| fs::read_to_string(path).unwrap())
}

#[test]
fn nothing_outlives_a_killed_starter() {
    if installed(Postgres::start(Runtime::Runc, &[])).is_none() {
        return;
    }
    let _turn = Turn::wait().unwrap();
    let settings = host_settings();
    for place in ["host", "runc"] {
        let mut victim = Command::new(std::env::current_exe().unwrap())
            .args(["victim", "--exact", "--nocapture"])
            .env("UNTAX_LAB_PLACE", place)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(victim.stdout.take().unwrap()).lines();
        let line = lines
            .map(Result::unwrap)
            .find_map(|l| l.split_once("STARTED ").map(|(_, rest)| rest.to_owned()));
        let line = line.expect("the victim starts a server");
        let (pid, directory) = line.split_once(' ').unwrap();
        let pid = pid.parse().unwrap();
        assert!(is_alive(pid), "{pid}");
        let own = format!("{}.own", directory.trim_end_matches('/'));
        assert!(Path::new(&own).exists(), "{own}");
        let [pool, thp] = host_settings();
        assert!(pool != settings[0] && thp != settings[1], "{pool} {thp}");
        victim.kill().unwrap();
        victim.wait().unwrap();
        eventually("the restoring of the settings", || host_settings() == settings);
        eventually("the end of the server", || !is_alive(pid));
        for removed in [directory, &own] {
            eventually("the removal of its files", || !Path::new(removed).exists());
        }
        eventually("the end of its load", || !mentions(directory));
        let id = directory.trim_end_matches('/').rsplit('/').next().unwrap().to_owned();
        eventually("the removal of its container", || !cgroup_exists(&id));
    }
}

#[test]
fn the_pool_shrinks_though_its_user_ends_meanwhile() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let _turn = Turn::wait().unwrap();
    let before = host_settings();
    for round in 0..60 {
        let pool = HugePages::reserve(300).unwrap();
        let memory = memfd_create("untax-lab", MemfdFlags::HUGETLB).unwrap();
        fallocate(&memory, FallocateFlags::empty(), 0, 40 << 21).unwrap();
        // The moment at which the kernel goes wrong is short, and not always the same.
        let user = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_micros(round * 100));
            drop(memory);
        });
        drop(pool);
        user.join().unwrap();
        assert_eq!(host_settings(), before, "round {round}");
    }
}

/// Whether any process has `text` in its command line.
fn mentions(text: &str) -> bool {
    let pids = fs::read_dir("/proc").unwrap().flatten();
    pids.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok())
        .any(|line| String::from_utf8_lossy(&line).contains(text))
}
