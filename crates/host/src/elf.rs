//! Which of some symbols the programs of processes export: a program that was renamed is still told by
//! what it offers to the modules that it loads.
//!
//! A lookup in the GNU hash table of a program takes five short reads, whatever the program's size.

use crate::{Host, with_deadline};
use rustix::fs::{Mode, OFlags};
use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use untax_core::Reading::{self, Present};

/// A file that is no program must not make us wait.
const READ: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);

/// More segments, entries or symbols of one hash than any program has.
const MOST_SEGMENTS: u16 = 64;
const MOST_ENTRIES: u64 = 256;
const MOST_OF_ONE_HASH: u32 = 4096;

/// A process, and symbols that its program exports.
pub type Exports = (u32, Vec<String>);

/// Those of `symbols` that the program of each of these processes exports; processes whose program
/// exports none are left out. Programs that are no 64-bit little-endian ELF files, or have no GNU hash
/// table, export none as far as this can tell.
pub fn exported(host: &Host, pids: &[u32], symbols: &[&str]) -> Reading<Vec<Exports>> {
    let pids = pids.to_vec();
    let symbols: Vec<String> = symbols.iter().map(|symbol| (*symbol).to_owned()).collect();
    // Programs may be on any filesystem, as what a process sees below its root.
    let place = format!("/proc/{}/root", std::process::id());
    host.observe("exported-symbols", || {
        with_deadline(&place, move |_| exported_now(&pids, &symbols))
    })
}

fn exported_now(pids: &[u32], symbols: &[String]) -> Reading<Vec<Exports>> {
    // By device and inode: most processes run the program of another.
    let mut known: HashMap<(u64, u64), Vec<String>> = HashMap::new();
    let mut of_process = |pid: &u32| {
        let path = format!("/proc/{pid}/exe");
        let file = File::from(rustix::fs::open(path, READ, Mode::empty()).ok()?);
        let meta = file.metadata().ok().filter(std::fs::Metadata::is_file)?;
        let found = known.entry((meta.dev(), meta.ino())).or_insert_with(|| {
            Program::of(&file).map(|program| program.exported(symbols)).unwrap_or_default()
        });
        (!found.is_empty()).then(|| (*pid, found.clone()))
    };
    Present(pids.iter().filter_map(&mut of_process).collect())
}

/// Where a program keeps what its dynamic symbols are found by, as places in its file.
struct Program<'a> {
    file: &'a File,
    segments: Vec<Segment>,
    hash: u64,
    symbols: u64,
    names: u64,
}

/// A part of the file that is mapped.
struct Segment {
    address: u64,
    offset: u64,
    length: u64,
}

impl<'a> Program<'a> {
    fn of(file: &'a File) -> Option<Self> {
        let header: [u8; 64] = bytes(file, 0)?;
        // 64 bits, little-endian.
        if header[..6] != *b"\x7fELF\x02\x01" {
            return None;
        }
        let table = u64_at(&header, 32)?;
        let (size, count) = (u16_at(&header, 54)?, u16_at(&header, 56)?);
        if size < 56 || count > MOST_SEGMENTS {
            return None;
        }
        let (mut segments, mut dynamic) = (Vec::new(), None);
        for i in 0..u64::from(count) {
            let entry: [u8; 56] = bytes(file, table.checked_add(i * u64::from(size))?)?;
            let segment = Segment {
                offset: u64_at(&entry, 8)?,
                address: u64_at(&entry, 16)?,
                length: u64_at(&entry, 32)?,
            };
            match u32_at(&entry, 0)? {
                1 => segments.push(segment),
                2 => dynamic = Some(segment),
                _ => {}
            }
        }
        let dynamic = dynamic?;
        let mut program = Self { file, segments, hash: 0, symbols: 0, names: 0 };
        for i in 0..(dynamic.length / 16).min(MOST_ENTRIES) {
            let entry: [u8; 16] = bytes(file, dynamic.offset.checked_add(i * 16)?)?;
            let value = u64_at(&entry, 8)?;
            match u64_at(&entry, 0)? {
                0 => break,
                5 => program.names = program.offset(value)?,
                6 => program.symbols = program.offset(value)?,
                0x6fff_fef5 => program.hash = program.offset(value)?,
                _ => {}
            }
        }
        let complete = [program.hash, program.symbols, program.names].iter().all(|at| *at > 0);
        complete.then_some(program)
    }

    fn offset(&self, address: u64) -> Option<u64> {
        self.segments.iter().find_map(|segment| {
            let into =
                address.checked_sub(segment.address).filter(|into| *into < segment.length)?;
            segment.offset.checked_add(into)
        })
    }

    fn exported(&self, symbols: &[String]) -> Vec<String> {
        let found = symbols.iter().filter(|symbol| self.exports(symbol).unwrap_or(false));
        found.cloned().collect()
    }

