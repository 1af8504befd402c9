//! The table: what its rows hold, where they lie, and how a read proves that it read them.
//!
//! A row is `words` words of eight bytes: the first is the row's number, mixed with the table's
//! salt; each next one is [`STEP`] more. A reader adds up all words, so that no byte can be
//! skipped, and compares the first word and the sum with what they must be for the key. The sum
//! is all that verification adds to a read, and it runs while the next line is on its way.
//!
//! With [`Access::Hash`] an open-addressing index of eight bytes per slot follows the rows in the
//! same memory: 40 bits of row number plus one (0 is an empty slot), 24 bits of hash, linear
//! probing, two thirds full, as a database's buffer hash would be.

use super::keys::{Keys, STEP, mix, within};
use super::options::Access;
use crate::memory::wide_sum;
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use untax_core::Bytes;

/// Bits of an index entry that hold the row.
const ROW_BITS: u32 = 40;

/// Row numbers must fit an index entry.
const MAX_ROWS: u64 = (1 << ROW_BITS) - 2;

/// The form of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layout {
    /// Number of rows.
    pub rows: u64,
    /// Width of a row as asked for; stored in whole words of eight bytes, as databases align.
    pub row_bytes: u64,
    /// With or without an index.
    pub access: Access,
    /// What row numbers are mixed with.
    pub salt: u64,
}

impl Layout {
    /// Checks a layout: at least one row of at least one byte, and a size that can be addressed.
    pub fn new(rows: u64, row_bytes: u64, access: Access, salt: u64) -> Option<Self> {
        let layout = Self { rows, row_bytes, access, salt };
        let words = rows.checked_mul(layout.row_words())?.checked_add(layout.index_slots())?;
        let fits = words.checked_mul(8).is_some_and(|bytes| bytes < 1 << 62);
        (fits && row_bytes > 0 && (1..=MAX_ROWS).contains(&rows)).then_some(layout)
    }

    /// The most rows of a width that fit into `memory`, index included.
    pub fn rows_in(memory: Bytes, row_bytes: u64, access: Access) -> u64 {
        let index = if access == Access::Hash { 12 } else { 0 };
        memory.0.saturating_sub(128) / (row_bytes.div_ceil(8) * 8 + index)
    }

    /// Words of one row.
    pub fn row_words(&self) -> u64 {
        self.row_bytes.div_ceil(8)
    }

    /// Slots of the index: half as many again as rows, plus room for the smallest tables.
    fn index_slots(&self) -> u64 {
        match self.access {
            Access::Hash => self.rows + self.rows / 2 + 8,
            Access::Direct => 0,
        }
    }

    /// Memory of the table, index included.
    pub fn bytes(&self) -> Bytes {
        Bytes((self.rows * self.row_words() + self.index_slots()) * 8)
    }

    /// The first word of a row, which doubles as the hash of its key.
    #[inline]
    fn header(&self, row: u64) -> u64 {
        mix(row.wrapping_add(self.salt))
    }

    /// The sum of a row's words over and above `words` times its header.
    fn sum_of_steps(&self) -> u64 {
        let n = self.row_words();
        // n(n-1)/2 with the even factor halved first: exact, then wrapping like the sum itself.
        let pairs = if n.is_multiple_of(2) {
            (n / 2).wrapping_mul(n - 1)
        } else {
            n.wrapping_mul((n - 1) / 2)
        };
        STEP.wrapping_mul(pairs)
    }

    /// Splits the words of a table into rows and index.
    fn split<'a, T>(&self, words: &'a [T]) -> Option<(&'a [T], &'a [T])> {
        let rows = (self.rows * self.row_words()) as usize;
        words.get(..rows + self.index_slots() as usize).map(|used| used.split_at(rows))
    }

    /// Writes the rows `from..to` and their index entries. Several fillers may run at once on
    /// different rows. `false` when the words are too few for this layout.
    pub fn fill(&self, words: &[AtomicU64], from: u64, to: u64) -> bool {
        let Some((rows, index)) = self.split(words) else { return false };
        let width = self.row_words() as usize;
        for row in from..to.min(self.rows) {
            let mut value = self.header(row);
            let start = row as usize * width;
            for word in &rows[start..start + width] {
                word.store(value, Relaxed);
                value = value.wrapping_add(STEP);
            }
            if self.access == Access::Hash {
                self.insert(index, row);
            }
        }
        true
    }

    /// Takes the first empty slot at or after the key's own.
    fn insert(&self, index: &[AtomicU64], row: u64) {
        let hash = self.header(row);
        let entry = (hash << ROW_BITS) | (row + 1);
        let mut slot = within(hash, index.len() as u64) as usize;
        while index[slot].compare_exchange(0, entry, Relaxed, Relaxed).is_err() {
            slot = if slot + 1 == index.len() { 0 } else { slot + 1 };
        }
    }
}

