//! What checks take from the throughput of databases, one after the other or in one program.
//!
//! A server and its load have each CPU for themselves, from beginning to end, and what may slow them is
//! stopped and let go on, as Ctrl-Z and `fg` would, each half second. The speed of a virtual machine
//! wanders: times that are next to each other differ by as much if they are short as if they are long, so
//! many short ones tell most. What they differ by when nothing is beside them is told too.
//!
//! So a whole pair is one trial for the runner, and its arms are the loads: half seconds are too short to
//! be saved, and watched, one by one.

use super::output::Output;
use super::paired::Paired;
use super::program::Untax;
use super::record::{Measured, Record};
use anyhow::{Context, bail};
use clap::Args;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde_json::Value;
use std::fmt::Write as _;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::os::unix::process::CommandExt as _;
use std::thread::sleep;
use std::time::{Duration, Instant};
use untax_core::{Interval, stats};
use untax_scenes::{Load, Network, Pgbench, Postgres, Redis, RedisBenchmark, Setup, Turn};
use untax_trials::{Arm, Block, Cell, Design, Rig, Slot};

/// What to measure.
#[derive(Debug, Args)]
pub struct Options {
    /// Pairs of trials
    #[arg(long, default_value_t = 30)]
    pairs: u32,
    /// Connections to each server
    #[arg(long, default_value_t = 4)]
    clients: u32,
    /// Measure this load alone: the beginning of its name
    #[arg(long, value_name = "NAME", default_value = "")]
    only: String,
    #[command(flatten)]
    output: Output,
}

/// The loads, and what is beside them in arm B: one after the other, where it ends.
const LOADS: [(&str, &[&str]); 3] = [
    ("pgbench -S, one watch", WATCH),
    ("redis-benchmark, one watch", WATCH),
    ("pgbench -S, checks one after the other", CHECK),
];

// A calibration is made once on a host and kept, so it is not part of this.
const WATCH: &[&str] = &["watch", "--json", "--no-calibration"];
const CHECK: &[&str] = &["check", "--json", "--no-calibration"];

/// Windows of either are so long, without the time in which it is stopped.
const WINDOW_S: f64 = 10.0;

/// Until a watch has loaded its programs, which it does once.
const READY: Duration = Duration::from_secs(3);

/// How long it is until what runs beside the loads is stopped or let go on; with less, most slices of
/// tracing would be cut short.
const ARM: Duration = Duration::from_millis(500);

/// A trial is so many of these together: two windows.
const ARMS: u32 = 40;

/// How often it is looked whether a check has ended.
const STEP: Duration = Duration::from_millis(20);

/// More requests than any run makes, and as many as the program takes.
const ENDLESS: u64 = i32::MAX as u64;

/// Runs the bench and writes the result.
pub fn run(options: &Options) -> anyhow::Result<()> {
    let _turn = Turn::wait()?;
    let design = design(options);
    let paired = Paired::open(&options.output, "overhead", &design)?;
    let untax = Untax::find()?;
    let mut servers = Servers { untax: &untax, clients: options.clients, running: None };
    report(&paired.run(&mut servers)?, options)
}

/// All loads, so that one may be measured after the other, and the trials of those that are chosen.
fn design(options: &Options) -> Design {
    let configuration = format!("{} connections", options.clients);
    let arm =
        |(name, _): &(&str, _)| Arm { configuration: configuration.clone(), ..Arm::new(*name) };
    let chosen = (0..LOADS.len()).filter(|load| LOADS[*load].0.starts_with(&options.only));
    let block = |(arm, block)| Block {
        slots: vec![Slot { block, arm, cell: 0, repeat: false }],
        ..Block::default()
    };
    let slots = chosen.flat_map(|load| (0..options.pairs).map(move |pair| (load, pair)));
    Design {
        // The order is fixed.
        seed: 0,
        arms: LOADS.iter().map(arm).collect(),
        cells: vec![Cell { name: String::new(), length: Some(ARM * 2 * ARMS) }],
        blocks: slots.map(block).collect(),
    }
}

/// Servers under one of the loads, and what runs beside them.
struct Servers<'a> {
    untax: &'a Untax,
    clients: u32,
    running: Option<(Beside<'a>, Vec<Loaded>)>,
}

