//! From a finding to a proven gain and back, on real servers.

#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test looks at the machine by other ways than the code that it tests"
)]

mod support;

use jiff::Timestamp;
use std::fs;
use std::sync::atomic::AtomicBool;
use support::limited::Limited;
use support::{Untax, apply, database, plan, rules, settle, text};
use untax_changes::{Tree, executor, target};
use untax_core::plan::{Effect, Step, Target};
use untax_core::receipt::Header;
use untax_scenes::{HugePages, Pgbench, Postgres, Redis, Runtime, Thp};

const POOL: &str = "/proc/sys/vm/nr_hugepages";
const THP: &str = "/sys/kernel/mm/transparent_hugepage/enabled";

#[test]
fn huge_pages_are_planned_applied_used_and_given_back() {
    support::real(|| {
        // Nothing of another program's is to change under this one.
        let _pool = HugePages::reserve(0)?;
        let before = text(POOL);
        let mut postgres = Postgres::start(Runtime::Host, &[("shared_buffers", "512MB")])?;
        postgres.pgbench_fill(10, 100)?;
        let untax = Untax::new();
        let load = Pgbench { clients: 64, seconds: 600, ..Pgbench::default() };
        let running = postgres.pgbench(&load)?;
        settle(postgres.pid().unwrap());
        let check = untax.check(postgres.pid().unwrap());
        drop(running);

        let (id, made) = plan(&untax, "small-pages", &[]);
        let told = postgres.sql("SHOW shared_memory_size_in_huge_pages")?;
        let sized = &made["sizing"]["databases"][0]["huge_pages"]["2m"];
        assert_eq!(sized.to_string(), told.trim());
        let dry = untax.run(&["apply", &id, "--dry-run"]);
        assert!(dry.code == 0 && text(POOL) == before, "{}", dry.stderr);

        let receipt = apply(&untax, &id);
        assert_ne!(text(POOL), before);
        postgres.restart(&[("shared_buffers", "512MB"), ("huge_pages", "on")])?;
        let again = untax.check(postgres.pid().unwrap());
        let found = database(&again, postgres.pid().unwrap());
        assert_eq!(found["memory"]["page_size_bytes"], 2 << 20);
        assert!(!rules(found).contains(&"small-pages"), "{found:#}");
        let runs = [&check, &again].map(|check| check["run"].as_str().unwrap());
        let compared = untax.run(&["compare", runs[0], runs[1], "--json"]).json();
        let causes = compared["databases"][0]["causes"].as_array().unwrap();
        let cause = causes.iter().find(|cause| cause["rule"] == "small-pages").unwrap();
        assert_eq!(cause["change"], "gone");

        postgres.stop();
        let undone = untax.run(&["undo", &receipt]);
        assert_eq!((undone.code, text(POOL)), (0, before), "{}", undone.stderr);
        assert_eq!(untax.run(&["undo", &receipt]).code, 0, "undoing twice is harmless");
        Ok(())
    });
}

#[test]
fn the_limits_of_groups_above_are_raised_first_and_all_come_back() {
    support::real(|| {
        // So low that it is met beside other programs, too.
        let server = Limited::start_below(0.05)?;
        let limits = || (server.outer_limit().unwrap(), server.limit());
        let before = limits();
        let untax = Untax::new();
        let (id, made) = server.planned(&untax)?;
        let steps = made["steps"].as_array().unwrap();
        assert_eq!(steps.len(), 2, "{made:#}");
        let file = |step: &serde_json::Value| step["target"]["file"].as_str().unwrap().to_owned();
        assert!(file(&steps[0]).len() < file(&steps[1]).len(), "the outermost first: {made:#}");
        // The kernel refuses the inner one where the outer one is not raised before it (version 1).
        let receipt = apply(&untax, &id);
        let raised = limits();
        assert!(raised.0 != before.0 && raised.1 != before.1, "{before:?} and {raised:?}");
        let undone = untax.run(&["undo", &receipt]);
        assert_eq!((undone.code, limits()), (0, before), "{}", undone.stderr);
        Ok(())
    });
}

