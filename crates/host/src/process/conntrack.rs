//! `/proc/PID/net/stat/nf_conntrack`: the connection table of the network namespace of a process.

use untax_core::network::{Conntrack, Refused};

/// Parses the file: names of the columns, then a line of hexadecimal numbers for each CPU. The
/// number of entries is the same on each line, the rest is to be added up. Columns have come and
/// gone with kernels, so names tell which is which.
pub fn parse(text: &str) -> Option<Conntrack> {
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next()?.split_ascii_whitespace().collect();
    let rows: Vec<Vec<u64>> = lines.map(|line| row(line, names.len())).collect::<Option<_>>()?;
    let sum = |name: &str| {
        let column = names.iter().position(|found| *found == name)?;
        Some(rows.iter().fold(0_u64, |sum, row| sum.saturating_add(row[column])))
    };
    let entries = names.iter().position(|name| *name == "entries")?;
    Some(Conntrack {
        entries: *rows.first()?.get(entries)?,
        refused: Some(Refused {
            dropped: sum("drop")?,
            dropped_early: sum("early_drop")?,
            insert_failed: sum("insert_failed")?,
        }),
    })
}

fn row(line: &str, columns: usize) -> Option<Vec<u64>> {
    let numbers = line.split_ascii_whitespace().map(|word| u64::from_str_radix(word, 16).ok());
    numbers.collect::<Option<Vec<u64>>>().filter(|row| row.len() == columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "entries  clashres found new insert insert_failed drop early_drop \
        icmp_error  expect_new search_restart\n\
        000000ff  00000000 00000000 00000000 00000000 00000001 0000000a 00000003 00000000  0 0\n\
        000000ff  00000000 00000000 00000000 00000000 00000002 00000010 00000000 00000000  0 1\n";

    #[test]
    fn cpus_are_added_up_and_numbers_are_hexadecimal() {
        let table = parse(TABLE).unwrap();
        let refused = Refused { dropped: 26, dropped_early: 3, insert_failed: 3 };
        assert_eq!((table.entries, table.refused), (255, Some(refused)));
    }

    #[test]
    fn other_forms_are_refused() {
        for garbage in ["", "entries drop\n", "entries drop early_drop insert_failed\n"] {
            assert_eq!(parse(garbage), None, "{garbage:?}");
        }
        let names = "entries insert_failed drop early_drop\n";
        assert!(parse(&format!("{names}1 2 3 4\n")).is_some());
        assert_eq!(parse(&format!("{names}1 2 3\n")), None, "cut off");
        assert_eq!(parse(&format!("{names}1 2 3 4 5\n")), None, "another column");
        assert_eq!(parse(&format!("{names}1 2 x 4\n")), None);
        assert_eq!(parse("entries insert drop early_drop\n1 2 3 4\n"), None, "another name");
    }
}
