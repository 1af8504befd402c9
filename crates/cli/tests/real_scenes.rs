//! Scenes of production in which a healthy database might be taken for a slow one, or itself for another.

#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test looks at the machine by other ways than the code that it tests"
)]

mod support;

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use support::numbers::part;
use support::{Bystander, Untax, database, demand, one_of, rules, unmeasured};
use untax_lab::{Cause, Dose, Injection};
use untax_scenes::{
    Disk, Group, Load, MariaDb, Neighbour, POSTGRES, Pgbench, Postgres, Redis, RedisBenchmark,
    Runtime, SceneError, Setup,
};

/// Longer than any check of it takes.
const MINUTES: u32 = 180;

/// For as long.
const READS: RedisBenchmark = RedisBenchmark {
    clients: 8,
    requests: i32::MAX as u64,
    keys: 400_000,
    value_bytes: 512,
    writes: false,
};

fn missing(program: &str, package: &str) -> SceneError {
    SceneError::Missing { program: program.to_owned(), package: package.to_owned() }
}

/// A program of PostgreSQL that is in no path.
fn program_of_postgres(name: &str) -> Result<PathBuf, SceneError> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut programs = versions.map(|version| version.path().join("bin").join(name));
    programs.find(|path| path.exists()).ok_or_else(|| missing(name, "postgresql-client"))
}

/// A program that connects to a server as its superuser.
fn client(program: impl AsRef<std::ffi::OsStr>, postgres: &Postgres) -> Command {
    let mut command = Command::new(program);
    command.args(["-h", &postgres.socket_directory(), "-p", &postgres.port().to_string()]);
    command.args(["-U", postgres.user()]);
    command
}

/// Commits wait for a standby as processes wait for a lock: for another process's signal.
#[test]
fn waiting_for_a_synchronous_standby_is_no_lock() {
    support::real(|| {
        let receiver = program_of_postgres("pg_receivewal")?;
        let settings = [("wal_level", "replica"), ("max_wal_senders", "4")];
        let setup = Setup { settings: &settings, durable: true, ..Setup::default() };
        let postgres = Postgres::start_as(&setup)?;
        postgres.pgbench_fill(10, 100)?;
        let folder = tempfile::tempdir().unwrap();
        let mut standby = client(receiver, &postgres);
        standby.args(["--synchronous", "-D"]).arg(folder.path());
        let _standby = Bystander::start(standby);
        postgres.sql("ALTER SYSTEM SET synchronous_standby_names = '*'")?;
        postgres.sql("SELECT pg_reload_conf()")?;
        // Each client updates rows that no other is likely to want.
        let mut load = client("pgbench", &postgres);
        load.args(["-n", "-N", "-c", "8", "-j", "2", "-T", &MINUTES.to_string(), "postgres"]);
        let _load = Bystander::start(load);
        std::thread::sleep(std::time::Duration::from_secs(2));
        let pid = postgres.pid().unwrap();
        // Of few processes one may be met that waits for the standby, or none.
        one_of(5, || {
            let check = Untax::new().check(pid);
            let found = database(&check, pid);
            let waited = part(found, "lock_s") / part(found, "active_s");
            assert!(waited > 0.1, "nobody waits for the standby: {:#}", found["time"]);
            let findings = found["findings"].as_array().unwrap();
            let lock = findings.iter().find(|finding| finding["rule"] == "lock-contended");
            let share = lock.map_or(0.0, |finding| finding["tax"]["share"].as_f64().unwrap());
            demand(share < 0.4 * waited, || format!("{share} of {waited}: {findings:#?}"))
        });
        Ok(())
    });
}

/// Who queues for the log's lock when a watch begins waits for the one that the filesystem holds up,
/// though nobody has seen either of them serve a client yet.
#[test]
fn a_hang_that_was_there_before_the_watch_is_no_lock() {
    support::real(|| {
        let disk = Disk::make(1024)?;
        let setup = Setup { disk: Some(disk.path()), durable: true, ..Setup::default() };
        let postgres = Postgres::start_as(&setup)?;
        postgres.pgbench_fill(10, 100)?;
        let mut load = client("pgbench", &postgres);
        load.args(["-n", "-N", "-c", "8", "-j", "2", "-T", &MINUTES.to_string(), "postgres"]);
        let _load = Bystander::start(load);
        std::thread::sleep(std::time::Duration::from_secs(2));
        let _frozen = disk.freeze_in_loop(15.0, 1.0)?;
        std::thread::sleep(std::time::Duration::from_secs(1));
        let pid = postgres.pid().unwrap();
        let check = Untax::new().check(pid);
        let found = database(&check, pid);
        assert_hangs(found);
        Ok(())
    });
}

