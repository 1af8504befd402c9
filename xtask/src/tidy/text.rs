//! Words, paths and white space that have no place in the tree.

use super::problem::{Problem, numbered};

/// Unfinished work; each is split here so that this file may name it.
const UNFINISHED: &[&str] = &[
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("db", "g!("),
    concat!("to", "do!("),
    concat!("unimple", "mented!("),
];

/// Paths of somebody's machine.
const MACHINE: &[&str] = &[concat!("/ro", "ot/"), concat!("/wo", "rk/"), concat!("/ho", "me/")];

/// Hosts that packages come from: which ones to use is the machine's business.
const HOSTS: &[&str] = &[
    concat!("debian", ".org"),
    concat!("crates", ".io"),
    concat!("pypi", ".org"),
    concat!("npmjs", ".org"),
    concat!("golang", ".org"),
    concat!("maven", ".org"),
];

/// Whether a file is data that something else wrote.
fn is_data(path: &str) -> bool {
    path.starts_with("tests/cases/")
        || path.starts_with("fuzz/")
        || [".snap", ".json", ".html", ".svg"].iter().any(|end| path.ends_with(end))
}

pub fn check(path: &str, text: &str) -> Vec<Problem> {
    let mut problems = Vec::new();
    if path.ends_with(".lock") || path.starts_with("LICENSE") {
        return problems;
    }
    for (number, line) in numbered(text) {
        let foreign = MACHINE.iter().filter(|place| stands(line, place));
        let foreign = foreign.chain(HOSTS.iter().filter(|host| line.contains(**host)));
        problems.extend(foreign.map(|it| Problem::new(path, number, format!("names {it}"))));
        if is_data(path) {
            continue;
        }
        let unfinished = UNFINISHED.iter().filter(|word| line.contains(**word));
        problems.extend(unfinished.map(|it| Problem::new(path, number, format!("says {it}"))));
        if line.ends_with([' ', '\t']) {
            problems.push(Problem::new(path, number, "trailing white space"));
        }
    }
    if !is_data(path) && !text.is_empty() && (!text.ends_with('\n') || text.ends_with("\n\n")) {
        problems.push(Problem::new(path, None, "must end with one newline"));
    }
    problems
}

/// Whether an absolute path stands in a line, rather than the middle of a longer one.
fn stands(line: &str, place: &str) -> bool {
    line.match_indices(place).any(|(at, _)| {
        !line[..at]
            .ends_with(|c: char| c.is_alphanumeric() || ['_', '.', '-', '}', '*'].contains(&c))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unfinished_work_is_found() {
        for word in UNFINISHED {
            assert_eq!(check("a.rs", &format!("// {word}\n")).len(), 1, "{word}");
        }
    }

    #[test]
    fn places_of_a_machine_are_found_in_data_too() {
        for word in MACHINE.iter().chain(HOSTS) {
            assert_eq!(check("a.md", &format!("see {word}x\n")).len(), 1, "{word}");
            assert_eq!(check("tests/cases/a/proc", &format!("see {word}x\n")).len(), 1, "{word}");
        }
        let longer = format!("$base/chroot{}usr\n", MACHINE[0]);
        assert!(check("a.sh", &longer).is_empty());
    }

    #[test]
    fn white_space_is_found_in_source_alone() {
        for text in ["x \n", "x\t\n", "x", "x\n\n"] {
            assert_eq!(check("a.rs", text).len(), 1, "{text:?}");
            assert!(check("tests/cases/a/proc", text).is_empty(), "{text:?}");
        }
        assert!(check("a.rs", "").is_empty());
    }
}
