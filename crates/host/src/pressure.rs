//! Pressure stall information: for how long tasks were held up, by what.

use crate::Host;
use untax_core::Reading::{self, Absent, Failed, Present};
use untax_core::Seconds;
use untax_core::pressure::{Stalled, Stalls};

/// What the files say whose paths `path` gives for `cpu`, `io` and `memory`; the first gap where none
/// says anything.
pub(crate) fn read(host: &Host, path: impl Fn(&str) -> String) -> Reading<Stalls> {
    let [cpu, io, memory] = ["cpu", "io", "memory"].map(|what| read_stalls(host, &path(what)));
    match cpu {
        cpu if cpu.is_present() || io.is_present() || memory.is_present() => {
            Present(Stalls { cpu, io, memory })
        }
        gap => gap.map(|cpu| Stalls { cpu: Present(cpu), io, memory }),
    }
}

/// What one file says.
pub(crate) fn read_stalls(host: &Host, path: &str) -> Reading<Stalled> {
    host.text(path).and_then(|text| {
        let total = |kind| total(&text, kind, path);
        match total("some") {
            Absent(_) => Failed(format!("{path} has an unexpected form")),
            some => some.map(|some_s| Stalled { some_s, full_s: total("full") }),
        }
    })
}

/// `some avg10=0.00 avg60=0.00 avg300=0.00 total=1234`, in microseconds.
fn total(text: &str, kind: &str, path: &str) -> Reading<Seconds> {
    let mut lines = text.lines();
    let Some(line) = lines.find_map(|line| line.strip_prefix(kind)?.strip_prefix(' ')) else {
        return Absent("this kernel does not count it".to_owned());
    };
    let total = line.split_ascii_whitespace().find_map(|word| word.strip_prefix("total="));
    let us = total.and_then(|us| us.parse::<u64>().ok());
    us.map_or_else(
        || Failed(format!("{path} has an unexpected form")),
        |us| Present(Seconds(us as f64 / 1e6)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Record;

    fn of(text: &str) -> Reading<Stalled> {
        read_stalls(&Host::from_record(Record::default().with_file("/p", text)), "/p")
    }

    #[test]
    fn totals_are_microseconds() {
        let text = "some avg10=79.28 avg60=28.96 avg300=20.21 total=23696318076\n\
                    full avg10=0.00 avg60=0.00 avg300=0.00 total=1500000\n";
        let expected = Stalled { some_s: Seconds(23_696.318_076), full_s: Present(Seconds(1.5)) };
        assert_eq!(of(text), Present(expected));
    }

    #[test]
    fn what_is_not_counted_is_not_zero() {
        let some = "some avg10=0.00 avg60=0.00 avg300=0.00 total=7\n";
        let older = of(some).into_value().unwrap();
        assert!(matches!(older.full_s, Absent(_)), "{older:?}");
        let garbled = of(&format!("{some}full avg10=0.00 total=x\n")).into_value().unwrap();
        assert!(matches!(garbled.full_s, Failed(_)), "{garbled:?}");
        for text in ["", "some\n", "some total=\n", "some total=-1\n", "full total=1\n"] {
            assert!(matches!(of(text), Failed(_)), "{text:?}");
        }
    }
}
