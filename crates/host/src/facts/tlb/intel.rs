//! TLBs as Intel processors tell of them: leaf 0x18, or the descriptors of leaf 2 on older ones.
//!
//! Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2A, CPUID.

use super::super::cpuid::{INTEL_DESCRIPTORS, INTEL_TLB, Leaf, Leaves};
use super::buffer::tlb;
use untax_core::Bytes;
use untax_core::Reading::{self, Absent, Present};
use untax_core::host::Tlb;

/// 4 MiB: the huge page of 32-bit x86, which old descriptors name.
const MIB_4: Bytes = Bytes(4 << 20);

/// The descriptor that refers to leaf 0x18.
const SEE_LEAF_18: u8 = 0xfe;

pub(super) fn parse(leaves: &Leaves) -> Reading<Vec<Tlb>> {
    let tlbs: Vec<Tlb> = leaves.all(INTEL_TLB).filter_map(subleaf).collect();
    if !tlbs.is_empty() {
        return Present(tlbs);
    }
    let descriptors = leaves.get(INTEL_DESCRIPTORS).map(descriptors).unwrap_or_default();
    if descriptors.contains(&SEE_LEAF_18) {
        return Absent("CPUID leaf 0x18 is blank: the hypervisor hides the TLBs".to_owned());
    }
    Present(descriptors.into_iter().flat_map(described).collect())
}

/// Entries are ways times sets; a subleaf of type 0 holds nothing.
fn subleaf(leaf: Leaf) -> Option<Tlb> {
    let kind = match leaf.edx & 0x1f {
        1 | 4 => "data",
        2 => "instruction",
        3 => "unified",
        5 => "store",
        _ => return None,
    };
    let level = u8::try_from(leaf.edx >> 5 & 0b111).ok()?;
    let sizes = [Bytes::KIB_4, Bytes::MIB_2, MIB_4, Bytes::GIB_1];
    let supported = |bit: usize| leaf.ebx >> bit & 1 == 1;
    let pages: Vec<Bytes> =
        (0..).zip(sizes).filter(|(bit, _)| supported(*bit)).map(|(_, size)| size).collect();
    let ways = leaf.ebx >> 16;
    let entries = ways.checked_mul(leaf.ecx).filter(|entries| *entries > 0)?;
    let is_full = leaf.edx >> 8 & 1 == 1;
    Some(tlb(level, kind, &pages, entries, Some(if is_full { entries } else { ways })))
}

/// The bytes of leaf 2: a register whose top bit is set holds none, and the lowest byte of EAX
/// is not one.
fn descriptors(leaf: Leaf) -> Vec<u8> {
    let bytes = [leaf.eax & !0xff, leaf.ebx, leaf.ecx, leaf.edx]
        .into_iter()
        .filter(|register| register >> 31 == 0)
        .flat_map(u32::to_le_bytes);
    bytes.filter(|byte| *byte != 0).collect()
}

const K4: Bytes = Bytes::KIB_4;
const M2: Bytes = Bytes::MIB_2;
const M4: Bytes = MIB_4;
const G1: Bytes = Bytes::GIB_1;

/// What one descriptor says; fully associative where ways equal entries.
type Described = (u8, u8, &'static str, &'static [Bytes], u32, u32);

/// The TLB descriptors of the manual's table 3-12: byte, level, kind, pages, entries, ways. Where
/// the table names no level, the larger of two is the second.
const TABLE: &[Described] = &[
    (0x01, 1, "instruction", &[K4], 32, 4),
    (0x02, 1, "instruction", &[M4], 2, 2),
    (0x03, 1, "data", &[K4], 64, 4),
    (0x04, 1, "data", &[M4], 8, 4),
    (0x05, 1, "data", &[M4], 32, 4),
    (0x0b, 1, "instruction", &[M4], 4, 4),
    (0x55, 1, "instruction", &[M2, M4], 7, 7),
    (0x56, 1, "data", &[M4], 16, 4),
    (0x57, 1, "data", &[K4], 16, 4),
    (0x59, 1, "data", &[K4], 16, 16),
    (0x5a, 1, "data", &[M2, M4], 32, 4),
    (0x61, 1, "instruction", &[K4], 48, 48),
    (0x63, 1, "data", &[M2, M4], 32, 4),
    (0x63, 1, "data", &[G1], 4, 4),
    (0x64, 2, "data", &[K4], 512, 4),
    (0x6a, 1, "data", &[K4], 64, 8),
    (0x6b, 2, "data", &[K4], 256, 8),
    (0x6c, 2, "data", &[M2, M4], 128, 8),
    (0x6d, 2, "data", &[G1], 16, 16),
    (0x76, 1, "instruction", &[M2, M4], 8, 8),
    (0xa0, 1, "data", &[K4], 32, 32),
    (0xb0, 1, "instruction", &[K4], 128, 4),
    (0xb1, 1, "instruction", &[M2], 8, 4),
    (0xb2, 1, "instruction", &[K4], 64, 4),
    (0xb3, 1, "data", &[K4], 128, 4),
    (0xb4, 1, "data", &[K4], 256, 4),
    (0xb5, 1, "instruction", &[K4], 64, 8),
    (0xb6, 1, "instruction", &[K4], 128, 8),
    (0xba, 1, "data", &[K4], 64, 4),
    (0xc0, 1, "data", &[K4, M4], 8, 4),
    (0xc1, 2, "unified", &[K4, M2], 1024, 8),
    (0xc2, 1, "data", &[K4, M2], 16, 4),
    (0xc3, 2, "unified", &[K4, M2], 1536, 6),
    (0xc3, 2, "unified", &[G1], 16, 4),
    (0xc4, 1, "data", &[M2, M4], 32, 4),
    (0xca, 2, "unified", &[K4], 512, 4),
];

