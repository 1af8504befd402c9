//! Memory of the whole machine.

use super::{Fact, formats};
use crate::Host;
use untax_core::Reading;
use untax_core::host::{HostFacts, Memory};

pub(super) const FACT: Fact = Fact {
    id: "memory",
    summary: "total, free and available memory, page tables, huge pages, swap",
    source: "/proc/meminfo",
    privilege: "none",
    minimum_kernel: "any; MemAvailable since 3.14, Hugetlb since 4.16",
    cost: "one file",
    read,
};

fn read(host: &Host, facts: &mut HostFacts) {
    facts.memory = host.text("/proc/meminfo").and_then(|text| parse(&text));
}

fn parse(text: &str) -> Reading<Memory> {
    formats::kib(text, "MemTotal:").map(|total_bytes| Memory {
        total_bytes,
        available_bytes: formats::kib(text, "MemAvailable:"),
        free_bytes: formats::kib(text, "MemFree:"),
        page_table_bytes: formats::kib(text, "PageTables:"),
        anon_huge_bytes: formats::kib(text, "AnonHugePages:"),
        shmem_huge_bytes: formats::kib(text, "ShmemHugePages:"),
        hugetlb_bytes: formats::kib(text, "Hugetlb:"),
        default_huge_page_bytes: formats::kib(text, "Hugepagesize:"),
        swap_total_bytes: formats::kib(text, "SwapTotal:"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use untax_core::Bytes;
    use untax_core::Reading::{Absent, Present};

    #[test]
    fn what_the_kernel_does_not_count_is_absent() {
        let memory = parse(
            "MemTotal:       24684084 kB\nMemFree:        23838036 kB\nSwapTotal:  0 kB\n\
             AnonHugePages:      2048 kB\nHugepagesize:   524288 kB\nPageTables:         3564 kB\nSecPageTables:  9 kB\n",
        );
        let memory = memory.into_value().unwrap();
        assert_eq!(memory.total_bytes, Bytes::from_kib(24_684_084));
        assert_eq!(memory.page_table_bytes, Present(Bytes::from_kib(3564)));
        assert_eq!(memory.anon_huge_bytes, Present(Bytes::MIB_2));
        assert_eq!(memory.swap_total_bytes, Present(Bytes(0)));
        assert_eq!(memory.default_huge_page_bytes, Present(Bytes::from_mib(512)));
        assert!(matches!(memory.available_bytes, Absent(_)));
        assert!(matches!(memory.hugetlb_bytes, Absent(_)));
    }

    #[test]
    fn nothing_is_known_without_the_total() {
        assert!(!parse("MemFree: 7 kB\n").is_present());
        assert!(!parse("").is_present());
    }
}
