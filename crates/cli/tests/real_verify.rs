//! Verdicts on plans, from trials on real servers: proven, disproven, and neither.

#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test looks at the machine by other ways than the code that it tests"
)]

mod support;

use serde_json::Value;
use std::path::Path;
use support::limited::Limited;
use support::restarts::Restarts;
use support::{Untax, apply, database, plan, rules, settings_of_host, settle, text};
use untax_core::Bytes;
use untax_core::plan::Target;
use untax_remedies::sealed;
use untax_scenes::{
    DirtyLimits, Disk, Group, HugePages, Limit, MariaDb, PgBouncer, Pgbench, Postgres, Redis,
    Runtime, SceneError, Setup,
};

/// The factor that was measured, and what is concluded from it.
fn told(verified: &Value) -> (f64, String) {
    let verdict = &verified["verdict"];
    println!("{verdict:#} power {:#} predicted {:#}", verified["power"], verified["predicted"]);
    (verdict["measured"]["mid"].as_f64().unwrap(), verdict["word"].as_str().unwrap().to_owned())
}

/// PostgreSQL's own benchmark on a scratch server, with words for what it does.
fn pgbench(postgres: &Postgres, port: u16, what: &str) -> String {
    let (socket, user) = (postgres.socket_directory(), postgres.user());
    format!("pgbench -n {what} -h {socket} -p {port} -U {user} postgres")
}

/// A load that goes on until this is dropped.
fn load(command: &str) -> support::Bystander {
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", &format!("exec env {command}")]);
    support::Bystander::start(shell)
}

#[test]
#[ignore = "long: a verification that restarts a full server twelve times"]
fn huge_pages_are_verified_where_they_are_applied_and_everything_comes_back() {
    support::real(|| {
        // Nothing of another program's is to change under this one.
        let _pool = HugePages::reserve(0)?;
        let mut postgres = Postgres::start(Runtime::Host, &[("shared_buffers", "1GB")])?;
        postgres.sql("CREATE EXTENSION pg_prewarm")?;
        postgres.pgbench_fill(55, 100)?;
        let configuration = format!("{}/postgresql.conf", postgres.data_directory());
        let before = settings_of_host(&[&configuration]);
        let untax = Untax::new();
        let load = Pgbench { clients: 64, seconds: 600, ..Pgbench::default() };
        let running = postgres.pgbench(&load)?;
        settle(postgres.pid().unwrap());
        let check = untax.check(postgres.pid().unwrap());
        drop(running);
        assert!(rules(database(&check, postgres.pid().unwrap())).contains(&"small-pages"));

        let (id, _) = plan(&untax, "small-pages", &["--configure"]);
        let first = apply(&untax, &id);
        assert!(text(&configuration).contains("huge_pages = on"));
        let workload = pgbench(&postgres, postgres.port(), "-S -M prepared -c 64 -j 2 -T 3");
        let restart = |postgres: &mut Postgres| -> Result<(), SceneError> {
            postgres.restart_keeping_configuration()?;
            let warm = "SELECT pg_prewarm('pgbench_accounts'), pg_prewarm('pgbench_accounts_pkey')";
            postgres.sql(warm).map(drop)
        };
        restart(&mut postgres)?;
        let restarts = Restarts::new();
        let command = restarts.command();
        let page = untax.path("verdict.html");
        let words = ["verify", &id, "--workload", &workload, "--restart", &command, "--json"];
        let more = ["--warm-up", "0", "--pairs", "6", "--html", page.to_str().unwrap()];
        // How much it is worth depends on the machine; docs/results says what it was here. On a busy one
        // the gain may be lost among what others take.
        let verified = support::one_of(3, || {
            let verify = || untax.run(&[&words[..], &more].concat()).json();
            let verified = restarts.serve(|| restart(&mut postgres), verify);
            let (factor, word) = told(&verified);
            assert_ne!(word, "disproven", "{factor}");
            support::demand(factor > 1.0, || format!("{factor} {word}")).map(|()| verified)
        });
        let page = text(page.to_str().unwrap());
        assert_eq!(page.matches("<circle").count(), 12, "every trial is drawn");

        // It was applied before, and so it is afterwards, under another receipt.
        let receipt = verified["receipt"].as_str().unwrap();
        assert!(receipt != first && text(&configuration).contains("huge_pages = on"));
        let again = untax.check(postgres.pid().unwrap());
        let found = database(&again, postgres.pid().unwrap());
        assert_eq!(found["memory"]["page_size_bytes"], 2 << 20);
        let undone = untax.run(&["undo", receipt]);
        assert_eq!(undone.code, 0, "{}", undone.stderr);
        postgres.stop();
        assert_eq!(settings_of_host(&[&configuration]), before);
        Ok(())
    });
}

