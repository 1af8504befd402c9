//! How the frequency of CPUs is chosen.

use super::{Fact, formats};
use crate::Host;
use untax_core::Reading::{self, Absent, Present};
use untax_core::host::HostFacts;
use untax_core::idle::{CpuFreq, FrequencyPolicy};

pub(super) const FACT: Fact = Fact {
    id: "cpufreq",
    summary: "how the frequency of CPUs is chosen: driver, governor, preference, limits, turbo",
    source: "/sys/devices/system/cpu/cpufreq, intel_pstate",
    privilege: "none",
    minimum_kernel: "2.6.0; policies of their own since 4.3",
    cost: "some eight small files for each policy: for each CPU, mostly",
    read,
};

const DIRECTORY: &str = "/sys/devices/system/cpu/cpufreq";
const NO_TURBO: &str = "/sys/devices/system/cpu/intel_pstate/no_turbo";

fn read(host: &Host, facts: &mut HostFacts) {
    let why = "no cpufreq policy: the kernel does not choose the frequency of these CPUs, as in most \
               guests";
    let names = match host.names(DIRECTORY) {
        Absent(_) => Absent(why.to_owned()),
        names => names,
    };
    facts.cpufreq = names.and_then(|names| {
        let mut names: Vec<String> =
            names.into_iter().filter(|name| name.starts_with("policy")).collect();
        names.sort_by_key(|name| name[6..].parse::<u32>().unwrap_or(u32::MAX));
        let Some(first) = names.first() else {
            return Absent(why.to_owned());
        };
        formats::line(host, &format!("{DIRECTORY}/{first}/scaling_driver")).map(|driver| CpuFreq {
            driver,
            policies: names.iter().map(|name| policy(host, name)).collect(),
            turbo: turbo(host),
        })
    });
}

fn policy(host: &Host, name: &str) -> FrequencyPolicy {
    let file = |file: &str| format!("{DIRECTORY}/{name}/{file}");
    let times = file("stats/time_in_state");
    FrequencyPolicy {
        name: name.to_owned(),
        cpus: formats::line(host, &file("affected_cpus"))
            .into_value()
            .map(|cpus| cpus.split_ascii_whitespace().collect::<Vec<_>>().join(","))
            .unwrap_or_default(),
        governor: formats::line(host, &file("scaling_governor")),
        preference: formats::line(host, &file("energy_performance_preference")),
        min_khz: formats::number(host, &file("scaling_min_freq")),
        max_khz: formats::number(host, &file("scaling_max_freq")),
        hardware_max_khz: formats::number(host, &file("cpuinfo_max_freq")),
        base_khz: base(host, name),
        time_at: host.text(&times).parse(&times, |text| text.lines().map(time_at).collect()),
    }
}

/// The frequency without turbo: by its driver, or by the firmware, in MHz, of the first CPU.
fn base(host: &Host, name: &str) -> Reading<u64> {
    match formats::number(host, &format!("{DIRECTORY}/{name}/base_frequency")) {
        Absent(_) => {
            let first = name.trim_start_matches("policy");
            let file = format!("/sys/devices/system/cpu/cpu{first}/acpi_cppc/nominal_freq");
            match formats::number(host, &file) {
                Present(0) => Absent("the firmware tells no nominal frequency".to_owned()),
                mhz => mhz.map(|mhz: u64| mhz.saturating_mul(1000)),
            }
        }
        base @ (Present(_) | Reading::Denied(_) | Reading::Failed(_)) => base,
    }
}

/// `3400000 1234`: a frequency, and for how long.
fn time_at(line: &str) -> Option<(u64, u64)> {
    let (khz, time) = line.split_once(' ')?;
    Some((khz.parse().ok()?, time.trim().parse().ok()?))
}

