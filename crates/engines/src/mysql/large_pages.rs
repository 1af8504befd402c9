//! What MariaDB and MySQL map from a pool of huge pages, from their settings.
//!
//! A server on base pages does not show it: with `large_pages` its caches are mappings of their
//! own, and of other lengths. Measured on 10.11 over random settings, as lengths in
//! `/proc/PID/maps`; the test `exact_counts` of the remedies repeats it.

use crate::settings::bytes_of;
use std::collections::BTreeMap;
use untax_core::Bytes;

/// The buffer pool grows by pieces of this size.
const PIECE: u64 = 8 << 20;

/// A block of the key cache of `MyISAM`, and what describes it beside it.
const KEY_BLOCK: (u64, u64) = (1024, 216);

/// The same for the page cache of Aria.
const ARIA_BLOCK: (u64, u64) = (8192, 350);

/// In one start of ten it maps these, too, for as long as it runs; what for was not found. A pool
/// that is short by them makes a later mapping fall back, so they are always counted.
const SOMETIMES: [Bytes; 2] = [Bytes::MIB_2, Bytes::from_mib(4)];

/// The lengths of the mappings on huge pages of this size; `None` when a setting is not known. Those
/// below the size of a huge page get none.
pub fn lengths(settings: &BTreeMap<String, String>, page: Bytes) -> Option<Vec<Bytes>> {
    let setting = |name: &str| Some(bytes_of(settings.get(name)?, Bytes(1))?.0);
    let blocks = |size: u64, (block, beside): (u64, u64)| size / (block + beside) * block;
    let log = setting("innodb_log_buffer_size")?;
    let lengths = [
        setting("innodb_buffer_pool_size")?.next_multiple_of(PIECE),
        // One is filled while the other is written.
        log,
        log,
        blocks(setting("key_buffer_size")?, KEY_BLOCK),
        blocks(setting("aria_pagecache_buffer_size")?, ARIA_BLOCK),
    ];
    let all = lengths.into_iter().map(Bytes).chain(SOMETIMES);
    Some(all.filter(|length| *length >= page).collect())
}

/// What MySQL keeps of each page of its buffer pool beside it, in the same mapping: `sizeof(buf_block_t)`.
/// Seen in `/proc/PID/maps` of 9.7.4 on base pages: chunks of 1 GiB are mappings of 1,097,863,168 bytes.
const MYSQL_DESCRIPTOR: u64 = 368;

/// What its allocator keeps of each mapping: a page of its own.
const MYSQL_MAPPING: u64 = 4096;

/// The lengths of MySQL's mappings: one for each chunk of the buffer pool (`buf_chunk_init` of InnoDB). Its
/// log buffer and key cache are on base pages. `None` when a setting is not known.
pub fn of_mysql(settings: &BTreeMap<String, String>) -> Option<Vec<Bytes>> {
    let setting = |name: &str| Some(bytes_of(settings.get(name)?, Bytes(1))?.0);
    let [pool, chunk] =
        [setting("innodb_buffer_pool_size")?, setting("innodb_buffer_pool_chunk_size")?];
    let page = setting("innodb_page_size").filter(|page| *page > 0)?;
    let chunks = usize::try_from(pool.div_ceil(chunk.max(1))).ok()?;
    let descriptors = (chunk / page * MYSQL_DESCRIPTOR).next_multiple_of(page);
    Some(vec![Bytes(chunk + descriptors + MYSQL_MAPPING); chunks])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each is what MySQL 9.7.4 mapped from a pool of pages of 2 MiB.
    #[test]
    fn chunks_of_mysql() {
        let pages = |pool: u64, chunk: u64| {
            let settings = [
                ("innodb_buffer_pool_size", pool << 20),
                ("innodb_buffer_pool_chunk_size", chunk << 20),
                ("innodb_page_size", 16384),
            ];
            let settings = settings.map(|(name, value)| (name.to_owned(), value.to_string()));
            let all = of_mysql(&settings.into()).unwrap();
            all.iter().filter_map(|length| length.pages_of(Bytes::MIB_2)).sum::<u64>()
        };
        assert_eq!(pages(512, 128), 264);
        assert_eq!(pages(1024, 1024), 524);
        assert_eq!(of_mysql(&BTreeMap::new()), None);
    }

    #[test]
    fn defaults_and_small_caches() {
        let mut settings: BTreeMap<String, String> = [
            ("innodb_buffer_pool_size", "134217728"),
            ("innodb_log_buffer_size", "16777216"),
            ("key_buffer_size", "134217728"),
            ("aria_pagecache_buffer_size", "134217728"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
        let pages = |settings: &BTreeMap<String, String>| {
            let all = lengths(settings, Bytes::MIB_2).unwrap();
            all.iter().filter_map(|length| length.pages_of(Bytes::MIB_2)).sum::<u64>()
        };
        assert_eq!(pages(&settings), 64 + 8 + 8 + 53 + 62 + 3);
        settings.insert("key_buffer_size".to_owned(), "8192".to_owned());
        assert_eq!(pages(&settings), 64 + 8 + 8 + 62 + 3);
        let large = lengths(&settings, Bytes::from_mib(512)).unwrap();
        assert!(large.is_empty(), "no cache is as large as such a page");
        settings.remove("key_buffer_size");
        assert_eq!(lengths(&settings, Bytes::MIB_2), None);
    }
}
