//! What is seen between two moments: snapshots at both ends of a window, samples between them.

mod bpf;
mod disk_seconds;
mod disks;
mod faults;
mod frequencies;
mod group_memory;
mod io;
mod other_cpu_users;
mod probes;
mod refusal;
pub mod scheduling_class;
mod send_rates;
mod slots;
#[cfg(feature = "static")]
mod static_names;
mod threads;

pub use faults::sample as sample_faults;
use group_memory::read_groups;
use jiff::Timestamp;
pub use probes::{Observations, Probes};
pub use threads::Threads;
use untax_core::{Database, Reading, Snapshot};
use untax_engines::{Asker, Selection, ask_beforehand, discover};
use untax_host::{Host, facts};

/// Seconds since boot of the host, from `/proc/uptime`; advances by hundredths.
fn uptime(host: &Host) -> Reading<f64> {
    host.text("/proc/uptime")
        .parse("/proc/uptime", |text| text.split_ascii_whitespace().next()?.parse().ok())
}

/// Takes a snapshot: all facts of the host, and the selected databases. Servers are asked while they are counted.
/// Its time is that at which the first database is counted: on an overloaded machine it takes a second to find
/// them all.
///
/// The gap says why there is none: the host's clock or its list of processes could not be read.
pub fn snapshot(host: &Host, asker: &Asker, selection: &Selection) -> Reading<Snapshot> {
    snapshot_of_host(host).and_then(|snapshot| {
        let found = discover(host, &snapshot.host, selection, asker);
        found.map(|found| Snapshot {
            uptime_s: counted_at_s(&found.databases).unwrap_or(snapshot.uptime_s),
            databases: found.databases,
            processes: found.processes,
            kernel_workers: found.kernel_workers,
            sandboxes: found.sandboxes,
            ..snapshot
        })
    })
}

fn counted_at_s(databases: &[Database]) -> Option<f64> {
    databases.iter().filter_map(|database| database.counters.counted_at_s).reduce(f64::min)
}

/// The snapshot with which a window begins: servers of a running host are asked before anything is counted,
/// so that the window does not grow by the time that they take to answer.
pub fn first_snapshot(host: &Host, asker: &Asker, selection: &Selection) -> Reading<Snapshot> {
    if host.is_live() {
        // Not what a capture is to hold: that is read afterwards.
        let now = Host::live();
        ask_beforehand(&now, &facts::read_all(&now), selection, asker);
    }
    snapshot(host, asker, selection)
}

/// Takes a snapshot of the host alone: for when what was selected is gone.
///
/// Its time is that of what it counts, before servers are asked: that takes as long as they make it.
pub fn snapshot_of_host(host: &Host) -> Reading<Snapshot> {
    let facts = facts::read_all(host);
    let now = host.observe("taken_at", || Reading::Present(Timestamp::now()));
    now.and_then(|taken_at| {
        uptime(host).map(|uptime_s| Snapshot {
            groups: read_groups(host, &facts),
            ..Snapshot::of_host(taken_at, uptime_s, facts)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use std::process::{Child, Command};
    use std::time::{Duration, Instant};

    /// A program that is called as a server is, until the end of the test.
    struct Named(Child);

    impl Named {
        fn start(directory: &Path) -> Self {
            let program = directory.join("redis-server");
            std::fs::create_dir_all(directory).unwrap();
            std::fs::copy("/bin/sleep", &program).unwrap();
            Self(Command::new(program).arg("60").spawn().unwrap())
        }
    }

    impl Drop for Named {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    #[test]
    fn a_window_begins_once_a_slow_server_has_answered() {
        let slow = Duration::from_millis(700);
        let answer = r#"{"version":"7","product":null,"connections":null,"accesses":{"absent":"x"},
            "settings":{"port":"7"}}"#;
        let script = format!("sleep {}; echo '{answer}'", slow.as_secs_f64());
        let arguments = vec!["-c".into(), script.into()];
        let asker = Asker::new("/bin/sh", arguments, Duration::from_secs(60));
        let directory = std::env::temp_dir().join(format!("untax-slow-{}", std::process::id()));
        let server = Named::start(&directory);
        let selection = Selection::Pid(server.0.id());
        let host = Host::live();
        let (before_s, since) = (uptime(&host).into_value().unwrap(), Instant::now());
        let snapshot = first_snapshot(&host, &asker, &selection).into_value().unwrap();
        let passed_s = since.elapsed().as_secs_f64();
        let database = &snapshot.databases[0];
        assert_eq!(database.setting("port"), Reading::Present("7".to_owned()));
        let counted_s = database.counters.counted_at_s.unwrap() - before_s;
        // The file counts hundredths.
        let [least_s, most_s] = [slow.as_secs_f64() - 0.01, passed_s + 0.02];
        assert!((least_s..most_s).contains(&counted_s), "counted after {counted_s} s");
        assert_eq!(Some(snapshot.uptime_s), database.counters.counted_at_s);
        // Its answer is used once.
        let again = Asker::new("/bin/false", Vec::new(), Duration::from_secs(60));
        let later = super::snapshot(&host, &again, &selection).into_value().unwrap();
        assert!(later.databases[0].counters.told.value().is_none());
        drop(server);
        std::fs::remove_dir_all(directory).unwrap();
    }
}
