//! `/proc/PID/maps`.

use untax_core::Bytes;

/// One mapping of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapping {
    /// Where it starts.
    pub start: u64,
    /// Its length.
    pub bytes: Bytes,
    /// Whether it can be written.
    pub writable: bool,
    /// Whether writes are shared with other processes.
    pub shared: bool,
    /// Inode of the mapped file; zero for anonymous memory.
    pub inode: u64,
    /// Name of the mapped file as the kernel prints it; empty for anonymous memory.
    pub name: String,
}

/// Parses a `maps` file; lines of another form are left out.
pub fn parse(text: &str) -> Vec<Mapping> {
    text.lines().filter_map(parse_line).collect()
}

fn parse_line(line: &str) -> Option<Mapping> {
    let mut rest = line;
    let mut field = || {
        let trimmed = rest.trim_start_matches(' ');
        let end = trimmed.find(' ').unwrap_or(trimmed.len());
        let (word, tail) = trimmed.split_at(end);
        rest = tail;
        (!word.is_empty()).then_some(word)
    };
    let (start, end) = field()?.split_once('-')?;
    let address = |hex: &str| u64::from_str_radix(hex, 16).ok();
    let start = address(start)?;
    // The kernel has no empty mapping: a line of one is not its own.
    let bytes = address(end)?.checked_sub(start).filter(|bytes| *bytes > 0).map(Bytes)?;
    let permissions = field()?.as_bytes();
    let (_offset, _device) = (field()?, field()?);
    let inode = field()?.parse().ok()?;
    Some(Mapping {
        start,
        bytes,
        writable: permissions.get(1) == Some(&b'w'),
        shared: permissions.get(3) == Some(&b's'),
        inode,
        name: rest.trim_start_matches(' ').to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_spaces_are_whole() {
        let maps = parse(
            "7f0000000000-7f0180000000 rw-s 00000000 00:0f 1234                       /anon_hugepage (deleted)\n\
             garbage\n\
             55d0c8a00000-55d0c8a21000 rw-p 00000000 00:00 0 \n",
        );
        assert_eq!(maps.len(), 2);
        assert_eq!(maps[0].name, "/anon_hugepage (deleted)");
        assert_eq!(maps[0].bytes, Bytes(6 << 30));
        assert!(maps[0].shared && maps[0].writable);
        assert_eq!((maps[1].name.as_str(), maps[1].shared), ("", false));
    }

    #[test]
    fn a_mapping_that_ends_where_it_starts_or_before_is_left_out() {
        for range in ["2000-1000", "2000-2000"] {
            assert!(parse(&format!("{range} rw-p 00000000 00:00 0\n")).is_empty(), "{range}");
        }
    }
}
