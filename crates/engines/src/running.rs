//! The databases that run, without reading or asking any: for those that only must not disturb them.

use crate::recognition;
use untax_core::Reading;
use untax_host::{Host, process};

/// A database that runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Running {
    /// Its engine's id.
    pub engine: &'static str,
    /// Its main process.
    pub pid: u32,
    /// When that was started, clock ticks since boot.
    pub started_ticks: u64,
    /// All its processes.
    pub pids: Vec<u32>,
    /// CPU time of all of them so far, seconds.
    pub cpu_s: f64,
}

/// All databases that run, in ascending order of pid.
pub fn running(host: &Host) -> Reading<Vec<Running>> {
    process::ticks_per_second(host).and_then(|ticks| {
        recognition::processes(host).map(|table| {
            let one = |pid: u32| {
                let main = table.get(pid)?;
                let pids = table.descendants(pid);
                let each = pids.iter().filter_map(|pid| table.get(*pid)).map(|p| &p.stat);
                let used: u64 = each.map(|stat| stat.user_ticks + stat.system_ticks).sum();
                Some(Running {
                    engine: main.part.as_ref()?.0,
                    pid,
                    started_ticks: main.stat.started_ticks,
                    pids,
                    cpu_s: used as f64 / ticks.max(1) as f64,
                })
            };
            table.mains().filter_map(one).collect()
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use untax_host::Record;

    #[test]
    fn a_server_and_its_processes_are_one_database() {
        let stat = |pid: u32, parent: u32, ticks: u32| {
            format!(
                "{pid} (redis-server) S {parent} 1 1 0 -1 0 0 0 0 0 {ticks} 0 0 0 20 0 1 0 9 0 0 0 0 0"
            )
        };
        let ticks = Reading::Present(100_u64);
        let mut record = Record::default().with_answer("clock_ticks_per_second", &ticks);
        // A child that saves a dump has the command line of its server.
        for (pid, parent, ticks) in [(10, 1, 100), (11, 10, 50)] {
            record = record
                .with_file(&format!("/proc/{pid}/stat"), &stat(pid, parent, ticks))
                .with_link(&format!("/proc/{pid}/exe"), "/usr/bin/redis-server")
                .with_file(&format!("/proc/{pid}/cmdline"), "redis-server 127.0.0.1:6379\0");
        }
        let found = running(&Host::from_record(record)).into_value().unwrap_or_default();
        let [redis] = &found[..] else { panic!("{found:?}") };
        assert_eq!((redis.engine, redis.pid, &redis.pids[..]), ("redis", 10, &[10, 11][..]));
        assert!((redis.cpu_s - 1.5).abs() < 1e-9, "{redis:?}");
    }
}
