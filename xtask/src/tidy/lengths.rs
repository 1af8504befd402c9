//! How long files and functions may be.

use super::problem::{Problem, numbered};

const FILE: usize = 500;
const FUNCTION: usize = 70;
const MAIN: usize = 20;

/// The kinds of source that have functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Language {
    Rust,
    C,
    Shell,
}

pub fn check(path: &str, text: &str) -> Vec<Problem> {
    let Some(language) = language(path, text) else { return Vec::new() };
    let mut problems = Vec::new();
    let lines = text.lines().count();
    let most = if path.ends_with("src/main.rs") { MAIN } else { FILE };
    if lines > most {
        problems.push(Problem::new(path, None, format!("{lines} lines; at most {most}")));
    }
    for (line, length) in functions(language, text) {
        if length > FUNCTION {
            let what = format!("a function of {length} lines; at most {FUNCTION}");
            problems.push(Problem::new(path, line, what));
        }
    }
    problems
}

fn language(path: &str, text: &str) -> Option<Language> {
    match path.rsplit_once('.').map(|(_, extension)| extension) {
        Some("rs") => Some(Language::Rust),
        Some("c" | "h") => Some(Language::C),
        Some("sh") => Some(Language::Shell),
        _ if text.starts_with("#!") || path.ends_with("Makefile") => Some(Language::Shell),
        _ => None,
    }
}

/// The first line and the length of every function. One ends at the first line that is a closing
/// brace, indented like its first line.
fn functions(language: Language, text: &str) -> Vec<(usize, usize)> {
    let lines: Vec<(usize, &str)> = numbered(text).collect();
    let mut functions = Vec::new();
    for (i, (number, line)) in lines.iter().enumerate() {
        if !begins(language, line) {
            continue;
        }
        let indent = &line[..line.len() - line.trim_start().len()];
        let rest = lines[i..].iter().map(|(_, l)| l.strip_prefix(indent).unwrap_or_default());
        let end = rest.enumerate().find(|(n, l)| *l == "}" || (*n == 0 && l.ends_with('}')));
        if let Some((n, _)) = end {
            functions.push((*number, n + 1));
        }
    }
    functions
}

fn begins(language: Language, line: &str) -> bool {
    match language {
        Language::Rust => begins_rust(line.trim_start()),
        Language::C => {
            line.starts_with(|c: char| c.is_alphabetic())
                && line.contains('(')
                && !line.ends_with(';')
        }
        Language::Shell => line.trim_start().split_once("()").is_some_and(|(name, rest)| {
            rest.trim_start().starts_with('{')
                && name.chars().all(|c| c.is_alphanumeric() || c == '_')
        }),
    }
}

fn begins_rust(line: &str) -> bool {
    let head = line.split("fn ").next().unwrap_or_default();
    line.contains("fn ")
        && head.split_whitespace().all(|word| {
            word.starts_with("pub")
                || ["const", "async", "unsafe", "extern", "\"C\""].contains(&word)
                || ["super)", "crate)"].contains(&word)
        })
        && !line.ends_with(';')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rust(body_lines: usize, head: &str) -> String {
        let indent = &head[..head.len() - head.trim_start().len()];
        format!("{head}\n{}{indent}}}\n", format!("{indent}    x();\n").repeat(body_lines))
    }

    #[test]
    fn a_long_function_is_found_and_a_short_one_is_not() {
        for head in
            ["fn a() {", "    pub(crate) const fn a() {", "pub async unsafe fn a(", "fn a<T>("]
        {
            assert!(check("a.rs", &rust(68, head)).is_empty(), "{head}");
            let problems = check("a.rs", &rust(69, head));
            assert_eq!(problems.len(), 1, "{head}");
            assert_eq!(problems[0].line, Some(1));
        }
    }

    #[test]
    fn what_only_looks_like_a_function_is_none() {
        for line in
            ["fn one_line() {}", "fn declared(&self) -> u8;", "let f: fn (u8) = g;", "// fn"]
        {
            let text = format!("{line}\n{}}}\n", "x\n".repeat(100));
            assert!(check("a.rs", &text).is_empty(), "{line}");
        }
    }

    #[test]
    fn c_and_shell_have_functions_too() {
        let c = format!("static int f(int a,\n\t\t int b)\n{{\n{}}}\n", "\tg();\n".repeat(70));
        assert_eq!(check("a.bpf.c", &c).len(), 1);
        let shell = format!("f() {{\n{}}}\n", "    g\n".repeat(70));
        assert_eq!(check("a.sh", &shell).len(), 1);
        assert_eq!(check(".ci/run", &format!("#!/bin/bash\n{shell}")).len(), 1);
        assert!(check("notes.md", &shell).is_empty());
    }

    #[test]
    fn a_long_file_is_found() {
        assert!(check("a.rs", &"x\n".repeat(FILE)).is_empty());
        assert_eq!(check("a.rs", &"x\n".repeat(FILE + 1)).len(), 1);
        assert_eq!(check("a/src/main.rs", &"x\n".repeat(MAIN + 1)).len(), 1);
        assert!(check("a.json", &"x\n".repeat(FILE + 1)).is_empty());
    }
}
