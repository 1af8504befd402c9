//! What a database has counted so far, summed over its processes.

use crate::clock;
use crate::database_view::DatabaseView;
use untax_core::Reading::{self, Absent, Failed, Present};
use untax_core::Seconds;
use untax_core::database::Counters;
use untax_host::process;

/// Sums the counters of all processes.
///
/// Time of processes that ended is not lost: whoever waited for them carries it. Time of threads
/// that ended is in the `stat` of their process, in whole clock ticks, but not in the `schedstat`
/// of any living thread; hence the larger of the two.
pub(crate) fn read(view: &DatabaseView) -> Counters {
    let ticks = process::ticks_per_second(view.host).and_then(|ticks| match ticks {
        0 => Failed("the kernel has no clock ticks".to_owned()),
        ticks => Present(ticks as f64),
    });
    let counted_at_s = counted_at_s(view);
    let (on_cpu_s, runnable_s) = time(view, &ticks);
    let stats = || view.processes().map(|p| &p.stat);
    let sum = |field: fn(&process::Stat) -> u64| stats().map(field).fold(0, u64::saturating_add);
    let system = sum(|s| s.system_ticks.saturating_add(s.children_system_ticks));
    Counters {
        counted_at_s,
        told_at_s: None,
        on_cpu_s,
        runnable_s,
        system_s: ticks.map(|ticks| Seconds(system as f64 / ticks)),
        minor_faults: Present(sum(|s| s.minor_faults.saturating_add(s.children_minor_faults))),
        minor_faults_living: Present(sum(|s| s.minor_faults)),
        major_faults: Present(sum(|s| s.major_faults.saturating_add(s.children_major_faults))),
        tcp: process::tcp(view.host, view.pid()),
        accesses: Absent("not read yet".to_owned()),
        told: Absent("not read yet".to_owned()),
    }
}

/// Now, in seconds since boot; of a captured host when it was counted, where the capture knows.
fn counted_at_s(view: &DatabaseView) -> Option<f64> {
    let key = format!("counted at:{}", view.pid());
    let us = view.host.observe(&key, || Present(clock::since_boot_us()));
    us.into_value().map(|us| us as f64 / 1e6)
}

fn time(view: &DatabaseView, ticks: &Reading<f64>) -> (Reading<Seconds>, Reading<Seconds>) {
    let ticks = match ticks {
        Present(ticks) => *ticks,
        gap => return (gap.as_ref().map(|_| Seconds(0.0)), gap.as_ref().map(|_| Seconds(0.0))),
    };
    let (mut on_cpu, mut runnable) = (Seconds(0.0), Seconds(0.0));
    let mut gap = None;
    for stat in view.processes().map(|p| &p.stat) {
        let seconds = |a: u64, b: u64| Seconds(a.saturating_add(b) as f64 / ticks);
        let counted = seconds(stat.user_ticks, stat.system_ticks);
        on_cpu = on_cpu + seconds(stat.children_user_ticks, stat.children_system_ticks);
        match process::sched_time(view.host, stat.pid, stat.threads) {
            Present(time) => {
                on_cpu = on_cpu + Seconds(time.on_cpu_s.0.max(counted.0));
                runnable = runnable + time.runnable_s;
            }
            // It ended since its `stat` was read.
            Absent(_) if stat.pid != view.pid() => on_cpu = on_cpu + counted,
            other => {
                on_cpu = on_cpu + counted;
                gap = Some(other.map(|_| Seconds(0.0)));
            }
        }
    }
    (Present(on_cpu), gap.unwrap_or(Present(runnable)))
}
