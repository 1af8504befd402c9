//! `untax check` on servers of versions that people run and this machine's own suite does not have:
//! recognised, asked, and every second of theirs accounted for, idle and busy.

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
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use support::numbers::part;
use support::{Bystander, Untax, demand, one_of};
use untax_scenes::{
    Kind, MARIADB_11, MYSQL_9, Neighbour, POSTGRES_17, POSTGRES_18, Release, SceneError, Setup,
    VALKEY, Work, find_program,
};

/// Longer than any check here takes.
const MINUTES: u32 = 180;

const FILL_MEBIBYTES: u64 = 64;

/// A check of one database: what it says, and the snapshot at its end.
fn check(pid: u32) -> (Value, Value) {
    let untax = Untax::new();
    let pid_word = pid.to_string();
    let words = ["check", "--pid", &pid_word, "--window", "2s", "--no-calibration", "--json"];
    let check = untax.run(&words).json();
    let run = format!("state/runs/{}.json", check["run"].as_str().unwrap());
    let saved: Value = serde_json::from_slice(&std::fs::read(untax.path(&run)).unwrap()).unwrap();
    (support::database(&check, pid).clone(), saved["window"]["end"]["databases"][0].clone())
}

/// Most of a database's time that may be unaccounted for.
const UNACCOUNTED: f64 = 0.05;

fn accounted(found: &Value, of: f64) -> Result<(), String> {
    let unaccounted = part(found, "unaccounted_s");
    demand(unaccounted <= UNACCOUNTED * of, || format!("{unaccounted} of {of} s: {found:#}"))
}

/// Programs that fill all CPUs.
const NEIGHBOURS: u32 = 16;

fn loses_nothing(idle: &Value) -> Result<(), String> {
    let lost = idle["findings"].as_array().unwrap().iter().find(|found| !found["tax"].is_null());
    demand(lost.is_none(), || format!("it has nothing to lose: {lost:#?}"))
}

/// Checks an idle server beside neighbours: its timers wait for a CPU far longer than they work, and nobody waits
/// for them.
fn beside_full_cpus(pid: u32) -> Result<(), SceneError> {
    let _full = Neighbour::of_cpus(NEIGHBOURS)?;
    one_of(3, || {
        let before = waited_ns(pid);
        let (idle, _) = check(pid);
        println!("idle beside {NEIGHBOURS} neighbours: {:#}", idle["time"]);
        demand(waited_ns(pid) > before, || "it never waited for a CPU".to_owned())?;
        loses_nothing(&idle)
    });
    Ok(())
}

/// How long the threads of a process waited for CPUs so far, ns.
fn waited_ns(pid: u32) -> u64 {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let counts =
        tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("schedstat")).ok());
    counts.filter_map(|line| line.split(' ').nth(1)?.parse::<u64>().ok()).sum()
}

