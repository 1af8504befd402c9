//! A fleet of many agents, simulated, before a real Prometheus: its series, its memory, and how long `untax fleet`
//! takes.
//!
//! One agent looks at two real servers once; what it tells is served for each node under that node's name, its
//! counters growing from scrape to scrape. Nothing is compared, so there are no pairs for `untax_trials`.

use super::output::{Output, command, machine};
use crate::child::mortal;
use anyhow::{Context, bail};
use clap::Args;
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use untax_agent::{Bounds, Client};
use untax_core::stats;
use untax_scenes::{Pgbench, Postgres, Runtime, Turn};

/// What to measure.
#[derive(Debug, Args)]
pub struct Options {
    /// Nodes, each with two databases
    #[arg(long, default_value_t = 5000)]
    nodes: u32,
    /// Seconds between two scrapes of a node
    #[arg(long, default_value_t = 30)]
    scrape_s: u32,
    /// For how long Prometheus scrapes before it is asked, seconds: recording rules want some scrapes
    #[arg(long, default_value_t = 240)]
    settle_s: u64,
    /// Questions of each kind
    #[arg(long, default_value_t = 5)]
    questions: u32,
    /// Prometheus ends the bench when it has more memory resident than this, MiB
    #[arg(long, default_value_t = 9000)]
    most_mib: u64,
    /// The directory with prometheus (see scripts/prometheus.sh)
    #[arg(long, value_name = "DIR")]
    prometheus: PathBuf,
    /// The program: that of make dist, say
    #[arg(long, value_name = "FILE")]
    untax: PathBuf,
    #[command(flatten)]
    output: Output,
}

/// The name of the node in the text that all nodes share.
const NODE: &str = "untax-node-of-all";

const LOAD: Pgbench =
    Pgbench { clients: 2, seconds: 60, writes: true, without_hot_rows: false, reconnect: false };

const BOUNDS: Bounds = Bounds::within(Duration::from_secs(60));

/// Runs the bench and writes the result.
pub fn run(options: &Options) -> anyhow::Result<()> {
    options.output.prepare()?;
    let _turn = Turn::wait()?;
    let text = exposition(&options.untax)?;
    let series = text.lines().filter(|line| !line.starts_with('#')).count();
    let simulator = serve(text.clone(), Duration::from_secs(u64::from(options.scrape_s)))?;
    let folder = tempfile::tempdir()?;
    let prometheus = Prometheus::start(options, folder.path(), simulator)?;
    prometheus.settle(options)?;
    let up = prometheus.number("count(up == 1)")?;
    let head: Value = serde_json::from_str(&prometheus.ask("/api/v1/status/tsdb")?)?;
    let recorded = prometheus.asked(options, &["--top", "20"])?;
    // A store may take longer for these than fleet waits, and that is a result, too.
    let raw = prometheus.asked(options, &["--top", "20", "--since", "10m"]);
    let raw_words = raw.as_ref().map_or_else(|why| format!("none: {why:#}"), |raw| words(raw));
    let rows = [
        ("nodes that are scraped", format!("{up:.0} of {}", options.nodes)),
        ("series of a node, two databases in it", series.to_string()),
        ("text of a scrape", format!("{} KiB", text.len() >> 10)),
        ("series in Prometheus", head["data"]["headStats"]["numSeries"].to_string()),
        ("memory of Prometheus, resident at most", format!("{} MiB", prometheus.peak_mib()?)),
        ("untax fleet --top 20, by recording rules", words(&recorded)),
        ("untax fleet --top 20, by the counters of ten minutes", raw_words),
    ];
    let rows: String = rows.iter().map(|(name, value)| format!("| {name} | {value} |\n")).collect();
    let page = format!(
        "# How large a fleet does Prometheus carry?\n\nSimulated agents, a scrape every {} s; {}. `{}`\n\n\
         | | measured |\n|---|---|\n{rows}",
        options.scrape_s,
        machine(),
        command()
    );
    options.output.write("fleet.md", &page)?;
    options
        .output
        .write("fleet.json", &json!({"recorded_s": recorded, "raw_s": raw.ok()}).to_string())?;
    eprintln!("{page}");
    Ok(())
}

fn words(seconds: &[f64]) -> String {
    let most = seconds.iter().copied().fold(0.0, f64::max);
    let median = stats::median(seconds).unwrap_or(f64::NAN);
    format!("{median:.2} s in the median, {most:.2} s at most")
}

/// What one agent tells of two servers under load.
fn exposition(untax: &Path) -> anyhow::Result<String> {
    let mut servers = Vec::new();
    let mut loads = Vec::new();
    for _ in 0..2 {
        let postgres = Postgres::start(Runtime::Host, &[("shared_buffers", "32MB")])?;
        postgres.pgbench_fill(1, 100)?;
        loads.push(postgres.pgbench(&LOAD)?);
        servers.push(postgres);
    }
    let mut command = mortal(untax);
    command.args(["agent", "--once", "--window", "3s", "--node", NODE]);
    let output = command.output().with_context(|| untax.display().to_string())?;
    if !output.status.success() {
        bail!(
            "the agent ended with {}: {}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Answers `/NUMBER` with the text of that node, in threads that end with this program.
fn serve(text: String, period: Duration) -> anyhow::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let (text, begun) = (Arc::new(text), Instant::now());
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let text = Arc::clone(&text);
            let scrape = 1.0 + begun.elapsed().as_secs_f64() / period.as_secs_f64();
            std::thread::spawn(move || answer(&stream, &text, scrape));
        }
    });
    Ok(address)
}