#[test]
fn shared_memory_is_on_transparent_pages_where_a_plan_says_so() {
    const SHMEM: &str = "/sys/kernel/mm/transparent_hugepage/shmem_enabled";
    const DROP_IN: &str = "/etc/tmpfiles.d/untax-shmem-thp.conf";
    let huge_kib = || {
        let text = text("/proc/meminfo");
        let line = text.lines().find_map(|line| line.strip_prefix("ShmemHugePages:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap()
    };
    support::real(|| {
        let before = text(SHMEM);
        assert!(before.contains("[never]") || before.contains("[advise]"), "{before}");
        let settings = [("shared_buffers", "512MB")];
        let mut postgres = Postgres::start(Runtime::Host, &settings)?;
        postgres.pgbench_fill(10, 100)?;
        let untax = Untax::new();
        untax.check(postgres.pid().unwrap());
        let (id, _) = plan(&untax, "small-pages", &["--page", "thp"]);
        let receipt = apply(&untax, &id);
        assert!(text(SHMEM).contains("[always]") && text(DROP_IN).contains("shmem_enabled"));

        let small = huge_kib();
        postgres.restart(&settings)?;
        postgres.sql("CREATE EXTENSION pg_prewarm")?;
        postgres.sql("SELECT pg_prewarm('pgbench_accounts')")?;
        let grown = huge_kib().saturating_sub(small) >> 10;
        assert!(grown >= 64, "{grown} MiB of shared memory in huge pages");

        postgres.stop();
        let undone = untax.run(&["undo", &receipt]);
        assert_eq!((undone.code, text(SHMEM)), (0, before), "{}", undone.stderr);
        assert!(!fs::exists(DROP_IN).unwrap());
        Ok(())
    });
}

#[test]
fn a_cpu_limit_is_raised_and_proven_to_have_cost() {
    support::real(|| {
        let server = Limited::start(0.25)?;
        let before = server.limit();
        let untax = Untax::new();
        let (id, made) = server.planned(&untax)?;
        assert_eq!(made["steps"].as_array().unwrap().len(), 1, "{made:#}");
        let workload = server.workload(30_000);
        let words = ["verify", &id, "--workload", &workload, "--pairs", "10", "--json"];
        // While others take the CPUs, pairs differ by more than a limit costs.
        support::one_of(3, || {
            let verdict = &untax.run(&words).json()["verdict"];
            assert_eq!(server.limit(), before, "verifying leaves nothing");
            assert_ne!(verdict["word"], "disproven", "{verdict:#}");
            support::demand(verdict["word"] == "proven", || format!("{verdict:#}"))
        });
        Ok(())
    });
}

#[test]
#[ignore = "long: one or two verifications of six pairs"]
fn what_changes_nothing_is_not_proven() {
    support::real(|| {
        let _thp = Thp::set("always")?;
        let redis = Redis::start(Runtime::Host, &[("disable-thp", "no")])?;
        let untax = Untax::new();
        untax.check(redis.pid().unwrap());
        let (id, _) = plan(&untax, "thp-mode", &[]);
        // What this measures has nothing to do with pages.
        let workload = "seq 1 200000 | sort -R | sort -n | tail -n 1 >/dev/null";
        let words = ["verify", &id, "--workload", workload, "--restart", "true", "--pairs", "6"];
        let proven = || {
            let verified = untax.run(&[&words[..], &["--json"]].concat());
            verified.json()["verdict"]["word"] == "proven"
        };
        // Once in some forty times it is, by chance.
        assert!(!proven() || !proven());
        Ok(())
    });
}

#[test]
fn transparent_huge_pages_are_set_for_redis_and_drift_is_left_alone() {
    const DROP_IN: &str = "/etc/tmpfiles.d/untax-thp.conf";
    support::real(|| {
        let _thp = Thp::set("always")?;
        let redis = Redis::start(Runtime::Host, &[("disable-thp", "no")])?;
        let untax = Untax::new();
        let folder = fs::exists("/etc/tmpfiles.d").unwrap();
        untax.check(redis.pid().unwrap());
        let (id, _) = plan(&untax, "thp-mode", &[]);
        let receipt = apply(&untax, &id);
        assert!(text(THP).contains("[madvise]") && text(DROP_IN).contains("madvise"));

        fs::write(THP, "never").unwrap();
        let undone = untax.run(&["undo", &receipt]);
        assert!(undone.code == 1 && undone.stderr.contains("left alone"), "{}", undone.stderr);
        assert!(text(THP).contains("[never]"), "somebody else's word counts");
        let forced = untax.run(&["undo", &receipt, "--force"]);
        assert_eq!(forced.code, 0, "{}", forced.stderr);
        assert!(text(THP).contains("[always]") && !fs::exists(DROP_IN).unwrap());
        assert_eq!(fs::exists("/etc/tmpfiles.d").unwrap(), folder);
        Ok(())
    });
}

#[test]
fn an_edited_plan_and_a_changed_host_are_refused_before_anything_is_touched() {
    support::real(|| {
        let _thp = Thp::set("always")?;
        let redis = Redis::start(Runtime::Host, &[("disable-thp", "no")])?;
        let untax = Untax::new();
        untax.check(redis.pid().unwrap());
        let (id, mut made) = plan(&untax, "thp-mode", &[]);
        made["steps"][0]["to"] = "never".into();
        let edited = untax.path("edited.json");
        fs::write(&edited, made.to_string()).unwrap();
        let refused = untax.run(&["apply", edited.to_str().unwrap()]);
        assert!(refused.code == 2 && refused.stderr.contains("not as untax made it"));

        fs::write(THP, "never").unwrap();
        let refused = untax.run(&["apply", &id]);
        assert!(
            refused.code == 2 && refused.stderr.contains("changed since"),
            "{}",
            refused.stderr
        );
        assert!(text(THP).contains("[never]"));
        drop(redis);
        fs::write(THP, "always").unwrap();
        let refused = untax.run(&["apply", &id]);
        assert!(refused.code == 2 && refused.stderr.contains("not there"), "{}", refused.stderr);
        Ok(())
    });
}

#[test]
fn limits_on_dirty_pages_come_back_as_they_were() {
    support::real(|| {
        let read = || {
            let names = ["background_bytes", "background_ratio", "bytes", "ratio"];
            names.map(|name| text(&format!("/proc/sys/vm/dirty_{name}")))
        };
        let before = read();
        let target = Target::Dirty { what: "/proc/sys/vm/dirty_background".to_owned() };
        let tree = Tree::live();
        let step = Step {
            id: "dirty-background".to_owned(),
            remedy: "dirty-limits".to_owned(),
            summary: String::new(),
            databases: Vec::new(),
            from: target::read(&tree, &target).unwrap(),
            target,
            to: Some((128 << 20).to_string()),
            refresh: Vec::new(),
            effect: Effect::Now,
        };
        let header = Header {
            schema: untax_core::receipt::SCHEMA.to_owned(),
            receipt: "receipt".to_owned(),
            plan: "plan".to_owned(),
            begun_at: Timestamp::now(),
            temporary: false,
            steps: vec![step],
        };
        let folder = tempfile::tempdir().unwrap();
        let interrupted = AtomicBool::new(false);
        let made = executor::apply(&tree, folder.path(), header, &interrupted, |_| {}).unwrap();
        let mut receipt = made.unwrap();
        assert_eq!(read()[0].trim(), (128 << 20).to_string());
        assert!(executor::undo(&tree, &mut receipt, false).unwrap().is_whole());
        assert_eq!(read(), before);
        Ok(())
    });
}
