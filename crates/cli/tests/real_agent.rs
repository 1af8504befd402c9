//! `untax agent` beside a real PostgreSQL and a real Prometheus, and what it survives.

#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test looks at the machine by other ways than the code that it tests"
)]

mod support;

use serde_json::Value;
use std::fs::Permissions;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use support::Ran;
use support::certificates::Certificates;
use support::prometheus::{Prometheus, programs};
use untax_agent::{AskError, Bounds, Client};
use untax_scenes::{Pgbench, Postgres, Runtime, SceneError};

const BUFFERS: [(&str, &str); 2] = [("shared_buffers", "64MB"), ("huge_pages", "off")];
const LOAD: Pgbench =
    Pgbench { clients: 2, seconds: 300, writes: true, without_hot_rows: false, reconnect: false };
const BOUNDS: Bounds = Bounds::within(Duration::from_secs(20));

/// Longer than anything here takes, the age from which a database is told included.
const LATE: Duration = Duration::from_secs(180);

/// Makes the state directory a filesystem that is full.
const FULL: &str = "mkdir -p state && mount -t tmpfs -o size=64k untax state && \
                    ! head -c 1M /dev/zero >state/full 2>/dev/null; exec \"$@\"";

struct Agent {
    child: Child,
    address: String,
    _folder: tempfile::TempDir,
}

impl Agent {
    fn start(listen: &str) -> Self {
        Self::start_with(listen, &[])
    }

    fn start_with(listen: &str, words: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation", "private", "sh", "-c", FULL, "sh"]);
        command.arg(env!("CARGO_BIN_EXE_untax")).args(["--state-dir", "state", "agent"]);
        command.args(["--window", "1s", "--node", "node-1", "--listen", listen]);
        command.args(words);
        command.current_dir(folder.path()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let first = lines.next().unwrap().unwrap();
        let address = first.split("://").nth(1).and_then(|rest| rest.split('/').next());
        let address = address.unwrap_or_else(|| panic!("{first}")).to_owned();
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, address, _folder: folder }
    }

    fn get(&self, path: &str) -> Result<String, AskError> {
        Client::default().ask(&format!("http://{}", self.address), path, BOUNDS)
    }

    fn metrics(&self) -> String {
        self.get("/metrics").unwrap()
    }

    /// The value of the first series that begins so.
    fn value(&self, series: &str) -> Option<f64> {
        let text = self.metrics();
        let line = text.lines().find(|line| line.starts_with(series))?.to_owned();
        line.rsplit(' ').next()?.parse().ok()
    }

    fn windows(&self) -> f64 {
        self.value(r#"untax_agent_windows_total{node="node-1",result="checked"}"#).unwrap()
    }

    /// The most memory that it ever had resident, KiB.
    fn peak_kib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.split_whitespace().next().unwrap().parse().unwrap()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        self.child.wait().unwrap();
    }
}

/// Waits until something is so.
fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(begun.elapsed() < LATE, "not seen: {what}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn an_agent_tells_prometheus_what_its_last_check_says_whatever_is_sent_to_it() {
    support::real(|| {
        let mut postgres = Postgres::start(Runtime::Host, &BUFFERS)?;
        postgres.pgbench_fill(1, 100)?;
        let load = postgres.pgbench(&LOAD)?;
        let agent = Agent::start("127.0.0.1:0");
        let rules = deployed("chart/untax/rules.yaml");
        let prometheus = Prometheus::scraping(&agent.address, &[&rules])?;
        survives_its_clients(&agent);
        let name = name_of(&agent, postgres.pid().unwrap());
        until("series of the database", || {
            let rows = prometheus.rows(&format!("untax_tax_ratio{{database={name:?}}}"));
            (!rows.is_empty()).then_some(())
        });
        until("a window that both tell", || rows_equal(&agent, &prometheus, &name).then_some(()));
        until("active time that grows", || {
            let grown = prometheus.rows("increase(untax_database_active_seconds_total[30s]) > 0");
            grown.iter().any(|(labels, _)| labels["database"] == name.as_str()).then_some(())
        });
        assert_eq!(prometheus.rows("up"), [(prometheus.rows("up")[0].0.clone(), 1.0)]);
        fleet_is_told(&agent, &prometheus, &name);
        bench_is_marked(&agent, &name);
        queries_have_rows(&prometheus, &rules)?;
        drop(load);
        postgres.stop();
        until("end of the series", || {
            (!agent.metrics().contains(&format!("database={name:?}"))).then_some(())
        });
        Ok(())
    });
}

/// The path of a file below deploy/.
fn deployed(file: &str) -> String {
    format!("{}/../../deploy/{file}", env!("CARGO_MANIFEST_DIR"))
}

