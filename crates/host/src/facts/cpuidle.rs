//! How idle CPUs are put to sleep.

use super::{Fact, formats};
use crate::Host;
use untax_core::Reading::{self, Absent, Present};
use untax_core::host::{HostFacts, cpus};
use untax_core::idle::{CpuIdle, IdleState};

pub(super) const FACT: Fact = Fact {
    id: "cpuidle",
    summary: "how idle CPUs sleep: driver, governor, states with their latency, use and what is disabled",
    source: "/sys/devices/system/cpu/cpuidle, cpu*/cpuidle/state*",
    privilege: "none",
    minimum_kernel: "2.6.24 with CONFIG_CPU_IDLE",
    cost: "three small files for each state of each CPU",
    read,
};

const DIRECTORY: &str = "/sys/devices/system/cpu";

fn read(host: &Host, facts: &mut HostFacts) {
    let driver = match formats::line(host, &format!("{DIRECTORY}/cpuidle/current_driver")) {
        Absent(_) => {
            Absent("this kernel has no cpuidle driver that tells how CPUs sleep".to_owned())
        }
        Present(driver) if driver == "none" => {
            Absent("the kernel has no cpuidle driver: CPUs halt, and nothing counts it".to_owned())
        }
        driver => driver,
    };
    facts.cpuidle = driver.map(|driver| CpuIdle {
        driver,
        governor: formats::line(host, &format!("{DIRECTORY}/cpuidle/current_governor_ro")),
        states: states(host),
    });
}

/// How often CPUs were put to sleep since boot, all together: into any state but that in which they poll.
pub fn sleeps(host: &Host) -> Reading<u64> {
    formats::line(host, &format!("{DIRECTORY}/online")).and_then(|online| {
        let all: Vec<u32> = cpus(&online).collect();
        let first = all.first().copied().unwrap_or_default();
        let names = host
            .names(&format!("{DIRECTORY}/cpu{first}/cpuidle"))
            .or_else(|| Absent("no cpuidle driver counts how often CPUs sleep".to_owned()));
        names.and_then(|names| {
            let states = names.iter().filter(|name| name.starts_with("state"));
            let sleeps = states.filter(|state| {
                let name = format!("{DIRECTORY}/cpu{first}/cpuidle/{state}/name");
                formats::line(host, &name).value().is_none_or(|name| name != "POLL")
            });
            let counts = sleeps.flat_map(|state| {
                let file = move |cpu| format!("{DIRECTORY}/cpu{cpu}/cpuidle/{state}/usage");
                all.iter().map(move |cpu| formats::number::<u64>(host, &file(cpu)).into_result())
            });
            counts.sum::<Result<u64, _>>().into()
        })
    })
}

/// What decides how idle CPUs sleep, in a few words.
pub fn knob(host: &Host) -> String {
    let line = |file: &str| formats::line(host, file).into_value();
    let driver = line(&format!("{DIRECTORY}/cpuidle/current_driver"));
    let Some(driver) = driver.filter(|driver| driver != "none") else {
        return "no cpuidle driver".to_owned();
    };
    let governor = line(&format!("{DIRECTORY}/cpuidle/current_governor_ro")).unwrap_or_default();
    let poll = line("/sys/module/haltpoll/parameters/guest_halt_poll_ns");
    match poll.filter(|_| governor == "haltpoll") {
        Some(ns) => format!("{driver}, guest_halt_poll_ns {ns}"),
        None => format!("{driver}, governor {governor}"),
    }
}

/// The states of the first CPU, with what all CPUs did in those of the same number.
fn states(host: &Host) -> Reading<Vec<IdleState>> {
    formats::line(host, &format!("{DIRECTORY}/online")).and_then(|online| {
        let all: Vec<u32> = cpus(&online).collect();
        let first = all.first().copied().unwrap_or_default();
        host.names(&format!("{DIRECTORY}/cpu{first}/cpuidle")).and_then(|names| {
            let mut numbers: Vec<u32> =
                names.iter().filter_map(|name| name.strip_prefix("state")?.parse().ok()).collect();
            numbers.sort_unstable();
            let states =
                numbers.into_iter().map(|state| read_state(host, &all, state).into_result());
            states.collect::<Result<Vec<_>, _>>().into()
        })
    })
}

