//! How much of their time on a CPU the threads spend in page faults, in system calls and in reading
//! files: what the samples need to know.

use super::kernel_types::MAX_DATABASES;
use crate::bpf::Running;
use libbpf_rs::{MapCore, MapFlags};
use std::fs::File;
use std::io::{BufRead, BufReader};
use untax_core::Database;
use untax_core::database::Model;
use untax_core::host::cpus;
use untax_host::{Host, process};

/// How densely to sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sampling {
    /// While tracing goes on: enough for a share of a percent in some seconds.
    Throughout,
    /// In slices between pauses. They are a few hundredths of a window, and what samples cost there
    /// is as small a part.
    BetweenPauses,
}

impl Sampling {
    /// Samples of one CPU in a second at most. Not in step with anything that happens every
    /// millisecond.
    fn most_per_s(self) -> u32 {
        match self {
            Self::Throughout => 199,
            Self::BetweenPauses => 997,
        }
    }
}

/// Of all CPUs there are no more than of so many, unless these are fewer of one CPU.
const CPUS: u32 = 2;
const FEWEST_PER_S: u32 = 49;

/// The program's functions: for a sample, and for the address of each page fault.
pub(super) const SAMPLER: &str = "on_sample";
pub(super) const ADDRESSES: &str = "on_page_fault";

/// `KERNEL_FAULTS` of threads.h.
const KERNEL_FAULTS: u32 = MAX_DATABASES as u32;

/// The function through which every page fault enters the kernel, with FRED too, which has no need of the one
/// in assembler before it.
#[cfg(target_arch = "x86_64")]
const ENTRY: &str = "exc_page_fault";
#[cfg(not(target_arch = "x86_64"))]
const ENTRY: &str = "do_mem_abort";

/// The function that looks for pages of a file in the page cache.
const LOOKS: &str = "filemap_get_read_batch";

/// The functions that get the pages of a file that are not in the page cache. Compilers may have made
/// one of some of them.
const READS: [&str; 3] = ["filemap_get_pages", "page_cache_ra_unbounded", "page_cache_ra_order"];

/// The functions that end requests to block devices as they are done: after an interrupt with most drivers,
/// in it with `nvme`.
const ENDS: [&str; 2] = ["blk_done_softirq", "blk_mq_end_request_batch"];

/// The function that lets interrupts in again: a sample that came while they were off falls on it.
const UNLOCKS: &str = "_raw_spin_unlock_irqrestore";

/// The functions that wake threads with interrupts off: any of them, and those that wait for an event. Where
/// letting interrupts in is the last that one of these does, compilers make a jump of it, and the stack
/// shows its caller instead: of sockets, of pipes, of futexes.
const WAKES: [&str; 7] = [
    "try_to_wake_up",
    "__wake_up",
    "__wake_up_sync_key",
    "sock_def_readable",
    "sock_def_write_space",
    "wake_up_q",
    "anon_pipe_write",
];

/// Where the kernel does what is to be told apart, in the order of threads.h.
const FUNCTIONS: [&str; 15] = [
    ENTRY, LOOKS, READS[0], READS[1], READS[2], ENDS[0], ENDS[1], UNLOCKS, WAKES[0], WAKES[1],
    WAKES[2], WAKES[3], WAKES[4], WAKES[5], WAKES[6],
];

/// What samples can tell apart here.
#[expect(clippy::struct_excessive_bools, reason = "each can be told or not, whatever the others")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Places {
    /// Page faults.
    pub faults: bool,
    /// Those of them on the memory that holds the data.
    pub data: bool,
    /// The filling of the page cache.
    pub reading: bool,
    /// The end of requests to block devices.
    pub completing: bool,
    /// The waking of other threads.
    pub waking: bool,
}

/// `struct range` of threads.h.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Range {
    from: u64,
    to: u64,
}

impl Range {
    fn bytes(self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.from.to_ne_bytes());
        bytes[8..].copy_from_slice(&self.to.to_ne_bytes());
        bytes
    }
}

