//! One translation look-aside buffer.

use untax_core::Bytes;
use untax_core::host::Tlb;

pub(super) fn tlb(level: u8, kind: &str, pages: &[Bytes], entries: u32, ways: Option<u32>) -> Tlb {
    let page_sizes_bytes = pages.to_vec();
    Tlb { level, kind: kind.to_owned(), page_sizes_bytes, entries, ways }
}
