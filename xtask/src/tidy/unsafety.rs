//! Where unsafe code may stand.

use super::problem::{Problem, numbered};

/// The lint that the workspace denies; split here so that this file may name it.
const LINT: &str = concat!("unsafe", "_code");
const KEYWORD: &str = concat!("un", "safe");

/// Probes, and the one module that maps memory for experiments.
fn is_allowed(path: &str) -> bool {
    path.starts_with("crates/probes/") || path == "crates/experiments/src/memory.rs"
}

pub fn check(path: &str, text: &str) -> Vec<Problem> {
    match path.rsplit('/').next() {
        Some("Cargo.toml") => check_manifest(path, text),
        _ if path.ends_with(".rs") && !is_allowed(path) => check_source(path, text),
        _ => Vec::new(),
    }
}

/// A crate takes the workspace's lints, which deny unsafe code.
fn check_manifest(path: &str, text: &str) -> Vec<Problem> {
    let (wanted, what) = match path {
        "Cargo.toml" => (format!("{LINT} = \"deny\""), "the workspace must deny unsafe code"),
        _ if path.starts_with("fuzz/") => return Vec::new(),
        _ => ("[lints]\nworkspace = true".to_owned(), "must take the workspace's lints"),
    };
    if text.contains(&wanted) { Vec::new() } else { vec![Problem::new(path, None, what)] }
}

fn check_source(path: &str, text: &str) -> Vec<Problem> {
    numbered(text)
        .filter(|(_, line)| names_unsafe(line) || line.contains(LINT))
        .map(|(number, _)| Problem::new(path, number, format!("{KEYWORD} code has no place here")))
        .collect()
}

/// Whether the keyword stands outside comments and strings, as far as one line tells.
fn names_unsafe(line: &str) -> bool {
    let code = line.split("//").next().unwrap_or_default();
    code.split('"')
        .step_by(2)
        .flat_map(|part| part.split(|c: char| !c.is_alphanumeric() && c != '_'))
        .any(|word| word == KEYWORD)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_found_where_it_may_not_be() {
        let bad = [format!("    {KEYWORD} {{ f() }}\n"), format!("#![allow({LINT})]\n")];
        for text in &bad {
            assert_eq!(check("crates/core/src/lib.rs", text).len(), 1, "{text}");
            assert_eq!(check("crates/experiments/src/pages.rs", text).len(), 1, "{text}");
            assert!(check("crates/probes/src/a.rs", text).is_empty(), "{text}");
            assert!(check("crates/experiments/src/memory.rs", text).is_empty(), "{text}");
        }
    }

    #[test]
    fn words_about_it_are_allowed() {
        for text in [format!("// {KEYWORD}\n"), format!("let a = \"{KEYWORD} b\";\n")] {
            assert!(check("crates/core/src/lib.rs", &text).is_empty(), "{text}");
        }
    }

    #[test]
    fn a_crate_without_the_lints_is_found() {
        assert_eq!(check("crates/a/Cargo.toml", "[package]\n").len(), 1);
        assert!(check("crates/a/Cargo.toml", "[lints]\nworkspace = true\n").is_empty());
        assert_eq!(check("Cargo.toml", "[workspace]\n").len(), 1);
    }
}
