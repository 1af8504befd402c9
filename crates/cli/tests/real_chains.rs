//! What threads wait for behind other threads, in scenes that are made so that it is known.

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
use support::{Bystander, Untax, database, rules};
use untax_scenes::{
    Disk, Group, Limit, MYSQL_9, MariaDb, Neighbour, POSTGRES_18, Pgbench, Postgres, Runtime,
    SceneError, Setup, Sysbench,
};

/// Longer than any check of it takes, s.
const MINUTES: u32 = 120;

/// Without flushing: no commit waits for a disk.
const IN_MEMORY: [(&str, &str); 2] = [("fsync", "off"), ("synchronous_commit", "off")];

/// What a check says of a server.
fn checked(pid: u32, window: &str) -> Value {
    let id = pid.to_string();
    let options = ["check", "--pid", &id, "--window", window, "--json", "--no-calibration"];
    let database = database(&Untax::new().run(&options).json(), pid).clone();
    for finding in database["findings"].as_array().unwrap() {
        let says = ["rule", "summary", "fix", "tax", "gain", "latency_gain"].map(|of| &finding[of]);
        println!("{}", says.map(Value::to_string).join(" "));
    }
    println!("{}", database["ledger"]);
    database
}

/// What it says of one cause.
fn finding<'a>(database: &'a Value, rule: &str) -> Option<&'a Value> {
    database["findings"].as_array().unwrap().iter().find(|finding| finding["rule"] == rule)
}

fn number(of: Option<&Value>, part: &str, name: &str) -> f64 {
    of.map_or(0.0, |finding| finding[part][name].as_f64().unwrap_or(0.0))
}

/// What requests took, of one check.
struct Requests {
    serving: Value,
}

impl Requests {
    fn of(postgres: &Postgres, window: &str) -> Self {
        let serving = checked(postgres.pid().unwrap(), window)["ledger"]["serving"].clone();
        Self { serving }
    }

    fn active_s(&self) -> f64 {
        self.serving["active_s"].as_f64().unwrap()
    }

    /// The shares of causes in the active time of which it is known where it went, own or behind. What is not
    /// known is as much as tracing paused: little on a quiet machine.
    fn share(&self, side: &str, causes: &[&str]) -> f64 {
        let entries = self.serving["entries"].as_array().unwrap().iter();
        let of = entries.filter(|entry| causes.contains(&entry["cause"].as_str().unwrap()));
        let known_s = self.active_s() * (1.0 - self.unresolved());
        of.map(|entry| entry[side].as_f64().unwrap()).sum::<f64>() / known_s
    }

    fn behind(&self, causes: &[&str]) -> f64 {
        self.share("behind_s", causes)
    }

    fn own(&self, causes: &[&str]) -> f64 {
        self.share("own_s", causes)
    }

    fn unresolved(&self) -> f64 {
        self.serving["remains_s"].as_f64().unwrap() / self.active_s()
    }
}

/// A PostgreSQL with one table of a few rows.
fn postgres(setup: &Setup) -> Result<Postgres, SceneError> {
    let postgres = Postgres::start_as(setup)?;
    postgres.sql("create table t(id int primary key, n int) with (fillfactor = 10)")?;
    postgres.sql("insert into t select i, 0 from generate_series(1, 3) i")?;
    Ok(postgres)
}

fn in_memory() -> Setup<'static> {
    Setup { runtime: Runtime::Host, settings: &IN_MEMORY, ..Setup::default() }
}

/// Clients that hold one row in turn, while the application of each thinks for so long, ms.
fn thinking(postgres: &Postgres, clients: u32, ms: u32) -> Result<untax_scenes::Load, SceneError> {
    let script =
        format!("begin;\nupdate t set n = n + 1 where id = 1;\n\\sleep {ms} ms\ncommit;\n");
    postgres.scripts(&[("thinking", &script, 1)], clients, MINUTES)
}