/// A filled table, for reading.
pub struct Table<'a> {
    layout: Layout,
    rows: &'a [u64],
    index: &'a [u64],
    width: usize,
    steps: u64,
}

/// A row that did not hold what it must.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Corrupt {
    /// The row.
    pub row: u64,
}

impl<'a> Table<'a> {
    /// The table of a layout in these words; `None` when they are too few.
    pub fn new(layout: Layout, words: &'a [u64]) -> Option<Self> {
        let (rows, index) = layout.split(words)?;
        let (width, steps) = (layout.row_words() as usize, layout.sum_of_steps());
        Some(Self { layout, rows, index, width, steps })
    }

    /// Reads and verifies `count` rows by key, the way of access that the layout has.
    pub fn read(&self, keys: &mut Keys, count: u32) -> Result<(), Corrupt> {
        match self.layout.access {
            Access::Direct => (0..count).try_for_each(|_| self.read_direct(keys.next_key())),
            Access::Hash => (0..count).try_for_each(|_| self.read_hashed(keys.next_key())),
        }
    }

    /// Touches `count` rows, each chosen by what the one before held: no two are on their way
    /// at once. Only the first word is read, and verified.
    pub fn chase(&self, keys: &mut Keys, count: u32) -> Result<(), Corrupt> {
        let mut seen = 0;
        for _ in 0..count {
            let row = keys.next_after(seen);
            seen = self.rows[row as usize * self.width];
            if seen != self.layout.header(row) {
                return Err(Corrupt { row });
            }
        }
        Ok(())
    }

    #[inline]
    fn read_direct(&self, row: u64) -> Result<(), Corrupt> {
        let header = self.layout.header(row);
        if self.holds(row, header) { Ok(()) } else { Err(Corrupt { row }) }
    }

    /// Looks the key up in the index, as a database finds a buffer by its tag: an entry whose
    /// hash bits agree is a candidate, and the row itself decides.
    #[inline]
    fn read_hashed(&self, key: u64) -> Result<(), Corrupt> {
        const ROW: u64 = (1 << ROW_BITS) - 1;
        let hash = self.layout.header(key);
        let mut slot = within(hash, self.index.len() as u64) as usize;
        loop {
            let entry = self.index[slot];
            if entry == 0 {
                return Err(Corrupt { row: key });
            }
            let row = (entry & ROW) - 1;
            if entry >> ROW_BITS == hash & (u64::MAX >> ROW_BITS) && self.holds(row, hash) {
                return Ok(());
            }
            slot = if slot + 1 == self.index.len() { 0 } else { slot + 1 };
        }
    }

    /// Whether the row at this place begins with `header` and adds up: every byte is read.
    #[expect(clippy::inline_always, reason = "see `sum`: the fewer instructions, the better")]
    #[inline(always)]
    fn holds(&self, row: u64, header: u64) -> bool {
        let start = row as usize * self.width;
        let Some(words) = self.rows.get(start..start + self.width) else { return false };
        let sum = sum(words);
        let expected = header.wrapping_mul(self.width as u64).wrapping_add(self.steps);
        words[0] == header && sum == expected
    }
}

/// Rows of more words than this are summed in the widest vectors of this CPU: for shorter ones the call
/// would be a larger part of the read.
const LONG: usize = 64;

