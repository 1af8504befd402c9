//! `untax check` on a live PostgreSQL.

#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test looks at the machine by other ways than the code that it tests"
)]

mod support;

use serde_json::Value;
use support::{Untax, database, page_tables, rules, settle, unmeasured};
use untax_scenes::{HugePages, Pgbench, Postgres, Runtime, SceneError};

const CONNECTIONS: u32 = 64;

/// How much `pgbench -S` is to be spread over: `scale` x 15 MB of rows at `fillfactor` percent.
struct Size {
    shared_buffers: &'static str,
    scale: u32,
    fillfactor: u32,
}

/// Small pages under 64 connections are found with their page tables; huge pages are not.
fn pages_off_and_on(size: &Size) -> Result<(), SceneError> {
    let buffers = ("shared_buffers", size.shared_buffers);
    let mut postgres = Postgres::start(Runtime::Host, &[buffers, ("huge_pages", "off")])?;
    postgres.pgbench_fill(size.scale, size.fillfactor)?;
    let needed: u64 =
        postgres.sql("SHOW shared_memory_size_in_huge_pages")?.trim().parse().unwrap();
    let untax = Untax::new();

    let (off, tables) = check_loaded(&untax, &postgres)?;
    assert_eq!(off["memory"]["page_size_bytes"], 4096);
    assert_eq!(off["connections"], CONNECTIONS);
    let found = rules(&off);
    assert!(found.contains(&"small-pages") && found.contains(&"page-table-bloat"), "{found:?}");
    let small = off["findings"].as_array().unwrap().iter().find(|f| f["rule"] == "small-pages");
    let method = small.unwrap()["tax"]["method"].as_str().unwrap();
    assert!(method.starts_with("sampled time in page faults on shared memory"), "{method}");
    let said = off["memory"]["page_table_bytes"].as_f64().unwrap();
    assert!((said / tables as f64 - 1.0).abs() < 0.05, "said {said}, seen {tables}");

    let _pool = HugePages::reserve(needed)?;
    postgres.restart(&[buffers, ("huge_pages", "on")])?;
    let (on, _) = check_loaded(&untax, &postgres)?;
    assert_eq!(on["memory"]["page_size_bytes"], 2 << 20);
    assert_eq!(on["huge_pages"]["asked"], "on");
    let found = rules(&on);
    assert!(!found.contains(&"small-pages") && !found.contains(&"page-table-bloat"), "{found:?}");
    Ok(())
}