#[test]
#[ignore = "long: checks of several seconds beside a load"]
fn a_row_that_is_held_for_a_client_is_behind_its_client() {
    support::real(|| {
        let postgres = postgres(&in_memory())?;
        let load = thinking(&postgres, 8, 20)?;
        let requests = Requests::of(&postgres, "4s");
        assert!(requests.active_s() > 10.0, "eight clients queue for one row");
        assert!(requests.behind(&["idle"]) > 0.85, "{}", requests.behind(&["idle"]));
        assert!(requests.unresolved() < 0.05, "{}", requests.unresolved());
        drop(load);
        // Longer than a slice: known only when the wait ends, and then of all slices that it was in.
        let _load = thinking(&postgres, 4, 900)?;
        let requests = Requests::of(&postgres, "8s");
        assert!(requests.behind(&["idle"]) > 0.85, "{}", requests.behind(&["idle"]));
        Ok(())
    });
}

#[test]
#[ignore = "long: checks of several seconds beside a load"]
fn a_chain_of_three_is_behind_the_last_one() {
    support::real(|| {
        let postgres = postgres(&in_memory())?;
        let script = |first: u32, rest: &str| {
            format!("begin;\nupdate t set n = n + 1 where id = {first};\n{rest}commit;\n")
        };
        let last = script(1, "\\sleep 30 ms\n");
        let middle = script(2, "update t set n = n + 1 where id = 1;\n");
        let first = script(2, "");
        let _holder = postgres.scripts(&[("last", &last, 1)], 2, MINUTES)?;
        let _middle = postgres.scripts(&[("middle", &middle, 1)], 1, MINUTES)?;
        let _first = postgres.scripts(&[("first", &first, 1)], 4, MINUTES)?;
        let requests = Requests::of(&postgres, "4s");
        assert!(requests.active_s() > 8.0, "four wait for the one that waits");
        assert!(requests.behind(&["idle"]) > 0.7, "{}", requests.behind(&["idle"]));
        assert!(requests.unresolved() < 0.05, "{}", requests.unresolved());
        Ok(())
    });
}

#[test]
#[ignore = "long: checks of several seconds beside a load"]
fn a_holder_that_computes_is_one_that_has_a_cpu_or_waits_for_it() {
    support::real(|| {
        let postgres = postgres(&in_memory())?;
        let script = "begin;\nupdate t set n = n + 1 where id = 1;\n\
                      select sum(i * i) from generate_series(1, 20000) i;\ncommit;\n";
        let load = postgres.scripts(&[("computing", script, 1)], 4, MINUTES)?;
        let requests = Requests::of(&postgres, "4s");
        let behind = requests.behind(&["cpu", "run-queue", "wake-up"]);
        let own = requests.own(&["cpu", "run-queue", "wake-up"]);
        assert!(behind > 0.25 && own + behind > 0.85, "{behind} {own}");
        assert!(requests.unresolved() < 0.05, "{}", requests.unresolved());
        drop(load);
        // Nobody waits for another one where no row is shared.
        let script = "select sum(i * i) from generate_series(1, 20000) i;\n";
        let _load = postgres.scripts(&[("alone", script, 1)], 4, MINUTES)?;
        let requests = Requests::of(&postgres, "2s");
        let own = requests.own(&["cpu", "run-queue", "wake-up"]);
        assert!(own > 0.9, "{own}");
        Ok(())
    });
}

#[test]
#[ignore = "long: checks of several seconds beside a load"]
fn a_holder_that_is_throttled_throttles_those_behind_it() {
    support::real(|| {
        let group = Group::for_server()?;
        let setup = Setup { group: Some(&group), ..in_memory() };
        let postgres = postgres(&setup)?;
        let _limit = group.limit_cpus(0.3)?;
        let script = "update t set n = n + 1 where id = 1;\n";
        let _load = postgres.scripts(&[("hot", script, 1)], 8, MINUTES)?;
        let requests = Requests::of(&postgres, "4s");
        let throttled = requests.own(&["throttled"]) + requests.behind(&["throttled"]);
        // What a busy machine adds is waiting for a CPU.
        let cpu = requests.own(&["cpu"]) + requests.behind(&["cpu"]);
        assert!(throttled > 0.6 * (throttled + cpu) && throttled > 0.1, "{throttled} {cpu}");
        assert!(requests.behind(&["throttled"]) > 0.02, "{}", requests.behind(&["throttled"]));
        assert!(requests.behind(&["idle", "disk"]) < 0.1, "{}", requests.behind(&["idle", "disk"]));
        assert!(requests.unresolved() < 0.05, "{}", requests.unresolved());
        Ok(())
    });
}