fn read_state(host: &Host, all: &[u32], state: u32) -> Reading<IdleState> {
    let file = |cpu: u32, file: &str| format!("{DIRECTORY}/cpu{cpu}/cpuidle/state{state}/{file}");
    let sum = |what: &str| {
        let each =
            all.iter().map(|cpu| formats::number::<u64>(host, &file(*cpu, what)).into_result());
        each.sum::<Result<u64, _>>().into()
    };
    let is_disabled = |cpu: &&u32| {
        let disabled = formats::number::<u64>(host, &file(**cpu, "disable"));
        disabled.value().is_some_and(|value| *value != 0)
    };
    let first = all.first().copied().unwrap_or_default();
    formats::line(host, &file(first, "name")).and_then(|name| {
        formats::number(host, &file(first, "latency")).map(|latency_us| IdleState {
            name,
            latency_us,
            usage: sum("usage"),
            time_us: sum("time"),
            disabled_on: all.iter().filter(is_disabled).copied().collect(),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Record;

    /// Two CPUs with these files of each state.
    fn read_from(driver: &str, states: &[(&str, &str)]) -> Reading<CpuIdle> {
        let mut record = Record::default()
            .with_file("/sys/devices/system/cpu/online", "0-1\n")
            .with_file("/sys/devices/system/cpu/cpuidle/current_driver", driver)
            .with_file("/sys/devices/system/cpu/cpuidle/current_governor_ro", "menu\n");
        for cpu in 0..2 {
            for (file, text) in states {
                record = record.with_file(&format!("{DIRECTORY}/cpu{cpu}/cpuidle/{file}"), text);
            }
        }
        super::super::read_all(&Host::from_record(record)).cpuidle
    }

    const DEEP: [(&str, &str); 5] = [
        ("state3/name", "C6\n"),
        ("state3/latency", "133\n"),
        ("state3/usage", "1000\n"),
        ("state3/time", "5000000\n"),
        ("state3/disable", "0\n"),
    ];

    #[test]
    fn what_all_cpus_did_in_a_state_is_added_up() {
        let idle = read_from("intel_idle\n", &DEEP).into_value().unwrap();
        assert_eq!(
            (idle.driver.as_str(), idle.governor),
            ("intel_idle", Present("menu".to_owned()))
        );
        let expected = IdleState {
            name: "C6".to_owned(),
            latency_us: 133,
            usage: Present(2000),
            time_us: Present(10_000_000),
            disabled_on: Vec::new(),
        };
        assert_eq!(idle.states, Present(vec![expected]));
    }

    #[test]
    fn a_state_that_is_forbidden_is_said_to_be() {
        let forbidden = [&DEEP[..4], &[("state3/disable", "1\n")]].concat();
        let states = read_from("intel_idle\n", &forbidden).into_value().unwrap().states;
        assert_eq!(states.into_value().unwrap()[0].disabled_on, [0, 1]);
    }

    #[test]
    fn a_kernel_without_a_driver_and_a_count_that_is_not_there_are_gaps() {
        assert!(matches!(read_from("none\n", &[]), Absent(why) if why.contains("CPUs halt")));
        assert!(matches!(read_from("\n", &[]), Reading::Failed(_)));
        let states = read_from("acpi_idle\n", &DEEP[..2]).into_value().unwrap().states;
        let states = states.into_value().unwrap();
        assert!(!states[0].usage.is_present(), "{states:?}");
        let garbage = [("state0/name", "C1\n"), ("state0/latency", "soon\n")];
        assert!(matches!(
            read_from("x\n", &garbage).into_value().unwrap().states,
            Reading::Failed(_)
        ));
    }

    #[test]
    fn sleeps_are_counted_without_polling() {
        let file = |cpu: u32, state: u32, file: &str| {
            format!("{DIRECTORY}/cpu{cpu}/cpuidle/state{state}/{file}")
        };
        let mut record = Record::default()
            .with_file(&format!("{DIRECTORY}/online"), "0-1\n")
            .with_file(&format!("{DIRECTORY}/cpuidle/current_driver"), "haltpoll\n")
            .with_file(&format!("{DIRECTORY}/cpuidle/current_governor_ro"), "haltpoll\n")
            .with_file("/sys/module/haltpoll/parameters/guest_halt_poll_ns", "200000\n")
            .with_file(&file(0, 0, "name"), "POLL\n")
            .with_file(&file(0, 1, "name"), "haltpoll idle\n");
        for cpu in 0..2 {
            record = record.with_file(&file(cpu, 0, "usage"), "1000\n");
            record = record.with_file(&file(cpu, 1, "usage"), &format!("{}\n", 3 + cpu));
        }
        let host = Host::from_record(record);
        assert_eq!(sleeps(&host), Present(7));
        assert_eq!(knob(&host), "haltpoll, guest_halt_poll_ns 200000");
        let none =
            Host::from_record(Record::default().with_file(&format!("{DIRECTORY}/online"), "0-1\n"));
        assert!(!sleeps(&none).is_present());
        assert_eq!(knob(&none), "no cpuidle driver");
    }
}
