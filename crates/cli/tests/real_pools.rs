//! Threads of a program of unknown model that wait for work, for each other, or for nobody knows what:
//! none of it is active time that the platform or a lock takes.

#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test looks at the machine by other ways than the code that it tests"
)]

mod support;

use serde_json::Value;
use support::numbers::{part, possible, sum};
use support::threads::Threads;
use support::{Untax, database, rules, unmeasured};

/// A database that was checked while none of its threads came or went, and their time together.
struct Found {
    database: Value,
    all_s: f64,
}

impl Found {
    /// The part (0..1) of all time that is of one kind.
    fn part(&self, name: &str) -> f64 {
        part(&self.database, name) / self.all_s
    }

    fn has_no_tax(&self) {
        let database = &self.database;
        assert!(database["tax"].is_null() && database["database_tax"].is_null(), "{database:#}");
        assert!(!rules(database).contains(&"lock-contended"), "{database:#}");
    }
}

/// Checks such a program once its threads wait.
fn checked(words: [&str; 3]) -> Found {
    let untax = Untax::new();
    let threads = Threads::start(&untax, words);
    while threads.says() != "ready" {
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    let check = untax.check(threads.program.id());
    possible(&check);
    let database = database(&check, threads.program.id()).clone();
    let all_s = threads.alive() as f64 * check["window_s"].as_f64().unwrap();
    assert!((sum(&database) / all_s - 1.0).abs() < 0.02, "{all_s}: {:#}", database["time"]);
    Found { database, all_s }
}

#[test]
fn a_pool_that_waits_for_work_is_idle() {
    support::real(|| {
        let found = checked(["pool", "20", "0"]);
        found.has_no_tax();
        assert!(found.part("idle_s") > 0.99, "{:#}", found.database["time"]);
        Ok(())
    });
}

#[test]
fn a_pool_that_gets_work_now_and_then_waits_for_no_lock() {
    support::real(|| {
        let found = checked(["pool", "20", "20"]);
        assert!(!rules(&found.database).contains(&"lock-contended"), "{:#}", found.database);
        assert!(found.part("idle_s") > 0.9, "{:#}", found.database["time"]);
        Ok(())
    });
}

#[test]
fn threads_behind_others_at_work_are_not_judged() {
    support::real(|| {
        let found = checked(["held", "20", "0"]);
        assert!(!rules(&found.database).contains(&"lock-contended"), "{:#}", found.database);
        assert!(found.part("unaccounted_s") > 0.2, "{:#}", found.database["time"]);
        assert!(found.part("lock_s") < 0.01, "{:#}", found.database["time"]);
        let gaps = unmeasured(&found.database);
        let is_said = |(rule, why): &(&str, &str)| {
            *rule == "lock-contended" && why.contains("cannot be told from waits for work")
        };
        assert!(gaps.iter().any(is_said), "{gaps:?}");
        Ok(())
    });
}

/// Twenty of 22 threads; one of the others works a tenth of its time.
#[test]
fn a_call_of_unknown_meaning_is_no_active_time() {
    support::real(|| {
        let found = checked(["spliced", "20", "0"]);
        let off = found.part("unaccounted_s") - 20.0 / 22.0;
        assert!(off.abs() < 0.02, "{off}: {:#}", found.database["time"]);
        assert!(found.part("active_s") < 2.0 / 22.0, "{:#}", found.database["time"]);
        assert_eq!(found.database["time"]["unaccounted_call"], "splice");
        Ok(())
    });
}