#[test]
#[ignore = "long: checks of several seconds beside a load"]
fn commits_behind_one_that_flushes_the_log_wait_for_the_disk() {
    support::real(|| {
        let group = Group::for_server()?;
        let disk = Disk::make(768)?;
        let setup = Setup {
            group: Some(&group),
            disk: Some(disk.path()),
            durable: true,
            runtime: Runtime::Host,
            ..Setup::default()
        };
        let postgres = postgres(&setup)?;
        let _limit = disk.limit_requests(&group, 100)?;
        let script =
            "insert into t values (4 + random() * 1000000000, 1) on conflict do nothing;\n";
        let _load = postgres.scripts(&[("commits", script, 1)], 8, MINUTES)?;
        let requests = Requests::of(&postgres, "4s");
        let disk = ["disk", "kernel"];
        let all = requests.own(&disk) + requests.behind(&disk);
        assert!(all > 0.8, "{all}");
        assert!(requests.behind(&disk) > 0.3, "{}", requests.behind(&disk));
        assert!(requests.unresolved() < 0.05, "{}", requests.unresolved());
        Ok(())
    });
}

/// The installed PostgreSQL or another on a disk of its own, whose commits are flushed.
fn durable<'a>(group: &'a Group, disk: &'a Disk) -> Setup<'a> {
    Setup {
        group: Some(group),
        disk: Some(disk.path()),
        durable: true,
        runtime: Runtime::Host,
        ..Setup::default()
    }
}

#[test]
#[ignore = "long: checks of several seconds beside a load"]
fn reads_by_io_workers_from_a_slow_disk_are_the_disks() {
    support::real(|| {
        let (group, disk) = (Group::for_server()?, Disk::make(1024)?);
        let settings =
            [("io_method", "worker"), ("shared_buffers", "16MB"), ("debug_io_direct", "data")];
        let release = Some(POSTGRES_18);
        let postgres =
            Postgres::start_as(&Setup { release, settings: &settings, ..durable(&group, &disk) })?;
        postgres.pgbench_fill(2, 10)?;
        postgres.sql("vacuum analyze pgbench_accounts")?;
        // Thirty pages, read ahead by others.
        let script = "set enable_indexscan = off;\nset enable_seqscan = off;\n\
            select sum(abalance) from pgbench_accounts where aid = any (array(\
            select (random() * 200000)::int from generate_series(1, 30)));\n";
        let limit = disk.limit(&group, Limit::ReadOperations, 300)?;
        let load = postgres.scripts(&[("reads", script, 1)], 8, 14)?;
        let database = checked(postgres.pid().unwrap(), "8s");
        let with = load.finish()?;
        drop(limit);
        let without = postgres.scripts(&[("reads", script, 1)], 8, 5)?.finish()?;
        let found = finding(&database, "disk-slow");
        println!("measured {:.1}: {with:.1} and {without:.1} a second", without / with);
        assert_eq!(rules(&database).first(), Some(&"disk-slow"), "{:#}", database["findings"]);
        assert!(number(found, "tax", "share") > 0.7, "{found:#?}");
        assert!(finding(&database, "lock-contended").is_none(), "{:#}", database["findings"]);
        // Removing a limit that takes nearly all of the time brings a large factor.
        assert!(number(found, "gain", "high") > 5.0, "{found:#?}");
        assert!(found.unwrap()["fix"].as_str().unwrap().contains("limit"), "{found:#?}");
        Ok(())
    });
}

#[test]
#[ignore = "long: checks of several seconds beside a load"]
fn a_parallel_query_waits_for_no_lock() {
    support::real(|| {
        let postgres = Postgres::start_as(&in_memory())?;
        postgres.pgbench_fill(10, 100)?;
        postgres.sql("vacuum analyze pgbench_accounts")?;
        let script = "set max_parallel_workers_per_gather = 2;\nset parallel_setup_cost = 0;\n\
            select count(*) from pgbench_accounts a join pgbench_accounts b using (aid) \
            where a.bid <> b.bid;\n";
        let _load = postgres.scripts(&[("parallel", script, 1)], 1, MINUTES)?;
        let database = checked(postgres.pid().unwrap(), "6s");
        assert!(finding(&database, "lock-contended").is_none(), "{:#}", database["findings"]);
        Ok(())
    });
}

