//! Translation look-aside buffers.

mod amd;
mod buffer;
mod intel;

use super::Fact;
use super::cpuid::{self, Leaves};
use crate::Host;
use untax_core::Reading::{self, Absent, Present};
use untax_core::host::{HostFacts, Tlb};

pub(super) const FACT: Fact = Fact {
    id: "tlb",
    summary: "entries and associativity of each TLB, by page size",
    source: "CPUID leaves 2 and 0x18 (Intel), 0x80000005, 0x80000006 and 0x80000019 (AMD)",
    privilege: "none",
    minimum_kernel: "any",
    cost: "about fifteen CPUID instructions, each an exit to the hypervisor in a virtual machine",
    read,
};

fn read(host: &Host, facts: &mut HostFacts) {
    facts.tlb = cpuid::read(host).and_then(|leaves| parse(&leaves));
}

fn parse(leaves: &Leaves) -> Reading<Vec<Tlb>> {
    let found = match leaves.vendor().as_deref() {
        Some("GenuineIntel") => intel::parse(leaves),
        // Hygon builds Zen cores under a licence.
        Some("AuthenticAMD" | "HygonGenuine") => amd::parse(leaves),
        Some(vendor) => Absent(format!("what CPUID says of TLBs is not known for {vendor}")),
        None => Absent("CPUID names no vendor".to_owned()),
    };
    found.and_then(|mut tlbs| {
        tlbs.sort_by(|a, b| (a.level, &a.kind).cmp(&(b.level, &b.kind)));
        if tlbs.is_empty() {
            return Absent("CPUID describes no TLB: a hypervisor hides them".to_owned());
        }
        Present(tlbs)
    })
}

#[cfg(test)]
mod tests {
    use super::super::cpuid::Leaf;
    use super::*;
    use untax_core::Bytes;

    pub(super) fn leaves(leaves: &[(u32, u32, [u32; 4])]) -> Leaves {
        let leaf = |(number, subleaf, [eax, ebx, ecx, edx]): &(u32, u32, [u32; 4])| Leaf {
            number: *number,
            subleaf: *subleaf,
            eax: *eax,
            ebx: *ebx,
            ecx: *ecx,
            edx: *edx,
        };
        Leaves(leaves.iter().map(leaf).collect())
    }

    /// `L1 data 4K: 64, 64-way` and so on, for comparing at a glance.
    pub(super) fn shown(leaves: &Leaves) -> Vec<String> {
        let size = |bytes: &Bytes| match bytes.0 >> 10 {
            kib if kib >= 1 << 20 => format!("{}G", kib >> 20),
            kib if kib >= 1 << 10 => format!("{}M", kib >> 10),
            kib => format!("{kib}K"),
        };
        let line = |tlb: &Tlb| {
            let pages: Vec<String> = tlb.page_sizes_bytes.iter().map(size).collect();
            let ways = tlb.ways.map_or("? ways".to_owned(), |ways| format!("{ways}-way"));
            format!("L{} {} {}: {}, {ways}", tlb.level, tlb.kind, pages.join("+"), tlb.entries)
        };
        parse(leaves).into_value().unwrap().iter().map(line).collect()
    }

    #[test]
    fn an_unknown_vendor_is_absent() {
        let centaur = leaves(&[(0, 0, [1, 0x746e_6543, 0x736c_7561, 0x4872_7561])]);
        assert!(matches!(parse(&centaur), Absent(why) if why.contains("CentaurHauls")));
        assert!(matches!(parse(&Leaves::default()), Absent(_)));
    }
}
