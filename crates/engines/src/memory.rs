//! The large mappings of one database.

use untax_core::Bytes;
use untax_core::Reading::{self, Absent, Failed, Present};
use untax_core::database::Segment;
use untax_host::Host;

/// Mappings smaller than this hold no data worth huge pages: code, stacks, arenas of `malloc`.
pub(crate) const LARGE: Bytes = Bytes::from_mib(32);

/// The large mappings of a main process.
pub(crate) struct Memory {
    /// All writable mappings that the data may be in, largest first, with their page sizes.
    pub segments: Reading<Vec<Segment>>,
    /// Anonymous memory in transparent huge pages.
    pub anon_huge_bytes: Reading<Bytes>,
    /// Lengths of all mappings, large or not, that are on pages of a pool by their name.
    pub pooled: Vec<Bytes>,
    /// The largest shared mapping, large or not.
    pub largest_shared: Reading<Segment>,
}

impl Memory {
    pub fn unread() -> Self {
        let why = || "not read yet".to_owned();
        Self {
            segments: Absent(why()),
            anon_huge_bytes: Absent(why()),
            pooled: Vec::new(),
            largest_shared: Absent(why()),
        }
    }

    /// The large segments for which `holds_data` is true: their length together, and the page
    /// size behind most of it.
    pub fn of(&self, holds_data: impl Fn(&Segment) -> bool) -> (Reading<Bytes>, Reading<Bytes>) {
        let chosen = self
            .segments
            .as_ref()
            .map(|segments| segments.iter().filter(|s| holds_data(s)).collect::<Vec<_>>());
        let chosen = chosen.and_then(|chosen| {
            if chosen.is_empty() {
                return Absent(format!("no mapping of {LARGE} or more"));
            }
            Present(chosen)
        });
        let total = chosen.as_ref().map(|chosen| chosen.iter().map(|s| s.bytes).sum());
        (total, chosen.and_then(|chosen| most_common_page(&chosen)))
    }
}

fn most_common_page(segments: &[&Segment]) -> Reading<Bytes> {
    let known = segments.iter().filter_map(|s| s.page_size_bytes.value());
    let of_size = |size: Bytes| -> Bytes {
        let same = segments.iter().filter(|s| s.page_size_bytes.value() == Some(&size));
        same.map(|s| s.bytes).sum()
    };
    match known.copied().max_by_key(|size| of_size(*size)) {
        Some(size) => Present(size),
        None => segments[0].page_size_bytes.clone(),
    }
}

/// The kernel's default huge page.
pub(crate) fn default_huge_page(host: &Host) -> Reading<Bytes> {
    host.text("/proc/meminfo").and_then(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix("Hugepagesize:"));
        let Some(line) = line else {
            return Absent("this kernel has no pools of huge pages".to_owned());
        };
        match line.trim().strip_suffix(" kB").and_then(|kib| kib.trim().parse().ok()) {
            Some(kib) => Present(Bytes::from_kib(kib)),
            None => Failed("Hugepagesize in /proc/meminfo has an unexpected form".to_owned()),
        }
    })
}
