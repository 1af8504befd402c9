//! What was there when a check began and is gone when it ends, more threads than anybody should
//! have, and kernels that refuse: a clear gap, never a crash or a number that cannot be.

#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test looks at the machine by other ways than the code that it tests"
)]

mod support;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use support::numbers::{gap, part, possible, sum, untraced};
use support::threads::{Threads, built};
use support::{Bystander, Ran, Untax, database, demand, one_of, rules, text, unmeasured};
use untax_scenes::{Disk, Group, Pgbench, Postgres, Redis, RedisBenchmark, Runtime, Setup, Thp};

/// A load that outlasts every check.
const LOAD: RedisBenchmark = RedisBenchmark {
    clients: 8,
    requests: 1_000_000_000,
    keys: 1000,
    value_bytes: 100,
    writes: false,
};

/// Longer than anything here takes: ends what hangs, measures nothing.
const HUNG: Duration = Duration::from_secs(120);

/// A check of one process, or of all databases.
fn check(untax: &Untax, pid: Option<u32>, meanwhile: impl FnOnce()) -> (Value, Ran) {
    let pid = pid.map(|pid| pid.to_string());
    let which = pid.as_ref().map_or(vec!["--all"], |pid| vec!["--pid", pid]);
    let words = [&["check", "--window", "4s", "--no-calibration", "--json"][..], &which].concat();
    let ran = untax.run_watching(&words, meanwhile);
    assert!(!ran.stderr.contains("panicked"), "{}", ran.stderr);
    possible(&ran.json());
    (ran.json(), ran)
}

fn kill(pid: u32) {
    kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), Signal::KILL).unwrap();
}

