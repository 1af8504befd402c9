//! Loads: the standard benchmark of each engine, run against a scratch server.

use crate::SceneError;
use crate::program;
use crate::scratch::Scratch;
use crate::shell::{Shell, TICK};
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

/// How much longer than its length a load may run. Connecting and ending take time on a busy machine,
/// and the kernel gives up a connection without an answer after 127 s (`tcp_syn_retries`, 6).
const EXTRA_TIME: Duration = Duration::from_secs(180);

/// The longest that the clients of a load may take to connect.
const CONNECTED: Duration = Duration::from_secs(60);

/// A program that makes load.
#[derive(Clone, Copy)]
pub(crate) struct Benchmark {
    /// Finds transactions (or requests) per second in what it prints at its end.
    throughput: fn(&str) -> Option<f64>,
    /// What it prints once all its clients have connected; none where it prints nothing then.
    at_work: Option<&'static str>,
}

pub(crate) const PGBENCH: Benchmark = Benchmark { throughput: pgbench_tps, at_work: None };
pub(crate) const SYSBENCH: Benchmark =
    Benchmark { throughput: sysbench_tps, at_work: Some("Threads started!") };

impl Benchmark {
    /// One that prints nothing before its end.
    pub(crate) fn silent(throughput: fn(&str) -> Option<f64>) -> Self {
        Self { throughput, at_work: None }
    }
}

/// Runs `$3…` again and again for `$1` seconds, and says after each run how many there were in how many
/// nanoseconds.
const REPEAT: &str = r#"
start=$(date +%s%N) length=$(($1 * 1000000000)) runs=0 took=0
shift 2
while [ "$took" -lt "$length" ]; do
    "$@" || exit 1
    runs=$((runs + 1)) took=$(($(date +%s%N) - start))
    echo "runs: $runs in $took ns"
done
"#;

/// A load that is running; stopped when dropped.
#[must_use]
pub struct Load {
    shell: Shell,
    program: String,
    log: PathBuf,
    deadline: Duration,
    benchmark: Benchmark,
}

impl Load {
    /// Starts it, and waits until its clients have connected where it says so.
    pub(crate) fn start(
        scratch: &Scratch,
        words: &[String],
        seconds: u32,
        benchmark: Benchmark,
    ) -> Result<Self, SceneError> {
        let log = scratch.log(words);
        let shell = Shell::run(words, "KILL", &log, &scratch.private(""))?;
        let deadline = Duration::from_secs(seconds.into()) + EXTRA_TIME;
        let mut load = Self { shell, program: program::name(words), log, deadline, benchmark };
        load.wait_until_at_work()?;
        Ok(load)
    }

    fn wait_until_at_work(&mut self) -> Result<(), SceneError> {
        let Some(sign) = self.benchmark.at_work else { return Ok(()) };
        let since = Instant::now();
        while !program::text(&self.log).contains(sign) {
            self.check()?;
            if since.elapsed() >= CONNECTED {
                return Err(SceneError::Late {
                    program: self.program.clone(),
                    what: "at work",
                    seconds: CONNECTED.as_secs(),
                    output_end: program::tail(&self.log),
                });
            }
            std::thread::sleep(TICK);
        }
        Ok(())
    }

    /// Fails when the load has failed: what was measured meanwhile means nothing.
    pub fn check(&mut self) -> Result<(), SceneError> {
        match self.failure() {
            Some(status) => Err(SceneError::Failed {
                program: self.program.clone(),
                status: status.to_string(),
                output_end: program::tail(&self.log),
            }),
            None => Ok(()),
        }
    }

    /// How it ended, where that was a failure.
    fn failure(&mut self) -> Option<ExitStatus> {
        self.shell.exit_status().filter(|status| !status.success())
    }

    /// The process that it runs as, or that all of its processes descend from.
    pub fn pid(&self) -> Option<u32> {
        self.shell.first_line.parse().ok()
    }

    /// Runs a program again and again for so many seconds.
    pub(crate) fn repeat(
        scratch: &Scratch,
        words: &[String],
        seconds: u32,
    ) -> Result<Self, SceneError> {
        let mut line = program::words(["/bin/sh", "-c", REPEAT, "untax-lab"]);
        line.extend([seconds.to_string(), "--".to_owned()]);
        Self::start(scratch, &[&line, words].concat(), seconds, Benchmark::silent(runs_per_s))
    }

