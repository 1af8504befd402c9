//! A page of 2 MiB is one host's: sizes, the default one among them, come from the host. The number stands
//! where it is defined, and its name only where a thing is 2 MiB on every host.

use super::problem::{Problem, numbered};

/// Where the number is.
const DEFINITION: &str = "crates/core/src/units.rs";

/// The name of the number, in parts, so that this file may say it.
const NAME: &str = concat!("MIB", "_2");

/// The number, as people write it.
const NUMBERS: [&str; 8] = [
    concat!("2 <", "< 20"),
    concat!("1 <", "< 21"),
    concat!("2097", "152"),
    concat!("2_097", "_152"),
    concat!("2 * 1024 ", "* 1024"),
    concat!("from_mib", "(2)"),
    concat!("from_kib", "(2048)"),
    concat!("2048", "kB"),
];

/// Where the name may stand, and why.
const IS_THAT_SIZE: [(&str, &str); 6] = [
    (DEFINITION, "the definition"),
    ("crates/host/src/facts/tlb/", "what CPUID of x86-64 describes"),
    ("crates/host/src/facts/page_sizes.rs", "what a flag of x86-64 means"),
    ("crates/engines/src/mysql/large_pages.rs", "the length of a mapping, measured"),
    ("crates/experiments/src/", "an arm that its user chooses by that name, and its alignment"),
    ("crates/scenes/src/setting.rs", "a pool that tests fill by that size"),
];

pub fn check(path: &str, text: &str) -> Vec<Problem> {
    if !path.ends_with(".rs") || is_test(path) {
        return Vec::new();
    }
    let code = numbered(text)
        .take_while(|(_, line)| line.trim() != "#[cfg(test)]")
        .filter(|(_, line)| !line.trim_start().starts_with("//"));
    let may_name = IS_THAT_SIZE.iter().any(|(place, _)| path.starts_with(place));
    let mut problems = Vec::new();
    for (number, line) in code {
        let has_number = path != DEFINITION && NUMBERS.iter().any(|it| stands(line, it));
        if has_number || (!may_name && line.contains(NAME)) {
            let what = "has a page of 2 MiB: take the size from the host";
            problems.push(Problem::new(path, number, what));
        }
    }
    problems
}

fn is_test(path: &str) -> bool {
    let file = path.rsplit('/').next().unwrap_or_default();
    // Made-up hosts are tests, too.
    ["/tests/", "/examples/"].iter().any(|folder| path.contains(folder))
        || file.starts_with("test_")
        || file.ends_with("_tests.rs")
        || file == "fuzz.rs"
}

/// Whether a number stands in a line, rather than the end of a longer one.
fn stands(line: &str, number: &str) -> bool {
    line.match_indices(number)
        .any(|(at, _)| !line[..at].ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_is_found_where_it_is_not_defined() {
        for number in NUMBERS {
            let line = format!("let size = {number};\n");
            assert_eq!(check("crates/a/src/b.rs", &line).len(), 1, "{number}");
            assert!(check("crates/a/tests/b.rs", &line).is_empty(), "{number}");
            assert!(check("crates/a/src/test_b.rs", &line).is_empty(), "{number}");
            assert!(check(DEFINITION, &line).is_empty(), "{number}");
            let tested = format!("#[cfg(test)]\nmod tests {{\n{line}}}\n");
            assert!(check("crates/a/src/b.rs", &tested).is_empty(), "{number}");
        }
        let larger = format!("let size = 51{};\n", NUMBERS[0]);
        assert!(check("crates/a/src/b.rs", &larger).is_empty());
    }

    #[test]
    fn its_name_stands_where_a_thing_is_that_large_on_every_host() {
        let line = format!("let size = Bytes::{NAME};\n");
        assert_eq!(check("crates/a/src/b.rs", &line).len(), 1);
        for (place, why) in IS_THAT_SIZE {
            assert!(check(place, &line).is_empty() && !why.is_empty(), "{place}");
        }
    }
}
