//! The forms that several files of the kernel share.

use crate::Host;
use std::str::FromStr;
use untax_core::Bytes;
use untax_core::Reading::{self, Absent, Failed, Present};

/// A file that holds one number.
pub(super) fn number<T: FromStr>(host: &Host, path: &str) -> Reading<T> {
    host.text(path).parse(path, |text| text.trim().parse().ok())
}

/// A file that holds one line.
pub(super) fn line(host: &Host, path: &str) -> Reading<String> {
    host.text(path).parse(path, |text| {
        let line = text.lines().next()?.trim_matches(['\0', ' ', '\t']);
        (!line.is_empty()).then(|| line.to_owned())
    })
}

/// The word in brackets, as in `always [madvise] never`.
pub(super) fn bracketed_word(text: &str) -> Option<String> {
    let (_, rest) = text.split_once('[')?;
    let (word, _) = rest.split_once(']')?;
    (!word.is_empty()).then(|| word.to_owned())
}

/// The size in the name of a directory, as in `hugepages-2048kB`.
pub(super) fn page_size(name: &str) -> Option<Bytes> {
    let kib: u64 = name.strip_prefix("hugepages-")?.strip_suffix("kB")?.parse().ok()?;
    (kib > 0).then(|| Bytes::from_kib(kib))
}

/// The sizes among the names of directories, ascending.
pub(super) fn page_sizes(names: &[String]) -> Vec<Bytes> {
    let mut sizes: Vec<Bytes> = names.iter().filter_map(|name| page_size(name)).collect();
    sizes.sort_unstable();
    sizes
}

/// How many CPUs or nodes a list such as `0-15,32-47` names.
pub(super) fn list_length(list: &str) -> Option<u32> {
    let ranges = ranges(list)?;
    ranges
        .into_iter()
        .try_fold(0_u32, |sum, (first, last)| sum.checked_add((last - first).checked_add(1)?))
}

/// The first number of a list such as `0-15,32-47`.
pub(super) fn list_first(list: &str) -> Option<u32> {
    ranges(list)?.first().map(|(first, _)| *first)
}

fn ranges(text: &str) -> Option<Vec<(u32, u32)>> {
    let range = |range: &str| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last) = (first.parse().ok()?, last.parse().ok()?);
        (first <= last).then_some((first, last))
    };
    text.trim().split(',').map(range).collect()
}

/// The value of a line such as `MemTotal:  1024 kB`, whose key ends with the colon.
pub(super) fn kib(text: &str, key: &str) -> Reading<Bytes> {
    let Some(found) = text.lines().find_map(|line| value_of(line, key)) else {
        return Absent(format!("this kernel does not count {}", key.trim_end_matches(':')));
    };
    match found.strip_suffix("kB").and_then(|number| number.trim().parse().ok()) {
        Some(number) => Present(Bytes::from_kib(number)),
        None => Failed(format!("{key} {found} is no number of kB")),
    }
}

fn value_of<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    // The lines of a NUMA node start with `Node 0 `.
    let line = match line.strip_prefix("Node ") {
        Some(rest) => rest.trim_start().split_once(' ')?.1,
        None => line,
    };
    Some(line.strip_prefix(key)?.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_counted_without_being_spelled_out() {
        assert_eq!(list_length("0-15,32-47\n"), Some(32));
        assert_eq!(list_length("3"), Some(1));
        assert_eq!(list_length("0-4294967295"), None);
        assert_eq!(list_length("0-4294967294"), Some(u32::MAX));
        for garbage in ["", "\n", "1-", "-1", "5-3", "a", "0-1,", "0-1-2"] {
            assert_eq!(list_length(garbage), None, "{garbage:?}");
        }
        assert_eq!(list_first("2-15,0"), Some(2));
    }

    #[test]
    fn kib_lines_are_whole_or_refused() {
        let text = "MemTotal:       24684084 kB\nMemFree: 12\nSwap: x kB\n";
        assert_eq!(kib(text, "MemTotal:"), Present(Bytes(24_684_084 << 10)));
        assert!(matches!(kib(text, "MemFree:"), Failed(_)), "the unit is cut off");
        assert!(matches!(kib(text, "Swap:"), Failed(_)));
        assert!(matches!(kib(text, "Hugetlb:"), Absent(_)));
        assert_eq!(kib("Node 3 MemTotal: 7 kB", "MemTotal:"), Present(Bytes(7 << 10)));
        assert!(matches!(kib("Node 3", "MemTotal:"), Absent(_)));
    }

    #[test]
    fn words_and_sizes() {
        assert_eq!(bracketed_word("always [madvise] never\n").as_deref(), Some("madvise"));
        assert_eq!(bracketed_word("always [madvi"), None);
        assert_eq!(bracketed_word("[]"), None);
        assert_eq!(page_size("hugepages-2048kB"), Some(Bytes::MIB_2));
        assert_eq!(page_size("hugepages-0kB"), None);
        assert_eq!(page_size("hugepages-2048"), None);
    }
}
