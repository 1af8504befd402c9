//! What checks take from the throughput of databases, one after the other or in one program.
//!
//! A server and its load have each CPU for themselves, from beginning to end, and what may slow them
//! comes and goes: arms alternate, A without, B with. Loads that begin anew with each trial, or that
//! share CPUs, differ by more than what is sought: where the scheduler puts whom makes a tenth. What
//! noise alone does comes from neighbouring trials of the same arm.

use super::trials::{Trial, Trials, order};
use super::{Output, Untax};
use anyhow::Context;
use clap::Args;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::fmt::Write as _;
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::sleep;
use std::time::{Duration, Instant};
use untax_lab::{Load, Pgbench, Place, Postgres, Redis, RedisBenchmark, Turn};

/// What to measure.
#[derive(Debug, Args)]
pub struct Options {
    /// Pairs of trials
    #[arg(long, default_value_t = 30)]
    pairs: u32,
    /// Length of one trial, seconds; a check with its window of 10 s fits into the shortest
    #[arg(long, default_value_t = 11, value_parser = clap::value_parser!(u32).range(11..))]
    seconds: u32,
    /// Connections to each server
    #[arg(long, default_value_t = 4)]
    clients: u32,
    #[command(flatten)]
    output: Output,
}

/// What runs beside the load in arm B.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Beside {
    /// One `untax check` after the other.
    Checks,
    /// One `untax watch --json`.
    Watch,
}

const LOADS: [(&str, Beside); 3] = [
    ("pgbench -S, checks one after the other", Beside::Checks),
    ("pgbench -S, one watch", Beside::Watch),
    ("redis-benchmark, one watch", Beside::Watch),
];

/// From the beginning of an arm to the beginning of its trial: a watch loads its programs, and the
/// second in which the arm began ends.
const READY: Duration = Duration::from_secs(2);

/// What Redis calls the requests that it answered.
const COMMANDS: &str = "total_commands_processed:";

/// More requests than any run makes, and as many as the program takes.
const ENDLESS: u64 = i32::MAX as u64;

/// Runs the bench and writes the result.
pub fn run(options: &Options) -> anyhow::Result<()> {
    options.output.prepare()?;
    let _turn = Turn::wait()?;
    let untax = Untax::find()?;
    let path = options.output.out.join("overhead.json");
    let mut trials = Trials::open(&path)?;
    for (name, beside) in LOADS {
        let servers = on_each_cpu(|| Loaded::start(name, options))?;
        for pair in 0..options.pairs {
            for arm in order(pair) {
                if trials.has(pair, name, arm) {
                    continue;
                }
                let beside = (arm == "B").then_some(beside);
                let tps = trial(&untax, &servers, beside, options)?;
                let trial = Trial { pair, load: name.into(), arm: arm.into(), tps, check: None };
                trials.add(trial, &path)?;
            }
        }
    }
    Trials::finish(&path)?;
    report(&trials, options)
}

/// Starts something on each CPU, which it cannot leave.
fn on_each_cpu<T>(start: impl Fn() -> anyhow::Result<T>) -> anyhow::Result<Vec<T>> {
    let all = sched_getaffinity(None)?;
    let mut started = Vec::new();
    for cpu in (0..CpuSet::MAX_CPU).filter(|cpu| all.is_set(*cpu)) {
        let mut one = CpuSet::new();
        one.set(cpu);
        sched_setaffinity(None, &one)?;
        let result = start();
        sched_setaffinity(None, &all)?;
        started.push(result?);
    }
    Ok(started)
}

/// A server under a load that does not end before it is dropped.
enum Loaded {
    Postgres { _server: Postgres, load: Load },
    Redis { server: Redis, _load: Load },
}

impl Loaded {
    fn start(name: &str, options: &Options) -> anyhow::Result<Self> {
        if name.starts_with("redis") {
            let server = Redis::start(Place::Host, &[])?;
            let reads = RedisBenchmark {
                clients: options.clients,
                requests: ENDLESS,
                keys: 100_000,
                value_bytes: 64,
                writes: false,
            };
            let fill = RedisBenchmark { requests: 500_000, writes: true, ..reads };
            server.benchmark(&fill)?.finish()?;
            let load = server.benchmark(&reads)?;
            return Ok(Self::Redis { server, _load: load });
        }
        let server = Postgres::start(Place::Host, &[("shared_buffers", "256MB")])?;
        server.pgbench_fill(10, 100)?;
        let reads = Pgbench { clients: options.clients, ..Pgbench::default() };
        // Warms the buffers.
        server.pgbench(&reads)?.finish()?;
        let load = server.pgbench(&Pgbench { seconds: i32::MAX as u32, ..reads })?;
        Ok(Self::Postgres { _server: server, load })
    }

