//! Neighbours that held locks of the kernel.

use super::totals::numbers;
use crate::bpf::Running;
use libbpf_rs::{MapCore, MapFlags};
use untax_core::Seconds;
use untax_core::activity::{Cause, Holder};
use untax_host::{Host, cgroup};

/// The length of a thread's name in `struct holder` of threads.h.
const COMM: usize = 16;

/// So many are told of.
const MOST: usize = 5;

/// Less than this is no hold-up: s.
const WORTH_S: f64 = 0.001;

/// Those of this window, the ones that held others up for longest first; the next one begins without.
pub(super) fn drain(bpf: &Running, host: &Host) -> libbpf_rs::Result<Vec<Holder>> {
    let map = bpf.map("holders")?;
    let keys: Vec<Vec<u8>> = map.keys().collect();
    let mut holders = Vec::new();
    for key in keys {
        let holder = map.lookup(&key, MapFlags::ANY)?;
        let pid = key.try_into().map(u32::from_ne_bytes).ok();
        if let Some((pid, holder)) = pid.zip(holder) {
            holders.extend(of(pid, &holder).filter(|holder| holder.time_s.0 >= WORTH_S));
            let _ = map.delete(&pid.to_ne_bytes());
        }
    }
    holders.sort_by(|a: &Holder, b| b.time_s.0.total_cmp(&a.time_s.0));
    holders.truncate(MOST);
    for holder in &mut holders {
        holder.cgroup = cgroup::path_of(host, holder.pid).into_value().unwrap_or_default();
    }
    Ok(holders)
}

/// A thread that holds a lock of the kernel is at work for itself: it computes, or is held up by something. Where it was
/// idle or is not known, an interrupt came upon it.
fn of(pid: u32, holder: &[u8]) -> Option<Holder> {
    let (comm, causes) = holder.split_at_checked(COMM)?;
    let comm: Vec<u8> = comm.iter().copied().take_while(|byte| *byte != 0).collect();
    let times = Cause::ALL.into_iter().zip(numbers(causes));
    let is_hold_up = |cause| !matches!(cause, Cause::Cpu | Cause::Idle | Cause::Unresolved);
    let (cause, ns) = times.filter(|(cause, _)| is_hold_up(*cause)).max_by_key(|(_, ns)| *ns)?;
    Some(Holder {
        pid,
        comm: String::from_utf8_lossy(&comm).into_owned(),
        cgroup: String::new(),
        cause,
        time_s: Seconds::from_ns(ns),
    })
}

#[cfg(test)]
mod tests {
    use super::super::kernel_types::tests::places;
    use super::*;

    #[test]
    fn what_held_it_up_longest_is_told_and_idleness_is_none() {
        let mut bytes = vec![0; COMM + 8 * Cause::ALL.len()];
        bytes[..6].copy_from_slice(b"writer");
        let mut set = |cause: Cause, ns: u64| {
            let at = COMM + 8 * cause as usize;
            bytes[at..at + 8].copy_from_slice(&ns.to_ne_bytes());
        };
        set(Cause::Idle, 9_000_000_000);
        set(Cause::Throttled, 7_000_000_000);
        set(Cause::Disk, 2_000_000_000);
        let holder = of(7, &bytes).unwrap();
        assert_eq!((holder.comm.as_str(), holder.cause), ("writer", Cause::Throttled));
        assert_eq!(holder.time_s, Seconds(7.0));
    }

    #[test]
    fn the_kernel_and_this_program_find_the_same_numbers() {
        assert_eq!(places("holder").1, COMM + 8 * Cause::ALL.len());
    }
}