/// Sorts that do not fit into memory, on a slow disk: what they write is removed again before it
/// needs to be there, if only it may wait. Limits for a whole machine that were meant for copies of
/// large files hold each of them back.
#[test]
#[ignore = "long: a verification of six pairs on a slow disk"]
fn sorts_that_spill_are_held_back_by_low_limits_of_dirty_pages_until_these_are_raised() {
    support::real(|| {
        let before = settings_of_host(&[]);
        let limits = DirtyLimits::set(Bytes::from_mib(16), Bytes::from_mib(32))?;
        let low = settings_of_host(&[]);
        let group = Group::for_server()?;
        let disk = Disk::make(2048)?;
        let setup = Setup { group: Some(&group), disk: Some(disk.path()), ..Setup::default() };
        let postgres = Postgres::start_as(&setup)?;
        let _slow = disk.limit(&group, Limit::WriteBytes, 20 << 20)?;
        let pid = postgres.pid().unwrap();
        let untax = Untax::new();
        let sort = untax.path("sort.sql");
        let spilling = "SET work_mem = '1MB';\nSELECT count(*) FROM (SELECT random() r FROM \
                        generate_series(1, 1000000) ORDER BY r OFFSET 1) s;\n";
        std::fs::write(&sort, spilling).unwrap();
        let sorts = |what: &str| {
            let what = format!("-c 1 {what} -f {}", sort.display());
            pgbench(&postgres, postgres.port(), &what)
        };
        let running = load(&sorts("-T 600"));
        settle(pid);
        // Beside disk-slow: a file that is removed waits for what is being written of it. On a busy
        // machine the sorts come too slowly now and then.
        let place = |check: &Value| {
            let found = rules(database(check, pid));
            println!("found: {}", found.join(" "));
            found.iter().position(|rule| *rule == "dirty-burst")
        };
        let check = (0..3).map(|_| untax.check(pid)).find(|check| place(check).is_some());
        drop(running);
        let check = check.expect("dirty-burst, in one of three checks");
        let (found, place) = (database(&check, pid), place(&check).unwrap());
        let fix = found["findings"][place]["fix"].as_str().unwrap();
        assert!(fix.starts_with("vm.dirty_bytes up to 1 GiB"), "{fix}");

        let (id, made) = plan(&untax, "dirty-burst", &[]);
        let steps: Vec<&str> =
            made["steps"].as_array().unwrap().iter().map(|s| s["id"].as_str().unwrap()).collect();
        assert_eq!(steps, ["dirty-background", "dirty", "dirty-boot"]);
        let words = ["verify", &id, "--workload", &sorts("-T 3"), "--warm-up", "0", "--pairs", "6"];
        support::one_of(3, || {
            let verified = untax.run(&[&words[..], &["--json"]].concat()).json();
            let (factor, word) = told(&verified);
            assert_ne!(word, "disproven", "{factor}");
            support::demand(factor > 1.2 && word == "proven", || format!("{factor} {word}"))
        });
        assert_eq!(settings_of_host(&[]), low, "verify leaves what it found");

        let receipt = apply(&untax, &id);
        assert_ne!(settings_of_host(&[]), low);
        let undone = untax.run(&["undo", &receipt]);
        assert_eq!(undone.code, 0, "{}", undone.stderr);
        assert_eq!(settings_of_host(&[]), low);
        drop(limits);
        assert_eq!(settings_of_host(&[]), before);
        Ok(())
    });
}

/// Connections of pgbench, or of a pooler for it.
fn backends(postgres: &Postgres) -> Result<usize, SceneError> {
    let whose = "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'pgbench%'";
    Ok(postgres.sql(whose)?.trim().parse().unwrap())
}

