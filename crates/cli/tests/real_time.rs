//! Where a database's time goes: every second of every thread is in one part, and the parts are
//! what other instruments of the machine say.

#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test looks at the machine by other ways than the code that it tests, and prints what \
              it saw"
)]

mod support;

use serde_json::Value;
use std::process::Command;
use support::numbers::{part, sum};
use support::{Bystander, Untax, database, rules};
use untax_scenes::{
    Group, Load, MariaDb, Pgbench, Postgres, Redis, RedisBenchmark, Runtime, SceneError, Settings,
    Sysbench,
};

/// How many threads a process and its children have.
fn threads(main: u32) -> usize {
    let children = format!("/proc/{main}/task/{main}/children");
    let children = std::fs::read_to_string(children).unwrap();
    let children = children.split_ascii_whitespace().map(|pid| pid.parse().unwrap());
    let tasks =
        |pid: u32| std::fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count);
    std::iter::once(main).chain(children).map(tasks).sum()
}

/// A check of a database during which none of its threads came or went.
fn steady(pid: u32) -> (usize, Value) {
    for _ in 0..10 {
        // Clients connect within this, and background threads that are not needed end.
        std::thread::sleep(std::time::Duration::from_secs(3));
        let before = threads(pid);
        let check = Untax::new().check(pid);
        if threads(pid) == before {
            return (before, check);
        }
    }
    panic!("threads come and go: the load is not as meant");
}

/// Checks a database under load: all time of the threads that serve its clients is accounted for, little of it as
/// unknown. `serving` says how many of all these are.
fn accounted(pid: u32, serving: impl Fn(usize) -> usize) -> Value {
    let (before, check) = steady(pid);
    let found = database(&check, pid).clone();
    let serving = serving(before);
    let expected = serving as f64 * check["window_s"].as_f64().unwrap();
    let off = sum(&found) / expected - 1.0;
    assert!(off.abs() < 0.02, "{off:+.3} of {serving} of {before} threads: {:#}", found["time"]);
    let active = part(&found, "active_s");
    assert!(part(&found, "unaccounted_s") < 0.05 * active, "{:#}", found["time"]);
    assert!(part(&found, "on_cpu_s") > 0.0 && active > 0.1, "{:#}", found["time"]);
    found
}

/// How many of a process's threads the kernel has started, for `io_uring`.
fn workers(pid: u32) -> usize {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let names =
        tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
    names.filter(|name| name.starts_with("iou-wrk")).count()
}

/// Longer than any check of it takes.
const MINUTES: u32 = 180;

#[test]
fn every_second_of_postgres_is_accounted_for() {
    support::real(|| {
        let postgres = Postgres::start(Runtime::Host, &[("shared_buffers", "256MB")])?;
        postgres.pgbench_fill(10, 100)?;
        let reads = Pgbench { clients: 12, seconds: MINUTES, ..Pgbench::default() };
        let load = postgres.pgbench(&reads)?;
        accounted(postgres.pid().unwrap(), |_| 12);
        drop(load);
        let writes = Pgbench { writes: true, ..reads };
        let _load = postgres.pgbench(&writes)?;
        let found = accounted(postgres.pid().unwrap(), |_| 12);
        assert!(part(&found, "lock_s") > 0.0, "clients update the same rows: {:#}", found["time"]);
        Ok(())
    });
}

#[test]
fn clients_that_connect_while_a_check_begins_are_seen() {
    support::real(|| {
        let postgres = Postgres::start(Runtime::Host, &[("shared_buffers", "256MB")])?;
        postgres.pgbench_fill(10, 100)?;
        let pid = postgres.pid().unwrap();
        let reads = Pgbench { clients: 32, seconds: MINUTES, ..Pgbench::default() };
        for delay_ms in [40, 80, 120, 160, 200, 240] {
            // What of the window is traced may lie before their first request.
            support::one_of(3, || {
                std::thread::scope(|scope| {
                    let check = scope.spawn(|| Untax::new().check(pid));
                    std::thread::sleep(std::time::Duration::from_millis(delay_ms));
                    let _load = postgres.pgbench(&reads).unwrap();
                    let check = check.join().unwrap();
                    let found = database(&check, pid);
                    let active_s = found["time"]["active_s"].as_f64();
                    let good = active_s > check["window_s"].as_f64();
                    support::demand(good, || format!("{delay_ms} ms: {:#}", found["time"]))
                })
            });
        }
        Ok(())
    });
}

