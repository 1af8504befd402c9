//! How much of their time on a CPU the threads spend in page faults and in system calls: what the
//! samples need to know.

use crate::bpf::Running;
use libbpf_rs::{MapCore, MapFlags};
use untax_core::Database;
use untax_core::database::Model;
use untax_core::host::cpus;
use untax_host::{Host, process};

/// Samples per second and CPU: enough for a share of a percent in a few seconds, and not in step
/// with anything that happens every millisecond.
const SAMPLES_PER_S: u64 = 499;

/// The program's functions: for a sample, and for the address of each page fault.
pub(super) const SAMPLER: &str = "on_sample";
pub(super) const ADDRESSES: &str = "on_page_fault";

/// `KERNEL_FAULTS` of threads.h.
const KERNEL_FAULTS: u32 = super::MAX_DATABASES as u32;

/// The function through which every page fault enters the kernel.
#[cfg(target_arch = "x86_64")]
const ENTRY: &str = "asm_exc_page_fault";
#[cfg(not(target_arch = "x86_64"))]
const ENTRY: &str = "do_mem_abort";

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

/// Prepares samples of page faults; gives whether these are possible here: the kernel must tell the
/// address of a page fault, and where it serves them.
pub(super) fn prepare(bpf: &Running, host: &Host) -> libbpf_rs::Result<bool> {
    let symbols = host.text("/proc/kallsyms");
    let Some(entry) = symbols.value().and_then(|text| function(text, ENTRY)) else {
        return Ok(false);
    };
    set(bpf, KERNEL_FAULTS, entry)?;
    Ok(bpf.has(ADDRESSES))
}

/// Samples, also after a pause; gives whether that is possible: the kernel's clock must drive a program.
pub(super) fn resume(bpf: &mut Running, host: &Host) -> bool {
    let online = host.text("/sys/devices/system/cpu/online").into_value().unwrap_or_default();
    bpf.sample(SAMPLER, cpus(&online), SAMPLES_PER_S).is_ok() && bpf.has(SAMPLER)
}

/// Says where a database's processes share its data, which they fault in anew when they start;
/// gives whether that is known.
pub(super) fn follow(
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

/// Where a function of the kernel lies: from its symbol to the next one. The kernel shows zeroes to
/// those who may not know.
fn function(symbols: &str, name: &str) -> Option<Range> {
    let mut texts = symbols.lines().filter_map(|line| {
        let mut words = line.split_ascii_whitespace();
        let address = u64::from_str_radix(words.next()?, 16).ok()?;
        let is_text = matches!(words.next()?, "t" | "T");
        is_text.then(|| words.next().map(|symbol| (address, symbol)))?
    });
    let (from, _) = texts.find(|(address, symbol)| *symbol == name && *address > 0)?;
    let to = texts.map(|(address, _)| address).find(|address| *address > from)?;
    Some(Range { from, to })
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
        assert_eq!(function(text, "asm_exc_page_fault"), Some(expected));
        assert_eq!(function(text, "asm_exc"), None);
        assert_eq!(function("0000000000000000 T f\n0000000000000000 T g\n", "f"), None);
        assert_eq!(function("garbage\n\nzz T f\n", "f"), None);
    }

    #[test]
    fn the_kernel_and_this_program_number_alike() {
        let header = include_str!("../bpf/threads.h");
        assert!(header.contains("#define KERNEL_FAULTS MAX_DATABASES\n"));
    }
}