impl Rig for Servers<'_> {
    type Error = anyhow::Error;
    type Outcome = Vec<Measured>;

    fn prepare(&mut self, loads: &[usize], _: &mut dyn FnMut(&str, f64)) -> anyhow::Result<()> {
        self.tear_down()?;
        for (name, words) in loads.iter().map(|load| LOADS[*load]) {
            let servers = on_each_cpu(|| Loaded::start(name, self.clients))?;
            let mut beside = Beside::new(self.untax, words)?;
            beside.go_on()?;
            beside.run(READY)?;
            self.running = Some((beside, servers));
        }
        Ok(())
    }

    fn run(&mut self, slot: &Slot) -> anyhow::Result<Option<Vec<Measured>>> {
        let Some((beside, servers)) = &mut self.running else { return Ok(None) };
        let rates = block(beside, servers)?;
        let own = Value::from(beside.own()?);
        let measured = |(arm, tps): (&str, f64)| Measured {
            load: LOADS[slot.arm].0.to_owned(),
            arm: arm.to_owned(),
            tps,
            check: (arm == "B").then(|| own.clone()),
        };
        Ok(Some(rates.into_iter().map(measured).collect()))
    }

    fn tear_down(&mut self) -> anyhow::Result<()> {
        self.running = None;
        Ok(())
    }
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

/// A server under a load that does not end before it is dropped, in a network of their own.
struct Loaded {
    _load: Load,
    _server: Server,
    _network: Network,
    pid: u32,
}

/// A scratch server.
enum Server {
    Postgres { _server: Postgres },
    Redis { _server: Redis },
}

impl Loaded {
    fn start(name: &str, clients: u32) -> anyhow::Result<Self> {
        let network = Network::make()?;
        let setup = Setup { network: Some(&network), ..Setup::default() };
        let (pid, load, server) = if name.starts_with("redis") {
            redis(&setup, clients)
        } else {
            postgres(&setup, clients)
        }?;
        let pid = pid.context("the server has ended")?;
        Ok(Self { _load: load, _server: server, _network: network, pid })
    }

    /// How many bytes went over its network so far. A transaction or a request takes always the same.
    fn bytes(&self) -> anyhow::Result<u64> {
        let devices = std::fs::read_to_string(format!("/proc/{}/net/dev", self.pid))?;
        let loopback = devices.lines().find_map(|line| line.trim_start().strip_prefix("lo:"));
        let received = loopback.and_then(|line| line.split_whitespace().next()?.parse().ok());
        received.context("/proc/PID/net/dev tells nothing of the loopback interface")
    }
}

fn redis(setup: &Setup, clients: u32) -> anyhow::Result<(Option<u32>, Load, Server)> {
    let server = Redis::start_as(setup)?;
    let reads = RedisBenchmark {
        clients,
        requests: ENDLESS,
        keys: 100_000,
        value_bytes: 64,
        writes: false,
    };
    let fill = RedisBenchmark { requests: 500_000, writes: true, ..reads };
    server.benchmark(&fill)?.finish()?;
    let load = server.benchmark(&reads)?;
    Ok((server.pid(), load, Server::Redis { _server: server }))
}

fn postgres(setup: &Setup, clients: u32) -> anyhow::Result<(Option<u32>, Load, Server)> {
    let server = Postgres::start_as(&Setup { settings: &[("shared_buffers", "256MB")], ..*setup })?;
    server.pgbench_fill(10, 100)?;
    let reads = Pgbench { clients, ..Pgbench::default() };
    // Warms the buffers.
    server.pgbench(&reads)?.finish()?;
    let load = server.pgbench(&Pgbench { seconds: i32::MAX as u32, ..reads })?;
    Ok((server.pid(), load, Server::Postgres { _server: server }))
}

/// A program that is stopped and let go on, and started anew where it has ended.
struct Beside<'a> {
    untax: &'a Untax,
    words: &'static [&'static str],
    pid: Option<Pid>,
    said: File,
    heard: u64,
}