/// A process that writes the log is woken by those that send to it, and none of these is its client.
#[test]
fn processes_of_one_database_are_not_its_clients() {
    support::real(|| {
        let settings = [("logging_collector", "on"), ("log_statement", "all")];
        let postgres = Postgres::start(Runtime::Host, &settings)?;
        postgres.pgbench_fill(1, 100)?;
        let _load = postgres.pgbench(&Pgbench { seconds: MINUTES, ..Pgbench::default() })?;
        let untax = Untax::new();
        let check = untax.check(postgres.pid().unwrap());
        let run = format!("state/runs/{}.json", check["run"].as_str().unwrap());
        let saved = std::fs::read(untax.path(&run)).unwrap();
        let saved: Value = serde_json::from_slice(&saved).unwrap();
        let activity = &saved["window"]["activity"][0];
        let clients = activity["clients"].as_array().unwrap();
        let own = saved["window"]["end"]["databases"][0]["pids"].as_array().unwrap();
        assert!(!clients.is_empty() && own.len() > 4, "{clients:?} of {own:?}");
        assert!(clients.iter().all(|pid| !own.contains(pid)), "{clients:?} of {own:?}");
        Ok(())
    });
}

/// A MariaDB that eight clients ask.
fn busy(settings: Settings) -> Result<(MariaDb, Load), SceneError> {
    let mariadb = MariaDb::start(Runtime::Host, settings)?;
    mariadb.sysbench_fill(50_000)?;
    let load = mariadb.sysbench_run(&Sysbench { threads: 8, seconds: MINUTES, rows: 50_000 })?;
    Ok((mariadb, load))
}

#[test]
fn every_second_of_mariadb_is_accounted_for() {
    support::real(|| {
        let (mariadb, _load) = busy(&[("innodb_buffer_pool_size", "256M")])?;
        accounted(mariadb.pid().unwrap(), |all| all);
        Ok(())
    });
}

#[test]
fn workers_that_the_kernel_writes_with_for_mariadb_are_too() {
    support::real(|| {
        // What is written through the page cache the kernel hands to threads of the server's.
        let settings = [
            ("innodb_buffer_pool_size", "256M"),
            ("innodb_flush_method", "fsync"),
            ("innodb_max_dirty_pages_pct", "0"),
        ];
        let (mariadb, _load) = busy(&settings)?;
        let pid = mariadb.pid().unwrap();
        let found = accounted(pid, |all| all);
        let workers = workers(pid);
        println!("{workers} workers: {:#}", found["time"]);
        assert!(workers > 0, "the kernel has no threads of the server's: nothing is tested");
        Ok(())
    });
}

#[test]
fn threads_whose_clients_have_gone_wait_for_no_lock() {
    const CLIENTS: u32 = 16;
    support::real(|| {
        let mariadb = MariaDb::start(Runtime::Host, &[])?;
        let pid = mariadb.pid().unwrap();
        // They come, ask for nothing dear and go again, and their threads stay for those to come.
        let visits = || -> Result<(), SceneError> {
            std::thread::scope(|scope| {
                let visit = |_| scope.spawn(|| mariadb.sql("select 1").map(drop));
                let visits: Vec<_> = (0..CLIENTS).map(visit).collect();
                visits.into_iter().try_for_each(|visit| visit.join().unwrap())
            })
        };
        let kept = || -> Result<u32, SceneError> {
            let kept = mariadb.sql("show global status like 'Threads_cached'")?;
            Ok(kept.split_whitespace().last().unwrap().parse().unwrap())
        };
        // As many are kept as were there at once, which where they start slowly are few.
        for _ in 0..30 {
            visits()?;
            if kept()? >= CLIENTS / 2 {
                break;
            }
        }
        let check = std::thread::scope(|scope| {
            let check = scope.spawn(|| Untax::new().check(pid));
            while !check.is_finished() {
                visits()?;
                std::thread::sleep(std::time::Duration::from_millis(500));
            }
            Ok::<_, SceneError>(check.join().unwrap())
        })?;
        let kept = kept()?;
        assert!(kept >= CLIENTS / 2, "{kept} threads are kept: nothing is tested");
        let found = database(&check, pid);
        assert!(part(found, "active_s") > 0.0, "the visits were seen: {:#}", found["time"]);
        let slept_s = f64::from(kept) * check["window_s"].as_f64().unwrap();
        assert!(part(found, "lock_s") < 0.05 * slept_s, "{:#}", found["time"]);
        Ok(())
    });
}

