//! What pages a mapping of this process really has, from `/proc/self/smaps`.

use untax_core::{Bytes, Reading};
use untax_host::Host;

/// The lines of one mapping that tell about pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pages {
    /// `KernelPageSize`.
    pub(crate) kernel_page: Bytes,
    /// `AnonHugePages`: private memory in transparent huge pages.
    pub(crate) private_transparent: Bytes,
    /// `ShmemPmdMapped`: shared memory mapped by transparent huge pages.
    pub(crate) shared_transparent: Bytes,
}

/// The mapping of this process that holds an address.
pub(crate) fn mapping_at(host: &Host, address: usize) -> Reading<Pages> {
    const PATH: &str = "/proc/self/smaps";
    host.text(PATH).parse(PATH, |text| parse(text, address as u64))
}

fn parse(text: &str, address: u64) -> Option<Pages> {
    let mut lines = text.lines().skip_while(|line| !starts_mapping_of(line, address));
    lines.next()?;
    let (mut kernel_page, mut private, mut shared) = (None, None, None);
    for line in lines.take_while(|line| range(line).is_none()) {
        let Some((key, value)) = line.split_once(':') else { continue };
        match key {
            "KernelPageSize" => kernel_page = kib(value),
            "AnonHugePages" => private = kib(value),
            "ShmemPmdMapped" => shared = kib(value),
            _ => {}
        }
    }
    // A kernel without transparent huge pages prints neither line, and has none.
    let none = Bytes(0);
    Some(Pages {
        kernel_page: kernel_page?,
        private_transparent: private.unwrap_or(none),
        shared_transparent: shared.unwrap_or(none),
    })
}

fn starts_mapping_of(line: &str, address: u64) -> bool {
    range(line).is_some_and(|(start, end)| (start..end).contains(&address))
}

/// The addresses of a line that begins a mapping.
fn range(line: &str) -> Option<(u64, u64)> {
    let (start, end) = line.split(' ').next()?.split_once('-')?;
    Some((u64::from_str_radix(start, 16).ok()?, u64::from_str_radix(end, 16).ok()?))
}

fn kib(value: &str) -> Option<Bytes> {
    value.trim().strip_suffix(" kB")?.parse().ok().map(Bytes::from_kib)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TEXT: &str = "\
7f0000000000-7f0000200000 rw-s 00000000 00:01 9  /memfd:untax-table (deleted)
Size:               2048 kB
KernelPageSize:        4 kB
AnonHugePages:         0 kB
ShmemPmdMapped:     2048 kB
VmFlags: rd wr sh mr
7f0000200000-7f0000400000 rw-s 00000000 00:10 9  /anon_hugepage (deleted)
KernelPageSize:     2048 kB
";

    #[test]
    fn the_mapping_of_the_address_is_found() {
        let small = parse(TEXT, 0x7f00_001f_ffff).unwrap();
        assert_eq!(small.kernel_page, Bytes::KIB_4);
        assert_eq!(small.shared_transparent, Bytes::MIB_2);
        let huge = parse(TEXT, 0x7f00_0020_0000).unwrap();
        assert_eq!((huge.kernel_page, huge.shared_transparent), (Bytes::MIB_2, Bytes(0)));
        assert_eq!(parse(TEXT, 0x7f00_0040_0000), None);
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in any::<String>(), cut in 0..TEXT.len(), address in any::<u64>()) {
            parse(&text, address);
            parse(&TEXT[..cut], 0x7f00_0000_0000);
        }
    }
}