/// `untax fleet` has the database at its top, from Prometheus and from the agent itself; a wrong source is
/// named.
fn fleet_is_told(agent: &Agent, prometheus: &Prometheus, name: &str) {
    let fleet = |words: &[&str]| {
        let line = [&["fleet", "--json"], words].concat();
        Ran::from(&Command::new(env!("CARGO_BIN_EXE_untax")).args(line).output().unwrap())
    };
    for source in [
        &["--prometheus", &prometheus.url, "--since", "10s"][..],
        &["--prometheus", &prometheus.url],
        &["--agents", &agent.address],
    ] {
        until("fleet with a loss", || {
            let told = fleet(source).json();
            let first = told["databases"].as_array().unwrap().first()?.clone();
            assert_eq!(told["silent"], serde_json::json!([]));
            let loses = first["name"] == name && first["lost_s_per_s"].as_f64()? > 0.0;
            (loses && !told["change"].is_null()).then_some(())
        });
    }
    let one_is_gone = format!("{},127.0.0.1:1", agent.address);
    let told = fleet(&["--agents", &one_is_gone]);
    assert!(told.code == 1 && told.json()["silent"][0]["node"] == "127.0.0.1:1", "{}", told.stdout);
    for (source, words) in [
        (["--prometheus", "http://127.0.0.1:1"], "does not answer"),
        (["--prometheus", "ftp://x"], "http://HOST:PORT"),
        (["--prometheus", &format!("http://{}", agent.address)], "answers 404"),
        (["--agents", "127.0.0.1:1"], "none of the agents answers"),
    ] {
        let refused = fleet(&source);
        assert!(refused.code == 2 && refused.stderr.contains(words), "{}", refused.stderr);
    }
}

/// Windows beside a bench are marked, and add to no tax of the database and not to its active time; those after it do.
fn bench_is_marked(agent: &Agent, name: &str) {
    let folder = tempfile::tempdir().unwrap();
    let mut bench = Command::new(env!("CARGO_BIN_EXE_untax"))
        .args(BENCH.split(' '))
        .arg("--state-dir")
        .arg(folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut looks = Vec::new();
    let mut marked_checks = 0;
    while bench.try_wait().unwrap().is_none() {
        looks.push(Look::of(&agent.metrics(), name));
        let last: Value = serde_json::from_str(&agent.get("/last").unwrap()).unwrap();
        marked_checks += usize::from(last["beside_trials"] == serde_json::json!(["bench"]));
        std::thread::sleep(Duration::from_millis(100));
    }
    assert!(bench.wait().unwrap().success() && marked_checks > 0, "{looks:?}");
    let (first, last) = (looks.first().unwrap(), looks.last().unwrap());
    assert!(last.is_marked && last.beside > first.beside, "{looks:?}");
    for pair in looks.windows(2).filter(|pair| pair[0].checked == pair[1].checked) {
        assert!((pair[0].active_s - pair[1].active_s).abs() < 1e-9, "{pair:?}");
    }
    until("time of the database after the bench", || {
        let now = Look::of(&agent.metrics(), name);
        (!now.is_marked && now.active_s > last.active_s).then_some(())
    });
}

/// Some seconds of a bench that wants no huge pages and no server.
const BENCH: &str = "bench pages --rows 100000 --row-bytes 128 --pages 4k,thp --connections 1 --trials 3 --trial-seconds 1";

/// Answers of an agent at one time.
#[derive(Debug)]
struct Look {
    active_s: f64,
    /// Numbers of windows.
    checked: u64,
    beside: u64,
    is_marked: bool,
}

impl Look {
    fn of(metrics: &str, name: &str) -> Self {
        let value = |words: &[&str]| -> f64 {
            let mut lines = metrics.lines();
            let line = lines.find(|line| words.iter().all(|word| line.contains(word)));
            line.and_then(|line| line.rsplit(' ').next()?.parse().ok()).unwrap_or(0.0)
        };
        let windows = |result| value(&["untax_agent_windows_total{", result]) as u64;
        let database = format!("database={name:?}");
        Self {
            active_s: value(&["untax_database_active_seconds_total{", &database]),
            checked: windows("\"checked\""),
            beside: windows("\"beside-trial\""),
            is_marked: metrics
                .contains("untax_agent_beside_trial{node=\"node-1\",command=\"bench\"} 1"),
        }
    }
}

/// Every query of dashboards has rows, and Prometheus' own tool finds nothing wrong with the rules.
fn queries_have_rows(prometheus: &Prometheus, rules: &str) -> Result<(), SceneError> {
    let checked =
        Command::new(programs()?.join("promtool")).args(["check", "rules", rules]).output();
    let checked = checked.unwrap();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
    let mut queries = Vec::new();
    for file in std::fs::read_dir(deployed("dashboards")).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        let board: Value = serde_json::from_str(&text).unwrap();
        for panel in board["panels"].as_array().unwrap() {
            let query = panel["targets"][0]["expr"].as_str().unwrap();
            let query = query.replace("$__rate_interval", "10s");
            queries.push(query.replace("$node", ".*").replace("$database", ".*"));
        }
    }
    assert!(queries.len() > 20, "{queries:?}");
    let begun = Instant::now();
    loop {
        queries.retain(|query| prometheus.rows(query).is_empty());
        if queries.is_empty() {
            return Ok(());
        }
        assert!(begun.elapsed() < LATE, "without rows: {queries:#?}");
        std::thread::sleep(Duration::from_secs(1));
    }
}