#[test]
#[ignore = "long: verifications of six pairs with 300 clients"]
fn three_hundred_connections_come_down_to_a_pool_of_a_real_pgbouncer() {
    support::real(|| {
        let postgres = Postgres::start(Runtime::Host, &[("shared_buffers", "256MB")])?;
        postgres.pgbench_fill(10, 100)?;
        let pid = postgres.pid().unwrap();
        let untax = Untax::new();
        // Requests that keep the server busy, however slow its clients are.
        let busy = untax.path("busy.sql");
        std::fs::write(&busy, "SELECT count(*) FROM generate_series(1, 20000);\n").unwrap();
        let busy = format!("-c 300 -j 2 -T 600 -f {}", busy.display());
        let running = load(&pgbench(&postgres, postgres.port(), &busy));
        settle(pid);
        let direct = untax.check(pid);
        drop(running);
        let found = database(&direct, pid);
        assert!(rules(found).contains(&"too-many-connections"), "{found:#}");

        let folder = untax.path("fix");
        let folder = folder.to_str().unwrap();
        let (id, made) = plan(&untax, "too-many-connections", &["-o", folder]);
        let file = made["tasks"][0]["file"][0].as_str().unwrap();
        let socket = postgres.socket_directory();
        let socket = Path::new(&socket).join(".s.PGSQL.6432");
        let file = Path::new(folder).join(file);
        let pooler = PgBouncer::start(&file, postgres.user(), "secret", &socket)?;
        // It says so of every line that it does not know or heed.
        let said = pooler.output();
        assert!(!said.contains("ERROR") && !said.contains("unknown"), "{said}");

        // Clients that stand in each other's way: for reads alone, on a machine where the pooler
        // has no CPU of its own, it only costs.
        let script = untax.path("hot.sql");
        let update = "UPDATE pgbench_branches SET bbalance = bbalance + 1 WHERE bid = 1;\n";
        std::fs::write(&script, update).unwrap();
        // Connecting, which costs a pooler's client a password, is within the time.
        let what = format!("-c 100 -j 2 -T 5 -f {}", script.display());
        let without = pgbench(&postgres, postgres.port(), &what);
        let with = format!("PGPASSWORD=secret {}", pgbench(&postgres, 6432, &what));
        let words = ["verify", &id, "--workload", &without, "--workload-applied", &with];
        let more = ["--warm-up", "0", "--pairs", "6", "--json"];
        support::one_of(3, || {
            let verified = untax.run(&[&words[..], &more].concat()).json();
            let (factor, word) = told(&verified);
            assert_ne!(word, "disproven", "{factor}");
            support::demand(factor > 1.0, || format!("{factor} {word}"))
        });

        let running = load(&format!("PGPASSWORD=secret {}", pgbench(&postgres, 6432, &busy)));
        // It begins when all of its clients have given their password.
        for _ in 0..300 {
            if backends(&postgres)? > 0 {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(200));
        }
        let through = untax.check(pid);
        let backends = backends(&postgres)?;
        drop(running);
        let cpus = std::thread::available_parallelism().unwrap().get();
        assert!((1..=(cpus * 3).max(4)).contains(&backends), "{backends}");
        let found = rules(database(&through, pid));
        assert!(!found.contains(&"too-many-connections"), "{found:?}");
        let runs = [&direct, &through].map(|check| check["run"].as_str().unwrap());
        let compared = untax.run(&["compare", runs[0], runs[1], "--json"]).json();
        let causes = compared["databases"][0]["causes"].as_array().unwrap();
        let cause = causes.iter().find(|cause| cause["rule"] == "too-many-connections").unwrap();
        assert_eq!(cause["change"], "gone");
        Ok(())
    });
}

/// A plan that lowers a limit instead of raising it: somebody was wrong.
fn wrong(made: &Value) -> untax_core::Plan {
    let mut plan: untax_core::Plan = serde_json::from_value(made.clone()).unwrap();
    let step = &mut plan.steps[0];
    let from = step.from.clone().unwrap();
    let mut words: Vec<String> = from.split(' ').map(str::to_owned).collect();
    words[0] = (words[0].parse::<u64>().unwrap() / 3).to_string();
    step.to = Some(words.join(" "));
    sealed(plan)
}