/// What is locked where rows are not.
fn assert_no_rows(database: &Value) {
    if let Some(found) = finding(database, "lock-contended") {
        let summary = found["summary"].as_str().unwrap();
        assert!(!summary.contains("rows"), "{found:#}");
        assert!(summary.contains("log") || summary.contains("latches"), "{found:#}");
    }
}

#[test]
#[ignore = "long: checks of several seconds beside a load"]
fn commits_to_an_ordinary_disk_queue_for_the_log_and_not_for_rows() {
    support::real(|| {
        let group = Group::for_server()?;
        {
            let disk = Disk::make(1024)?;
            let postgres = Postgres::start_as(&durable(&group, &disk))?;
            postgres.pgbench_fill(5, 100)?;
            let _limit = disk.limit_requests(&group, 2000)?;
            let load = Pgbench {
                writes: true,
                without_hot_rows: true,
                seconds: MINUTES,
                ..Pgbench::default()
            };
            let _load = postgres.pgbench(&load)?;
            assert_no_rows(&checked(postgres.pid().unwrap(), "6s"));
        }
        for release in [None, Some(MYSQL_9)] {
            let disk = Disk::make(1536)?;
            let mysql = MariaDb::start_as(&Setup { release, ..durable(&group, &disk) })?;
            mysql.sysbench_fill(100_000)?;
            let _limit = disk.limit_requests(&group, 2000)?;
            let load = Sysbench { threads: 8, seconds: MINUTES, rows: 100_000 };
            let _load = mysql.sysbench_update(&load)?;
            assert_no_rows(&checked(mysql.pid().unwrap(), "6s"));
        }
        Ok(())
    });
}

#[test]
#[ignore = "long: checks of several seconds beside a load"]
fn a_limit_and_a_hot_row_are_two_causes_and_each_promises_what_it_brings() {
    support::real(|| {
        let group = Group::for_server()?;
        let postgres = postgres(&Setup { group: Some(&group), ..in_memory() })?;
        let limit = group.limit_cpus(0.3)?;
        let hot = "update t set n = n + 1 where id = 1;\n";
        let spread =
            "insert into t values (4 + random() * 1000000000, 1) on conflict do nothing;\n";
        let run = |script: &str, seconds| postgres.scripts(&[("hot", script, 1)], 8, seconds);
        let load = run(hot, 12)?;
        let database = checked(postgres.pid().unwrap(), "8s");
        let with = load.finish()?;
        let without_row = run(spread, 6)?.finish()? / with;
        drop(limit);
        let without_limit = run(hot, 6)?.finish()? / with;
        println!(
            "measured: without the limit {without_limit:.2}, without the row {without_row:.2}"
        );
        let of = |rule: &str, name: &str| number(finding(&database, rule), "tax", name);
        let (limit, lock) = (of("cpu-throttled", "share"), of("lock-contended", "share"));
        assert!(limit > lock && limit > 0.3, "{:#}", database["findings"]);
        let gain = |rule: &str, name: &str| number(finding(&database, rule), "gain", name);
        assert!(gain("cpu-throttled", "high") >= without_limit / 1.5, "{:#}", database["findings"]);
        assert!(gain("lock-contended", "high") < 5.0, "below a limit: {:#}", database["findings"]);
        Ok(())
    });
}

#[test]
#[ignore = "long: checks of several seconds beside a load"]
fn clients_that_send_at_a_rate_are_promised_no_throughput() {
    support::real(|| {
        let postgres = Postgres::start_as(&in_memory())?;
        postgres.pgbench_fill(5, 100)?;
        let mut paced = std::process::Command::new(postgres.client_program("pgbench")?);
        paced.args(["-h", &postgres.socket_directory(), "-p", &postgres.port().to_string()]);
        paced.args(["-U", postgres.user(), "-n", "-S", "-c", "4", "-R", "400"]);
        let _load = Bystander::start({
            paced.args(["-T", &MINUTES.to_string(), "postgres"]);
            paced
        });
        let _hogs = Neighbour::of_cpus(2)?;
        std::thread::sleep(std::time::Duration::from_secs(1));
        let database = checked(postgres.pid().unwrap(), "6s");
        for found in database["findings"].as_array().unwrap() {
            assert!(number(Some(found), "gain", "factor") < 1.25, "{found:#}");
        }
        Ok(())
    });
}
