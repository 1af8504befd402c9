//! Tasks of the whole machine that were held up since boot.

use super::Fact;
use crate::{Host, pressure};
use untax_core::Reading::{self, Absent};
use untax_core::host::HostFacts;
use untax_core::pressure::Stalls;

pub(super) const FACT: Fact = Fact {
    id: "pressure",
    summary: "for how long tasks waited for CPUs, disks and memory",
    source: "/proc/pressure",
    privilege: "none",
    minimum_kernel: "4.20 with CONFIG_PSI, unless started with psi=0",
    cost: "three small files; the kernel sums the counters of all CPUs for each",
    read,
};

fn read(host: &Host, facts: &mut HostFacts) {
    let all = pressure::read(host, |what| format!("/proc/pressure/{what}"));
    facts.pressure = match all {
        Absent(why) => Absent(format!(
            "{why}: a kernel without CONFIG_PSI or with psi=0, or it was not captured"
        )),
        all => all.map(without_full_cpu),
    };
}

/// Some task of a machine has a CPU whenever another one waits for one: what kernels since 5.13 write
/// there means nothing.
fn without_full_cpu(mut stalls: Stalls) -> Stalls {
    if let Reading::Present(cpu) = &mut stalls.cpu {
        cpu.full_s = Absent("it has no meaning for a whole machine".to_owned());
    }
    stalls
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Record, facts};
    use untax_core::Reading::Present;
    use untax_core::Seconds;
    use untax_core::reading::Gap;

    fn gap(gap: Gap) -> Record {
        let gaps = [("/proc/pressure/cpu".to_owned(), gap)].into();
        Record { gaps, ..Record::default() }
    }

    fn read_from(record: Record) -> Reading<Stalls> {
        facts::read_all(&Host::from_record(record)).pressure
    }

    #[test]
    fn the_machine_has_three_files() {
        let text = "some avg10=0.00 avg60=0.00 avg300=0.00 total=3000000\n\
                    full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n";
        let record = Record::default()
            .with_file("/proc/pressure/cpu", text)
            .with_file("/proc/pressure/io", text);
        let stalls = read_from(record).into_value().unwrap();
        let cpu = stalls.cpu.into_value().unwrap();
        assert_eq!(cpu.some_s, Seconds(3.0));
        assert!(matches!(&cpu.full_s, Absent(why) if why.contains("no meaning")), "{cpu:?}");
        assert_eq!(stalls.io.into_value().unwrap().full_s, Present(Seconds(0.0)));
        assert!(matches!(stalls.memory, Absent(_)));
    }

    #[test]
    fn where_it_is_off_the_reason_is_said() {
        let off = |record| match read_from(record) {
            Absent(why) => assert!(why.contains("CONFIG_PSI"), "{why}"),
            other => panic!("{other:?}"),
        };
        off(Record::default());
        // Kernels that were started with psi=0 had the files until 5.1.
        let unsupported = Gap::Absent("/proc/pressure/cpu is switched off".to_owned());
        off(gap(unsupported));
        let denied = read_from(gap(Gap::Denied("/proc/pressure/cpu".to_owned())));
        assert!(matches!(denied, Reading::Denied(_)), "{denied:?}");
    }
}