impl<'a> Beside<'a> {
    fn new(untax: &'a Untax, words: &'static [&'static str]) -> anyhow::Result<Self> {
        Ok(Self { untax, words, pid: None, said: tempfile::tempfile()?, heard: 0 })
    }

    /// What it counted of itself in the windows that ended since this was asked last.
    fn own(&mut self) -> anyhow::Result<Vec<Value>> {
        let length = self.said.metadata()?.len().saturating_sub(self.heard);
        let mut text = vec![0; usize::try_from(length)?];
        self.said.read_exact_at(&mut text, self.heard)?;
        let mut results = serde_json::Deserializer::from_slice(&text).into_iter::<Value>();
        let (mut own, mut heard) = (Vec::new(), 0);
        // The last one may be half written.
        while let Some(Ok(result)) = results.next() {
            heard = results.byte_offset();
            own.push(result["self"].clone());
        }
        self.heard += heard as u64;
        Ok(own)
    }

    fn go_on(&mut self) -> anyhow::Result<()> {
        if let Some(pid) = self.pid {
            return Ok(kill_process(pid, Signal::CONT)?);
        }
        let mut command = self.untax.mortal_command(self.words);
        // In a group of its own, which this process looks after as a shell would.
        let child = command.process_group(0).stdout(self.said.try_clone()?).spawn()?;
        self.pid = Pid::from_raw(i32::try_from(child.id())?);
        Ok(())
    }

    /// Lets so long pass, and looks after it: this program takes as much of the CPUs whether it runs or
    /// is stopped.
    fn pass(&mut self, length: Duration) -> anyhow::Result<()> {
        let begun = Instant::now();
        while begun.elapsed() < length {
            sleep(STEP.min(length));
            self.wait(WaitOptions::NOHANG)?;
            self.go_on_if_ended()?;
        }
        Ok(())
    }

    /// Lets it run for so long, and stops it.
    fn run(&mut self, length: Duration) -> anyhow::Result<()> {
        self.pass(length)?;
        if let Some(pid) = self.pid {
            kill_process(pid, Signal::TSTP)?;
            self.wait(WaitOptions::UNTRACED)?;
        }
        Ok(())
    }

    fn go_on_if_ended(&mut self) -> anyhow::Result<()> {
        if self.pid.is_none() { self.go_on() } else { Ok(()) }
    }

    /// Waits for it to end, or to stop, as `options` say.
    fn wait(&mut self, options: WaitOptions) -> anyhow::Result<()> {
        let Some((_, status)) = waitpid(self.pid, options)? else { return Ok(()) };
        if status.stopped() {
            return Ok(());
        }
        self.pid = None;
        match status.exit_status() {
            Some(0 | 1) if self.words == CHECK => Ok(()),
            _ => bail!("untax {} ended early: {status:?}", self.words.join(" ")),
        }
    }
}

impl Drop for Beside<'_> {
    fn drop(&mut self) {
        if let Some(pid) = self.pid {
            let _ = kill_process(pid, Signal::KILL);
            let _ = waitpid(Some(pid), WaitOptions::empty());
        }
    }
}

/// What went over the networks in some time.
#[derive(Clone, Copy, Default)]
struct Sum {
    bytes: u64,
    seconds: f64,
}

impl Sum {
    fn add(&mut self, other: Self) {
        self.bytes += other.bytes;
        self.seconds += other.seconds;
    }

    fn rate(self) -> f64 {
        self.bytes as f64 / self.seconds
    }
}

/// The arms of a pair in the order of an ABBA design.
fn order(pair: u32) -> [&'static str; 2] {
    if pair.is_multiple_of(2) { ["A", "B"] } else { ["B", "A"] }
}