    /// Transactions in each second so far: of pgbench all, of go-tpc new orders; empty for other programs.
    pub fn each_second(&self) -> Vec<f64> {
        let rate = |line: &str| pgbench_second(line).or_else(|| go_tpc_second(line));
        program::text(&self.log).lines().filter_map(rate).collect()
    }

    /// Waits for the end of the load. Gives transactions (or requests) per second.
    pub fn finish(self) -> Result<f64, SceneError> {
        let Self { shell, program, log, deadline, benchmark } = self;
        let output = program::finish(shell, &program, &log, deadline)?;
        (benchmark.throughput)(&output)
            .ok_or_else(|| SceneError::NoThroughput { program, output_end: program::tail(&log) })
    }
}

/// `pgbench`, reading single rows by primary key (`-S`) by default.
#[derive(Debug, Clone, Copy)]
pub struct Pgbench {
    /// Connections.
    pub clients: u32,
    /// How long.
    pub seconds: u32,
    /// Whether to update rows too (the TPC-B-like script) rather than only to read them.
    pub writes: bool,
    /// With `writes`: whether to leave out the few rows that all clients update (`-N`).
    pub without_hot_rows: bool,
    /// Whether each transaction makes a connection of its own (`-C`).
    pub reconnect: bool,
}

/// From this many clients on, `pgbench` gets a thread for each: with fewer threads its clients would
/// queue for a thread before they reach the server. Clients that reconnect get a thread each too,
/// because a thread that connects does nothing else.
const MANY_CLIENTS: u32 = 75;

impl Default for Pgbench {
    fn default() -> Self {
        Self { clients: 8, seconds: 10, writes: false, without_hot_rows: false, reconnect: false }
    }
}

impl Pgbench {
    pub(crate) fn words(self) -> Vec<String> {
        let mut words = vec!["-n".to_owned(), "-M".to_owned(), "prepared".to_owned()];
        words.push(format!("--client={}", self.clients));
        let few = self.clients < MANY_CLIENTS && !self.reconnect;
        let jobs = if few { self.clients.min(2) } else { self.clients };
        words.push(format!("--jobs={jobs}"));
        words.push(format!("--time={}", self.seconds));
        words.push("--progress=1".to_owned());
        if !self.writes {
            words.push("-S".to_owned());
        } else if self.without_hot_rows {
            words.push("-N".to_owned());
        }
        if self.reconnect {
            words.push("-C".to_owned());
        }
        words
    }
}

/// `tps = 12345.678901 (without initial connection time)`.
pub(crate) fn pgbench_tps(output: &str) -> Option<f64> {
    let line = output.lines().find_map(|line| line.strip_prefix("tps = "))?;
    line.split_whitespace().next()?.parse().ok()
}

/// `progress: 5.0 s, 12345.6 tps, lat 0.078 ms stddev 0.050, 0 failed`.
fn pgbench_second(line: &str) -> Option<f64> {
    let (_, rates) = line.strip_prefix("progress: ")?.split_once("s, ")?;
    rates.split_once(" tps")?.0.parse().ok()
}

/// `[Current] NEW_ORDER - Takes(s): 1.0, Count: 25, TPM: 1500.0, …`, told every second.
fn go_tpc_second(line: &str) -> Option<f64> {
    let (_, rest) = line.strip_prefix("[Current] NEW_ORDER - ")?.split_once("TPM: ")?;
    Some(rest.split(',').next()?.trim().parse::<f64>().ok()? / 60.0)
}

/// `runs: 12 in 3456789012 ns`, of which the last counts.
fn runs_per_s(output: &str) -> Option<f64> {
    let line = output.lines().rev().find_map(|line| line.strip_prefix("runs: "))?;
    let (runs, took) = line.strip_suffix(" ns")?.split_once(" in ")?;
    Some(runs.parse::<f64>().ok()? / took.parse::<f64>().ok()? * 1e9)
}

/// `sysbench`, on rows of one table that it draws alike.
#[derive(Debug, Clone, Copy)]
pub struct Sysbench {
    /// Connections.
    pub threads: u32,
    /// How long.
    pub seconds: u32,
    /// Rows of the table, as it was filled.
    pub rows: u64,
}