/// Says where the kernel does what is to be told apart, and gives what can be: it must show where its
/// functions are, and tell the address of a page fault.
pub(super) fn prepare(bpf: &Running) -> libbpf_rs::Result<Places> {
    let mut found = found_by_kernel(bpf).unwrap_or_default();
    if found.is_empty() {
        let symbols = File::open("/proc/kallsyms").map(BufReader::new);
        found = symbols.map_or_else(|_| Vec::new(), |symbols| functions(symbols, &FUNCTIONS));
    }
    let has = |found: &[(&str, Range)], any: &[&str]| found.iter().any(|(f, _)| any.contains(f));
    // It looks for pages too, which is no reading: where that is not a function of its own, the
    // others have to do.
    if !has(&found, &[LOOKS]) {
        found.retain(|(name, _)| *name != READS[0]);
    }
    for (range, name) in (KERNEL_FAULTS..).zip(FUNCTIONS) {
        if let Some((_, place)) = found.iter().find(|(known, _)| *known == name) {
            set(bpf, range, *place)?;
        }
    }
    let faults = has(&found, &[ENTRY]);
    let data = faults && bpf.has(ADDRESSES);
    let [reading, completing] = [has(&found, &READS), has(&found, &ENDS)];
    let waking = has(&found, &[UNLOCKS]) && has(&found, &[WAKES[0]]) && has(&found, &[WAKES[3]]);
    Ok(Places { faults, data, reading, completing, waking })
}

/// What the kernel finds of these functions itself: nothing where it would take long.
fn found_by_kernel(bpf: &Running) -> libbpf_rs::Result<Vec<(&'static str, Range)>> {
    let map = bpf.map("functions")?;
    for (index, name) in (0_u32..).zip(FUNCTIONS) {
        let mut function = [0; FUNCTION];
        function[..name.len()].copy_from_slice(name.as_bytes());
        map.update(&index.to_ne_bytes(), &function, MapFlags::ANY)?;
    }
    bpf.call("find_functions")?;
    let mut found = Vec::new();
    for (index, name) in (0_u32..).zip(FUNCTIONS) {
        let function = map.lookup(&index.to_ne_bytes(), MapFlags::ANY)?.unwrap_or_default();
        found.extend(range_of(&function).map(|range| (name, range)));
    }
    Ok(found)
}

/// Bytes of `struct function` of threads.h, and where in it are the text and the address.
const FUNCTION: usize = 112;
const TOLD: usize = 40;
const ADDRESS: usize = 104;

/// Where a function is that the kernel calls `name+0x0/0x30` there: so many bytes, to the next one.
fn range_of(function: &[u8]) -> Option<Range> {
    let from = u64::from_ne_bytes(function.get(ADDRESS..FUNCTION)?.try_into().ok()?);
    let text = function.get(TOLD..ADDRESS)?.split(|byte| *byte == 0).next()?;
    let (_, bytes) = std::str::from_utf8(text).ok()?.split_once("+0x0/0x")?;
    let bytes = u64::from_str_radix(bytes, 16).ok()?;
    (from > 0 && bytes > 0).then(|| Range { from, to: from.saturating_add(bytes) })
}

/// Samples, also after a pause; gives how often a CPU in a second, if that is possible: the kernel's
/// clock must drive a program.
pub(super) fn resume(bpf: &mut Running, host: &Host, sampling: Sampling) -> Option<u32> {
    let online = host.text("/sys/devices/system/cpu/online").into_value().unwrap_or_default();
    let count = u32::try_from(cpus(&online).count()).unwrap_or(u32::MAX).max(CPUS);
    let per_s = (sampling.most_per_s() * CPUS / count).max(FEWEST_PER_S);
    let sampled = bpf.sample(SAMPLER, cpus(&online), per_s.into());
    (sampled.is_ok() && bpf.has(SAMPLER)).then_some(per_s)
}

/// Says where a database's processes share its data, which they fault in anew when they start;
/// gives whether that is known.
pub(super) fn set_data_range(
    bpf: &Running,
    host: &Host,
    index: u32,
    database: &Database,
) -> libbpf_rs::Result<bool> {
    let maps = process::maps(host, database.pid).into_value().unwrap_or_default();
    let shared = maps.iter().filter(|mapping| mapping.shared && mapping.writable);
    let largest = shared.max_by_key(|mapping| mapping.bytes);
    let data = largest.filter(|_| database.model == Model::Process);
    let range = data.map(|m| Range { from: m.start, to: m.start.saturating_add(m.bytes.0) });
    set(bpf, index, range.unwrap_or_default())?;
    Ok(range.is_some())
}

