//! The plan's number of huge pages against what PostgreSQL says and what MariaDB maps, for random
//! configurations.
//!
//! `cargo test -p untax-remedies --test exact_counts -- TIMES [SEED]` as root: so many
//! configurations of PostgreSQL, and a tenth as many of MariaDB and of MySQL. Without TIMES a few, when it is installed; with
//! `UNTAX_REQUIRE_REAL=1` it fails where it is not.
//!
//! PostgreSQL says itself how many pages it needs (`postgres -C shared_memory_size_in_huge_pages`,
//! PostgreSQL 15 and newer), for a size that it is told: the plan must say exactly that, for both
//! sizes, though the server runs on small pages when it is planned for.

#![expect(clippy::print_stdout, reason = "it is run by hand, too, and says how it went")]

use std::collections::BTreeMap;
use std::process::{Command, ExitCode};
use untax_core::{Check, Reading, Snapshot};
use untax_engines::{Asker, Selection};
use untax_host::Host;
use untax_remedies::Wish;
use untax_scenes::{
    HugePages, MARIADB, MYSQL_9, MariaDb, Postgres, Release, Runtime, SceneError, Setup, Turn,
};

/// Configurations when no number is given.
const FEW: u64 = 3;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;
type Settings = Vec<(&'static str, String)>;

fn main() -> ExitCode {
    if let Some(code) = untax_changes::guard::main(std::env::args_os()) {
        return code;
    }
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.first().is_some_and(|word| word == "__ask") {
        return untax_engines::answer_main();
    }
    let numbers: Vec<u64> = words.iter().filter_map(|word| word.parse().ok()).collect();
    let times = numbers.first().copied().unwrap_or(FEW);
    let mut rng = fastrand::Rng::with_seed(numbers.get(1).copied().unwrap_or(1));
    let few = times.div_ceil(10);
    let all = postgres(times, &mut rng)
        .and_then(|()| mapped(MARIADB, few, || mariadb_settings(&mut rng)))
        .and_then(|()| mapped(MYSQL_9, few, || mysql_settings(&mut rng)));
    match all {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if is_missing(&*error) => {
            println!("left out: {error}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            println!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Whether the machine lacks what the test needs, and may.
fn is_missing(error: &(dyn std::error::Error + 'static)) -> bool {
    let required = std::env::var_os("UNTAX_REQUIRE_REAL").is_some_and(|value| value == "1");
    let missing = matches!(
        error.downcast_ref(),
        Some(SceneError::Missing { .. } | SceneError::NotUnpacked { .. })
    );
    !required && (missing || !rustix::process::geteuid().is_root())
}

/// What a plan says of the only database with this pid: pages by the names of their sizes.
fn planned(pid: u32) -> Outcome<(BTreeMap<String, u64>, Snapshot)> {
    let asker = Asker::this_program();
    let snapshot = untax_probes::snapshot(&Host::live(), &asker, &Selection::Pid(pid));
    let Reading::Present(snapshot) = snapshot else { return Err("no snapshot".into()) };
    // No rule has looked at it: sizes are in every plan.
    let check = Check::of(&snapshot, "exact", "not measured");
    let plan = untax_remedies::plan("exact".to_owned(), &check, &snapshot, &Wish::default())?;
    let database = plan.sizing.databases.first().ok_or("no database in the plan")?;
    match &database.huge_pages {
        Reading::Present(pages) => Ok((pages.clone(), snapshot)),
        other => Err(format!("the plan does not say how many: {other:?}").into()),
    }
}

fn borrowed(settings: &Settings) -> Vec<(&'static str, &str)> {
    settings.iter().map(|(name, value)| (*name, value.as_str())).collect()
}

fn postgres(times: u64, rng: &mut fastrand::Rng) -> Outcome<()> {
    let _turn = Turn::wait()?;
    let mut server = Postgres::start(Runtime::Host, &[])?;
    let mut wrong = 0;
    for time in 1..=times {
        let settings: Settings = vec![
            ("shared_buffers", format!("{}kB", 8 * rng.u64(1_000..250_000))),
            ("max_connections", rng.u32(5..900).to_string()),
            ("max_locks_per_transaction", rng.u32(10..400).to_string()),
            ("wal_buffers", format!("{}kB", 8 * rng.u32(8..8_000))),
            ("huge_pages", "off".to_owned()),
        ];
        server.restart(&borrowed(&settings))?;
        let (pages, snapshot) = planned(server.pid().ok_or("it ended")?)?;
        let program = snapshot.databases[0].executable.value().ok_or("no program")?.clone();
        server.stop();
        for (name, size) in [("2m", "2MB"), ("1g", "1GB")] {
            let said = told(&server, &program, size)?;
            if pages.get(name) != Some(&said) {
                println!(
                    "PostgreSQL {time}: planned {pages:?}, it says {said} of {size}: {settings:?}"
                );
                wrong += 1;
            }
        }
    }
    println!("PostgreSQL: {times} configurations with two sizes, {wrong} counts wrong");
    if wrong == 0 { Ok(()) } else { Err("the plan does not say what PostgreSQL says".into()) }
}

fn mariadb_settings(rng: &mut fastrand::Rng) -> Settings {
    vec![
        ("innodb_buffer_pool_size", format!("{}M", rng.u32(1000..4000))),
        ("innodb_log_buffer_size", format!("{}M", rng.u32(2..64))),
        ("key_buffer_size", format!("{}K", rng.u32(8..100_000))),
        ("aria_pagecache_buffer_size", format!("{}K", rng.u32(1_000..100_000))),
    ]
}

fn mysql_settings(rng: &mut fastrand::Rng) -> Settings {
    vec![
        ("innodb_buffer_pool_size", format!("{}M", rng.u32(1000..4000))),
        ("innodb_buffer_pool_chunk_size", format!("{}M", 32 << rng.u32(0..4))),
        ("innodb_log_buffer_size", format!("{}M", rng.u32(2..64))),
        ("key_buffer_size", format!("{}K", rng.u32(8..100_000))),
    ]
}

/// MariaDB and MySQL say nothing, so what they map is counted: it may not be more than planned, and not less
/// by more than a hundredth. (Three pages MariaDB maps in some starts only, and of two caches it rounds
/// the blocks down by rules of its own: up to five pages, which is more than a hundredth of pools
/// below 1 GiB.)
///
/// On a busy machine another program may take pages of the pool before the server does, and it then maps fewer:
/// a count that is wrong is made again.
fn mapped(release: Release, times: u64, mut settings: impl FnMut() -> Settings) -> Outcome<()> {
    let _turn = Turn::wait()?;
    let mut server = MariaDb::start_as(&Setup { release: Some(release), ..Setup::default() })?;
    let mut wrong = 0;
    for time in 1..=times {
        let settings = settings();
        let mut is_exact = false;
        for _ in 0..TRIES {
            let (planned_pages, used) = planned_and_used(&mut server, &settings)?;
            is_exact = planned_pages >= used && planned_pages <= used + used / 100;
            if is_exact {
                break;
            }
            println!(
                "{} {time}: planned {planned_pages}, it maps {used}: {settings:?}",
                release.id
            );
        }
        wrong += u64::from(!is_exact);
    }
    println!("{}: {times} configurations, {wrong} counts wrong", release.id);
    if wrong == 0 {
        Ok(())
    } else {
        Err(format!("the plan does not say what {} maps", release.id).into())
    }
}

/// How often one configuration is counted until the count is exact.
const TRIES: u32 = 3;

/// Pages of 2 MiB that are planned for a server with these settings, and those that it maps.
fn planned_and_used(server: &mut MariaDb, settings: &Settings) -> Outcome<(u64, u64)> {
    server.restart(&borrowed(settings))?;
    let planned_pages = two_mebibytes(server.pid())?;
    // Room enough, so that it maps all that it wants.
    let _pool = HugePages::reserve(planned_pages + planned_pages / 4 + 64)?;
    let large = ("large_pages", "ON".to_owned());
    server.restart(&borrowed(&[&settings[..], &[large]].concat()))?;
    let used = two_mebibytes(server.pid())?;
    server.stop();
    Ok((planned_pages, used))
}

/// Pages of 2 MiB in the plan for a server.
fn two_mebibytes(pid: Option<u32>) -> Outcome<u64> {
    let (pages, _) = planned(pid.ok_or("it ended")?)?;
    Ok(pages.get("2m").copied().ok_or("no 2 MiB pages")?)
}

/// The server's own number. Only a stopped server is asked so, and only by its user.
fn told(server: &Postgres, program: &str, size: &str) -> Outcome<u64> {
    let output = Command::new("runuser")
        .args(["-u", server.user(), "--", program, "-D", &server.data_directory()])
        .args(["-c", &format!("huge_page_size={size}")])
        .args(["-C", "shared_memory_size_in_huge_pages"])
        .current_dir("/")
        .output()?;
    let said = String::from_utf8_lossy(&output.stdout);
    said.trim().parse().map_err(|_| String::from_utf8_lossy(&output.stderr).into_owned().into())
}