/// A pair of trials and, of its first one, every other arm: bytes a second.
fn block(beside: &mut Beside, servers: &[Loaded]) -> anyhow::Result<[(&'static str, f64); 4]> {
    let mut with = Sum::default();
    let mut without = [Sum::default(); 2];
    for arms in 0..ARMS {
        for arm in order(arms) {
            if arm == "B" {
                with.add(counted(servers, || beside.go_on().and_then(|()| beside.run(ARM)))?);
            } else {
                // As often after an arm with as after one without.
                without[(arms / 2 % 2) as usize].add(counted(servers, || beside.pass(ARM))?);
            }
        }
    }
    let [one, other] = without;
    let mut both = one;
    both.add(other);
    Ok([("A", both.rate()), ("A1", one.rate()), ("A2", other.rate()), ("B", with.rate())])
}

/// What went over the networks while `run` ran.
fn counted(servers: &[Loaded], run: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<Sum> {
    let bytes = || servers.iter().map(Loaded::bytes).sum::<anyhow::Result<u64>>();
    let (before, begun) = (bytes()?, Instant::now());
    run()?;
    let seconds = begun.elapsed().as_secs_f64();
    let bytes = bytes()?.saturating_sub(before);
    anyhow::ensure!(bytes > 0, "a load ended early");
    Ok(Sum { bytes, seconds })
}

/// What part of all CPUs it took by its own count, tracing included; the servers' answers are not in it.
fn own_share(record: &Record, load: &str) -> Option<f64> {
    let windows = record.checks(load, "B").filter_map(Value::as_array).flatten();
    let took_s = |own: &Value| Some(own["cpu_s"].as_f64()? + own["tracing_s"].as_f64()?);
    let took_s: Vec<f64> = windows.filter_map(took_s).collect();
    let cpus = std::thread::available_parallelism().ok()?.get() as f64;
    Some(stats::mean(&took_s)? / WINDOW_S / cpus)
}

/// Pairs of a load, its throughput with over without, and what noise alone does: three columns of the table.
fn ratios(record: &Record, load: &str) -> Option<String> {
    let pairs = record.pairs(load, "B", "A").len();
    let Interval { low, mid, high } = record.ratio_of_sums(load, "B", "A")?;
    let floor = record.ratio_of_sums(load, "A1", "A2")?;
    Some(format!(
        "{pairs} | **{mid:.4}** | {low:.4} … {high:.4} | {:.4} ({:.4} … {:.4})",
        floor.mid, floor.low, floor.high
    ))
}

fn report(record: &Record, options: &Options) -> anyhow::Result<()> {
    let mut rows = String::new();
    for (name, _) in LOADS {
        let Some(ratios) = ratios(record, name) else { continue };
        let own = own_share(record, name);
        let own = own.map_or("not kept".to_owned(), |own| format!("{:.2} %", own * 100.0));
        writeln!(rows, "| {name} | {ratios} | {own} |")?;
    }
    let text = format!(
        "# What checks cost the database\n\n\
         A server on each CPU, under a load of {} connections that never ends. Throughput of all, as bytes over \
         their loopback interfaces, beside one `untax watch --json` (windows of 10 s), or beside `untax check` \
         (windows of 10 s) one after the other, over throughput without. Either is stopped and let go on, each \
         half second, in ABBA order; a trial is {ARMS} such halves. A/A: every other pair of \
         those without over the rest of these. Own count: its `self`, tracing included, of all CPUs; what the servers \
         take to answer it is not in it.\n\n\
         | load | pairs of trials | with over without | 95 % interval | A/A | own count |\n\
         |---|---|---|---|---|---|\n{rows}\n\
         Machine: {}. Command: `{}`. Every trial: [overhead.json](overhead.json).\n",
        options.clients, record.machine, record.command
    );
    options.output.write("overhead.md", &text)?;
    eprintln!("{text}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn the_published_ratios_are_those_of_the_published_trials() {
        let results = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/results");
        let record = Record::read(&results.join("overhead.json")).unwrap();
        let page = std::fs::read_to_string(results.join("overhead.md")).unwrap();
        for (load, pairs) in [(LOADS[0].0, "80 |"), (LOADS[1].0, "7 |")] {
            let ratios = ratios(&record, load).unwrap();
            assert!(ratios.starts_with(pairs) && page.contains(&ratios), "{ratios}");
        }
    }

    #[test]
    fn a_load_that_is_chosen_is_measured_alone_and_may_stand_beside_the_others() {
        let design = |only: &str| {
            let output = Output { out: "target/bench".into() };
            design(&Options { pairs: 2, clients: 4, only: only.to_owned(), output })
        };
        let (redis, all) = (design("redis"), design(""));
        let places = |design: &Design| design.slots().map(|s| (s.arm, s.block)).collect::<Vec<_>>();
        assert_eq!(places(&redis), [(1, 0), (1, 1)]);
        assert_eq!(places(&all), [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1)]);
        assert_eq!((&redis.arms, &redis.cells), (&all.arms, &all.cells));
    }
}
