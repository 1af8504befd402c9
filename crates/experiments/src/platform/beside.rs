//! Busy databases that this bench did not start: it would disturb them, and they it.

use std::time::Duration;
use untax_core::Reading;
use untax_engines::{Running, running};
use untax_host::Host;
use untax_trials::{Interrupt, Interrupted};

/// How long databases are looked at.
const LOOK: Duration = Duration::from_millis(500);

/// CPUs from which a database counts as busy. Idle servers of PostgreSQL, MariaDB and Redis take less than
/// 0.01 (seen in `/proc/PID/stat` of Debian's versions), and a tick of 10 ms is 0.02 of the look.
const BUSY_CPUS: f64 = 0.05;

/// The busy databases, in words.
pub(crate) fn busy(host: &Host, interrupt: &Interrupt) -> Result<Vec<String>, Interrupted> {
    let before = running(host);
    if before.value().is_none_or(Vec::is_empty) {
        return Ok(Vec::new());
    }
    interrupt.sleep(LOOK)?;
    Ok(between(&before, &running(host), LOOK))
}

fn between(
    before: &Reading<Vec<Running>>,
    after: &Reading<Vec<Running>>,
    look: Duration,
) -> Vec<String> {
    let (Reading::Present(before), Reading::Present(after)) = (before, after) else {
        return Vec::new();
    };
    let busy = after.iter().filter_map(|now| {
        let same = |then: &&Running| then.pid == now.pid && then.started_ticks == now.started_ticks;
        let used_s = now.cpu_s - before.iter().find(same)?.cpu_s;
        let cpus = used_s / look.as_secs_f64();
        (cpus > BUSY_CPUS).then(|| format!("{} {} ({cpus:.2} CPUs)", now.engine, now.pid))
    });
    busy.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_databases_that_use_cpus_are_busy() {
        let at = |cpu_s: f64, started_ticks| Running {
            engine: "an-engine",
            pid: 7,
            started_ticks,
            pids: vec![7],
            cpu_s,
        };
        let busy = |before, after| {
            between(&Reading::Present(vec![before]), &Reading::Present(vec![after]), LOOK)
        };
        assert_eq!(busy(at(1.0, 5), at(1.25, 5)), ["an-engine 7 (0.50 CPUs)"]);
        assert!(busy(at(1.0, 5), at(1.01, 5)).is_empty());
        assert!(busy(at(1.0, 5), at(9.0, 6)).is_empty(), "another process with its number");
    }
}