/// Garbage, slow clients, a port that is taken, scrapes as fast as they come, a kill.
fn survives_its_clients(agent: &Agent) {
    until("first window", || agent.get("/readyz").is_ok().then_some(()));
    let mut slow: Vec<TcpStream> =
        (0..40).map(|_| TcpStream::connect(&agent.address).unwrap()).collect();
    for stream in &mut slow {
        let _ = stream.write_all(b"GET /metr");
    }
    let long = vec![0; 100_000];
    for garbage in [&b"\x16\x03\x01\x02\x00"[..], &long, b"GET\n\n\n", b"\r\n\r\n"] {
        let mut stream = TcpStream::connect(&agent.address).unwrap();
        let _ = stream.write_all(garbage);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 4"), "{answer:?}");
    }
    let taken = Command::new(env!("CARGO_BIN_EXE_untax"))
        .args(["agent", "--listen", &agent.address])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&taken.stderr).into_owned();
    assert!(taken.status.code() == Some(2) && said.contains("--listen"), "{said}");
    agent.metrics();
    let before_kib = agent.peak_kib();
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(10) {
        agent.metrics();
    }
    // Sixteen connections with a stack each are far below this.
    assert!(agent.peak_kib() < before_kib + 16 * 1024, "{before_kib} → {}", agent.peak_kib());
    let windows = agent.windows();
    until("windows go on", || (agent.windows() > windows).then_some(()));
    drop(slow);
}

/// The name that an agent gives to the database with this process.
fn name_of(agent: &Agent, pid: u32) -> String {
    until("database in the last check", || {
        let last: Value = serde_json::from_str(&agent.get("/last").ok()?).unwrap();
        let found = last["databases"].as_array()?.iter().find(|of| of["pid"] == pid)?.clone();
        Some(found["name"].as_str()?.to_owned())
    })
}

/// Whether Prometheus scraped the window of the last check; then its rows must be what that says.
fn rows_equal(agent: &Agent, prometheus: &Prometheus, name: &str) -> bool {
    let of = format!("{{database={name:?}}}");
    let ended = |rows: Vec<(Value, f64)>| rows.first().map_or(0.0, |row| row.1);
    let scraped = ended(prometheus.rows("untax_agent_last_window_timestamp_seconds"));
    let taxes = prometheus.rows(&format!("untax_tax_ratio{of}"));
    let unmeasured = prometheus.rows(&format!("untax_unmeasured{of}"));
    let still = ended(prometheus.rows("untax_agent_last_window_timestamp_seconds"));
    let last: Value = serde_json::from_str(&agent.get("/last").unwrap()).unwrap();
    let taken_at: jiff::Timestamp = last["taken_at"].as_str().unwrap().parse().unwrap();
    let taken_s = taken_at.as_millisecond() as f64 / 1e3;
    if taxes.is_empty() || (taken_s - scraped).abs() > 1e-3 || (still - scraped).abs() > 1e-3 {
        return false;
    }
    let databases = last["databases"].as_array().unwrap();
    let checked = databases.iter().find(|of| of["name"] == name).unwrap();
    let shares: Vec<(&Value, f64)> = checked["findings"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|finding| Some((&finding["rule"], finding["tax"]["share"].as_f64()?)))
        .collect();
    assert_eq!(shares.len(), taxes.len(), "{shares:?} {taxes:?}");
    for (labels, value) in &taxes {
        let (_, share) = shares.iter().find(|(rule, _)| **rule == labels["rule"]).unwrap();
        assert!((share - value).abs() < 1e-9, "{labels}: {share} {value}");
    }
    for (labels, _) in unmeasured {
        let gaps = checked["unmeasured"].as_array().unwrap();
        let same = |gap: &&Value| gap["rule"] == labels["rule"] && gap["id"] == labels["id"];
        assert!(gaps.iter().any(|gap| same(&gap)), "{labels}");
    }
    true
}