/// It hangs in files, or behind threads that may do so: their waits have not ended yet. None of it is a lock.
fn assert_hangs(found: &Value) {
    // A thread that has hung since before the watch was not seen with a client.
    let accounts = ["serving", "background"].map(|account| &found["ledger"][account]);
    let entries = accounts.iter().flat_map(|account| account["entries"].as_array().unwrap());
    let in_files = entries.filter(|e| ["kernel", "disk"].contains(&e["cause"].as_str().unwrap()));
    let both = |e: &Value| e["own_s"].as_f64().unwrap() + e["behind_s"].as_f64().unwrap();
    let known_s: f64 = in_files.map(both).sum();
    let all = |name: &str| accounts.iter().map(|of| of[name].as_f64().unwrap()).sum::<f64>();
    let (open_s, active_s) = (all("remains_s"), all("active_s"));
    assert!(known_s > 0.0 && known_s + open_s > 0.9 * active_s, "{:#}", found["ledger"]);
    assert!(!rules(found).contains(&"lock-contended"), "{:#}", found["findings"]);
    let findings = found["findings"].as_array().unwrap();
    let hang = findings.iter().find(|finding| finding["rule"] == "io-hang").expect("a hang");
    assert!(hang["tax"]["high"].as_f64().unwrap() > 0.9, "{hang:#}");
}

/// A shell's command with a client of MariaDB, `$0`, that comes in as its `root`.
fn shell(script: &str, mariadb: &MariaDb) -> Command {
    let client = format!("mariadb --no-defaults --user=root --socket={}", mariadb.socket());
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig=KILL", "--", "/bin/sh", "-c", script, &client]);
    command
}

/// The same where nothing tells whom a thread serves until it has done so: who comes later queues for
/// those that have hung since before the watch.
#[test]
fn who_comes_into_a_hang_waits_for_no_lock() {
    support::real(|| {
        let disk = Disk::make(1024)?;
        let setup = Setup { disk: Some(disk.path()), durable: true, ..Setup::default() };
        let mariadb = MariaDb::start_as(&setup)?;
        mariadb.sysbench_fill(1000)?;
        let beside = Redis::start_as(&Setup::default())?;
        let _busy = beside.benchmark(&READS)?;
        let update = "UPDATE sbtest.sbtest1 SET k = k + 1 WHERE id =";
        let load =
            format!("yes '{update} 1;' | $0 2>/dev/null & yes '{update} 2;' | $0 2>/dev/null");
        let _load = Bystander::start(shell(&load, &mariadb));
        std::thread::sleep(std::time::Duration::from_secs(2));
        let _frozen = disk.freeze_in_loop(20.0, 1.0)?;
        let late = format!(
            "n=10; while :; do n=$((n + 1)); $0 -e \"{update} $n\" 2>/dev/null & sleep 0.2; done"
        );
        let _late = Bystander::start(shell(&late, &mariadb));
        std::thread::sleep(std::time::Duration::from_secs(1));
        let pid = mariadb.pid().unwrap();
        let check = Untax::new().check(pid);
        let found = database(&check, pid);
        assert_hangs(found);
        // Longer than any slice of the watch, which pauses for the other server's sake.
        let findings = found["findings"].as_array().unwrap().iter();
        let mut evidence = findings.flat_map(|finding| finding["evidence"].as_array().unwrap());
        let longest = evidence.find(|fact| fact["name"] == "longest wait").unwrap();
        assert!(longest["value"].as_f64().unwrap() > 1.0, "{longest}");
        Ok(())
    });
}

/// What a process of the database read of its files, and what others did: requests.
fn reads(untax: &Untax, check: &Value, id: &str) -> [u64; 2] {
    let run = format!("state/runs/{}.json", check["run"].as_str().unwrap());
    let saved = std::fs::read(untax.path(&run)).unwrap();
    let saved: Value = serde_json::from_slice(&saved).unwrap();
    let flows = saved["window"]["io"]["flows"].as_array().unwrap();
    let reads = |owner: Value| {
        let of = flows.iter().filter(|f| f["direction"] == "read" && f["database"] == owner);
        of.map(|flow| flow["requests"].as_u64().unwrap()).sum()
    };
    [reads(Value::from(id)), reads(Value::Null)]
}

