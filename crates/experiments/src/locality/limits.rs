//! The limits that the database gets, from what it does without: pure.

use super::error::LocalityError;

/// What the database does without limits of time and disk.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Unlimited {
    pub(super) per_s: f64,
    pub(super) cpu_s_of_request: f64,
    pub(super) reads_of_request: f64,
}

/// The limits of the experiment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Limits {
    /// CPUs before the first step, and after it.
    pub(super) cpus: [f64; 2],
    /// Reads a second of the slow disk.
    pub(super) slow_reads_per_s: u64,
}

/// Shares of the throughput without limits that each limit allows with all three tables on the slow disk. With two and
/// with one of them there the disk allows 1.5 and 3 times as much, less than the CPUs after the first step do. So each
/// step is a change by a half or more.
const LITTLE_TIME: f64 = 0.06;
const SLOW_DISK: f64 = 0.12;
const MORE_TIME: f64 = 0.8;

/// A slower disk could not be slowed down to this experiment's eighth: copies would take minutes.
const LEAST_READS_PER_S: f64 = 2000.0;

/// Requests that read less from their disk would not show that it is slow.
const LEAST_READS: f64 = 0.5;

impl Limits {
    /// The limits for this database; an error where they would show nothing.
    pub(super) fn of(unlimited: &Unlimited) -> Result<Self, LocalityError> {
        let Unlimited { per_s, cpu_s_of_request, reads_of_request } = *unlimited;
        let refused = |why: String| Err(LocalityError::Refused(why));
        let reads_per_s = per_s * reads_of_request;
        if reads_of_request.is_nan() || reads_of_request < LEAST_READS {
            return refused(format!(
                "a request reads {reads_of_request:.2} times from its disk, although its memory is limited: \
                 something else keeps the data, such as a TMPDIR in memory; set TMPDIR to a directory on a disk"
            ));
        }
        if reads_per_s.is_nan() || reads_per_s < LEAST_READS_PER_S {
            return refused(format!(
                "the disk below TMPDIR did {reads_per_s:.0} reads a second, and this bench needs \
                 {LEAST_READS_PER_S:.0}; set TMPDIR to a directory on a faster disk, or stop what keeps it busy"
            ));
        }
        let cpus = |share: f64| per_s * share * cpu_s_of_request;
        let slow_reads_per_s = (reads_per_s * SLOW_DISK).round() as u64;
        Ok(Self { cpus: [cpus(LITTLE_TIME), cpus(MORE_TIME)], slow_reads_per_s })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_step_frees_what_limits_it() {
        let free = Unlimited { per_s: 5000.0, cpu_s_of_request: 0.000_3, reads_of_request: 2.4 };
        let limits = Limits::of(&free).unwrap();
        let by_cpus = limits.cpus.map(|cpus| cpus / free.cpu_s_of_request);
        let by_disk =
            |tables: f64| limits.slow_reads_per_s as f64 / (free.reads_of_request * tables / 3.0);
        let levels = [by_cpus[0], by_disk(3.0), by_disk(2.0), by_disk(1.0), by_cpus[1]];
        for pair in levels.windows(2) {
            assert!(pair[1] > 1.4 * pair[0], "{levels:?}");
        }
    }

    #[test]
    fn a_disk_that_would_show_nothing_is_refused_with_the_next_action() {
        let refused = |per_s, reads_of_request| {
            let free = Unlimited { per_s, cpu_s_of_request: 0.000_3, reads_of_request };
            Limits::of(&free).unwrap_err().to_string()
        };
        assert!(refused(100.0, 2.4).contains("240 reads a second"));
        assert!(refused(9000.0, 0.01).contains("set TMPDIR"));
        assert!(refused(9000.0, f64::NAN).contains("set TMPDIR"));
    }
}
