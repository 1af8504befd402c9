//! For how long a guest looks for work before it halts an idle virtual CPU.

use super::{Fact, formats};
use crate::Host;
use untax_core::Reading::Absent;
use untax_core::host::HostFacts;
use untax_core::idle::HaltPoll;

pub(super) const FACT: Fact = Fact {
    id: "haltpoll",
    summary: "for how long a guest looks for work before it halts a virtual CPU",
    source: "/sys/module/haltpoll/parameters",
    privilege: "none",
    minimum_kernel: "5.4 with CONFIG_HALTPOLL_CPUIDLE or CONFIG_CPU_IDLE_GOV_HALTPOLL",
    cost: "three small files",
    read,
};

const DIRECTORY: &str = "/sys/module/haltpoll/parameters";

fn read(host: &Host, facts: &mut HostFacts) {
    let file = |name: &str| format!("{DIRECTORY}/{name}");
    let poll = match formats::number(host, &file("guest_halt_poll_ns")) {
        Absent(_) => Absent(format!("this kernel has no haltpoll governor: no {DIRECTORY}")),
        poll => poll,
    };
    let allow_shrink = file("guest_halt_poll_allow_shrink");
    facts.haltpoll = poll.map(|poll_ns| HaltPoll {
        poll_ns,
        grow_start_ns: formats::number(host, &file("guest_halt_poll_grow_start")),
        allow_shrink: host.text(&allow_shrink).parse(&allow_shrink, |text| match text.trim() {
            "Y" | "1" => Some(true),
            "N" | "0" => Some(false),
            _ => None,
        }),
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Record;
    use untax_core::Reading::{self, Failed, Present};

    fn read_from(files: &[(&str, &str)]) -> Reading<HaltPoll> {
        let record = files.iter().fold(Record::default(), |record, (file, text)| {
            record.with_file(&format!("{DIRECTORY}/{file}"), text)
        });
        super::super::read_all(&Host::from_record(record)).haltpoll
    }

    #[test]
    fn parameters_are_read_and_one_that_vanished_is_a_gap() {
        let all = [
            ("guest_halt_poll_ns", "200000\n"),
            ("guest_halt_poll_grow_start", "50000\n"),
            ("guest_halt_poll_allow_shrink", "Y\n"),
        ];
        let expected = HaltPoll {
            poll_ns: 200_000,
            grow_start_ns: Present(50_000),
            allow_shrink: Present(true),
        };
        assert_eq!(read_from(&all), Present(expected));
        let left = read_from(&all[..1]).into_value().unwrap();
        assert!(!left.grow_start_ns.is_present() && !left.allow_shrink.is_present());
        assert!(matches!(read_from(&all[1..]), Absent(why) if why.contains("no haltpoll")));
        assert!(matches!(read_from(&[("guest_halt_poll_ns", "long")]), Failed(_)));
    }
}