#[test]
fn a_backup_reads_for_itself() {
    support::real(|| {
        let postgres = Postgres::start(Runtime::Host, &[("autovacuum", "off")])?;
        postgres.pgbench_fill(20, 100)?;
        postgres.sql("CHECKPOINT")?;
        let file = postgres.sql("SELECT pg_relation_filepath('pgbench_accounts')")?;
        let file = Path::new(&postgres.data_directory()).join(file.trim());
        let again = "while :; do dd if=\"$1\" of=/dev/null bs=1M iflag=direct status=none; done";
        let mut backup = Command::new("setpriv");
        backup.args(["--pdeathsig=KILL", "--", "/bin/sh", "-c", again, "backup"]).arg(&file);
        let _backup = Bystander::start(backup);
        let pid = postgres.pid().unwrap();
        let untax = Untax::new();
        let check = untax.check(pid);
        let [own, others] = reads(&untax, &check, database(&check, pid)["id"].as_str().unwrap());
        assert!(others > 100 && own < others / 20, "{own} own, {others} of others");
        Ok(())
    });
}

/// Who saves what a Redis holds waits for a disk, and no client waits for that.
#[test]
fn what_redis_saves_in_the_background_is_no_tax() {
    support::real(|| {
        let disk = Disk::make(1024)?;
        let group = Group::for_server()?;
        let setup = Setup { disk: Some(disk.path()), group: Some(&group), ..Setup::default() };
        let redis = Redis::start_as(&setup)?;
        let fill = RedisBenchmark { requests: 1_500_000, writes: true, ..READS };
        redis.benchmark(&fill)?.finish()?;
        let _load = redis.benchmark(&READS)?;
        let _slow = disk.limit_requests(&group, 20)?;
        redis.command(["BGSAVE"])?;
        let pid = redis.pid().unwrap();
        let check = Untax::new().check(pid);
        let persistence = redis.command(["INFO", "persistence"])?;
        assert!(persistence.contains("rdb_bgsave_in_progress:1"), "it took no time: {persistence}");
        let found = database(&check, pid);
        let disks = ["disk-slow", "dirty-burst", "io-hang", "shared-filesystem"];
        let found_of = |rule: &&str| {
            let findings = found["findings"].as_array().unwrap().iter();
            findings.filter(|f| f["rule"] == *rule && f["severity"] != "info").count() > 0
        };
        assert!(!disks.iter().any(found_of), "{:#}", found["findings"]);
        let gaps = unmeasured(&check);
        let gap = gaps.iter().find(|(rule, why)| disks.contains(rule) && why.contains("dm-crypt"));
        assert!(gap.is_none(), "its own writes are no stranger's: {gap:?}");
        Ok(())
    });
}

/// A database that may use one CPU alone waits for those who are on it, and for nobody else.
#[test]
fn neighbours_on_other_cpus_take_nothing() {
    support::real(|| {
        let postgres = Postgres::start(Runtime::Host, &[("shared_buffers", "256MB")])?;
        postgres.pgbench_fill(5, 100)?;
        let pid = postgres.pid().unwrap();
        let pin = |pid: u32, cpu: &str| {
            let pid = pid.to_string();
            let status = Command::new("taskset").args(["-acp", cpu, &pid]).output().unwrap().status;
            assert!(status.success());
        };
        let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
        let children = children.split_ascii_whitespace().map(|child| child.parse().unwrap());
        std::iter::once(pid).chain(children).for_each(|pid| pin(pid, "0"));
        let mut spin = Command::new("setpriv");
        spin.args(["--pdeathsig=KILL", "--", "/bin/sh", "-c", "while :; do :; done"]);
        let neighbour = Bystander::start(spin);
        let _load = postgres.pgbench(&Pgbench { seconds: MINUTES, ..Pgbench::default() })?;
        // Another program may run on its CPU too, for a while or all the time: of it nothing is asked.
        let named = format!("(pid {})", neighbour.id());
        let is_charged = |cpu| {
            pin(neighbour.id(), cpu);
            let check = Untax::new().check(pid);
            let findings = database(&check, pid)["findings"].as_array().unwrap().clone();
            let contended = findings.iter().find(|finding| finding["rule"] == "cpu-contended");
            let evidence = contended.and_then(|finding| finding["evidence"].as_array());
            evidence.into_iter().flatten().any(|one| {
                let took = one["value"].as_f64().is_some_and(|cpus| cpus >= 0.05);
                took && one["of"].as_str().is_some_and(|of| of.contains(&named))
            })
        };
        assert!(!is_charged("1"), "it waits for itself and its clients");
        assert!(is_charged("0"));
        Ok(())
    });
}