#[test]
fn an_agent_that_is_killed_leaves_nothing_and_starts_again_at_the_same_address() {
    support::real(|| {
        let agent = Agent::start("127.0.0.1:0");
        until("first window", || agent.get("/last").ok());
        let address = agent.address.clone();
        drop(agent);
        let again = Agent::start(&address);
        until("first window again", || again.get("/last").ok());
        assert!(again.get("/healthz").unwrap().starts_with("ok"));
        let told = Command::new(env!("CARGO_BIN_EXE_untax"))
            .args(["agent", "last", "--from", &address])
            .output()
            .unwrap();
        let last: Value = serde_json::from_slice(&told.stdout).unwrap();
        assert_eq!((&last["schema"], &last["node"]), (&"untax.check/1".into(), &"node-1".into()));
        drop(again);
        let refused = Command::new(env!("CARGO_BIN_EXE_untax"))
            .args(["agent", "last", "--from", &address])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(refused.status.code() == Some(2) && said.contains("--from"), "{said}");
        Ok(())
    });
}

#[test]
fn prometheus_and_fleet_read_an_agent_by_tls_before_and_after_its_certificate_is_replaced() {
    support::real(|| {
        let mut files = Certificates::new();
        files.renew();
        let (certificate, key) = (files.path("tls.crt"), files.path("tls.key"));
        let words = ["--tls-cert", &certificate, "--tls-key", &key, "--label", "cluster=eu 1"];
        let agent = Agent::start_with("127.0.0.1:0", &words);
        until("first window", || agent.get("/last").ok());
        let address = format!("https://{}", agent.address);
        let fleet = |ca: &str| {
            let line = ["fleet", "--json", "--agents", &address, "--ca", ca];
            Ran::from(&Command::new(env!("CARGO_BIN_EXE_untax")).args(line).output().unwrap())
        };
        let old = files.path("old.crt");
        std::fs::copy(files.path("last.crt"), &old).unwrap();
        assert_eq!(fleet(&old).code, 0);
        files.renew();
        let prometheus =
            Prometheus::scraping_by_tls(&agent.address, files.path("last.crt").as_ref())?;
        until("a scrape by TLS with the new certificate", || {
            let rows = prometheus.rows("untax_agent_up{cluster=\"eu 1\"}");
            rows.iter().any(|(_, value)| *value > 0.5).then_some(())
        });
        let refused = fleet(&old);
        assert!(refused.code == 2 && refused.stderr.contains("--ca"), "{}", refused.stderr);
        assert_eq!(
            (fleet(&files.path("last.crt")).code, fleet(&files.path("all.crt")).code),
            (0, 0)
        );
        assert_eq!(prometheus.rows("count_over_time(up[1h]) - sum_over_time(up[1h]) > 0"), []);
        Ok(())
    });
}

/// Who runs it, and what it is told.
const HOOK: &str = "#!/bin/sh\necho \"$(id -u) $(id -G) $*\" >>\"${0%/*}/told/all\"\n";

#[test]
#[ignore = "long: a Redis that grows until its memory is short, by untax lab"]
fn a_hook_is_told_of_a_redis_whose_memory_runs_out() {
    if !rustix::process::geteuid().is_root() {
        assert!(std::env::var_os("UNTAX_REQUIRE_REAL").is_none(), "needs root");
        return;
    }
    // The hook's user must reach it.
    let folder =
        tempfile::Builder::new().permissions(Permissions::from_mode(0o755)).tempdir().unwrap();
    let (hook, told) = (folder.path().join("hook"), folder.path().join("told"));
    std::fs::write(&hook, HOOK).unwrap();
    std::fs::create_dir(&told).unwrap();
    for (path, mode) in [(&hook, 0o755), (&told, 0o777)] {
        std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }
    let agent = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_untax"));
        command
            .args(["agent", "--window", "1s", "--listen", "127.0.0.1:0", "--oom-hook"])
            .arg(&hook);
        command.args(words).env_remove("INVOCATION_ID").stderr(Stdio::null());
        command
    };
    let alone = agent(&["--oom-hook-user", "nobody"]).status().unwrap();
    assert_eq!(alone.code(), Some(3), "not by hand");
    let mut child =
        agent(&["--oom-hook-user", "nobody"]).env("INVOCATION_ID", "a-test").spawn().unwrap();
    let lab = Command::new(env!("CARGO_BIN_EXE_untax"))
        .args(["lab", "run", "oom-near", "--engine", "redis", "--window", "3s", "--json"])
        .output()
        .unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(lab.status.success(), "{}", String::from_utf8_lossy(&lab.stderr));
    let lines = std::fs::read_to_string(told.join("all")).unwrap();
    for line in lines.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let [uid, groups, name, seconds] = words[..] else { panic!("{line}") };
        assert_eq!((uid, groups), ("65534", "65534"), "as nobody and in no other group");
        assert!(name.starts_with("redis@") && seconds.parse::<u32>().is_ok(), "{line}");
    }
}