fn turbo(host: &Host) -> Reading<bool> {
    let flag = |path: &str, on: &str| {
        host.text(path).parse(path, |text| match text.trim() {
            text @ ("0" | "1") => Some(text == on),
            _ => None,
        })
    };
    match flag(NO_TURBO, "0") {
        Absent(_) => flag(&format!("{DIRECTORY}/boost"), "1"),
        turbo @ (Present(_) | Reading::Denied(_) | Reading::Failed(_)) => turbo,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Record;

    fn read_from(files: &[(&str, &str)]) -> Reading<CpuFreq> {
        let record = files.iter().fold(Record::default(), |record, (file, text)| {
            record.with_file(&format!("/sys/devices/system/cpu/{file}"), text)
        });
        super::super::read_all(&Host::from_record(record)).cpufreq
    }

    const POWERSAVE: [(&str, &str); 8] = [
        ("cpufreq/policy0/scaling_driver", "intel_pstate\n"),
        ("cpufreq/policy0/affected_cpus", "0 1\n"),
        ("cpufreq/policy0/scaling_governor", "powersave\n"),
        ("cpufreq/policy0/energy_performance_preference", "balance_power\n"),
        ("cpufreq/policy0/scaling_min_freq", "800000\n"),
        ("cpufreq/policy0/scaling_max_freq", "2100000\n"),
        ("cpufreq/policy0/cpuinfo_max_freq", "3500000\n"),
        ("intel_pstate/no_turbo", "1\n"),
    ];

    #[test]
    fn limits_and_preferences_are_read() {
        let freq = read_from(&POWERSAVE).into_value().unwrap();
        assert_eq!((freq.driver.as_str(), freq.turbo), ("intel_pstate", Present(false)));
        let [policy] = &freq.policies[..] else { panic!("{:?}", freq.policies) };
        assert_eq!(policy.cpus, "0,1");
        assert_eq!(policy.governor, Present("powersave".to_owned()));
        assert_eq!(policy.preference, Present("balance_power".to_owned()));
        assert_eq!(
            [&policy.max_khz, &policy.hardware_max_khz],
            [&Present(2_100_000), &Present(3_500_000)]
        );
        assert!(matches!(policy.time_at, Absent(_)), "this driver does not count");
    }

    #[test]
    fn times_at_each_frequency_are_read() {
        let counted = [
            ("cpufreq/policy0/scaling_driver", "acpi-cpufreq\n"),
            ("cpufreq/policy0/stats/time_in_state", "2800000 10\n1400000 90\n"),
            ("cpufreq/boost", "1\n"),
        ];
        let freq = read_from(&counted).into_value().unwrap();
        assert_eq!(freq.policies[0].time_at, Present(vec![(2_800_000, 10), (1_400_000, 90)]));
        assert_eq!(freq.turbo, Present(true));
        let garbage = [counted[0], ("cpufreq/policy0/stats/time_in_state", "fast\n")];
        let freq = read_from(&garbage).into_value().unwrap();
        assert!(matches!(freq.policies[0].time_at, Reading::Failed(_)));
    }

    #[test]
    fn the_frequency_without_turbo_is_the_drivers_or_the_firmwares() {
        let base = |more: (&str, &str)| {
            let files = [&POWERSAVE[..], &[more]].concat();
            read_from(&files).into_value().unwrap().policies[0].base_khz.clone()
        };
        assert_eq!(base(("cpufreq/policy0/base_frequency", "2500000\n")), Present(2_500_000));
        assert_eq!(base(("cpu0/acpi_cppc/nominal_freq", "2400\n")), Present(2_400_000));
        assert!(matches!(base(("cpu0/acpi_cppc/nominal_freq", "0\n")), Absent(_)));
        assert!(matches!(base(("cpu1/acpi_cppc/nominal_freq", "2400\n")), Absent(_)));
    }

    #[test]
    fn a_guest_has_no_policy() {
        let record = Record::default().with_file(&format!("{DIRECTORY}/ondemand/up_threshold"), "");
        let facts = super::super::read_all(&Host::from_record(record));
        assert!(matches!(facts.cpufreq, Absent(why) if why.contains("no cpufreq policy")));
    }
}