#[test]
#[ignore = "long: two verifications of up to ten pairs"]
fn a_plan_that_does_harm_is_disproven_and_offered_for_undo() {
    support::real(|| {
        let server = Limited::start(0.3)?;
        let before = server.limit();
        let untax = Untax::new();
        let (_, made) = server.planned(&untax)?;
        let file = untax.path("wrong.json");
        std::fs::write(&file, serde_json::to_string(&wrong(&made)).unwrap()).unwrap();
        let id = file.to_str().unwrap();
        let workload = server.workload(10_000);
        let words = ["verify", id, "--workload", &workload, "--pairs", "10"];
        let verified = untax.run(&[&words[..], &["--json"]].concat());
        let (factor, word) = told(&verified.json());
        assert!(word == "disproven" && verified.code == 1, "{factor} {word}");
        assert_eq!(server.limit(), before, "it is not left applied");

        let applied = apply(&untax, id);
        let harmed = server.limit();
        assert_ne!(harmed, before);
        let verified = untax.run(&words);
        assert!(verified.stdout.contains("Disproven"), "{}", verified.stdout);
        assert_eq!(server.limit(), harmed, "it stays as it was found, until its user decides");
        let offered = verified.stdout.split("untax undo ").nth(1).unwrap();
        let offered = offered.split(':').next().unwrap();
        assert_ne!(offered, applied);
        assert_eq!(untax.run(&["undo", offered]).code, 0);
        assert_eq!(server.limit(), before);
        Ok(())
    });
}

#[test]
fn what_somebody_changes_meanwhile_is_left_alone_and_nothing_is_applied_again() {
    support::real(|| {
        let server = Limited::start(0.3)?;
        let untax = Untax::new();
        let (id, made) = server.planned(&untax)?;
        let theirs = wrong(&made);
        let step = &theirs.steps[0];
        let Target::Value { file } = &step.target else { panic!("{step:?}") };
        let (from, theirs) = (step.from.as_deref().unwrap(), step.to.as_deref().unwrap());
        let meddle =
            format!("[ \"$(cat {file})\" = '{from}' ] || echo '{theirs}' >{file}; echo 100");
        let words = ["verify", &id, "--workload", &meddle, "--warm-up", "0", "--pairs", "6"];
        let verified = untax.run(&words);
        let stderr = &verified.stderr;
        assert!(verified.code == 2 && stderr.contains("could not be undone wholly"), "{stderr}");
        assert_eq!(text(file).trim(), theirs);
        let receipts = untax.run(&["undo", "--json"]).json();
        assert_eq!(receipts.as_array().unwrap().len(), 1, "{receipts}");
        let receipt = receipts[0]["receipt"].as_str().unwrap();
        assert_eq!(untax.run(&["undo", receipt, "--force"]).code, 0);
        assert_eq!(text(file).trim(), from);
        Ok(())
    });
}

#[test]
fn pgbench_by_name_makes_its_own_data_and_drops_them() {
    support::real(|| {
        let postgres = Postgres::start(Runtime::Host, &[("shared_buffers", "64MB")])?;
        let untax = Untax::new();
        let databases = || postgres.sql("SELECT datname FROM pg_database ORDER BY 1");
        let before = databases()?;
        verified_by_name(&untax, postgres.pid().unwrap(), "pgbench", "transactions per second");
        assert_eq!(databases()?, before);
        Ok(())
    });
}

#[test]
#[ignore = "long: sysbench fills a MariaDB, and a verification"]
fn sysbench_by_name_makes_its_own_data_and_drops_them() {
    support::real(|| {
        let mariadb = MariaDb::start(Runtime::Host, &[])?;
        let untax = Untax::new();
        let before = mariadb.sql("SHOW DATABASES")?;
        verified_by_name(&untax, mariadb.pid().unwrap(), "sysbench", "transactions per second");
        assert_eq!(mariadb.sql("SHOW DATABASES")?, before);
        Ok(())
    });
}

#[test]
fn redis_benchmark_by_name_writes_nothing() {
    support::real(|| {
        let redis = Redis::start(Runtime::Host, &[])?;
        let untax = Untax::new();
        verified_by_name(&untax, redis.pid().unwrap(), "redis-benchmark", "requests per second");
        assert_eq!(redis.command(["dbsize"])?.trim(), "0");
        Ok(())
    });
}

/// One pair of trials of a workload, on a plan whose only step is a file of the test's own.
fn verified_by_name(untax: &Untax, pid: u32, workload: &str, measure: &str) {
    let plan = support::plan_of_a_file(untax, pid);
    let words = ["verify", &plan, "--workload", workload, "--trial", "1s"];
    let more = ["--clients", "4", "--warm-up", "0", "--pairs", "2", "--json"];
    let verified = untax.run(&[&words[..], &more].concat()).json();
    assert_eq!(verified["measure"], measure);
    assert_eq!(verified["trials"].as_array().unwrap().len(), 4);
    let (_, word) = told(&verified);
    assert_eq!(word, "inconclusive", "two pairs decide nothing");
    assert!(!untax.path(support::MARKER).exists());
}