    /// Looks a symbol up as the dynamic loader does.
    fn exports(&self, symbol: &str) -> Option<bool> {
        let header: [u8; 16] = bytes(self.file, self.hash)?;
        let word = |at| u32_at(&header, at);
        let (buckets, first, filters, shift) = (word(0)?, word(4)?, word(8)?, word(12)?);
        let hash = hash(symbol);
        let filter = u64::from((hash / 64).checked_rem(filters)?);
        let bits: [u8; 8] = bytes(self.file, self.hash.checked_add(16 + filter * 8)?)?;
        let has = |bit: u32| u64::from_le_bytes(bits) >> (bit % 64) & 1 == 1;
        if !has(hash) || !has(hash.checked_shr(shift)?) {
            return Some(false);
        }
        let table = self.hash.checked_add(16 + u64::from(filters) * 8)?;
        let bucket = u64::from(hash.checked_rem(buckets)?);
        let mut index = u32::from_le_bytes(bytes(self.file, table.checked_add(bucket * 4)?)?);
        let chains = table.checked_add(u64::from(buckets) * 4)?;
        for _ in 0..MOST_OF_ONE_HASH {
            let link = u64::from(index.checked_sub(first)?);
            let value = u32::from_le_bytes(bytes(self.file, chains.checked_add(link * 4)?)?);
            if value | 1 == hash | 1 && self.is_defined(index, symbol)? {
                return Some(true);
            }
            if value & 1 == 1 {
                return Some(false);
            }
            index = index.checked_add(1)?;
        }
        None
    }

    fn is_defined(&self, index: u32, symbol: &str) -> Option<bool> {
        let entry: [u8; 24] = bytes(self.file, self.symbols.checked_add(u64::from(index) * 24)?)?;
        let name = self.names.checked_add(u64::from(u32_at(&entry, 0)?))?;
        let mut text = vec![0; symbol.len() + 1];
        self.file.read_exact_at(&mut text, name).ok()?;
        let is_named = text.strip_suffix(b"\0") == Some(symbol.as_bytes());
        Some(is_named && u16_at(&entry, 6)? != 0)
    }
}

/// The hash of the GNU hash table.
fn hash(symbol: &str) -> u32 {
    symbol.bytes().fold(5381, |hash: u32, byte| hash.wrapping_mul(33).wrapping_add(byte.into()))
}

fn bytes<const N: usize>(file: &File, at: u64) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    file.read_exact_at(&mut bytes, at).ok()?;
    Some(bytes)
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Write;

    /// A program with one exported symbol `Main`, in a hash table of one bucket.
    fn program() -> Vec<u8> {
        let mut file = vec![0; 512];
        let mut put = |at: usize, bytes: &[u8]| file[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, b"\x7fELF\x02\x01");
        put(32, &64_u64.to_le_bytes());
        put(54, &56_u16.to_le_bytes());
        put(56, &2_u16.to_le_bytes());
        // All of the file, mapped at 4096; and the dynamic section at 192.
        for (at, kind, offset, address, length) in
            [(64, 1_u32, 0_u64, 4096_u64, 512_u64), (120, 2, 192, 4288, 64)]
        {
            put(at, &kind.to_le_bytes());
            put(at + 8, &offset.to_le_bytes());
            put(at + 16, &address.to_le_bytes());
            put(at + 32, &length.to_le_bytes());
        }
        for (i, (tag, place)) in
            [(5_u64, 256_u64), (6, 272), (0x6fff_fef5, 336)].into_iter().enumerate()
        {
            put(192 + i * 16, &tag.to_le_bytes());
            put(200 + i * 16, &(4096 + place).to_le_bytes());
        }
        put(257, b"Main\0");
        put(272 + 24, &1_u32.to_le_bytes());
        put(272 + 24 + 6, &7_u16.to_le_bytes());
        let hash = hash("Main");
        for (i, word) in [1_u32, 1, 1, 6].into_iter().enumerate() {
            put(336 + i * 4, &word.to_le_bytes());
        }
        let bits = 1_u64 << (hash % 64) | 1_u64 << ((hash >> 6) % 64);
        put(352, &bits.to_le_bytes());
        put(360, &1_u32.to_le_bytes());
        put(364, &(hash | 1).to_le_bytes());
        file
    }

    fn exported_by(content: &[u8], symbols: &[&str]) -> Vec<String> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(content).unwrap();
        let symbols: Vec<String> = symbols.iter().map(|symbol| (*symbol).to_owned()).collect();
        Program::of(&file).map(|program| program.exported(&symbols)).unwrap_or_default()
    }

    #[test]
    fn a_symbol_is_found_by_its_hash_and_its_name() {
        assert_eq!(exported_by(&program(), &["Main", "Other", ""]), ["Main"]);
        // Not one that the program wants of its libraries.
        let mut wanted = program();
        wanted[272 + 24 + 6] = 0;
        assert!(exported_by(&wanted, &["Main"]).is_empty());
    }

    #[test]
    fn the_loader_and_this_test_are_told_apart() {
        let own = exported(&Host::live(), &[std::process::id()], &["no_such_symbol"]);
        assert_eq!(own, Present(Vec::new()));
    }

    proptest! {
        #[test]
        fn no_file_makes_it_fail(at in 0_usize..512, byte: u8, length in 0_usize..513) {
            let mut content = program();
            content[at] = byte;
            content.truncate(length);
            exported_by(&content, &["Main"]);
        }
    }
}