    /// Requests answered so far, and in how many seconds: by the load that tells of each second, or by
    /// the server, whose own counter lags in PostgreSQL.
    fn answered(&self, begun: Instant) -> anyhow::Result<(f64, f64)> {
        match self {
            Self::Postgres { load, .. } => {
                let each = load.each_second();
                Ok((each.iter().sum(), each.len() as f64))
            }
            Self::Redis { server, .. } => {
                let (told, seconds) = (server.command(["INFO", "stats"])?, begun.elapsed());
                let count = told.lines().find_map(|line| line.strip_prefix(COMMANDS));
                let count = count.and_then(|count| count.trim().parse().ok());
                Ok((count.context("Redis counts no commands")?, seconds.as_secs_f64()))
            }
        }
    }
}

/// Requests a second of all servers while `beside` runs.
fn trial(
    untax: &Untax,
    servers: &[Loaded],
    beside: Option<Beside>,
    options: &Options,
) -> anyhow::Result<f64> {
    let begun = Instant::now();
    let answered = || -> anyhow::Result<Vec<(f64, f64)>> {
        servers.iter().map(|server| server.answered(begun)).collect()
    };
    let counted = || {
        sleep(READY);
        let before = answered()?;
        sleep(Duration::from_secs(options.seconds.into()));
        let rates = before.iter().zip(answered()?).map(|(before, after)| {
            let (requests, seconds) = (after.0 - before.0, after.1 - before.1);
            anyhow::ensure!(requests > 0.0 && seconds > 0.0, "a load ended early");
            Ok(requests / seconds)
        });
        rates.sum()
    };
    match beside {
        None => counted(),
        Some(Beside::Checks) => checked(untax, counted),
        Some(Beside::Watch) => watched(untax, counted),
    }
}

/// Runs checks one after the other until `counted` has ended.
fn checked(untax: &Untax, counted: impl FnOnce() -> anyhow::Result<f64>) -> anyhow::Result<f64> {
    let (done, until) = channel();
    std::thread::scope(|scope| {
        let checks = scope.spawn(move || checks(untax, &until));
        let result = counted();
        drop(done);
        checks.join().map_err(|_| anyhow::anyhow!("the checks ended early"))??;
        result
    })
}

/// One check after the other; the last one is cut short.
fn checks(untax: &Untax, until: &Receiver<()>) -> anyhow::Result<()> {
    loop {
        // A calibration is made once on a host and kept, so it is not part of this.
        let arguments = ["check", "--no-calibration"];
        let mut check = Running(untax.command(&arguments).stdout(Stdio::null()).spawn()?);
        while check.0.try_wait()?.is_none() {
            let wait = until.recv_timeout(Duration::from_millis(20));
            if wait != Err(RecvTimeoutError::Timeout) {
                return Ok(());
            }
        }
        let code = check.0.wait()?.code();
        anyhow::ensure!(code.is_some_and(|code| code <= 1), "a check ended with {code:?}");
    }
}

/// Runs one watch from before `counted` to its end.
fn watched(untax: &Untax, counted: impl FnOnce() -> anyhow::Result<f64>) -> anyhow::Result<f64> {
    let arguments = ["watch", "--json", "--no-calibration"];
    let mut watch = Running(untax.command(&arguments).stdout(Stdio::null()).spawn()?);
    let result = counted()?;
    anyhow::ensure!(watch.0.try_wait()?.is_none(), "the watch ended before the trial");
    Ok(result)
}

/// A program that is ended when this is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It changes nothing on the host, so that there is nothing to undo.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn report(trials: &Trials, options: &Options) -> anyhow::Result<()> {
    let mut rows = String::new();
    for (name, _) in LOADS {
        let (ratio, floor) = trials
            .ratio(name, "B", "A")
            .zip(trials.floor(name))
            .context("there are no pairs yet")?;
        let [low, mid, high] = [ratio.low, ratio.mid, ratio.high];
        let floor = floor * 100.0;
        writeln!(rows, "| {name} | **{mid:.4}** | {low:.4} … {high:.4} | ±{floor:.1} % |")?;
    }
    let text = format!(
        "# What checks cost the database\n\n\
         A server on each CPU, under a load of {} connections that never ends. Throughput of all with `untax check` (windows of 10 s), one after the other, \
         or one `untax watch --json` (windows of 5 s), over throughput without: {} pairs of {} s in ABBA order. Floor: the 95th \
         percentile of the difference between neighbouring trials of the same arm.\n\n\
         | load | with over without | 95 % interval | A/A floor |\n|---|---|---|---|\n{rows}\n\
         Machine: {}. Command: `{}`. Every trial: [overhead.json](overhead.json).\n",
        options.clients, options.pairs, options.seconds, trials.machine, trials.command
    );
    options.output.write("overhead.md", &text)?;
    eprintln!("{text}");
    Ok(())
}
