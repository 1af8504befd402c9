//! What `untax` says against other instruments in the very same seconds: retransmissions against
//! `nstat`, page faults against `perf stat`, waiting for a CPU against schedstat and `bpftrace`, waiting
//! for locks against PostgreSQL's own wait events. docs/results/agreement.md has what was seen.
//!
//! The other instrument counts all the while; windows of `untax watch` are compared with what it
//! counted between the same two moments.

#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test looks at the machine by other ways than the code that it tests, and prints \
              the figures of docs/results/agreement.md"
)]

mod support;

use jiff::Timestamp;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Seek, Write};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;
use support::{Bystander, Untax, database};
use untax_lab::{Cause, Dose, Injection};
use untax_scenes::{Network, POSTGRES, Pgbench, Postgres, Runtime, SceneError, Setup};

/// How far both may be apart.
const ALLOWED: f64 = 0.05;

/// Windows that are compared at most: the machine is shared, and a hypervisor may stop it between two
/// looks.
const WINDOWS: usize = 6;

/// So many are to agree: one may by chance.
const AGREEING: usize = 2;

/// Seconds since the epoch.
fn now_s() -> f64 {
    seconds(Timestamp::now())
}

fn seconds(at: Timestamp) -> f64 {
    at.as_nanosecond() as f64 / 1e9
}

/// An instrument that counts, read again and again.
struct Counter {
    /// When, and what it showed.
    series: Arc<Mutex<Vec<(f64, f64)>>>,
    done: Arc<AtomicBool>,
    reader: Option<JoinHandle<()>>,
}

impl Counter {
    /// Reads with `read` until it has nothing more.
    fn start(mut read: impl FnMut() -> Option<f64> + Send + 'static) -> Self {
        let (series, done) = (Arc::<Mutex<Vec<_>>>::default(), Arc::<AtomicBool>::default());
        let (to, until) = (Arc::clone(&series), Arc::clone(&done));
        let reader = std::thread::spawn(move || {
            while !until.load(Ordering::Relaxed) {
                let Some(count) = read() else { return };
                to.lock().unwrap().push((now_s(), count));
            }
        });
        Self { series, done, reader: Some(reader) }
    }

    /// Reads every 20 ms.
    fn polled(mut read: impl FnMut() -> f64 + Send + 'static) -> Self {
        Self::start(move || {
            std::thread::sleep(Duration::from_millis(20));
            Some(read())
        })
    }