fn set(bpf: &Running, index: u32, range: Range) -> libbpf_rs::Result<()> {
    bpf.map("ranges")?.update(&index.to_ne_bytes(), &range.bytes(), MapFlags::ANY)
}

/// Where functions of the kernel lie: from their symbols to the next one. The kernel shows zeroes to
/// those who may not know, and writes its symbols as they are read: that takes longer than anything else
/// in a check but loading programs, and what is sought lies in the first quarter.
fn functions<'a>(mut symbols: impl BufRead, names: &[&'a str]) -> Vec<(&'a str, Range)> {
    let mut found: Vec<(&str, Range)> = Vec::new();
    let mut line = String::new();
    let mut next = |line: &mut String| {
        line.clear();
        symbols.read_line(line).is_ok_and(|bytes| bytes > 0)
    };
    while next(&mut line) {
        let Some((address, symbol)) = function(&line) else { continue };
        // Hidden, as all of them are then.
        if address == 0 {
            return Vec::new();
        }
        let begun = found.iter_mut().map(|(_, range)| range);
        let ended = begun.filter(|range| range.to == 0 && range.from < address);
        ended.for_each(|range| range.to = address);
        let sought = names.iter().find(|name| **name == symbol);
        if let Some(name) = sought.filter(|name| found.iter().all(|(known, _)| known != *name)) {
            found.push((name, Range { from: address, to: 0 }));
        } else if found.len() == names.len() && found.iter().all(|(_, range)| range.to > 0) {
            break;
        }
    }
    found.retain(|(_, range)| range.to > 0);
    found
}

/// Address and name, if it is the symbol of a function.
fn function(line: &str) -> Option<(u64, &str)> {
    let mut words = line.split_ascii_whitespace();
    let address = u64::from_str_radix(words.next()?, 16).ok()?;
    matches!(words.next()?, "t" | "T").then_some(())?;
    Some((address, words.next()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_reaches_to_the_next_symbol() {
        let text = "ffffffff81000c50 T asm_exc_debug\n\
                    ffffffff81000c60 T asm_exc_page_fault\n\
                    ffffffff81000c60 t an_alias\n\
                    ffffffff81000c70 d data\n\
                    ffffffff81000c90 T asm_int80_emulation\n";
        let expected = Range { from: 0xffff_ffff_8100_0c60, to: 0xffff_ffff_8100_0c90 };
        let names = ["asm_exc_page_fault", "asm_exc", "asm_int80_emulation"];
        assert_eq!(functions(text.as_bytes(), &names), [(names[0], expected)]);
        let hidden = "0000000000000000 T f\n0000000000000000 T g\n";
        assert_eq!(functions(hidden.as_bytes(), &["f"]), []);
        assert_eq!(functions("garbage\n\nzz T f\n".as_bytes(), &["f"]), []);
    }

    #[test]
    fn what_the_kernel_calls_an_address_tells_the_size() {
        let mut function = [0; FUNCTION];
        assert_eq!(range_of(&function), None, "not found");
        function[TOLD..TOLD + 28].copy_from_slice(b"asm_exc_page_fault+0x0/0x30\0");
        assert_eq!(range_of(&function), None, "hidden");
        function[ADDRESS..].copy_from_slice(&0x1000_u64.to_ne_bytes());
        assert_eq!(range_of(&function), Some(Range { from: 0x1000, to: 0x1030 }));
        function[TOLD..TOLD + 8].copy_from_slice(b"0x1000\0\0");
        assert_eq!(range_of(&function), None, "a kernel that names nothing");
    }

    #[test]
    fn the_kernel_and_this_program_number_alike() {
        let header = include_str!("../bpf/threads.h");
        assert!(header.contains("#define KERNEL_FAULTS MAX_DATABASES\n"));
        let ranges = format!("#define RANGES (MAX_DATABASES + {})\n", FUNCTIONS.len());
        assert!(header.contains(&ranges));
        let named = format!("char name[{TOLD}];\n\tchar told[{}];\n\tu64 address;", ADDRESS - TOLD);
        assert!(header.contains(&named) && FUNCTION == ADDRESS + 8);
        assert!(FUNCTIONS.iter().all(|name| name.len() < TOLD), "with a zero at the end");
    }
}