impl Sysbench {
    /// What it does, `run` or `prepare`, by one of its scripts or a file, for a database at that address.
    pub(crate) fn words(
        &self,
        script: &str,
        what: &str,
        address: Vec<String>,
    ) -> Result<Vec<String>, SceneError> {
        let sysbench = program::find("sysbench", "sysbench")?;
        let own = vec![
            sysbench.to_string_lossy().into_owned(),
            script.to_owned(),
            format!("--table-size={}", self.rows),
            format!("--threads={}", self.threads),
            format!("--time={}", self.seconds),
            "--rand-type=uniform".to_owned(),
            what.to_owned(),
        ];
        Ok([own, address].concat())
    }
}

/// `    transactions:     12345  (1234.50 per sec.)`.
pub(crate) fn sysbench_tps(output: &str) -> Option<f64> {
    let line = output.lines().find_map(|line| line.trim().strip_prefix("transactions:"))?;
    line.split_once('(')?.1.split_whitespace().next()?.parse().ok()
}

/// `redis-benchmark`, one kind of request on random keys.
#[derive(Debug, Clone, Copy)]
pub struct RedisBenchmark {
    /// Connections.
    pub clients: u32,
    /// How many requests in all; this program knows no duration.
    pub requests: u64,
    /// From how many keys one is drawn.
    pub keys: u64,
    /// Bytes of a value.
    pub value_bytes: u32,
    /// Whether to set values rather than get them.
    pub writes: bool,
}

/// `"GET","123456.78","0.1",…` below a line of headings.
pub(crate) fn redis_rps(output: &str) -> Option<f64> {
    let fields = output.lines().filter_map(|line| line.split(',').nth(1));
    fields.filter_map(|field| field.trim_matches('"').parse().ok()).next_back()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::Account;

    #[test]
    fn each_throughput_is_found_in_the_words_of_its_program() {
        let pgbench = "number of failed transactions: 0 (0.000%)\nlatency average = 5.1 ms\n\
                       tps = 12345.678901 (without initial connection time)\n";
        assert_eq!(pgbench_tps(pgbench), Some(12_345.678_901));
        let second = "progress: 5.0 s, 12345.6 tps, lat 0.078 ms stddev 0.050, 0 failed";
        assert_eq!(pgbench_second(second), Some(12_345.6));
        assert_eq!(pgbench_second("tps = 1.0 (without initial connection time)"), None);
        let sysbench = "SQL statistics:\n    transactions:    10022  (1001.94 per sec.)\n    \
                        queries:   10022  (1001.94 per sec.)\n";
        assert_eq!(sysbench_tps(sysbench), Some(1001.94));
        let repeat = "runs: 1 in 500000000 ns\nCOPY 5\nruns: 3 in 1500000000 ns\nCOPY 5\n";
        assert_eq!(runs_per_s(repeat), Some(2.0));
        let redis = "\"test\",\"rps\",\"avg_latency_ms\"\n\"GET\",\"90909.09\",\"0.1\"\n";
        assert_eq!(redis_rps(redis), Some(90909.09));
    }

    /// A load of a shell's: what it prints stands for a benchmark's.
    fn load(scratch: &Scratch, script: &str) -> Result<Load, SceneError> {
        Load::start(scratch, &program::words(["/bin/sh", "-c", script]), 1, SYSBENCH)
    }

    #[test]
    fn a_load_whose_clients_do_not_connect_is_an_error_with_its_words() {
        let scratch = Scratch::new(&Account::own().unwrap()).unwrap();
        let script = "sleep 0.1; echo 'FATAL: error 1156'; exit 1";
        let refused = load(&scratch, script).err().unwrap();
        assert!(matches!(refused, SceneError::Failed { .. }), "{refused:?}");
        assert!(refused.to_string().contains("FATAL: error 1156"), "{refused}");
    }

    #[test]
    fn a_load_that_fails_later_fails_when_it_is_looked_at() {
        let scratch = Scratch::new(&Account::own().unwrap()).unwrap();
        let mut load = load(&scratch, "echo 'Threads started!'; sleep 0.1; exit 3").unwrap();
        while load.check().is_ok() {
            std::thread::sleep(TICK);
        }
        assert!(load.check().unwrap_err().to_string().contains("Threads started!"));
        assert!(matches!(load.finish(), Err(SceneError::Failed { .. })));
    }

    #[test]
    fn an_output_without_throughput_is_not_zero() {
        assert_eq!(pgbench_tps("pgbench: error: connection refused\n"), None);
        assert_eq!(sysbench_tps("FATAL: error 2002\n"), None);
        assert_eq!(redis_rps("\"test\",\"rps\"\n"), None);
    }
}
