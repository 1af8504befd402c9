//! Transparent huge pages.

use crate::{Bytes, Reading};
use serde::{Deserialize, Serialize};

/// Transparent huge pages. Texts are the word in brackets of the sysfs file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Thp {
    /// `always`, `madvise` or `never`.
    pub enabled: String,
    /// `always`, `defer`, `defer+madvise`, `madvise` or `never`.
    pub defrag: Reading<String>,
    /// For shared memory: `always`, `within_size`, `advise`, `never`, `deny` or `force`.
    pub shmem_enabled: Reading<String>,
    /// Size of the page that `enabled` is about.
    pub pmd_bytes: Reading<Bytes>,
    /// Settings of each size, where the kernel has them (6.8 and newer), ascending.
    pub sizes: Reading<Vec<ThpSize>>,
    /// Whether khugepaged may allocate with reclaim and compaction.
    pub khugepaged_defrag: Reading<bool>,
    /// How many pages khugepaged scans in one go.
    pub khugepaged_pages_to_scan: Reading<u64>,
    /// How many empty base pages a huge page may be made of.
    pub khugepaged_max_ptes_none: Reading<u64>,
}

impl Thp {
    /// Transparent huge pages of which only this mode is known.
    pub fn unknown(enabled: &str, why: &str) -> Self {
        Self {
            enabled: enabled.to_owned(),
            defrag: Reading::absent(why),
            shmem_enabled: Reading::absent(why),
            pmd_bytes: Reading::absent(why),
            sizes: Reading::absent(why),
            khugepaged_defrag: Reading::absent(why),
            khugepaged_pages_to_scan: Reading::absent(why),
            khugepaged_max_ptes_none: Reading::absent(why),
        }
    }

    /// The mode in force for the size that `enabled` is about: that size may have one of its own.
    pub fn mode(&self) -> &str {
        self.pmd_size().map_or(&self.enabled, |size| self.mode_of(size))
    }

    /// The mode in force for one size.
    pub fn mode_of<'a>(&'a self, size: &'a ThpSize) -> &'a str {
        if size.enabled == INHERIT { &self.enabled } else { &size.enabled }
    }

    /// Whether the kernel backs memory with huge pages of some size that nobody asked for.
    pub fn is_always(&self) -> bool {
        let mut sizes = self.sizes.value().into_iter().flatten();
        self.mode() == ALWAYS || sizes.any(|size| self.mode_of(size) == ALWAYS)
    }

    /// The size that `enabled` is about, where it has a setting.
    pub fn pmd_size(&self) -> Option<&ThpSize> {
        let pmd = self.pmd_bytes.value()?;
        self.sizes.value()?.iter().find(|size| size.size_bytes == *pmd)
    }
}

/// The mode in which huge pages are given to all.
const ALWAYS: &str = "always";

/// The setting of a size by which it follows `enabled`.
pub const INHERIT: &str = "inherit";

/// One size of transparent huge page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ThpSize {
    /// The size.
    pub size_bytes: Bytes,
    /// `always`, `inherit`, `madvise` or `never`.
    pub enabled: String,
}

impl ThpSize {
    /// The file of its setting.
    pub fn file(&self) -> String {
        let kib = self.size_bytes.0 >> 10;
        format!("/sys/kernel/mm/transparent_hugepage/hugepages-{kib}kB/enabled")
    }
}

/// A program that sets transparent huge pages by itself, at every boot and whenever it is restarted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ThpSetter {
    /// `tuned`, or `Node Tuning Operator` where that brought the profile.
    pub program: String,
    /// The profile that is active.
    pub active: String,
    /// The file that names the mode: that profile's, or one of a profile that it includes.
    pub file: String,
    /// The mode that it sets.
    pub mode: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(enabled: &str, sizes: &[(u64, &str)]) -> Thp {
        let sizes = sizes.iter().map(|(kib, enabled)| ThpSize {
            size_bytes: Bytes(kib << 10),
            enabled: (*enabled).to_owned(),
        });
        Thp {
            pmd_bytes: Reading::Present(Bytes::MIB_2),
            sizes: Reading::Present(sizes.collect()),
            ..Thp::unknown(enabled, "not read")
        }
    }

    #[test]
    fn a_size_of_its_own_mode_does_not_follow_the_others() {
        assert_eq!(with("always", &[(2048, "inherit")]).mode(), "always");
        assert_eq!(with("always", &[(64, "inherit"), (2048, "never")]).mode(), "never");
        assert_eq!(Thp::unknown("madvise", "before 6.8").mode(), "madvise");
        assert!(with("never", &[(64, "always"), (2048, "inherit")]).is_always());
        assert!(with("always", &[(64, "inherit"), (2048, "never")]).is_always());
        assert!(!with("always", &[(64, "never"), (2048, "madvise")]).is_always());
    }
}
