//! Whether what was measured passed the disk.

use super::device::{Moved, Way};
use super::spec::Outcome;
use untax_core::Bytes;

/// The share of the bytes asked for that each device must have moved: counters are read one after the other.
const ENOUGH: f64 = 0.95;

/// Nothing, or why these figures tell nothing of the disk.
pub(crate) fn check(outcome: &Outcome, way: &Way) -> Result<(), String> {
    let Moved { read, written } = outcome.asked;
    if let Some(why) = way.gap.as_ref().filter(|_| read.0 > 0) {
        return Err(format!(
            "{why}: no read can be shown to come from a disk; name another --path"
        ));
    }
    if let Some(own) = outcome.own_read.filter(|own| !is_enough(*own, read)) {
        return Err(from_memory(read, own, "this process"));
    }
    for (device, moved) in way.devices.iter().zip(&outcome.devices) {
        let name = &device.name;
        let Some(moved) = moved else {
            return Err(format!("/sys/dev/block/{}/stat tells nothing of {name}", device.number));
        };
        if !is_enough(moved.read, read) {
            return Err(from_memory(read, moved.read, name));
        }
        if !is_enough(moved.written, written) {
            return Err(format!(
                "{written} were flushed, but {name} was written {}: something above it keeps them in memory",
                moved.written
            ));
        }
    }
    Ok(())
}

fn is_enough(moved: Bytes, asked: Bytes) -> bool {
    moved.0 as f64 >= asked.0 as f64 * ENOUGH
}

fn from_memory(asked: Bytes, moved: Bytes, place: &str) -> String {
    format!("{asked} were read, but only {moved} passed {place}: the rest came from memory")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::device::Device;

    fn way(names: &[&str]) -> Way {
        let device = |name: &&str| Device {
            name: (*name).to_owned(),
            number: "7:0".to_owned(),
            whole: "7:0".to_owned(),
        };
        let gap = names.is_empty().then(|| "tmpfs has no block device here".to_owned());
        Way { filesystem: "x".to_owned(), devices: names.iter().map(device).collect(), gap }
    }

    fn moved(read: u64, written: u64) -> Moved {
        Moved { read: Bytes(read), written: Bytes(written) }
    }

    fn outcome(asked: Moved, devices: &[Moved]) -> Outcome {
        let devices = devices.iter().map(|moved| Some(*moved)).collect();
        Outcome { asked, devices, own_read: Some(asked.read), ..Outcome::default() }
    }

    #[test]
    fn each_device_must_have_seen_the_bytes() {
        let way = way(&["loop0", "vda"]);
        assert_eq!(check(&outcome(moved(1000, 0), &[moved(1000, 0), moved(960, 0)]), &way), Ok(()));
        let cached = check(&outcome(moved(1000, 0), &[moved(1000, 0), moved(940, 0)]), &way);
        assert!(cached.is_err_and(|why| why.contains("passed vda: the rest came from memory")));
        let kept = check(&outcome(moved(0, 1000), &[moved(0, 10), moved(0, 5000)]), &way);
        assert!(kept.is_err_and(|why| why.contains("loop0 was written")));
    }

    #[test]
    fn reads_that_this_process_was_not_charged_for_came_from_a_cache() {
        let all = outcome(moved(1000, 0), &[moved(5000, 0)]);
        let cached = Outcome { own_read: Some(Bytes(0)), ..all };
        assert!(check(&cached, &way(&["vda"])).is_err_and(|why| why.contains("this process")));
    }

    #[test]
    fn without_a_device_only_writes_are_measured() {
        assert_eq!(check(&outcome(moved(0, 1000), &[]), &way(&[])), Ok(()));
        let read = check(&outcome(moved(1000, 0), &[]), &way(&[]));
        assert!(read.is_err_and(|why| why.contains("no read can be shown")));
        let in_memory = Way { gap: Some("tmpfs has none".to_owned()), ..way(&["loop0"]) };
        assert!(check(&outcome(moved(1000, 0), &[moved(1000, 0)]), &in_memory).is_err());
    }

    #[test]
    fn a_device_without_counters_is_a_gap() {
        let unknown = Outcome { devices: vec![None], ..outcome(moved(0, 1), &[]) };
        assert!(check(&unknown, &way(&["vda"])).is_err_and(|why| why.contains("7:0/stat")));
    }
}
