//! A Prometheus of Debian's that scrapes one agent, and what it answers.

use serde_json::Value;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use untax_agent::{Bounds, Client};
use untax_scenes::SceneError;

const BOUNDS: Bounds = Bounds::within(Duration::from_secs(10));

/// Longer than it takes to start on a busy machine.
const STARTED: Duration = Duration::from_secs(60);

/// One that runs until this is dropped.
pub struct Prometheus {
    child: Child,
    pub url: String,
    folder: TempDir,
}

/// Where `scripts/prometheus.sh` unpacks it.
pub fn programs() -> Result<PathBuf, SceneError> {
    let missing = || SceneError::Missing {
        program: "prometheus".to_owned(),
        package: "prometheus, or scripts/prometheus.sh CACHE".to_owned(),
    };
    let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache/untax"));
    let cache = std::env::var_os("UNTAX_CACHE").map(PathBuf::from).or_else(home);
    let folder = cache.ok_or_else(missing)?.join("prometheus");
    if folder.join("promtool").exists() { Ok(folder) } else { Err(missing()) }
}

impl Prometheus {
    /// Starts one that scrapes each second; `rules` are files of rules.
    pub fn scraping(address: &str, rules: &[&str]) -> Result<Self, SceneError> {
        Self::start(address, rules, "")
    }

    /// Starts one that scrapes by TLS and trusts the CAs in this file.
    pub fn scraping_by_tls(address: &str, ca: &std::path::Path) -> Result<Self, SceneError> {
        let tls = format!("    scheme: https\n    tls_config: {{ca_file: '{}'}}\n", ca.display());
        Self::start(address, &[], &tls)
    }

    fn start(address: &str, rules: &[&str], how: &str) -> Result<Self, SceneError> {
        let folder = tempfile::tempdir().unwrap();
        let names: Vec<String> = rules.iter().map(|file| format!("{file:?}")).collect();
        let configuration = format!(
            "global: {{scrape_interval: 1s, evaluation_interval: 1s}}\nrule_files: [{}]\n\
             scrape_configs:\n  - job_name: untax\n    honor_labels: true\n    \
             static_configs: [{{targets: ['{address}']}}]\n{how}",
            names.join(", ")
        );
        let path = folder.path().join("prometheus.yml");
        std::fs::write(&path, configuration).unwrap();
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let mut command = Command::new(programs()?.join("prometheus"));
        command.arg(format!("--config.file={}", path.display()));
        command.arg(format!("--storage.tsdb.path={}", folder.path().join("data").display()));
        command.arg(format!("--web.listen-address={port}")).env("GOMAXPROCS", "1");
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let prometheus = Self { child, url: format!("http://{port}"), folder };
        let begun = Instant::now();
        while Client::default().ask(&prometheus.url, "/-/ready", BOUNDS).is_err() {
            assert!(begun.elapsed() < STARTED, "Prometheus does not get ready");
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(prometheus)
    }

    /// The rows of a query: labels and value.
    pub fn rows(&self, query: &str) -> Vec<(Value, f64)> {
        let path = format!("/api/v1/query?query={}", encoded(query));
        let answer = Client::default().ask(&self.url, &path, BOUNDS).unwrap();
        let answer: Value = serde_json::from_str(&answer).unwrap();
        let rows = answer["data"]["result"].as_array().unwrap_or_else(|| panic!("{answer}"));
        let row = |row: &Value| {
            (row["metric"].clone(), row["value"][1].as_str().unwrap().parse().unwrap())
        };
        rows.iter().map(row).collect()
    }

    /// Where its files are.
    pub fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }
}

fn encoded(query: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric();
    let one =
        |byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    query.bytes().map(one).collect()
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}