fn answer(mut stream: &TcpStream, text: &str, scrape: f64) -> Option<()> {
    let mut lines = BufReader::new(stream.try_clone().ok()?).lines();
    loop {
        let request = lines.next()?.ok()?;
        let node = request.split_whitespace().nth(1)?.trim_start_matches('/').to_owned();
        while !lines.next()?.ok()?.is_empty() {}
        let body = grown(text, scrape).replace(NODE, &format!("node-{node}"));
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: application/openmetrics-text; version=1.0.0\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).ok()?;
        stream.write_all(body.as_bytes()).ok()?;
    }
}

/// The text with its counters so many times as large, and the time of its window now.
fn grown(text: &str, scrape: f64) -> String {
    let now_s = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default().as_secs_f64();
    let line = |line: &str| {
        let is_counter = line.split(['{', ' ']).next().is_some_and(|name| name.ends_with("_total"));
        let parts = line.rsplit_once(' ').filter(|_| !line.starts_with('#'));
        match parts.and_then(|(series, value)| Some((series, value.parse::<f64>().ok()?))) {
            Some((series, value)) if is_counter => format!("{series} {}\n", value * scrape),
            Some((series, _)) if series.starts_with("untax_agent_last_window") => {
                format!("{series} {now_s}\n")
            }
            _ => format!("{line}\n"),
        }
    };
    text.lines().map(line).collect()
}

/// Ended when dropped.
struct Prometheus {
    child: Child,
    url: String,
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Prometheus {
    fn start(options: &Options, folder: &Path, simulator: SocketAddr) -> anyhow::Result<Self> {
        let target = |node: u32| {
            json!({"targets": [simulator.to_string()],
                   "labels": {"__metrics_path__": format!("/{node}"), "instance": format!("node-{node}")}})
        };
        let targets: Vec<Value> = (0..options.nodes).map(target).collect();
        fs::write(folder.join("targets.json"), Value::from(targets).to_string())?;
        let rules = fs::canonicalize("deploy/chart/untax/rules.yaml")
            .context("run it in the source tree")?;
        let configuration = format!(
            "global: {{scrape_interval: {0}s, scrape_timeout: {0}s, evaluation_interval: 60s}}\nrule_files: ['{1}']\n\
             scrape_configs:\n  - {{job_name: untax, honor_labels: true, file_sd_configs: [{{files: ['{2}']}}]}}\n",
            options.scrape_s,
            rules.display(),
            folder.join("targets.json").display()
        );
        let file = folder.join("prometheus.yml");
        fs::write(&file, configuration)?;
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let mut command: Command = mortal(options.prometheus.join("prometheus"));
        command.arg(format!("--config.file={}", file.display()));
        command.arg(format!("--storage.tsdb.path={}", folder.join("data").display()));
        command.arg(format!("--web.listen-address={port}"));
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let child = child.context("no prometheus; run scripts/prometheus.sh")?;
        Ok(Self { child, url: format!("http://{port}") })
    }

    /// The most memory that it ever had resident.
    fn peak_mib(&self) -> anyhow::Result<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        Ok(kib.context("no VmHWM")? >> 10)
    }

    fn settle(&self, options: &Options) -> anyhow::Result<()> {
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(options.settle_s) {
            std::thread::sleep(Duration::from_secs(1));
            let peak_mib = self.peak_mib().context("Prometheus ended")?;
            if peak_mib > options.most_mib {
                bail!(
                    "Prometheus has {peak_mib} MiB after {} s: fewer --nodes",
                    begun.elapsed().as_secs()
                );
            }
        }
        Ok(())
    }

    fn ask(&self, path: &str) -> anyhow::Result<String> {
        Ok(Client::default().ask(&self.url, path, BOUNDS)?)
    }

    /// The first value of a query.
    fn number(&self, query: &str) -> anyhow::Result<f64> {
        let query: String = query.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let answer = self.ask(&format!("/api/v1/query?query={query}"))?;
        let answer: Value = serde_json::from_str(&answer)?;
        let value = answer["data"]["result"][0]["value"][1].as_str().context("no row")?;
        Ok(value.parse()?)
    }

    /// How long `untax fleet` takes, seconds, each time.
    fn asked(&self, options: &Options, words: &[&str]) -> anyhow::Result<Vec<f64>> {
        let one = |_| {
            let begun = Instant::now();
            let mut command = mortal(&options.untax);
            let output = command
                .args(["fleet", "--json", "--prometheus", &self.url])
                .args(words)
                .output()?;
            let seconds = begun.elapsed().as_secs_f64();
            let fleet: Value = serde_json::from_slice(&output.stdout)
                .with_context(|| String::from_utf8_lossy(&output.stderr).into_owned())?;
            if fleet["databases"].as_array().is_none_or(Vec::is_empty) {
                bail!("the fleet has no database that loses anything: a longer --settle-s");
            }
            Ok(seconds)
        };
        (0..options.questions).map(one).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_grow_and_gauges_stay() {
        let text = "# TYPE a counter\na_total{node=\"x y\"} 2\nb{node=\"x\"} 2\n\
                    untax_agent_last_window_timestamp_seconds{node=\"x\"} 1\n# EOF\n";
        let grown = grown(text, 1.5);
        let lines: Vec<&str> = grown.lines().collect();
        assert_eq!(lines[..3], ["# TYPE a counter", "a_total{node=\"x y\"} 3", "b{node=\"x\"} 2"]);
        let now = lines[3].rsplit_once(' ').unwrap().1.parse::<f64>().unwrap();
        assert!(now > 1e9 && lines[4] == "# EOF");
    }
}
