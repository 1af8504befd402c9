//! SIGKILL at random moments of `untax bench network`: soon after, no network namespace, eBPF program,
//! control group, server, client, file or changed limit of it is left.
//!
//! `cargo test -p untax --test kill_network -- TIMES [SEED]` as root. Without TIMES it says how to run it
//! and does nothing: while other programs make and end namespaces it cannot tell.

#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "it is run by hand, says how it went, and looks at the machine by other ways than the \
              code that it tests"
)]

mod kills;

use kills::{Kill, Outcome, gone, start};
use libbpf_rs::query::ProgInfoIter;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use untax_scenes::Turn;

/// How soon everything must be gone. The kernel takes namespaces down one after another.
const WITHIN: Duration = Duration::from_secs(20);

/// Paths are built in the first seconds; then a Redis starts for each trial.
const LATEST_MS: u64 = 8_000;

/// What is built of namespaces, programs, rules and control groups.
const ARMS: &str = "loopback,bridge,ebpf-routed,nodes-ebpf,services-ebpf-1000,services-iptables-1000,\
                    policies-100,nodes-vxlan";

fn main() -> ExitCode {
    // Labs and other benches make namespaces too.
    let begin = || Ok(Turn::wait()?);
    kills::main("kill_network", begin, |_turn, rng| {
        kill_once(Duration::from_millis(rng.u64(..LATEST_MS)))
    })
}

fn kill_once(after: Duration) -> Outcome<Kill> {
    let before = Things::now();
    let folder = tempfile::tempdir()?;
    let mut words = vec!["bench", "network", "--beside", "--arms", ARMS, "--budget", "60s"];
    words.extend(["--services", "1000", "--rules", "100", "--workloads", "rr,redis-get"]);
    let mut bench = start(folder.path(), &words)?;
    std::thread::sleep(after);
    let there = Things::now().beyond(&before);
    bench.kill()?;
    let killed = Instant::now();
    bench.wait()?;
    let left = gone(killed, WITHIN, || Things::now().beyond(&before));
    let what = format!("killed after {after:.1?}: {}", there.join(", "));
    Ok(Kill { what, there: there.len(), left })
}

/// How many there are of everything that the bench makes.
struct Things(BTreeMap<String, u64>);

impl Things {
    fn now() -> Self {
        let mut things = BTreeMap::new();
        let mut count = |what: &str, many: u64| {
            *things.entry(what.to_owned()).or_insert(0) += many;
        };
        count("namespaces", namespaces());
        let names = ProgInfoIter::default().map(|info| info.name.to_string_lossy().into_owned());
        count("programs", names.filter(|name| name == "route" || name == "balance").count() as u64);
        for directory in ["/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/tmp"] {
            let entries = fs::read_dir(directory).into_iter().flatten().flatten();
            let ours = entries.filter(|e| e.file_name().to_string_lossy().starts_with("untax-lab"));
            count(directory, ours.count() as u64);
        }
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let lines = entries.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
        for line in lines.map(|line| String::from_utf8_lossy(&line).into_owned()) {
            for name in ["__network-", "redis-benchmark", "redis-server"] {
                count("processes", u64::from(line.contains(name)));
            }
        }
        let most = fs::read_to_string("/proc/sys/net/netfilter/nf_conntrack_max");
        let most = most.ok().and_then(|text| text.trim().parse().ok());
        count("nf_conntrack_max", most.unwrap_or(0));
        Self(things)
    }

    /// What there is more of than there was, or less.
    fn beyond(&self, before: &Self) -> Vec<String> {
        let differs = |(what, many): (&String, &u64)| {
            let before = before.0.get(what).copied().unwrap_or(0);
            (*many != before).then(|| format!("{what} {before} -> {many}"))
        };
        self.0.iter().filter_map(differs).collect()
    }
}

/// Network namespaces that a process is in or has open, other than this one's: the kernel removes one that
/// none of them uses, as none of the bench's has a name.
fn namespaces() -> u64 {
    let own = fs::read_link("/proc/self/ns/net").ok();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let used = processes.flat_map(|process| {
        let open = fs::read_dir(process.path().join("fd")).into_iter().flatten().flatten();
        let open = open.map(|file| file.path()).collect::<Vec<_>>();
        open.into_iter().chain([process.path().join("ns/net")])
    });
    let used = used.filter_map(|path| fs::read_link(path).ok());
    let is_namespace = |link: &PathBuf| link.to_string_lossy().starts_with("net:[");
    let others = used.filter(|link| is_namespace(link) && Some(link) != own.as_ref());
    others.collect::<BTreeSet<PathBuf>>().len() as u64
}