/// The database as checked under load, and its page tables as seen right after.
fn check_loaded(untax: &Untax, postgres: &Postgres) -> Result<(Value, u64), SceneError> {
    postgres.sql("CREATE EXTENSION IF NOT EXISTS pg_prewarm")?;
    postgres.sql("SELECT pg_prewarm('pgbench_accounts')")?;
    let pid = postgres.pid().unwrap();
    let load = Pgbench { clients: CONNECTIONS, seconds: 600, ..Pgbench::default() };
    let _load = postgres.pgbench(&load)?;
    let connected = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pgbench'";
    for _ in 0..300 {
        if postgres.sql(connected)?.trim() == CONNECTIONS.to_string() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    settle(pid);
    // Long enough for many samples: a busy database is traced for a small part of a window.
    let words = ["--pid", &pid.to_string(), "--window", "10s", "--no-calibration", "--json"];
    let check = untax.run(&[&["check"], &words[..]].concat()).json();
    let tables = page_tables(pid);
    Ok((database(&check, pid).clone(), tables))
}

#[test]
fn small_pages_are_found_and_huge_pages_are_not() {
    support::real(|| {
        Ok(pages_off_and_on(&Size { shared_buffers: "1GB", scale: 12, fillfactor: 20 })?)
    });
}

#[test]
#[ignore = "long: 64 connections touch 6 GB"]
fn so_they_are_at_six_gigabytes() {
    support::real(|| {
        Ok(pages_off_and_on(&Size { shared_buffers: "6GB", scale: 50, fillfactor: 15 })?)
    });
}

#[test]
fn a_pool_too_small_is_found_short_and_idle() {
    support::real(|| {
        let _pool = HugePages::reserve(200)?;
        // Half as much again as all of the pool, which may have had pages before.
        let pool = support::text("/proc/sys/vm/nr_hugepages").trim().parse::<u64>().unwrap();
        let buffers = format!("{}MB", 3 * pool);
        let settings = [("shared_buffers", buffers.as_str()), ("huge_pages", "try")];
        let postgres = Postgres::start(Runtime::Host, &settings)?;
        let check = Untax::new().check(postgres.pid().unwrap());
        let found = database(&check, postgres.pid().unwrap());
        assert_eq!(found["huge_pages"]["asked"], "try");
        let needed = postgres.sql("SHOW shared_memory_size_in_huge_pages")?;
        assert_eq!(found["huge_pages"]["needed_pages"].to_string(), needed.trim());
        assert!(rules(found).contains(&"hugepages-short"), "{found:#}");
        assert!(rules(&check).contains(&"hugepages-idle"), "{:#}", check["findings"]);
        Ok(())
    });
}

#[test]
fn a_check_leaves_no_error_in_the_log_of_the_server() {
    support::real(|| {
        let postgres = Postgres::start(Runtime::Host, &[])?;
        let check = Untax::new().check(postgres.pid().unwrap());
        let asked = &database(&check, postgres.pid().unwrap())["settings"]["source"];
        assert_eq!(asked, "socket");
        let data = postgres.data_directory();
        let scratch = std::path::Path::new(&data).parent().unwrap();
        let scratch = std::fs::read_dir(format!("{}.own", scratch.display())).unwrap();
        let logs = scratch.filter_map(|entry| std::fs::read_to_string(entry.unwrap().path()).ok());
        let log: String = logs.filter(|log| log.contains("ready to accept connections")).collect();
        assert!(!log.is_empty() && !log.contains("ERROR"), "{log}");
        Ok(())
    });
}

#[test]
fn several_clusters_are_told_apart() {
    support::real(|| {
        let small = [("shared_buffers", "128MB"), ("huge_pages", "off")];
        let large = [("shared_buffers", "256MB"), ("huge_pages", "off")];
        let clusters = [
            Postgres::start(Runtime::Host, &small)?,
            Postgres::start(Runtime::Host, &large)?,
            Postgres::start(Runtime::Host, &large)?,
        ];
        let untax = Untax::new();
        let check = untax.run(&["check", "--window", "1s", "--no-calibration", "--json"]).json();
        for (cluster, mebibytes) in clusters.iter().zip([128, 256, 256]) {
            let pid = cluster.pid().unwrap();
            let found = database(&check, pid);
            assert_eq!(found["id"], format!("postgres:{pid}"));
            assert_eq!(found["data_directory"], cluster.data_directory());
            assert_eq!(found["settings"]["source"], "socket");
            let shared = found["memory"]["shared_bytes"].as_u64().unwrap() >> 20;
            assert!((mebibytes..mebibytes + 64).contains(&shared), "{shared} MiB");
        }
        Ok(())
    });
}

#[test]
fn a_container_is_named() {
    support::real(|| {
        let settings = [("shared_buffers", "128MB"), ("huge_pages", "off")];
        let postgres = Postgres::start(Runtime::Runc, &settings)?;
        let (pid, id) = (postgres.pid().unwrap(), postgres.container_id().unwrap());
        let untax = Untax::new();
        let check = untax.check(pid);
        let found = database(&check, pid);
        assert_eq!(found["container"]["id"], id);
        assert_eq!(found["container"]["runtime"], "runc");
        let version = postgres.sql("SHOW server_version")?;
        assert!(version.starts_with(found["version"].as_str().unwrap()), "{version}");
        assert!(found["memory"]["shared_bytes"].as_u64().unwrap() >= 128 << 20);

        let arguments = ["--window", "1s", "--no-calibration", "--json"];
        let by_id = [&["check", "--container", id][..], &arguments].concat();
        let databases = untax.run(&by_id).json()["databases"].as_array().unwrap().len();
        assert_eq!(databases, 1);
        let other = untax.run(&[&["check", "--container", "no-such"][..], &arguments].concat());
        assert_eq!(other.code, 2, "{}", other.stdout);
        Ok(())
    });
}

#[test]
fn one_that_exits_during_the_check_is_said_to_be_gone() {
    support::real(|| {
        for selected in [true, false] {
            let settings = [("shared_buffers", "128MB"), ("huge_pages", "off")];
            let mut leaving = Postgres::start(Runtime::Host, &settings)?;
            let staying = Postgres::start(Runtime::Host, &settings)?;
            let pid = leaving.pid().unwrap();
            let which = if selected { vec!["--pid".to_owned(), pid.to_string()] } else { vec![] };
            let mut arguments = vec!["check", "--window", "12s", "--no-calibration", "--json"];
            arguments.extend(which.iter().map(String::as_str));
            let untax = Untax::new();
            let ran = untax.run_while(&arguments, || {
                std::thread::sleep(std::time::Duration::from_secs(6));
                leaving.stop();
            });
            let check = ran.json();
            assert!(check["databases"].as_array().unwrap().iter().all(|db| db["pid"] != pid));
            let gone = format!("postgres:{pid} ended or was restarted during the check");
            assert!(
                unmeasured(&check).contains(&("all", gone.as_str())),
                "{:#}",
                check["unmeasured"]
            );
            if !selected {
                database(&check, staying.pid().unwrap());
            }
        }
        Ok(())
    });
}

#[test]
fn without_privilege_nothing_unknown_is_zero() {
    support::real(|| {
        let settings = [("shared_buffers", "128MB"), ("huge_pages", "off")];
        let postgres = Postgres::start(Runtime::Host, &settings)?;
        postgres.pgbench_fill(1, 100)?;
        let _load = postgres.pgbench(&Pgbench { seconds: 600, ..Pgbench::default() })?;
        let pid = postgres.pid().unwrap();
        let untax = Untax::as_nobody();
        let check = untax.run(&["check", "--window", "2s", "--no-calibration", "--json"]).json();
        let found = database(&check, pid);
        for name in ["shared_bytes", "page_size_bytes", "segments"] {
            let gap = &found["memory"][name];
            assert!(gap["denied"].is_string() || gap["absent"].is_string(), "{name}: {gap}");
        }
        let why = unmeasured(found).iter().find(|(rule, _)| *rule == "small-pages").unwrap().1;
        assert!(why.contains("permission denied"), "{why}");
        assert!(found["memory"]["page_table_bytes"].as_u64().unwrap() > 0);
        assert!(found["time"]["on_cpu_s"].as_f64().unwrap() > 0.0);
        // What the kernel counts for everybody stands in for what needs tracing.
        let pressure = &found["pressure"];
        match pressure["cpu_some"].as_f64() {
            Some(share) => assert!(share > 0.0 && share <= 1.0, "many clients: {pressure:#}"),
            None => assert!(std::fs::read("/proc/pressure/cpu").is_err(), "{pressure:#}"),
        }
        for (name, value) in found["time"].as_object().unwrap() {
            assert!(value.is_object() || value.as_f64().unwrap() > 0.0, "{name} is zero");
        }
        // Nobody takes that for a clean result.
        let strict = untax.run(&["check", "--window", "0s", "--no-calibration", "--strict"]);
        assert_eq!(strict.code, 2);
        let text = &strict.stdout;
        assert!(text.contains("Seen in part only") && text.contains("untax doctor"), "{text}");
        Ok(())
    });
}