/// PostgreSQL starts a process for each worker of a parallel query, as it does for each client.
#[test]
fn workers_of_parallel_queries_are_no_connections() {
    support::real(|| {
        let settings = [
            ("shared_buffers", "128MB"),
            ("max_parallel_workers_per_gather", "2"),
            ("min_parallel_table_scan_size", "0"),
            ("parallel_setup_cost", "0"),
            ("parallel_tuple_cost", "0"),
        ];
        let postgres = Postgres::start(Runtime::Host, &settings)?;
        postgres.pgbench_fill(1, 100)?;
        let pid = postgres.pid().unwrap();
        let untax = Untax::new();
        let script = untax.path("sum.sql");
        std::fs::write(&script, "SELECT sum(abalance) FROM pgbench_accounts;\n").unwrap();
        let mut load = Command::new("pgbench");
        load.args(["-n", "-c", "4", "-T", "600", "-f"]).arg(&script);
        let (folder, port) = (postgres.socket_directory(), postgres.port().to_string());
        load.args(["-h", &folder, "-p", &port]);
        load.args(["-U", postgres.user(), "postgres"]);
        let _load = Bystander::start(load);
        let before = processes_started();
        let check = untax.check(pid);
        let started = processes_started() - before;
        assert!(started > 100, "{started} processes were started: nothing is tested");
        let found = database(&check, pid);
        assert!(!rules(found).contains(&"short-connections"), "{found:#}");
        Ok(())
    });
}

/// What a server and the processes that it started have computed so far: ticks.
fn computed(main: u32) -> u64 {
    let of = |pid: u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
        // utime, stime, and those of children that have ended.
        let ticks: Vec<u64> =
            fields.skip(11).take(4).filter_map(|field| field.parse().ok()).collect();
        ticks.iter().sum::<u64>()
    };
    let children = std::fs::read_to_string(format!("/proc/{main}/task/{main}/children"));
    let children = children.unwrap_or_default();
    children.split_whitespace().filter_map(|pid| pid.parse().ok()).map(of).sum::<u64>() + of(main)
}

/// Eight clients on two CPUs: a new process may be there before its client speaks, and a client before
/// the process looks.
#[test]
fn connections_take_what_the_server_computes_more_for_each_request() {
    support::real(|| {
        let settings = [("shared_buffers", "64MB")];
        let postgres = Postgres::start(Runtime::Host, &settings)?;
        postgres.pgbench_fill(1, 100)?;
        let pid = postgres.pid().unwrap();
        let seconds = 6;
        let ticks_per_request = |reconnect| {
            let load = Pgbench { seconds, reconnect, ..Pgbench::default() };
            let before = computed(pid);
            let running = postgres.pgbench(&load)?;
            let found = database(&Untax::new().check(pid), pid).clone();
            let requests = running.finish()? * f64::from(seconds);
            Ok::<_, SceneError>(((computed(pid) - before) as f64 / requests, found))
        };
        // The two loads run one after the other: a machine that is busier during one of them spoils
        // what is computed for a request.
        support::one_of(3, || {
            let said = |error: SceneError| error.to_string();
            let (with, found) = ticks_per_request(true).map_err(said)?;
            // Each new process faults its memory in.
            let (faults_s, on_cpu_s) = (part(&found, "minor_faults_s"), part(&found, "on_cpu_s"));
            assert!(faults_s > 0.02 * on_cpu_s && faults_s <= on_cpu_s, "{:#}", found["time"]);
            let (without, clean) = ticks_per_request(false).map_err(said)?;
            assert!(!rules(&clean).contains(&"short-connections"), "{clean:#}");
            let truth = 1.0 - without / with;
            let findings = found["findings"].as_array().unwrap();
            let tax = |rule: &str, end: &str| {
                let finding = findings.iter().find(|finding| finding["rule"] == rule);
                finding.and_then(|f| f["tax"][end].as_f64()).unwrap_or_default()
            };
            // The tax is a share of all active time. What is computed for a request is a share of the time
            // that others leave.
            let left = 1.0 - tax("cpu-contended", "share") - tax("vm-steal", "share");
            let end = |end| tax("short-connections", end) / left;
            let bounds = end("low") - 0.1..end("high") + 0.1;
            let said = || format!("{bounds:?} rather than {truth}: {found:#}");
            support::demand(bounds.contains(&truth), said)
        });
        Ok(())
    });
}

#[test]
fn every_second_of_redis_is_accounted_for() {
    support::real(|| {
        let redis = Redis::start(Runtime::Host, &[])?;
        let load = RedisBenchmark {
            clients: 8,
            requests: 1_000_000_000,
            keys: 10_000,
            value_bytes: 100,
            writes: false,
        };
        let _load = redis.benchmark(&load)?;
        accounted(redis.pid().unwrap(), |_| 1);
        Ok(())
    });
}

