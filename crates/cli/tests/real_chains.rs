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
use support::{Untax, database};
use untax_scenes::{Disk, Group, Postgres, Runtime, SceneError, Setup};

/// Longer than any check of it takes, s.
const MINUTES: u32 = 120;

/// Without flushing: no commit waits for a disk.
const IN_MEMORY: [(&str, &str); 2] = [("fsync", "off"), ("synchronous_commit", "off")];

/// What requests took, of one check.
struct Requests {
    serving: Value,
}

impl Requests {
    fn of(postgres: &Postgres, window: &str) -> Self {
        let pid = postgres.pid().unwrap();
        let check = Untax::new().run(&[
            "check",
            "--pid",
            &pid.to_string(),
            "--window",
            window,
            "--json",
            "--no-calibration",
        ]);
        let serving = database(&check.json(), pid)["ledger"]["serving"].clone();
        println!("{serving:#}");
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
