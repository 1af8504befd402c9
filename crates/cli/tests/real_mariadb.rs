//! `untax check` on a live MariaDB.

#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test looks at the machine by other ways than the code that it tests"
)]

mod support;

use support::{Untax, database, rules};
use untax_scenes::{HugePages, MariaDb, Runtime, SceneError, Sysbench};

const ROWS: u64 = 500_000;

#[test]
fn small_pages_are_found_and_large_pages_are_not() {
    support::real(|| {
        let pool = ("innodb_buffer_pool_size", "512M");
        let mut mariadb = MariaDb::start(Runtime::Host, &[pool])?;
        mariadb.sysbench_fill(ROWS)?;
        let off = check_loaded(&mariadb)?;
        assert_eq!(off["memory"]["page_size_bytes"], 4096);
        assert_eq!(off["product"], "MariaDB");
        assert!(rules(&off).contains(&"small-pages"), "{off:#}");

        // The buffer pool, its descriptors and the log buffer.
        let _pages = HugePages::reserve(400)?;
        mariadb.restart(&[pool, ("large_pages", "1")])?;
        let on = check_loaded(&mariadb)?;
        assert_eq!(on["memory"]["page_size_bytes"], 2 << 20);
        assert_eq!(on["huge_pages"]["asked"], "try");
        assert!(!rules(&on).contains(&"small-pages"), "{on:#}");
        Ok(())
    });
}

fn check_loaded(mariadb: &MariaDb) -> Result<serde_json::Value, SceneError> {
    let load = Sysbench { threads: 8, seconds: 600, rows: ROWS };
    let _load = mariadb.sysbench_run(&load)?;
    let pid = mariadb.pid().unwrap();
    let check = Untax::new().check(pid);
    let found = database(&check, pid);
    assert!(found["memory"]["shared_bytes"].as_u64().unwrap() >= 512 << 20, "{found:#}");
    let version = mariadb.sql("SELECT version()")?;
    assert!(version.starts_with(found["version"].as_str().unwrap()), "{version} {found:#}");
    Ok(found.clone())
}