/// Enters group `$1`, and spins twice on the CPUs `$2`.
const SPIN: &str = r#"
echo $$ >"$1/cgroup.procs"
taskset -pc "$2" $$
setpriv --pdeathsig=KILL -- sh -c 'while :; do :; done' &
while :; do :; done
"#;

/// Seconds on CPU and in run queues of a process and its children, as schedstat counts them.
fn scheduled(main: u32) -> (f64, f64) {
    let read = |path: String| std::fs::read_to_string(path).unwrap();
    let children = read(format!("/proc/{main}/task/{main}/children"));
    let pids = children.split_ascii_whitespace().map(|pid| pid.parse().unwrap());
    let of = |pid: u32| {
        let text = read(format!("/proc/{pid}/schedstat"));
        let ns: Vec<f64> = text.split_ascii_whitespace().map(|n| n.parse().unwrap()).collect();
        (ns[0] / 1e9, ns[1] / 1e9)
    };
    std::iter::once(main).chain(pids).map(of).fold((0.0, 0.0), |a, b| (a.0 + b.0, a.1 + b.1))
}

/// How many processes were started since boot.
fn processes_started() -> u64 {
    let stat = support::text("/proc/stat");
    let count = stat.lines().find_map(|line| line.strip_prefix("processes "));
    count.unwrap().trim().parse().unwrap()
}

/// What share of their time two processes that spin on some CPUs in a group wait, as `run_delay` of
/// schedstat says and as a check does, for how much of it this says that they are throttled, and by how
/// much a share may be off. The check agrees with schedstat, which cannot tell why they wait.
///
/// Where it is known, schedstat is to say what they lose too: others take more from them now and then. A
/// group that waits for others is not throttled meanwhile, so the least that is throttled is asked of one
/// measurement of several too.
fn spinning(
    group: &Group,
    cpus: &str,
    lost: Option<f64>,
    least_throttled: f64,
) -> Result<[f64; 3], SceneError> {
    let (_, directory) = group.directory("cpu", "cpu")?;
    let mut spinners = Command::new("sh");
    spinners.args(["-c", SPIN, "spin", directory, cpus]);
    let spinners = Bystander::start(spinners);
    std::thread::sleep(std::time::Duration::from_secs(1));
    // schedstat is read before a check and after it: who else ran then was not there in its window.
    Ok(support::one_of(3, || {
        let (before, stolen) = (scheduled(spinners.id()), support::stolen_s());
        let check = Untax::new().check(spinners.id());
        let (after, stolen) = (scheduled(spinners.id()), support::stolen_s() - stolen);
        let found = database(&check, spinners.id());
        let share = |name| part(found, name) / part(found, "active_s");
        let (ran, waited) = (after.0 - before.0, after.1 - before.1);
        let expected = waited / (ran + waited);
        // What the hypervisor takes is on CPU by the clock on the wall, but not in schedstat.
        let told = share("runnable_s");
        let off = (told - expected).abs();
        let allowed = 0.02 + stolen / (ran + waited);
        let found = [expected, told, share("throttled_s")];
        println!("waited, told, throttled: {found:.4?}, ±{allowed:.4}");
        let known = lost
            .is_none_or(|lost| [expected, told].iter().all(|share| (share - lost).abs() < allowed));
        let throttled = found[2] >= least_throttled;
        let said = || format!("{off} of {allowed}: {found:?} rather than {lost:?}");
        support::demand(off < allowed && known && throttled, said).map(|()| found)
    }))
}

/// What two spinners lost on a fifth of a CPU when it was measured first. By its quota their group runs for
/// 0.2 s of the 2 s that they want each second and loses 0.900, which is what schedstat mostly says here.
const LOST: f64 = 0.906;

/// Two processes that want a CPU each and get a tenth; `throttled_time` of the group is only half of what
/// they lose, and pressure something between.
#[test]
fn two_spinners_on_a_fifth_of_a_cpu_are_throttled() {
    support::real(|| {
        let group = Group::for_neighbours()?;
        let _limit = group.limit_cpus(0.2)?;
        spinning(&group, "0,1", Some(LOST), 0.7)?;
        Ok(())
    });
}

#[test]
fn two_spinners_on_one_cpu_wait_for_each_other_and_are_not_throttled() {
    support::real(|| {
        let [waited, _, throttled] = spinning(&Group::for_neighbours()?, "0", None, 0.0)?;
        assert!(waited > 0.4, "{waited} waited");
        assert!(throttled <= 0.0, "{throttled} throttled of {waited} waited");
        Ok(())
    });
}
