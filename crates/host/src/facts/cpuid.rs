//! Leaves of the CPUID instruction, kept raw so that what is made of them can be replayed.

use crate::Host;
use serde::{Deserialize, Serialize};
use untax_core::Reading;

/// The registers that CPUID gave for one leaf and subleaf.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Leaf {
    pub(super) number: u32,
    pub(super) subleaf: u32,
    pub(super) eax: u32,
    pub(super) ebx: u32,
    pub(super) ecx: u32,
    pub(super) edx: u32,
}

/// The leaves that were read, in ascending order; one beyond the processor's last is left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Leaves(pub(super) Vec<Leaf>);

impl Leaves {
    /// A leaf, unless there is none or a hypervisor blanked it.
    pub(super) fn get(&self, leaf: u32) -> Option<Leaf> {
        self.all(leaf).find(|found| found.subleaf == 0)
    }

    /// All subleaves of a leaf, blanked ones left out.
    pub(super) fn all(&self, leaf: u32) -> impl Iterator<Item = Leaf> {
        let blank = |found: &Leaf| (found.eax, found.ebx, found.ecx, found.edx) == (0, 0, 0, 0);
        self.0.iter().copied().filter(move |found| found.number == leaf && !blank(found))
    }

    /// The twelve letters in three registers of a leaf.
    pub(super) fn signature(&self, leaf: u32, order: fn(Leaf) -> [u32; 3]) -> Option<String> {
        let letters: Vec<u8> =
            order(self.get(leaf)?).iter().flat_map(|r| r.to_le_bytes()).collect();
        let text = String::from_utf8_lossy(&letters);
        Some(text.trim_matches(['\0', ' ']).to_owned())
    }

    /// `GenuineIntel`, `AuthenticAMD`, …
    pub(super) fn vendor(&self) -> Option<String> {
        self.signature(VENDOR, |leaf| [leaf.ebx, leaf.edx, leaf.ecx])
    }
}

/// The leaf with the vendor's name and the last basic leaf.
const VENDOR: u32 = 0;
/// The leaf with the feature bits.
pub(super) const FEATURES: u32 = 1;
/// The leaf with one-byte descriptors of caches and TLBs (Intel).
pub(super) const INTEL_DESCRIPTORS: u32 = 2;
/// The leaf with the deterministic address translation parameters, one subleaf for each TLB (Intel).
pub(super) const INTEL_TLB: u32 = 0x18;
/// The leaf with the hypervisor's name.
pub(super) const HYPERVISOR: u32 = 0x4000_0000;
/// The leaf with the hypervisor's own name where [`HYPERVISOR`] names Hyper-V for Windows guests.
pub(super) const SECOND_HYPERVISOR: u32 = 0x4000_0100;
/// The leaf with the first level of TLBs: 2 MiB pages in EAX, 4 KiB pages in EBX (AMD).
pub(super) const AMD_L1: u32 = 0x8000_0005;
/// The leaf with the second level of TLBs, in the same registers (AMD).
pub(super) const AMD_L2: u32 = 0x8000_0006;
/// The leaf with the TLBs for 1 GiB pages: first level in EAX, second level in EBX (AMD).
pub(super) const AMD_1G: u32 = 0x8000_0019;

/// Whether the feature bits have the one that every hypervisor sets and no processor does.
pub(super) fn is_guest(features: Leaf) -> bool {
    features.ecx >> 31 == 1
}

/// The leaves that facts are made of.
pub(super) fn read(host: &Host) -> Reading<Leaves> {
    host.observe("cpuid", live)
}

#[cfg(target_arch = "x86_64")]
fn live() -> Reading<Leaves> {
    /// More subleaves of leaf 0x18 than any processor has; a hypervisor may claim any number.
    const MAX_SUBLEAVES: u32 = 32;

    let read = |number, subleaf| {
        let answer = raw_cpuid::native_cpuid::cpuid_count(number, subleaf);
        let raw_cpuid::CpuIdResult { eax, ebx, ecx, edx } = answer;
        Leaf { number, subleaf, eax, ebx, ecx, edx }
    };
    // Beyond the last leaf of its range, Intel gives the last basic leaf instead of nothing.
    let last_basic = read(VENDOR, 0).eax;
    let last_extended = read(0x8000_0000, 0).eax;
    let mut leaves = vec![read(VENDOR, 0)];
    let basic = [FEATURES, INTEL_DESCRIPTORS].into_iter().filter(|leaf| *leaf <= last_basic);
    leaves.extend(basic.map(|leaf| read(leaf, 0)));
    if INTEL_TLB <= last_basic {
        let subleaves = read(INTEL_TLB, 0).eax.min(MAX_SUBLEAVES);
        leaves.extend((0..=subleaves).map(|subleaf| read(INTEL_TLB, subleaf)));
    }
    if leaves.iter().any(|leaf| leaf.number == FEATURES && is_guest(*leaf)) {
        leaves.extend([HYPERVISOR, SECOND_HYPERVISOR].map(|leaf| read(leaf, 0)));
    }
    let extended = [AMD_L1, AMD_L2, AMD_1G].into_iter().filter(|leaf| *leaf <= last_extended);
    leaves.extend(extended.map(|leaf| read(leaf, 0)));
    Reading::Present(Leaves(leaves))
}

#[cfg(not(target_arch = "x86_64"))]
fn live() -> Reading<Leaves> {
    let arch = std::env::consts::ARCH;
    Reading::Absent(format!("{arch} has no CPUID instruction, and tells programs no TLB sizes"))
}
