//! `untax check` on a live Redis.

#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test looks at the machine by other ways than the code that it tests"
)]

mod support;

use serde_json::Value;
use support::{Untax, database, rules};
use untax_scenes::{Redis, RedisBenchmark, Runtime, SceneError, Settings, Thp};

#[test]
fn transparent_huge_pages_are_found_where_redis_lets_them_in() {
    support::real(|| {
        let cases: [(&str, Settings, bool); 4] = [
            ("always", &[("disable-thp", "no")], true),
            ("always", &[("disable-thp", "yes")], false),
            ("madvise", &[("disable-thp", "no")], false),
            ("never", &[("disable-thp", "no")], false),
        ];
        for (mode, settings, expected) in cases {
            let _thp = Thp::set(mode)?;
            let found = check_loaded(settings)?;
            let found_it = rules(&found).contains(&"thp-mode");
            assert_eq!(found_it, expected, "{mode} {settings:?}: {found:#}");
            // How much the kernel finds huge pages for depends on the machine's free memory. And some
            // are there where Redis switches them off for itself: it does so after its start.
            let bytes = |name: &str| found["memory"][name].as_f64().unwrap();
            let huge = bytes("anon_huge_bytes") > bytes("resident_bytes") / 4.0;
            assert_eq!(huge, expected, "{mode} {settings:?}: {}", found["memory"]);
        }
        Ok(())
    });
}

fn check_loaded(settings: Settings) -> Result<Value, SceneError> {
    let redis = Redis::start(Runtime::Host, settings)?;
    let load = |requests, writes| RedisBenchmark {
        clients: 8,
        requests,
        keys: 200_000,
        value_bytes: 500,
        writes,
    };
    redis.benchmark(&load(400_000, true))?.finish()?;
    let _load = redis.benchmark(&load(100_000_000, false))?;
    let pid = redis.pid().unwrap();
    let check = Untax::new().check(pid);
    let found = database(&check, pid);
    assert_eq!(found["model"], "loop");
    assert_eq!(found["connections"].as_u64().unwrap(), 8);
    Ok(found.clone())
}
