//! The names of page sizes. Each program, and each file of the kernel, writes them its own way.

use crate::Bytes;

/// The units of page sizes and how often each doubles a byte, largest first.
const UNITS: [(char, u32); 3] = [('G', 30), ('M', 20), ('K', 10)];

/// A size in the largest unit that leaves no fraction.
fn scaled(size: Bytes) -> (u64, char) {
    let whole = |&&(_, shift): &&(char, u32)| size.0 > 0 && size.0.is_multiple_of(1 << shift);
    let (unit, shift) = UNITS.iter().find(whole).copied().unwrap_or(('K', 10));
    (size.0 >> shift, unit)
}

/// As options and results name it: `2m`.
pub fn token(size: Bytes) -> String {
    boot_word(size).to_lowercase()
}

/// The size that such a name stands for.
pub fn from_token(name: &str) -> Option<Bytes> {
    parse(name).filter(|_| name.ends_with(['k', 'm', 'g']))
}

/// As people write it on a kernel command line: `2M`.
pub fn boot_word(size: Bytes) -> String {
    let (number, unit) = scaled(size);
    format!("{number}{unit}")
}

/// As control groups name it, and PostgreSQL's `huge_page_size` from a mebibyte on: `2MB`.
pub fn group_word(size: Bytes) -> String {
    let (number, unit) = scaled(size);
    format!("{number}{unit}B")
}

/// As Kubernetes names it: `2Mi`.
pub fn kubernetes_word(size: Bytes) -> String {
    let (number, unit) = scaled(size);
    format!("{number}{unit}i")
}

/// The directory of its pool in sysfs: `hugepages-2048kB`.
pub fn directory(size: Bytes) -> String {
    format!("hugepages-{}kB", size.0 >> 10)
}

/// The size of the pool in such a directory, and the NUMA node that it is of, if it is of one.
pub fn of_directory(path: &str) -> Option<(Bytes, Option<u32>)> {
    let (above, name) = path.rsplit_once('/')?;
    let kib = name.strip_prefix("hugepages-")?.strip_suffix("kB")?.parse().ok()?;
    let node = above.strip_suffix("/hugepages")?.rsplit('/').next()?.strip_prefix("node");
    let node = match node {
        Some(node) => Some(node.parse().ok()?),
        None => None,
    };
    Some((Bytes::from_kib(kib), node))
}

/// A size as the kernel's `memparse` reads it, if it is a page's: a power of two.
pub fn parse(text: &str) -> Option<Bytes> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match &text[digits.len()..] {
        "" => 0,
        unit => {
            let unit = unit.to_uppercase();
            UNITS.iter().find(|(name, _)| unit == name.to_string())?.1
        }
    };
    let bytes = digits.parse::<u64>().ok()?.checked_mul(1 << shift)?;
    bytes.is_power_of_two().then_some(Bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_place_has_its_own_way() {
        let names = |size| {
            [token, boot_word, group_word, kubernetes_word, directory].map(|name| name(size))
        };
        assert_eq!(names(Bytes::MIB_2), ["2m", "2M", "2MB", "2Mi", "hugepages-2048kB"]);
        assert_eq!(names(Bytes::GIB_1), ["1g", "1G", "1GB", "1Gi", "hugepages-1048576kB"]);
        let large = names(Bytes::from_mib(512));
        assert_eq!(large, ["512m", "512M", "512MB", "512Mi", "hugepages-524288kB"]);
        assert_eq!(names(Bytes::from_kib(64))[..2], ["64k", "64K"]);
    }

    #[test]
    fn a_pool_is_known_by_its_directory() {
        let pool = |path| of_directory(path);
        assert_eq!(pool("/sys/kernel/mm/hugepages/hugepages-2048kB"), Some((Bytes::MIB_2, None)));
        assert_eq!(
            pool("/sys/devices/system/node/node12/hugepages/hugepages-524288kB"),
            Some((Bytes::from_mib(512), Some(12)))
        );
        assert_eq!(pool("/sys/kernel/mm/transparent_hugepage/hugepages-2048kB"), None);
    }

    #[test]
    fn names_are_read_as_they_are_written() {
        for size in (10..40).map(|shift| Bytes(1 << shift)) {
            assert_eq!(from_token(&token(size)), Some(size));
            assert_eq!(parse(&boot_word(size)), Some(size));
        }
        assert_eq!(parse("2048K"), Some(Bytes::MIB_2));
        assert_eq!(parse("1073741824"), Some(Bytes::GIB_1));
        for wrong in ["", "m", "3m", "2mb", "2x", "thp", "99999999999g"] {
            assert_eq!(from_token(wrong), None, "{wrong}");
        }
        assert_eq!(from_token("2M"), None, "options are lower case");
    }
}
