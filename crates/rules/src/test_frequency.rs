//! Windows in which CPUs run at some frequency.

use crate::test_window::{postgres, trace};
use untax_core::activity::Doing;
use untax_core::host::CpuTime;
use untax_core::idle::{CpuFreq, FrequencyPolicy};
use untax_core::window::Frequencies;
use untax_core::{Reading, Seconds, Window};

/// The policy of one CPU.
pub fn policy(cpu: u32, governor: &str, max_khz: u64) -> FrequencyPolicy {
    FrequencyPolicy {
        name: format!("policy{cpu}"),
        cpus: cpu.to_string(),
        governor: Reading::Present(governor.to_owned()),
        preference: Reading::absent("not read"),
        min_khz: Reading::Present(800_000),
        max_khz: Reading::Present(max_khz),
        hardware_max_khz: Reading::Present(3_600_000),
        base_khz: Reading::Present(2_400_000),
        time_at: Reading::absent("not counted"),
    }
}

/// A PostgreSQL that was on a CPU all of the time, on a host whose CPU 0 was busy for so much of the
/// window, and CPU 1 for none of it.
pub fn window(policies: &[FrequencyPolicy; 2], busy: f64) -> Window {
    let mut window = on(postgres(), policies, busy);
    trace(&mut window, &[(Doing::OnCpu, 10.0)]);
    window
}

/// That window on such a host.
pub fn on(mut window: Window, policies: &[FrequencyPolicy; 2], busy: f64) -> Window {
    let time = |busy_s: f64, idle_s: f64| CpuTime {
        busy_s: Seconds(busy_s),
        interrupts_s: None,
        idle_s: Seconds(idle_s),
        steal_s: Seconds(0.0),
    };
    let busy_s = 10.0 * busy;
    let ends = [[(0.0, 50.0), (0.0, 50.0)], [(busy_s, 60.0 - busy_s), (0.0, 60.0)]];
    for (snapshot, times) in [&mut window.start, &mut window.end].into_iter().zip(ends) {
        let each = times.iter().zip(0..).map(|((busy, idle), cpu)| (cpu, time(*busy, *idle)));
        snapshot.host.each_cpu_time = Reading::Present(each.collect());
        let driver = "intel_pstate".to_owned();
        let turbo = Reading::Present(true);
        let policies = policies.to_vec();
        snapshot.host.cpufreq = Reading::Present(CpuFreq { driver, policies, turbo });
        for database in &mut snapshot.databases {
            database.allowed_cpus = Reading::Present("0-1".to_owned());
        }
    }
    window
}

/// Samples of the frequency of CPU 0, on which the database ran.
pub fn sampled(window: &mut Window, khz: &[u64]) {
    let frequencies = Frequencies { policy: "policy0".to_owned(), khz: khz.to_vec() };
    // What ran on the other CPU is nothing of the database's.
    let other = Frequencies { policy: "policy1".to_owned(), khz: vec![3_600_000] };
    window.frequencies = vec![frequencies, other];
}