fn described(byte: u8) -> impl Iterator<Item = Tlb> {
    TABLE
        .iter()
        .filter(move |row| row.0 == byte)
        .map(|&(_, level, kind, pages, entries, ways)| tlb(level, kind, pages, entries, Some(ways)))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{leaves, shown};
    use super::*;

    const INTEL: (u32, u32, [u32; 4]) = (0, 0, [0x1b, 0x756e_6547, 0x6c65_746e, 0x4965_6e69]);
    /// Leaf 2 of every processor that has leaf 0x18.
    const ELSEWHERE: (u32, u32, [u32; 4]) = (2, 0, [0x00fe_ff01, 0xf0, 0, 0]);

    #[test]
    fn ice_lake() {
        // An i7-1068NG7: type, level, ways, sets and page sizes of each subleaf as published.
        let ice_lake = leaves(&[
            INTEL,
            ELSEWHERE,
            (INTEL_TLB, 0, [7, 0, 0, 0]),
            (INTEL_TLB, 1, [0, 0x0008_0007, 1, 0x4122]),
            (INTEL_TLB, 2, [0, 0x0010_000f, 1, 0x4125]),
            (INTEL_TLB, 3, [0, 0x0004_0001, 16, 0x4024]),
            (INTEL_TLB, 4, [0, 0x0004_0006, 8, 0x4024]),
            (INTEL_TLB, 5, [0, 0x0008_0008, 1, 0x4124]),
            (INTEL_TLB, 6, [0, 0x0008_0007, 128, 0x4043]),
            (INTEL_TLB, 7, [0, 0x0008_0009, 128, 0x4043]),
        ]);
        assert_eq!(
            shown(&ice_lake),
            [
                "L1 data 4K: 64, 4-way",
                "L1 data 2M+4M: 32, 4-way",
                "L1 data 1G: 8, 8-way",
                "L1 instruction 4K+2M+4M: 8, 8-way",
                "L1 store 4K+2M+4M+1G: 16, 16-way",
                "L2 unified 4K+2M+4M: 1024, 8-way",
                "L2 unified 4K+1G: 1024, 8-way",
            ]
        );
    }

    #[test]
    fn cascade_lake_has_descriptors_only() {
        // A Xeon Gold 6252.
        let cascade_lake = leaves(&[INTEL, (2, 0, [0x7603_6301, 0x00f0_b5ff, 0, 0x00c3_0000])]);
        assert_eq!(
            shown(&cascade_lake),
            [
                "L1 data 2M+4M: 32, 4-way",
                "L1 data 1G: 4, 4-way",
                "L1 data 4K: 64, 4-way",
                "L1 instruction 2M+4M: 8, 8-way",
                "L1 instruction 4K: 64, 8-way",
                "L2 unified 4K+2M: 1536, 6-way",
                "L2 unified 1G: 16, 4-way",
            ]
        );
    }

    #[test]
    fn a_blanked_leaf_18_is_the_hypervisors_doing() {
        let guest = leaves(&[INTEL, ELSEWHERE, (INTEL_TLB, 0, [0; 4])]);
        assert!(matches!(parse(&guest), Absent(why) if why.contains("hypervisor")));
        assert!(matches!(super::super::parse(&leaves(&[INTEL])), Absent(_)));
    }

    #[test]
    fn a_register_without_descriptors_is_skipped() {
        let leaf = Leaf { eax: 0x0000_0301, ebx: 0x8000_00c3, ..Leaf::default() };
        assert_eq!(descriptors(leaf), [0x03]);
    }

    #[test]
    fn impossible_sizes_are_left_out() {
        let leaf = Leaf { ebx: 0xffff_0001, ecx: u32::MAX, edx: 0x21, ..Leaf::default() };
        assert_eq!(subleaf(leaf), None);
        assert_eq!(subleaf(Leaf { ebx: 1, ecx: 0, edx: 0x21, ..Leaf::default() }), None);
    }
}