    /// How much it grew between two moments, the latter of which it may not have reached yet.
    fn growth(&self, from: f64, to: f64) -> f64 {
        loop {
            let series = self.series.lock().unwrap().clone();
            if series.last().is_some_and(|(at, _)| *at > to) {
                return at(&series, to) - at(&series, from);
            }
            assert!(!self.reader.as_ref().unwrap().is_finished(), "the instrument has ended");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Counter {
    fn drop(&mut self) {
        self.done.store(true, Ordering::Relaxed);
        let _ = self.reader.take().unwrap().join();
    }
}

/// What a counter showed at a moment, on the line between the readings around it.
fn at(series: &[(f64, f64)], moment: f64) -> f64 {
    let after = series.partition_point(|(at, _)| *at < moment).clamp(1, series.len() - 1);
    let ((x0, y0), (x1, y1)) = (series[after - 1], series[after]);
    assert!(x0 <= moment, "the instrument was started too late");
    y0 + (y1 - y0) * (moment - x0) / (x1 - x0)
}

/// A program that reports line by line; ended when dropped.
struct Reporter(Child);

impl Reporter {
    fn start(mut command: Command) -> (Self, BufReader<ChildStdout>) {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        (Self(child), lines)
    }
}

impl Drop for Reporter {
    fn drop(&mut self) {
        // Not SIGKILL, which would be the end of `timeout` alone and not of what it runs.
        let _ = kill_process(Pid::from_child(&self.0), Signal::TERM);
        self.0.wait().unwrap();
    }
}

/// Compares what `seen` finds in each window of a database with what the counter says of the same
/// time, until both have agreed often enough.
fn agree(
    what: &str,
    pid: u32,
    options: &[&str],
    counter: &Counter,
    seen: impl Fn(&Value, f64) -> Option<f64>,
) {
    let (untax, pid_text) = (Untax::new(), pid.to_string());
    let words = ["watch", "--json", "--window", "5s", "--pid", &pid_text];
    let (_watch, results) = Reporter::start(untax.command(&[&words, options].concat()));
    let (mut said, mut agreed) = (Vec::new(), 0);
    // The first window begins before all is loaded.
    for line in results.lines().skip(1).take(WINDOWS) {
        let check: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let window_s = check["window_s"].as_f64().unwrap();
        let end = seconds(check["taken_at"].as_str().unwrap().parse().unwrap());
        let told = counter.growth(end - window_s, end);
        let Some(seen) = seen(database(&check, pid), window_s) else {
            said.push(format!("nothing against {told:.2}"));
            continue;
        };
        let off = seen / told - 1.0;
        let line = format!("{seen:.2} against {told:.2} in {window_s:.2} s, {:+.1} %", off * 100.0);
        println!("{what}: {line}");
        agreed += usize::from(told > 0.0 && off.abs() <= ALLOWED);
        if agreed == AGREEING {
            return;
        }
        said.push(line);
    }
    panic!("{what}: {said:#?}");
}

/// A number among the evidence of a finding.
fn evidence(database: &Value, rule: &str, name: &str) -> Option<f64> {
    let findings = database["findings"].as_array().unwrap();
    let finding = findings.iter().find(|finding| finding["rule"] == rule)?;
    let evidence = finding["evidence"].as_array().unwrap();
    evidence.iter().find(|evidence| evidence["name"] == name)?["value"].as_f64()
}

/// A process and its children.
fn family(main: u32) -> Vec<u32> {
    let children = fs::read_to_string(format!("/proc/{main}/task/{main}/children")).unwrap();
    let children = children.split_ascii_whitespace().map(|pid| pid.parse().unwrap());
    std::iter::once(main).chain(children).collect()
}

/// `pgbench` with a script of one's own.
fn scripted(postgres: &Postgres, script: &str, clients: u32) -> Bystander {
    run_script(postgres, client(postgres, "pgbench"), script, clients)
}

/// The same by a command that is to be `pgbench`.
fn run_script(postgres: &Postgres, mut pgbench: Command, script: &str, clients: u32) -> Bystander {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(script.as_bytes()).unwrap();
    file.rewind().unwrap();
    let number = clients.to_string();
    pgbench.args(["-n", "--time=180", "--file=-", "-c", &number, "postgres"]).stdin(file);
    let connected = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pgbench'";
    let pgbench = Bystander::start(pgbench);
    for _ in 0..600 {
        if postgres.sql(connected).unwrap().trim() == number {
            return pgbench;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("pgbench did not connect its clients");
}

fn client(postgres: &Postgres, program: &str) -> Command {
    let mut command = Command::new(program);
    let (directory, port) = (postgres.socket_directory(), postgres.port().to_string());
    command.args(["-h", &directory, "-p", &port, "-U", postgres.user()]);
    command
}

#[test]
#[ignore = "long: up to six windows of 5 s beside another instrument"]
fn retransmissions_are_those_of_nstat() {
    support::real(|| {
        let cause = Cause::find("tcp-retransmit").unwrap();
        let mut injection = Injection::prepare(cause, POSTGRES, Dose::Strong)?;
        injection.switch(true)?;
        let _load = injection.load(180)?;
        let pid = injection.pid().unwrap();
        let namespace = format!("--net=/proc/{pid}/ns/net");
        let counter = Counter::polled(move || {
            let words = [&namespace, "--", "nstat", "-asz", "TcpRetransSegs"];
            let output = Command::new("nsenter").args(words).output().unwrap();
            let text = String::from_utf8(output.stdout).unwrap();
            let line = text.lines().find(|line| line.starts_with("TcpRetransSegs")).unwrap();
            line.split_ascii_whitespace().nth(1).unwrap().parse().unwrap()
        });
        agree("segments sent again", pid, &["--no-calibration"], &counter, |found, window_s| {
            evidence(found, "tcp-retransmit", "sent again").map(|per_s| per_s * window_s)
        });
        Ok(())
    });
}

/// What `perf stat` counts in all processes of a server and in those that it starts.
fn perf_faults(main: u32) -> Result<(Reporter, Counter), SceneError> {
    if !Command::new("perf").arg("--version").output().is_ok_and(|out| out.status.success()) {
        let (program, package) = ("perf".to_owned(), "linux-perf".to_owned());
        return Err(SceneError::Missing { program, package });
    }
    // A process that ends before `perf` comes to it makes `perf` end too.
    for _ in 0..20 {
        let pids: Vec<String> = family(main).iter().map(u32::to_string).collect();
        let mut perf = Command::new("perf");
        perf.args(["stat", "-I", "50", "-x", ",", "--log-fd", "1", "-e", "minor-faults", "-p"]);
        perf.arg(pids.join(","));
        let (reporter, lines) = Reporter::start(perf);
        let mut total = 0.0;
        // `     0.050109,211,,minor-faults,…`, and words while none of the processes runs.
        let mut counts = lines.lines().map_while(move |line| {
            let line = line.ok()?;
            let count = line.split(',').nth(1)?;
            total += if count == "<not counted>" { 0.0 } else { count.parse::<f64>().ok()? };
            Some(total)
        });
        if counts.next().is_some() {
            return Ok((reporter, Counter::start(move || counts.next())));
        }
    }
    panic!("perf counts nothing")
}

/// The minor faults of a server's processes, as `/proc` has them; those that ended are counted by
/// the main process.
fn proc_faults(main: u32) -> f64 {
    let of = |pid: u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
        // minflt and cminflt are the tenth and the eleventh field of all, proc(5).
        Some(fields.skip(7).take(2).map(|field| field.parse::<f64>().unwrap()).sum::<f64>())
    };
    family(main).into_iter().filter_map(of).sum()
}

#[test]
#[ignore = "long: up to six windows of 5 s beside another instrument"]
fn page_faults_are_those_of_perf() {
    support::real(|| {
        let settings = [("shared_buffers", "256MB"), ("huge_pages", "off")];
        let postgres = Postgres::start(Runtime::Host, &settings)?;
        postgres.pgbench_fill(10, 100)?;
        let pid = postgres.pid().unwrap();
        let (_perf, perf) = perf_faults(pid)?;
        let reconnecting =
            Pgbench { clients: 2, seconds: 180, reconnect: true, ..Pgbench::default() };
        let _load = postgres.pgbench(&reconnecting)?;
        let seen = |found: &Value, window_s: f64| {
            evidence(found, "small-pages", "minor faults").map(|per_s| per_s * window_s)
        };
        agree("minor faults, perf", pid, &[], &perf, seen);
        let counter = Counter::polled(move || proc_faults(pid));
        agree("minor faults, /proc", pid, &[], &counter, seen);
        Ok(())
    });
}

/// A server whose six clients compute.
fn computing() -> Result<(Postgres, Bystander), SceneError> {
    let postgres = Postgres::start(Runtime::Host, &[("shared_buffers", "128MB")])?;
    let load = scripted(&postgres, "SELECT count(*) FROM generate_series(1, 1000000);\n", 6);
    Ok((postgres, load))
}

#[test]
#[ignore = "long: up to six windows of 5 s beside another instrument"]
fn waiting_for_a_cpu_is_what_schedstat_counts() {
    support::real(|| {
        let (postgres, _load) = computing()?;
        let pid = postgres.pid().unwrap();
        // Not the one that answers this, which ends.
        let pids = "SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid() \
                    AND (application_name = 'pgbench' OR backend_type <> 'client backend')";
        let pids = postgres.sql(pids)?;
        let pids = pids.lines().map(|line| line.trim().parse().unwrap());
        let pids: Vec<u32> = pids.chain([pid]).collect();
        let counter = Counter::polled(move || {
            let waited = |pid: &u32| {
                let text = fs::read_to_string(format!("/proc/{pid}/schedstat")).unwrap();
                text.split_ascii_whitespace().nth(1).unwrap().parse::<f64>().unwrap() / 1e9
            };
            pids.iter().map(waited).sum()
        });
        agree("waiting for a CPU", pid, &["--no-calibration"], &counter, |found, _| {
            found["time"]["runnable_s"].as_f64()
        });
        Ok(())
    });
}

/// From when one of `@is` is woken, or leaves a CPU though it could go on, to when it has one: the sum in
/// ns, every 50 ms.
const WAITS: &str = r"
tracepoint:sched:sched_wakeup /@is[args->pid]/ { @since[args->pid] = nsecs; }
tracepoint:sched:sched_switch /@is[args->prev_pid] && (args->prev_state & 0xff) == 0/ {
    @since[args->prev_pid] = nsecs;
}
tracepoint:sched:sched_switch /@since[args->next_pid]/ {
    @waited = sum(nsecs - @since[args->next_pid]);
    delete(@since[args->next_pid]);
}
interval:ms:50 { print(@waited); }
";

#[test]
#[ignore = "long: up to six windows of 5 s beside another instrument"]
fn and_what_bpftrace_sees_between_waking_and_running() {
    support::real(|| {
        let (program, package) = ("bpftrace".to_owned(), "bpftrace".to_owned());
        let mut bpftrace = Command::new(&program);
        if !bpftrace.arg("--version").output().is_ok_and(|out| out.status.success()) {
            return Err(SceneError::Missing { program, package }.into());
        }
        let (postgres, _load) = computing()?;
        let pid = postgres.pid().unwrap();
        let are: String = family(pid).iter().map(|pid| format!("@is[{pid}] = 1; ")).collect();
        let waits = format!("BEGIN {{ {are}}}{WAITS}");
        // It reads how events look in a filesystem that is not mounted everywhere.
        let mut bpftrace = Command::new("unshare");
        let traced = "mount -t debugfs none /sys/kernel/debug && exec bpftrace -B line -e \"$0\"";
        bpftrace.args(["--mount", "--", "/bin/sh", "-c", traced, &waits]);
        let (_bpftrace, lines) = Reporter::start(bpftrace);
        // `@waited: 4711`, after words on what it attached.
        let mut waited_s = lines.lines().map_while(Result::ok).filter_map(|line| {
            Some(line.strip_prefix("@waited: ")?.trim().parse::<f64>().unwrap() / 1e9)
        });
        let counter = Counter::start(move || waited_s.next());
        agree("by bpftrace", pid, &["--no-calibration"], &counter, |found, _| {
            found["time"]["runnable_s"].as_f64()
        });
        Ok(())
    });
}

/// How many backends wait for a lock, every 20 ms.
const WAITING: &str = "SELECT 'waits', count(*) FROM pg_stat_activity \
    WHERE wait_event_type IN ('Lock', 'LWLock', 'BufferPin') \\watch 0.02\n";

/// Who has the row keeps it without a CPU, so that the others wait for the lock and not for a CPU:
/// those that were given the lock but have no CPU yet still show the event.
const HELD_ROW: &str = "BEGIN;\n\
    UPDATE pgbench_branches SET bbalance = bbalance + 1 WHERE bid = 1;\n\
    SELECT pg_sleep(HELD);\n\
    COMMIT;\n";

/// Short waits, those longer than the slices in which a window is traced, and so long that PostgreSQL's own
/// timer wakes who waits, to look for deadlocks.
const HELD_S: [&str; 3] = ["0.01", "0.2", "1.2"];

/// Compares what a server's processes wait for locks with what the server says of it.
fn agree_on_locks(what: &str, postgres: &Postgres) {
    let mut psql = client(postgres, "psql");
    psql.args(["-XAtq", "postgres"]).stdin(Stdio::piped());
    let (mut psql, lines) = Reporter::start(psql);
    psql.0.stdin.as_mut().unwrap().write_all(WAITING.as_bytes()).unwrap();
    let mut lines = lines.lines();
    let (mut waited_s, mut before_s) = (0.0, now_s());
    let counter = Counter::start(move || {
        let count =
            lines.find_map(|line| line.ok()?.strip_prefix("waits|")?.parse::<f64>().ok())?;
        let now_s = now_s();
        waited_s += count * (now_s - before_s);
        before_s = now_s;
        Some(waited_s)
    });
    let pid = postgres.pid().unwrap();
    let seen = |found: &Value, _| found["time"]["lock_s"].as_f64();
    agree(what, pid, &["--no-calibration"], &counter, seen);
}

#[test]
#[ignore = "long: up to six windows of 5 s beside another instrument"]
fn waiting_for_locks_is_what_postgres_says() {
    support::real(|| {
        for held_s in HELD_S {
            let postgres = Postgres::start(Runtime::Host, &[("shared_buffers", "128MB")])?;
            postgres.pgbench_fill(1, 100)?;
            let _load = scripted(&postgres, &HELD_ROW.replace("HELD", held_s), 6);
            agree_on_locks(&format!("waiting for a row held for {held_s} s"), &postgres);
        }
        Ok(())
    });
}

/// Has another CPU than the sender's take what is sent, in a network of a server's own: as with clients on
/// other machines, an interrupt wakes the server.
const FROM_AFAR: &str =
    "mount -t sysfs sysfs /sys && echo 2 >/sys/class/net/lo/queues/rx-0/rps_cpus";

#[test]
#[ignore = "long: up to six windows of 5 s beside another instrument"]
fn it_is_with_clients_whose_sends_nobody_sees() {
    support::real(|| {
        let network = Network::make()?;
        let setup = Setup {
            settings: &[("shared_buffers", "128MB")],
            network: Some(&network),
            ..Setup::default()
        };
        let postgres = Postgres::start_as(&setup)?;
        postgres.pgbench_fill(1, 100)?;
        let network = format!("--net=/proc/{}/ns/net", postgres.pid().unwrap());
        let within = |words: &[&str]| {
            let mut command = Command::new("nsenter");
            command.args([&network, "--"]).args(words);
            command
        };
        let moved = within(&["unshare", "--mount", "sh", "-c", FROM_AFAR]).status().unwrap();
        assert!(moved.success(), "this kernel does not steer packets (CONFIG_RPS)");
        let port = postgres.port().to_string();
        let mut pgbench = within(&["taskset", "-c", "0", "pgbench"]);
        pgbench.args(["-h", "127.0.0.1", "-p", &port, "-U", postgres.user()]);
        let _load = run_script(&postgres, pgbench, &HELD_ROW.replace("HELD", HELD_S[2]), 6);
        agree_on_locks("waiting for a row, clients far away", &postgres);
        Ok(())
    });
}
