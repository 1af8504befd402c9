//! What the whole machine did beside a trial, the same for every family and every arm: also where an arm's own
//! processes cannot be counted, as in a sandbox.

use super::measured::Measured;
use untax_core::Reading;
use untax_core::host::cpus;
use untax_host::{Host, facts};

/// Counters of the machine and of some control groups at one moment.
pub(crate) struct Sample {
    busy_s: Reading<f64>,
    steal_s: Reading<f64>,
    sleeps: Option<f64>,
    throttling: Vec<Option<Throttling>>,
}

/// `cpu.stat` of a control group.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Throttling {
    periods: f64,
    throttled: f64,
}

impl Sample {
    /// Reads them.
    pub(crate) fn read(host: &Host, groups: &[String]) -> Self {
        let time = facts::machine_cpu_time(host);
        Self {
            busy_s: time.as_ref().map(|time| time.busy_s.0),
            steal_s: time.map(|time| time.steal_s.0),
            sleeps: sleeps(host),
            throttling: groups.iter().map(|group| throttling(host, group)).collect(),
        }
    }

    /// What a trial between two moments gave, with what the machine did for it.
    pub(crate) fn describe(&self, later: &Self, measured: Measured) -> Measured {
        let since = |before: &Reading<f64>, after: &Reading<f64>| {
            Some((after.value()? - before.value()?).max(0.0))
        };
        let mut described = measured;
        if let Some(operations) = described.operations.filter(|operations| *operations > 0.0) {
            if let Some(busy_s) = since(&self.busy_s, &later.busy_s) {
                let us = busy_s / operations * 1e6;
                described = described.with("machine-cpu", us, "us/operation");
            }
            if let (Some(before), Some(after)) = (self.sleeps, later.sleeps) {
                let sleeps = (after - before).max(0.0) / operations;
                described = described.with("cpu-sleeps", sleeps, "1/operation");
            }
        }
        if let (Some(busy), Some(steal)) =
            (since(&self.busy_s, &later.busy_s), since(&self.steal_s, &later.steal_s))
            && busy + steal > 0.0
        {
            described = described.with("steal", steal / (busy + steal), "share");
        }
        let both = self.throttling.iter().zip(&later.throttling);
        let both = both.filter_map(|(before, after)| Some(((*before)?, (*after)?)));
        let periods = both.clone().map(|(before, after)| after.periods - before.periods);
        let throttled = both.map(|(before, after)| after.throttled - before.throttled);
        let (periods, throttled): (f64, f64) = (periods.sum(), throttled.sum());
        if periods > 0.0 {
            described = described.with("cpu-periods", periods, "periods").with(
                "cpu-periods-throttled",
                throttled,
                "periods",
            );
        }
        described
    }
}

/// How often idle CPUs were put to sleep so far. `POLL` is a busy loop, and none.
fn sleeps(host: &Host) -> Option<f64> {
    const CPUS: &str = "/sys/devices/system/cpu";
    let online = host.text(&format!("{CPUS}/online")).into_value()?;
    let mut sleeps = None;
    for cpu in cpus(online.trim()) {
        let directory = format!("{CPUS}/cpu{cpu}/cpuidle");
        for state in host.names(&directory).into_value()? {
            let name = host.text(&format!("{directory}/{state}/name")).into_value()?;
            if name.trim() == "POLL" {
                continue;
            }
            let usage = host.text(&format!("{directory}/{state}/usage")).into_value()?;
            *sleeps.get_or_insert(0.0) += usage.trim().parse::<f64>().ok()?;
        }
    }
    sleeps
}

fn throttling(host: &Host, group: &str) -> Option<Throttling> {
    let text = host.text(&format!("{group}/cpu.stat")).into_value()?;
    let field = |name: &str| {
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
        value.trim().parse::<f64>().ok()
    };
    Some(Throttling { periods: field("nr_periods")?, throttled: field("nr_throttled")? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use untax_host::Record;

    fn sample(busy_ticks: u64, sleeps: u64, throttled: u64) -> Sample {
        let idle = "/sys/devices/system/cpu/cpu0/cpuidle";
        let record = Record::default()
            .with_file("/proc/stat", &format!("cpu  {busy_ticks} 0 0 1000 0 0 0 0 0 0\n"))
            .with_file("/sys/devices/system/cpu/online", "0\n")
            .with_file(&format!("{idle}/state0/name"), "POLL\n")
            .with_file(&format!("{idle}/state0/usage"), "77\n")
            .with_file(&format!("{idle}/state1/name"), "haltpoll idle\n")
            .with_file(&format!("{idle}/state1/usage"), &format!("{sleeps}\n"))
            .with_file("/g/cpu.stat", &format!("nr_periods {sleeps}\nnr_throttled {throttled}\n"));
        Sample::read(&Host::from_record(record), &["/g".to_owned(), "/none".to_owned()])
    }

    fn extra(measured: &Measured, id: &str) -> Option<f64> {
        measured.extras.iter().find(|extra| extra.id == id).map(|extra| extra.value)
    }

    #[test]
    fn sleeps_and_throttled_periods_are_those_of_the_trial() {
        let measured =
            sample(100, 50, 5).describe(&sample(200, 90, 25), Measured::of(1.0).counting(20.0));
        assert_eq!(extra(&measured, "cpu-sleeps"), Some(2.0));
        assert_eq!(extra(&measured, "cpu-periods"), Some(40.0));
        assert_eq!(extra(&measured, "cpu-periods-throttled"), Some(20.0));
    }

    #[test]
    fn what_cannot_be_read_or_counted_is_left_out() {
        let none = Sample::read(&Host::from_record(Record::default()), &["/g".to_owned()]);
        let measured = none.describe(&none, Measured::of(1.0).counting(20.0));
        assert_eq!(measured.extras, []);
        let no_operations = sample(100, 50, 5).describe(&sample(200, 90, 5), Measured::of(1.0));
        assert_eq!(extra(&no_operations, "cpu-sleeps"), None);
    }
}
