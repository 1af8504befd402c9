//! Loads: the standard benchmark of each engine, run against a scratch server.

use crate::SceneError;
use crate::program;
use crate::scratch::Scratch;
use crate::shell::Shell;
use std::path::PathBuf;
use std::time::Duration;

/// How much longer than its length a load may run. Connecting and ending take time on a busy machine,
/// and the kernel gives up a connection without an answer after 127 s (`tcp_syn_retries`, 6).
const EXTRA_TIME: Duration = Duration::from_secs(180);

/// A load that is running; stopped when dropped.
pub struct Load {
    shell: Shell,
    program: String,
    log: PathBuf,
    deadline: Duration,
    parse: fn(&str) -> Option<f64>,
}

impl Load {
    pub(crate) fn start(
        scratch: &Scratch,
        words: &[String],
        seconds: u32,
        parse: fn(&str) -> Option<f64>,
    ) -> Result<Self, SceneError> {
        let log = scratch.log(words);
        let shell = Shell::run(words, "KILL", &log, &scratch.private(""))?;
        let deadline = Duration::from_secs(seconds.into()) + EXTRA_TIME;
        Ok(Self { shell, program: program::name(words), log, deadline, parse })
    }

    /// Transactions in each second so far; empty for all programs but pgbench.
    pub fn each_second(&self) -> Vec<f64> {
        program::text(&self.log).lines().filter_map(pgbench_second).collect()
    }

    /// Waits for the end of the load. Gives transactions (or requests) per second.
    pub fn finish(self) -> Result<f64, SceneError> {
        let Self { shell, program, log, deadline, parse } = self;
        let output = program::finish(shell, &program, &log, deadline)?;
        parse(&output)
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

/// `sysbench`, reading rows of one table by primary key (`oltp_point_select`).
#[derive(Debug, Clone, Copy)]
pub struct Sysbench {
    /// Connections.
    pub threads: u32,
    /// How long.
    pub seconds: u32,
    /// Rows of the table, as it was filled.
    pub rows: u64,
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
        let redis = "\"test\",\"rps\",\"avg_latency_ms\"\n\"GET\",\"90909.09\",\"0.1\"\n";
        assert_eq!(redis_rps(redis), Some(90909.09));
    }

    #[test]
    fn an_output_without_throughput_is_not_zero() {
        assert_eq!(pgbench_tps("pgbench: error: connection refused\n"), None);
        assert_eq!(sysbench_tps("FATAL: error 2002\n"), None);
        assert_eq!(redis_rps("\"test\",\"rps\"\n"), None);
    }
}