/// Whose segments are lost says who listens on a port of the connection.
#[test]
fn what_another_server_in_its_network_loses_is_not_its() {
    support::real(|| {
        let cause = Cause::find("tcp-retransmit").unwrap();
        let mut injection = Injection::prepare(cause, POSTGRES, Dose::Strong)?;
        let setup = Setup { network: Some(injection.testbed().network()?), ..Setup::default() };
        let beside = Redis::start_as(&setup)?;
        // Its own clients come over its socket: of what they ask and get the network can lose nothing.
        let mut reads = Command::new("setpriv");
        reads.args(["--pdeathsig=KILL", "--", "redis-benchmark", "-s", &beside.socket()]);
        reads.args(["-c", "2", "-t", "get", "-l"]);
        let _reads = Bystander::start(reads);
        injection.switch(true)?;
        let _load = injection.load(MINUTES)?;
        let (loser, bystander) = (injection.pid().unwrap(), beside.pid().unwrap());
        let finding = |pid| {
            let check = Untax::new().check(pid);
            let gaps = unmeasured(&check);
            assert!(!gaps.iter().any(|(rule, _)| *rule == "tcp-retransmit"), "{gaps:?}");
            let findings = database(&check, pid)["findings"].as_array().unwrap().clone();
            let found = findings.into_iter().find(|f| f["rule"] == "tcp-retransmit");
            found.ok_or_else(|| format!("nothing was lost: {}", check["databases"]))
        };
        // How much is lost in a few seconds is up to the machine; whose it is, is not.
        one_of(3, || {
            let found = finding(loser)?;
            let is_charged = found["tax"].is_object() && found["severity"] != "info";
            demand(is_charged, || format!("{found:#}"))
        });
        let worth_knowing = one_of(3, || finding(bystander));
        assert!(worth_knowing["tax"].is_null(), "others lose: {worth_knowing:#}");
        assert_eq!(worth_knowing["severity"], "info", "{worth_knowing:#}");
        Ok(())
    });
}

/// A limit of the pod's own is met by nobody else; what it evicts the pod reads again from the disk that both
/// share.
#[test]
fn a_pod_that_thrashes_inside_its_own_limit_is_named_until_the_limit_is_raised() {
    support::real(|| {
        let disk = Disk::make(2048)?;
        let group = Group::for_server()?;
        let settings = [("shared_buffers", "64MB")];
        let setup = Setup {
            settings: &settings,
            disk: Some(disk.path()),
            group: Some(&group),
            durable: true,
            ..Setup::default()
        };
        let postgres = Postgres::start_as(&setup)?;
        postgres.pgbench_fill(5, 100)?;
        let neighbour = Neighbour::of_reads(disk.path(), 256)?;
        let limit = neighbour.group().limit_memory(96 << 20)?;
        let writes = Pgbench { clients: 4, seconds: MINUTES, writes: true, ..Pgbench::default() };
        let mut load = postgres.pgbench(&writes)?;
        let pid = postgres.pid().unwrap();
        let (_, directory) = neighbour.group().directory("memory", "memory")?;
        let name = directory.rsplit('/').next().unwrap().to_owned();
        let thrashes = |load: &mut Load| -> Result<Option<Value>, String> {
            let check = Untax::new().check(pid);
            load.check().map_err(|error| error.to_string())?;
            let gaps = unmeasured(&check);
            let gap = gaps
                .iter()
                .find(|(rule, why)| *rule == "neighbour-reclaim" && why.contains("is not known"));
            demand(gap.is_none(), || format!("{gap:?}"))?;
            let findings = database(&check, pid)["findings"].as_array().unwrap().clone();
            let of_pod = |finding: &Value| {
                let summary = finding["summary"].as_str().unwrap_or_default();
                finding["rule"] == "neighbour-reclaim" && summary.contains("thrashes inside")
            };
            Ok(findings.into_iter().find(of_pod))
        };
        let found = one_of(4, || thrashes(&mut load)?.ok_or_else(|| "not found".to_owned()));
        assert!(found["summary"].as_str().unwrap().contains(&name), "{found:#}");
        let tax = ["low", "share", "high"].map(|part| found["tax"][part].as_f64().unwrap());
        assert!(tax.is_sorted() && tax[1] > 0.0 && tax[2] <= 1.0, "{found:#}");
        drop(limit);
        // Until all of its file stays in memory.
        one_of(6, || match thrashes(&mut load)? {
            Some(finding) => Err(format!("{finding:#}")),
            None => Ok(()),
        });
        Ok(())
    });
}
