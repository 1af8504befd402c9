//! TLBs as AMD processors tell of them.
//!
//! Source: AMD64 Architecture Programmer's Manual, volume 3, appendix E.4.

use super::super::cpuid::{AMD_1G, AMD_L1, AMD_L2, Leaf, Leaves};
use super::buffer::tlb;
use untax_core::Bytes;
use untax_core::Reading::{self, Present};
use untax_core::host::Tlb;

/// Entries and associativity of the data and the instruction side in one register.
struct Sides {
    data: (u32, Option<u32>),
    instruction: (u32, Option<u32>),
}

/// A leaf without a page size: blanked, or the processor has no TLB for it.
pub(super) fn parse(leaves: &Leaves) -> Reading<Vec<Tlb>> {
    let register = |leaf: u32, register: fn(Leaf) -> u32| leaves.get(leaf).map_or(0, register);
    let mut tlbs = Vec::new();
    for (level, pages, sides) in [
        (1, Bytes::KIB_4, first_level(register(AMD_L1, |leaf| leaf.ebx))),
        (1, Bytes::MIB_2, first_level(register(AMD_L1, |leaf| leaf.eax))),
        (1, Bytes::GIB_1, encoded(register(AMD_1G, |leaf| leaf.eax))),
        (2, Bytes::KIB_4, encoded(register(AMD_L2, |leaf| leaf.ebx))),
        (2, Bytes::MIB_2, encoded(register(AMD_L2, |leaf| leaf.eax))),
        (2, Bytes::GIB_1, encoded(register(AMD_1G, |leaf| leaf.ebx))),
    ] {
        for (kind, (entries, ways)) in [("data", sides.data), ("instruction", sides.instruction)] {
            if entries > 0 {
                tlbs.push(tlb(level, kind, &[pages], entries, ways));
            }
        }
    }
    Present(tlbs)
}

/// Eight bits each: entries and associativity of the instruction side, then of the data side.
fn first_level(register: u32) -> Sides {
    let side = |bits: u32| {
        let (entries, ways) = (bits & 0xff, bits >> 8 & 0xff);
        match ways {
            0 => (entries, None),
            0xff => (entries, Some(entries)),
            ways => (entries, Some(ways)),
        }
    };
    Sides { data: side(register >> 16), instruction: side(register) }
}

/// Twelve bits of entries and four of associativity: the instruction side, then the data side.
fn encoded(register: u32) -> Sides {
    let side = |bits: u32| {
        let entries = bits & 0xfff;
        match bits >> 12 & 0xf {
            0 => (0, None),
            code => (entries, ways(code, entries)),
        }
    };
    Sides { data: side(register >> 16), instruction: side(register) }
}

/// Associativity as leaf 0x80000006 encodes it; code 0 is a TLB that is off.
fn ways(code: u32, entries: u32) -> Option<u32> {
    Some(match code {
        1..=4 => code,
        5 => 6,
        6 => 8,
        8 => 16,
        0xa => 32,
        0xb => 48,
        0xc => 64,
        0xd => 96,
        0xe => 128,
        0xf => entries,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{leaves, shown};
    use super::*;

    const AMD: (u32, u32, [u32; 4]) = (0, 0, [0x10, 0x6874_7541, 0x444d_4163, 0x6974_6e65]);

    #[test]
    fn zen_3() {
        // An EPYC 7713.
        let milan = leaves(&[
            AMD,
            (AMD_L1, 0, [0xff40_ff40, 0xff40_ff40, 0x2008_0140, 0x2008_0140]),
            (AMD_L2, 0, [0x4800_2200, 0x6800_4200, 0x0200_6140, 0x0800_9140]),
            (AMD_1G, 0, [0xf040_f040, 0xf040_0000, 0, 0]),
        ]);
        assert_eq!(
            shown(&milan),
            [
                "L1 data 4K: 64, 64-way",
                "L1 data 2M: 64, 64-way",
                "L1 data 1G: 64, 64-way",
                "L1 instruction 4K: 64, 64-way",
                "L1 instruction 2M: 64, 64-way",
                "L1 instruction 1G: 64, 64-way",
                "L2 data 4K: 2048, 8-way",
                "L2 data 2M: 2048, 4-way",
                "L2 data 1G: 64, 64-way",
                "L2 instruction 4K: 512, 4-way",
                "L2 instruction 2M: 512, 2-way",
            ]
        );
    }

    #[test]
    fn zen_2_has_no_second_level_for_1g() {
        // A Ryzen of the Matisse series.
        let matisse = leaves(&[
            AMD,
            (AMD_L1, 0, [0xff40_ff40, 0xff40_ff40, 0x2008_0140, 0x2008_0140]),
            (AMD_L2, 0, [0x4800_6400, 0x6800_6400, 0x0200_6140, 0x0100_9140]),
            (AMD_1G, 0, [0xf040_f040, 0, 0, 0]),
        ]);
        let second: Vec<_> =
            shown(&matisse).into_iter().filter(|line| line.starts_with("L2")).collect();
        assert_eq!(
            second,
            [
                "L2 data 4K: 2048, 8-way",
                "L2 data 2M: 2048, 4-way",
                "L2 instruction 4K: 1024, 8-way",
                "L2 instruction 2M: 1024, 8-way",
            ]
        );
    }

    #[test]
    fn blanked_leaves_are_absent() {
        let blank = leaves(&[AMD, (AMD_L1, 0, [0; 4]), (AMD_L2, 0, [0, 0, 0x0200_6140, 0])]);
        assert!(matches!(super::super::parse(&blank), Reading::Absent(_)));
    }
}