fn until(what: &str, is: impl Fn() -> bool) {
    let since = Instant::now();
    while !is() {
        assert!(since.elapsed() < HUNG, "no {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Why nothing is measured of a database that was there at the start.
fn ended(id: &str) -> String {
    format!("{id} ended or was restarted during the check")
}

#[test]
fn a_database_that_is_killed_is_said_to_be_gone() {
    support::real(|| {
        let redis = Redis::start(Runtime::Host, &[])?;
        let pid = redis.pid().unwrap();
        let _load = redis.benchmark(&LOAD)?;
        let untax = Untax::new();
        let (check, ran) = check(&untax, Some(pid), || kill(pid));
        assert_eq!(check["databases"].as_array().map(Vec::len), Some(0), "{check:#}");
        let why = ended(&format!("redis:{pid}"));
        assert!(unmeasured(&check).contains(&("all", &why)), "{}", check["unmeasured"]);
        assert!(ran.stderr.contains("gone during the check"), "{}", ran.stderr);
        // The same on the screen, from what was saved.
        let shown = untax.run(&["check", "--replay", check["run"].as_str().unwrap()]);
        assert_eq!(shown.code, ran.code, "{}", shown.stderr);
        let shown = shown.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(shown.contains(&why), "{shown}");
        let again = untax.run(&["check", "--pid", &pid.to_string(), "--json"]);
        assert_eq!(again.code, 2, "{}", again.stderr);
        Ok(())
    });
}

#[test]
fn a_database_that_is_restarted_is_another_one_that_was_not_watched() {
    support::real(|| {
        let mut postgres = Postgres::start(Runtime::Host, &[("shared_buffers", "64MB")])?;
        postgres.pgbench_fill(1, 100)?;
        let port = postgres.port();
        let (old, check) = one_of(3, || {
            let old = postgres.pid().unwrap();
            let _load = postgres.pgbench(&Pgbench { seconds: 60, ..Pgbench::default() }).unwrap();
            let mut took = Duration::ZERO;
            let (check, _) = check(&Untax::new(), None, || {
                let since = Instant::now();
                postgres.restart_keeping_configuration().unwrap();
                took = since.elapsed();
            });
            demand(took < Duration::from_secs(3), || format!("the restart took {took:?}"))?;
            Ok((old, check))
        });
        let new = postgres.pid().unwrap();
        assert!(old != new && port == postgres.port());
        let why = ended(&format!("postgres:{old}"));
        assert!(unmeasured(&check).contains(&("all", &why)), "{}", check["unmeasured"]);
        let found = database(&check, new);
        untraced(found, "was started during the window");
        for name in ["on_cpu_s", "runnable_s"] {
            assert!(gap(&found["time"][name]).contains("was started during the window"));
        }
        Ok(())
    });
}

/// Seconds that the kernel counted on a CPU for a process and its children, for threads and children
/// that ended too.
fn counted_s(main: u32) -> f64 {
    let ticks = |pid: &str, fields: usize| -> u64 {
        let stat = text(&format!("/proc/{pid}/stat"));
        let Some((_, stat)) = stat.rsplit_once(')') else { return 0 };
        let times = stat.split_ascii_whitespace().skip(11).take(fields);
        times.map(|ticks| ticks.parse::<u64>().unwrap()).sum()
    };
    let children = text(&format!("/proc/{main}/task/{main}/children"));
    let of_children = children.split_ascii_whitespace().map(|child| ticks(child, 2)).sum::<u64>();
    let ticks = ticks(&main.to_string(), 4) + of_children;
    ticks as f64 / rustix::param::clock_ticks_per_second() as f64
}

#[test]
fn a_database_that_starts_over_after_a_crash_adds_up() {
    support::real(|| {
        // What is not logged would be empty afterwards.
        let settings = &[("shared_buffers", "64MB")];
        let setup = Setup { durable: true, settings, ..Setup::default() };
        let postgres = Postgres::start_as(&setup)?;
        postgres.pgbench_fill(1, 100)?;
        let reads = Pgbench { clients: 4, seconds: 60, ..Pgbench::default() };
        let load = postgres.pgbench(&reads)?;
        let pid = postgres.pid().unwrap();
        let (mut after, before_s) = (None, counted_s(pid));
        let (check, _) = check(&Untax::new(), Some(pid), || {
            let server = "select pid from pg_stat_activity where application_name = 'pgbench'";
            let server = postgres.sql(&format!("{server} limit 1")).unwrap();
            // All others end for it, and the main process goes on with new ones.
            kill(server.trim().parse().unwrap());
            drop(load);
            until("recovery", || postgres.sql("select 1").is_ok());
            after = postgres.pgbench(&reads).ok();
        });
        let counted_s = counted_s(pid) - before_s;
        assert!(after.is_some() && postgres.pid() == Some(pid));
        let time = &database(&check, pid)["time"];
        let on_cpu_s = time["on_cpu_s"].as_f64().unwrap();
        println!("{counted_s} s counted: {time:#}");
        // The load ran before the window began too, and was not there while it recovered.
        let near = on_cpu_s > 0.2 * counted_s && on_cpu_s < 1.1 * counted_s + 0.2;
        assert!(near, "{counted_s} s counted: {time:#}");
        Ok(())
    });
}

/// Moves all processes from one group to another, in every hierarchy.
fn moved(from: &Group, to: &Group) {
    for name in ["cpu", "cpuacct", "memory", "blkio", "unified"] {
        let (Ok((_, from)), Ok((_, to))) = (from.directory(name, name), to.directory(name, name))
        else {
            continue;
        };
        for pid in text(&format!("{from}/cgroup.procs")).split_whitespace() {
            fs::write(format!("{to}/cgroup.procs"), pid).unwrap();
        }
    }
}

#[test]
fn a_control_group_that_is_removed_throttles_nobody() {
    support::real(|| {
        // So little that every slice sees the group throttled, however busy the machine is.
        for cpus in [None, Some(0.05)] {
            let (first, second) = (Group::for_server()?, Group::for_server()?);
            let limit = cpus.map(|cpus| first.limit_cpus(cpus)).transpose()?;
            let setup = Setup { group: Some(&first), ..Setup::default() };
            let redis = Redis::start_as(&setup)?;
            let _load = redis.benchmark(&LOAD)?;
            let pid = redis.pid().unwrap();
            let directory = first.directory("cpu", "cpu")?.1.to_owned();
            let (check, _) = check(&Untax::new(), Some(pid), || {
                std::thread::sleep(Duration::from_secs(2));
                moved(&first, &second);
                drop((limit, first));
            });
            assert!(!Path::new(&directory).exists(), "{directory} is there");
            let found = database(&check, pid);
            println!("{cpus:?}: {:#}", found["time"]);
            assert_eq!(part(found, "throttled_s") > 0.0, cpus.is_some(), "{:#}", found["time"]);
            let rules = rules(found);
            assert!(!rules.contains(&"cpu-throttled"), "of a limit that is no more: {rules:?}");
            assert!(part(found, "on_cpu_s") > 0.0, "{:#}", found["time"]);
            drop((redis, second));
        }
        Ok(())
    });
}

/// What a check itself may take of a CPU, seconds: without the calibration it is a third of that.
const OWN_S: f64 = 1.5;

fn cheap(check: &Value) {
    let own = &check["self"];
    assert!(own["cpu_s"].as_f64().unwrap() < OWN_S, "{own}");
}

#[test]
fn every_second_of_five_thousand_threads_is_accounted_for() {
    const THREADS: usize = 5000;
    support::real(|| {
        let untax = Untax::new();
        let threads = Threads::start(&untax, ["crowd", &THREADS.to_string(), "10"]);
        until("threads", || threads.says() == "ready");
        let pid = threads.program.id();
        let (check, _) = check(&untax, Some(pid), || {});
        assert_eq!(threads.alive(), THREADS + 1);
        let found = database(&check, pid);
        let expected = (THREADS + 1) as f64 * check["window_s"].as_f64().unwrap();
        let off = sum(found) / expected - 1.0;
        assert!(off.abs() < 0.02, "{off:+.3}: {:#}", found["time"]);
        let active_s = part(found, "active_s");
        assert!(part(found, "on_cpu_s") > 0.0 && active_s < 0.01 * expected, "{:#}", found["time"]);
        println!("{off:+.4}: {:#}", found["time"]);
        cheap(&check);
        Ok(())
    });
}

#[test]
fn threads_that_there_is_no_room_for_are_no_small_number() {
    support::real(|| {
        let untax = Untax::new();
        let door = untax.path("door");
        assert!(Command::new("mkfifo").arg(&door).status().unwrap().success());
        let threads = Threads::start_reading(&untax, ["later", "5000", "10"], &door);
        let pid = threads.program.id();
        let (check, _) = check(&untax, Some(pid), || {
            // By then the few that are there are being watched.
            std::thread::sleep(Duration::from_secs(1));
            fs::write(&door, "now\n").unwrap();
        });
        until("threads", || threads.says() == "ready");
        let found = database(&check, pid);
        println!("{:#}", found["time"]);
        untraced(found, "no room for");
        Ok(())
    });
}

/// Switches of all threads of a process so far, as the kernel counts them.
fn switches(pid: u32) -> f64 {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    let of = |path: PathBuf| {
        let status = text(path.join("status").to_str().unwrap());
        let counts = status.lines().filter_map(|line| line.split_once("ctxt_switches:"));
        counts.map(|(_, count)| count.trim().parse::<f64>().unwrap()).sum::<f64>()
    };
    threads.map(|thread| of(thread.path())).sum()
}

#[test]
#[ignore = "long: three windows beside threads that take all CPUs"]
fn a_hundred_thousand_switches_a_second_cost_a_fiftieth_of_a_cpu_at_most() {
    support::real(|| {
        let untax = Untax::new();
        let threads = Threads::start(&untax, ["pairs", "2", "0"]);
        let pid = threads.program.id();
        until("threads", || threads.says() == "ready");
        let (since, before) = (Instant::now(), switches(pid));
        let words = ["watch", "--json", "--count", "3", "--no-calibration", "--pid"];
        let ran = untax.run(&[&words[..], &[&pid.to_string()]].concat());
        let a_second = (switches(pid) - before) / since.elapsed().as_secs_f64();
        assert!(a_second > 100_000.0, "{a_second:.0} switches a second: nothing is tested");
        let checks = ran.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let shares = checks.map(|check| {
            let own = |name: &str| check["self"][name].as_f64().unwrap();
            (own("cpu_s") + own("tracing_s")) / check["window_s"].as_f64().unwrap()
        });
        let shares: Vec<f64> = shares.collect();
        println!("{a_second:.0} switches a second; of a CPU {shares:.4?}");
        assert_eq!(shares.len(), 3);
        // The first loads what the others find there, and takes twice as long for it as a build that
        // is optimised.
        assert!(shares[1..].iter().all(|share| *share < 0.02), "{shares:?}");
        Ok(())
    });
}

/// Threads of a storm that are started each second; it asks for more, as others use the machine too.
const STORM: f64 = 10_000.0;
const ASKED: &str = "16000";

/// A storm of threads that live for 20 us: what they took is what the kernel counts, or a gap.
#[test]
fn a_storm_of_threads_is_measured_or_said_not_to_be() {
    support::real(|| {
        let untax = Untax::new();
        let threads = Threads::start(&untax, ["storm", "64", ASKED]);
        let pid = threads.program.id();
        until("storm", || threads.count() > 1000.0);
        one_of(5, || {
            let (since, before, before_s) = (Instant::now(), threads.count(), counted_s(pid));
            let stolen_s = support::stolen_s();
            let (check, _) = check(&untax, Some(pid), || {});
            let seconds = since.elapsed().as_secs_f64();
            let a_second = (threads.count() - before) / seconds;
            let counted = (counted_s(pid) - before_s) / seconds;
            let stolen = (support::stolen_s() - stolen_s) / seconds;
            println!("{a_second:.0} a second, {counted:.3} CPUs counted, {stolen:.3} stolen");
            cheap(&check);
            let (found, window_s) = (database(&check, pid), check["window_s"].as_f64().unwrap());
            demand(a_second > STORM, || format!("{a_second:.0} threads a second are no storm"))?;
            if found["time"]["active_s"].is_object() {
                assert!(!gap(&found["time"]["active_s"]).is_empty());
                return Ok(());
            }
            // Never more at once than there may be, and the one that starts them.
            assert!(sum(found) <= 1.02 * 65.0 * window_s, "{:#}", found["time"]);
            // What the hypervisor takes is on CPU by the clock on the wall, but not in what the kernel counts.
            let told = part(found, "on_cpu_s") / window_s;
            let ratio = told / counted;
            println!("{told:.3} CPUs told, {ratio:.3} of what was counted");
            demand(ratio > 0.8 && told < 1.2 * counted + stolen, || {
                format!("{told} told, {counted} counted")
            })
        });
        Ok(())
    });
}

/// Words before a command that take from root what BPF needs.
const REFUSED: [&str; 3] = ["setpriv", "--bounding-set=-bpf,-perfmon,-sys_admin", "--"];

#[test]
fn root_who_may_not_trace_is_told_so_and_what_needs_no_tracing() {
    support::real(|| {
        let _thp = Thp::set("always")?;
        let redis = Redis::start(Runtime::Host, &[("disable-thp", "no")])?;
        let _load = redis.benchmark(&LOAD)?;
        let pid = redis.pid().unwrap();
        let untax = Untax::confined(&REFUSED);
        let (check, ran) = check(&untax, Some(pid), || {});
        let found = database(&check, pid);
        untraced(found, "CAP_BPF and CAP_PERFMON");
        assert!(part(found, "on_cpu_s") > 0.0, "schedstat tells: {:#}", found["time"]);
        assert!(gap(&check["self"]["tracing_s"]).contains("CAP_BPF"), "{}", check["self"]);
        assert!(gap(&check["io"]["flows"]).contains("CAP_BPF"), "{}", check["io"]);
        let gaps = unmeasured(found);
        let of = |rule| gaps.iter().find(|(id, _)| *id == rule).map(|(_, why)| *why);
        for rule in ["disk-slow", "lock-contended", "cpu-contended", "reclaim-stall"] {
            assert!(of(rule).is_some_and(|why| why.contains("CAP_BPF")), "{rule}: {gaps:#?}");
        }
        assert!(rules(found).contains(&"thp-mode"), "{:?}", rules(found));
        let matters = found["findings"].as_array().unwrap().iter();
        let matters = matters.filter(|finding| finding["severity"] != "info").count();
        assert_eq!(ran.code, i32::from(matters > 0), "{:#}", found["findings"]);
        Ok(())
    });
}

/// 20 threads and the one that starts them; and threads that begin to live so often that it is looked at
/// what they send and receive.
const CROWD: [&str; 3] = ["crowd", "20", "5"];
const OFTEN: [&str; 3] = ["storm", "4", "200"];

/// A check on a kernel that lacks some tracepoints, and what was saved of its threads' activity.
fn check_lacking(names: &str, words: [&str; 3]) -> (Value, u32, Value) {
    let untax = Untax::new();
    let library = built(&untax, include_str!("support/older.c"), &["-shared", "-fPIC"]);
    let kernel = [format!("LD_PRELOAD={}", library.display()), format!("LACKS={names}")];
    let untax = Untax::confined(&["env", &kernel[0], &kernel[1]]);
    let threads = Threads::start(&untax, words);
    until("threads", || !threads.says().is_empty());
    let pid = threads.program.id();
    let (check, _) = check(&untax, Some(pid), || {});
    let saved = untax.path(&format!("state/runs/{}.json", check["run"].as_str().unwrap()));
    let saved: Value = serde_json::from_str(&text(saved.to_str().unwrap())).unwrap();
    (check, pid, saved["window"]["activity"][0].clone())
}

/// All time of the crowd is accounted for.
fn adds_up(check: &Value, found: &Value) {
    let off = sum(found) / (21.0 * check["window_s"].as_f64().unwrap()) - 1.0;
    assert!(off.abs() < 0.02, "{off:+.3}: {:#}", found["time"]);
}

#[test]
#[ignore = "long: nine checks"]
fn tracepoints_that_an_older_kernel_lacks_are_done_without_where_that_is_possible() {
    support::real(|| {
        let reclaim = ["direct_reclaim", "memcg_reclaim"]
            .map(|kind| ["begin", "end"].map(|end| format!("mm_vmscan_{kind}_{end}")).join(","));
        let optional = [&reclaim[..], &["balance_dirty_pages".to_owned()]].concat().join(",");
        let optional = format!("{optional},page_fault_user,tcp_retransmit_skb");
        for (names, lacks) in [("none", false), (&optional, true)] {
            let (check, pid, activity) = check_lacking(names, CROWD);
            let found = database(&check, pid);
            adds_up(&check, found);
            assert!(part(found, "on_cpu_s") > 0.0, "{:#}", found["time"]);
            assert_eq!(activity["retransmits"].is_null(), lacks, "{activity:#}");
        }
        let messages = ["none", "sock_recv_length", "sock_send_length,sock_recv_length"];
        for (names, seen) in messages.into_iter().zip([true, false, false]) {
            let (check, pid, activity) = check_lacking(names, OFTEN);
            let found = database(&check, pid);
            assert!(part(found, "on_cpu_s") > 0.0, "{:#}", found["time"]);
            assert_eq!(activity["requests_seen"], seen, "{names}: {activity:#}");
        }
        for needed in ["sched_switch", "sched_process_fork", "sched_process_exit"] {
            let (check, pid, _) = check_lacking(needed, CROWD);
            untraced(database(&check, pid), needed);
        }
        let (check, pid, _) = check_lacking("block_rq_issue", CROWD);
        let found = database(&check, pid);
        assert!(gap(&check["io"]["flows"]).contains("block_rq_issue"), "{}", check["io"]);
        let gaps = unmeasured(found);
        assert!(gaps.iter().any(|(_, why)| why.contains("block_rq_issue")), "{gaps:#?}");
        // What threads do is another matter.
        adds_up(&check, found);
        Ok(())
    });
}

/// Writes to the disk at `$1` for as long as `on` is there.
const WRITE: &str = r#"
while [ -e "$1/on" ]; do
    dd if=/dev/zero of="$1/file" bs=64k count=16 oflag=direct conv=fsync,notrunc status=none
done
exec sleep 600
"#;

/// Adds or removes loop device `$ARGV[1]`: `LOOP_CTL_ADD` is 0x4C80, `LOOP_CTL_REMOVE` 0x4C81.
const LOOP: &str = r#"
open my $control, "+<", "/dev/loop-control" or die "loop-control: $!";
defined ioctl $control, ($ARGV[0] eq "add" ? 0x4C80 : 0x4C81), 0 + $ARGV[1] or die "ioctl: $!";
"#;

fn loop_device(what: &str, number: &str) -> bool {
    Command::new("perl").args(["-e", LOOP, what, number]).status().unwrap().success()
}

/// A loop device that is made again when dropped, as it was there before.
struct Removed<'a>(&'a str);

impl Drop for Removed<'_> {
    fn drop(&mut self) {
        // Somebody else may have made it again.
        loop_device("add", self.0);
    }
}

#[test]
fn a_device_that_vanishes_leaves_what_was_seen_of_it() {
    support::real(|| {
        let disk = Disk::make(64)?;
        let name = disk.device().trim_start_matches("/dev/").to_owned();
        let number = name.trim_start_matches("loop").to_owned();
        let on = disk.path().join("on");
        fs::write(&on, "").unwrap();
        let mut writer = Command::new("sh");
        writer.args(["-c", WRITE, "write"]).arg(disk.path());
        let writer = Bystander::start(writer);
        let mut removed = None;
        let untax = Untax::new();
        let (check, _) = check(&untax, Some(writer.id()), || {
            std::thread::sleep(Duration::from_secs(1));
            fs::remove_file(&on).unwrap();
            drop(disk);
            until("end of the device", || loop_device("remove", &number));
            removed = Some(Removed(&number));
        });
        assert!(!Path::new(&format!("/sys/block/{name}")).exists(), "{name} is there");
        let flows = &check["io"]["flows"];
        if flows.is_object() {
            assert!(!gap(flows).is_empty());
            return Ok(());
        }
        let flows = flows.as_array().unwrap();
        let of_it = flows.iter().filter(|flow| flow["device"] == *name);
        let written = of_it.filter(|flow| flow["direction"] == "write").collect::<Vec<_>>();
        println!("{name} {number}: {flows:?}; {:?}", check["io"]["devices"]);
        let bytes: f64 = written.iter().map(|flow| flow["bytes"].as_f64().unwrap()).sum();
        assert!(bytes >= f64::from(1 << 20), "{bytes} bytes: {flows:#?}");
        let devices = check["io"]["devices"].as_array().unwrap();
        let device = devices.iter().find(|device| device["name"] == *name).unwrap();
        assert!(gap(&device["counted"]).contains("was removed during the window"), "{device:#}");
        Ok(())
    });
}
