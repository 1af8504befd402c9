//! Page sizes that the processor and the kernel can map.

use super::{Fact, cpuinfo, hugepages};
use crate::Host;
use std::collections::BTreeSet;
use untax_core::Reading::{Failed, Present};
use untax_core::host::HostFacts;
use untax_core::{Bytes, Reading};

pub(super) const FACT: Fact = Fact {
    id: "page_sizes",
    summary: "the base page and the huge pages that can be mapped",
    source: "sysconf(_SC_PAGESIZE), /sys/kernel/mm/hugepages, flags in /proc/cpuinfo",
    privilege: "none",
    minimum_kernel: "2.6.32",
    cost: "one file and one directory",
    read,
};

/// x86 flags that mean a page size (AMD64 Architecture Programmer's Manual, volume 2, 5.3).
const FLAGS: [(&str, Bytes); 2] = [("pse", Bytes::MIB_2), ("pdpe1gb", Bytes::GIB_1)];

fn read(host: &Host, facts: &mut HostFacts) {
    let base: Reading<u64> =
        host.observe("base_page_bytes", || Present(rustix::param::page_size() as u64));
    facts.base_page_bytes = base.and_then(|bytes| match bytes {
        0 => Failed("a base page of no bytes".to_owned()),
        bytes => Present(Bytes(bytes)),
    });
    let pools = hugepages::sizes(host);
    let flags = cpuinfo::read(host).map(|info| info.flags);
    facts.page_sizes_bytes =
        facts.base_page_bytes.clone().and_then(|base| together(base, pools, flags));
}

/// What the processor can map and the kernel has no pool for counts too: a 1 GiB pool may need
/// to be asked for at boot. With neither source known, nothing is.
fn together(
    base: Bytes,
    pools: Reading<Vec<Bytes>>,
    flags: Reading<BTreeSet<String>>,
) -> Reading<Vec<Bytes>> {
    let by_flag = flags.map(|flags| {
        let known = FLAGS.iter().filter(|(flag, _)| flags.contains(*flag));
        known.map(|(_, size)| *size).collect::<Vec<_>>()
    });
    let known = match (pools.into_result(), by_flag.into_result()) {
        (Err(gap), Err(_)) => return Err(gap).into(),
        (pools, by_flag) => pools.into_iter().chain(by_flag).flatten(),
    };
    let sizes: BTreeSet<Bytes> = known.chain([base]).collect();
    Present(sizes.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use untax_core::Reading::{Absent, Denied};

    fn flags(words: &[&str]) -> Reading<BTreeSet<String>> {
        Present(words.iter().map(|word| (*word).to_owned()).collect())
    }

    #[test]
    fn pools_and_flags_add_up() {
        let base = Bytes::KIB_4;
        let x86 = together(base, Present(vec![Bytes::MIB_2]), flags(&["pse", "pdpe1gb"]));
        assert_eq!(x86, Present(vec![base, Bytes::MIB_2, Bytes::GIB_1]));
        let no_pools = together(base, Absent("none".to_owned()), flags(&["pse"]));
        assert_eq!(no_pools, Present(vec![base, Bytes::MIB_2]));
        let arm64 = vec![Bytes::from_kib(64), Bytes::MIB_2, Bytes::from_mib(32), Bytes::GIB_1];
        let sizes = together(base, Present(arm64.clone()), flags(&[])).into_value().unwrap();
        assert_eq!(sizes[1..], arm64);
    }

    #[test]
    fn without_a_source_nothing_is_known() {
        let denied = || Denied("/proc/cpuinfo".to_owned());
        let none = together(Bytes::KIB_4, Absent("no sysfs".to_owned()), denied());
        assert_eq!(none, Absent("no sysfs".to_owned()));
        let pools = together(Bytes::KIB_4, Present(vec![]), denied());
        assert_eq!(pools, Present(vec![Bytes::KIB_4]));
    }
}
