//! `struct total` of threads.h: what the threads of one database did, as numbers in a row.

use super::samples::Places;
use super::syscalls;
use untax_core::Seconds;
use untax_core::activity::{Behind, Call, Cause, Doing, Longest, Polling, Sampled, Spent, WakeUps};

/// The numbers of `struct total` of threads.h.
pub(super) fn numbers(bytes: &[u8]) -> Vec<u64> {
    bytes.chunks_exact(8).filter_map(|c| Some(u64::from_ne_bytes(c.try_into().ok()?))).collect()
}

/// Where `struct total` of threads.h has what is not time spent in some way.
pub(super) const STARTED: usize = Polling::ALL.len() * Doing::ALL.len();
pub(super) const CONNECTING: usize = STARTED + 1;
pub(super) const FIRST: usize = CONNECTING + 1;
const LONGEST: usize = FIRST + 1;
const HUNG: usize = LONGEST + LONG_WAITS;
const SAMPLED: usize = HUNG + 1;
const FAULTING: usize = SAMPLED + 1;
const FAULTING_ON_DATA: usize = FAULTING + 1;
const READING: usize = FAULTING_ON_DATA + 1;
const COMPLETING: usize = READING + 1;
const WAKING: usize = COMPLETING + 1;
const CALLING: usize = WAKING + 1;
const WAKE_UPS: usize = CALLING + Call::ALL.len();
pub(super) const LOST: usize = WAKE_UPS + 2;
const UNKNOWN_LONGEST: usize = LOST + 2;
const UNKNOWN_CALL: usize = UNKNOWN_LONGEST + 1;
const BEHIND: usize = UNKNOWN_CALL + 1;
const LONG_WAITS: usize = 4;

/// How much one number grew between two readings of `struct total`; an empty one is all zeroes.
pub(super) fn growth(index: usize, total: &[u64], before: &[u64]) -> u64 {
    let at = |numbers: &[u64]| numbers.get(index).copied().unwrap_or_default();
    at(total).saturating_sub(at(before))
}

/// What samples showed between two readings of `struct total`.
pub(super) fn samples_between(
    total: &[u64],
    before: &[u64],
    per_s: u32,
    places: Places,
) -> Sampled {
    Sampled {
        per_s: Some(per_s),
        on_cpu: growth(SAMPLED, total, before),
        reading: places.reading.then(|| growth(READING, total, before)),
        completing: places.completing.then(|| growth(COMPLETING, total, before)),
        waking: places.waking.then(|| growth(WAKING, total, before)),
        faulting: places.faults.then(|| growth(FAULTING, total, before)),
        faulting_on_data: places.data.then(|| growth(FAULTING_ON_DATA, total, before)),
        calling: Some(Call::ALL.map(|call| growth(CALLING + call as usize, total, before))),
    }
}

/// What was spent between two readings of `struct total`.
pub(super) fn times_spent(total: &[u64], before: &[u64]) -> Vec<Spent> {
    let ways =
        Polling::ALL.into_iter().flat_map(|polling| Doing::ALL.map(|doing| (polling, doing)));
    ways.enumerate()
        .filter_map(|(index, (polling, doing))| {
            let ns = growth(index, total, before);
            (ns > 0).then(|| Spent::own(polling, doing, Seconds::from_ns(ns)))
        })
        .collect()
}

/// What other threads did during waits that they ended between two readings of `struct total`.
pub(super) fn times_behind(total: &[u64], before: &[u64]) -> Vec<Behind> {
    let ways = Polling::ALL.into_iter().flat_map(|polling| {
        Doing::ALL
            .into_iter()
            .flat_map(move |doing| Cause::ALL.map(|cause| (polling, doing, cause)))
    });
    ways.enumerate()
        .filter_map(|(index, (polling, doing, cause))| {
            let ns = growth(BEHIND + index, total, before);
            (ns > 0).then(|| Behind { polling, doing, cause, time_s: Seconds::from_ns(ns) })
        })
        .collect()
}

/// How often threads that were woken got a CPU between two readings of `struct total`.
pub(super) fn wake_ups(total: &[u64], before: &[u64]) -> WakeUps {
    let grown = |index| growth(index, total, before);
    WakeUps { all: grown(WAKE_UPS), asleep: grown(WAKE_UPS + 1) }
}

/// The time of hangs between two readings of `struct total`.
pub(super) fn hang_time(total: &[u64], before: &[u64]) -> Seconds {
    Seconds::from_ns(growth(HUNG, total, before))
}

/// The longest single waits.
pub(super) fn longest_waits(total: &[u64]) -> Vec<Longest> {
    let kinds = [Doing::Disk, Doing::Filesystem, Doing::DirtyThrottled, Doing::ReclaimStalled];
    let waits = kinds.into_iter().zip(total.get(LONGEST..HUNG).unwrap_or_default());
    waits
        .filter(|(_, ns)| **ns > 0)
        .map(|(doing, ns)| Longest { doing, time_s: Seconds::from_ns(*ns) })
        .collect()
}

/// The system call of the longest wait of unknown meaning; `None` where there was none, or where it was
/// in no call that can be named.
pub(super) fn unknown_call(total: &[u64]) -> Option<String> {
    total.get(UNKNOWN_LONGEST).filter(|ns| **ns > 0)?;
    let number = total.get(UNKNOWN_CALL)?.checked_sub(1)?;
    usize::try_from(number).ok().map(syscalls::name)
}

#[cfg(test)]
mod tests {
    use super::super::kernel_types::tests::places;
    use super::*;

    #[test]
    fn the_kernel_and_this_program_find_the_same_numbers() {
        let (places, bytes) = places("total");
        for (name, index) in [
            ("started", STARTED),
            ("connecting", CONNECTING),
            ("first", FIRST),
            ("longest", LONGEST),
            ("hung", HUNG),
            ("sampled", SAMPLED),
            ("faulting", FAULTING),
            ("faulting_on_data", FAULTING_ON_DATA),
            ("reading", READING),
            ("completing", COMPLETING),
            ("waking", WAKING),
            ("calling", CALLING),
            ("wake_ups", WAKE_UPS),
            ("lost", LOST),
            ("behind", BEHIND),
        ] {
            assert_eq!(places[name], 8 * index, "{name}");
        }
        assert_eq!(places["listener"], 8 * (LOST + 1));
        assert_eq!(places["unknown_longest"], 8 * UNKNOWN_LONGEST);
        assert_eq!(places["unknown_call"], 8 * UNKNOWN_CALL);
        let ways = Polling::ALL.len() * Doing::ALL.len() * Cause::ALL.len();
        assert_eq!(bytes, 8 * (BEHIND + ways));
    }
}