/// Starts that server and checks it, idle and under load.
fn recognised_asked_and_accounted_for(release: Release, product: &str, version: &str) {
    support::real(|| {
        let server = untax_scenes::start(release, &Setup::default())?;
        server.fill(FILL_MEBIBYTES)?;
        let pid = server.pid().unwrap();
        // A server has something to write for some seconds after it was filled.
        let (idle, snapshot) = one_of(3, || {
            let (idle, snapshot) = check(pid);
            let all = part(&idle, "active_s") + part(&idle, "idle_s");
            // Of an idle PostgreSQL no process serves clients.
            let active = part(&idle, "active_s") / all.max(f64::MIN_POSITIVE);
            println!("{} idle: {active:.3} active, {:#}", release.id, idle["time"]);
            accounted(&idle, all)?;
            demand(active < UNACCOUNTED, || format!("{active} of an idle server is active"))?;
            loses_nothing(&idle)?;
            Ok((idle, snapshot))
        });
        if release.id == MYSQL_9.id {
            beside_full_cpus(pid)?;
        }
        assert_eq!(idle["engine"], release.engine.id());
        assert_eq!(idle["product"], product);
        assert!(idle["version"].as_str().unwrap().starts_with(version), "{}", idle["version"]);
        assert_eq!(idle["connections"], 0, "{idle:#}");
        let settings = &snapshot["settings"];
        assert_eq!(settings["source"], "socket", "{:#}", snapshot["settings"]);
        let counter = snapshot["traits"]["requests_counter"].as_str().unwrap();
        let told = &snapshot["counters"]["told"];
        assert!(told[counter].as_u64().is_some_and(|count| count > 0), "{counter}: {told:#}");

        let mut load =
            server.work(Work { kind: Kind::Reads, clients: 4 }, FILL_MEBIBYTES, MINUTES)?;
        std::thread::sleep(std::time::Duration::from_secs(1));
        one_of(3, || {
            let (busy, _) = check(pid);
            load.check().map_err(|error| error.to_string())?;
            println!("{} busy: {:#}", release.id, busy["time"]);
            let active = part(&busy, "active_s");
            demand(active > 1.0, || format!("{active} s active under load"))?;
            accounted(&busy, active)?;
            let connections = busy["connections"].as_u64().unwrap();
            demand((4..=5).contains(&connections), || format!("{connections} connections"))
        });
        Ok(())
    });
}

#[test]
fn mysql_9() {
    recognised_asked_and_accounted_for(MYSQL_9, "MySQL", "9.");
}

#[test]
fn mariadb_11() {
    recognised_asked_and_accounted_for(MARIADB_11, "MariaDB", "11.");
}

#[test]
fn postgres_17() {
    recognised_asked_and_accounted_for(POSTGRES_17, "PostgreSQL", "17.");
}

#[test]
fn postgres_18() {
    recognised_asked_and_accounted_for(POSTGRES_18, "PostgreSQL", "18.");
}

#[test]
fn valkey() {
    recognised_asked_and_accounted_for(VALKEY, "Valkey", "9.");
}

/// The engines and products of the databases that a check of all finds among these processes.
fn recognised(pids: &[u32]) -> Vec<(String, String)> {
    let check = Untax::new().run(&["check", "--all", "--window", "0s", "--json"]).json();
    let databases = check["databases"].as_array().unwrap();
    let found = |pid: &u32| databases.iter().find(|database| database["pid"] == *pid);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    pids.iter().filter_map(found).map(|d| (text(&d["engine"]), text(&d["product"]))).collect()
}

/// A Redis that was started in an odd way, and listens on a socket of its own.
fn odd(program: &Path, words: &[&str], socket: &Path) -> Bystander {
    let mut command = Command::new(program);
    command.args(words).args(["--port", "0", "--save", "", "--unixsocket"]).arg(socket);
    Bystander::start(command)
}

#[test]
fn a_server_is_recognised_by_what_it_is() {
    support::real(|| {
        let installed = find_program("redis-server", "redis-server")?;
        let program = std::fs::canonicalize(&installed).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let missing = |_| SceneError::Missing {
            program: "the loader of programs".to_owned(),
            package: "libc6".to_owned(),
        };
        let renamed = folder.path().join("cache-prod");
        std::fs::copy(&program, &renamed).unwrap();
        // A link has another name in the command line; the kernel knows the program.
        let link = folder.path().join("redis-cache");
        symlink(&program, &link).unwrap();
        let loader = std::fs::canonicalize("/lib64/ld-linux-x86-64.so.2").map_err(missing)?;
        let installed = installed.to_string_lossy();
        let started = [
            odd(&renamed, &[], &folder.path().join("1")),
            odd(&link, &[], &folder.path().join("2")),
            odd(&loader, &["--inhibit-cache", &installed], &folder.path().join("3")),
        ];
        std::thread::sleep(std::time::Duration::from_secs(1));
        let pids: Vec<u32> = started.iter().map(Bystander::id).collect();
        let redis = ("redis".to_owned(), "Redis".to_owned());
        assert_eq!(recognised(&pids), vec![redis; 3], "renamed, linked, started by the loader");
        Ok(())
    });
}
