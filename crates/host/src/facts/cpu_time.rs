//! Processor time of the whole machine and of each CPU since boot.

use super::Fact;
use crate::{Host, process};
use untax_core::host::{CpuTime, HostFacts};
use untax_core::{Reading, Seconds};

pub(super) const FACT: Fact = Fact {
    id: "cpu_time",
    summary: "time busy, idle and stolen by the hypervisor",
    source: "/proc/stat",
    privilege: "none",
    minimum_kernel: "2.6.24",
    cost: "one file; the kernel sums interrupts of all CPUs for it",
    read,
};

/// The path that all of it is read from.
const PATH: &str = "/proc/stat";

/// Processor time of the whole machine alone: for a look before and after each of many trials.
pub fn of_machine(host: &Host) -> Reading<CpuTime> {
    let text = host.filter_lines(PATH, |line| line.starts_with("cpu ").then(|| line.to_owned()));
    process::ticks_per_second(host).and_then(|ticks| text.parse(PATH, |text| total(text, ticks)))
}

/// How often CPUs went from one thread to another, or to idle, since boot, all together.
pub fn context_switches(host: &Host) -> Reading<u64> {
    let text = host.filter_lines(PATH, |line| line.starts_with("ctxt ").then(|| line.to_owned()));
    text.parse(PATH, |text| text.trim().strip_prefix("ctxt ")?.parse().ok())
}

fn read(host: &Host, facts: &mut HostFacts) {
    let times = |line: &str| line.starts_with("cpu").then(|| line.to_owned());
    let text = host.filter_lines(PATH, times);
    let ticks = process::ticks_per_second(host);
    facts.cpu_time =
        ticks.clone().and_then(|ticks| text.clone().parse(PATH, |text| total(text, ticks)));
    facts.each_cpu_time = ticks.and_then(|ticks| {
        let each = text.parse(PATH, |text| each(text, ticks));
        each.and_then(|each| {
            // Older captures hold the sum alone.
            if each.is_empty() { Reading::not_captured() } else { Reading::Present(each) }
        })
    });
}

fn total(text: &str, ticks_per_second: u64) -> Option<CpuTime> {
    parse(text.lines().find_map(|line| line.strip_prefix("cpu "))?, ticks_per_second)
}

/// By number; those that are offline have no line.
fn each(text: &str, ticks_per_second: u64) -> Option<Vec<(u32, CpuTime)>> {
    let lines = text.lines().filter(|line| !line.starts_with("cpu "));
    let cpu = |line: &str| {
        let (number, times) = line.strip_prefix("cpu")?.split_once(' ')?;
        Some((number.parse().ok()?, parse(times, ticks_per_second)?))
    };
    lines.map(cpu).collect()
}

/// Parses `user nice system idle iowait irq softirq steal …`, in ticks. What follows, the
/// time of guests, is part of user and nice already.
fn parse(line: &str, ticks_per_second: u64) -> Option<CpuTime> {
    let ticks: Vec<u64> =
        line.split_ascii_whitespace().map(|field| field.parse().ok()).collect::<Option<_>>()?;
    let &[user, nice, system, idle, iowait, irq, softirq, steal, _guest, ..] = ticks.as_slice()
    else {
        return None;
    };
    let seconds = |parts: &[u64]| {
        let ticks: f64 = parts.iter().map(|part| *part as f64).sum();
        Seconds(ticks / ticks_per_second as f64)
    };
    (ticks_per_second > 0).then(|| CpuTime {
        busy_s: seconds(&[user, nice, system, irq, softirq]),
        interrupts_s: Some(seconds(&[irq, softirq])),
        idle_s: seconds(&[idle, iowait]),
        steal_s: seconds(&[steal]),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steal_is_apart_and_guests_count_once() {
        let text = "cpu  1000 200 300 5000 100 10 20 70 900 0\ncpu0 1 1 1 7 1 1 1 1 1 1\n";
        let time = total(text, 100).unwrap();
        assert_eq!((time.busy_s, time.interrupts_s), (Seconds(15.3), Some(Seconds(0.3))));
        assert_eq!(time.idle_s, Seconds(51.0));
        assert_eq!(time.steal_s, Seconds(0.7));
        let of_each = each(text, 100).unwrap();
        assert_eq!((of_each[0].0, of_each[0].1.idle_s), (0, Seconds(0.08)));
        assert!(each("cpu0 1 2 3\n", 100).is_none() && each("cpux 1 1 1 1 1 1 1 1 1", 1).is_none());
    }

    #[test]
    fn a_line_that_is_cut_off_is_refused() {
        assert!(total("cpu  1 2 3 4 5 6 7 8", 100).is_none(), "steal may be cut off");
        assert!(total("cpu  1 2 3 4 5 6 7 x 9", 100).is_none());
        assert!(total("cpu0 1 2 3 4 5 6 7 8 9", 100).is_none());
        assert!(total("cpu  1 2 3 4 5 6 7 8 9", 0).is_none());
        assert!(total(&format!("cpu {0} {0} {0} {0} {0} {0} {0} {0} 0", u64::MAX), 100).is_some());
    }
}
