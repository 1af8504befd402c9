//! What steering costs, and how often it may look for that.

use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;
use untax_host::{Host, process};

/// The share of one CPU that samples may take. With what changes of masks take it stays below 0.5 %.
const SAMPLES: f64 = 0.003;

/// The share that looks at all threads may take: for new ones, and for cpusets that changed.
const LOOKS: f64 = 0.001;

/// The shortest time between two looks at all threads.
const LOOK: Duration = Duration::from_secs(2);

/// The longest time between two samples: an owner that wakes waits up to two of them for its CPUs. Where a sample
/// costs more than 15 ms of CPU time, samples take more than their share.
const LONGEST: Duration = Duration::from_secs(5);

/// CPU time of this thread so far.
pub fn thread_s() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// CPU time of the children of this process that ended.
pub fn ended_children_s(host: &Host) -> f64 {
    let ticks = process::ticks_per_second(host).into_value().unwrap_or(0);
    let own = process::stat(host, std::process::id()).into_value();
    own.filter(|_| ticks > 0).map_or(0.0, |own| {
        (own.children_user_ticks + own.children_system_ticks) as f64 / ticks as f64
    })
}

/// The time between two samples, and between two looks at all threads.
#[derive(Debug, Clone)]
pub struct Pace {
    wanted: Duration,
    sample_s: f64,
    look_s: f64,
    /// The longest sample so far, in time and not in CPU time.
    pub slowest_s: f64,
}

impl Pace {
    /// A pace that is wanted; it slows down where that costs too much.
    pub fn of(wanted: Duration) -> Self {
        Self { wanted, sample_s: 0.0, look_s: 0.0, slowest_s: 0.0 }
    }

    /// A round of a sample and what goes with it took so much CPU time, and the sample so long.
    pub fn sampled(&mut self, cpu_s: f64, took_s: f64) {
        // A moving mean over some ten samples.
        self.sample_s += (cpu_s - self.sample_s) * if self.sample_s == 0.0 { 1.0 } else { 0.1 };
        self.slowest_s = self.slowest_s.max(took_s);
    }

    /// A look at all threads took so much CPU time.
    pub fn looked(&mut self, cpu_s: f64) {
        self.look_s = cpu_s;
    }

    /// The time between two samples.
    pub fn period(&self) -> Duration {
        self.wanted.max(Duration::from_secs_f64(self.sample_s / SAMPLES).min(LONGEST))
    }

    /// The time between two looks at all threads.
    pub fn look_period(&self) -> Duration {
        LOOK.max(Duration::from_secs_f64(self.look_s / LOOKS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_period_grows_with_what_a_sample_costs() {
        let mut pace = Pace::of(Duration::from_millis(100));
        pace.sampled(0.000_2, 0.001);
        assert_eq!(pace.period(), Duration::from_millis(100));
        for _ in 0..100 {
            pace.sampled(0.006, 0.01);
        }
        let period_s = pace.period().as_secs_f64();
        assert!((0.006 / period_s - SAMPLES).abs() < SAMPLES * 0.01, "{period_s}");
        pace.looked(0.01);
        assert_eq!(pace.look_period(), Duration::from_secs(10));
    }

    #[test]
    fn one_slow_sample_does_not_end_the_steering() {
        let mut pace = Pace::of(Duration::from_millis(100));
        pace.sampled(0.6, 0.8);
        assert_eq!(pace.period(), LONGEST);
    }
}