/// The sum of all words.
///
/// Rows of 128 bytes, where page size matters most, get code without a loop: the fewer
/// instructions a read takes, the more reads are on their way at once (measured: 30 ns a read
/// against 40 with a loop, on 2 MiB pages). Rows of 8 KiB are read 5 % faster by vectors of 32 bytes than
/// by those of 16, which all CPUs have (measured on 4 KiB pages, two readers).
#[expect(clippy::inline_always, reason = "see above: a call is among those instructions")]
#[inline(always)]
fn sum(words: &[u64]) -> u64 {
    let add = |sum: u64, word: &u64| sum.wrapping_add(*word);
    match <&[u64; 16]>::try_from(words) {
        Ok(words) => words.iter().fold(0, add),
        Err(_) if words.len() > LONG => wide_sum(words),
        Err(_) => words.iter().fold(0, add),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn filled(layout: Layout) -> Vec<u64> {
        let words: Vec<AtomicU64> = (0..layout.bytes().0 / 8).map(|_| AtomicU64::new(0)).collect();
        assert!(layout.fill(&words, 0, layout.rows));
        words.into_iter().map(AtomicU64::into_inner).collect()
    }

    fn read_all(layout: Layout, words: &[u64]) -> Result<(), Corrupt> {
        let table = Table::new(layout, words).unwrap();
        (0..layout.rows).try_for_each(|row| match layout.access {
            Access::Direct => table.read_direct(row),
            Access::Hash => table.read_hashed(row),
        })
    }

    fn layouts() -> impl Strategy<Value = Layout> {
        let access = prop_oneof![Just(Access::Direct), Just(Access::Hash)];
        (1..400_u64, 1..300_u64, access, any::<u64>())
            .prop_map(|(rows, width, access, salt)| Layout::new(rows, width, access, salt).unwrap())
    }

    proptest! {
        #[test]
        fn every_row_is_found_and_verified(layout in layouts()) {
            let words = filled(layout);
            prop_assert_eq!(read_all(layout, &words), Ok(()));
            let table = Table::new(layout, &words).unwrap();
            let mut keys = Keys::new(layout.salt, 0, layout.rows);
            prop_assert_eq!(table.read(&mut keys, 100), Ok(()));
            prop_assert_eq!(table.chase(&mut keys, 100), Ok(()));
        }

        #[test]
        fn one_flipped_bit_anywhere_in_the_rows_is_detected(
            layout in layouts(), place in any::<prop::sample::Index>(), bit in 0..64_u32
        ) {
            let mut words = filled(layout);
            let place = place.index((layout.rows * layout.row_words()) as usize);
            words[place] ^= 1 << bit;
            let row = place as u64 / layout.row_words();
            prop_assert_eq!(read_all(layout, &words), Err(Corrupt { row }));
        }

        #[test]
        fn two_rows_in_each_others_place_are_detected(rows in 2..50_u64, width in 1..100_u64) {
            let layout = Layout::new(rows, width, Access::Direct, 3).unwrap();
            let mut words = filled(layout);
            let n = layout.row_words() as usize;
            let (first, second) = words.split_at_mut(n);
            first.swap_with_slice(&mut second[..n]);
            prop_assert_eq!(read_all(layout, &words), Err(Corrupt { row: 0 }));
        }

        #[test]
        fn no_layout_overflows(rows in any::<u64>(), width in any::<u64>()) {
            if let Some(layout) = Layout::new(rows, width, Access::Hash, 0) {
                prop_assert!(layout.bytes().0 / 8 >= rows);
            }
        }

        #[test]
        fn as_many_rows_as_fit(memory in 4096..1_u64 << 40, width in 1..20_000_u64) {
            for access in [Access::Direct, Access::Hash] {
                let rows = Layout::rows_in(Bytes(memory), width, access);
                if let Some(layout) = Layout::new(rows, width, access, 0) {
                    prop_assert!(layout.bytes() <= Bytes(memory));
                    prop_assert!(layout.bytes() + Bytes(2 * width + 300) > Bytes(memory));
                }
            }
        }
    }

    #[test]
    fn fillers_on_different_rows_make_the_same_rows() {
        let layout = Layout::new(1000, 128, Access::Hash, 5).unwrap();
        let words: Vec<AtomicU64> = (0..layout.bytes().0 / 8).map(|_| AtomicU64::new(0)).collect();
        std::thread::scope(|scope| {
            scope.spawn(|| layout.fill(&words, 0, 500));
            scope.spawn(|| layout.fill(&words, 500, 1000));
        });
        let words: Vec<u64> = words.into_iter().map(AtomicU64::into_inner).collect();
        assert_eq!(read_all(layout, &words), Ok(()));
    }

    #[test]
    fn too_few_words_are_refused() {
        let layout = Layout::new(10, 16, Access::Direct, 0).unwrap();
        assert!(Table::new(layout, &[0; 19]).is_none());
        assert!(!layout.fill(&[], 0, 10));
    }
}
